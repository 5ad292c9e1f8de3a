"""The fixture takes results, of any origin, and nothing else."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import attrs
import pytest

from kernbench_core import testing
from kernbench_core.errors import OutOfBoundsError, UnknownName, UsageError
from kernbench_core.runs.result import RunResult
from kernbench_core.testing.budgets.budgeted_run import BudgetedRun
from kernbench_core.testing.budgets.fixture import GoldenPlace, KernbenchFixture
from tests.core.testing.budgets.inner_pytest import bench
from tests.core.working_machine import on_machine


@pytest.fixture
def kernbench(tmp_path: Path) -> KernbenchFixture:
    """Return the fixture of a test that writes goldens."""
    nodeid = "tests/test_k.py::test_a"
    return KernbenchFixture(GoldenPlace(tmp_path / "test_k.py", nodeid, tmp_path, f"pytest {nodeid}", update=True))


def test_a_run_is_a_result_with_budgets(kernbench: KernbenchFixture, result: RunResult) -> None:
    """Equal to what `kb.run` gives; a pickled one holds to nothing."""
    made = kernbench.run(bench, **on_machine())
    assert isinstance(made, BudgetedRun) and made == result
    assert made.to_json()["op_log_sha256"] == result.op_log_sha256
    made.budget(time_ns=1)
    copy = pickle.loads(pickle.dumps(made))
    assert isinstance(copy, BudgetedRun) and copy == made
    copy.budget(time_ns=1)
    assert kernbench.taken().splitlines()[:2] == [
        "bench on a mapping is beyond its budget:",
        "  time_ns is 575.533 ns, must be at most 1 ns: 574.533 ns too much (57,453 %)",
    ]
    assert kernbench.taken() == ""


def test_its_type_is_at_the_door() -> None:
    """For tests with annotations."""
    assert testing.KernbenchFixture is KernbenchFixture


def test_several_goldens_of_one_result_or_of_several(
    kernbench: KernbenchFixture, result: RunResult, tmp_path: Path
) -> None:
    kernbench.golden(result)
    kernbench.golden(result, "second")
    kernbench.golden(kernbench.run(bench, params={"n": 4}, **on_machine()), "third")
    assert sorted(file.name for file in (tmp_path / "goldens" / "test_k").iterdir()) == [
        "test_a.json", "test_a@second.json", "test_a@third.json",
    ]  # fmt: skip
    assert [run.name for run in kernbench.case.runs] == ["second", "third"]


def test_what_it_does_not_take(kernbench: KernbenchFixture, result: RunResult) -> None:
    """Each is an error where it is asked for."""
    kernbench.golden(result)
    kernbench.golden(result, "b")
    cut = attrs.evolve(result, interrupted=True)
    asked = [
        (lambda: kernbench.golden(result), "a test must ask for a golden without a name once; give each a name, as "
                                           "golden(result, 'second')."),
        (lambda: kernbench.golden(result, "b"), "a test must ask for a golden of the name 'b' once; give each a name, "
                                                "as golden(result, 'second')."),
        (lambda: kernbench.golden(3), "a budget or golden must be of a result, as of kernbench.run, not 3."),
        (lambda: kernbench.budget(result.timing, time_ns=1), "a budget or golden must be of a result, as of "
                                                             f"kernbench.run, not {result.timing}.")
        ,
        (lambda: kernbench.budget(result, 65_000), "a budget must name its figures, as time_ns=65_000 or a "
                                                   "mapping, not 65000."),
        (lambda: kernbench.budget(cut, time_ns=1), "a budget or golden must be of a whole run, and this one was "
                                                   "interrupted."),
        (lambda: kernbench.budget(result, verified=1), "a budget must be of a number, and 'verified' is none; "
                                                         "write assert result.verified."),
    ]  # fmt: skip
    for ask, sentence in asked:
        with pytest.raises(UsageError) as caught:
            ask()
        assert str(caught.value) == sentence
    assert kernbench.taken() == ""


def outside(x: Any, tl: Any) -> None:
    """Read what is behind the end."""
    tl.load(x + 4)


def test_errors_of_runs_show_the_lines_of_tests_benches_and_kernels(kernbench: KernbenchFixture) -> None:
    """And none of what is between; a model, as `run` of the toys' processor, is somebody's, too."""

    def launching(rt: Any) -> None:
        rt.launch(outside, rt.zeros((4,), "f32"))

    with pytest.raises(OutOfBoundsError) as caught:
        kernbench.run(launching, **on_machine())
    names = [entry.name for entry in caught.traceback if not entry.ishidden(caught)]
    assert names == ["test_errors_of_runs_show_the_lines_of_tests_benches_and_kernels", "run", "outside"]
    assert caught.value.__cause__ is None and caught.value.__suppress_context__
    with pytest.raises(UnknownName) as unknown:
        kernbench.run("nothing", **on_machine())
    assert [entry.name for entry in unknown.traceback if not entry.ishidden(unknown)] == names[:1]
