"""tools/bench_ccl.py runs, and writes its lines into the page without losing others."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

TOOL = Path(__file__).parent.parent / "tools" / "bench_ccl.py"


def test_small_jobs_are_right() -> None:
    """Each tells events, times and memory, and has checked its data."""
    command = [sys.executable, str(TOOL), "--quick", "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found = json.loads(done.stdout)
    assert found["ok"] is True
    assert [result["job"] for result in found["results"]] == [
        "4 KiB over 2 SIPs", "4 KiB over 4 PEs", "table of 1 KiB to 4 KiB, 2 SIPs",
    ]  # fmt: skip
    for result in found["results"]:
        assert (result["wrong"], result["faults"], result["checked"]) == (0, [], True)
        assert result["events"] > 500 and 0 < result["cpu_s"] < 60 and 20 < result["peak_mib"] < 1000


def test_lines_replace_those_of_their_jobs_only() -> None:
    """Rows stay in the order of the jobs; text around the marks stays."""
    spec = spec_from_file_location("kernbench_tool_bench_ccl", TOOL)
    assert spec is not None and spec.loader is not None
    tool = module_from_spec(spec)
    sys.modules[spec.name] = tool
    spec.loader.exec_module(tool)
    one, other = (f"| {tool.JOBS[name].label} | old |\n" for name in ("sips-1M", "pes-1M"))
    page = tool.updated(f"before\n{tool.BEGIN}{tool.END}after\n", [other, one])
    assert page.startswith("before\n") and page.endswith("after\n") and page.index(one) < page.index(other)
    again = tool.updated(page, [one.replace("old", "new")])
    assert again == page.replace(one, one.replace("old", "new"))
