"""SIGTERM as the command line handles it, and what comes where nothing can be raised."""

from __future__ import annotations

import json
import signal
import sys

import pytest

from kernbench_core.process.interrupt import Alarm, Terminated, Termination, innermost_user_line


def test_sigterm_twice_at_a_time_is_one() -> None:
    """As `timeout` sends it to a process, and to its group."""
    usual = signal.signal(signal.SIGTERM, Termination())
    try:
        with pytest.raises(Terminated):
            signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, usual)


class Ended:
    """Is interrupted as it ends, or has a fault of its own."""

    def __init__(self, fault: str = "") -> None:
        self.fault = fault

    def __del__(self) -> None:
        if self.fault:
            raise ValueError(self.fault)
        signal.raise_signal(signal.SIGINT)


def test_what_a_finalizer_swallows_is_raised_in_silence(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And its own fault is told as ever, also after that."""
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)
    monkeypatch.setattr(sys, "unraisablehook", sys.__unraisablehook__)
    hooks = (sys.excepthook, sys.unraisablehook)
    try:
        with pytest.raises(KeyboardInterrupt), Alarm(None):
            Ended()
            assert capsys.readouterr().err == ""
            Ended("mine")
            assert "ValueError: mine" in capsys.readouterr().err
    finally:
        signal.signal(signal.SIGINT, usual)
    assert (sys.excepthook, sys.unraisablehook) == hooks


def test_the_line_is_where_the_program_calls_what_pythons_library_does() -> None:
    with pytest.raises(ValueError) as caught:
        json.loads("no JSON")
    assert innermost_user_line(caught.tb) == f"{__file__}:{caught.tb.tb_lineno}"
