"""Compute independent GEMMs together: those that share an operand in one product, small alike ones stacked.

Which ops are put together depends on the log alone, so the same log gives the same bytes. Scratch memory is bounded:
rows are stacked up to `_SCRATCH` bytes, and an operand shared by several ops is assembled and widened once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from kernbench_core.compute import functions
from kernbench_core.compute.kinds import Kind
from kernbench_core.compute.planned_op import PlannedOp
from kernbench_core.values import dtypes
from kernbench_core.values.arrays import Array
from kernbench_core.values.halves import as_f32
from kernbench_core.values.value import AssemblyValue, Value

_SCRATCH = 8 << 20
# Pairs of so many elements and less are stacked; the product of larger ones takes longer than Python around it.
_SMALL = 1 << 12
# Left operands from this many elements on are multiplied where they are: stacking them costs more than it gains.
_LARGE = 1 << 18
# So many that are multiplied one after another are a part, after which progress is told.
_SINGLY = 4
OpOutcome = tuple[PlannedOp, Array | BaseException]
"""The result of an op, or what computing it raised."""
_F16, _F32 = np.dtype(np.float16), np.dtype(np.float32)


class BatchPart(NamedTuple):
    """Ops that are computed one after another or at once, and what does so."""

    ops: Sequence[PlannedOp]
    answers: Callable[[], list[OpOutcome]]


class ProductBatch:
    """Products that do not depend on each other, in parts of which each is computed at once."""

    def __init__(self, ops: Sequence[PlannedOp], multiply: functions.Multiply) -> None:
        self.ops = ops
        self.multiply = multiply
        self._uses: Counter[tuple[int, bool]] = Counter()
        self._held: dict[tuple[int, bool], Array] = {}

    def parts(self) -> list[BatchPart]:
        """Return what computes the products."""
        shared: dict[tuple[Any, ...], list[PlannedOp]] = {}
        for op in self.ops:
            floats = _kind(op).floats
            for number, value in enumerate(op.inputs):
                self._uses[id(value.content()), number < 2 and floats] += 1
            shared.setdefault(self._group(op), []).append(op)
        parts: list[BatchPart] = []
        alike: dict[tuple[Any, ...], list[PlannedOp]] = {}
        for ops in shared.values():
            if len(ops) > 1:
                parts.append(BatchPart(ops, partial(self._shared, ops)))
            else:
                alike.setdefault(self._shape(ops[0]), []).append(ops[0])
        for key, ops in alike.items():
            small = sum(map(_size, key[:2])) <= _SMALL
            step = max(1, _SCRATCH // max(1, 4 * sum(map(_size, key[:2])))) if small else _SINGLY
            each = self._stack if small else self._singly
            for start in range(0, len(ops), step):
                some = ops[start : start + step]
                parts.append(BatchPart(some, partial(each, some)))
        return parts

    def _group(self, op: PlannedOp) -> tuple[Any, ...]:
        """Ops with one key multiply by the same right operand in the same way."""
        a, b = op.inputs[:2]
        return (id(b.content()), a.dtype, a.shape[-1], *_kind(op).layout)

    def _shape(self, op: PlannedOp) -> tuple[Any, ...]:
        a, b = op.inputs[:2]
        return (a.shape, b.shape, a.dtype, b.dtype, *_kind(op).layout)

    def _shared(self, ops: list[PlannedOp]) -> list[OpOutcome]:
        """Multiply the stacked rows of several left operands by one right operand."""
        first = ops[0]
        b = functions.oriented(_kind(first).params, "b", self._operand(first, 1, _kind(first).floats))
        self._uses[id(first.inputs[1].content()), _kind(first).floats] -= len(ops) - 1
        answers: list[OpOutcome] = []
        k, n = b.shape
        at = 0
        while at < len(ops):
            room = max(1, _SCRATCH // (4 * (k + n)))
            chunk = [ops[at]]
            rows = _rows(ops[at])
            if _size(ops[at].inputs[0].shape) >= _LARGE:
                room = 0
            while at + len(chunk) < len(ops) and rows + _rows(ops[at + len(chunk)]) <= room:
                rows += _rows(ops[at + len(chunk)])
                chunk.append(ops[at + len(chunk)])
            at += len(chunk)
            answers += self._chunk(chunk, rows, b)
        self._drop(first.inputs[1], _kind(first).floats)
        return answers

    def _chunk(self, ops: list[PlannedOp], rows: int, b: Array) -> Iterator[OpOutcome]:
        acc = functions.product(self._left(ops, rows, b.shape[0]), b, self.multiply)
        start = 0
        for op in ops:
            stop = start + _rows(op)
            yield op, self._finished(op, acc[start:stop])
            start = stop

    def _left(self, ops: list[PlannedOp], rows: int, k: int) -> Array:
        """Return the left operands of a chunk, one below the other."""
        if len(ops) == 1:
            floats = _kind(ops[0]).floats
            return functions.oriented(_kind(ops[0]).params, "a", self._operand(ops[0], 0, floats, floats))
        a: Array = np.empty((rows, k), _F32 if _kind(ops[0]).floats else dtypes.numpy_dtype(ops[0].inputs[0].dtype))
        start = 0
        for op in ops:
            stop = start + _rows(op)
            each = self._operand(op, 0, False, _kind(op).floats)
            each = as_f32(each) if each.dtype == _F16 else each
            a[start:stop] = functions.oriented(_kind(op).params, "a", each)
            start = stop
        return a

    def _stack(self, ops: list[PlannedOp]) -> list[OpOutcome]:
        """Multiply small alike pairs as one stack."""
        if len(ops) == 1:
            return self._singly(ops)
        params = _kind(ops[0]).params
        a, b = (np.stack([self._operand(op, which, _kind(op).floats) for op in ops]) for which in (0, 1))
        acc = functions.product(_stacked(params, "a", a), _stacked(params, "b", b), self.multiply)
        return [(op, self._finished(op, tile)) for op, tile in zip(ops, acc, strict=True)]

    def _singly(self, ops: list[PlannedOp]) -> list[OpOutcome]:
        """Multiply pairs one after another."""
        answers = []
        for op in ops:
            a, b = (self._operand(op, which, _kind(op).floats) for which in (0, 1))
            answers.append((op, self._finished(op, functions.accumulate(_kind(op).params, a, b, self.multiply))))
        return answers

    def _finished(self, op: PlannedOp, acc: Array) -> Array | BaseException:
        """Return the result of an op, or what its last steps raised."""
        try:
            others = [self._operand(op, i, False) for i in range(2, len(op.inputs))]
            return functions.finish_gemm(_kind(op).params, acc, [acc, acc, *others])
        except BaseException as error:
            return error

    def _operand(self, op: PlannedOp, number: int, widen: bool, counted_wide: bool | None = None) -> Array:
        """Return one input's data, in f32 with `widen`; kept while more ops of the batch want it in that form."""
        value = op.inputs[number]
        content = value.content()
        key = (id(content), widen if counted_wide is None else counted_wide)
        self._uses[key] -= 1
        last = self._uses[key] <= 0
        held = self._held.pop((key[0], widen), None) if last else self._held.get((key[0], widen))
        if held is None:
            held = _data(content, widen)
            if not last:
                self._held[key[0], widen] = held
        return held

    def _drop(self, value: Value, widen: bool) -> None:
        key = (id(value.content()), widen)
        if self._uses[key] <= 0:
            self._held.pop(key, None)


def _data(content: Value, widen: bool) -> Array:
    """Return the data of a value that phase 2 may read; assemblies are put together without being kept."""
    if isinstance(content, AssemblyValue):
        halves = widen and content.dtype == "f16"
        data = as_f32(content.gather()) if halves else content.gather(_F32 if widen else None)
        data.flags.writeable = False
        return data
    data = content.array()
    return as_f32(data) if widen else data


def _stacked(params: Any, which: str, stack: Array) -> Array:
    if params.get(f"layout_{which}") == "col_major":
        stack = stack.reshape(stack.shape[0], *stack.shape[:0:-1]).swapaxes(1, 2)
    return stack.swapaxes(1, 2) if params.get(f"transpose_{which}") else stack


def _kind(op: PlannedOp) -> Kind:
    assert op.kind is not None, "kinds are known before products are computed"
    return op.kind


def _rows(op: PlannedOp) -> int:
    a = op.inputs[0]
    return a.shape[-1] if _kind(op).params.get("transpose_a") else a.shape[0]


def _size(shape: Sequence[int]) -> int:
    size = 1
    for extent in shape:
        size *= extent
    return size
