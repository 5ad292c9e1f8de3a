"""tools/bench_ccl.py runs, and writes its lines into the page without losing others."""

from __future__ import annotations

import json

import pytest

from tests.conftest import loaded_tool
from tests.tool_runs import run_tool


def test_small_jobs_are_right(capsys: pytest.CaptureFixture[str]) -> None:
    """Each, in a process of its own, tells events, times and memory, and has checked its data."""
    assert run_tool("bench_ccl", "--quick", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["ok"] is True
    assert [result["job"] for result in found["results"]] == [
        "4 KiB over 2 SIPs", "4 KiB over 4 PEs", "table of 1 KiB to 4 KiB, 2 SIPs",
    ]  # fmt: skip
    for result in found["results"]:
        assert (result["wrong"], result["faults"], result["checked"]) == (0, [], True)
        # a process that a large one starts begins with that one's peak, as the whole suite in one process is
        assert result["events"] > 500 and 0 < result["cpu_s"] < 60 and result["peak_mib"] > 20


def test_lines_replace_those_of_their_jobs_only() -> None:
    """Rows stay in the order of the jobs; text around the marks stays."""
    with loaded_tool("bench_ccl") as tool:
        one, other = (f"| {tool.JOBS[name].label} | old |\n" for name in ("sips-1M", "pes-1M"))
        page = tool.updated(f"before\n{tool.BEGIN}{tool.END}after\n", [other, one])
        assert page.startswith("before\n") and page.endswith("after\n") and page.index(one) < page.index(other)
        again = tool.updated(page, [one.replace("old", "new")])
    assert again == page.replace(one, one.replace("old", "new"))
