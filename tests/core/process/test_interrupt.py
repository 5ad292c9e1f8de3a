"""What is held back until a result is printed, and when it is not any more."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from kernbench_core.process.interrupt import Terminated, Termination, await_result, result_is_told, run_is_complete


@pytest.fixture(autouse=True)
def _handlers() -> Iterator[None]:
    """Have SIGTERM and Ctrl-C handled as the command line does, and as before afterwards."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    termination = Termination()
    for number in before:
        signal.signal(number, termination)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_ctrl_c_ends_what_comes_after_the_result_at_once() -> None:
    """Nothing was held back, and nothing is any more."""
    await_result()
    run_is_complete()
    assert result_is_told()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_a_ctrl_c_that_was_held_back_is_told() -> None:
    """What would come after the result does not begin."""
    await_result()
    run_is_complete()
    signal.raise_signal(signal.SIGINT)
    assert not result_is_told()


def test_without_the_command_line_nothing_is_held_back() -> None:
    """A notebook has handlers of its own."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    run_is_complete()
    assert result_is_told()


def test_a_second_one_does_not_wait() -> None:
    """Of either signal, whatever the first was."""
    await_result()
    run_is_complete()
    signal.raise_signal(signal.SIGINT)
    with pytest.raises(Terminated):
        signal.raise_signal(signal.SIGTERM)


def test_sigterm_twice_at_a_time_is_one() -> None:
    """As `timeout` sends it to a process, and to its group."""
    with pytest.raises(Terminated):
        signal.raise_signal(signal.SIGTERM)
    signal.raise_signal(signal.SIGTERM)
