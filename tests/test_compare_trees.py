"""tools/compare_trees.py measures two trees side by side."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

REPO = Path(__file__).parents[1]
TOOL = str(REPO / "tools" / "compare_trees.py")


def compare(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the tool."""
    return subprocess.run([sys.executable, TOOL, *arguments], capture_output=True, text=True)


def test_a_tree_is_compared_with_itself() -> None:
    """Nothing passes a limit of zero; that nothing is a thousand times as slow as itself has the test after next."""
    found = compare(str(REPO), "help", "--pairs", "1", "--json", "--most", "0")
    assert found.returncode == 1
    told = json.loads(found.stdout)
    assert told["job"] == "help"
    assert told["own_s"] > 0 and told["other_s"] > 0 and told["ratio"] == told["own_s"] / told["other_s"]


def test_what_is_no_tree_is_refused(tmp_path: Path) -> None:
    """In a sentence, before anything is run."""
    refused = compare(str(tmp_path))
    assert refused.returncode == 2
    assert f"{tmp_path} must be a tree of kernbench, with a folder kernbench_core" in refused.stderr


def test_jobs_may_stand_after_options() -> None:
    """As the usage lines of the tool and of --help write it."""
    found = compare(str(REPO), "--pairs", "1", "--json", "--most", "1000", "help")
    assert (found.returncode, found.stderr) == (0, "")
    assert [json.loads(line)["job"] for line in found.stdout.splitlines()] == ["help"]


def test_a_job_that_there_is_not_is_refused() -> None:
    """Wherever it stands, with those that there are."""
    refused = compare(str(REPO), "--pairs", "1", "gem")
    assert refused.returncode == 2
    assert refused.stderr.endswith("jobs must be among gemm, all_reduce, help, not 'gem'\n")
