"""Values: the immutable contents of memory and of handles, some of them known only after phase 2.

A value is an array, the result of op k, the content of a load, or an assembly of byte regions of other values.
Kernels pass values around without computing them; phase 2 fills in the results. Nothing here computes anything
but copies, and nothing imports the engine.
"""

from __future__ import annotations

from math import prod
from typing import Any, Final

import numpy as np

from kernbench_core.errors import PendingDataError, ShapeError, StoreError
from kernbench_core.values import dtypes
from kernbench_core.values.arrays import Array, Shape
from kernbench_core.values.region import Region, intersect, linked
from kernbench_core.values.strided_copies import covered, paint, paint_converted

OpId = tuple[int, int]


class Value:
    """Root of the family: an immutable tensor of `shape` and `dtype` whose bytes are row-major."""

    __slots__ = ("__weakref__", "dtype", "shape")

    shape: Final[Shape]
    dtype: Final[str]

    def __init__(self, shape: Shape, dtype: str) -> None:
        self.shape = shape
        self.dtype = dtype

    @property
    def nbytes(self) -> int:
        """Bytes of the row-major tensor."""
        return prod(self.shape) * dtypes.itemsize(self.dtype)

    @property
    def pending(self) -> bool:
        """Whether the data exists only after phase 2 (or after a load has completed)."""
        return False

    @property
    def writer(self) -> OpId | None:
        """The op that computes this value; None for data that no op made."""
        return None

    def makers(self) -> tuple[OpId, ...]:
        """Return the ops that made this very tensor: a load where `results` names what computed the loaded data."""
        return () if self.writer is None else (self.writer,)

    def array(self) -> Array:
        """Return the data as a read-only ndarray; PendingDataError when it is not there yet."""
        raise PendingDataError(f"The data of {self} exists only after phase 2; do not read it before.")

    def content(self) -> Value:
        """Return the value that stands behind this one (a bound load gives what it loaded)."""
        return self

    def results(self) -> tuple[ResultValue, ...]:
        """Return the op results that this value is made of, each once, in order of first use."""
        return ()

    def parts(self) -> tuple[Part, ...]:
        """Return the value as byte regions of values that are not made of others."""
        whole = Region(0, self.nbytes)
        return (Part(whole, self, whole),)

    def reshape(self, shape: Shape) -> Value:
        """Return the same row-major bytes under another shape of the same size."""
        if prod(shape) != prod(self.shape):
            raise ShapeError(
                f"A new shape must hold {prod(self.shape)} elements as {self.shape} does, not {shape!r}; "
                "choose one of equal size."
            )
        return self if shape == self.shape else AssemblyValue(shape, self.dtype, self.parts(), makers=self.makers())

    def __repr__(self) -> str:
        state = "pending" if self.pending else "ready"
        return f"{type(self).__name__}({self.dtype}{list(self.shape)}, {state})"


class Part:
    """One piece of an assembly, which never changes: the bytes of `src` in `source` go to those of `dst`, in order."""

    # no attrs class, for speed: every load makes some
    __slots__ = ("dst", "source", "src")

    def __init__(self, dst: Region, source: Value, src: Region) -> None:
        self.dst = dst
        self.source = source
        self.src = src


class ArrayValue(Value):
    """Data that is there: a read-only ndarray, maybe a view of a part (`src`) of another one (`origin`).

    `writer` is the op that made it, where a kernel computed it while it ran.
    """

    __slots__ = ("_array", "_flat", "_writer", "origin", "src")

    def __init__(
        self, array: Array, origin: ArrayValue | None = None, src: Region | None = None, writer: OpId | None = None
    ) -> None:
        super().__init__(array.shape, dtypes.dtype_name(array.dtype))
        self._array = read_only(array) if origin is None else array
        self._flat: Array | None = None
        self._writer = writer
        self.origin = origin
        self.src = src

    @property
    def writer(self) -> OpId | None:
        """The op that made the data; None for data that no op made."""
        return self._writer

    def array(self) -> Array:
        """Return the data."""
        return self._array

    def flat(self) -> Array:
        """Return the row-major bytes as a one-dimensional uint8 array (a view where the data is contiguous)."""
        if self._flat is None:
            self._flat = np.ascontiguousarray(self._array).reshape(-1).view(np.uint8)
        return self._flat

    def parts(self) -> tuple[Part, ...]:
        """Return the value as a region of the array that it is a view of."""
        whole = Region(0, self.nbytes)
        if self.origin is None or self.src is None:
            return (Part(whole, self, whole),)
        return (Part(whole, self.origin, self.src),)


