"""tools/accuracy/network.py holds networks against closed forms and a simulator of another make."""

from __future__ import annotations

import pytest

from tests.conftest import loaded_tool


def test_routers_with_credits_are_exact_and_those_without_too_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    with loaded_tool("accuracy/network") as tool:
        for name, value in (("SIZE", 4), ("CYCLES", 150), ("SHARES", (0.6,))):
            monkeypatch.setattr(tool, name, value)
        rows = tool.compare()
    exact = [row for row in rows if "lots" not in row[0] and "latency, forwarding" not in row[0]]
    assert [row for row in exact if abs(row[4]) > 1e-12] == []
    assert len(exact) == 4 + 3 + 2 + 8
    (cheap,) = (row for row in rows if "latency, forwarding" in row[0])
    assert -0.15 < cheap[4] < -0.05, "a small mesh is all short ways"
    assert cheap[4] == pytest.approx(cheap[1] / cheap[2] - 1)
    assert sum("lots" in row[0] for row in rows) == 2
