"""Ctrl-C and the signal to end come out between events, past every except, and leave other handlers alone."""

from __future__ import annotations

import contextlib
import itertools
import signal
import time
from collections.abc import Callable

import pytest

from kernbench_core.engine.watchdog import Limits, Watchdog
from kernbench_core.environment import Environment, ProcessGenerator
from kernbench_core.errors import LimitError
from kernbench_core.process.interrupt import Terminated, Termination, WallTime, WallTimeExceeded


def test_interrupt_passes_every_except_exception() -> None:
    """A program that swallows exceptions does not swallow the interrupt."""
    env = Environment()

    def stubborn(env: Environment) -> ProcessGenerator:
        yield env.timeout(1.0)
        while True:
            try:
                time.sleep(0.001)
            except Exception:
                continue

    env.process(stubborn(env))
    with pytest.raises(LimitError) as caught:
        Watchdog(env, Limits(timeout_s=0.1), None).run()
    assert f" in {__file__}:" in str(caught.value)
    assert not issubclass(WallTimeExceeded, Exception)


def sent_sigint(send: Callable[[], None]) -> Environment:
    """Return an environment whose only process calls `send` after 100 ns, and goes on for ever."""
    env = Environment()

    def going_on(env: Environment) -> ProcessGenerator:
        for number in itertools.count():
            yield env.timeout(1.0)
            if number == 100:
                send()

    env.process(going_on(env))
    return env


def test_ctrl_c_that_is_swallowed_comes_out_between_events() -> None:
    """A program that catches everything is stopped when it next returns to the simulator."""

    def swallow() -> None:
        with contextlib.suppress(BaseException):
            signal.raise_signal(signal.SIGINT)

    env = sent_sigint(swallow)
    with pytest.raises(KeyboardInterrupt):
        Watchdog(env, Limits(timeout_s=20.0), None).run()
    assert env.now < 100_000.0


def test_other_handlers_of_the_signal_are_left_alone() -> None:
    """A program that handles SIGINT itself keeps its handler."""
    seen: list[int] = []
    previous = signal.signal(signal.SIGINT, lambda number, _: seen.append(number))
    try:
        env = sent_sigint(lambda: signal.raise_signal(signal.SIGINT))
        env.timeout(300.0).callbacks.append(env.halt)
        Watchdog(env, Limits(), None).run()
    finally:
        signal.signal(signal.SIGINT, previous)
    assert seen == [signal.SIGINT]


def test_no_part_of_a_run_swallows_ctrl_c() -> None:
    """It comes out at the end of the part, with what that did."""

    def swallow() -> None:
        with contextlib.suppress(BaseException):
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt) as caught, WallTime(None).spent_on("opening the bench"):
        swallow()
    assert caught.value.__notes__ == ["while opening the bench"]


def test_sigterm_comes_out_between_events_as_it_is() -> None:
    """Where it is handled as Ctrl-C is, also when the program swallows it; once, though it comes twice at a time."""
    termination = Termination()

    def swallow() -> None:
        with contextlib.suppress(BaseException):
            signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)

    before = signal.signal(signal.SIGTERM, termination)
    try:
        with pytest.raises(Terminated):
            Watchdog(sent_sigint(swallow), Limits(), None).run()
        assert termination.came
        assert signal.getsignal(signal.SIGTERM) is termination
    finally:
        signal.signal(signal.SIGTERM, before)
