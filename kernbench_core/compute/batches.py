"""Compute a window of independent ops together: GEMMs that share an operand in one product, small alike ones stacked.

Which ops are put together depends on the log alone, so the same log gives the same bytes. Scratch memory is bounded:
rows are stacked up to `_SCRATCH` bytes, and an operand shared by several ops is assembled and widened once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from attrs import define, field, frozen

from kernbench_core.compute import functions
from kernbench_core.errors import ExecutionError, blamed, in_words
from kernbench_core.oplog.log import OpRecord
from kernbench_core.process.interrupt import INTERRUPTS
from kernbench_core.values import dtypes
from kernbench_core.values.arrays import Array
from kernbench_core.values.value import AssemblyValue, ResultValue, Value

_SCRATCH = 8 << 20
_SMALL = 1 << 16
# Left operands from this many elements on are multiplied where they are: stacking them costs more than it gains.
_LARGE = 1 << 18
_F32 = np.dtype(np.float32)
_GEMM_KEYS = ("transpose_a", "transpose_b", "layout_a", "layout_b")


@frozen(eq=False)
class Job:
    """One op to compute: its record, the name and the function that computes it, its result, the values it reads."""

    record: OpRecord
    name: str
    function: Any
    result: ResultValue
    inputs: tuple[Value, ...]

    @property
    def params(self) -> dict[str, Any]:
        """The record's parameters, with the op's name where they leave it out."""
        return self.record.params if "op" in self.record.params else {"op": self.record.op_name, **self.record.params}

    @property
    def is_product(self) -> bool:
        """Whether it is one of core's GEMMs without steps inside the product."""
        if self.name == functions.GEMM:
            return True
        steps = functions.epilogue_of(self.record.params) if self.name == functions.COMPOSITE_GEMM else None
        return steps is not None and all(step.scope != functions.Scope.K_TILE for step in steps)

    @property
    def floats(self) -> bool:
        """Whether the product is one of floats."""
        return any(dtypes.is_float(v.dtype) for v in self.inputs[:2])


