"""What a kernel asks the units of its PE to do: one executable op record for each command.

A command knows its operands (values and where they lie), describes itself for the op log, and has two
moments of its own: `at_issue`, when the PE's CPU sends it, and `land`, when its completion is back. For a plain
`Command`, which plug-ins define, stands one that knows of no memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from kernbench_core.callsite import CallSite, describe_site
from kernbench_core.environment import Signal
from kernbench_core.errors import KernbenchError, KernelError
from kernbench_core.kernel.steps import PathStep
from kernbench_core.memory.scratchpad import TcmBlock
from kernbench_core.messages import ISSUED, Command, MsgBase
from kernbench_core.values.region import Region, bounds, meet
from kernbench_core.values.value import OpId
from kernbench_core.wording import brief

if TYPE_CHECKING:
    from kernbench_core.kernel.pe_state import PeState
    from kernbench_core.memory.device_memory import TensorAllocation
    from kernbench_core.memory.hazards import HeldUse

COMMAND_BYTES = 64
"""What a command occupies on the wire from the PE's CPU to a unit, beside its descriptors."""

MemoryUse = tuple["TensorAllocation", tuple[Region, ...], tuple[Region, ...], bool]
"""A tensor, the bytes of it that a command uses, as virtual and as physical regions, and whether it writes them."""


class KernelCommand(Command):
    """A command of the kernel language. `blocks` are the scratchpad blocks that it keeps alive while in flight.

    `call` names the call in messages (`tl.load`), `site` is the kernel line. `error` is what went wrong when it
    landed; the runner raises it at the line that waits for the command. `memory_uses` are the tensors in device memory
    that it reads and writes, `scratch_uses` the ranges of the scratchpad: what a subclass knows when it is made, and
    hazards are found by.
    """

    __slots__ = (
        "after", "because", "blocking", "blocks", "error", "memory_uses", "needs", "queued", "scratch_uses", "sent_ns",
        "state", "step", "uses",
    )  # fmt: skip

    site: CallSite
    #: The direction of a DMA, seen from HBM: each has a queue of its own.
    dma_op: ClassVar[str] = ""
    #: Whether others may learn by it what its kernel has stored: it is sent when no store is in a queue any more.
    publishes: ClassVar[bool] = False

    def __init__(self, op_id: OpId, call: str, site: CallSite, blocks: tuple[TcmBlock, ...], nbytes: int) -> None:
        self._begin(op_id, call, site, blocks, nbytes)

    def _begin(self, op_id: OpId, call: str, site: CallSite, blocks: tuple[TcmBlock, ...], nbytes: int) -> None:
        """Be a command that is not issued yet: what `__init__` does, without a call for each base."""
        # inlined from MsgBase and Command for speed (instructions of a command: -4 %): every op makes one
        self.nbytes = nbytes
        self.path = ()
        self.hop = 0
        self.reply = False
        self.head = self.tail = self.born = 0.0
        self.propagation = self.serialisation = self.overhead = self.queueing = self.service = 0.0
        self.callbacks = None
        self.op_id, self.done = op_id, Signal()
        self.call = call
        self.site = site
        self.blocks = blocks
        self.blocking = True
        self.error: KernbenchError | None = None
        #: The command that must be complete before this one is sent: it waits in the queue of its unit.
        self.needs: KernelCommand | None = None
        #: Whether it is a store that its kernel does not wait for, before it does what the store must come before.
        self.queued = False
        self.state: PeState
        #: The op of another PE that is known to be over once the kernel has waited for this command.
        self.after: OpId | None = None
        #: What the hazard watch keeps of it, if there is one.
        self.uses: tuple[HeldUse, ...] = ()
        self.memory_uses: tuple[MemoryUse, ...] = ()
        self.scratch_uses: tuple[Region, ...] = ()
        #: The step that the kernel was at when the command was sent, and its own when it is complete.
        self.because: PathStep | None = None
        self.sent_ns = 0.0
        self.step: PathStep | None = None

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
        self.because, self.sent_ns = state.step, now
        if state.kernels.flying is not None:
            state.kernels.flying[self.op_id] = self
        for block in self.blocks:
            block.users += 1
        if state.hazards is not None:
            state.hazards.issued(self, now)

    def let_go(self, step: PathStep | None, now: float) -> None:
        """Leave the queue at `now` ns, as the last that was waited for there is complete, which was `step`."""
        self.because, self.sent_ns, self.needs = step or self.because, now, None

    def comes_after(self, earlier: KernelCommand) -> bool:
        """Whether it uses memory that a command of the same PE, issued before, writes, or writes what that one reads.

        Its program waits for that one before it issues this.
        """
        return any(
            (ours[3] or theirs[3]) and meet(ours[2], theirs[2])
            for ours in self.memory_uses
            for theirs in earlier.memory_uses
        )

    def span(self) -> tuple[int, int]:
        """Return the lowest address of the device's memory that it uses, and one past the highest."""
        return bounds([region for use in self.memory_uses for region in use[2]])

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
        self.step = state.last = self._step(state)
        state.complete[self.dma_op or self.serves] = self.step
        Command.answered(self)

    def _step(self, state: PeState) -> PathStep:
        """Return the step that it was: sent by its kernel, or, where it queued, begun when its unit was free."""
        before, begin = self.because, self.sent_ns
        if self.queueing > 0.0:
            unit: PathStep | None = state.complete.get(self.dma_op or self.serves)
            if unit is not None and unit.end > begin:
                before, begin = unit, unit.end
        return PathStep(before, self.call, self.serves, self.site, begin, self.tail)

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
    def step(self) -> PathStep | None:
        """The step of the one that is complete."""
        return next((command.step for command in self.commands if command.step is not None), None)

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


