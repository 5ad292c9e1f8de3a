"""Read-modify-writes of elements in HBM, made by the memory that owns them when it serves them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, ClassVar, Final

import numpy as np

from kernbench_core.callsite import CallSite, describe_site
from kernbench_core.compute import functions
from kernbench_core.errors import UninitializedReadError
from kernbench_core.kernel.compute_commands import Operand, math_inputs
from kernbench_core.kernel.dma_commands import DmaCommand, ReadModifyWriteCmd
from kernbench_core.kernel.pe_state import PeState
from kernbench_core.kernel.transfers import Transfer, gather_regions
from kernbench_core.memory.atomic_access import AtomicTransaction, Int64s
from kernbench_core.memory.device_memory import DeviceMemory, TensorAllocation
from kernbench_core.memory.scratchpad import TcmBlock
from kernbench_core.messages import MsgBase
from kernbench_core.oplog.description import Access, OpDescription
from kernbench_core.values.dtypes import is_float, itemsize, numpy_dtype
from kernbench_core.values.region import Region
from kernbench_core.values.value import ArrayValue, AssemblyValue, OpId, Part, ResultValue, Value
from kernbench_core.values.views import AbstractValue, FillValue, ground

#: What an op orders for hazards, as Triton's `sem` says it.
ORDERS: Final = ("acq_rel", "acquire", "release", "relaxed")


def addresses_of(regions: Sequence[Region], item: int) -> Int64s:
    """Return the address of each element of `item` bytes of some regions, in order."""
    if len(regions) == 1 and regions[0].nbytes == item:
        return np.array((regions[0].base,))
    each = [
        (region.base + region.pitch * np.arange(region.rows)[:, None] + np.arange(0, region.row_bytes, item)).ravel()
        for region in regions
    ]
    return np.concatenate(each)


class Lanes:
    """Lanes of a tile of `shape` that change elements: their `positions` in it, and the `places` that they meet.

    `whole` says that no lane of the tile is left out. `operand` are the places, as they come with the command; `turns`
    is how many lanes meet in each.
    """

    __slots__ = ("operand", "positions", "turns", "whole")

    def __init__(self, shape: tuple[int, ...], positions: Int64s, places: Int64s) -> None:
        self.positions = positions
        self.whole = bool(positions.size == prod(shape))
        self.operand = Operand(ArrayValue(places.reshape(shape if self.whole else (-1,))), None).access
        self.turns = np.bincount(places)

    def inside(self, item: int) -> tuple[Region, ...]:
        """Return where the lanes lie in the row-major tile, of elements of `item` bytes."""
        return gather_regions(self.positions * item, item)

    def of(self, tile: Operand) -> Access:
        """Return what the lanes have of a tile, and where."""
        whole = tile.access
        if self.whole:
            return whole
        regions, parts, at = self.inside(itemsize(tile.value.dtype)), [], 0
        for region in regions:
            parts.append(Part(Region(at, region.nbytes), tile.value, region))
            at += region.nbytes
        value = AssemblyValue(self.positions.shape, tile.value.dtype, tuple(parts))
        where = () if tile.region is None else tuple(region.shifted(tile.region.base) for region in regions)
        return Access(whole.space, where, value)


#: That of a lock, a flag or a counter.
ONE_LANE: Final = Lanes((), np.zeros(1, np.int64), np.zeros(1, np.int64))


class AtomicCmd(ReadModifyWriteCmd):
    """Change elements of one memory by the operands of lanes, when that memory serves the command.

    `reads` are the operands of the lanes and the places that they meet, of `cas` what it compares with too. Results of
    integers that are there are computed at once, as a kernel may branch on them; others are left to phase 2. With
    `answer` what the lanes found is brought back. `order` is one of `ORDERS`.
    """

    __slots__ = ("_order", "_place", "_turn_ns", "answer", "lanes", "sent")

    dma_op: ClassVar[str] = "atomic"
    publishes: ClassVar[bool] = True
    #: It takes as long as what it sends.
    timed_as: ClassVar[type[MsgBase]] = AtomicTransaction

    def __init__(
        self, op_id: OpId, op: str, site: CallSite, transfer: Transfer, tensor: TensorAllocation,
        memory: DeviceMemory, blocks: tuple[TcmBlock, ...], lanes: Lanes, operands: Sequence[Operand],
        order: str = "acq_rel",
    ) -> None:  # fmt: skip
        new, *compared = [lanes.of(each) for each in operands]
        reads = (new, lanes.operand, *compared)
        super().__init__(op_id, op, f"tl.{op}", site, transfer, tensor, memory, blocks, operands[0].value, reads)
        self.lanes = lanes
        self._order = order
        #: Bytes of the operands, which travel to the memory.
        self.sent = sum([access.value.nbytes for access in (new, *compared) if access.value is not None])
        self.answer: AtomicAnswer | None = None
        #: Its place among all atomic ops of the run, and when it had its turn.
        self._place, self._turn_ns = -1, 0.0

    def transaction(self, path: tuple[str, ...], on_done: Callable[[Any], None]) -> AtomicTransaction:
        """Make what is sent to the memory that owns the elements, by the path to it."""
        item = itemsize(self.stored.dtype)
        returned = 0 if self.answer is None else self.lanes.positions.size * item
        return AtomicTransaction(
            self.regions, path, on_done,
            addresses=addresses_of(self.regions, item), turns=self.lanes.turns, sent=self.sent,
            returned=returned, turn=self._turn, answer=self.answer,
        )  # fmt: skip

    def at_issue(self, state: PeState, now: float) -> None:
        """Have nothing happen yet: the elements change when the memory serves the command."""
        DmaCommand.at_issue(self, state, now)
        if state.hazards is not None and self._single and self._order in ("acq_rel", "release"):
            state.hazards.publish(self.op_id)

    @property
    def _single(self) -> bool:
        """Whether it changes one element: a lock, a flag or a counter, which orders programs."""
        return self.total == itemsize(self.stored.dtype)

    def _turn(self, now: float) -> None:
        """Take what memory holds and let it hold the result, in one instant; called by the memory, in its order."""
        state, self._turn_ns = self.state, now
        self._place, state.kernels.turns = state.kernels.turns, state.kernels.turns + 1
        try:
            self._take(state.store)
        except UninitializedReadError as error:
            self.error = UninitializedReadError(
                f"{self.call} at {describe_site(self.site)} must change memory that was written, and "
                f"{self._missing(error)} was not; store to it first, or make the tensor with rt.zeros."
            )
            self.old = AbstractValue(self.stored.shape, self.stored.dtype)
            return
        self._compute(state)
        state.store.write("hbm", self.regions, self.stored, writer=self.op_id)
        self._learn(state)

    def _compute(self, state: PeState) -> None:
        """Compute results of integers that are there; name those of phase 2 else."""
        assert self.old is not None
        inputs = [self.old, *[access.value for access in self.reads if access.value is not None]]
        known = state.store.data and not is_float(self.stored.dtype)
        known = known and not any(value.pending or value.results() for value in inputs)
        arrays = [value.array() for value in inputs] if known else []
        if known:
            params = {"dtype": self.stored.dtype, "shape_out": self.stored.shape}
            self.stored = ArrayValue(functions.evaluate(self.op, params, arrays), writer=self.op_id)
        if self.answer is not None:
            self.answer.come(self, arrays, data=state.store.data)

    def _learn(self, state: PeState) -> None:
        """Come after what left the element that this one found, where both change a single one."""
        assert self.old is not None
        sources: tuple[OpId, ...] = getattr(self.old, "sources", ())
        if state.hazards is not None and len(sources) == 1 and self._single:
            learn = self.answer is not None and self._order in ("acq_rel", "acquire")
            if state.hazards.passed(sources[0], self.op_id, learn=learn):
                self.after = self.op_id

    def _more(self) -> dict[str, object]:
        return {"turn": self._place, "turn_ns": self._turn_ns}


class AtomicAnswer(MsgBase):
    """What lanes of an atomic op found, on its way to the scratchpad: logged when it is there, an op of its own."""

    __slots__ = ("_atomic", "_dst", "op_id", "site", "value")

    data_op: ClassVar[bool] = True

    def __init__(self, op_id: OpId, atomic: AtomicCmd, block: TcmBlock) -> None:
        super().__init__()
        self.op_id = op_id
        self.site = atomic.site
        self._atomic = atomic
        self.value: Value = AbstractValue((), atomic.stored.dtype)
        self._dst = block.region

    @property
    def origin(self) -> MsgBase:
        """The atomic op."""
        return self._atomic

    def come(self, atomic: AtomicCmd, inputs: Sequence[Any], *, data: bool) -> None:
        """Take what the lanes found, given what the op and its operands are if that is there now."""
        new = atomic.reads[0].value
        assert new is not None
        shape, dtype = new.shape, atomic.stored.dtype
        if inputs:
            params = {"dtype": dtype, "shape_out": shape, "how": self._how}
            self.value = ArrayValue(functions.evaluate("atomic_before", params, inputs), writer=self.op_id)
        else:
            self.value = ResultValue(self.op_id, shape, dtype) if data else AbstractValue(shape, dtype)

    @property
    def _how(self) -> str:
        return self._atomic.op.removeprefix("atomic_")

    def describe(self) -> OpDescription:
        """Describe for the op log what the lanes found: of the old content, by the operands of all of them."""
        atomic = self._atomic
        reads = (Access("hbm", atomic.regions, atomic.old), *atomic.reads)
        params: dict[str, object] = {
            "op": "atomic_before",
            **math_inputs(reads),
            "dst_addr": self._dst.base,
            "dst_space": "tcm",
            "shape_out": self.value.shape,
            "dtype": self.value.dtype,
            "axis": None,
            "keepdims": False,
            "how": self._how,
            "nbytes": self.value.nbytes,
        }
        lanes = atomic.lanes
        inside = (Region(0, self.value.nbytes),) if lanes.whole else lanes.inside(itemsize(self.value.dtype))
        writes = Access("tcm", tuple(region.shifted(self._dst.base) for region in inside), self.value)
        return OpDescription("math", "atomic_before", params, reads, writes, op_id=self.op_id)


def joined_answers(answers: Sequence[tuple[Lanes, Value]], shape: tuple[int, ...], dtype: str) -> Value:
    """Return what the lanes of a tile found, together; 0 in those that a mask turns off."""
    lanes, value = answers[0]
    if lanes.whole:
        return value
    item = itemsize(dtype)
    parts = [ground(FillValue(np.zeros((), numpy_dtype(dtype))), prod(shape) * item)]
    for lanes, value in answers:
        at = 0
        for region in lanes.inside(item):
            parts.append(Part(region, value, Region(at, region.nbytes)))
            at += region.nbytes
    return AssemblyValue(shape, dtype, tuple(parts))
