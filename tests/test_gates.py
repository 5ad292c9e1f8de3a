"""The tables of how many times as fast kernbench became: what is measured, what is asked, and what is written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.tool_runs import run_tool

ROOT = Path(__file__).parent.parent
TOOLS = ROOT / "tools"
#: What tools/bench_engine.py and tools/bench_ccl.py compare.
JOBS = {
    "ENGINE": ["gemm", "attention", "gemm-composite", "hbm", "mesh", "phase-2", "tiny", "first-event", "first-time"],
    "CCL": ["sips-1M", "sips-16M"],
}


@pytest.fixture
def gates(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Import the tools' package."""
    monkeypatch.syspath_prepend(str(TOOLS))
    import gates.jobs
    import gates.sides
    import gates.table

    yield gates
    for name in [name for name in sys.modules if name.partition(".")[0] == "gates"]:
        del sys.modules[name]


def job(gates: Any, pure: float | None, compiled: float | None, most_s: float | None = None, **more: Any) -> Any:
    """Return a job of which nothing but the gate matters."""
    return gates.sides.Job("a job", "", None, None, gates.sides.Gate(pure, compiled, most_s), **more)


@pytest.mark.parametrize(
    ("pure", "compiled", "ok"), [(1.3, 4.0, True), (1.29, 4.0, False), (1.3, 3.99, False), (1.3, None, True)]
)
def test_each_form_has_its_gate(gates: Any, pure: float, compiled: float | None, ok: bool) -> None:
    """A job is right where each form that was measured is as fast as is asked of it."""
    assert gates.sides.Finding(job(gates, 1.3, 4.0), pure, compiled, {}).ok is ok


