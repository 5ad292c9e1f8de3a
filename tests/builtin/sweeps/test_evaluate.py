"""One point: what its record says of however its run ends."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kernbench_builtin.sweeps import SweepPlan
from kernbench_builtin.sweeps import evaluate as module
from kernbench_builtin.sweeps.axes import PARAM, SET, TOPOLOGY, read_axis
from kernbench_builtin.sweeps.evaluate import blank_record, evaluate, failure, functions_in, job_of
from kernbench_builtin.sweeps.points import points_of
from kernbench_core import errors
from kernbench_core.plugins import Plugins
from kernbench_core.process.interrupt import Terminated

PLAN = SweepPlan(
    bench="gemm", topology="tiny", set={"cube.pes": 2}, params={"M": 64}, objectives=("half = time_ns / pes", "max:n"),
    axes=(read_axis("link.bandwidth", SET, "1 GB/s,2 GB/s"), read_axis("n", PARAM, "3"), read_axis("t", PARAM, "a,b")),
    options={"seed": 7, "timeout_s": 9.0}, cached=False,
)  # fmt: skip
SAID = SimpleNamespace(
    right=True, op_log_sha256="f" * 64, cache_key=None, cache_note="", from_cache=False, params={"M": 64},
    manifest={"bench": {"name": "gemm"}, "configuration": {"cube": {"pes": 2}}},
)  # fmt: skip


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Have runs be what a test says under "end": a result or an error; what is asked for is noted beside."""
    noted: dict[str, Any] = {"end": SAID}

    def run(bench: str, **how: Any) -> Any:
        noted.update(how, bench=bench)
        if isinstance(noted["end"], BaseException):
            raise noted["end"]
        return noted["end"]

    monkeypatch.setattr("kernbench_core.runs.bench_run.run", run)
    monkeypatch.setattr(module, "named_figures", lambda result: {"time_ns": 8.0})
    monkeypatch.setattr("kernbench_builtin.sweeps.objectives.objective.named_figures", lambda result: {"time_ns": 8.0})
    return noted


def job(plan: SweepPlan = PLAN) -> dict[str, Any]:
    return json.loads(json.dumps(job_of(plan, list(points_of(plan))[1])))


def test_a_job_says_all_that_a_run_is_given(asked: dict[str, Any]) -> None:
    """As plain data that went through JSON; settings and parameters as the command line has them."""
    record = evaluate(job(), plugins="plug-ins")  # type: ignore[arg-type]
    assert {name: asked[name] for name in asked if name != "end"} == {
        "bench": "gemm", "topology": "tiny", "components": None, "plugins": "plug-ins", "cached": False, "seed": 7,
        "timeout_s": 9.0, "set": ("cube.pes=2", "link.bandwidth=1 GB/s"), "params": {"M": "64", "n": "3", "t": "b"},
    }  # fmt: skip
    assert record.pop("wall_s") >= 0
    assert record == {
        "schema": "kernbench.point/2", "code": "", "files": {}, "key": list(points_of(PLAN))[1].key, "index": 1,
        "values": {"link.bandwidth": "1 GB/s", "n": 3, "t": "b"}, "status": "ok", "figures": {"time_ns": 8.0},
        "objectives": {"half": 4.0, "n": 3.0}, "error": None, "warnings": [], "op_log_sha256": "f" * 64,
        "cache_key": None, "cache_note": "", "from_cache": False,
    }  # fmt: skip


def test_a_topology_of_an_axis_is_that_of_the_point(asked: dict[str, Any]) -> None:
    """Not that of the plan, which other points have."""
    plan = SweepPlan(bench="gemm", topology="tiny", axes=(read_axis("topology", TOPOLOGY, "full,mesh"),))
    evaluate(job(plan), plugins="plug-ins")  # type: ignore[arg-type]
    assert (asked["topology"], asked["cached"]) == ("mesh", False)


