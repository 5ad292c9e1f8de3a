"""The page of ten thousand points: small enough to send, and each line is drawn once whenever something changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kernbench_builtin.pages.report import render_sweep
from tests.conftest import loaded_tool


@pytest.mark.browser
def test_a_page_of_ten_thousand_points(browser: Any, tmp_path: Path) -> None:
    """At most 6 MB; what is kept is drawn once, with some of the rest; to choose or to sort draws no line but one."""
    file = tmp_path / "sweep.html"
    with loaded_tool("bench_sweep_page") as tool:
        file.write_text(render_sweep(tool.page_of(10_000)), encoding="utf-8")
        found = tool.measure(file, browser)
    assert found.size <= 6_000_000
    assert max(found.strokes.values()) <= 10_000 + 3_000 + 100
    assert found.strokes["sort"] == 0 and found.strokes["point"] <= 100
