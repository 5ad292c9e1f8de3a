"""SIGTERM as the command line handles it."""

from __future__ import annotations

import signal

import pytest

from kernbench_core.process.interrupt import Terminated, Termination


def test_sigterm_twice_at_a_time_is_one() -> None:
    """As `timeout` sends it to a process, and to its group."""
    usual = signal.signal(signal.SIGTERM, Termination())
    try:
        with pytest.raises(Terminated):
            signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, usual)
