"""What is tried where no table holds, and what is made of the times: here of made-up times, without simulations."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_ccl.plan.trial_choice import (
    FAR,
    LEAST_STEADY,
    MOST_STEADY,
    TrialTime,
    choose_by_form,
    choose_by_trial,
    prolonged,
    steady_bytes,
    tried_sizes,
)

STEADY = 4 << 20


Time = Callable[[int], float | None]


class MadeUp:
    """Algorithms by (time of a size, closed form of a size, busy part of the time); it notes what was asked."""

    steady = STEADY

    def __init__(self, busy: float = 0.0, **of: tuple[Time, Time]) -> None:
        self.of, self.busy, self.asked = of, busy, list[tuple[str, int]]()

    def form(self, name: str, nbytes: int) -> float | None:
        """Return the second one's."""
        return self.of[name][1](nbytes)

    def time(self, name: str, nbytes: int) -> TrialTime | None:
        """Return the first one's."""
        self.asked.append((name, nbytes))
        ns = self.of[name][0](nbytes)
        return None if ns is None else TrialTime(ns, self.busy * ns)


def line(latency: float, each: float) -> Callable[[int], float]:
    """Return a time of `latency` and `each` byte."""
    return lambda nbytes: latency + each * nbytes


def nothing(_: int) -> None:
    """Return no form."""


def test_the_fastest_is_taken_and_those_with_short_forms_are_tried_first() -> None:
    """What has no form comes first of all; the forms do not decide."""
    times = MadeUp(slow=(line(300, 0), line(50, 0)), quick=(line(200, 0), line(70, 0)), odd=(line(250, 0), nothing))
    found = choose_by_trial(["quick", "slow", "odd"], 1024, times)
    assert found.name == "quick"
    assert found.tried == (("odd", 1024), ("slow", 1024), ("quick", 1024)) == tuple(times.asked)
    assert found.estimates == {"odd": 250, "slow": 300, "quick": 200}


def test_a_form_that_is_far_longer_than_the_best_time_is_not_tried() -> None:
    """Three times as long is tried, a little more is not: even where it would have been the fastest."""
    best = 100.0
    times = MadeUp(
        a=(line(best, 0), line(1, 0)), b=(line(150, 0), line(FAR * best, 0)), c=(line(1, 0), line(FAR * best + 0.1, 0))
    )
    found = choose_by_trial("abc", 8, times)
    assert (found.name, [name for name, _ in found.tried]) == ("a", ["a", "b"])


def test_of_equal_times_the_first_name_is_taken() -> None:
    """In whatever order they are given."""
    same = (line(5, 1), nothing)
    for names in ("abc", "cba"):
        assert choose_by_trial(names, 64, MadeUp(a=same, b=same, c=same)).name == "a"


def test_a_large_size_is_judged_by_the_line_through_two() -> None:
    """`wide` is slower at both, and the best at 64 MiB."""
    times = MadeUp(few=(line(0, 1), nothing), wide=(line(2e6, 0.5), nothing))
    found = choose_by_trial(["few", "wide"], 64 << 20, times)
    assert found.name == "wide"
    assert found.tried == (("few", STEADY // 2), ("wide", STEADY // 2), ("few", STEADY), ("wide", STEADY))
    assert found.estimates == {"few": 64 << 20, "wide": 2e6 + 0.5 * (64 << 20)}


@pytest.mark.parametrize(("slower", "tried"), [(1.99, True), (2.01, False)])
def test_what_is_slower_at_least_than_another_at_most_is_not_tried_twice(slower: float, tried: bool) -> None:
    """Half of each time something is busy: of 16 times the bytes `slow` takes 8 times as long at least."""
    times = MadeUp(0.5, quick=(line(0, 1), nothing), slow=(line(0, slower), nothing))
    assert (("slow", STEADY) in choose_by_trial(["quick", "slow"], 8 * STEADY, times).tried) is tried


def test_a_line_is_as_steep_as_what_is_busy_the_longest() -> None:
    """Where latency hides how long a link takes: a level line whose link is busy for all of the larger size."""
    level, steep = TrialTime(1000.0, 500.0), TrialTime(1000.0, 1000.0)
    assert prolonged((512, level), (1024, steep), 4096) == 1000 + 1000 / 1024 * 3072
    assert prolonged((512, TrialTime(100.0, 0.0)), (1024, steep), 4096) == 1000 + 900 / 512 * 3072


def test_what_cannot_be_timed_is_not_taken() -> None:
    """At one of two sizes either; where nothing can be timed closed forms are left, and then nothing."""
    times = MadeUp(
        a=(lambda n: None if n > STEADY // 2 else 1.0, line(9, 0)), b=(line(1.2, 0), line(8, 0)), c=(nothing, nothing)
    )
    assert choose_by_trial("abc", 1 << 30, times).name == "b"
    none = MadeUp(a=(nothing, line(9, 0)), b=(nothing, line(8, 0)), c=(nothing, nothing))
    found = choose_by_trial("abc", 8, none)
    assert (found.name, found.estimates, len(found.tried)) == (None, {}, 3)
    assert choose_by_form("abc", 8, none) == "b"
    assert choose_by_form("c", 8, none) is None


@given(st.integers(1, 1 << 36))
def test_a_tried_size_is_a_sixteenth_off_at_most_and_there_are_few(nbytes: int) -> None:
    """Eight of each power of two, so that a program of many sizes tries few; powers of two are tried as they are."""
    sizes = tried_sizes(nbytes, STEADY)
    if nbytes > STEADY:
        assert sizes == (STEADY // 2, STEADY)
        return
    (size,) = sizes
    assert abs(Fraction(size - nbytes, nbytes)) <= Fraction(1, 16)
    assert bin(size).rstrip("0").count("1") <= 4 and len(bin(size)[2:].rstrip("0")) <= 4
    assert tried_sizes(size, STEADY) == sizes
    assert nbytes & (nbytes - 1) or size == nbytes


@given(st.integers(2, 64), st.floats(1, 1000), st.floats(1, 5000))
def test_a_steady_size_has_many_bytes_in_flight(world: int, bandwidth: float, latency: float) -> None:
    """A power of two in its bounds: no smaller one would have as many times what fits on the links of all ranks."""
    found = steady_bytes(world, bandwidth, latency)
    assert math.log2(found).is_integer() and LEAST_STEADY <= found <= MOST_STEADY
    flight = world * bandwidth * latency
    assert found == MOST_STEADY or found >= 6 * flight
    assert found == LEAST_STEADY or found / 2 < 6 * flight
