"""Limits on an environment of its own, without an engine."""

from __future__ import annotations

import contextlib
import linecache
import re
import signal
import time
from collections.abc import Callable
from itertools import pairwise

import pytest

from kernbench_core.engine.watchdog import Limits, Progress, Watchdog
from kernbench_core.environment import Environment, ProcessGenerator
from kernbench_core.errors import LimitError
from kernbench_core.process.interrupt import WallTime
from kernbench_core.units import EXACT_NS, GRID_NS, format_time


class Clock:
    """A wall clock that stands still but where events make it go on: no load of this machine shows."""

    def __init__(self) -> None:
        self.now = 100.0

    def perf_counter(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Give the watchdog a clock of ours."""
    clock = Clock()
    monkeypatch.setattr("kernbench_core.engine.watchdog.time", clock)
    return clock


def ticking(number: int, clock: Clock | None = None, busy_s: float = 0.0) -> Environment:
    """Return an environment with a process that waits `number` times 1 ns, each of which takes `busy_s` on a clock."""
    env = Environment()

    def tick(env: Environment) -> ProcessGenerator:
        for _ in range(number):
            yield env.timeout(1.0)
            if clock is not None:
                clock.now += busy_s

    env.process(tick(env))
    return env


def test_runs_to_the_end_without_limits() -> None:
    """Without limits every event is processed, and the wall time is kept."""
    env = ticking(1000)
    watchdog = Watchdog(env, Limits(), None)
    watchdog.run()
    assert (env.now, env.events) == (1000.0, 1002)
    assert watchdog.wall_s > 0.0


@pytest.mark.parametrize("most", [1, 63, 64, 65, 501])
def test_events_are_counted_exactly(most: int) -> None:
    """The limit on events is exact for any number, also when the run ends just there."""
    env = ticking(500)
    with pytest.raises(LimitError):
        Watchdog(env, Limits(max_events=most), None).run()
    assert env.events == most
    env = ticking(500)
    Watchdog(env, Limits(max_events=502), None).run()
    assert env.events == 502


@pytest.mark.parametrize(
    ("moves", "told"),
    [(10, ", and the last {} of them took no time: a process goes on at {} again and again; no higher limit would end "
          "it, correct the model."),
     (4_000, "; raise --max-events if it is only long.")],
)  # fmt: skip
def test_events_that_take_no_time_are_told_from_a_long_run(moves: int, told: str) -> None:
    """Where most of them are at one time; how many is never said too high, and by less than a stretch too low."""
    env = Environment()

    def tick(env: Environment) -> ProcessGenerator:
        for _ in range(moves):
            yield env.timeout(1.0)
        while True:
            yield from inner(env)

    def inner(env: Environment) -> ProcessGenerator:
        yield env.timeout(0.0)

    env.process(tick(env))
    with pytest.raises(LimitError) as caught:
        Watchdog(env, Limits(max_events=5_000), None).run()
    still = re.search(r"the last (\d+) of", str(caught.value))
    number = int(still[1]) if still is not None else 0
    assert 5_000 - moves - 128 <= number <= 5_000 - moves or told.startswith(";")
    line = inner.__code__.co_firstlineno + 1
    assert str(caught.value) == (
        f"the run reached its limit of 5000 events at simulated time {format_time(float(moves))}"
        f"{told.format(number, f'{__file__}:{line}')}"
    )


def test_wall_time_that_goes_by_at_one_simulated_time_is_told(clock: Clock) -> None:
    """A higher --timeout would not help either."""
    env = Environment()

    def spin(env: Environment) -> ProcessGenerator:
        while True:
            clock.now += 0.000_2
            yield env.timeout(0.0)

    env.process(spin(env))
    with pytest.raises(LimitError) as caught:
        Watchdog(env, Limits(timeout_s=2.0), None).run()
    told = r"the run reached its limit of 2 s of wall time at simulated time 0 ns, after (\d+) events, and the last "
    told += r"(\d+) of them took no time: a process goes on at (\S+):(\d+) again and again; no higher limit would "
    found = re.fullmatch(f"{told}end it, correct the model\\.", str(caught.value))
    assert found is not None, str(caught.value)
    assert (found[1], found[3], int(found[4])) == (found[2], __file__, spin.__code__.co_firstlineno + 3)


def test_simulated_time_up_to_the_limit_is_allowed() -> None:
    """An event at the limit is processed, a later one is not, and the limit costs no event."""
    env = ticking(500)
    Watchdog(env, Limits(max_sim_ns=500.0), None).run()
    assert (env.now, env.events) == (500.0, 502)
    env = ticking(500)
    with pytest.raises(LimitError) as caught:
        Watchdog(env, Limits(max_sim_ns=499.5), None).run()
    assert env.now == 499.0
    assert str(caught.value) == (
        "the run reached its limit of 499.5 ns of simulated time after 500 events; "
        "raise --max-sim-time if it is only long."
    )


@pytest.mark.parametrize("limit", [None, 1e30])
def test_simulated_time_ends_where_it_is_no_longer_exact(limit: float | None) -> None:
    """At 2^37 ns every time on the grid, and one step less, is a float64 of its own; a step later one would be lost."""
    assert EXACT_NS - GRID_NS < EXACT_NS == EXACT_NS + GRID_NS
    env = Environment()
    env.timeout(EXACT_NS)
    Watchdog(env, Limits(max_sim_ns=limit), None).run()
    assert env.now == EXACT_NS
    env = Environment()
    env.timeout(1.0)
    env.timeout(EXACT_NS + 2 * GRID_NS)
    with pytest.raises(LimitError) as caught:
        Watchdog(env, Limits(max_sim_ns=limit), None).run()
    assert env.now == 1.0
    assert str(caught.value) == (
        "the run reached 137.4 s of simulated time after 1 events, and later times are not exact on the grid of "
        "2^-16 ns; simulate less at once."
    )


def test_time_limit_beyond_the_end_does_not_move_the_clock() -> None:
    """A run that ends before its limit ends at its own time."""
    env = ticking(5)
    Watchdog(env, Limits(max_sim_ns=1e9), None).run()
    assert env.now == 5.0


@pytest.mark.parametrize("busy_s", [0.000_02, 0.000_2, 0.002, 0.007])
def test_progress_comes_at_least_twice_a_second(clock: Clock, busy_s: float) -> None:
    """Slow events are reported in time, fast ones not too often."""
    seen: list[Progress] = []
    Watchdog(ticking(round(8 / busy_s), clock, busy_s), Limits(), seen.append).run()
    gaps = [b.wall_s - a.wall_s for a, b in pairwise(seen)]
    assert max(gaps) < 0.5
    assert len(seen) < 8 / 0.05
    assert seen[-1].wall_s == pytest.approx(8, rel=0.01)


@pytest.mark.parametrize("busy_s", [0.000_2, 0.002, 0.007])
def test_the_limit_on_wall_time_is_met_half_a_second_after_it(clock: Clock, busy_s: float) -> None:
    """A run whose events take no longer than that is stopped between two of them."""
    watchdog = Watchdog(ticking(round(20 / busy_s), clock, busy_s), Limits(timeout_s=3.0), None)
    with pytest.raises(
        LimitError, match=r"^the run reached its limit of 3 s of wall time at simulated time \S+ [nu]s, "
    ):
        watchdog.run()
    assert 3.0 < watchdog.wall_s < 3.5


def test_wall_time_limit_leaves_nothing_behind() -> None:
    """After a run that ended in time, its alarm is gone: the timer long before the limit, and the signal's handler."""
    Watchdog(ticking(10), Limits(timeout_s=600.0), None).run()
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0.0
    assert signal.getsignal(signal.SIGALRM) is signal.SIG_DFL


def test_an_alarm_of_the_program_is_left_alone() -> None:
    """It rings when it was to, and the run comes to its limit between two events."""
    rung: list[int] = []
    usual = signal.signal(signal.SIGALRM, lambda number, _: rung.append(number))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(LimitError, match=r"^the run reached its limit of 0\.2 s of wall time "):
            Watchdog(ticking(10**6, busy_s=0.01), Limits(timeout_s=0.2), None).run()
    finally:
        signal.signal(signal.SIGALRM, usual)
    assert rung == [signal.SIGALRM]


class Endless:
    """Has a `__del__` that never ends."""

    def __del__(self) -> None:
        while True:
            pass


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_finaliser_that_never_ends_is_interrupted_all_the_same() -> None:
    """It swallows what is raised in it, of which Python tells; the run ends."""
    env = Environment()

    def stubborn(env: Environment) -> ProcessGenerator:
        yield env.timeout(1.0)
        Endless()
        yield env.timeout(1.0)

    env.process(stubborn(env))
    with pytest.raises(LimitError) as caught:
        Watchdog(env, Limits(timeout_s=0.1), None).run()
    assert f" in {__file__}:" in str(caught.value)
    assert signal.getsignal(signal.SIGALRM) is signal.SIG_DFL


def spin() -> None:
    """Never return."""
    while True:
        pass


def suppressed() -> None:
    """Catch everything."""
    with contextlib.suppress(BaseException):
        spin()


def converted() -> None:
    """Raise something else instead."""
    try:
        spin()
    except BaseException:
        raise ValueError("mine") from None


SWALLOWED = [suppressed, converted]


@pytest.mark.parametrize("swallow", SWALLOWED)
def test_a_limit_that_is_swallowed_is_reached_all_the_same(
    swallow: Callable[[], None], capsys: pytest.CaptureFixture[str]
) -> None:
    """With the line, though nothing is left to do behind it, and without a word of Python's own."""
    env = Environment()

    def once(env: Environment) -> ProcessGenerator:
        yield env.timeout(1.0)
        swallow()

    env.process(once(env))
    with pytest.raises(LimitError) as caught:
        Watchdog(env, Limits(timeout_s=0.1), None).run()
    found = re.fullmatch(
        r"the run reached its limit of 0\.1 s of wall time at simulated time 1 ns, after \d+ events in "
        rf"{re.escape(__file__)}:(\d+), which never returned to the simulator; raise --timeout if it is only long\.",
        str(caught.value),
    )
    assert found is not None, caught.value
    assert linecache.getline(__file__, int(found[1])).strip() in ("while True:", "pass")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("swallow", SWALLOWED)
def test_no_part_of_a_run_swallows_its_limit(swallow: Callable[[], None], capsys: pytest.CaptureFixture[str]) -> None:
    """As opening the bench, in which no event comes."""
    with pytest.raises(LimitError) as caught, WallTime(0.1).spent_on("opening the bench"):
        swallow()
    told = f"the run reached its limit of 0.1 s of wall time while opening the bench, in {__file__}:"
    assert str(caught.value).startswith(told)
    line = int(str(caught.value).removeprefix(told).partition(";")[0])
    assert linecache.getline(__file__, line).strip() in ("while True:", "pass")
    assert capsys.readouterr().err == ""


def test_a_part_of_a_run_has_the_wall_time_that_is_left() -> None:
    """What was spent before counts; the sentence names the whole limit."""
    wall = WallTime(20.0)
    wall.spent_s = 19.95
    with pytest.raises(LimitError, match=r"^the run reached its limit of 20 s of wall time at simulated time "):
        Watchdog(ticking(10**6, busy_s=0.01), Limits(timeout_s=20.0), None, wall).run()
    assert wall.left_s == 0.0


def test_the_limit_of_a_whole_ends_a_part_without_one() -> None:
    """A simulation of a probe, say; the sentence is that of the whole."""
    env = Environment()

    def body() -> ProcessGenerator:
        time.sleep(1000)
        yield env.timeout(1.0)

    env.process(body())
    with pytest.raises(LimitError) as caught, WallTime(0.02).spent_on("probing"):
        Watchdog(env, Limits(), None).run()
    assert str(caught.value).startswith("the run reached its limit of 0.02 s of wall time while probing, in ")
