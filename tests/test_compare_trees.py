"""tools/compare_trees.py measures two trees side by side."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.tool_runs import run_tool

REPO = Path(__file__).parents[1]
Compare = Callable[..., tuple[int, str, str]]


@pytest.fixture
def compare(capsys: pytest.CaptureFixture[str]) -> Compare:
    """Give a function that runs the tool, and returns its exit code, stdout and stderr."""
    return lambda *arguments: (run_tool("compare_trees", *arguments), *capsys.readouterr())


def test_a_tree_is_compared_with_itself(compare: Compare) -> None:
    """Nothing passes a limit of zero; that nothing is a thousand times as slow as itself has the test after next."""
    code, out, _ = compare(str(REPO), "help", "--pairs", "1", "--json", "--most", "0")
    assert code == 1
    told = json.loads(out)
    assert told["job"] == "help"
    assert told["own_s"] > 0 and told["other_s"] > 0 and told["ratio"] == told["own_s"] / told["other_s"]


def test_what_is_no_tree_is_refused(compare: Compare, tmp_path: Path) -> None:
    """In a sentence, before anything is run."""
    code, _, err = compare(str(tmp_path))
    assert code == 2
    assert err.endswith(f"error: {tmp_path} must be a tree of kernbench, with a folder kernbench_core\n")


def test_jobs_may_stand_after_options(compare: Compare) -> None:
    """As the usage lines of the tool and of --help write it."""
    code, out, err = compare(str(REPO), "--pairs", "1", "--json", "--most", "1000", "help")
    assert (code, err) == (0, "")
    assert [json.loads(line)["job"] for line in out.splitlines()] == ["help"]


def test_a_job_that_there_is_not_is_refused(compare: Compare) -> None:
    """Wherever it stands, with those that there are."""
    code, _, err = compare(str(REPO), "--pairs", "1", "gem")
    assert code == 2
    assert err.endswith("jobs must be among gemm, all_reduce, help, not 'gem'\n")