def test_ratios_are_of_rounds_and_their_median_counts(gates: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A round is not compared with another, and the first, which fills what is kept on disk, does not count."""
    times = {"before": [9.0, 8.0, 6.0, 80.0], "pure": [1.0, 4.0, 3.0, 10.0], "compiled": [9.0, 2.0, 1.0, 10.0]}
    left = {name: iter(values) for name, values in times.items()}
    monkeypatch.setattr(gates.sides.Side, "measure", lambda side, *given: {"s": next(left[side.name]), "peak_mib": 1.0})
    found = gates.sides.compare(job(gates, None, None), gates.sides.sides_of(ROOT, True), False)
    assert (found.pure, found.compiled) == (2.0, 6.0)
    assert found.told["before"]["s"] == 8.0


def test_lines_replace_those_of_their_jobs_only(gates: Any) -> None:
    """Rows stay in the order of the jobs; text around the marks stays; a row of no job goes."""
    table = gates.table
    one, other = (f"| {each.label} | old |\n" for each in (gates.jobs.ENGINE["gemm"], gates.jobs.CCL["sips-1M"]))
    page = table.updated(f"before\n{table.BEGIN}{table.END}after\n", [other, one, "| no job | 1 |\n"])
    assert page.startswith("before\n") and page.endswith("after\n") and page.index(one) < page.index(other)
    assert "no job" not in page
    assert table.updated(page, [one.replace("old", "new")]) == page.replace(one, one.replace("old", "new"))


def test_a_line_says_what_is_asked_and_missed(gates: Any) -> None:
    """As a reader of the page sees it."""
    told = {
        "before": {"s": 8.0, "peak_mib": 90.0},
        "pure": {"s": 4.0, "peak_mib": 80.0},
        "compiled": {"s": 2.0, "peak_mib": 70.0, "events": 5000},
    }
    found = gates.sides.Finding(job(gates, 1.5, 5.0), 2.0, 4.0, told)
    assert gates.table.line(found) == (
        "| a job | 5,000 | 8.00 s | 4.00 s | 2.00 (asked: 1.5) | 2.00 s | 4.00 (asked: 5, NOT MET) | 2,500 | 70 MiB |\n"
    )


@pytest.mark.parametrize(
    ("compiled", "ok", "cells"),
    [
        (0.5, True, "0.75 s | 10.00 | 0.50 s (at most 0.5 s) | 16.00"),
        (0.51, False, "0.75 s | 10.00 | 0.51 s (at most 0.5 s, NOT MET) | 16.00"),
        (None, False, "0.75 s (at most 0.5 s, NOT MET) | 10.00 | - | -"),
    ],
)
def test_a_job_may_take_so_many_seconds(gates: Any, compiled: float | None, ok: bool, cells: str) -> None:
    """In the form that is installed; in Python where nothing is compiled."""
    times = {"before": 8.0, "pure": 0.75, "compiled": compiled}
    told = {name: {"s": s, "peak_mib": 9.0} for name, s in times.items() if s is not None}
    found = gates.sides.Finding(job(gates, None, None, 0.5), 10.0, None if compiled is None else 16.0, told)
    assert found.ok is ok
    assert gates.table.line(found) == f"| a job | - | 8.00 s | {cells} | - | 9 MiB |\n"


@pytest.mark.parametrize("first", [True, False])
def test_a_first_time_finds_nothing_on_disk(gates: Any, monkeypatch: pytest.MonkeyPatch, first: bool) -> None:
    """Neither what it kept before, nor bytecode; all others find both from their second round on."""
    seen: list[tuple[str, str | None]] = []

    def run(command: list[str], *, env: dict[str, str], **_: Any) -> Any:
        seen.append((env["KERNBENCH_CACHE"], env.get("PYTHONPYCACHEPREFIX")))
        return subprocess.CompletedProcess(command, 0, '{"s": 1.0, "peak_mib": 1.0}\n')

    monkeypatch.setattr(gates.sides.subprocess, "run", run)
    sides = gates.sides.sides_of(ROOT, False)
    gates.sides.compare(job(gates, None, None, first=first), sides, False)
    caches, bytecode = zip(*seen, strict=True)
    assert len(seen) == 8 and len(set(caches)) == (8 if first else 2)
    assert len(set(bytecode)) == (8 if first else 1)
    assert (None in bytecode) is not first


def test_a_commit_that_is_not_there_is_a_sentence(gates: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shallow clone has no history: the tool says what to do."""
    monkeypatch.setattr(gates.sides, "BEFORE", "0" * 40)
    with pytest.raises(SystemExit) as refused, gates.sides.checkout(None):
        pass
    assert str(refused.value) == (
        f"git must find commit 00000000 in {ROOT} to compare with; fetch the history (git fetch --unshallow), or name "
        "a checkout of it by --before TREE."
    )


@pytest.mark.parametrize(
    ("tool", "job"),
    [*(("bench_engine", name) for name in JOBS["ENGINE"]), *(("bench_ccl", name) for name in JOBS["CCL"])],
)
def test_every_job_runs_in_a_tree(tool: str, job: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Compared with itself, in each form that is there."""
    assert run_tool(tool, "--gates", "--quick", "--json", job, "--before", str(ROOT)) == 0
    (found,) = json.loads(capsys.readouterr().out)["jobs"].values()
    assert 0.05 < found["pure"] < 20
    assert all(told["s"] > 0 and told["peak_mib"] > 10 for told in found["told"].values())


def test_the_jobs_are_all_of_them(gates: Any) -> None:
    assert {name: list(getattr(gates.jobs, name)) for name in JOBS} == JOBS


def test_a_tree_that_is_not_compiled_is_told_of() -> None:
    """Its table has no compiled column, and says why."""
    command = [sys.executable, str(TOOLS / "bench_engine.py"), "--gates", "--quick", "tiny", "--before", str(ROOT)]
    environment = {**os.environ, "KERNBENCH_PURE": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stderr == (
        "What runs here is pure Python: KERNBENCH_PURE is set, so only that is compared; make compiled compiles it.\n"
    )


def test_what_is_measured_of_scale_runs() -> None:
    """With small numbers; no limit is passed. Not in this process, whose memory its children would begin with."""
    tool = Path(__file__).parents[1] / "tools" / "bench_scale.py"
    done = subprocess.run([sys.executable, tool, "--quick", "--json"], capture_output=True, text=True, check=True)
    results = json.loads(done.stdout)
    assert all(result["ok"] for result in results)
    assert {result["name"] for result in results} >= {"growth of memory over them", "a layer of llama3-70b: events"}


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (
            ["bench_engine", "--gates", "--before", "docs", "tiny"],
            "bench_engine.py: error: argument --before: docs must be a checkout of kernbench, but has no "
            "kernbench_core",
        ),
        (
            ["bench_ccl", "--gates", "sips"],
            "bench_ccl.py: error: argument JOB: sips must be among sips-1M, sips-16M",
        ),
        (
            ["count_work", "--tree", "nowhere"],
            "count_work.py: error: argument --tree: nowhere must be a checkout of kernbench, but has no kernbench_core",
        ),
        (
            ["bench_scale", "sips"],
            "bench_scale.py: error: argument JOB: sips must be among events, cost, ranks, layer, pes",
        ),
    ],
)
def test_what_cannot_be_measured_is_told_before_anything_is(
    asked: list[str], told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a folder without kernbench, the one that is installed would be compared with itself."""
    monkeypatch.chdir(ROOT)
    assert run_tool(*asked) == 2
    assert capsys.readouterr().err.splitlines()[-1] == told
