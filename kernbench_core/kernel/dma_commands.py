"""The commands that move tiles between HBM and the scratchpad."""

from __future__ import annotations

from math import prod
from typing import ClassVar

from kernbench_core.callsite import CallSite, describe_site
from kernbench_core.errors import PageFaultError, UninitializedReadError
from kernbench_core.kernel.commands import COMMAND_BYTES, KernelCommand
from kernbench_core.kernel.compute_commands import NO_ADDRESS, Operand, address_of, math_inputs
from kernbench_core.kernel.pe_state import PeState
from kernbench_core.kernel.transfers import Transfer
from kernbench_core.memory.device_memory import DeviceMemory, TensorAllocation
from kernbench_core.memory.elements import check_whole_elements, missing_element, unmapped_element
from kernbench_core.memory.scratchpad import TcmBlock
from kernbench_core.oplog.description import Access, OpDescription, OpPattern, Patterns, handle_of
from kernbench_core.values.dtypes import itemsize
from kernbench_core.values.memory_store import MemoryStore
from kernbench_core.values.region import Region
from kernbench_core.values.value import AssemblyValue, LoadedValue, OpId, Part, ResultValue, Value
from kernbench_core.values.views import FillValue, ground, poison

_DESCRIPTOR_BYTES = 16
_COPIES = Patterns()


def translated(
    memory: DeviceMemory, transfer: Transfer, pe: int, tensor: TensorAllocation, call: str, site: CallSite
) -> tuple[Region, ...]:
    """Give the physical regions of a transfer as a PE sees them; PageFaultError names the element that has none."""
    try:
        return memory.translate(transfer.regions, pe)
    except PageFaultError as error:
        here = f"{call} at {describe_site(site)}"
        raise PageFaultError(unmapped_element(here, tensor, transfer.regions[0].base, error)) from None


class DmaCommand(KernelCommand):
    """Move bytes between HBM and the scratchpad.

    `tensor` is what is accessed in HBM, `regions` are the physical ranges, in order, `total` their bytes, `local` is
    the scratchpad side.
    `dma_op` is "read" or "write", seen from HBM.
    """

    __slots__ = ("local", "regions", "tensor", "total", "value")

    serves: ClassVar[str] = "pe_dma"

    def __init__(
        self,
        op_id: OpId,
        call: str,
        site: CallSite,
        transfer: Transfer,
        tensor: TensorAllocation,
        memory: DeviceMemory,
        block: TcmBlock,
        value: Value,
    ) -> None:
        regions = translated(memory, transfer, op_id[0], tensor, call, site)
        if transfer.dtype != tensor.dtype:
            check_whole_elements(f"{call} at {describe_site(site)}", tensor, regions, transfer.dtype)
        self._begin(op_id, call, site, (block,), COMMAND_BYTES + _DESCRIPTOR_BYTES * len(regions))
        self.tensor = tensor
        self.regions = regions
        self.total = transfer.nbytes
        self.local = block.region
        self.value = value
        if self.total:
            self.memory_uses = ((tensor, transfer.regions, regions, self.dma_op != "read"),)
        self.scratch_uses = (self.local,)

    def _missing(self, error: UninitializedReadError) -> str:
        """Name the element that was to be read and had not been written."""
        tensor, virtual, regions, _ = self.memory_uses[0]
        return missing_element(tensor, virtual, regions, error.missing)

    def _copy(self, name: str, read: Access, write: Access) -> OpDescription:
        """Describe a copy for the op log."""
        value = self.value
        looks = name, value.shape, value.dtype
        pattern = _COPIES.find(looks)
        if pattern is None:
            params: dict[str, object] = {
                "src_addr": NO_ADDRESS,
                "src_space": read.space,
                "dst_addr": NO_ADDRESS,
                "dst_space": write.space,
                "nbytes": 0,
                "shape": value.shape,
                "dtype": value.dtype,
                "handle_id": handle_of(self.op_id),
            }
            pattern = _COPIES.add(looks, OpPattern("memory", name, params, ("src_addr", "dst_addr", "nbytes")))
        return pattern.described((address_of(read), address_of(write), self.total), (read,), write, self.op_id)


