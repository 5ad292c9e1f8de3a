"""Wrong elements are told with the op that made the worst, and with what that was made of."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from kernbench_builtin.explain.wrong_elements import WrongElements
from kernbench_core.compute.verification import Expected, Verification
from kernbench_core.host.expectation import Expectation
from kernbench_core.oplog.description import Access
from kernbench_core.runs.wrong_data import in_full
from kernbench_core.values.value import Value
from tests.core.compute.recorder import Recorder, host

A = np.arange(12, dtype=np.float32).reshape(3, 4) + 100
ROW = np.arange(4, dtype=np.float32) + 1000


@attrs.frozen
class Program:
    """A host program; that of number 0 is the bench."""

    number: int
    name: str


def site(line: int) -> Any:
    """Return a place in a kernel's file."""
    code = compile("\n" * (line - 1) + "kernel()", "/home/me/kernel.py", "exec")
    return code, len(code.co_code) - 2


def judged(
    record: Recorder, results: list[tuple[Value, Program | None]], sites: dict[tuple[int, int], Any] | None = None
) -> Verification:
    """Check each result of f32 [3, 4] against itself with element [1, 2] a million off; return what is told."""
    executor = record.executor(keep_all=True)
    expected, told = {}, {}
    for number, (value, program) in enumerate(results):
        array = np.array(executor.materialize(value))
        array[1, 2] += 1e6
        expected[str(number)] = Expected(Access("", ()), array, value=value)
        told[str(number)] = "tensor 'y'", Expectation("y", value, array, None, None, program, site(40))
    verification = executor.verify(expected)
    return in_full(verification, told, WrongElements(record.log, executor, [], sites or {}).maker)


def test_the_maker_is_told_with_its_line_and_its_operands() -> None:
    """The worst element is that of [1, 2]: 106 + 1002 - 4; what it was made of stands with its way, and lines."""
    record = Recorder()
    total = record.op("add", [host(A), host(ROW)], (3, 4), "f32")
    four = record.op("sum", [host(np.ones((1, 4), np.float32))], (1,), "f32", {"axis": 1})
    y = record.op("sub", [total, four], (3, 4), "f32")
    found = judged(record, [(y, None)], {(0, 0): site(5), (0, 2): site(7)})
    assert (found.ok, found.wrong) == (False, 1)
    first, *lines = found.failures[0].splitlines()
    assert first == (
        "tensor 'y', checked at /home/me/kernel.py:40, must equal what is expected within rtol=1e-05, atol=1e-05, but "
        "1 of 12 elements differ; the worst is [1, 2]: got 1104.0, expected 1001104.0. It was made by sub (op 2 of PE "
        "0, sip0.cube0.pe0.unit, 3.000 ns) at /home/me/kernel.py:7, of:"
    )
    assert lines == [
        "  4.0: sum (op 1 of PE 0)",
        "  106.0: written by the host -> add at kernel.py:5",
        "  1002.0: written by the host -> add at kernel.py:5",
    ]


def test_an_op_that_is_not_followed_stands_alone() -> None:
    """Of a sum over an axis there is nothing more to tell."""
    record = Recorder()
    y = record.op("cumsum", [host(A)], (3, 4), "f32", {"axis": 1})
    (failure,) = judged(record, [(y, None)]).failures
    assert failure.endswith("expected 1000315.0. It was made by cumsum (op 0 of PE 0, sip0.cube0.pe0.unit, 1.000 ns).")


def test_a_tensor_that_is_wrong_alike_on_several_programs_is_told_once() -> None:
    """Which are, in their order; the bench's own has no name."""
    record = Recorder()
    y = record.op("add", [host(A), host(ROW)], (3, 4), "f32")
    found = judged(record, [(y, Program(2, "rank 1")), (y, Program(1, "rank 0"))])
    (failure,) = found.failures
    assert failure.startswith("tensor 'y' of ranks 0-1, checked at /home/me/kernel.py:40, ")
    assert found.wrong == 2
    (own,) = judged(record, [(y, Program(0, "the bench"))]).failures
    assert own.startswith("tensor 'y', checked at ")
