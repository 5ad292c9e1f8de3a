"""The verdicts are those of phase 2, and what stops them names the bench or the kernel line that is at fault."""

from __future__ import annotations

from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from kernbench_core.errors import ExecutionError, KernelError
from kernbench_core.runs.bench_run import run
from kernbench_core.runs.options import RunOptions
from kernbench_core.runs.parts import maker_of
from kernbench_core.runs.run_progress import RunProgress
from kernbench_core.runs.verdicts import verdicts


@pytest.mark.parametrize("end", ["", "."])
def test_a_reference_that_raises_is_a_kernel_error(toy: ModuleType, monkeypatch: pytest.MonkeyPatch, end: str) -> None:
    """The bench's own expected value is user code."""

    def reference() -> None:
        raise ValueError(f"no numbers{end}")

    from kernbench_core.host.runtime import Expectation

    expectation = Expectation("c", None, reference, None, None)  # type: ignore[arg-type]
    monkeypatch.setattr(
        toy.FakeEngine, "run", lambda self, bench, params, name: self.expectations.append(expectation), raising=True
    )
    with pytest.raises(KernelError) as caught:
        run("toy", "one", verify_data=True, plugins=toy.plugins)
    first, place, _ = str(caught.value).split("\n", 2)
    assert first == "the reference of tensor 'c' raised ValueError: no numbers."
    assert place.startswith(f'  File "{__file__}", line ')


class Executor:
    """Notes what it is asked for; `check_ops` fails at op 1 of PE 0 when it is told to."""

    on_computed: Any = None

    def __init__(self, fails: bool = False) -> None:
        self.fails = fails
        self.asked: list[str] = []

    def verify(self, expected: Any) -> Any:
        self.asked.append("data")
        return SimpleNamespace(found=())

    def check_ops(self, _: object, where: Any) -> Any:
        self.asked.append("ops")
        if self.fails:
            error = ExecutionError("it cannot be computed.")
            error.op_id = (0, 1)
            raise error
        record = SimpleNamespace(op_id=(0, 1))
        return where(record), where(SimpleNamespace(op_id=None))


def engine(asked: list[str]) -> Any:
    """Return an engine that noted the kernel line of one op."""
    code = compile("\n" * 6 + "kernel()", "/home/me/kernel.py", "exec")
    sites = {(0, 1): (code, len(code.co_code) - 2)}
    return SimpleNamespace(
        expectations=[],
        op_log=(),
        hardware=SimpleNamespace(op_logger=SimpleNamespace(sites=sites)),
        device=SimpleNamespace(on_demand=SimpleNamespace(confirm=lambda *_: asked.append("confirmed"))),
    )


def judge(executor: Executor, **options: Any) -> Any:
    """Return both verdicts; the executor is there when it is asked for."""
    later: Any = SimpleNamespace(get=lambda: executor)
    return verdicts(
        RunOptions(**options), engine(executor.asked), later, RunProgress(None), maker_of,
        executor.check_ops if options.get("verify_ops") else None,
    )


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        ({}, []),
        ({"verify_data": True}, ["confirmed", "data"]),
        ({"verify_ops": True}, ["confirmed", "ops"]),
        ({"verify_data": True, "verify_ops": True}, ["confirmed", "data", "ops"]),
    ],
)
def test_only_what_is_asked_for_is_verified(options: dict[str, bool], asked: list[str]) -> None:
    """What programs read while the run went on is confirmed once, before anything is compared."""
    executor = Executor()
    data, ops = judge(executor, **options)
    assert executor.asked == asked
    assert (data is not None, ops is not None) == ("data" in asked, "ops" in asked)


def test_an_op_is_told_with_its_kernel_line() -> None:
    """One that is wrong, and one that cannot be computed; an op of nobody has no line."""
    executor = Executor()
    _, where = judge(executor, verify_ops=True)
    assert where == (" at /home/me/kernel.py:7", "")
    executor = Executor(fails=True)
    with pytest.raises(ExecutionError) as caught:
        judge(executor, verify_ops=True)
    assert caught.value.__notes__ == ["It is the op of /home/me/kernel.py:7."]