class DmaReadCmd(DmaCommand):
    """Bring a tile from HBM to the scratchpad. Memory is sampled when the load completes; later own stores wait for it.

    `fill` is what the elements hold that a mask turns off; a transfer that leaves some out needs it.
    """

    __slots__ = ("_fill", "_source", "_transfer")

    dma_op: ClassVar[str] = "read"

    def __init__(
        self,
        op_id: OpId,
        call: str,
        site: CallSite,
        transfer: Transfer,
        tensor: TensorAllocation,
        memory: DeviceMemory,
        block: TcmBlock,
        fill: FillValue | None = None,
    ) -> None:
        value = LoadedValue(transfer.shape, transfer.dtype, op_id=op_id)
        super().__init__(op_id, call, site, transfer, tensor, memory, block, value)
        self._transfer = transfer
        self._fill = fill
        self._source = value
        if transfer.inside is not None:
            self._source = LoadedValue((transfer.nbytes // itemsize(transfer.dtype),), transfer.dtype, op_id=op_id)

    def land(self, now: float) -> None:
        """Bind the load to what memory holds now."""
        assert isinstance(self.value, LoadedValue)
        source, store = self._source, self.state.store
        try:
            value, writers = store.sample("hbm", self.regions, source.shape, source.dtype)
            source.bind(value, writers)
        except UninitializedReadError as error:
            raise UninitializedReadError(
                f"{self.call} at {describe_site(self.site)} must read memory that was written, and "
                f"{self._missing(error)} was not; store to it first, or make the tensor with rt.zeros."
            ) from None
        if source is self.value:
            return
        if store.data:
            assert self._fill is not None
            self.value.bind(scatter(source.content(), self._transfer, self._fill))
        else:
            self.value.bind(store.value("hbm", self.regions, self.value.shape, self.value.dtype))

    def describe(self) -> OpDescription:
        """Describe the copy for the op log."""
        read, write = Access("hbm", self.regions, self._source), Access("tcm", (self.local,), self.value)
        return self._copy("dma_read", read, write)


class DmaWriteCmd(DmaCommand):
    """Bring a tile from the scratchpad to HBM. It is visible at issue; its time is simulated after."""

    __slots__ = ("stored",)

    dma_op: ClassVar[str] = "write"

    def __init__(
        self,
        op_id: OpId,
        call: str,
        site: CallSite,
        transfer: Transfer,
        tensor: TensorAllocation,
        memory: DeviceMemory,
        block: TcmBlock,
        value: Value,
    ) -> None:
        super().__init__(op_id, call, site, transfer, tensor, memory, block, value)
        self.stored: Value = value if transfer.inside is None else compress(value, transfer)

    def at_issue(self, state: PeState, now: float) -> None:
        """Let the destination hold the value from now on."""
        KernelCommand.at_issue(self, state, now)
        if self.total:
            state.store.write("hbm", self.regions, self.stored, writer=self.op_id)

    def describe(self) -> OpDescription:
        """Describe the copy for the op log."""
        read, write = Access("tcm", (self.local,), self.value), Access("hbm", self.regions, self.stored)
        return self._copy("dma_write", read, write)


class ReadModifyWriteCmd(DmaWriteCmd):
    """Change what memory holds by an op on its old content and on `reads`; a subclass says when that happens.

    `op` is the math op; the command's own record computes it. `stored` is what memory holds then.
    """

    __slots__ = ("old", "op", "reads")

    def __init__(
        self, op_id: OpId, op: str, call: str, site: CallSite, transfer: Transfer, tensor: TensorAllocation,
        memory: DeviceMemory, blocks: tuple[TcmBlock, ...], value: Value, reads: tuple[Access, ...],
    ) -> None:  # fmt: skip
        super().__init__(op_id, call, site, transfer, tensor, memory, blocks[0], value)
        self.stored = ResultValue(op_id, transfer.shape, transfer.dtype)
        self.op = op
        self.reads = reads
        self.old: Value | None = None
        self.blocks = blocks

    def _take(self, store: MemoryStore) -> None:
        """Take what memory holds now as the old content."""
        shape, dtype = self.stored.shape, self.stored.dtype
        content, sources = store.sample("hbm", self.regions, shape, dtype)
        self.old = LoadedValue(shape, dtype, content, self.op_id, sources)

    def _more(self) -> dict[str, object]:
        """Return what the record says beside what all of its kind say."""
        return {}

    def describe(self) -> OpDescription:
        """Describe the op for the op log: inputs are the old content, then the operands."""
        reads, writes = (Access("hbm", self.regions, self.old), *self.reads), Access("hbm", self.regions, self.stored)
        params: dict[str, object] = {
            "op": self.op,
            **math_inputs(reads),
            "dst_addr": address_of(writes),
            "dst_space": "hbm",
            "shape_out": self.stored.shape,
            "dtype": self.stored.dtype,
            "axis": None,
            "keepdims": False,
            **self._more(),
            "nbytes": self.total,
        }
        return OpDescription("math", self.op, params, reads, writes, op_id=self.op_id)


class MaskedStoreCmd(ReadModifyWriteCmd):
    """Store where a mask that only phase 2 knows is true: the old content is read, merged and written back.

    Like any store it is visible at issue, and timed as one.
    """

    __slots__ = ()

    def __init__(
        self, op_id: OpId, call: str, site: CallSite, transfer: Transfer, tensor: TensorAllocation,
        memory: DeviceMemory, block: TcmBlock, value: Value, mask: Operand, mask_block: TcmBlock,
    ) -> None:  # fmt: skip
        reads = (Operand(value, block.region).access, mask.access)
        super().__init__(
            op_id, "masked_store", call, site, transfer, tensor, memory, (block, mask_block), value, reads
        )

    def at_issue(self, state: PeState, now: float) -> None:
        """Take the old content and let the destination hold the merged result, in one instant."""
        self._take(state.store)
        super().at_issue(state, now)

    def _more(self) -> dict[str, object]:
        return {"mask": True}


def scatter(source: Value, moved: Transfer, fill: FillValue) -> Value:
    """Put the moved elements where they belong in the tensor; outside its memory is poison, and `fill` elsewhere."""
    parts = [ground(fill, prod(moved.shape) * fill.nbytes)]
    offset = 0
    for region in moved.inside or ():
        parts.append(Part(region, source, Region(offset, region.nbytes)))
        offset += region.nbytes
    if moved.outside:
        outside = FillValue(poison(moved.dtype))
        for region in moved.outside:
            below = ground(outside, region.nbytes)
            parts.append(Part(region, below.source, below.src))
    return AssemblyValue(moved.shape, moved.dtype, tuple(parts))


def compress(value: Value, moved: Transfer) -> Value:
    """Take the elements that a masked store moves out of its tensor, in order, as one flat value."""
    parts = []
    offset = 0
    for region in moved.inside or ():
        parts.append(Part(Region(offset, region.nbytes), value, region))
        offset += region.nbytes
    return AssemblyValue((moved.nbytes // itemsize(moved.dtype),), moved.dtype, tuple(parts))
