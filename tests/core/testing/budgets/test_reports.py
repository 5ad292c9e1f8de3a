"""Reports tell what tests' runs gave: a table that GitHub draws, and JSON in the forms that dashboards read."""

from __future__ import annotations

import html
import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_core.package import __version__
from kernbench_core.testing.budgets.limits import Budget
from kernbench_core.testing.budgets.records import (
    ABSENT,
    DIFFERS,
    NEW,
    REWRITTEN,
    SAME,
    CaseRecord,
    GoldenRecord,
    RunRecord,
)
from kernbench_core.testing.budgets.reports import benchmark_like, markdown, smaller_is_better
from kernbench_core.testing.budgets.summary import summary_lines

FIGURES = {"time_ns": 71_353.75, "hbm_bytes": 2048, "hazards": 0, "max_abs_error": None, "intensity": float("inf")}


def run(*budgets: Budget, golden: GoldenRecord | None = None, **changed: Any) -> RunRecord:
    """Return a run of softmax on tiny."""
    return RunRecord("softmax", "tiny", **{"figures": FIGURES, "budgets": [*budgets],
                                           "goldens": [] if golden is None else [golden], **changed})  # fmt: skip


TIGHT, WIDE = Budget("time_ns", None, 65_000), Budget("hbm_bytes", None, 1 << 20)
FAST = Budget("intensity", 1, None)
OLD = {"time_ns": 70_120, "hbm_bytes": 2048}
CASES = [
    CaseRecord("t.py::test_a", "failed", [run(TIGHT, WIDE, golden=GoldenRecord("g/a.json", DIFFERS, OLD))]),
    CaseRecord(
        "t.py::test_b[x|y]", "passed", [run(), run(FAST, name="second", golden=GoldenRecord("g/b.json", ABSENT))]
    ),
    CaseRecord("t.py::test_c", "passed", [run(golden=GoldenRecord("g/c.json", SAME, FIGURES))]),
    CaseRecord("t.py::test_none", "passed"),
]
TABLE = """\
### kernbench

Figures: 6, beyond their budgets: 1. Runs: 4, otherwise than their goldens: 2.

| test | figure | measured | budget | golden | change |
| --- | --- | ---: | --- | ---: | --- |
| `t.py::test_a` | `time_ns` | 71,353.75 ns | at most 65,000 ns **beyond** | 70,120 ns | 1,233.75 ns more (+1.76 %) |
| `t.py::test_a` | `hbm_bytes` | 2,048 B | at most 1,048,576 B | 2,048 B | same; others differ |
| `t.py::test_b[x\\|y] (run 1)` | `time_ns` | 71,353.75 ns |  |  |  |
| `t.py::test_b[x\\|y] (second)` | `time_ns` | 71,353.75 ns |  | absent |  |
| `t.py::test_b[x\\|y] (second)` | `intensity` | inf | at least 1 | absent |  |
| `t.py::test_c` | `time_ns` | 71,353.75 ns |  | 71,353.75 ns | same |"""


def test_the_table() -> None:
    """The time of each run, and what has a budget; without a run it says that there is none."""
    assert markdown(CASES) == TABLE
    assert markdown([CaseRecord("t.py::test_none", "passed")]) == "No test looked at a simulated run."


@given(st.text())
def test_any_node_id_is_one_cell(nodeid: str) -> None:
    """Whatever is in it, the cell says just that, but for what it has of white space."""
    row = markdown([CaseRecord(nodeid, "passed", [run()])]).split("\n")[-1]
    cells = re.split(r"(?<!\\)\|", row)
    assert len(cells) == 8
    cell = cells[1].strip(" ")
    if cell.startswith("<code>"):
        said = html.unescape(cell.removeprefix("<code>").removesuffix("</code>"))
    else:
        said = cell[1:-1].replace("\\|", "|")
        assert "`" not in said and (cell[0], cell[-1]) == ("`", "`")
    assert said == " ".join(nodeid.split())


