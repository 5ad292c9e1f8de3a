"""A tensor in device memory as the host sees it: what it holds, where its shards lie, and how each PE gets its own."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeAlias

import attrs
import numpy as np
import numpy.typing as npt

from kernbench_core.errors import KernelError, NoDataError, PendingDataError, UninitializedReadError, UsageError
from kernbench_core.kernel.bridge import in_kernel
from kernbench_core.memory.placement import Layout, Placement
from kernbench_core.process.notebook import Pictured
from kernbench_core.values.arrays import Array
from kernbench_core.values.dtypes import itemsize
from kernbench_core.values.region import Region, runs
from kernbench_core.values.value import AssemblyValue, Part, Value
from kernbench_core.values.views import AbstractValue
from kernbench_core.wording import brief

if TYPE_CHECKING:
    from kernbench_core.memory.device_memory import TensorAllocation
    from kernbench_core.values.memory_store import MemoryStore



@attrs.frozen
class ShardInfo:
    """Say what one PE holds of a tensor: its copy of which part.

    `index` is the slice of each dimension, or None where the part is no box (interleaved); `address` is physical.
    """

    pe: int
    index: tuple[slice, ...] | None
    shape: tuple[int, ...]
    address: int
    nbytes: int


class Holder(Protocol):
    """What a tensor asks of the host program that made it."""

    data: bool
    store: MemoryStore

    def require_live(self, tensor: DeviceTensor) -> None:
        """Raise KernelError when the tensor was freed, or is of another run."""

    def require_unchanged(self, tensor: DeviceTensor) -> None:
        """Raise UsageError when what it holds came too late for who reads it."""

    def settle(self, tensor: DeviceTensor) -> None:
        """Wait, in simulated time, for every running launch that was given the tensor."""

    def materialize(self, value: Value) -> Array:
        """Compute what a value needs, and return its data."""


class DeviceTensor(Pictured):
    """Refer to a tensor in device memory, from the host. `shape` is in elements, `dtype` a name like "f16"."""

    def __init__(self, runtime: Holder, allocation: TensorAllocation) -> None:
        self._runtime = runtime
        self._allocation = allocation
        self._unfinished: list[Callable[[], object]] = []
        self.name = allocation.name
        self.shape: tuple[int, ...] = tuple(allocation.shape)
        self.dtype: str = allocation.dtype

    @property
    def allocation(self) -> TensorAllocation:
        """Where it lies. Everything that uses the tensor asks for it; what has to be finished first is finished now."""
        if self._unfinished:
            pending, self._unfinished = self._unfinished, []
            try:
                for finish in pending:
                    finish()
            except BaseException:
                self._unfinished = pending
                raise
        return self._allocation

    def before_use(self, finish: Callable[[], object]) -> None:
        """Have `finish` called once, when the tensor is used next; for what still has to be copied into it."""
        self._unfinished.append(finish)

    @property
    def nbytes(self) -> int:
        """Size of one copy in bytes."""
        return self._allocation.nbytes

    def __eq__(self, other: object) -> bool:
        """Tell whether it is the same tensor; UsageError for data, which `numpy()` has to be compared with."""
        if isinstance(other, int | float | np.generic | np.ndarray | list):
            raise UsageError(
                f"tensor {self.name!r} must be compared by its data; write {self.name}.numpy() == …, or use rt.check."
            )
        return self is other

    __hash__ = object.__hash__

    def __getitem__(self, key: object) -> TensorPart:
        """Refer to some rows, as in `x[2:5]`; UsageError for any other index."""
        start, stop = _rows_of(self.name, self.shape, key)
        return TensorPart(self, start, stop)

    @property
    def regions(self) -> tuple[Region, ...]:
        """The physical byte ranges that hold the (first copy of the) tensor, shard by shard."""
        return self.allocation.regions

    @property
    def placement(self) -> tuple[Placement, ...] | None:
        """The placement over sip, cube and pe; None where rows are dealt in blocks because none was given."""
        layout = self._allocation.layout
        return None if layout is None else layout.placements

    @property
    def replicas(self) -> int:
        """How many copies there are."""
        return self._allocation.replicas

    @property
    def shards(self) -> tuple[ShardInfo, ...]:
        """What each PE holds, in PE order; a PE that holds nothing is left out."""
        layout = self.allocation.layout
        assert layout is not None
        found = []
        for held in self.allocation.segments:
            index, shape = layout.index(held.cell, self.shape), layout.shape_of(held.cell, self.shape)
            found.append(ShardInfo(held.pe, index, shape, held.pa, held.nbytes))
        return tuple(found)

    def local_shape(self, pe: int = 0) -> tuple[int, ...]:
        """Return the shape of what the PE of this index holds, flat where it is no box; UsageError if nothing."""
        for shard in self.shards:
            if shard.pe == pe:
                return shard.shape
        held = [shard.pe for shard in self.shards]
        raise UsageError(
            f"tensor {self.name!r} has shards on PEs {held[0]} to {held[-1]}, not on PE {pe!r}; ask for one of these."
        )

    def to_local(self) -> LocalTensor:
        """Refer to each PE's own shard: given to a launch, every program gets a pointer to that of its PE."""
        return LocalTensor(self)

    def value(self, replica: int = 0) -> Value:
        """Return what a copy holds now, computed or not; UninitializedReadError when part was not written."""
        return self._held(replica)()

    def _held(self, replica: int) -> Callable[[], Value]:
        """Return a function that gives what a copy holds now; raises as `value` does.

        What takes long, to put the parts of a tensor in order that its cells do not hold in order, waits for the call.
        """
        if in_kernel():
            raise KernelError(
                f"the value of tensor {self.name!r} must be read by the host program, not in a kernel; give the "
                "tensor to the launch, and load it."
            )
        self._runtime.require_live(self)
        if not self._runtime.data:
            return lambda: AbstractValue(self.shape, self.dtype)
        try:
            return self._joined(replica)
        except UninitializedReadError as error:
            raise self._unwritten(self.name, error, replica) from None

    def _unwritten(self, name: str, error: UninitializedReadError, replica: int = 0) -> UninitializedReadError:
        """Return what says of a tensor, or of a part called so, that an element was not written."""
        layout, first, which = self.allocation.layout, min(error.missing, default=(0, 0, 0, 0))[0], "part of it"
        at = 0
        for cell in self.allocation.replica(replica) if layout is None or layout.in_order else ():
            if cell.pa <= first < cell.pa + cell.nbytes:
                index = np.unravel_index((at + first - cell.pa) // itemsize(self.dtype), self.shape)
                element = f"element {[int(each) for each in index]}"
                which = f"its {element}" if name == self.name else f"{element} of {self.name!r}"
            at += cell.nbytes
        return UninitializedReadError(
            f"tensor {name!r} must be written before the host reads it, and {which} was not; store to it in a "
            "kernel, or make it with rt.zeros.",
            error.missing,
        )

    def _joined(self, replica: int) -> Callable[[], Value]:
        """Put the cells of a copy together to the tensor."""
        layout, places = self.allocation.layout, self.allocation.replica(replica)
        if layout is None or layout.in_order:
            regions = tuple(Region(cell.pa, cell.nbytes) for cell in places)
            value = self._runtime.store.value("hbm", regions, self.shape, self.dtype)
            return lambda: value
        cells = self._cells(replica)

        def join() -> Value:
            parts = []
            for held, cell in zip(cells, places, strict=True):
                done = 0
                for place in layout.regions(cell.cell):
                    parts.append(Part(place, held, Region(done, place.nbytes)))
                    done += place.nbytes
            return AssemblyValue(self.shape, self.dtype, tuple(parts))

        return join

    def _cells(self, replica: int) -> tuple[Value, ...]:
        """Return what the cells of a copy hold."""
        layout, store = self.allocation.layout, self._runtime.store
        assert layout is not None
        return tuple(
            store.value("hbm", Region(cell.pa, cell.nbytes), layout.shape_of(cell.cell, self.shape), self.dtype)
            for cell in self.allocation.replica(replica)
        )

    def distinct(self) -> dict[int, Value]:
        """Return the value of the first copy, and of each that does not hold the very same values, by its number."""
        found = {0: self.value()}
        if self.replicas == 1 or not self._runtime.data:
            return found
        seen = {self._cells(0)}
        for replica in range(1, self.replicas):
            value = self.value(replica)
            held = self._cells(replica)
            if held not in seen:
                seen.add(held)
                found[replica] = value
        return found

    def numpy(self, replica: int = 0) -> Array:
        """Return the tensor's content, shape and dtype as declared; costs no simulated time.

        Waits, in simulated time, for launches that are still running with this tensor; then computes
        just what it needs. After the run it costs nothing either. Of several copies it is the first, or that of
        number `replica`. Raise NoDataError in a run without data, PendingDataError in a kernel, and KernelError after
        `rt.free`.
        """
        self._readable(self.name)
        if not 0 <= replica < self.replicas:
            raise UsageError(
                f"tensor {self.name!r} has {self.replicas} copies, and no copy {replica!r}; count from 0."
            )
        self._runtime.settle(self)
        return self._runtime.materialize(self.value(replica))

    def snapshot(self) -> Callable[[], Array]:
        """Return a function that gives the content as it is now, whatever is written later; it computes when called.

        Waits as `numpy()` does. For the references of `rt.check`: `before = x.snapshot()`.
        """
        self._readable(self.name, data=False)
        self._runtime.settle(self)
        if not self._runtime.data:
            return self.numpy  # which says that there is no data
        held = self._held(0)
        return lambda: self._runtime.materialize(held())

    def _readable(self, name: str, *, data: bool = True) -> None:
        """Raise a sentence when the host cannot read the data now; `name` is what it calls the tensor, or its part.

        Without `data` it is not read now.
        """
        if in_kernel():
            raise PendingDataError(
                f"tensor {name!r} must be read by the host program, not in a kernel, where its data may not be "
                "computed yet; give the tensor to the launch, and load it."
            )
        self._runtime.require_live(self)
        self._runtime.require_unchanged(self)
        if data and not self._runtime.data:
            raise NoDataError(
                f"tensor {name!r} has no data in a run that keeps shapes only; leave out --no-data to read it."
            )

    def rows(self, start: int, stop: int) -> Array:
        """Return the content of some rows as `numpy()` does; the others need not have been written."""
        name = f"{self.name}[{start}:{stop}]"
        self._readable(name)
        self._runtime.settle(self)
        layout, shape = self.allocation.layout, (stop - start, *self.shape[1:])
        if layout is not None and not layout.in_order:
            return self._runtime.materialize(self.value())[start:stop]
        row = self.nbytes // self.shape[0]
        regions, at = [], 0
        for cell in self.allocation.replica(0):
            low, high = max(start * row, at), min(stop * row, at + cell.nbytes)
            if low < high:
                regions.append(Region(cell.pa + low - at, high - low))
            at += cell.nbytes
        try:
            return self._runtime.materialize(self._runtime.store.value("hbm", tuple(regions), shape, self.dtype))
        except UninitializedReadError as error:
            raise self._unwritten(name, error) from None

    def __repr__(self) -> str:
        placed = "rows dealt" if self.placement is None else f"({', '.join(map(str, self.placement))})"
        where = f"{len(self._allocation.segments)} PEs"
        return f"<DeviceTensor {self.name} {self.dtype}{list(self.shape)} placed {placed} over {where}>"


ArrayOrTensor: TypeAlias = npt.NDArray[Any] | DeviceTensor
"""What an array parameter of a bench may be given: an array, or a tensor that is on the device already."""


class TensorPart:
    """Refer to rows of a tensor, as `x[2:5]` does: what `dist` moves data into and out of, and `numpy()` reads.

    `tensor` is the whole, `start` the number of its element that the part begins with. What cannot take a part says so.
    """

    def __init__(self, tensor: DeviceTensor, first: int, stop: int) -> None:
        self.tensor = tensor
        self.name = f"{tensor.name}[{first}:{stop}]"
        self.shape: tuple[int, ...] = (stop - first, *tensor.shape[1:])
        self.dtype = tensor.dtype
        self.nbytes = tensor.nbytes // tensor.shape[0] * (stop - first)
        self.start = first * math.prod(tensor.shape[1:])
        self._rows = first, stop

    def numpy(self) -> Array:
        """Return the content of the part; waits and costs as `numpy()` of the whole tensor."""
        return self.tensor.rows(*self._rows)

    def __getitem__(self, key: object) -> TensorPart:
        """Refer to rows of the part, as in `x[2:5][0:1]`; UsageError for any other index."""
        start, stop = _rows_of(self.name, self.shape, key)
        return TensorPart(self.tensor, self._rows[0] + start, self._rows[0] + stop)

    def refuse(self) -> NoReturn:
        """Raise UsageError: the caller takes whole tensors only."""
        raise UsageError(
            f"{self.name} is a part of tensor {self.tensor.name!r}: only numpy() and dist calls accept parts; give the "
            f"whole tensor, and add {self.start} to its pointer in the kernel."
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        self.refuse()

    def __repr__(self) -> str:
        return f"<TensorPart {self.name} {self.dtype}{list(self.shape)}>"


def _rows_of(name: str, shape: tuple[int, ...], key: object) -> tuple[int, int]:
    """Return the first row of a slice and the one after its last; UsageError for an index that is no such slice."""
    if isinstance(key, slice) and shape:
        with suppress(TypeError):
            start, stop, step = key.indices(shape[0])
            if step == 1 and start < stop:
                return start, stop
    shown = brief(key)
    if isinstance(key, slice):
        ends = [key.start, key.stop] if key.step is None else [key.start, key.stop, key.step]
        shown = ":".join("" if end is None else brief(end, 40) for end in ends)
    raise UsageError(
        f"tensor {name!r} of shape {list(shape)} must be indexed by a slice of at least one row, as in [0:1], not by "
        f"[{shown}]; read elements from numpy()."
    )


class LocalTensor:
    """Refer to the shard that each PE holds of `tensor`; made by `tensor.to_local()`, for a launch."""

    def __init__(self, tensor: DeviceTensor) -> None:
        self.tensor = tensor

    def __repr__(self) -> str:
        return f"<the local shards of {self.tensor!r}>"


def cell_of(whole: Array, layout: Layout, cell: int) -> Array:
    """Return what a cell holds of a row-major array: a view where it is a box or lies together, else a copy."""
    flat = whole.reshape(-1)
    if layout.placements is None:
        start, nbytes = layout.regions(cell)[0].base, layout.size(cell)
        return flat[start // whole.itemsize : (start + nbytes) // whole.itemsize]
    index = layout.index(cell, whole.shape)
    if index is not None:
        return whole[index]
    pieces = [run for region in layout.regions(cell) for run in runs(region)]
    joined = np.concatenate([flat[at // whole.itemsize : (at + size) // whole.itemsize] for at, size in pieces])
    joined.flags.writeable = False
    return joined