class PlainCommand(KernelCommand):
    """Stand for a plain `Command`, the `message` that its unit is sent, and be complete when that one is.

    Kernels wait for it as for those of the language; it uses no memory that anybody knows of.
    """

    __slots__ = ("_message", "serves")

    serves: str  # type: ignore[misc]  # of each command its own
    #: Nobody knows what it uses.
    publishes: ClassVar[bool] = True

    def __init__(self, message: Command, op_id: OpId, site: CallSite) -> None:
        super().__init__(op_id, ISSUED, site, (), message.nbytes)
        self._message, self.serves = message, message.serves
        message.op_id, message.call, message.site = op_id, ISSUED, site
        self.done = message.done

    @property
    def awaits(self) -> tuple[int, ...]:
        """The PEs that the message awaits."""
        return self._message.awaits

    @property
    def message(self) -> Command:
        """What the unit is sent: the plug-in's own."""
        return self._message

    def at_issue(self, state: PeState, now: float) -> None:
        """Note when it is complete, which the message alone is told."""
        super().at_issue(state, now)
        assert self.done.callbacks is not None, "it was not sent before"
        self.done.callbacks.append(self._landed)

    def _landed(self, _: object) -> None:
        state, self.tail = self.state, self._message.tail
        self.step = state.last = self._step(state)
        state.complete[self.dma_op or self.serves] = self.step


def refuse_other_commands(command: object, site: CallSite) -> None:
    """Raise KernelError for what is no `Command` that can be sent, and for one that was sent before."""
    here = f"{ISSUED} at {describe_site(site)} must be given"
    if not isinstance(command, Command):
        what = f"the class {command.__name__}" if isinstance(command, type) else type(command).__name__
        raise KernelError(f"{here} a command, a kernbench_core.Command, not {what}; make one.")
    name = type(command).__name__
    if getattr(command, "done", None) is None:
        raise KernelError(f"{here} a complete command, not this {name}; call super().__init__() in its __init__.")
    if command.site is not None:
        raise KernelError(
            f"{here} a command that was not sent before, not the {name} of {describe_site(command.site)}; make "
            "another one."
        )
    if command.nbytes < 0:
        raise KernelError(f"{here} a command of 0 B or more, not the {name} of {command.nbytes} B; correct its nbytes.")
    if not isinstance(command.serves, str) or not command.serves:
        raise KernelError(
            f"{here} a command whose serves names the kind of unit that serves it, not {brief(command.serves)}; write "
            f"serves = 'pe_sfu', say, into class {name}."
        )
