"""A tensor in device memory as the host sees it: what it holds, where its shards lie, and how each PE gets its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
import numpy.typing as npt

from kernbench_core.bridge import in_kernel
from kernbench_core.errors import KernelError, NoDataError, PendingDataError, UninitializedReadError, UsageError
from kernbench_core.placement import Layout, Placement
from kernbench_core.regions import Region, runs
from kernbench_core.values import AbstractValue, AssemblyValue, Part, Value

if TYPE_CHECKING:
    from kernbench_core.host_tensors import HostTensors
    from kernbench_core.memory import TensorAllocation

Array = npt.NDArray[Any]


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


class DeviceTensor:
    """Refer to a tensor in device memory, from the host. `shape` is in elements, `dtype` a name like "f16"."""

    def __init__(self, runtime: HostTensors, allocation: TensorAllocation) -> None:
        self._runtime = runtime
        self.allocation = allocation
        self.name = allocation.name
        self.shape: tuple[int, ...] = tuple(allocation.shape)
        self.dtype: str = allocation.dtype

    @property
    def nbytes(self) -> int:
        """Size of one copy in bytes."""
        return self.allocation.nbytes

    @property
    def regions(self) -> tuple[Region, ...]:
        """The physical byte ranges that hold the (first copy of the) tensor, shard by shard."""
        return self.allocation.regions

    @property
    def placement(self) -> tuple[Placement, ...] | None:
        """The placement over sip, cube and pe; None where rows are dealt in blocks because none was given."""
        layout = self.allocation.layout
        return None if layout is None else layout.placements

    @property
    def replicas(self) -> int:
        """How many copies there are."""
        return self.allocation.replicas

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
        if in_kernel():
            raise KernelError(
                f"the value of tensor {self.name!r} must be looked at by the host program, not in a kernel; give the "
                "tensor to the launch, and load it."
            )
        self._runtime.require_live(self)
        if not self._runtime.data:
            return AbstractValue(self.shape, self.dtype)
        try:
            return self._joined(replica)
        except UninitializedReadError:
            raise UninitializedReadError(
                f"tensor {self.name!r} must be written before the host looks at it, and part of it was not; store to "
                "it in a kernel, or make it with rt.zeros."
            ) from None

    def _joined(self, replica: int) -> Value:
        """Put the cells of a copy together to the tensor."""
        layout = self.allocation.layout
        if layout is None or layout.in_order:
            regions = tuple(Region(cell.pa, cell.nbytes) for cell in self.allocation.replica(replica))
            return self._runtime.store.value("hbm", regions, self.shape, self.dtype)
        parts = []
        for held, cell in zip(self._cells(replica), self.allocation.replica(replica), strict=True):
            done = 0
            for place in layout.regions(cell.cell):
                parts.append(Part(place, held, Region(done, place.nbytes)))
                done += place.nbytes
        return AssemblyValue(self.shape, self.dtype, tuple(parts))

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
        if in_kernel():
            raise PendingDataError(
                f"tensor {self.name!r} must be read by the host program, not in a kernel, where its data may not be "
                "computed yet; give the tensor to the launch, and load it."
            )
        self._runtime.require_live(self)
        if not self._runtime.data:
            raise NoDataError(
                f"tensor {self.name!r} has no data in a run that keeps shapes only; leave out --no-data to read it."
            )
        if not 0 <= replica < self.replicas:
            raise UsageError(
                f"tensor {self.name!r} has {self.replicas} copies, and none of number {replica!r}; count from 0."
            )
        self._runtime.settle(self)
        return self._runtime.materialize(self.value(replica))

    def __repr__(self) -> str:
        placed = "rows dealt" if self.placement is None else f"({', '.join(map(str, self.placement))})"
        where = f"{len(self.allocation.segments)} PEs"
        return f"<DeviceTensor {self.name} {self.dtype}{list(self.shape)} placed {placed} over {where}>"


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
