"""By how much a run may be slower than another one: a share of its time, or a time."""

from __future__ import annotations

import re
from typing import Any, Final

import attrs
import rich_click as click

from kernbench_core.errors import UsageError
from kernbench_core.wording import brief

_PERCENT: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?%")


@attrs.frozen
class SlowerLimit:
    """The most that a total time may rise by: a `share` of what it was, or `ns`; `text` is how it was given."""

    text: str
    share: float = 0.0
    ns: float = 0.0

    def allows(self, before: float, after: float) -> bool:
        """Say whether a total time (ns) may be `after` where it was `before`; a faster run always may."""
        return after - before <= max(before * self.share, self.ns)


class SlowerLimitType(click.ParamType):  # type: ignore[type-arg]  # generic in the stubs only
    """A limit as "3%" or "50 ns", refused in our words."""

    name = "limit"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> SlowerLimit:
        """Return the limit; raise UsageError naming the option."""
        from kernbench_core.units import parse_quantity

        text = str(value).strip()
        found = _PERCENT.fullmatch(text)
        if found is not None and len(text) < 30:
            return SlowerLimit(text, share=float(found[1]) / 100)
        try:
            return SlowerLimit(text, ns=float(parse_quantity(text, "time")))
        except ValueError:
            raise UsageError(
                "option --fail-above must be a share or a time by which B may be slower, as '3%' or '50 ns', not "
                f"{brief(value)}."
            ) from None
