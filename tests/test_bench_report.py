"""The page of a run of a million ops: small enough to send, and drawn in few rectangles however much is in sight."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kernbench_core.plugins import Plugins
from tests.conftest import loaded_tool


def test_the_page_of_a_run_grows_with_its_ops_alone(plugins: Plugins, tmp_path: Path) -> None:
    """A hundred thousand take at most 4 MB, use over time of 2,048 tracks included, which does not grow further."""
    with loaded_tool("bench_report") as tool:
        for ops in (1, 100_000):
            tool.write_page(tmp_path / f"{ops}.html", ops, plugins)
    least, size = ((tmp_path / f"{ops}.html").stat().st_size for ops in (1, 100_000))
    assert least <= 2_000_000
    assert size - least <= 4_000_000


@pytest.mark.browser
def test_a_page_of_a_million_ops(browser: Any, plugins: Plugins, tmp_path: Path) -> None:
    """At most 25 MB; a step of a brush draws at most one rectangle for each column of each row in sight."""
    with loaded_tool("bench_report") as tool:
        tool.write_page(tmp_path / "large.html", 1_000_000, plugins)
        found = tool.measure(tmp_path / "large.html", browser)
    assert found.size <= 25_000_000
    assert max(found.drawn) <= 40_000
    assert len(found.steps_ms) == 40
