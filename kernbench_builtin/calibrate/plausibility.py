"""Whether a fit explains its rows at all, and whether another unit of time would."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from attrs import evolve, frozen

from kernbench_builtin.calibrate.identification import Matrix, loose_unknowns
from kernbench_builtin.calibrate.least_squares import bounded_least_squares
from kernbench_core.calibration import LogRow, Unknown
from kernbench_core.errors import UsageError
from kernbench_core.units import format_time

MOST_ERROR = 0.5
"""A fit that is farther off on average explains nothing."""
MOST_ON_LIMITS = 0.05
"""The same where every parameter lies on a limit: rows chose none of the values."""
_FACTORS = (1e3, 1e-3, 1e6, 1e-6)
"""By how much times are off that have the unit of others."""
_FITS = 0.2
"""A mean error within which times of another unit would fit."""
_ALIKE, _MORE = 1e-9, 0.1
"""Parts by which slopes differ that are alike, and that are steeper."""
_FALLS = 0.05
"""Times that are less by this part of them fall."""


_ValuesOf = Callable[[Sequence[Unknown], Matrix], list[float]]
"""Give the values of parameters from the terms that times are linear in."""


@frozen
class Linear:
    """Times as a linear function of terms, `level` + `slopes` x terms, beside those measured; terms have limits."""

    slopes: Matrix
    measured: Matrix
    low: Matrix
    high: Matrix
    level: Matrix | float = 0.0

    def best(self) -> Matrix:
        """Return the terms within their limits with the least squared errors."""
        right = (self.measured - self.level) / self.measured
        return bounded_least_squares(self.slopes / self.measured[:, None], right, self.low, self.high)

    def error(self, terms: Matrix) -> float:
        """Return the mean error of these terms, as a part of the measurements."""
        return float(np.mean(np.abs((self.slopes @ terms + self.level) / self.measured - 1)))


def fitting_factor(times: Linear) -> float | None:
    """Return the power of 1000 by which all measurements would fit that fit nowhere now; None where none does."""
    if times.error(times.best()) <= _FITS:
        return None
    for factor in _FACTORS:
        scaled = evolve(times, measured=times.measured * factor)
        best = scaled.best()
        if scaled.error(best) <= _FITS and np.any((best > times.low) & (best < times.high)):
            return factor
    return None


def told_factor(factor: float | None) -> str:
    """Say what to do about times that a factor would make fit, or that none would."""
    if factor is None:
        return "mend the log, or begin with a machine that is closer (--topology, --set)."
    by = f"{factor:,.0f} times as long" if factor > 1 else f"{1 / factor:,.0f} times as short"
    return f"times {by} would fit: check their unit."


def require_within(unknowns: Sequence[Unknown], times: Linear, floor: Matrix, values_of: _ValuesOf) -> None:
    """Raise UsageError where rows tell of parameters, but only far beyond their limits; `floor` as for elasticities."""

    def loose(terms: Matrix) -> bool:
        return any(loose_unknowns(times.slopes * np.maximum(terms, floor) / times.measured[:, None]))

    here = times.best()
    if not loose(here) or times.error(here) <= MOST_ERROR:
        return
    anywhere = evolve(times, low=times.low * 0 + np.finfo(float).tiny, high=times.high * 1e12).best()
    out = [index for index, x in enumerate(anywhere) if not times.low[index] <= x <= times.high[index]]
    if loose(anywhere) or not out:
        return
    values = values_of(unknowns, anywhere)
    told = " and ".join(
        f"{one.name} at {_short(one, values[index])}, beyond {one.text(one.low)} to {one.text(one.high)}"
        for index, one in enumerate(unknowns)
        if index in out
    )
    hint = told_factor(fitting_factor(times))
    raise UsageError(f"parameters must lie within their limits, but these rows need {told}; {hint}")


def require_rising(rows: Sequence[LogRow], steep: Matrix) -> None:
    """Raise UsageError where most times fall although every parameter has more to do with the row.

    `steep[i, j]` is d time i / d term j, of closed forms. Of two rows the one that is steeper in a term, and in none
    less, takes longer, whatever the terms are.
    """
    ns = np.array([row.ns for row in rows])
    more = np.all(steep[:, None] >= steep[None] * (1 - _ALIKE), axis=2)
    more &= np.any(steep[:, None] > steep[None] * (1 + _MORE), axis=2)
    falls = more & (ns[:, None] < ns[None] * (1 - _FALLS))
    if 2 * np.count_nonzero(falls) <= np.count_nonzero(more):
        return
    large, small = np.unravel_index(np.argmin(np.where(falls, ns[:, None] / ns[None], np.inf)), falls.shape)
    first, second = rows[int(small)], rows[int(large)]
    raise UsageError(
        f"times must rise with size, and most of these fall: {first.label} took {format_time(first.ns)} "
        f"({first.place}), and {second.label} {format_time(second.ns)} ({second.place}); correct the log: "
        "columns may be swapped, or be rates."
    )


def refusal_of(mean_error: float, limits: Sequence[tuple[str, str | None]], factor: float | None) -> str | None:
    """Say why a fit explains nothing, by the limits that its parameters lie on; None where it explains its rows."""
    stuck = all(limit is not None for _, limit in limits)
    most, where = (MOST_ON_LIMITS, " where every parameter lies on a limit") if stuck else (MOST_ERROR, "")
    if mean_error <= most:
        return None
    on = ", ".join(f"{name} on its {limit} limit" for name, limit in limits if limit is not None)
    return (
        f"a fit must be within {most:.0%} of its rows on average{where}, not {mean_error:,.0%} off"
        f"{f' ({on})' if on else ''}; {told_factor(factor)}"
    )


def _short(unknown: Unknown, value: float) -> str:
    number, _, unit = unknown.text(value).partition(" ")
    return f"{float(number):.4g} {unit}".rstrip()
