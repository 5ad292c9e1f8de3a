"""Hazards: uses of memory whose outcome depends on timing because nothing orders them. Found as commands are issued.

What orders two uses is *happens-before*: `clocks` says which came before which, whatever the simulated times are. Each
use is compared with all earlier ones that share a byte with it, of every line and thread; of two uses that conflict the
one that is issued later finds the other. A use is over once its command is complete and its kernel has waited for it.

Nothing here needs data. Uses are forgotten when all that comes is ordered after them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from attrs import define, evolve

from kernbench_core.callsite import CallSite, describe_site
from kernbench_core.memory.clocks import Clocks, Thread
from kernbench_core.memory.elements import first_common, index_at
from kernbench_core.memory.hazard import RECYCLED_TCM, UNORDERED_READ, UNORDERED_WRITES, Hazard, HazardUse
from kernbench_core.memory.memory_uses import LastUse, TensorUses, UseGroup
from kernbench_core.values.region import Region, ascending_pieces, linear_at, overlaps
from kernbench_core.values.value import OpId

if TYPE_CHECKING:
    from kernbench_core.memory.device_memory import TensorAllocation
    from kernbench_core.memory.scratchpad import TcmBlock
    from kernbench_core.messages import Launch

#: Last uses that are kept before those that are over are looked for, and how many more than were left then.
_TIDY_AT: Final = 1 << 13


class _Use:
    """One side of a hazard. `tensor` is None for a range of the PE's scratchpad."""

    __slots__ = ("call", "issued", "landed", "op_id", "physical", "site", "tensor", "virtual", "writes")

    def __init__(
        self, op_id: OpId, call: str, site: CallSite, tensor: TensorAllocation | None, virtual: tuple[Region, ...],
        physical: tuple[Region, ...], writes: bool | None, issued: float, landed: float | None = None,
    ) -> None:  # fmt: skip
        self.op_id = op_id
        self.call = call
        self.site = site
        self.tensor = tensor
        self.virtual = virtual
        self.physical = physical
        self.writes = writes
        self.issued = issued
        self.landed = landed


HeldUse: TypeAlias = LastUse | _Use
"""What a command keeps of each of its uses while it is in flight."""


class MemoryUser(Protocol):
    """What is watched: a command that knows which memory it uses, and keeps what it is told of that.

    `memory_uses` are tensors that it reads or writes: where in virtual and in physical memory, and whether it writes
    them. `scratch_uses` are ranges of the scratchpad.
    """

    op_id: OpId
    call: str
    site: CallSite
    blocking: bool
    queued: bool
    blocks: tuple[TcmBlock, ...]
    after: OpId | None
    uses: tuple[HeldUse, ...]
    memory_uses: tuple[tuple[TensorAllocation, tuple[Region, ...], tuple[Region, ...], bool], ...]
    scratch_uses: tuple[Region, ...]


@define(eq=False)
class _Pair:
    kind: str
    first: _Use
    second: _Use | tuple[int, TcmBlock, float]
    count: int = 1


