"""Limits on the figures of a run: how a test gives them, and what is said of a figure that is beyond its own."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Real
from typing import TypeAlias

import attrs

from kernbench_builtin.compare.formatting import both_texts, change_text, figure_text, percent_text
from kernbench_builtin.sweeps.objectives.figures import named_figures
from kernbench_builtin.sweeps.shaken import Shaken
from kernbench_core.errors import UsageError
from kernbench_core.params import did_you_mean
from kernbench_core.runs.result import RunResult
from kernbench_core.spread import TimeSpread
from kernbench_core.units import parse_quantity
from kernbench_core.wording import brief

__tracebackhide__ = True  # a failure shows the line of the test
#: A figure of a run by its name: None where the run does not have it, as the error of unverified data.
Figures: TypeAlias = Mapping[str, float | int | None]
_DIMENSIONS = {"ns": "time", "bytes": "size"}


@attrs.frozen
class Budget:
    """The lowest and the highest value that a figure may have; None where there is no such bound."""

    figure: str
    low: float | None
    high: float | None

    @property
    def said(self) -> str:
        """What the figure must be: "at most 65 us"."""
        bounds = [("exactly", self.low)] if self.low == self.high else [("at least", self.low), ("at most", self.high)]
        texts = [(word, figure_text(unit_of(self.figure), bound)) for word, bound in bounds if bound is not None]
        return " and ".join(f"{word} {text}" for word, text in texts)

    def fault(self, measured: float | None, spread: TimeSpread | None = None) -> str:
        """Say by how much a figure is beyond it: "time_ns must be at most 5.2 us, and is …"; "" where it is within.

        Where the `spread` of the figure is known, the median is what counts, and a bound within the spread is kept.
        """
        if spread is not None:
            measured = spread.median_ns
            if any(bound is not None and spread.low_ns <= bound <= spread.high_ns for bound in (self.low, self.high)):
                return ""
        if measured is None:
            how = "; verify_data=True does" if self.figure == "max_abs_error" else ""
            return f"{self.figure} must be {self.said}, and the run did not measure it{how}"
        if self.low is not None and measured < self.low:
            bound = self.low
        elif self.high is not None and measured > self.high:
            bound = self.high
        else:
            return ""
        unit, percent = unit_of(self.figure), percent_text(bound, measured)
        by = f"{change_text(unit, measured - bound)}{f' ({percent})' if percent else ''}"
        by += "" if spread is None else f", beyond the spread of {figure_text(unit, spread.width_ns)}"
        return f"{self.figure} must be {self.said}, and is {both_texts(unit, bound, measured)[1]}: {by}"


def figures_of_result(result: RunResult) -> Figures:
    """Return the figures of a result that are numbers, by name; None where it has none, or none that is finite."""
    found = {name: None if value in ("inf", "-inf", "nan") else value for name, value in named_figures(result).items()}
    return {name: each for name, each in found.items() if not isinstance(each, bool | str) and name != "verified"}


def spreads_of_result(result: RunResult) -> Mapping[str, TimeSpread]:
    """Return the spreads of figures that a shaken run knows, by name: of the total time, and of phases."""
    shaken = result.part(Shaken)
    if shaken is None:
        return {}
    return {"time_ns": shaken.total} | {f"{name}_ns": each for name, each in shaken.phases.items()}


def budgets_from(given: object, known: Figures) -> list[Budget]:
    """Return the limits that a test gave: a number or quantity is the most, a pair the least and the most.

    Raise UsageError for figures that there are not, and for what is no limit.
    """
    if not isinstance(given, Mapping) or not given:
        raise UsageError(f"a budget must name its figures, as time_ns=65_000 or a mapping, not {brief(given)}.")
    made = []
    for name, limit in given.items():
        if name not in known:
            hint = " Write assert result.verified." if name == "verified" else did_you_mean(str(name), known)
            raise UsageError(f"a budget must be of a numeric figure of the run, not {brief(name)}.{hint}")
        low, high = limit if isinstance(limit, tuple | list) and len(limit) == 2 else (None, limit)
        budget = Budget(name, _bound(name, low, limit), _bound(name, high, limit))
        if budget.low is None and budget.high is None:
            raise _no_limit(name, limit)
        if budget.low is not None and budget.high is not None and budget.low > budget.high:
            raise UsageError(f"the budget of {name} must have its lower bound first, not {brief(limit)}.")
        made.append(budget)
    return made


def unit_of(figure: str) -> str:
    """Return what the name of a figure says of its unit: "ns", "bytes", or "" for counts and shares."""
    return next((unit for unit in _DIMENSIONS for part in figure.split(".") if part.endswith(f"_{unit}")), "")


def _bound(name: str, bound: object, limit: object) -> float | None:
    """Return a bound as a number in the figure's unit; UsageError for what is none."""
    if bound is None:
        return None
    unit = unit_of(name)
    if isinstance(bound, Real) and not isinstance(bound, bool) and not math.isnan(bound):
        return float(bound)
    if not isinstance(bound, str) or not unit:
        raise _no_limit(name, limit)
    try:
        return float(parse_quantity(bound, _DIMENSIONS[unit]))
    except ValueError as error:
        raise UsageError(f"the budget of {name} {error}") from None


def _no_limit(name: str, limit: object) -> UsageError:
    quantity = {"ns": ", also as '65 us'", "bytes": ", also as '1 MiB'"}.get(unit_of(name), "")
    return UsageError(
        f"the budget of {name} must be an upper bound{quantity}, or a pair of lower and upper bound, "
        f"not {brief(limit)}."
    )
