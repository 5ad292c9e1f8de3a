"""Types of options that are refused in our words: whole numbers, times with their unit; and what completes values."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import rich_click as click

from kernbench_core.errors import UsageError
from kernbench_core.wording import brief


class ReadType(click.ParamType):  # type: ignore[type-arg]  # generic in the stubs only
    """What `read` makes of a text; where it raises ValueError the option is refused: it `must` be something else."""

    def __init__(self, name: str, must: str, read: Callable[[Any], Any]) -> None:
        self.name, self.must, self.read = name, must, read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return what is read; raise UsageError naming the option."""
        try:
            return self.read(value)
        except ValueError:
            option = "the option" if param is None else param.opts[0]
            raise UsageError(f"option {option} must be {self.must}, not {brief(value)}.") from None


def _that(holds: bool, value: Any) -> Any:
    if not holds:
        raise ValueError
    return value


def whole(least: int | None) -> ReadType:
    """Return the type of an integer, of at least `least` if that is given."""
    must = "an integer" if least is None else f"an integer of at least {least}"
    return ReadType("integer", must, lambda text: _that(least is None or int(text) >= least, int(text)))


def number() -> ReadType:
    """Return the type of a finite number."""
    return ReadType("number", "a number", lambda text: _that(math.isfinite(float(text)), float(text)))


def duration(example: str, per_ns: float) -> ReadType:
    """Return the type of a time with its unit, such as the `example`, taken in one of which an ns has `per_ns`."""

    def read(text: Any) -> float:
        from kernbench_core.units import parse_quantity

        found = float(parse_quantity(text, "time", positive=True))
        return float(_that(found * 1e-9 > 0, found * per_ns))  # what no float tells from nothing is none

    return ReadType("time", f"a positive time with its unit, as {example!r}", read)


def port() -> ReadType:
    """Return the type of the number of a port, 0 for any free one."""
    return ReadType(
        "port", "a port from 0 (any free one) to 65535",
        lambda text: int(_that(str(text).isdecimal() and int(text) < 1 << 16, text)),
    )  # fmt: skip


_BY_METAVAR = {
    "PRESET|FILE": "presets", "FILE": "files", "DIR": "folders", "all|sip:N": "devices", "KEY=VALUE": "keys",
    "KEY=VALUES": "keys",
}  # fmt: skip


def completed_by(name: str) -> Callable[[click.Context, click.Parameter, str], Any]:
    """Return what completes a value by the function of this name of `completion`, which is imported when it is asked.

    It is given to an argument or an option of click as its `shell_complete`.
    """

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> Any:
        from kernbench_core.cli import completion

        return getattr(completion, name)(ctx, param, incomplete)

    return complete


def completed_as(metavar: str | None) -> Callable[[click.Context, click.Parameter, str], Any] | None:
    """Return what completes a value that the help shows so; None where that is nothing of its own."""
    return completed_by(_BY_METAVAR[metavar]) if metavar in _BY_METAVAR else None
