"""Compare each op of a log with the same op computed anew, by itself, from a snapshot of what it reads.

The second way (`recomputation`) groups nothing and shares no arithmetic with the first one; copies are compared byte by
byte with what they copied.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
from attrs import define, field

from kernbench_builtin.verify.comparison import differs, snapshot
from kernbench_builtin.verify.recomputation import anew
from kernbench_core.compute.executor import DataExecutor, Where
from kernbench_core.compute.ops.second_way import Anew
from kernbench_core.compute.verification import Failure, Verification, difference, distance
from kernbench_core.errors import ExecutionError, PluginError
from kernbench_core.oplog.log import OpRecord
from kernbench_core.process.interrupt import INTERRUPTS
from kernbench_core.values import dtypes
from kernbench_core.values.arrays import Array
from kernbench_core.values.value import AssemblyValue, OpId, ResultValue, Value

#: Ops that differ and are told; of more, the others are counted.
_MOST_TOLD: Final = 8


def verify_ops(
    executor: DataExecutor, expected: Mapping[OpId, Array] | None = None, where: Where | None = None
) -> Verification:
    """Compare every op's result with `expected`, or else every op with itself computed anew, and copies, too.

    What was dropped is computed once more, and dropped again. `where` says where in a kernel an op was issued.
    """
    check = OpCheck(executor.function, expected, where or (lambda record: ""))
    executor.visit(check, copies=expected is None)
    return check.verdict()


@define(eq=False)
class OpCheck:
    """Check ops one by one, as they are computed, while all that they read is there."""

    #: Says by what name and function an op is computed.
    function: Callable[[OpRecord], tuple[str, object]]
    expected: Mapping[OpId, Array] | None
    where: Where
    checked: int = 0
    worst: float = 0.0
    found: list[tuple[tuple[float, int], Failure]] = field(factory=list)

    def result(self, row: int, record: OpRecord, result: ResultValue, inputs: tuple[Value, ...]) -> None:
        """Check an op that has just been computed, or that was, and whose inputs are there."""
        if self.expected is not None:
            wanted = self.expected.get(result.op_id)
            if wanted is None:
                return
            self.checked += 1
            again = Anew(np.asarray(wanted, np.float64 if dtypes.is_float(result.dtype) else None))
        else:
            self.checked += 1
            try:
                again = self._again(record, inputs)
            except (*INTERRUPTS, MemoryError):
                raise
            except PluginError as error:
                raise ExecutionError(f"{record}{self.where(record)} could not be computed again: {error}") from error
            except BaseException as error:  # a function of a plug-in may raise anything
                self._differs(row, record, result.dtype, f"cannot be computed anew: {error}", None)
                return
        self._compare(row, record, result.array(), again, result.dtype)

    def copy(self, row: int, record: OpRecord, read: Value, written: Value) -> None:
        """Check a copy: all values are what their parts are, and what is written is what is read, byte for byte."""
        self.checked += 1
        if read.nbytes != written.nbytes:  # a mask left elements out: there is no saying which
            self._compare(row, record, _data(read), Anew(snapshot(read), exact=True), read.dtype)
            read = written
        dtype = dtypes.numpy_dtype(written.dtype)
        source = np.frombuffer(np.ascontiguousarray(snapshot(read)).tobytes(), dtype).reshape(written.shape)
        self._compare(row, record, _data(written), Anew(source, exact=True), written.dtype)

    def verdict(self) -> Verification:
        """Return what was found, the first op of the log first."""
        failures = tuple(failure for _, failure in sorted(self.found, key=lambda each: each[0]))
        told = [str(failure) for failure in failures[:_MOST_TOLD]]
        if len(failures) > _MOST_TOLD:
            told.append(f"({len(failures) - _MOST_TOLD} more ops differ.)")
        return Verification(not failures, self.checked, self.worst, tuple(told), failures)

    def _again(self, record: OpRecord, inputs: tuple[Value, ...]) -> Anew:
        name, function = self.function(record)
        params = record.params if "op" in record.params else {"op": record.op_name, **record.params}
        return anew(name, function, params, [snapshot(value) for value in inputs])

    def _compare(self, row: int, record: OpRecord, got: Array, again: Anew, dtype: str) -> None:
        if got.shape != again.value.shape:
            must = f"must have shape {again.value.shape}, as it has by itself, not {got.shape}."
            self._differs(row, record, dtype, must, None)
            return
        wrong, right = differs(got, again, dtype)
        left, right = (x if x.dtype.kind in "iub" else x.astype(np.float64) for x in (got, right))
        with np.errstate(all="ignore"):
            error = distance(left, right)
        error = np.where((left == right) | (np.isnan(error) & ~wrong), 0.0, error)
        if error.size:
            self.worst = max(self.worst, float(np.max(np.where(np.isnan(error), np.inf, error))))
        if wrong.any():
            worst, words = difference(wrong, error, left, right)
            self._differs(row, record, dtype, f"must give what it gives by itself, but {words}", worst)

    def _differs(self, row: int, record: OpRecord, dtype: str, words: str, worst: tuple[int, ...] | None) -> None:
        name = f"{record}{self.where(record)}, which gives {dtype},"
        self.found.append(((record.t_start, row), Failure(name, words, worst=worst)))


def _data(value: Value) -> Array:
    """Return the data of a value as the rest of phase 2 has it; an assembly is not kept."""
    content = value.content()
    return content.gather() if isinstance(content, AssemblyValue) else content.array()
