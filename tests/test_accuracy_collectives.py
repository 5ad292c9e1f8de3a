"""tools/accuracy/collectives.py holds collectives against sums over steps and links."""

from __future__ import annotations

import pytest

from tests.conftest import loaded_tool


def test_a_case_is_within_one_per_cent(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ring of three: 4 steps of 500 ns and a third of 6 KiB; the error is recomputed."""
    with loaded_tool("accuracy/collectives") as tool:
        monkeypatch.setattr(tool, "CASES", (("ring", "all_reduce", "ring", 3, 6144),))
        [(case, ours, right, unit, error)] = tool.compare()
    assert (case, unit) == ("ring all_reduce, ring of 3, 6 KiB", "us")
    assert right == pytest.approx(4 * (500 + 20.48) / 1000)
    assert error == pytest.approx(ours / right - 1) and abs(error) < 0.01