class Hazards(Clocks):
    """Watch the uses of memory of one run. `pes` names the PEs by index, `now` tells the simulated time in ns.

    `race_by` is "pe", or "program": what is in order within a launch, all that a PE does, or what one program does.
    """

    def __init__(self, pes: Sequence[str], now: Callable[[], float], race_by: str = "pe") -> None:
        super().__init__(len(pes), by_program=race_by == "program")
        self._names = pes
        self._now = now
        self._tensors: dict[str, TensorUses] = {}
        self._kept = 0
        self._tidy_at = _TIDY_AT
        #: By thread the uses that its kernel has not waited for, by their commands.
        self._unwaited: dict[int, dict[OpId, tuple[LastUse, ...]]] = {}
        #: By PE the uses of ranges of its scratchpad that their commands do not hold, by their commands.
        self._loose: dict[int, dict[OpId, list[_Use]]] = {}
        #: Sides of hazards whose commands are on their way.
        self._on_the_way: dict[OpId, list[_Use]] = {}
        self._found: dict[tuple[object, ...], _Pair | Hazard] = {}

    @property
    def now(self) -> float:
        """The simulated time in ns."""
        return self._now()

    def name_of(self, pe: int) -> str:
        """What reports call a PE."""
        return self._names[pe]

    # What is over -------------------------------------------------------------------------------------

    def ended(self, launch: Launch, pe: int) -> None:
        """Note that a PE has ended its programs of a launch; all of its commands are complete."""
        self.waited_for_all(pe)
        super().ended(launch, pe)

    def joined(self, launch: Launch, program: int = 0) -> None:
        """Note that a host program has waited for a launch: it comes before all that the program does from now on."""
        super().joined(launch, program)
        self._forget()

    def program_ended(self, program: int, parent: int) -> None:
        """Note that a host program has ended, with all that it launched, and that its parent waits for it."""
        super().program_ended(program, parent)
        self._forget()

    def waited(self, commands: Iterable[MemoryUser]) -> None:
        """Note that a kernel has waited for commands that did not block it."""
        for command in commands:
            if command.after is not None:
                self.order(command.after, command.op_id[0])
                command.after = None
            if command.uses:
                thread = self.thread(command.op_id[0])
                uses = self._unwaited.get(thread.index, {}).pop(command.op_id, ())
                _end(uses, thread)

    def waited_for_all(self, pe: int) -> None:
        """Note that a PE's kernel has waited for everything that it had in flight."""
        thread = self.thread(pe)
        for uses in self._unwaited.pop(thread.index, {}).values():
            _end(uses, thread)

    def _forget(self) -> None:
        """Drop what all that comes is ordered after, where that is everything; the rest goes when it is much."""
        if self.forget_if_over():
            self._tensors.clear()
            self._kept, self._tidy_at = 0, _TIDY_AT

    def _tidy(self) -> None:
        floor = self.floor()
        self._kept = sum(tensor.tidy(floor) for tensor in self._tensors.values())
        self._tidy_at = 2 * self._kept + _TIDY_AT

    # Uses ---------------------------------------------------------------------------------------------

    def issued(self, command: MemoryUser, now: float) -> None:
        """Look at what a command uses, at its issue."""
        op_id = command.op_id
        thread = self._threads.get(op_id[0]) or self.thread(op_id[0])
        code, at = command.site
        uses: list[HeldUse] = []
        for tensor, virtual, physical, writes in command.memory_uses:
            known = self._tensors.get(tensor.whole)
            if known is None:
                known = self._tensors[tensor.whole] = TensorUses()
            group = (known.writes if writes else known.reads).get((physical, id(code), at))
            if group is None:
                group = UseGroup(tensor, physical, writes, command.call, command.site)
                known.add(group)
            use = group.use_of(thread.index)
            if use is None:
                use = LastUse(group, thread.index, op_id, now)
                group.keep(use)
                self._kept += 1
            else:
                use.op_id, use.issued, use.landed = op_id, now, None
            if group.meets:
                self._compare(use, thread, tensor, virtual)
            if command.blocking or command.queued:  # nobody learns of this epoch before it is complete
                use.epoch = thread.epoch
            else:
                use.pending += 1
            uses.append(use)
        if uses and not (command.blocking or command.queued):
            self._unwaited.setdefault(thread.index, {})[op_id] = tuple(uses)  # type: ignore[arg-type]
        held = [block.region for block in command.blocks]
        for region in command.scratch_uses:
            # as a rule it is the block's own region, or one like it
            if region not in held and first_common((region,), held) != (0, region.nbytes):
                loose = _Use(op_id, command.call, command.site, None, (region,), (region,), None, now)
                self._loose.setdefault(op_id[0], {}).setdefault(op_id, []).append(loose)
                uses.append(loose)
        command.uses = tuple(uses)
        if self._kept > self._tidy_at:
            self._tidy()

    def landed(self, command: MemoryUser, now: float) -> None:
        """Note that a command is complete."""
        op_id = command.op_id
        for use in command.uses:
            if use.op_id is op_id:  # else the same line has used the same bytes again
                use.landed = now
        if self._loose:
            self._loose.get(op_id[0], {}).pop(op_id, None)
        for side in self._on_the_way.pop(op_id, ()):
            side.landed = now

    def handed_out(self, pe: int, block: TcmBlock) -> None:
        """Look at a scratchpad range that is given to a new block."""
        for uses in self._loose.get(pe, {}).values():
            for use in uses:
                if overlaps(use.physical[0], block.region):
                    key = (RECYCLED_TCM, use.site, block.birth.site, pe)
                    known = self._found.get(key)
                    if isinstance(known, _Pair):
                        known.count += 1
                    else:
                        self._found[key] = _Pair(RECYCLED_TCM, use, (pe, block, self._now()))

    def _compare(self, use: LastUse, thread: Thread, tensor: TensorAllocation, virtual: tuple[Region, ...]) -> None:
        """Count the earlier uses that share a byte with this one, conflict with it, and are not known to be over."""
        me, clock = thread.index, thread.clock
        known = len(clock)
        for group in use.group.meets:
            first, count = None, 0
            for earlier in group.uses:
                index = earlier.thread
                if index == me:
                    if earlier.pending > (earlier.op_id is use.op_id):  # not of this command alone
                        self._end_own(earlier, thread)
                elif earlier.pending or index >= known or clock[index] < earlier.epoch:
                    first, count = first or earlier, count + 1
            if first is not None:
                self._count(first, use, tensor, virtual, count)

    def _end_own(self, use: LastUse, thread: Thread) -> None:
        """Let the commands be over that have a use which this thread has not waited for, and now comes after in memory.

        Its program waits for them in simulated time; what was complete by then it may have forgotten.
        """
        unwaited = self._unwaited.get(thread.index, {})
        for op_id in [each for each, uses in unwaited.items() if use in uses]:
            _end(unwaited.pop(op_id), thread)

    def _count(
        self, first: LastUse, second: LastUse, tensor: TensorAllocation, virtual: tuple[Region, ...], pairs: int
    ) -> None:
        one, two = first.group, second.group
        kind = UNORDERED_WRITES if one.writes and two.writes else UNORDERED_READ
        lines = describe_site(one.site), describe_site(two.site)
        key = (kind, tensor.whole, *sorted(lines))
        known = self._found.get(key)
        if isinstance(known, _Pair):
            known.count += pairs
            return
        earlier = self._side_of(first, one.tensor, ())
        self._found[key] = _Pair(kind, earlier, self._side_of(second, tensor, virtual), pairs)

    def _side_of(self, use: LastUse, tensor: TensorAllocation, virtual: tuple[Region, ...]) -> _Use:
        group = use.group
        side = _Use(
            use.op_id, group.call, group.site, tensor, virtual, group.physical, group.writes, use.issued, use.landed
        )
        if use.landed is None:
            self._on_the_way.setdefault(use.op_id, []).append(side)
        return side

    def add(self, hazard: Hazard) -> None:
        """Count a hazard that somebody else found; those of one kind and the same two lines are one."""
        key = (hazard.kind, hazard.first.call, hazard.first.line, hazard.second.call, hazard.second.line)
        known = self._found.get(key)
        self._found[key] = evolve(known, count=known.count + 1) if isinstance(known, Hazard) else hazard

    # Results ----------------------------------------------------------------------------------------

    def found(self) -> tuple[Hazard, ...]:
        """Return every hazard once for each pair of kernel lines, in the order in which they were found."""
        return tuple(pair if isinstance(pair, Hazard) else self._hazard_of(pair) for pair in self._found.values())

    def _hazard_of(self, pair: _Pair) -> Hazard:
        first, second = pair.first, pair.second
        if not isinstance(second, _Use):
            pe, block, now = second
            told = HazardUse(None, block.birth.op, self._names[pe], describe_site(block.birth.site), now, None)
            shared = first_common(first.physical, [block.region])
            assert shared is not None
            offset = first.physical[0].base + shared[0] - block.address + block.offset
            return Hazard(
                pair.kind, f"TCM of {self._names[pe]}", None, offset, shared[1], self._side(first), told, pair.count
            )
        pieces = [piece for region in first.physical for piece in ascending_pieces(region)]
        shared = first_common(second.physical, pieces)
        tensor = second.tensor
        assert shared is not None and tensor is not None
        va = linear_at(second.virtual, shared[0])
        return Hazard(
            pair.kind, tensor.name, index_at(tensor, va), va - tensor.va, shared[1],
            self._side(first), self._side(second), pair.count,
        )  # fmt: skip

    def _side(self, use: _Use) -> HazardUse:
        name, line = self._names[use.op_id[0]], describe_site(use.site)
        return HazardUse(use.op_id, use.call, name, line, use.issued, use.landed, use.writes)


def _end(uses: Iterable[LastUse], thread: Thread) -> None:
    """Let uses be over in the epoch that their thread is in."""
    for use in uses:
        use.pending -= 1
        use.epoch = thread.epoch
