"""Spreads: what they sum up, and when two of them are told apart."""

from __future__ import annotations

import random

import numpy as np
import pytest

from kernbench_core.spread import TimeSpread


def test_it_has_the_median_and_the_ends() -> None:
    times = [4.0, 1.0, 3.0, 10.0]
    found = TimeSpread.of(times)
    assert (found.median_ns, found.low_ns, found.high_ns, found.runs) == (np.median(times), 1.0, 10.0, 4)
    assert str(found) == "3.5 ns, spread 9 ns, 257.14%"
    assert str(TimeSpread.of([0.0])) == "0 ns, spread 0 ns"


def test_it_comes_back_from_json_and_from_nothing_else() -> None:
    found = TimeSpread.of([1.0, 2.0])
    assert TimeSpread.of_json(found.to_json()) == found
    assert TimeSpread.of_json(None) is None
    assert TimeSpread.of_json({"median_ns": 1.0}) is None


@pytest.mark.parametrize(("moved", "differs"), [(2.5, False), (3.0, True), (-2.5, False), (-3.0, True)])
def test_the_mean_of_both_spreads_is_what_counts(moved: float, differs: bool) -> None:
    narrow, wide = TimeSpread.of([10.0, 10.5, 11.0]), TimeSpread.of([8.5 + moved, 10.5 + moved, 12.5 + moved])
    assert narrow.differs_from(wide) is differs
    assert wide.differs_from(narrow) is differs


@pytest.mark.parametrize(("shape", "most"), [("gauss", 20), ("uniform", 0), ("two", 400)])
def test_samples_of_eight_of_one_kind_are_not_told_apart(shape: str, most: int) -> None:
    """Of 2,000 pairs at most 1 of 100 is called different; of as many twice a spread apart, most are."""
    draw = random.Random(shape)
    one = {"gauss": lambda: draw.gauss(0, 1), "uniform": draw.random, "two": lambda: draw.choice((0, 1))}[shape]
    samples = [TimeSpread.of(one() for _ in range(8)) for _ in range(4000)]
    usual = float(np.median([each.width_ns for each in samples]))
    moved = [TimeSpread(each.median_ns + 2 * usual, each.low_ns + 2 * usual, each.high_ns + 2 * usual, 8)
             for each in samples[1::2]]  # fmt: skip
    assert sum(a.differs_from(b) for a, b in zip(samples[::2], samples[1::2], strict=True)) <= 20
    missed = sum(not a.differs_from(b) for a, b in zip(samples[::2], moved, strict=True))
    assert missed <= most
