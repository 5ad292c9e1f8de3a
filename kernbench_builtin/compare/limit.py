"""By how much a run may be slower than another one: a share of its time, or a time."""

from __future__ import annotations

import re
from typing import Final

import attrs

from kernbench_core.cli.option_types import ReadType

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


def slower_limit() -> ReadType:
    """Return the type of a limit as "3%" or "50 ns"."""
    return ReadType("limit", "a share or a time by which B may be slower, as '3%' or '50 ns'", _read)


def _read(value: object) -> SlowerLimit:
    from kernbench_core.units import parse_quantity

    text = str(value).strip()
    found = _PERCENT.fullmatch(text)
    if found is not None and len(text) < 30:
        return SlowerLimit(text, share=float(found[1]) / 100)
    return SlowerLimit(text, ns=float(parse_quantity(text, "time")))
