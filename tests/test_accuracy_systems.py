"""tools/accuracy/systems.py holds presets of public systems against what was published of them."""

from __future__ import annotations

import pytest

from tests.conftest import loaded_tool


def test_the_rows_of_a_system_are_those_that_were_published(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the memory, in us; the error is recomputed."""
    with loaded_tool("accuracy/systems") as tool:
        monkeypatch.setattr(tool, "SYSTEMS", tuple(one for one in tool.SYSTEMS if one.name == "u280_hbm"))
        rows = tool.compare()
    assert [row[2] for row in rows] == [pytest.approx(ns / 1e3) for ns in (106.7, 122.2, 137.8, 64 * 2**20 / 425)]
    for case, ours, right, unit, error in rows:
        assert case.startswith("u280_hbm: ") and unit == "us"
        assert error == pytest.approx(ours / right - 1) and abs(error) < 0.05


def test_every_published_row_is_within_what_is_said_of_it() -> None:
    """28, 5 and 4 of them; the worst is one of those that the page tells of."""
    with loaded_tool("accuracy/systems") as tool:
        rows = tool.compare()
    assert [sum(row[0].startswith(name) for row in rows) for name in ("a100", "tpu7x", "u280")] == [28, 5, 4]
    assert [row for row in rows if abs(row[4]) > tool.ABOUT.within] == []
    assert min(rows, key=lambda row: row[4])[0] in {f"a100_node: all_reduce of 8 ranks, {n} MiB" for n in (2, 4, 8)}