@define(eq=False)
class Batch:
    """Jobs that do not depend on each other; `on_computed(1)` is called after each of them."""

    jobs: Sequence[Job]
    on_computed: Callable[[int], object] = field(default=lambda number: None)
    _uses: Counter[tuple[int, bool]] = field(factory=Counter, init=False)
    _held: dict[tuple[int, bool], Array] = field(factory=dict, init=False)

    def run(self) -> None:
        """Compute every job and fill in its result."""
        shared: dict[tuple[Any, ...], list[Job]] = {}
        rest: list[Job] = []
        for job in self.jobs:
            product = job.is_product
            for number, value in enumerate(job.inputs):
                self._uses[id(value.content()), product and number < 2 and job.floats] += 1
            if product:
                shared.setdefault(self._group(job), []).append(job)
            else:
                rest.append(job)
        alike: dict[tuple[Any, ...], list[Job]] = {}
        for jobs in shared.values():
            if len(jobs) > 1:
                self._run_shared(jobs)
            else:
                alike.setdefault(self._shape(jobs[0]), []).append(jobs[0])
        for key, jobs in alike.items():
            self._run_alike(jobs, small=sum(map(_size, key[:2])) <= _SMALL)
        for job in rest:
            self._finish(job, lambda job=job: job.function(job.params, self._all(job)))

    def _group(self, job: Job) -> tuple[Any, ...]:
        """Jobs with one key multiply by the same right operand in the same way."""
        a, b = job.inputs[:2]
        return (id(b.content()), a.dtype, a.shape[-1], *(job.record.params.get(key) for key in _GEMM_KEYS))

    def _shape(self, job: Job) -> tuple[Any, ...]:
        a, b = job.inputs[:2]
        return (a.shape, b.shape, a.dtype, b.dtype, *(job.record.params.get(key) for key in _GEMM_KEYS))

    def _run_shared(self, jobs: list[Job]) -> None:
        """Multiply the stacked rows of several left operands by one right operand."""
        first = jobs[0]
        b = functions.oriented(first.record.params, "b", self._operand(first, 1, first.floats))
        self._uses[id(first.inputs[1].content()), first.floats] -= len(jobs) - 1
        k, n = b.shape
        at = 0
        while at < len(jobs):
            room = max(1, _SCRATCH // (4 * (k + n)))
            chunk = [jobs[at]]
            rows = _rows(jobs[at])
            if _size(jobs[at].inputs[0].shape) >= _LARGE:
                room = 0
            while at + len(chunk) < len(jobs) and rows + _rows(jobs[at + len(chunk)]) <= room:
                rows += _rows(jobs[at + len(chunk)])
                chunk.append(jobs[at + len(chunk)])
            at += len(chunk)
            self._run_chunk(chunk, rows, b)
        self._drop(first.inputs[1], first.floats)

    def _run_chunk(self, jobs: list[Job], rows: int, b: Array) -> None:
        acc = functions.product(self._left(jobs, rows, b.shape[0]), b)
        start = 0
        for job in jobs:
            stop = start + _rows(job)
            tile = acc[start:stop]
            self._finish(job, lambda job=job, tile=tile: self._finished(job, tile))
            start = stop

    def _left(self, jobs: list[Job], rows: int, k: int) -> Array:
        """Return the left operands of a chunk, one below the other."""
        if len(jobs) == 1:
            floats = jobs[0].floats
            return functions.oriented(jobs[0].record.params, "a", self._operand(jobs[0], 0, floats, floats))
        a: Array = np.empty((rows, k), _F32 if jobs[0].floats else dtypes.numpy_dtype(jobs[0].inputs[0].dtype))
        start = 0
        for job in jobs:
            stop = start + _rows(job)
            a[start:stop] = functions.oriented(job.record.params, "a", self._operand(job, 0, False, job.floats))
            start = stop
        return a

    def _run_alike(self, jobs: list[Job], small: bool) -> None:
        """Multiply alike pairs: small ones as one stack, large ones singly."""
        params = jobs[0].record.params
        a, b = jobs[0].inputs[:2]
        each = 4 * (_size(a.shape) + _size(b.shape))
        step = max(1, _SCRATCH // max(1, each)) if small else 1
        for start in range(0, len(jobs), step):
            chunk = jobs[start : start + step]
            pairs = [[self._operand(job, which, job.floats) for job in chunk] for which in (0, 1)]
            stacks = [p[0] if len(p) == 1 else np.stack(p) for p in pairs]
            if len(chunk) == 1:
                acc = functions.accumulate(params, stacks[0], stacks[1])[None]
            else:
                acc = functions.product(*(_stacked(params, w, s) for w, s in zip("ab", stacks, strict=True)))
            for job, tile in zip(chunk, acc, strict=True):
                self._finish(job, lambda job=job, tile=tile: self._finished(job, tile))

    def _finished(self, job: Job, acc: Array) -> Array:
        others = [self._operand(job, i, False) for i in range(2, len(job.inputs))]
        return functions.finish_gemm(job.record.params, acc, [acc, acc, *others])

    def _finish(self, job: Job, function: Any) -> None:
        """Fill in a result, checked against what the record promised."""
        try:
            out = np.asarray(function())
        except INTERRUPTS:
            raise
        except BaseException as error:
            told = error if isinstance(error, Exception) and str(error) else in_words(error)
            failed = blamed(error, ExecutionError)(f"{job.record} could not be computed: {told}")
            if isinstance(failed, ExecutionError):
                failed.op_id = job.record.op_id
            raise failed from error
        if out.shape != job.result.shape:
            must = f"must give a result of shape {job.result.shape}, not {out.shape}"
            told = f"{job.record} {must}; mend {job.name!r}."
            if isinstance(job.function, functions.PluginFunction):
                told = f"{job.record} could not be computed: {job.function.fault(must)}"
            failed = ExecutionError(told)
            failed.op_id = job.record.op_id
            raise failed
        job.result.fill(dtypes.cast(out, job.result.dtype).view())
        self.on_computed(1)

    def _all(self, job: Job) -> list[Array]:
        return [self._operand(job, i, False) for i in range(len(job.inputs))]

    def _operand(self, job: Job, number: int, widen: bool, counted_wide: bool | None = None) -> Array:
        """Return one input's data, in f32 with `widen`; kept while more jobs of the batch want it in that form."""
        value = job.inputs[number]
        content = value.content()
        key = (id(content), widen if counted_wide is None else counted_wide)
        self._uses[key] -= 1
        held = self._held.get((key[0], widen))
        if held is None:
            held = _data(content, widen)
            if self._uses[key] > 0:
                self._held[key[0], widen] = held
        elif self._uses[key] <= 0:
            del self._held[key[0], widen]
        return held

    def _drop(self, value: Value, widen: bool) -> None:
        key = (id(value.content()), widen)
        if self._uses[key] <= 0:
            self._held.pop(key, None)


def _data(content: Value, widen: bool) -> Array:
    """Return the data of a value that phase 2 may read; assemblies are put together without being kept."""
    if isinstance(content, AssemblyValue):
        data = content.gather(_F32 if widen else None)
        data.flags.writeable = False
        return data
    data = content.array()
    return data.astype(_F32) if widen and data.dtype != _F32 else data


def _stacked(params: Any, which: str, stack: Array) -> Array:
    if params.get(f"layout_{which}") == "col_major":
        stack = stack.reshape(stack.shape[0], *stack.shape[:0:-1]).swapaxes(1, 2)
    return stack.swapaxes(1, 2) if params.get(f"transpose_{which}") else stack


def _rows(job: Job) -> int:
    a = job.inputs[0]
    return a.shape[-1] if job.record.params.get("transpose_a") else a.shape[0]


def _size(shape: Sequence[int]) -> int:
    size = 1
    for extent in shape:
        size *= extent
    return size
