"""Is the data of a collective right? Phase 2 computes it on integers that are exact, and on reals with a tolerance.

The run itself has the integers: in whatever order they are reduced the result is exact, so every element that differs
is wrong. Only an average may be rounded: whether the sum is divided or each contribution before, it is right within
2 x eps of the dtype. Then the same ops are computed again on reals (no second simulation). These are right within
n x eps of the dtype times the sum of the magnitudes of what was added (of a product: of the product), n being the
number of contributions; what is only moved, and a least or greatest element, must be exact. All goes block by block.

What of an input is no output must hold in the end what the rank brought.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from kernbench_ccl.collectives import CallShape, CollectiveKind, exact_inputs
from kernbench_ccl.collectives.inputs import DRAWS, FEW, drawn
from kernbench_ccl.collectives.results import outputs
from kernbench_ccl.reductions import reduced
from kernbench_core.compute import DataExecutor
from kernbench_core.errors import ExecutionError
from kernbench_core.values import Array, ArrayValue, Value, paint
from kernbench_core.values.dtypes import cast, epsilon, info, is_float, itemsize, numpy_dtype, to_compute

_SHOWN = 4
#: Elements that are worked on at once, so that what is between stays in the processor's cache.
_BLOCK = 1 << 16


@frozen
class Data:
    """What is asked: the collective, the dtype, the reduction (None for none), the root, and nccl's count.

    `world` is the number of vectors; where every PE brings one, `each` of them are of one rank.
    """

    kind: CollectiveKind
    dtype: str
    redop: str | None
    root: int
    count: int
    world: int
    each: int = 1

    def name_of(self, vector: int) -> str:
        """Return what sentences call whose vector it is."""
        rank, pe = divmod(vector, self.each)
        return f"rank {rank}" if self.each == 1 else f"PE {pe} of rank {rank}"

    def integers(self) -> list[Array | None]:
        """Return every rank's input of whole numbers whose result is exact; None where a rank has no input."""
        return self._inputs(lambda n, rank: exact_inputs(self.dtype, self.redop, n, self.world, rank))

    def reals(self) -> list[Array | None]:
        """Return every rank's input of reals: those from -4 to 4, for products those around 1."""
        wide: Any = np.float64 if self.dtype == "f64" else np.float32
        least, span = (0.5, 1.0) if self.redop == "product" else (-4.0, 8.0)

        def spread(parts: Array) -> Array:
            return cast(least + span * parts, self.dtype)

        few = spread(np.arange(DRAWS, dtype=wide) / wide(DRAWS)) if itemsize(self.dtype) < 4 else None

        def draw(count: int, rank: int) -> Array:
            generator = np.random.default_rng((1, rank))
            if few is not None:  # no dtype so narrow has more
                return drawn(few, count, generator)
            reals: Array = np.empty(count, numpy_dtype(self.dtype))
            for start in range(0, count, _BLOCK):
                part = reals[start : start + _BLOCK]
                part[:] = spread(generator.random(len(part), wide))
            return reals

        return self._inputs(draw)

    @property
    def call(self) -> CallShape:
        """What decides where the data goes, with a rank for each vector."""
        return CallShape(self.world, self.count, self.redop, self.root)

    def _inputs(self, draw: Callable[[int, int], Array]) -> list[Array | None]:
        counts = [self.kind.in_count(self.call, rank) for rank in range(self.world)]
        return [draw(n, rank) if n else None for rank, n in enumerate(counts)]

    def right(self, inputs: Sequence[Array | None]) -> list[Array | None]:
        """Return what each rank's output must hold; None where it has none."""
        redop, dtype = self.redop or "", numpy_dtype(self.dtype)

        def combine(parts: Sequence[Array]) -> Array:
            return _by_blocks(parts, dtype, lambda block: reduced(block, redop, self.world))

        return outputs(self.kind, self.call, _given(inputs, dtype), combine)

    def tolerance(self, inputs: Sequence[Array | None], integers: bool = False) -> list[Array | None]:
        """Return how far each element of each rank's output may be off, for reals or integers; None for exact."""
        if self.redop not in (("avg",) if integers else ("sum", "avg", "product")):
            return [None] * self.world
        eps, tiny = epsilon(self.dtype), info(self.dtype).least

        def allowed(block: Sequence[Array]) -> Array:
            grow = np.multiply if self.redop == "product" else np.add
            whole = np.abs(to_compute(block[0])).astype(np.float64)
            for part in block[1:]:
                grow(whole, np.abs(to_compute(part)), out=whole)
            terms = FEW if integers else len(block)
            whole *= terms * eps / (self.world if self.redop == "avg" else 1)
            whole += terms * tiny
            return np.asarray(whole)

        def combine(parts: Sequence[Array]) -> Array:
            return _by_blocks(parts, np.dtype(np.float64), allowed)

        given = _given(inputs, numpy_dtype(self.dtype))
        return outputs(self.kind, self.call, given, combine, lambda part: np.zeros(len(part)))


