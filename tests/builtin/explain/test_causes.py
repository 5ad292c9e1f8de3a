"""Causes of events: recording changes nothing, and a chain says why each event happened."""

from __future__ import annotations

import random
from typing import Any

import pytest

from kernbench_builtin.explain.causes import Cause, RecordingEnvironment
from kernbench_builtin.explain.explanation import Recorder
from kernbench_core.engine.watchdog import Limits
from kernbench_core.environment import Environment
from kernbench_core.errors import ComponentError, LimitError
from tests.core.toy_machine import toy_engine


def busy(env: Environment, seed: int) -> list[tuple[float, int, float]]:
    """Run processes that wait for random times and for each other; return who went on when."""
    rng = random.Random(seed)
    seen: list[tuple[float, int, float]] = []

    def worker(number: int) -> Any:
        for _ in range(20):
            delay = rng.choice([0.0, 0.25, 1.0, 1.0, 3.5])
            yield env.timeout(delay)
            seen.append((env.now, number, delay))
            if rng.random() < 0.3:
                event = env.event()
                event.succeed()
                yield event

    for number in range(5):
        env.process(worker(number))
    while env.advance(3):
        pass
    return seen


@pytest.mark.parametrize("seed", range(5))
def test_recording_keeps_the_order_of_events(seed: int) -> None:
    """The same events happen in the same order at the same times, ties included."""
    plain, recording = Environment(), RecordingEnvironment()
    assert busy(plain, seed) == busy(recording, seed)
    assert plain.events == recording.events


def test_the_time_limit_stops_at_the_same_event() -> None:
    """`advance` processes nothing later than it may, and tells that something is left; `peek` says when."""
    env = RecordingEnvironment()
    env.timeout(5.0)
    env.timeout(9.0)
    assert env.peek() == 5.0
    assert env.advance(10, until=7.0)
    assert (env.now, env.peek(), env.events) == (5.0, 9.0, 1)
    assert not env.advance(10)
    assert env.peek() == float("inf")


def test_what_caused_an_event_is_what_happened_when_it_was_scheduled() -> None:
    """A process's timeouts form a chain, each from the one before."""
    env = RecordingEnvironment()
    env.cause_of = lambda event, time, parent: Cause(parent, time, "timer", "", "", None)
    chain: list[float] = []

    def process() -> Any:
        for delay in (1.0, 2.0, 4.0):
            yield env.timeout(delay)
        cause: Cause | None = env.current
        while cause is not None:
            chain.append(cause.time)
            cause = cause.parent

    env.process(process())
    env.advance(100)
    assert chain == [7.0, 3.0, 1.0, 0.0, 0.0]


def test_halting_ends_the_run_whatever_is_scheduled() -> None:
    """Nothing is left after `halt`."""
    env = RecordingEnvironment()
    env.timeout(1.0).callbacks.append(env.halt)
    env.timeout(2.0)
    assert not env.advance(10)
    assert env.now == 1.0


def test_sampling_happens_before_the_first_event_that_is_due() -> None:
    """The sampler is called with the time that the run reaches, and says when it wants to be called next."""
    env = RecordingEnvironment()
    times: list[float] = []

    def sample(time: float) -> float:
        times.append(time)
        return time + 3.0

    env.sample_with(sample, 2.0)
    for delay in (1.0, 2.5, 4.0, 6.0, 6.0):
        env.timeout(delay)
    env.advance(10)
    assert times == [2.5, 6.0]


def test_explained_engine_gives_the_same_times() -> None:
    """Toys of the engine's tests end when they end without explanation; the host's requests have ends."""
    recorder = Recorder()
    plain, explained = toy_engine(pes=2), toy_engine(pes=2, observers=[recorder])
    for engine in (plain, explained):
        engine.run(lambda rt: rt.tensor((64, 64), "f32"))
    assert plain.env.now == explained.env.now
    assert plain.env.events == explained.env.events
    found = recorder.explanation(explained.shared.requests, lambda _: None)
    assert sum(went.ns for went in found.went) == plain.env.now


def test_limits_hold_when_explained() -> None:
    """A run that is stopped is stopped at the same number of events."""
    engine = toy_engine(pes=1, observers=[Recorder()], limits=Limits(max_events=5))
    with pytest.raises(LimitError, match="limit of 5 events"):
        engine.run(lambda rt: rt.tensor((64, 64), "f32"))


def test_sending_into_the_past_is_refused_when_explained() -> None:
    """The environment's own check holds."""
    env = RecordingEnvironment()

    def process() -> Any:
        yield env.timeout(5.0)
        env.clock.push(1.0, 0, 0, env.event())

    env.process(process())
    with pytest.raises(ComponentError, match="into the past"):
        env.advance(10)
