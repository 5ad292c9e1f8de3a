"""The points of a sweep: all of a grid, or so many drawn at random or as a Latin hypercube, each once."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from attrs import frozen

from kernbench_builtin.sweeps.axes import Axis
from kernbench_builtin.sweeps.plan import SweepPlan, point_key
from kernbench_core.errors import ConfigError

#: A grid of more points is not meant.
_MOST_POINTS = 10**6
#: How often a draw is repeated that gave a point once more.
_TRIES = 20


@frozen
class SweepPoint:
    """One point: its value for each axis, in the order of the axes, and the key of what is run there."""

    values: Mapping[str, Any]
    key: str
    index: int


def point_of(plan: SweepPlan, values: Mapping[str, Any], index: int) -> SweepPoint:
    """Return the point that has these values, whoever chose them."""
    return SweepPoint(values, point_key(plan.run_of(values)), index)


def points_of(plan: SweepPlan) -> Iterator[SweepPoint]:
    """Yield the points of a grid or a sample, each once, before anything is left out of them.

    Raise ConfigError for a grid with a range that does not say its values, and for one that is too large.
    """
    names = [axis.name for axis in plan.axes]
    seen: set[str] = set()
    for values in _combinations(plan):
        point = point_of(plan, dict(zip(names, values, strict=True)), len(seen))
        if point.key not in seen:
            seen.add(point.key)
            yield point


def _combinations(plan: SweepPlan) -> Iterable[tuple[object, ...]]:
    how, _, count = plan.sample.partition(":")
    if how == "grid":
        return itertools.product(*_listed(plan.axes))
    draw = random.Random(plan.seed)
    if how == "lhs":
        return _latin(plan.axes, int(count), draw)
    return _drawn(plan.axes, int(count), draw)


def _listed(axes: Iterable[Axis]) -> list[tuple[object, ...]]:
    """Return the values of each axis of a grid."""
    listed = list(axes)
    problems = [
        f"axis {axis.name} must say its values in a grid, as {_ends(axis)}:lin:5 or :log:5; or give --sample random:N "
        "or lhs:N."
        for axis in listed
        if axis.range is not None
    ]
    count = math.prod(len(axis.values) for axis in listed if axis.range is None)
    if not problems and count > _MOST_POINTS:
        problems.append(
            f"a grid must have at most {_MOST_POINTS:,} points, not {count:,}; give fewer values, or --sample lhs:N."
        )
    if problems:
        raise ConfigError(*problems)
    return [axis.values for axis in listed]


def _ends(axis: Axis) -> str:
    assert axis.range is not None, "asked of ranges only"
    low, high = axis.range.ends()
    return f"{low}..{high}"


def _latin(axes: tuple[Axis, ...], count: int, draw: random.Random) -> Iterator[tuple[object, ...]]:
    """Yield a Latin hypercube: of `count` equal parts of each axis, each has one point; a list is had evenly."""
    columns = []
    for axis in axes:
        parts = [number for _, number in sorted((draw.random(), number) for number in range(count))]
        within = [0.5 if axis.range is None else draw.random() for _ in parts]
        columns.append([axis.at((part + rest) / count) for part, rest in zip(parts, within, strict=True)])
    yield from zip(*columns, strict=True) if columns else [()]


def _drawn(axes: tuple[Axis, ...], count: int, draw: random.Random) -> Iterator[tuple[object, ...]]:
    """Yield `count` points drawn evenly, each once; fewer where the axes hardly have so many."""
    seen: set[str] = set()
    for _ in range(count):
        for _ in range(_TRIES):
            found = tuple(axis.at(draw.random()) for axis in axes)
            if repr(found) not in seen:
                seen.add(repr(found))
                yield found
                break