class ResultValue(Value):
    """The result of one op: pending until phase 2 fills it in, pending again once it is released.

    `on_demand` says that kernels may ask for it once its op has ended, as it follows from what was determined before.
    """

    __slots__ = ("_flat", "computed", "data", "on_demand", "op_id")

    def __init__(self, op_id: OpId, shape: Shape, dtype: str, on_demand: bool = False) -> None:
        super().__init__(shape, dtype)
        self.op_id = op_id
        self.on_demand = on_demand
        self.computed = False
        #: The array, None while it is pending.
        self.data: Array | None = None
        self._flat: Array | None = None

    @property
    def pending(self) -> bool:
        """Whether the executor has not filled the result in."""
        return self.data is None

    @property
    def writer(self) -> OpId | None:
        """The op that computes this value."""
        return self.op_id

    def fill(self, array: Array) -> None:
        """Give the computed data; called by the executor only."""
        filled = array if type(array) is np.ndarray else np.asarray(array)  # scalars are of arrays without axes
        filled.flags.writeable = False
        self.data = filled
        self.computed = True

    def release(self) -> None:
        """Drop the data; called by the executor when nobody reads it any more."""
        self.data = self._flat = None

    def array(self) -> Array:
        """Return the data; PendingDataError before phase 2."""
        if self.data is None:
            pe, issue = self.op_id
            raise PendingDataError(
                f"The result of op {issue} of PE {pe} exists only after phase 2; do not read it before."
            )
        return self.data

    def flat(self) -> Array:
        """Return the row-major bytes as a one-dimensional uint8 array."""
        if self._flat is None:
            self._flat = np.ascontiguousarray(self.array()).reshape(-1).view(np.uint8)
        return self._flat

    def results(self) -> tuple[ResultValue, ...]:
        """Return itself."""
        return (self,)


class LoadedValue(Value):
    """What a load gives: made when it is issued, bound to what memory holds when it completes.

    `op_id` is the op that loads, `sources` are the ops that wrote the memory that it found.
    """

    __slots__ = ("_content", "op_id", "sources")

    def __init__(
        self,
        shape: Shape,
        dtype: str,
        content: Value | None = None,
        op_id: OpId | None = None,
        sources: tuple[OpId, ...] = (),
    ) -> None:
        super().__init__(shape, dtype)
        self.op_id = op_id
        self.sources = sources
        self._content: Value | None = None
        if content is not None:
            self.bind(content, sources)

    @property
    def writer(self) -> OpId | None:
        """The op that loads."""
        return self.op_id

    def bind(self, content: Value, sources: tuple[OpId, ...] = ()) -> None:
        """Give what the load found; it must have the shape and dtype of the load. Called once, at completion."""
        if content.shape != self.shape or content.dtype != self.dtype:
            raise ShapeError(
                f"A load of {self.dtype}{list(self.shape)} must be bound to a value of that shape and dtype, "
                f"not {content.dtype}{list(content.shape)}; read memory with the shape of the load."
            )
        self._content = content.content()  # not the other load: a chain of loads would grow with every round trip
        self.sources = sources

    @property
    def bound(self) -> bool:
        """Whether the load has completed."""
        return self._content is not None

    @property
    def pending(self) -> bool:
        """Whether the load has not completed, or what it found is pending."""
        return self._content is None or self._content.pending

    def content(self) -> Value:
        """Return what the load found, or itself before it has completed."""
        return self if self._content is None else self._content.content()

    def array(self) -> Array:
        """Return the data."""
        if self._content is None:
            raise PendingDataError(f"The load of {self.dtype}{list(self.shape)} has not completed; wait for it first.")
        return self._content.array()

    def results(self) -> tuple[ResultValue, ...]:
        """Return the op results behind what the load found."""
        return () if self._content is None else self._content.results()

    def parts(self) -> tuple[Part, ...]:
        """Return the parts of what the load found."""
        return Value.parts(self) if self._content is None else self._content.parts()


