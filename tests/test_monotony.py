"""tools/monotony.py: what it says of one run and of the median."""

from __future__ import annotations

from typing import Any

import pytest

from kernbench_core.spread import TimeSpread
from tools import monotony
from tools.monotony import main


def test_a_page_walk_twice_as_fast_is_not_slower(capsys: Any) -> None:
    assert main(["page walks", "--size", "64", "--topology", "tiny", "--runs", "3"]) == 0
    head, line, last = capsys.readouterr().out.splitlines()
    assert head.startswith("gemm of 64^3 on tiny: kernel ")
    assert line.startswith("page walks         one run ") and line.endswith(", faster")
    assert last == "0 of 1 better machines are slower beyond the spread"


@pytest.mark.parametrize(
    ("median", "code", "told"), [(104.0, 0, "within the spread"), (105.5, 1, "SLOWER"), (94.0, 0, "faster")]
)
def test_the_median_is_what_counts(median: float, code: int, told: str, monkeypatch: Any, capsys: Any) -> None:
    """The single run is slower in all of these."""

    def times(size: int, topology: str, runs: int, sets: Any) -> tuple[float, TimeSpread]:
        return (110.0, TimeSpread(median, 90.0, 95.0, 8)) if sets else (100.0, TimeSpread(100.0, 97.0, 102.0, 8))

    monkeypatch.setattr(monotony, "kernel_times", times)
    assert main(["dispatch"]) == code
    assert f"{'dispatch':18} one run +10.00%, median {median / 100 - 1:+7.2%}, {told}" in capsys.readouterr().out