def _given(inputs: Sequence[Array | None], dtype: Any) -> list[Array]:
    """Return all ranks' inputs, an empty one where there is none."""
    return [np.zeros(0, dtype) if array is None else array for array in inputs]


def _by_blocks(vectors: Sequence[Array], dtype: Any, function: Callable[[Sequence[Array]], Array]) -> Array:
    """Compute an elementwise function of vectors, a block at a time."""
    out = np.empty(vectors[0].shape, dtype)
    for start in range(0, len(out), _BLOCK):
        out[start : start + _BLOCK] = function([vector[start : start + _BLOCK] for vector in vectors])
    return out


@frozen
class DataVerdict:
    """How many elements are wrong over all ranks (the more of integers and reals), and where, in sentences."""

    wrong: int
    failures: tuple[str, ...] = ()


@frozen
class Kept:
    """What stands after the launch in elements of a vector's input, from number `start` on, that must be left."""

    vector: int
    start: int
    after: Value


def check(
    data: Data,
    executor: Callable[..., DataExecutor],
    inputs: Mapping[int, Value],
    outputs: Mapping[int, Value],
    integers: Sequence[Array | None],
    kept: Sequence[Kept] = (),
) -> DataVerdict:
    """Compare what each rank's output holds with what is right, on the integers of the run and on reals.

    `executor(inputs=…)` makes an executor of the run; `inputs` and `outputs` are, by rank, what the tensors held before
    the launch and hold after it, `kept` what of inputs was written to and must hold what it held.
    """
    plain = executor()
    plain.run()
    exact = compare(data, plain, outputs, data.right(integers), data.tolerance(integers, integers=True), "integers")
    exact = _both(exact, _changed(data, plain, kept, integers, "integers"))
    if not is_float(data.dtype):
        return exact
    reals = data.reals()
    held = [(inputs[rank], array) for rank, array in enumerate(reals) if array is not None]
    other = executor(inputs=replace_data(held))
    other.run()
    loose = compare(data, other, outputs, data.right(reals), data.tolerance(reals), "reals")
    loose = _both(loose, _changed(data, other, kept, reals, "reals"))
    return DataVerdict(max(exact.wrong, loose.wrong), exact.failures or loose.failures)


def replace_data(held: Iterable[tuple[Value, Array]]) -> dict[ArrayValue, Array]:
    """Return what stands for each ready value under some tensors when each tensor holds another array.

    `held` gives what a tensor holds (`DeviceTensor.value()` before any kernel wrote to it), and the array, of the same
    shape and dtype, that it shall hold instead.
    """
    found: dict[ArrayValue, Array] = {}
    for value, array in held:
        flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        for part in value.parts():
            source = part.source
            if not isinstance(source, ArrayValue) or source.writer is not None:
                raise ExecutionError(
                    "Other data must replace what the host wrote, not what an op computed; take the value of the "
                    "tensor before the launch."
                )
            if source not in found:
                found[source] = np.array(source.array(), order="C")
            paint(found[source].reshape(-1).view(np.uint8), part.src, flat, part.dst)
    for made in found.values():
        made.flags.writeable = False
    return found


