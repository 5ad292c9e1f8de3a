"""Which algorithms are not shown to differ: against all of them compared with each other."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kernbench_ccl.measure.contest import Contest, contest
from kernbench_core.spread import TimeSpread

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
    assert found.sentence == "good against lucky: median 100 ns → 106 ns, beyond the spread of 3 ns"
    even = Contest({**found.spreads, "lucky": TimeSpread.of([99.0, 102.0, 105.0])})
    assert even.equals == ("good", "lucky")
    assert even.sentence == "good against lucky: median 100 ns → 102 ns, within the spread of 4 ns: no difference shown"
    assert Contest({"good": every["good"]}).sentence == "good 100 ns, spread 2 ns, 2.00%"
