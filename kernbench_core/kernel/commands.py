"""What a kernel asks the units of its PE to do: one executable op record for each command.

A command knows its operands (values and where they lie), describes itself for the op log, and has two
moments of its own: `at_issue`, when the PE's CPU sends it, and `land`, when its completion is back.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cache
from math import prod
from typing import TYPE_CHECKING, ClassVar

from kernbench_core.callsite import CallSite, describe_site
from kernbench_core.environment import Signal
from kernbench_core.errors import KernbenchError
from kernbench_core.kernel.op_params import NO_ADDRESS, frozen, gemm_params, math_inputs
from kernbench_core.memory.scratchpad import TcmBlock
from kernbench_core.messages import Command, MsgBase
from kernbench_core.oplog.description import Access, OpDescription, OpPattern, Patterns
from kernbench_core.values.region import Region
from kernbench_core.values.value import OpId, Value

if TYPE_CHECKING:
    from kernbench_core.compute.ops import MathOp
    from kernbench_core.kernel.pe_state import PeState
    from kernbench_core.memory.device_memory import TensorAllocation
    from kernbench_core.memory.hazards import HeldUse

IMMEDIATE = "immediate"
"""The space of operands that come with the command: Python numbers, and index tensors."""

COMMAND_BYTES = 64
"""What a command occupies on the wire from the PE's CPU to a unit, beside its descriptors."""

_GEMMS, _MATHS = Patterns(), Patterns()

MemoryUse = tuple["TensorAllocation", tuple[Region, ...], tuple[Region, ...], bool]
"""A tensor, the bytes of it that a command uses, as virtual and as physical regions, and whether it writes them."""


def called(op: str | MathOp) -> str:
    """Return the call of the language that a math op is made by, the same text each time."""
    return _call_of(op) if type(op) is str else f"tl.{op}"


@cache
def _call_of(op: str) -> str:
    return f"tl.{op}"


class KernelCommand(Command):
    """A command of the kernel language. `blocks` are the scratchpad blocks that it keeps alive while in flight.

    `call` names the call in messages (`tl.load`), `site` is the kernel line. `error` is what went wrong when it
    landed; the runner raises it at the line that waits for the command.
    """

    __slots__ = ("after", "blocking", "blocks", "error", "state", "uses")

    site: CallSite

    def __init__(self, op_id: OpId, call: str, site: CallSite, blocks: tuple[TcmBlock, ...], nbytes: int) -> None:
        super().__init__(op_id, nbytes)
        self.call = call
        self.site = site
        self.blocks = blocks
        self.blocking = True
        self.error: KernbenchError | None = None
        self.state: PeState
        #: The op of another PE that is known to be over once the kernel has waited for this command.
        self.after: OpId | None = None
        #: What the hazard watch keeps of it, if there is one.
        self.uses: tuple[HeldUse, ...] = ()

    @property
    def in_words(self) -> str:
        """The call, its line and its number."""
        pe, issue = self.op_id
        return f"{self.call} at {describe_site(self.site)} (op {issue} of PE {pe})"

    @property
    def complete(self) -> bool:
        """Whether the completion has come back."""
        return self.done.fired

    @property
    def message(self) -> Command:
        """What the unit is sent."""
        return self

    def at_issue(self, state: PeState, now: float) -> None:
        """Take effect at `now` ns, when the CPU of its PE sends it; called once, by the runner."""
        self.state = state
        if state.kernels.flying is not None:
            state.kernels.flying[self.op_id] = self
        for block in self.blocks:
            block.users += 1
        if state.hazards is not None:
            state.hazards.issued(self, now)

    def memory_uses(self) -> Iterable[MemoryUse]:
        """Say which tensors in device memory the command reads and writes; asked at its issue, to find hazards."""
        return ()

    def scratch_uses(self) -> Iterable[Region]:
        """Say which ranges of the scratchpad the command reads and writes; asked at its issue, to find hazards."""
        return ()

    def land(self, now: float) -> None:
        """Take effect at `now` ns, when the completion is back; called once, inside its delivery."""

    def answered(self) -> None:
        """Land, give up the scratchpad blocks, and resume whoever waits: the kernel runs on inside this call."""
        try:
            self.land(self.tail)
        except KernbenchError as error:
            self.error = error
        state = self.state
        if state.kernels.flying is not None:
            del state.kernels.flying[self.op_id]
        if self.uses and state.hazards is not None:
            state.hazards.landed(self, self.tail)
        self._give_up_blocks()
        state.last = self.call, self.site, self.tail
        Command.answered(self)

    def _give_up_blocks(self) -> None:
        # a call of its own: a loop variable of `answered` would keep the last block while the kernel runs on
        for block in self.blocks:
            block.done()
        self.blocks = ()

    def __repr__(self) -> str:
        state = "complete" if self.complete else "in flight"
        return f"<{type(self).__name__} {self.call} at {describe_site(self.site)}, {state}>"


