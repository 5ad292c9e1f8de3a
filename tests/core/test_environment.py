"""The clock: the time grid, the order of one instant, counting, signals."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernbench_core.component import ComponentBase
from kernbench_core.environment import Environment, Event, ProcessGenerator, Signal
from kernbench_core.errors import ComponentError
from kernbench_core.messages import MsgBase
from kernbench_core.testing import Harness, Probe, Rig, edge
from tests.core.number_classes import NO_NUMBERS, NUMBERS


@settings(deadline=None)
@given(st.floats(0.0, 1e6))
def test_every_delay_is_rounded_up_to_the_grid(delay: float) -> None:
    """A timeout ends at the first multiple of 2^-16 ns that is not earlier."""
    env = Environment()
    env.timeout(delay)
    while env.advance(1):
        pass
    assert env.now == math.ceil(delay * 65536) / 65536
    assert env.now - delay <= 2**-16


@settings(deadline=None)
@given(st.lists(st.floats(0.0, 1e3), min_size=1, max_size=20))
def test_sums_do_not_depend_on_order(delays: list[float]) -> None:
    """Times on the grid add exactly, so any order of the same delays ends at the same time."""
    ends = []
    for order in (delays, sorted(delays), sorted(delays, reverse=True)):
        env = Environment()

        def wait(env: Environment, order: list[float]) -> ProcessGenerator:
            for delay in order:
                yield env.timeout(delay)

        env.process(wait(env, order))
        while env.advance(100):
            pass
        ends.append(env.now)
    assert len(set(ends)) == 1


@pytest.mark.parametrize("delay", [-1.0, math.nan, math.inf], ids=repr)
def test_delay_must_be_a_time(delay: float) -> None:
    """A delay that is negative or not finite is refused."""
    with pytest.raises(ValueError) as caught:
        Environment().timeout(delay)
    assert str(caught.value) == f"a delay must be a finite time in ns, at least 0, not {delay!r}"


def test_events_of_plain_simpy_are_rounded_too() -> None:
    """`schedule` rounds for every event, not only for timeouts."""
    env = Environment()
    event = env.event()
    event._ok, event._value = True, None
    env.schedule(event, delay=0.1)
    env.advance(1)
    assert env.now == math.ceil(0.1 * 65536) / 65536


def test_advance_counts_events_and_stops_after_so_many() -> None:
    """`advance(n)` processes up to n events and says whether any are left."""
    env = Environment()
    for delay in (1.0, 2.0, 3.0):
        env.timeout(delay)
    assert env.advance(2) is True
    assert (env.events, env.now) == (2, 2.0)
    assert env.advance(2) is False
    assert env.events == 3


def test_deliveries_come_first_in_edge_order_then_everything_else() -> None:
    """At one instant: deliveries by edge id and sequence, then what was scheduled, in its order."""
    order: list[str] = []

    class Noting(ComponentBase):
        def overhead(self, msg: MsgBase) -> float:
            order.append(msg.path[0])
            return 0.0

    edges = [edge(source, "n", latency=2.0) for source in ("s2", "s1", "s3")] + [edge("n", "z")]
    machine = Harness({"n": Noting, "s1": Probe, "s2": Probe, "s3": Probe, "z": Probe}, edges)
    at(machine.env, 3.0, lambda _: order.append("timeout"))
    for source in ("s3", "s2", "s1", "s2"):
        machine.send((source, "n", "z"), 1.0)
    machine.send(("n", "z"), 3.0)
    machine.run()
    assert order == ["n", "s1", "s2", "s2", "s3", "timeout"]


def test_inject_delivers_now_or_later_in_the_order_of_calls() -> None:
    """Injected messages come before all wires, first injected first; a past time is now."""
    env = Environment()
    seen: list[tuple[int, float]] = []
    for number, at in enumerate((None, 5.0, 0.1, 5.0)):
        msg = MsgBase(number)
        env.inject(msg, lambda m: seen.append((m.nbytes, env.now)), at)
    while env.advance(1):
        pass
    grid = math.ceil(0.1 * 65536) / 65536
    assert seen == [(0, 0.0), (2, grid), (1, 5.0), (3, 5.0)]
    env.inject(msg, lambda m: seen.append((m.nbytes, env.now)), 1.0)
    env.advance(1)
    assert seen[-1] == (3, 5.0)
    assert msg.head == msg.tail == msg.born == 5.0


def wait_for(signal: Signal, env: Environment, seen: list[object]) -> ProcessGenerator:
    """Wait twice for a signal, noting what it brings and when."""
    for _ in range(2):
        value = yield signal  # type: ignore[misc]
        seen.append((value, env.now))
        signal.rearm()


def at(env: Environment, time: float, call: Callable[[Event], None]) -> None:
    """Call at a time."""
    timeout = env.timeout(time)
    assert timeout.callbacks is not None
    timeout.callbacks.append(call)


def test_signal_resumes_its_waiter_inside_the_event_that_fires_it() -> None:
    """A signal costs no event, brings its value, and waits again when rearmed."""
    env, signal, seen = Environment(), Signal(), list[object]()
    env.process(wait_for(signal, env, seen))
    at(env, 3.0, lambda _: signal.fire("a"))
    at(env, 4.0, lambda _: signal.fire("b"))
    while env.advance(1):
        pass
    assert seen == [("a", 3.0), ("b", 4.0)]
    # the process's start, two timeouts, the process's end
    assert env.events == 4


def test_signal_fired_before_it_is_waited_on_resumes_at_once() -> None:
    """A waiter that comes late gets the value without waiting."""
    env, signal, seen = Environment(), Signal(), list[object]()
    signal.fire(7)
    assert signal.fired
    env.process(wait_for(signal, env, seen))
    env.advance(1)
    assert seen == [(7, 0.0)]


def test_unhandled_exception_comes_out_as_it_was() -> None:
    """What a process raises leaves `advance` as the same object, and the event is counted."""
    env = Environment()
    error = KeyError("x")

    def fail(env: Environment) -> ProcessGenerator:
        yield env.timeout(1.0)
        raise error

    env.process(fail(env))
    with pytest.raises(KeyError) as caught:
        env.advance(100)
    assert caught.value is error
    assert env.events == 3


@pytest.mark.parametrize(
    "call", [lambda env: env.run(), lambda env: env.run(until=env.now + 5), lambda env: env.step()], ids=range(3)
)
def test_a_model_that_runs_the_simulation_is_told_to_wait(call: Callable[[Environment], object]) -> None:
    """SimPy would take events off the queue that no one is told of; the model is named, with its line."""

    class Runs(ComponentBase):
        def overhead(self, msg: MsgBase) -> float:
            call(self.env)
            return 0.0

    with pytest.raises(ComponentError) as caught:
        Rig(Runs).feed(0, 8).run()
    assert str(caught.value).startswith(
        f"under_test: {__name__}.{Runs.__qualname__} raised RuntimeError: `env.run` and `env.step` must not be called, "
        "as kernbench runs the simulation; wait with `yield env.timeout(ns)` in a `run`, or come back with "
        "`env.call_at` at simulated time "
    )


def test_running_an_environment_takes_nothing_off_its_queue() -> None:
    """Neither when nothing is scheduled, which SimPy says nothing of."""
    env, seen = Environment(), list[float]()
    for delay in (None, 3.0):
        if delay is not None:
            at(env, delay, lambda _: seen.append(env.now))
        for call in (env.run, env.step):
            with pytest.raises(RuntimeError, match=re.escape("`env.run` and `env.step` must not be called")):
                call()
    assert env.scheduled == 1
    env.advance(1)
    assert seen == [3.0]


@pytest.mark.parametrize("number", NUMBERS)
def test_call_at_takes_numbers_of_any_class(number: Callable[[float], Any]) -> None:
    """In both forms the time is Python's own float from there on."""
    env, seen = Environment(), list[float]()
    env.call_at(number(7.0), MsgBase(0), lambda _: seen.append(env.now))
    env.advance(1)
    assert seen == [7.0] and type(seen[0]) is float


@pytest.mark.parametrize(("time", "of"), NO_NUMBERS)
def test_call_at_refuses_what_is_no_number(time: Any, of: str) -> None:
    """Text, too, though it may spell one."""
    env = Environment()
    with pytest.raises(TypeError) as caught:
        env.call_at(time, MsgBase(0), lambda _: None)
    assert str(caught.value) == f"must be real number, not {of}"
    assert env.scheduled == 0
