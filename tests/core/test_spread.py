"""Spreads: what they sum up, when two are told apart, and who is faster, against all compared with each other."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_core.spread import Contest, TimeSpread, contest


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


@pytest.mark.parametrize("gain", [0.0, 2.0])
def test_a_contest_calls_no_candidate_better_by_chance_and_misses_no_gain(gain: float) -> None:
    """Of 8 candidates that are the same at most 1 in 100 contests has one shown to be worse; the single times err, too.

    One that is better by twice the usual spread is chosen in every contest, and shown to be better than all others.
    """
    rng = random.Random(7)
    usual = float(np.median([TimeSpread.of(rng.gauss(1000.0, 1.0) for _ in range(8)).width_ns for _ in range(500)]))
    shown = 0
    for _ in range(400):
        means = {str(number): 1000.0 - gain * usual * (number == 3) for number in range(8)}
        times = {name: rng.gauss(mean, 1.0) for name, mean in means.items()}
        found = contest(times, lambda name, means=means: TimeSpread.of(rng.gauss(means[name], 1.0) for _ in range(8)))
        shown += len(found.equals) < len(found.spreads)
        assert not gain or found.equals == ("3",)
    assert shown == 400 if gain else shown <= 4


SPREADS = st.lists(st.lists(st.integers(100, 140), min_size=3, max_size=3), min_size=1, max_size=6)


@given(SPREADS)
def test_the_leaders_run_until_one_is_beyond_the_best(samples: list[list[int]]) -> None:
    """By the medians as single times: who is equal among them is who is equal among all, up to the first beyond it."""
    every = {f"a{number}": TimeSpread.of(map(float, sample)) for number, sample in enumerate(samples)}
    times = {name: spread.median_ns for name, spread in every.items()}
    ran: list[str] = []

    def spread_of(name: str) -> TimeSpread:
        ran.append(name)
        return every[name]

    found = contest(times, spread_of)
    order = sorted(every, key=lambda name: (times[name], name))
    beyond = [at for at, name in enumerate(order) if every[name].differs_from(every[order[0]])]
    assert ran == order[: beyond[0] + 1 if beyond else len(order)]
    assert list(found.spreads) == ran and found.equals == tuple(order[: beyond[0] if beyond else len(order)])


def test_the_best_is_the_least_median_whatever_the_single_times_say() -> None:
    """A single time of luck is told; the sentence names who is not shown to differ, else the next one."""
    every = {"lucky": TimeSpread.of([104.0, 106.0, 108.0]), "good": TimeSpread.of([99.0, 100.0, 101.0])}
    found = contest({"lucky": 98.0, "good": 99.0}, every.__getitem__)
    assert list(found.spreads) == ["good", "lucky"] and found.equals == ("good",)
    assert found.against == "against lucky: median 100 ns → 106 ns, beyond the spread of 3 ns"
    even = Contest({**found.spreads, "lucky": TimeSpread.of([99.0, 102.0, 105.0])})
    assert even.equals == ("good", "lucky")
    assert even.against == "against lucky: median 100 ns → 102 ns, within the spread of 4 ns: no difference shown"
    assert Contest({"good": every["good"]}).against == "100 ns, spread 2 ns, 2.00%"
