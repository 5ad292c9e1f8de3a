"""Hazards: uses of memory whose outcome depends on timing because nothing orders them. Found as commands are issued.

What orders two uses is *happens-before*, kept with vector clocks. Each PE counts its own epochs; its clock holds, for
every PE, the last epoch that is known to be over. A launch gives its PEs what the host knew when it was submitted; the
host learns what the PEs of a launch know when it has waited for it; an edge between PEs (`publish`, `order`) hands on
what the sender knew. A use is over once its command is complete and its kernel has waited for it.

Nothing here needs data, and nothing is remembered once the host has waited for every launch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from attrs import define, evolve, field

from kernbench_core.callsite import describe_site
from kernbench_core.elements import first_common, index_at, virtual_at
from kernbench_core.hazard import READ_IN_FLIGHT, RECYCLED_TCM, UNORDERED_WRITES, Hazard, HazardUse
from kernbench_core.regions import Region, ascending_pieces, overlaps
from kernbench_core.store_index import SpaceIndex, Write
from kernbench_core.values import AbstractValue, OpId

if TYPE_CHECKING:
    from kernbench_core.commands import KernelCommand
    from kernbench_core.memory import TensorAllocation
    from kernbench_core.messages import Launch
    from kernbench_core.tcm import TcmBlock

Clock = np.ndarray[Any, np.dtype[np.int64]]

#: Launches that were waited for whose clocks are kept, for other host programs that wait for them too.
_MOST_OVER: Final = 256

_NO_VALUE: Final = AbstractValue((0,), "int8")


class Use:
    """One command's use of one tensor, or of a range of its PE's scratchpad (`tensor` None).

    `virtual` and `physical` are the same bytes in the same order. `epoch` is the epoch in which the use was over, 0
    before. What its PE knew when it issued the command is not kept: it matters for the earlier uses that it meets then.
    """

    __slots__ = (
        "call", "end", "epoch", "issued", "landed", "op_id", "physical", "site", "start", "tensor", "virtual", "writes",
    )  # fmt: skip

    def __init__(
        self,
        command: KernelCommand,
        tensor: TensorAllocation | None,
        virtual: tuple[Region, ...],
        physical: tuple[Region, ...],
        writes: bool,
        now: float,
    ) -> None:
        self.op_id = command.op_id
        self.call = command.call
        self.site = command.site
        self.tensor = tensor
        self.virtual = virtual
        self.physical = physical
        self.writes = writes
        self.epoch = 0
        self.issued = now
        self.landed: float | None = None
        self.start = self.end = -1

    def pieces(self) -> tuple[Region, ...]:
        """Return the bytes as ascending regions."""
        return tuple(piece for region in self.physical for piece in ascending_pieces(region))

    def meets(self, other: Use) -> bool:
        """Tell whether two uses share a byte."""
        for use in (self, other):
            if use.start < 0:
                use.start = min(piece.base for piece in use.pieces())
                use.end = max(piece.end for piece in use.pieces())
        if self.start >= other.end or other.start >= self.end:
            return False
        theirs = [piece for piece in other.pieces() if piece.base < self.end and self.start < piece.end]
        return any(overlaps(mine, piece) for mine in self.pieces() for piece in theirs)


@define(eq=False)
class _Watch:
    """What is known of one tensor: reads and writes in flight, and the writes that are still to be ordered."""

    reads: dict[Use, None] = field(factory=dict)
    writes: dict[Use, None] = field(factory=dict)
    written: SpaceIndex = field(factory=SpaceIndex)


@define(eq=False)
class _Pair:
    kind: str
    first: Use | tuple[int, TcmBlock, float]
    second: Use | tuple[int, TcmBlock, float]
    count: int = 1


@define(eq=False)
class _Pe:
    """The clock of a PE, its own epoch, writes that its kernel has not waited for, and loose uses of its scratchpad."""

    clock: Clock
    epoch: int = 1
    unwaited: dict[Use, None] = field(factory=dict)
    loose: dict[Use, None] = field(factory=dict)


@define(eq=False)
class _Launched:
    """What the host knew when it submitted a launch, and what the launch's PEs know at their ends."""

    given: Clock
    learnt: Clock