class AssemblyValue(Value):
    """Byte regions of other values put together, painted in order; together they must cover it.

    `parts` may name loads and assemblies; they are flattened here, so that an assembly is never deep. The array is
    made when it is first asked for; `pending` if any part is.
    """

    __slots__ = ("_array", "_makers", "_parts", "_results")

    def __init__(
        self,
        shape: Shape,
        dtype: str,
        parts: tuple[Part, ...],
        makers: tuple[OpId, ...] = (),
    ) -> None:
        super().__init__(shape, dtype)
        self._makers = makers
        self._parts = flatten(parts)
        self._array: Array | None = None
        self._results: tuple[ResultValue, ...] | None = None

    @property
    def pending(self) -> bool:
        """Whether any part is pending."""
        return self._array is None and any(p.source.pending for p in self.parts())

    def parts(self) -> tuple[Part, ...]:
        """Return the parts, flattened again when a load among them has completed since."""
        if not _are_leaves(self._parts):
            self._parts = flatten(self._parts)
        return self._parts

    def makers(self) -> tuple[OpId, ...]:
        """Return the ops that made the tensor that this is another shape of."""
        return self._makers

    def results(self) -> tuple[ResultValue, ...]:
        """Return the op results among the parts."""
        if self._results is None:
            found = tuple(dict.fromkeys([r for p in self.parts() for r in p.source.results()]))
            for part in self._parts:
                if type(part.source) is LoadedValue:
                    return found
            self._results = found
        return self._results

    def array(self) -> Array:
        """Return the assembled data, made once; PendingDataError when a part is pending."""
        if self._array is None:
            data = self.gather()
            data.flags.writeable = False
            self._array = data
        return self._array

    def gather(self, dtype: np.dtype[Any] | None = None) -> Array:
        """Assemble into a fresh array that nobody keeps, converted to `dtype` on the way when that is given.

        StoreError where the parts leave a byte open: what stands there would be whatever the host's memory held.
        """
        own = dtypes.numpy_dtype(self.dtype)
        target = own if dtype is None else dtype
        parts = self.parts()
        if not covered([part.dst for part in parts], self.nbytes):
            raise StoreError(
                f"The parts of {self} must cover all of its {self.nbytes} bytes, and leave some open; paint them over "
                "a ground."
            )
        out: Array = np.empty(self.shape, target)
        for part in parts:
            data = _bytes_of(part.source)
            if target == own:
                paint(out.reshape(-1).view(np.uint8), part.dst, data, part.src)
            elif not paint_converted(out, part.dst, data, part.src, own):
                return self.gather().astype(target)
        return out


def read_only(array: Array) -> Array:
    """Return the array, copied once if anybody could still write to it."""
    holder: Any = array
    while isinstance(holder, np.ndarray):
        if holder.flags.writeable:
            copy = np.array(array, order="C")
            copy.flags.writeable = False
            return copy
        holder = holder.base
    return array


def flatten(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """Replace parts of loads, assemblies and views by parts of what they are made of."""
    if _are_leaves(parts):
        return parts
    out: list[Part] = []
    for part in parts:
        out.extend([part] if _is_leaf(part.source) else sub_parts(part.source, part.src, part.dst))
    return tuple(out)


def sub_parts(source: Value, src: Region, dst: Region) -> list[Part]:
    """Return the parts that bring the bytes `src` of `source` to `dst`."""
    content = source.content()
    out: list[Part] = []
    for inner in content.parts():
        if inner.source is content:
            return [Part(dst, content, src)]
        if src == inner.dst:
            out.append(Part(dst, inner.source, inner.src))
            continue
        for at_src, at_inner in intersect(src, inner.dst):
            pairs = linked(dst, at_src, inner.src, at_inner)
            out += [Part(to, inner.source, come) for to, come in pairs]
    return out


def _are_leaves(parts: tuple[Part, ...]) -> bool:
    for part in parts:  # noqa: SIM110 (no generator where it is compiled)
        if not _is_leaf(part.source):
            return False
    return True


def _is_leaf(source: Value) -> bool:
    if isinstance(source, ArrayValue):
        return source.origin is None
    if isinstance(source, LoadedValue):
        return not source.bound
    return not isinstance(source, AssemblyValue)


def _bytes_of(source: Value) -> Array:
    if isinstance(source, ArrayValue | ResultValue):
        return source.flat()
    return np.ascontiguousarray(source.array()).reshape(-1).view(np.uint8)