def command_of(msg: object) -> KernelCommand | None:
    """Return the command of a kernel that a message is, or that it works for."""
    while msg is not None and not isinstance(msg, KernelCommand):
        origin = msg.origin if isinstance(msg, MsgBase) else None
        msg = origin if origin is not None else getattr(getattr(msg, "on_done", None), "__self__", None)
    return msg


class Results(tuple[Command, ...]):
    """Commands under way whose results a kernel needs, its own and those of other PEs."""

    __slots__ = ()


class AnyOf:
    """Several commands under way, complete for who waits as soon as one of them is; it is served by none itself."""

    __slots__ = ("after", "commands", "done", "error", "uses")

    def __init__(self, commands: Sequence[KernelCommand]) -> None:
        self.commands = tuple(commands)
        self.done = Signal()
        #: What went wrong with a command, and what waiting for it orders, counts where that one is waited for.
        self.error: KernbenchError | None = None
        self.after: OpId | None = None
        self.uses: tuple[HeldUse, ...] = ()
        for command in self.commands:
            assert command.done.callbacks is not None, "a complete command need not be waited for"
            command.done.callbacks.append(self._first)

    @property
    def serves(self) -> str:
        """The kinds of units that serve them."""
        return ", ".join(sorted({command.serves for command in self.commands}))

    @property
    def call(self) -> str:
        """Their calls, for messages."""
        return " or ".join(dict.fromkeys(command.call for command in self.commands))

    @property
    def awaits(self) -> tuple[int, ...]:
        """Those that any of them awaits."""
        return tuple(dict.fromkeys(pe for command in self.commands for pe in command.awaits))

    def _first(self, _: object) -> None:
        for command in self.commands:
            if command.done.callbacks is not None:
                command.done.callbacks.remove(self._first)
        self.done.fire()


class Operand:
    """A value as a unit reads it: from `region` of the scratchpad, or (None) with the command itself."""

    __slots__ = ("region", "value")

    def __init__(self, value: Value, region: Region | None) -> None:
        self.value = value
        self.region = region

    @property
    def access(self) -> Access:
        """Where it is read, and what."""
        if self.region is None:
            return Access(IMMEDIATE, (), self.value)
        return Access("tcm", (self.region,), self.value)

    @property
    def look(self) -> tuple[str, tuple[int, ...], str]:
        """What it is beside its address: the space that holds it, shape and dtype."""
        value = self.value
        return IMMEDIATE if self.region is None else "tcm", value.shape, value.dtype

    @property
    def address(self) -> int:
        """Physical address of its first byte, or `NO_ADDRESS`."""
        return NO_ADDRESS if self.region is None else self.region.base

    @property
    def space(self) -> str:
        """The space that holds it."""
        return IMMEDIATE if self.region is None else "tcm"


class ComputeCommand(KernelCommand):
    """Compute one tensor of the scratchpad from others. `out` is where it goes: the last of `blocks`."""

    __slots__ = ("out", "reads", "value")

    def __init__(
        self,
        op_id: OpId,
        call: str,
        site: CallSite,
        blocks: tuple[TcmBlock, ...],
        reads: tuple[Operand, ...],
        value: Value,
    ) -> None:
        super().__init__(op_id, call, site, blocks, COMMAND_BYTES)
        self.reads = reads
        self.out = blocks[-1].region
        self.value = value

    def scratch_uses(self) -> Iterable[Region]:
        """Its operands, and where its result goes."""
        return (*[read.region for read in self.reads if read.region is not None], self.out)

    @property
    def _writes(self) -> Access:
        return Access("tcm", (self.out,), self.value)


