"""Read-modify-writes of elements in HBM."""

from __future__ import annotations

from collections.abc import Sequence

from kernbench_core.callsite import CallSite
from kernbench_core.kernel.commands import Operand, math_inputs
from kernbench_core.kernel.dma_commands import DmaReadCmd, DmaWriteCmd
from kernbench_core.kernel.pe_state import PeState
from kernbench_core.kernel.pointers import Transfer
from kernbench_core.memory.device_memory import DeviceMemory, TensorAllocation
from kernbench_core.memory.scratchpad import TcmBlock
from kernbench_core.oplog.description import Access, OpDescription
from kernbench_core.values.value import LoadedValue, OpId, ResultValue, Value


class AtomicCmd(DmaWriteCmd):
    """Change elements by the operands of lanes: nothing comes between reading and writing, as of a store at its issue.

    `op` is the math op; `reads` are the operands of the lanes and the places that they meet, of `cas` what it compares
    with too. The operands travel to the memory as those of a store do.
    """

    __slots__ = ("old", "op", "reads")

    def __init__(
        self, op_id: OpId, op: str, site: CallSite, transfer: Transfer, tensor: TensorAllocation,
        memory: DeviceMemory, blocks: tuple[TcmBlock, ...], reads: Sequence[Operand],
    ) -> None:  # fmt: skip
        super().__init__(op_id, f"tl.{op}", site, transfer, tensor, memory, blocks[0], reads[0].value)
        self.blocks = blocks
        self.op = op
        self.reads = tuple(reads)
        self.stored = ResultValue(op_id, transfer.shape, transfer.dtype)
        self.old: Value | None = None

    def at_issue(self, state: PeState, now: float) -> None:
        """Take what memory holds, and let it hold the result, in one instant."""
        shape, dtype = self.stored.shape, self.stored.dtype
        content, sources = state.store.sample("hbm", self.regions, shape, dtype)
        self.old = LoadedValue(shape, dtype, content, self.op_id, sources)
        super().at_issue(state, now)

    def describe(self) -> OpDescription:
        """Describe the op for the op log: inputs are the old content, then the operands."""
        reads = (Access("hbm", self.regions, self.old), *(read.access for read in self.reads))
        params: dict[str, object] = {
            "op": self.op,
            **math_inputs(reads),
            "dst_addr": self._hbm_address(),
            "dst_space": "hbm",
            "shape_out": self.stored.shape,
            "dtype": self.stored.dtype,
            "axis": None,
            "keepdims": False,
            "nbytes": self.total,
        }
        writes = Access("hbm", self.regions, self.stored)
        return OpDescription("math", self.op, params, reads, writes, op_id=self.op_id)


class BeforeCmd(DmaReadCmd):
    """Bring what elements held before an atomic op to the scratchpad, as its answer."""

    __slots__ = ("_atomic",)

    def __init__(
        self, op_id: OpId, atomic: AtomicCmd, transfer: Transfer, memory: DeviceMemory, block: TcmBlock
    ) -> None:
        super().__init__(op_id, atomic.call, atomic.site, transfer, atomic.tensor, memory, block)
        self._atomic = atomic

    def memory_uses(self) -> Sequence[tuple[object, ...]]:  # type: ignore[override]
        """Nothing: the atomic op has read."""
        return ()

    def land(self, now: float) -> None:
        """Bind the load to what the atomic op found."""
        old = self._atomic.old
        assert isinstance(old, LoadedValue)
        assert isinstance(self.value, LoadedValue)
        self.value.bind(old.content(), old.sources)
