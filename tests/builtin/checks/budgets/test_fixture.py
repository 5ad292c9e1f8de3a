"""The fixture takes results, of any origin, and nothing else."""

from __future__ import annotations

import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

import kernbench as door
from kernbench_builtin.checks.budgets.fixture import BudgetedRun, KernbenchFixture
from kernbench_core.errors import OutOfBoundsError, UsageError
from kernbench_core.runs.result import RunResult
from tests.builtin.checks.budgets.inner_pytest import bench
from tests.builtin.working_machine import on_machine


@pytest.fixture
def kernbench(tmp_path: Path) -> KernbenchFixture:
    """Return the fixture of a test that writes goldens."""
    config = SimpleNamespace(getoption=lambda _: True, invocation_params=SimpleNamespace(dir=tmp_path))
    item = SimpleNamespace(nodeid="tests/test_k.py::test_a", path=tmp_path / "test_k.py", config=config)
    return KernbenchFixture(cast("pytest.Item", SimpleNamespace(**vars(item), user_properties=[])))


def test_a_run_is_a_result_with_budgets(kernbench: KernbenchFixture, result: RunResult) -> None:
    """Equal to what `kb.run` gives; a pickled one holds to nothing."""
    made = kernbench.run(bench, **on_machine())
    assert isinstance(made, BudgetedRun) and made == result
    assert made.to_json()["op_log_sha256"] == result.op_log_sha256
    made.budget(time_ns=1)
    copy = pickle.loads(pickle.dumps(made))
    assert isinstance(copy, BudgetedRun) and copy == made
    copy.budget(time_ns=1)
    assert kernbench.taken().splitlines()[:3] == [
        "bench on a mapping: time_ns must be at most 1 ns, and is 575.5 ns: +574.5 ns (576 ×)",
        "no spread is known: a small difference may be chance; --shake measures it",
        "Where the time went:",
    ]
    assert kernbench.taken() == ""


def test_its_type_is_at_the_door() -> None:
    """For tests with annotations."""
    assert door.KernbenchFixture is KernbenchFixture


def test_several_goldens_of_one_result_or_of_several(
    kernbench: KernbenchFixture, result: RunResult, tmp_path: Path
) -> None:
    kernbench.golden(result)
    kernbench.golden(result, "second")
    kernbench.golden(kernbench.run(bench, params={"n": 4}, **on_machine()), "third")
    assert sorted(file.name for file in (tmp_path / "goldens" / "test_k").iterdir()) == [
        "test_a.json", "test_a@second.json", "test_a@third.json",
    ]  # fmt: skip


def test_what_it_does_not_take(kernbench: KernbenchFixture, result: RunResult) -> None:
    """Each is an error where it is asked for."""
    kernbench.golden(result)
    of = "a budget or golden must be of a result, as of kernbench.run, not "
    asked = [
        (
            lambda: kernbench.golden(result),
            "a test must give each of its goldens a name of its own, as golden(result, 'second').",
        ),
        (lambda: kernbench.golden(3), f"{of}3."),
        (lambda: kernbench.budget(result.timing, time_ns=1), f"{of}{result.timing}."),
        (
            lambda: kernbench.budget(result, 65_000),
            "a budget must name its figures, as time_ns=65_000 or a mapping, not 65000.",
        ),
    ]
    for ask, sentence in asked:
        with pytest.raises(UsageError) as caught:
            ask()
        assert str(caught.value) == sentence
    assert kernbench.taken() == ""


def outside(x: Any, tl: Any) -> None:
    """Read what is behind the end."""
    tl.load(x + 4)


def test_errors_of_runs_show_the_line_of_the_test(kernbench: KernbenchFixture) -> None:
    """And none of what is below; their sentences have the lines of kernels."""

    def launching(rt: Any) -> None:
        rt.launch(outside, rt.zeros((4,), "f32"))

    with pytest.raises(OutOfBoundsError, match=r"^tl\.load at \S*test_fixture\.py:\d+ must ") as caught:
        kernbench.run(launching, **on_machine())
    names = [entry.name for entry in caught.traceback if not entry.ishidden(caught)]
    assert names == ["test_errors_of_runs_show_the_line_of_the_test"]
    assert caught.value.__cause__ is None and caught.value.__suppress_context__