def compare(
    data: Data,
    executor: DataExecutor,
    outputs: Mapping[int, Value],
    right: Sequence[Array | None],
    tolerance: Sequence[Array | None] | None,
    what: str,
) -> DataVerdict:
    """Count the elements of all ranks that differ, and say for each rank where and what is there."""
    wrong, silent = 0, 0
    failures: list[str] = []
    last: tuple[Array, Array, NDArray[np.bool_], int] | None = None
    for rank, must_be in enumerate(right):
        if must_be is None:
            continue
        got = executor.materialize(outputs[rank]).reshape(-1)
        allowed = None if tolerance is None else tolerance[rank]
        if last is not None and last[1] is must_be and _same_bits(last[0], got):  # as of most that get the same result
            _, _, differs, count = last
        else:
            differs = _differs(got, must_be, allowed)
            count = int(np.count_nonzero(differs))
            last = got, must_be, differs, count
        wrong += count
        if count and len(failures) < _SHOWN:
            failures.append(_failure(data.name_of(rank), got, must_be, differs, allowed, what))
        elif count:
            silent += 1
    if silent:
        whose = "rank" if data.each == 1 else "PE"
        failures.append(f"and {silent} more {whose}{'s' if silent > 1 else ''}.")
    return DataVerdict(wrong, tuple(failures))


def _changed(
    data: Data, executor: DataExecutor, kept: Sequence[Kept], brought: Sequence[Array | None], what: str
) -> DataVerdict:
    """Count the elements of inputs that do not hold what was brought, and say which."""
    wrong, told = 0, list[str]()
    for part in kept:
        whole = brought[part.vector]
        assert whole is not None, "a rank without an input keeps nothing"
        got = executor.materialize(part.after).reshape(-1)
        must_be = whole[part.start : part.start + len(got)]
        at = np.flatnonzero(_differs(got, must_be, None))
        wrong += len(at)
        if len(at):
            first = int(at[0])
            told.append(
                f"{data.name_of(part.vector)}, {what}: {_where(at + part.start)} of its input of {len(whole)} "
                f"{'was' if len(at) == 1 else 'were'} changed; element {first + part.start} must be "
                f"{_number(must_be[first])}, not {_number(got[first])}."
            )
    if not told:
        return DataVerdict(0)
    more = [f"and {len(told) - _SHOWN} more stretches of inputs."] if len(told) > _SHOWN else []
    advice = "an input must be left as it is; kernbench ccl check says which line stores there."
    return DataVerdict(wrong, (*told[:_SHOWN], *more, advice))


def _both(one: DataVerdict, other: DataVerdict) -> DataVerdict:
    return DataVerdict(one.wrong + other.wrong, (*one.failures, *other.failures))


def _same_bits(one: Array, other: Array) -> bool:
    """Whether arrays hold the same, bit for bit."""
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    these, those = (np.ascontiguousarray(each).reshape(-1).view(np.uint8) for each in (one, other))
    whole = these.size // 8 * 8  # bytes that are compared eight at a time
    return np.array_equal(these[:whole].view(np.uint64), those[:whole].view(np.uint64)) and np.array_equal(
        these[whole:], those[whole:]
    )


def _differs(got: Array, right: Array, allowed: Array | None) -> NDArray[np.bool_]:
    out = np.empty(right.shape, np.bool_)
    for start in range(0, len(out), _BLOCK):
        part = slice(start, start + _BLOCK)
        if _same_bits(got[part], right[part]):
            out[part] = False
        elif allowed is None:
            out[part] = got[part] != right[part]
        else:
            error = np.abs(to_compute(got[part]).astype(np.float64) - to_compute(right[part]).astype(np.float64))
            out[part] = ~(error <= allowed[part])
    return out


def _failure(
    who: str, got: Array, right: Array, differs: NDArray[np.bool_], allowed: Array | None, what: str
) -> str:
    at = np.flatnonzero(differs)
    first = int(at[0])
    within = "" if allowed is None else f" within {float(allowed[first]):.3g}"
    return (
        f"{who}, {what}: {_where(at)} of {len(got)} {'is' if len(at) == 1 else 'are'} wrong; element {first} must be "
        f"{_number(right[first])}{within}, not {_number(got[first])}."
    )


def _where(at: NDArray[np.intp]) -> str:
    """Name elements by their numbers: one, a stretch, or so many of a stretch."""
    first, last, count = int(at[0]), int(at[-1]), len(at)
    if count == 1:
        return f"element {first}"
    return f"elements {first} to {last}" if count == last - first + 1 else f"{count} of the elements {first} to {last}"


def _number(element: Any) -> str:
    return str(element) if element.dtype.kind in "iub" else f"{float(element):.7g}"
