"""Types of options that are refused in our words: whole numbers, and times with their unit."""

from __future__ import annotations

from typing import Any

import rich_click as click

from kernbench_core.errors import UsageError


class Whole(click.ParamType):  # type: ignore[type-arg]  # generic in the stubs only
    """An integer of at least `least`, refused in our words."""

    name = "integer"

    def __init__(self, least: int) -> None:
        self.least = least

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the integer; raise UsageError naming the option."""
        try:
            number = int(value)
        except ValueError:
            number = self.least - 1
        if number < self.least:
            raise UsageError(f"option {_name(param)} must be an integer of at least {self.least}, not {value!r}.")
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
                f"option {_name(param)} must be a positive time with its unit, as {self.example!r}, not {value!r}."
            )
        return found * self.per_ns


def _name(param: click.Parameter | None) -> str:
    return param.opts[0] if param is not None else "the option"
