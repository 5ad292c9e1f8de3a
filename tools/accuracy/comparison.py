"""What a comparison of kernbench with something that shares no code with it consists of."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import NamedTuple, Protocol, cast

AREAS = ("gemm", "collectives", "network", "hbm", "systems")
"""The comparisons, each a module of this folder, in the order of the page."""


class Row(NamedTuple):
    """One case: what kernbench says, what the reference says, their unit, and the relative error."""

    case: str
    ours: float
    reference: float
    unit: str
    error: float


class About(NamedTuple):
    """What a page says of a comparison, in sentences; `within` is the largest relative error that its rows may have."""

    title: str
    reference: str
    equal: str
    differs: str
    direction: str
    cost: str
    within: float


class Area(Protocol):
    """A module of a comparison."""

    ABOUT: About

    def compare(self) -> list[tuple[str, float, float, str, float]]:
        """Run all cases of it."""


def areas(names: tuple[str, ...] = AREAS) -> Iterator[tuple[str, Area]]:
    """Open the comparisons of these names."""
    for name in names:
        yield name, cast(Area, importlib.import_module(f"tools.accuracy.{name}"))


def rows_of(area: Area) -> list[Row]:
    """Run a comparison; its errors are computed anew from its figures."""
    return [Row(case, ours, right, unit, ours / right - 1.0) for case, ours, right, unit, _ in area.compare()]
