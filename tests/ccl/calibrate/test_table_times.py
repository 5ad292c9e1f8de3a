"""Times are continued from where they grow evenly: on rings by closed form, never from where links are idle."""

from __future__ import annotations

from collections.abc import Collection

from hypothesis import given
from hypothesis import strategies as st

from kernbench_ccl.calibrate.table_times import EndTimes, TableRow, TableTimes
from kernbench_ccl.measure.table import Busy, Measured

MOST, BEGIN = 1 << 34, 1 << 20


def found(ns: Collection[float], sizes: Collection[int], load: float) -> dict[TableRow, Measured]:
    return {(n, False): Measured(t, 0, 0, None, Busy("link", "wire", min(1.0, load * n / t)))
            for n, t in zip(sizes, ns, strict=True)}  # fmt: skip


@given(st.integers(2, 64), st.floats(100, 10_000), st.floats(1, 900), st.booleans(), st.integers(1 << 21, 1 << 38))
def test_a_ring_is_continued_within_three_per_cent(
    ranks: int, latency: float, bandwidth: float, pipelined: bool, size: int
) -> None:
    """Pipelined its links are idle below N a b bytes, and time grows by 2 (N - 1) times less than it does above."""
    steps = 2 * (ranks - 1)

    def time_ns(nbytes: int) -> float:
        wire = nbytes / (ranks * bandwidth)
        return max(steps * latency + wire, latency + steps * wire) if pipelined else steps * (latency + wire)

    asked: list[int] = []

    def run(sizes: Collection[int], in_place: bool) -> dict[TableRow, Measured]:
        assert not in_place
        asked.extend(sizes)
        return found([time_ns(n) for n in sizes], sizes, steps / (ranks * bandwidth))

    times = TableTimes.simulated(run, {(size, False)}, BEGIN, MOST)
    row = times.of(size, False)
    assert times.settled or times.most * 2 > MOST
    assert len(asked) == len(set(asked)) and max(asked) <= min(MOST, 2 * size)
    if times.settled:
        assert abs(row.ns / time_ns(size) - 1) <= 0.031
    if pipelined and row.extended and times.settled and ranks > 2:
        assert times.most >= ranks * latency * bandwidth


@given(st.integers(2, 64), st.floats(1, 900), st.floats(1.1, 20))
def test_what_something_else_binds_is_continued_in_proportion(ranks: int, bandwidth: float, slower: float) -> None:
    """As where slots of a queue have no room for what fills the links: these are never busy."""
    wire = 2 * (ranks - 1) / (ranks * bandwidth)

    def run(sizes: Collection[int], in_place: bool) -> dict[TableRow, Measured]:
        return found([slower * wire * n for n in sizes], sizes, wire)

    times = TableTimes.simulated(run, {(1 << 30, False)}, BEGIN, MOST)
    assert times.settled and times.most == BEGIN
    assert abs(times.of(1 << 30, False).ns / (slower * wire * (1 << 30)) - 1) <= 0.031


def test_times_that_do_not_grow_evenly_yet_say_so() -> None:
    """A latency of a second: as far as may be simulated, nothing grows."""

    def run(sizes: Collection[int], in_place: bool) -> dict[TableRow, Measured]:
        return found([1e9 + n / 1e3 for n in sizes], sizes, 0.1)

    times = TableTimes.simulated(run, {(1 << 22, False), (1 << 30, False)}, BEGIN, 1 << 24)
    assert not times.settled and times.most == 1 << 24 and sorted(times.known) == [
        (1 << at, False) for at in (19, 20, 21, 22, 23, 24)
    ]  # fmt: skip
    assert not times.of(1 << 30, False).settled and times.of(1 << 22, False).settled


@given(st.integers(2, 64), st.floats(100, 10_000), st.floats(1, 900))
def test_lines_between_ends_of_each_algorithm_are_a_ring_that_waits(
    ranks: int, latency: float, bandwidth: float
) -> None:
    """A ring whose ranks wait grows evenly, so that lines are its times; a second algorithm has its own line."""
    wire = 2 * (ranks - 1) / (ranks * bandwidth)
    asked: list[int] = []

    def time_ns(nbytes: int) -> float:
        return (2 if nbytes <= 1 << 14 else 2 * (ranks - 1)) * latency + wire * nbytes

    def run(sizes: Collection[int], in_place: bool) -> dict[TableRow, Measured]:
        asked.extend(sizes)
        both = ((False, 1.0), (True, 0.9)) if in_place else ((False, 1.0),)
        return {(n, place): one for place, part in both
                for (n, _), one in found([part * time_ns(n) for n in sizes], sizes, part * wire).items()}  # fmt: skip

    sizes = [1 << at for at in range(10, 27)]
    ends = EndTimes.simulated(run, {(n, False) for n in sizes}, 1 << 22, lambda n: "few" if n <= 1 << 14 else "ring")
    assert asked == [1 << 10, 1 << 14, 1 << 15, 1 << 22]
    assert all(abs(ends.of(n, False).ns / time_ns(n) - 1) < 1e-9 for n in sizes)
    assert [ends.of(n, False).extended for n in (1 << 10, 1 << 12, 1 << 22, 1 << 26)] == [False, True, False, True]


def test_times_in_place_lie_beside_their_lines_as_those_out_of_place_do() -> None:
    def time_ns(nbytes: int) -> float:
        return 1000.0 + nbytes + (500.0 if nbytes == 1 << 12 else 0.0)

    def run(sizes: Collection[int], in_place: bool) -> dict[TableRow, Measured]:
        return {(n, place): one for place, part in ((False, 1.0), (True, 0.5))
                for (n, _), one in found([part * time_ns(n) for n in sizes], sizes, part).items()}  # fmt: skip

    sizes = [1 << at for at in range(10, 15)]
    exact = TableTimes.simulated(run, {(n, False) for n in sizes if n != 1 << 11}, BEGIN, MOST)
    ends = EndTimes.simulated(run, {(n, True) for n in sizes}, BEGIN, lambda _: "ring", exact)
    assert [ends.of(n, True).ns for n in sizes] == [0.5 * time_ns(n) for n in sizes]
    assert [ends.of(n, True).extended for n in sizes] == [False, False, True, True, False]
