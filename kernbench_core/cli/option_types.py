"""Types of options that are refused in our words: whole numbers, times with their unit; and what completes values."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import rich_click as click

from kernbench_core.errors import UsageError
from kernbench_core.wording import brief


class Whole(click.ParamType):  # type: ignore[type-arg]  # generic in the stubs only
    """An integer, of at least `least` if that is given; refused in our words."""

    name = "integer"

    def __init__(self, least: int | None) -> None:
        self.least = least

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the integer; raise UsageError naming the option."""
        least = "" if self.least is None else f" of at least {self.least}"
        try:
            number = int(value)
        except ValueError:
            number = None
        if number is None or (self.least is not None and number < self.least):
            raise UsageError(f"option {_name(param)} must be an integer{least}, not {brief(value)}.")
        return number


class NumberType(click.ParamType):  # type: ignore[type-arg]  # generic in the stubs only
    """A finite number, refused in our words."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number; raise UsageError naming the option."""
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise UsageError(f"option {_name(param)} must be a number, not {brief(value)}.")
        return number


class Time(click.ParamType):  # type: ignore[type-arg]  # generic in the stubs only
    """A time with its unit, such as the `example`, taken in one of which an ns has `per_ns`; refused in our words."""

    name = "time"

    def __init__(self, example: str, per_ns: float) -> None:
        self.example = example
        self.per_ns = per_ns

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number; raise UsageError naming the option."""
        from kernbench_core.units import parse_quantity

        try:
            found = float(parse_quantity(value, "time", positive=True))
        except ValueError:
            found = 0.0
        if not found * 1e-9:  # also what no float tells from nothing
            raise UsageError(
                f"option {_name(param)} must be a positive time with its unit, as {self.example!r}, not {brief(value)}."
            )
        return found * self.per_ns


class PortNumber(click.ParamType):  # type: ignore[type-arg]  # generic in the stubs only
    """The number of a port, 0 for any free one; refused in our words."""

    name = "port"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number; raise UsageError naming the option."""
        number = int(value) if str(value).isdecimal() else -1
        if not 0 <= number < 1 << 16:
            raise UsageError(
                f"option {_name(param)} must be a port from 0 (any free one) to 65535, not {brief(value)}."
            )
        return number


def _name(param: click.Parameter | None) -> str:
    return param.opts[0] if param is not None else "the option"


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