@pytest.mark.parametrize(
    ("error", "status", "code", "told"),
    [
        (errors.KernelError("it failed.\n  line 3"), "error", 6, "it failed.\n  line 3"),
        (errors.ConfigError("one.", "two."), "error", 3, "one.\ntwo."),
        (errors.DeadlockError("all wait."), "deadlock", 4, "all wait."),
        (errors.LimitError("it reached its limit of 9 events."), "limit", 5, "it reached its limit of 9 events."),
        (errors.LimitError("the run reached its limit of 2 s of wall time."), "timeout", 5,
         "the run reached its limit of 2 s of wall time."),
        (errors.SanityError("too fast."), "error", 7, "too fast."),
        (MemoryError(), "limit", 5, "the memory of this process is exhausted; give it more, or a smaller problem."),
        (ZeroDivisionError("no"), "error", 7, "kernbench itself failed with ZeroDivisionError: no; please report it."),
    ],
)  # fmt: skip
def test_however_a_run_ends_it_is_recorded(
    asked: dict[str, Any], error: BaseException, status: str, code: int, told: str
) -> None:
    """With the class, the exit code and the sentence of the error, notes included."""
    asked["end"] = error
    record = evaluate(job(), plugins="plug-ins")  # type: ignore[arg-type]
    assert record["status"] == status
    assert record["error"] == {"kind": type(error).__name__, "exit_code": code, "sentence": told}
    assert record["objectives"] == {"half": None, "n": None} and record["figures"] == {}
    error.add_note("It is the op of a line.")
    assert failure(error)["error"]["sentence"].count("It is the op of a line.") == isinstance(
        error, errors.KernbenchError
    )


def test_no_text_of_a_record_is_more_than_a_file_holds(asked: dict[str, Any]) -> None:
    """A half of a surrogate, as of a file's name that is no UTF-8, is written out; all else stays."""
    asked["end"] = errors.KernelError("no file 'a\udcff', but \U0001f642 and ü.")
    record = evaluate(job(), plugins="plug-ins")  # type: ignore[arg-type]
    assert record["error"]["sentence"] == "no file 'a\\udcff', but \U0001f642 and ü."
    json.dumps(record, ensure_ascii=False).encode()


def test_what_ends_a_process_is_no_record(asked: dict[str, Any]) -> None:
    """Ctrl-C and SIGTERM go on to whoever started it."""
    for stop in (KeyboardInterrupt(), Terminated()):
        asked["end"] = stop
        with pytest.raises(type(stop)):
            evaluate(job(), plugins="plug-ins")  # type: ignore[arg-type]


def test_wrong_data_and_objectives_without_a_value_are_told_apart(asked: dict[str, Any]) -> None:
    """Wrong data has its figures and objectives; an objective that has no value is an error, with the figures."""
    asked["end"] = SimpleNamespace(**{**vars(SAID), "right": False})
    record = evaluate(job(), plugins="plug-ins")  # type: ignore[arg-type]
    assert (record["status"], record["objectives"]) == ("wrong", {"half": 4.0, "n": 3.0})
    asked["end"] = SAID
    plan = SweepPlan.from_json({**PLAN.to_json(), "objectives": ["time_ns / (pes - 2)"]})
    record = evaluate(job(plan), plugins="plug-ins")  # type: ignore[arg-type]
    assert (record["status"], record["figures"]) == ("error", {"time_ns": 8.0})
    assert record["error"]["kind"] == "UsageError" and "is not a finite number" in record["error"]["sentence"]
    assert blank_record(job(plan))["objectives"] == {"time_ns / (pes - 2)": None} == record["objectives"]


def test_a_point_from_the_cache_lists_what_it_was_made_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plugins: Plugins
) -> None:
    """Also a module that the process which finds the point in the cache has not loaded."""
    monkeypatch.setenv("KERNBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "b.py").write_text("def bench(rt):\n    rt.zeros((__import__('seldom').N,), 'f32')\n")
    (tmp_path / "seldom.py").write_text("N = 4\n")
    plan = SweepPlan(bench=str(tmp_path / "b.py"), topology="tiny", cached=True)
    records = []
    for _ in range(2):
        records.append(evaluate(job_of(plan, next(iter(points_of(plan)))) | {"code": "as it is"}, plugins))
        sys.modules.pop("seldom", None)
    assert [record["from_cache"] for record in records] == [False, True]
    assert records[0]["files"] == records[1]["files"] and "seldom.py" in records[1]["files"]


def test_a_file_of_functions_is_read_again_when_it_has_changed(tmp_path: Path) -> None:
    """A notebook may change it between two sweeps; unchanged it is read once."""
    file = tmp_path / "area.py"
    file.write_text("def area(config, figures): return 1")
    first = functions_in(str(file))
    assert functions_in(str(file)) is first and set(first.functions) == {"area"}
    file.write_text("def cost(config, figures): return 22")
    os.utime(file, ns=(1, 1))
    assert set(functions_in(str(file)).functions) == {"cost"}
    with pytest.raises(errors.UsageError, match=r"^--figures must be the path of a \.py file, and 'no\.py' does not"):
        functions_in("no.py")