class GemmCmd(ComputeCommand):
    """Multiply two tiles: (m, k) by (k, n), with an optional third operand that the product is added to.

    Floats are accumulated in f32, integers in int32, and rounded once to the output's dtype.
    """

    __slots__ = ("dtype_in", "k", "m", "n")

    serves: ClassVar[str] = "pe_gemm"

    def __init__(
        self, op_id: OpId, site: CallSite, blocks: tuple[TcmBlock, ...], reads: tuple[Operand, ...], value: Value
    ) -> None:
        super().__init__(op_id, "tl.dot", site, blocks, reads, value)
        self.m, self.k = reads[0].value.shape
        self.n = reads[1].value.shape[1]
        self.dtype_in = reads[0].value.dtype

    @property
    def sum_before(self) -> OpId | None:
        """The op whose result the product is added to; None without a third operand, and for one that is no result."""
        return self.reads[2].value.writer if len(self.reads) > 2 else None

    @property
    def sum_after(self) -> OpId:
        """The op that makes the sum."""
        return self.op_id

    def operand_key(self, operand: str) -> Hashable:
        """Return what tells an operand, "a" or "b", from others."""
        return self.reads["ab".index(operand)].value

    def describe(self) -> OpDescription:
        """Describe the product for the op log."""
        a, b = self.reads[0], self.reads[1]
        reads = tuple([read.access for read in self.reads])
        looks = a.look, b.look, self.value.shape, self.value.dtype, len(reads)
        pattern = _GEMMS.find(looks)
        if pattern is None:
            open_ = "src_a_addr", "src_b_addr", "dst_addr"
            pattern = _GEMMS.add(looks, OpPattern("gemm", f"gemm_{self.dtype_in}", self._params(), open_))
        return pattern.described((a.address, b.address, self.out.base), reads, self._writes, self.op_id)

    def _params(self) -> dict[str, object]:
        a, b = self.reads[0], self.reads[1]
        return {
            **gemm_params(a.value, b.value, self.value),
            "src_a_addr": a.address,
            "src_b_addr": b.address,
            "src_a_space": a.space,
            "src_b_space": b.space,
            "dst_addr": self.out.base,
            "dst_space": "tcm",
            "addr_space": "tcm",
            "accumulate": len(self.reads) > 2,
        }


class MathCmd(ComputeCommand):
    """Compute one elementwise, reducing or moving op. `elements` is the work: outputs, or inputs of a reduction."""

    __slots__ = ("extra", "op", "reduce")

    serves: ClassVar[str] = "pe_math"

    def __init__(
        self,
        op_id: OpId,
        op: str,
        site: CallSite,
        blocks: tuple[TcmBlock, ...],
        reads: tuple[Operand, ...],
        value: Value,
        extra: Mapping[str, object],
        reduce: bool,
    ) -> None:
        super().__init__(op_id, called(op), site, blocks, reads, value)
        self.op = op
        self.extra = extra
        self.reduce = reduce

    @property
    def elements(self) -> int:
        """Work items: elements of the input of a reduction, of the output otherwise."""
        return prod(self.reads[0].value.shape) if self.reduce else prod(self.value.shape)

    @property
    def dtype(self) -> str:
        """The dtype of the result."""
        return self.value.dtype

    def describe(self) -> OpDescription:
        """Describe the op for the op log."""
        reads = tuple([read.access for read in self.reads])
        more = frozen(self.extra) if self.extra else ()
        if more is None:
            return OpDescription("math", self.op, self._params(reads), reads, self._writes, op_id=self.op_id)
        looks = self.op, self.value.shape, self.value.dtype, tuple([read.look for read in self.reads]), more
        pattern = _MATHS.find(looks)
        if pattern is None:
            open_ = "dst_addr", "input_addrs"
            pattern = _MATHS.add(looks, OpPattern("math", self.op, self._params(reads), open_))
        numbers = self.out.base, *[read.address for read in self.reads]
        return pattern.described(numbers, reads, self._writes, self.op_id)

    def _params(self, reads: Sequence[Access]) -> dict[str, object]:
        return {
            "op": self.op,
            **math_inputs(reads),
            "dst_addr": self.out.base,
            "dst_space": "tcm",
            "shape_out": self.value.shape,
            "dtype": self.value.dtype,
            "axis": None,
            "keepdims": False,
            "addr_space": "tcm",
            "mask": False,
            **self.extra,
        }


class PluginMathCmd(MathCmd):
    """Compute a plug-in's math op; a model finds in `math_op` what it does not know of the name."""

    __slots__ = ("math_op",)

    def __init__(
        self,
        op_id: OpId,
        op: MathOp,
        site: CallSite,
        blocks: tuple[TcmBlock, ...],
        reads: tuple[Operand, ...],
        value: Value,
        extra: Mapping[str, object],
        reduce: bool,
    ) -> None:
        super().__init__(op_id, op.name, site, blocks, reads, value, extra, reduce)
        self.math_op = op