def test_what_github_action_benchmark_reads() -> None:
    """Only what is better the smaller it is, and finite: the time of each run, and figures that have a most."""
    assert json.loads(smaller_is_better(CASES)) == [
        {"name": "t.py::test_a time_ns", "unit": "ns", "value": 71_353.75,
         "extra": "softmax on tiny\nbudget: at most 65,000 ns\ngolden: 70,120 ns"},
        {"name": "t.py::test_a hbm_bytes", "unit": "B", "value": 2048,
         "extra": "softmax on tiny\nbudget: at most 1,048,576 B\ngolden: 2,048 B"},
        {"name": "t.py::test_b[x|y] (run 1) time_ns", "unit": "ns", "value": 71_353.75, "extra": "softmax on tiny"},
        {"name": "t.py::test_b[x|y] (second) time_ns", "unit": "ns", "value": 71_353.75, "extra": "softmax on tiny"},
        {"name": "t.py::test_c time_ns", "unit": "ns", "value": 71_353.75,
         "extra": "softmax on tiny\ngolden: 71,353.75 ns"},
    ]  # fmt: skip
    limited = [run(Budget("max_abs_error", None, 1), Budget("intensity", None, 1), Budget("hazards", None, 0))]
    named = [each["name"] for each in json.loads(smaller_is_better([CaseRecord("t", "failed", limited)]))]
    assert named == ["t time_ns", "t hazards"]


def test_what_pytest_benchmark_reads() -> None:
    """Its form, with simulated seconds in place of measured ones: one round, and no spread."""
    found = json.loads(benchmark_like(CASES))
    assert {name: value for name, value in found.items() if name != "benchmarks"} == {
        "machine_info": {}, "commit_info": {}, "datetime": "", "version": __version__,
    }  # fmt: skip
    assert [each["fullname"] for each in found["benchmarks"]] == [
        "t.py::test_a", "t.py::test_b[x|y] (run 1)", "t.py::test_b[x|y] (second)", "t.py::test_c",
    ]  # fmt: skip
    first = found["benchmarks"][0]
    seconds = pytest.approx(71_353.75e-9, rel=1e-15)
    spread = {"stddev": 0, "iqr": 0, "outliers": "0;0", "iqr_outliers": 0, "stddev_outliers": 0}
    times = ("min", "max", "mean", "median", "q1", "q3", "ld15iqr", "hd15iqr", "total")
    counts = {"rounds": 1, "iterations": 1, "ops": pytest.approx(1e9 / 71_353.75, rel=1e-12)}
    assert first["stats"] == {**dict.fromkeys(times, seconds), **spread, **counts, "data": [seconds]}
    assert (first["name"], first["param"], first["group"], first["params"]) == ("test_a", None, None, None)
    assert first["extra_info"] == {
        "bench": "softmax", "topology": "tiny",
        "figures": {name: value for name, value in FIGURES.items() if name != "intensity"},
    }  # fmt: skip
    parametrised = CaseRecord("t.py::TestA::test_d[64-f16]", "passed", [run()])
    (other,) = json.loads(benchmark_like([parametrised]))["benchmarks"]
    assert (other["name"], other["param"]) == ("test_d[64-f16]", "64-f16")


def test_records_go_through_xdist_and_come_back() -> None:
    """As plain values, which JSON has, too."""
    assert [CaseRecord.from_json(json.loads(json.dumps(case.to_json()))) for case in CASES] == CASES


def test_what_the_end_of_a_session_says() -> None:
    """Nothing, unless goldens were to be written, or some are nobody's."""
    rewritten = GoldenRecord("g/a.json", REWRITTEN, OLD, "hops is 3, was 2")
    written = [
        CaseRecord("t.py::test_a", "passed", [run(golden=rewritten)]),
        CaseRecord("t.py::test_b", "passed", [run(golden=GoldenRecord("g/b.json", NEW))]),
        CASES[2],
    ]
    assert list(summary_lines(written, [], False)) == []
    assert list(summary_lines(written, ["g/z.json"], True)) == [
        "goldens: 1 new, 1 rewritten, 1 as they were",
        "  g/a.json: rewritten: hops is 3, was 2",
        "  g/b.json: new",
        "goldens that no test asked for; remove those that nobody needs:",
        "  g/z.json",
    ]
