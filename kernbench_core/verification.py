"""Compare what phase 2 computed with what was expected, and say where it differs and which op made it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import define, field, frozen

from kernbench_core import compute, dtypes
from kernbench_core.errors import KernbenchError
from kernbench_core.oplog import Access, OpRecord
from kernbench_core.regions import Region, intersect
from kernbench_core.values import Array, OpId, Part, ResultValue, Value

if TYPE_CHECKING:
    from kernbench_core.executor import DataExecutor


@frozen(eq=False)
class Expected:
    """What a part of memory must hold. Tolerances default to those of the dtype; integers are compared exactly.

    `value` is what memory holds there, when the caller has it at hand already.
    """

    access: Access
    array: Array
    rtol: float | None = None
    atol: float | None = None
    dtype: str | None = None
    value: Value | None = None


@frozen
class Verification:
    """The verdict: `ok` when nothing differs, how many things were `checked`, the largest error, failures in words."""

    ok: bool
    checked: int
    max_abs_error: float
    failures: tuple[str, ...]

    def __bool__(self) -> bool:
        return self.ok


@define
class _Tally:
    checked: int = 0
    worst: float = 0.0
    failures: list[str] = field(factory=list)

    def verdict(self) -> Verification:
        return Verification(not self.failures, self.checked, self.worst, tuple(self.failures))


def verify_regions(executor: DataExecutor, expected: Mapping[str, Expected | Sequence[Any]]) -> Verification:
    """See `DataExecutor.verify`."""
    tally = _Tally()
    for name, wanted in expected.items():
        tally.checked += 1
        try:
            each = wanted if isinstance(wanted, Expected) else _expected(wanted)
            value = each.value
            if value is None:
                dtype = each.dtype or dtypes.dtype_name(np.asarray(each.array).dtype)
                where: Any = each.access.regions
                where = where[0] if len(where) == 1 and isinstance(where[0], int) else where
                value = executor.store.value(each.access.space, where, each.array.shape, dtype)
            got = executor.materialize(value)
        except KernbenchError as error:
            tally.failures.append(f"{name} must be there to be compared: {error}")
            continue
        problem = _compare(tally, name, got, each)
        if problem is not None:
            text, index = problem
            tally.failures.append(text + _made_by(executor, value, index))
    return tally.verdict()


def verify_ops(executor: DataExecutor, expected: Mapping[OpId, Array] | None) -> Verification:
    """See `DataExecutor.verify_ops`."""
    tally = _Tally()
    for record, result in sorted(executor.results(), key=lambda pair: (pair[0].t_start, pair[1].op_id)):
        if expected is not None and result.op_id not in expected:
            continue
        tally.checked += 1
        wanted = expected[result.op_id] if expected is not None else _alone(executor, record)
        problem = _compare(tally, "the result", result.array(), Expected(Access("", ()), wanted))
        if problem is not None:
            tally.failures.append(f"{problem[0]} It was made by {record}.")
    return tally.verdict()


def _alone(executor: DataExecutor, record: OpRecord) -> Array:
    """Compute one op by itself, a GEMM of floats in f64."""
    inputs = [a.value.array() for a in record.reads if a.value is not None]
    name, function = executor.function(record)
    if name == compute.GEMM and inputs[0].dtype.kind not in "iub":
        a, b = (compute.oriented(record.params, w, x.astype(np.float64)) for w, x in zip("ab", inputs, strict=False))
        return compute.finish_gemm(record.params, (a @ b).astype(np.float32), inputs)
    return np.asarray(function(record.params, inputs))


def _expected(wanted: Sequence[Any]) -> Expected:
    where, array, *tolerances = wanted
    if not isinstance(where, Access):
        space, place = where
        where = Access(space, place if isinstance(place, tuple) else (place,))
    return Expected(where, np.asarray(array), *tolerances)


def _compare(tally: _Tally, name: str, got: Array, each: Expected) -> tuple[str, tuple[int, ...]] | None:
    """Return a sentence and the worst element's index when an array differs from what was expected."""
    want = np.asarray(each.array)
    if got.shape != want.shape:
        return f"{name} must have shape {want.shape}, not {got.shape}.", ()
    if not got.size:
        return None
    dtype = each.dtype or dtypes.dtype_name(got.dtype)
    exact = not dtypes.is_float(dtype)
    rtol = dtypes.tolerance(dtype) if each.rtol is None else each.rtol
    atol = dtypes.tolerance(dtype) if each.atol is None else each.atol
    wide = np.int64 if exact and want.dtype.kind in "iub" else np.float64
    left, right = got.astype(wide), want.astype(wide)
    with np.errstate(all="ignore"):
        error = np.abs(left - right).astype(np.float64)
        same = (left == right) | (np.isnan(left) & np.isnan(right))
        error[same] = 0.0
        near = np.isfinite(right) & (error <= atol + rtol * np.abs(right))
        wrong = ~same if exact else ~(same | near)
    tally.worst = max(tally.worst, float(np.nanmax(np.where(np.isnan(error), np.inf, error))))
    count = int(wrong.sum())
    if not count:
        return None
    ranked = np.where(wrong, np.where(np.isnan(error), np.inf, error), -1.0)
    worst = tuple(int(i) for i in np.unravel_index(int(np.argmax(ranked)), got.shape))
    within = "exactly" if exact else f"within rtol={rtol:g}, atol={atol:g}"
    text = (
        f"{name} must equal what is expected {within}, but {count} of {got.size} elements differ; the worst is "
        f"{list(worst)}: got {left[worst]!s}, expected {right[worst]!s}."
    )
    return text, worst


def _made_by(executor: DataExecutor, value: Value, index: tuple[int, ...]) -> str:
    """Say which op made one element."""
    if len(index) != len(value.shape):
        return ""
    at = int(np.ravel_multi_index(index, value.shape)) if index else 0
    byte = Region(at * dtypes.itemsize(value.dtype), dtypes.itemsize(value.dtype))
    source: Value | None = None
    for part in _under(value, byte):
        source = part.source
    if isinstance(source, ResultValue):
        record = executor.record_of(source)
        if record is not None:
            return f" It was made by {record}."
    return " No op made it: it was written by the host." if source is not None else ""


def _under(value: Value, byte: Region) -> Iterator[Part]:
    for part in value.content().parts():
        if intersect(byte, part.dst):
            yield part
