"""Compare what phase 2 computed with what was expected, and say where it differs and which op made it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from attrs import define, evolve, field, frozen

from kernbench_core.errors import ExecutionError, KernbenchError, LimitError
from kernbench_core.oplog.description import Access
from kernbench_core.oplog.log import OpRecord
from kernbench_core.values import dtypes
from kernbench_core.values.arrays import Array
from kernbench_core.values.lineage import element_of
from kernbench_core.values.memory_store import MemoryStore
from kernbench_core.values.value import ResultValue, Value
from kernbench_core.values.views import FillValue

#: Stretches of wrong elements that are spelled; of more, the others are counted.
_MOST_STRETCHES = 6
#: Elements that are compared at once: what is worked out of them stays in a processor's cache.
_AT_ONCE = 1 << 15


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


@frozen(eq=False)
class Failure:
    """One thing that is wrong: its name, and what is wrong with it, in words that follow the name.

    Where elements differ, `value` is what holds them, `worst` the index of the worst; `maker` says which op made it.
    """

    name: str
    words: str
    maker: str = ""
    value: Value | None = None
    worst: tuple[int, ...] | None = None

    def __str__(self) -> str:
        return f"{self.name} {self.words}{self.maker}"


@frozen
class Verification:
    """The verdict: `ok` when nothing differs, how many things were `checked`, the largest error, failures in words.

    `found` are the failures taken apart.
    """

    ok: bool
    checked: int
    max_abs_error: float
    failures: tuple[str, ...]
    found: tuple[Failure, ...] = field(default=(), eq=False, repr=False)

    @property
    def wrong(self) -> int:
        """How many of the things checked are wrong; failures that are alike may be told once."""
        return len(self.found) or len(self.failures)

    def __bool__(self) -> bool:
        return self.ok


@define
class _Tally:
    checked: int = 0
    worst: float = 0.0
    failures: list[Failure] = field(factory=list)

    def verdict(self) -> Verification:
        found = tuple(self.failures)
        return Verification(not found, self.checked, self.worst, tuple(map(str, found)), found)


class _Computed(Protocol):
    """What a comparison needs of who computed: the memory after the log, data of values, and who made them."""

    @property
    def store(self) -> MemoryStore:
        """Memory after the log."""

    def materialize(self, value: Value) -> Array:
        """Return the data of a value."""

    def record_of(self, result: ResultValue) -> OpRecord | None:
        """Return the record that computes a result, if the log has it."""


def verify_regions(computed: _Computed, expected: Mapping[str, Expected | Sequence[Any]]) -> Verification:
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
                value = computed.store.value(each.access.space, where, each.array.shape, dtype)
            got = computed.materialize(value)
        except (ExecutionError, LimitError):
            raise
        except KernbenchError as error:
            tally.failures.append(Failure(name, f"must be there to be compared: {error}"))
            continue
        failure = _compare(tally, name, got, each)
        if failure is not None:
            maker = "" if failure.worst is None else _made_by(computed, value, failure.worst)
            tally.failures.append(evolve(failure, value=value, maker=maker))
    return tally.verdict()


def _expected(wanted: Sequence[Any]) -> Expected:
    where, array, *tolerances = wanted
    if not isinstance(where, Access):
        space, place = where
        where = Access(space, place if isinstance(place, tuple) else (place,))
    return Expected(where, np.asarray(array), *tolerances)


def _compare(tally: _Tally, name: str, got: Array, each: Expected) -> Failure | None:
    """Say how an array differs from what was expected, None when it does not."""
    want = np.asarray(each.array)
    if got.shape != want.shape:
        return Failure(name, f"must have shape {want.shape}, not {got.shape}.")
    if not got.size:
        return None
    dtype = each.dtype or dtypes.dtype_name(got.dtype)
    exact = not dtypes.is_float(dtype)
    rtol = dtypes.tolerance(dtype) if each.rtol is None else each.rtol
    atol = dtypes.tolerance(dtype) if each.atol is None else each.atol
    wrong = False
    with np.errstate(all="ignore"):  # what memory held before may be a signalling NaN, which a cast tells of
        for one, other in _pieces(got, want):
            error, apart = _judged(_wide(one, exact), _wide(other, exact), exact, rtol, atol)
            tally.worst = max(tally.worst, float(np.nanmax(np.where(np.isnan(error), np.inf, error))))
            wrong = wrong or bool(apart.any())
        if not wrong:
            return None
        left, right = _wide(got, exact), _wide(want, exact)
        error, apart = _judged(left, right, exact, rtol, atol)
    worst, words = difference(apart, error, left, right)
    within = "exactly" if exact else f"within rtol={rtol:g}, atol={atol:g}"
    return Failure(name, f"must equal what is expected {within}, but {words}", worst=worst)


def _pieces(got: Array, want: Array) -> Iterator[tuple[Array, Array]]:
    """Yield what two arrays of one shape hold, so much at once as a processor's cache does."""
    one, other = got.reshape(-1), want.reshape(-1)
    for start in range(0, one.size, _AT_ONCE):
        yield one[start : start + _AT_ONCE], other[start : start + _AT_ONCE]


