"""Limits on the figures of a run: how a test gives them, and what is said of a figure that is beyond its own."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import attrs

from kernbench_core.errors import UsageError
from kernbench_core.params import did_you_mean
from kernbench_core.units import parse_quantity
from kernbench_core.wording import brief

__tracebackhide__ = True  # a failure shows the line of the test
#: A figure of a run by its name: None where the run does not have it, as the error of data that nobody verified.
Figures: TypeAlias = Mapping[str, float | int | None]
#: How many figures an error names.
_TOLD = 10
#: What the end of a figure's name says of its dimension, and of the unit that is shown.
_UNITS = {"_ns": ("time", "ns"), "_bytes": ("size", "B")}


@attrs.frozen
class Budget:
    """The lowest and the highest value that a figure may have; None where there is no such bound."""

    figure: str
    low: float | None
    high: float | None

    @property
    def said(self) -> str:
        """What the figure must be: "at most 65,000 ns"."""
        unit = unit_of(self.figure)
        low, high = ("" if bound is None else exact(bound) for bound in (self.low, self.high))
        if not low or not high:
            return f"at least {low}{unit}" if low else f"at most {high}{unit}"
        return f"{low}{unit}" if self.low == self.high else f"from {low} to {high}{unit}"

    def holds(self, measured: float | None) -> bool:
        """Whether a figure is within it; one that the run does not have never is."""
        if measured is None:
            return False
        return (self.low is None or measured >= self.low) and (self.high is None or measured <= self.high)

    def fault(self, measured: float | None) -> str:
        """Say by how much a figure is beyond it: "time_ns is 71,353.7 ns, must be at most …: 6,353.7 ns too much"."""
        if measured is None:
            how = "; verify_data=True does" if self.figure == "max_abs_error" else ""
            return f"{self.figure} must be {self.said}, and the run did not measure it{how}"
        low, high, unit = self.low, self.high, unit_of(self.figure)
        bound = low if low is not None and measured < low else high
        if bound is None:
            return f"{self.figure} must be {self.said}, and is {measured}"
        by = abs(measured - bound)
        share = f" ({_percent(by / abs(bound))})" if bound else ""
        word = "too little" if measured < bound else "too much"
        return f"{self.figure} is {exact(measured, by)}{unit}, must be {self.said}: {exact(by)}{unit} {word}{share}"

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return attrs.asdict(self)


def budgets_from(given: Iterable[tuple[str, object]], known: Iterable[str]) -> Sequence[Budget]:
    """Return the limits that a test gave: a number or quantity is the most, a pair the least and the most.

    Raise UsageError for figures that there are not, and for what is no limit.
    """
    names = tuple(known)
    made = []
    for name, limit in given:
        if name not in names:
            raise _no_figure(name, names)
        low, high = limit if isinstance(limit, tuple | list) and len(limit) == 2 else (None, limit)
        if low is None and high is None:
            raise _no_limit(name, limit)
        ends = [None if end is None else _number(name, end, limit) for end in (low, high)]
        if None not in ends and ends[0] > ends[1]:  # type: ignore[operator]  # neither is None
            raise UsageError(f"the budget of {name} must have its lower bound first, not {brief(limit)}.")
        made.append(Budget(name, *ends))
    if not made:
        raise UsageError("a budget must name a figure, as time_ns=65_000.")
    return made


def _no_figure(name: str, names: Sequence[str]) -> UsageError:
    if name == "verified":
        return UsageError("a budget must be of a number, and 'verified' is none; write assert result.verified.")
    hint = did_you_mean(str(name), names) or f" It has {', '.join(names[:_TOLD])}, and {len(names) - _TOLD} more."
    return UsageError(f"a budget must be of a figure of the run, not {brief(name)}.{hint}")


def unit_of(figure: str) -> str:
    """Return the unit of a figure with a space before it, "" for counts and shares."""
    kind = _kind_of(figure)
    return f" {kind[1]}" if kind else ""


def exact(value: float, apart: float = 0.0) -> str:
    """Write a number with commas and three digits, or as many as tell it from one that is so far `apart`."""
    if (float(value).is_integer() and not apart % 1) or not math.isfinite(value):
        return f"{value:,.0f}"
    needed = [2 - math.floor(math.log10(abs(each))) for each in (value, apart) if each]
    digits = max(3 if abs(value) >= 1 else 0, *needed)
    if digits < 12:
        return f"{value:,.{digits}f}".rstrip("0").rstrip(".")
    return f"{value:,}" if abs(value) >= 1 else f"{value:.3g}"


def change(before: float, now: float, unit: str) -> str:
    """Say by how much a figure is another one: "1,233.736 ns more (+1.76 %)"."""
    if before == now:
        return "same"
    share = f" ({_percent((now - before) / abs(before), '+')})" if before else ""
    return f"{exact(abs(now - before))}{unit} {'more' if now > before else 'less'}{share}"


def _percent(share: float, sign: str = "") -> str:
    """Write a share in percent, with two digits behind the point where it is small."""
    return f"{100 * share:{sign},.{2 if abs(share) < 1 else 0}f} %"


def _kind_of(figure: str) -> tuple[str, str] | None:
    """Return the dimension of a figure and its unit; None for counts and shares."""
    parts = figure.split(".")
    return next((kind for end, kind in _UNITS.items() if any(part.endswith(end) for part in parts)), None)


def _number(name: str, end: object, limit: object) -> float:
    """Return a bound as a number in the figure's unit; UsageError for what is none."""
    if isinstance(end, str):
        kind = _kind_of(name)
        if kind is None:
            raise _no_limit(name, limit)
        try:
            return float(parse_quantity(end, kind[0]))
        except ValueError as error:
            raise UsageError(f"the budget of {name} {error}") from None
    try:
        number = float(end)  # type: ignore[arg-type]  # what is no number raises, numpy's are
    except (TypeError, ValueError, OverflowError):
        raise _no_limit(name, limit) from None
    if isinstance(end, bool) or math.isnan(number):
        raise _no_limit(name, limit)
    return number


def _no_limit(name: str, limit: object) -> UsageError:
    quantities = {"time": ", also as '65 us'", "size": ", also as '1 MiB'"}
    kind = _kind_of(name)
    more = quantities[kind[0]] if kind else ""
    return UsageError(
        f"the budget of {name} must be the most that it may be{more}, or a pair of least and most, not {brief(limit)}."
    )
