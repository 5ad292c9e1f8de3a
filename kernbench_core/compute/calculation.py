"""Compute ops that are ready, one by one or, of products, in batches, and say which op it was where one fails.

What several ops in a row read is assembled once.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final, NoReturn

import numpy as np

from kernbench_core.compute import functions
from kernbench_core.compute.backends import Backend
from kernbench_core.compute.batches import BatchPart, OpOutcome, ProductBatch
from kernbench_core.compute.kinds import Getting, Kind
from kernbench_core.compute.planned_op import PlannedOp
from kernbench_core.compute.threads import one_blas_thread
from kernbench_core.errors import ExecutionError, PendingDataError, blamed, in_words
from kernbench_core.oplog.log import OpRecord
from kernbench_core.process.interrupt import INTERRUPTS
from kernbench_core.values import dtypes
from kernbench_core.values.arrays import Array
from kernbench_core.values.value import AssemblyValue, LoadedValue, Value

#: So many bytes of operands that were put together stay at hand for who reads them next.
_HELD_BYTES: Final = 8 << 20
#: From so much work on an op is left to the threads of the matrix library, in multiplications.
_WORTH_WORK: Final = 1 << 22
_BYTE_WORK: Final = 8


class Calculation:
    """Fill in results of ops whose operands are there.

    `record` gives the record of an op, `function` by what it is computed, other than floats that the `backend` has;
    `computed` is called with the number of ops that were computed since the last time: by `tell`, after each group of
    `many`, and after each op that is like no others, as these may take long.
    """

    def __init__(
        self,
        backend: Backend,
        record: Callable[[PlannedOp], OpRecord],
        function: Getting,
        computed: Callable[[int], object],
    ) -> None:
        self._backend = backend
        self._record = record
        self._function = function
        self._computed = computed
        #: How many ops were computed, and how many of them by the backend.
        self.count = self.own = self._reported = 0
        self._kinds: dict[int, Kind] = {}
        self._held: OrderedDict[AssemblyValue, Array] = OrderedDict()
        self._held_bytes = 0
        #: How plug-ins' functions are told of overflow and the like: as their caller set it.
        self._errors: Any = np.geterr()

    def kind_of(self, op: PlannedOp) -> Kind:
        """Return the kind of an op; ExecutionError where no function computes it."""
        kind = op.kind
        if kind is None:
            kind = self._kinds.get(op.number)
            if kind is None:
                record = self._record(op)
                kind = Kind(record, *self._function(record), op.inputs, op.result, op.number >= 0, self._backend)
                if op.number >= 0:
                    self._kinds[op.number] = kind
            op.kind = kind
        return kind

    def one(self, op: PlannedOp) -> None:
        """Compute an op by itself."""
        self._take(op, self._answer(op))
        if op.number < 0:
            self.report_progress()

    def many(self, ops: Sequence[PlannedOp]) -> None:
        """Compute ops that do not depend on each other: products together, the large ones first."""
        products = [op for op in ops if self.kind_of(op).is_product]
        for op in products:
            self._check_inputs(op)
        parts = []
        for own, multiply in ((True, self._backend.product), (False, np.matmul)):
            parts += ProductBatch([op for op in products if self.kind_of(op).own == own], multiply).parts()
        parts += [BatchPart((op,), partial(self._answers, op)) for op in ops if not self.kind_of(op).is_product]
        small = []
        for part in parts:
            if sum([self._work(op) for op in part.ops]) < _WORTH_WORK * len(part.ops):
                small.append(part)
            else:
                self._take_all(part)
        if small:
            with one_blas_thread():
                for part in small:
                    self._take_all(part)

    def _take_all(self, part: BatchPart) -> None:
        for op, out in part.answers():
            self._take(op, out)
        self.report_progress()

    def _work(self, op: PlannedOp) -> float:
        """Return how many multiplications of a product take about as long as an op."""
        return (op.kind or self.kind_of(op)).multiplications or op.nbytes * _BYTE_WORK

    def _answers(self, op: PlannedOp) -> list[OpOutcome]:
        with np.errstate(all="ignore"):
            return [(op, self._answer(op))]

    def _answer(self, op: PlannedOp) -> Array | BaseException:
        """Return the result of an op, or what computing it raised."""
        kind = op.kind or self.kind_of(op)
        try:
            arrays = [self._data(value) for value in op.inputs]
            if kind.alike:
                return kind.computing(op.inputs, arrays)(arrays)
            with np.errstate(**self._errors):
                return np.asarray(kind.function(kind.params, arrays))
        except BaseException as error:
            return error

    def _take(self, op: PlannedOp, out: Array | BaseException) -> None:
        """Fill in the result of an op and count it, or raise what says why there is none."""
        if isinstance(out, BaseException):
            self._failed(op, out)
        kind = op.kind or self.kind_of(op)
        self._fill(op, kind, out)
        self.count += 1
        self.own += kind.own

    def _fill(self, op: PlannedOp, kind: Kind, out: Array) -> None:
        result = op.result
        if out.shape != result.shape:
            self._misshapen(op, out)
        if out.dtype is not kind.target or result.dtype != kind.dtype:
            out = dtypes.cast(out, result.dtype)
        result.fill(out if kind.alike else out.view())  # a plug-in may have kept the array, to write to it

    def report_progress(self) -> None:
        """Say how many ops were computed since the last time."""
        if self.count > self._reported:
            before, self._reported = self._reported, self.count
            self._computed(self.count - before)

    def _data(self, value: Value) -> Array:
        content = value.content()
        if type(content) is not AssemblyValue:
            return content.array()
        held = self._held.get(content)
        if held is None:
            held = content.gather()
            held.flags.writeable = False
            self._held[content] = held
            self._held_bytes += held.nbytes
            while self._held_bytes > _HELD_BYTES:
                self._held_bytes -= self._held.popitem(last=False)[1].nbytes
        return held

    def _failed(self, op: PlannedOp, error: BaseException) -> NoReturn:
        """Raise what a failed op is told by."""
        if isinstance(error, INTERRUPTS):
            raise error
        if isinstance(error, PendingDataError):
            self._check_inputs(op)
        told = error if isinstance(error, Exception) and str(error) else in_words(error)
        failed = blamed(error, ExecutionError)(f"{self._record(op)} could not be computed: {told}")
        if isinstance(failed, ExecutionError):
            failed.op_id = op.result.op_id
        raise failed from error

    def _misshapen(self, op: PlannedOp, out: Array) -> NoReturn:
        kind, record = self.kind_of(op), self._record(op)
        must = f"must give a result of shape {op.result.shape}, not {out.shape}"
        told = f"{record} {must}; mend {kind.name!r}."
        if isinstance(kind.function, functions.PluginFunction):
            told = f"{record} could not be computed: {kind.function.fault(must)}"
        failed = ExecutionError(told)
        failed.op_id = record.op_id
        raise failed

    def _check_inputs(self, op: PlannedOp) -> None:
        if any(_is_open(value) for value in op.inputs):
            raise ExecutionError(
                f"{self._record(op)} must read loads that have completed; let the run end before computing."
            )


def _is_open(value: Value) -> bool:
    """Whether a value is, or is made of, what a load brings that has not completed."""
    sources: Iterable[Value] = (part.source for part in value.parts()) if isinstance(value, AssemblyValue) else (value,)
    return any(isinstance(source, LoadedValue) and not source.bound for source in sources)