def _wide(array: Array, exact: bool) -> Array:
    return array if exact and array.dtype.kind in "iub" else array.astype(np.float64)


def _judged(left: Array, right: Array, exact: bool, rtol: float, atol: float) -> tuple[Array, Array]:
    """Return how far apart elements are, and which of them are too far."""
    same = _equal(left, right) | (np.isnan(left) & np.isnan(right))
    error = np.where(same, 0.0, distance(left, right))
    near = np.isfinite(right) & (error <= atol + rtol * np.abs(right))
    return error, ~same if exact else ~(same | near)


def _equal(left: Array, right: Array) -> Array:
    """Return which elements are equal; of integers and floats, too, where numpy rounds the integers to f64."""
    same: Array = left == right
    if left.dtype.kind in "iu" and right.dtype.kind == "f":
        same &= (right < float(np.iinfo(left.dtype).max) + 1) & (right.astype(left.dtype) == left)
    return same


def distance(left: Array, right: Array) -> Array:
    """Return how far apart elements are, as f64: of integers of one sign the exact distance, rounded once."""
    found: Array
    kinds = left.dtype.kind + right.dtype.kind
    if not set(kinds) <= set("iub"):
        found = np.abs(left.astype(np.float64, copy=False) - right.astype(np.float64, copy=False))
    elif np.uint64 in (left.dtype, right.dtype) and "i" in kinds:
        signed, other = (left, right) if left.dtype.kind == "i" else (right, left)
        below = np.maximum(-signed.astype(np.float64), 0.0)
        found = below + distance(np.maximum(signed, 0).astype(np.uint64), other)
    else:
        both = np.uint64 if np.uint64 in (left.dtype, right.dtype) else np.int64
        one, other = left.astype(both), right.astype(both)
        # two's complement: as unsigned the difference is right even where it does not fit into int64
        found = (np.maximum(one, other) - np.minimum(one, other)).astype(np.uint64).astype(np.float64)
    return found


def difference(wrong: Array, error: Array, left: Array, right: Array) -> tuple[tuple[int, ...], str]:
    """Return the index of the worst of the elements that are `wrong`, and say how many and which there are."""
    ranked = np.where(wrong, np.where(np.isnan(error), np.inf, error), -1.0)
    worst = tuple(int(i) for i in np.unravel_index(int(np.argmax(ranked)), wrong.shape))
    count = int(wrong.sum())
    where = f": {_stretches(wrong)}" if count > 1 else ""
    return worst, (
        f"{count} of {wrong.size} elements differ{where}; the worst is {list(worst)}: got {left[worst]!s}, "
        f"expected {right[worst]!s}."
    )


def _stretches(wrong: np.ndarray[Any, np.dtype[np.bool_]]) -> str:
    """Spell which elements are true: 519-521 in a vector, [3, 17] to [3, 20], row by row, in more dimensions."""
    at = np.flatnonzero(wrong)
    breaks = np.flatnonzero(np.diff(at) > 1)
    firsts, lasts = at[np.concatenate(([0], breaks + 1))], at[np.concatenate((breaks, [len(at) - 1]))]

    def index(number: int) -> str:
        return str(number) if wrong.ndim < 2 else str([int(i) for i in np.unravel_index(number, wrong.shape)])

    to = "-" if wrong.ndim < 2 else " to "
    pairs = zip(firsts[:_MOST_STRETCHES].tolist(), lasts.tolist(), strict=False)
    told = [index(first) if first == last else f"{index(first)}{to}{index(last)}" for first, last in pairs]
    more = len(firsts) - len(told)
    return ", ".join(told) + (f" and {more} more stretch{'es' if more > 1 else ''}" if more else "")


def _made_by(computed: _Computed, value: Value, index: tuple[int, ...]) -> str:
    """Say which op made one element."""
    if len(index) != len(value.shape):
        return ""
    element = element_of(value, index).source()
    source = None if element is None else element.value
    if isinstance(source, ResultValue):
        record = computed.record_of(source)
        if record is not None:
            return f" It was made by {record}."
    if isinstance(source, FillValue):
        return " No op made it: a mask turned it off, and it is the `other` of a load."
    return " No op made it: it was written by the host." if source is not None else ""