class Hazards:
    """Watch the uses of memory of one run. `pes` names the PEs by index, `now` tells the simulated time in ns."""

    def __init__(self, pes: Sequence[str], now: Callable[[], float]) -> None:
        self._names = pes
        self._now = now
        self._nothing: Clock = np.zeros(len(pes), np.int64)
        #: What each host program knows, by number; the first is the bench.
        self._hosts: dict[int, Clock] = {0: self._nothing}
        #: What the PEs of launches knew at their ends that some host program has waited for.
        self._over: dict[Launch, Clock] = {}
        self._pes: dict[int, _Pe] = {}
        self._launches: dict[Launch, _Launched] = {}
        self._published: dict[OpId, Clock] = {}
        self._watches: dict[str, _Watch] = {}
        self._found: dict[tuple[object, ...], _Pair | Hazard] = {}

    @property
    def now(self) -> float:
        """The simulated time in ns."""
        return self._now()

    def name_of(self, pe: int) -> str:
        """What reports call a PE."""
        return self._names[pe]

    # Edges ------------------------------------------------------------------------------------------

    def launched(self, launch: Launch, program: int = 0) -> None:
        """Note that a host program submits a launch: what it has waited for comes before the launch."""
        self._launches[launch] = _Launched(self._hosts[program], self._nothing)

    def begun(self, launch: Launch, pe: int) -> None:
        """Note that a PE begins its programs of a launch: they come after what the host knew."""
        known = self._launches.get(launch)
        if known is not None:
            self._learn(self._pe(pe), known.given)

    def ended(self, launch: Launch, pe: int) -> None:
        """Note that a PE has ended its programs of a launch; all of its commands are complete."""
        self.waited_for_all(pe)
        released = self._release(pe)
        known = self._launches.get(launch)
        if known is not None:
            known.learnt = np.maximum(known.learnt, released)

    def joined(self, launch: Launch, program: int = 0) -> None:
        """Note that a host program has waited for a launch: it comes before all that the program does from now on."""
        known = self._launches.pop(launch, None)
        learnt = self._over.get(launch) if known is None else known.learnt
        if learnt is None:
            return
        self._hosts[program] = np.maximum(self._hosts[program], learnt)
        if len(self._hosts) > 1:
            self._over[launch] = learnt
            if len(self._over) > _MOST_OVER:  # clocks are large, and a second program hardly ever waits for a launch
                del self._over[next(iter(self._over))]
        self._forget()

    def program_started(self, program: int, parent: int) -> None:
        """Note that one host program starts another, which knows what it knows."""
        self._hosts[program] = self._hosts[parent]

    def program_ended(self, program: int, parent: int) -> None:
        """Note that a host program has ended, with all that it launched, and that its parent waits for it."""
        self._hosts[parent] = np.maximum(self._hosts[parent], self._hosts.pop(program))
        self._forget()

    def _forget(self) -> None:
        """Drop what all that comes is ordered after: everything, once the only host program knows of all launches."""
        if not self._launches and len(self._hosts) == 1:
            self._watches.clear()
            self._published.clear()
            self._over.clear()

    def publish(self, op_id: OpId) -> None:
        """Let an op of a PE (a send, an arrival at a barrier) carry all that the PE's kernel has waited for."""
        self._published[op_id] = self._release(op_id[0])

    def order(self, from_op: OpId, to_pe: int) -> None:
        """Let what a PE issues from now on come after what `from_op` carries; called once, when it was received."""
        carried = self._published.pop(from_op, None)
        if carried is not None:
            self._learn(self._pe(to_pe), carried)

    def waited(self, commands: Iterable[KernelCommand]) -> None:
        """Note that a kernel has waited for commands that did not block it."""
        for command in commands:
            if command.after is not None:
                self.order(command.after, command.op_id[0])
                command.after = None
            for use in command.uses:
                state = self._pe(command.op_id[0])
                if use in state.unwaited:
                    del state.unwaited[use]
                    use.epoch = state.epoch

    def waited_for_all(self, pe: int) -> None:
        """Note that a PE's kernel has waited for everything that it had in flight."""
        state = self._pe(pe)
        for use in state.unwaited:
            use.epoch = state.epoch
        state.unwaited.clear()

    def _learn(self, state: _Pe, clock: Clock) -> None:
        if clock is not self._nothing:
            state.clock = np.maximum(state.clock, clock)

    def _release(self, pe: int) -> Clock:
        """Give what a PE knows now, its own epoch included, and begin its next epoch."""
        state = self._pe(pe)
        released = state.clock.copy()
        released[pe] = state.epoch
        state.epoch += 1
        return released

    def _pe(self, pe: int) -> _Pe:
        state = self._pes.get(pe)
        if state is None:
            state = self._pes[pe] = _Pe(self._nothing)
        return state

    # Uses -------------------------------------------------------------------------------------------

    def issued(self, command: KernelCommand, now: float) -> None:
        """Look at what a command uses, at its issue."""
        state = self._pe(command.op_id[0])
        uses = []
        for tensor, virtual, physical, writes in command.memory_uses():
            use = Use(command, tensor, virtual, physical, writes, now)
            watch = self._watches.get(tensor.whole)
            if watch is None:
                watch = self._watches[tensor.whole] = _Watch()
            if writes:
                self._check_write(watch, use, state.clock)
            else:
                for other in watch.writes:
                    self._in_flight(other, use, state.clock)
                watch.reads[use] = None
            uses.append(use)
        for region in command.scratch_uses():
            if not any(region is block.region for block in command.blocks):
                held = [block.region for block in command.blocks]
                if first_common((region,), held) != (0, region.nbytes):
                    loose = Use(command, None, (region,), (region,), True, now)
                    state.loose[loose] = None
                    uses.append(loose)
        command.uses = tuple(uses)

    def landed(self, command: KernelCommand, now: float) -> None:
        """Note that a command is complete."""
        state = self._pe(command.op_id[0])
        for use in command.uses:
            use.landed = now
            if use.tensor is None:
                state.loose.pop(use, None)
                continue
            if command.blocking:
                use.epoch = state.epoch
            elif use.writes:  # nobody asks for a read again that has landed
                state.unwaited[use] = None
            watch = self._watches.get(use.tensor.whole)
            if watch is not None:
                (watch.writes if use.writes else watch.reads).pop(use, None)

    def handed_out(self, pe: int, block: TcmBlock) -> None:
        """Look at a scratchpad range that is given to a new block."""
        state = self._pes.get(pe)
        if state is None or not state.loose:
            return
        for use in state.loose:
            if overlaps(use.physical[0], block.region):
                key = (RECYCLED_TCM, use.site, block.birth.site, pe)
                self._count(key, RECYCLED_TCM, use, (pe, block, self._now()))

    def _check_write(self, watch: _Watch, use: Use, clock: Clock) -> None:
        for other in watch.reads:
            self._in_flight(other, use, clock)
        before: dict[Use, None] = {}
        for piece in use.pieces():
            for entry in watch.written.touching(piece):
                before[entry.write.ticket] = None  # type: ignore[index]  # the index is ours: its tickets are uses
        for earlier in before:
            if _pe_of(earlier) != _pe_of(use) and not _over(earlier, clock):
                self._count(_key(UNORDERED_WRITES, earlier, use), UNORDERED_WRITES, earlier, use)
        watch.written.insert(Write(use.physical, _NO_VALUE, use))  # type: ignore[arg-type]
        watch.writes[use] = None

    def _in_flight(self, earlier: Use, later: Use, clock: Clock) -> None:
        """Count a read and a write that are under way at once; `clock` is what the PE of the later one knows."""
        if _pe_of(earlier) != _pe_of(later) and earlier.meets(later) and not _over(earlier, clock):
            self._count(_key(READ_IN_FLIGHT, earlier, later), READ_IN_FLIGHT, earlier, later)

    def _count(self, key: tuple[object, ...], kind: str, first: Use, second: Use | tuple[int, TcmBlock, float]) -> None:
        known = self._found.get(key)
        if isinstance(known, _Pair):
            known.count += 1
        else:
            self._found[key] = _Pair(kind, first, second)

    def add(self, hazard: Hazard) -> None:
        """Count a hazard that somebody else found; those of one kind and the same two lines are one."""
        key = (hazard.kind, hazard.first.call, hazard.first.line, hazard.second.call, hazard.second.line)
        known = self._found.get(key)
        self._found[key] = evolve(known, count=known.count + 1) if isinstance(known, Hazard) else hazard

    # Results ----------------------------------------------------------------------------------------

    def found(self) -> tuple[Hazard, ...]:
        """Return every hazard once for each pair of kernel lines, in the order in which they were found."""
        return tuple(pair if isinstance(pair, Hazard) else self._told(pair) for pair in self._found.values())

    def _told(self, pair: _Pair) -> Hazard:
        first, second = pair.first, pair.second
        assert isinstance(first, Use)
        if not isinstance(second, Use):
            pe, block, now = second
            told = HazardUse(None, block.birth.op, self._names[pe], describe_site(block.birth.site), now, None)
            shared = first_common(first.physical, [block.region])
            assert shared is not None
            offset = first.physical[0].base + shared[0] - block.address + block.offset
            return Hazard(
                pair.kind, f"TCM of {self._names[pe]}", None, offset, shared[1], self._side(first), told, pair.count
            )
        shared = first_common(second.physical, first.pieces())
        assert shared is not None
        tensor = second.tensor
        assert tensor is not None
        va = virtual_at(second.virtual, shared[0])
        return Hazard(
            pair.kind, tensor.name, index_at(tensor, va), va - tensor.va, shared[1],
            self._side(first), self._side(second), pair.count,
        )  # fmt: skip

    def _side(self, use: Use) -> HazardUse:
        return HazardUse(use.op_id, use.call, self._names[_pe_of(use)], describe_site(use.site), use.issued, use.landed)


def _pe_of(use: Use) -> int:
    return use.op_id[0]


def _over(earlier: Use, clock: Clock) -> bool:
    """Tell whether the earlier use was over, and the PE with this clock knows."""
    return earlier.epoch > 0 and bool(clock[_pe_of(earlier)] >= earlier.epoch)


def _key(kind: str, first: Use, second: Use) -> tuple[object, ...]:
    """Group hazards by what they are, by tensor and by the two kernel lines."""
    assert first.tensor is not None
    return kind, first.tensor.name, describe_site(first.site), describe_site(second.site)
