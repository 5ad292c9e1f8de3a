"""tools/shake_gates.py: what it counts, on one small case; the whole takes minutes."""

from __future__ import annotations

from typing import Any

import pytest

from kernbench_core.spread import TimeSpread
from tools import shake_gates
from tools.shake_gates import Case, main


def test_a_pair_and_a_gain_of_a_small_case(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """The gain is twice the spread of the case, as runs that are not shaken tell."""
    monkeypatch.setattr(shake_gates, "CASES", (("vector-add", "tiny", {"n": 64}),))
    assert main(["--pairs", "1", "--gains", "1"]) == 0
    told = capsys.readouterr()
    assert told.out == (
        "0 of 1 pairs that change nothing are called different\n1 of 1 gains of twice the spread are called\n"
    )
    assert "vector-add on tiny n=64: usual spread 0.0" in told.err and "gains of 2.00 to 2.00 spreads" in told.err


@pytest.mark.parametrize(("jump", "code"), [(1.0, 0), (30.0, 1)])
def test_pairs_that_are_called_break_the_gate(jump: float, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shake_gates, "CASES", (("b", "t", {}),))

    def shaken(self: Case, latency_ns: float = 0.0) -> TimeSpread:
        self.seeds += 1
        median = 100.0 + jump * (self.seeds % 2)
        return TimeSpread(median, median - 5, median + 5, 8)

    monkeypatch.setattr(Case, "shaken", shaken)
    assert main(["--pairs", "100", "--gains", "0"]) == code
