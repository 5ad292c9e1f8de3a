"""The queues between PEs: for each (sender, receiver, channel) a ring of slots in the receiver's memory.

Queues come into being when a PE first sends or receives through them and stay for the run, or until their channel is
closed. What moves the payload and counts the credits is the component `pe_ipcq`; this is what both ends agree on.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, Protocol

from kernbench_core.callsite import CallSite, describe_site
from kernbench_core.errors import KernelError, QueueOverflowError
from kernbench_core.kernel.dispatch import state_of
from kernbench_core.memory.hazard import RECYCLED_SLOT, Hazard, HazardUse
from kernbench_core.memory.scratchpad import Birth, TcmBlock
from kernbench_core.peers import TIERS, Channel, check_slots, nearest_in
from kernbench_core.topology.naming import pe_unit
from kernbench_core.units import format_bytes, format_time
from kernbench_core.values.region import Region

if TYPE_CHECKING:
    from kernbench_core.context import RunContext
    from kernbench_core.kernel.commands import KernelCommand
    from kernbench_core.kernel.queue_commands import QueueCommand, SendCmd
    from kernbench_core.memory.allocator import FirstFit
    from kernbench_core.memory.hazards import Hazards
    from kernbench_core.messages import MsgBase

__all__ = ["TIERS", "UNIT", "Queue", "QueueEnd", "Queues", "SlotBlock"]

Key = tuple[int, int, Channel]
"""Which queue: the sender, the receiver and the channel."""

CHOSEN_BY: Final = "slots, slot_bytes and tier of pe_ipcq, as --set components.pe_ipcq.params.slots=2 has it"
"""How the slots are chosen of a channel that does not say it."""

_MOST_ROWS: Final = 6

UNIT: Final = "pe_ipcq"
"""The kind of unit that keeps a PE's queues."""


class QueueEnd(Protocol):
    """A unit that keeps something of queues: where they stand, who waits at them."""

    def uses(self, queue: Queue) -> bool:
        """Tell whether anything of the queue is still under way here; asked when its channel has been closed."""

    def forget(self, queue: Queue) -> None:
        """Drop what is kept of a queue that is given up; the next message makes a new one."""


class Queue:
    """Messages from PE `source` to PE `destination` (machine indices): `slots` are physical regions in `tier`.

    `unreceived` are the messages that were sent and not received yet, the oldest first; `received` counts the others.
    `ends` are the units that keep something of it; `closing` says that it goes as soon as none of them uses it.
    """

    __slots__ = (
        "channel", "closing", "destination", "ends", "last_receipt", "received", "slot_bytes", "slots", "source",
        "tier", "unreceived",
    )  # fmt: skip

    def __init__(
        self, source: int, destination: int, channel: Channel, tier: str, slots: tuple[Region, ...], slot_bytes: int
    ) -> None:
        self.source = source
        self.destination = destination
        self.channel = channel
        self.tier = tier
        self.slots = slots
        self.slot_bytes = slot_bytes
        self.unreceived: deque[SendCmd] = deque()
        self.received = 0
        self.last_receipt: CallSite | None = None
        self.ends: list[QueueEnd] = []
        self.closing = False

    def slots_of(self, nbytes: int) -> int:
        """How many slots a message takes; an empty one takes one."""
        return max(1, -(-nbytes // self.slot_bytes))

    def regions_of(self, number: int, nbytes: int) -> tuple[Region, ...]:
        """Give where a message lies whose first piece is the `number`-th of all: slot by slot, round and round."""
        index = number % len(self.slots)
        regions: list[Region] = []
        while nbytes or not regions:
            run = min(nbytes, (len(self.slots) - index) * self.slot_bytes)
            regions.append(Region(self.slots[index].base, run))
            nbytes -= run
            index = 0
        return tuple(regions)

    def enter(self, message: SendCmd) -> None:
        """Note that a PE sends a message; called by its pe_ipcq, in order, when the command comes."""
        self.unreceived.append(message)

    def take(self, site: CallSite) -> None:
        """Note that the oldest message is received, at the line `site`; called by pe_ipcq when it gives it."""
        self.unreceived.popleft()
        self.received += 1
        self.last_receipt = site


class SlotBlock(TcmBlock):
    """A slot of a queue in the scratchpad, lent to a kernel; it goes back to the sender when nothing refers to it.

    `tl.free` gives it back at once; using it after that is a hazard, because the sender may write the next message.
    `name` is what the hazard calls it, `hazards` are told.
    """

    __slots__ = ("_back", "_hazards", "freed_ns", "name", "pe")

    def __init__(
        self,
        region: Region,
        offset: int,
        birth: Birth,
        back: Callable[[], None],
        name: str = "a slot",
        pe: int = 0,
        hazards: Hazards | None = None,
    ) -> None:
        self._table = None
        self.address = region.base
        self.offset = offset
        self.region = region
        self.birth = birth
        self.users = 0
        self.freed_at = None
        self.freed_ns = 0.0
        self.name = name
        self.pe = pe
        self._hazards = hazards
        self._back: Callable[[], None] | None = back

    def free(self, site: CallSite) -> None:
        """Give the slot back now; called by `tl.free` only."""
        if self.freed_at is not None:
            raise KernelError(
                f"tl.free at {describe_site(site)} must be given a slot once, and {self} was given back at "
                f"{describe_site(self.freed_at)}; free it once."
            )
        self.freed_at = site
        if self._hazards is not None:
            self.freed_ns = self._hazards.now
        self._release()

    def in_flight(self, command: KernelCommand, site: CallSite) -> None:
        """Note that `command` still uses the slot while `tl.free` at `site` gives it back."""
        if self._hazards is not None:
            now = self._hazards.now
            first = HazardUse(command.op_id, command.call, *self._place(command.site), command.born, None)
            self._hazard(first, HazardUse(None, "tl.free", *self._place(site), now, None))

    def refuse(self, use: str, site: CallSite) -> None:
        """Note a use after the slot was given back; nothing stops it, and nothing orders it before the next message."""
        if self._hazards is not None and self.freed_at is not None:
            first = HazardUse(None, "tl.free", *self._place(self.freed_at), self.freed_ns, None)
            self._hazard(first, HazardUse(None, use, *self._place(site), self._hazards.now, None))

    def _place(self, site: CallSite) -> tuple[str, str]:
        assert self._hazards is not None
        return self._hazards.name_of(self.pe), describe_site(site)

    def _hazard(self, first: HazardUse, second: HazardUse) -> None:
        assert self._hazards is not None
        self._hazards.add(Hazard(RECYCLED_SLOT, self.name, None, self.offset, self.region.nbytes, first, second, 1))

    def _release(self) -> None:
        back, self._back = self._back, None
        if back is not None:
            back()


class Queues:
    """All queues of one run, made when they are first asked for."""

    def __init__(self, ctx: RunContext, launch_on: Callable[[int], str] = lambda pe: "") -> None:
        """Make no queue yet. `launch_on(pe)` says, for errors, which launch runs on a PE."""
        self._ctx = ctx
        self._launch_on = launch_on
        self._queues: dict[Key, Queue] = {}
        #: What keeps the slots of each queue: a block of a scratchpad, or their address in SRAM or HBM.
        self._slots: dict[Key, TcmBlock | int] = {}
        self._neighbours: dict[tuple[int, str], int | None] = {}
        #: Payload bytes that have been put on the fabric, and those that have got into their slots.
        self.pushed_bytes = self.landed_bytes = 0
        #: Messages on the fabric that nobody waits for: payload until it is in its slot, credits until they are noted.
        self.under_way: dict[MsgBase, None] = {}

    def __iter__(self) -> Iterator[Queue]:
        return iter(self._queues.values())

    def between(self, source: int, destination: int, command: QueueCommand) -> Queue:
        """Return the queue of the command's channel; the first that asks reserves its slots at the receiver.

        KernelError where the PE keeps no queues, QueueOverflowError where the slots do not fit, which must end the run.
        """
        key = (source, destination, command.channel)
        found = self._queues.get(key)
        if found is None:
            found = self._queues[key] = self._make(source, destination, command)
        return found

    def close(self, name: str) -> None:
        """Give up the queues of channels of this name, which no launch will use any more: their slots are free again.

        A queue that is in use goes when it no longer is: when its messages have been received, and its slots are back
        at the sender. A message that nobody receives keeps its queue, and is told at the end of the run as any other.
        A launch that uses such a channel all the same gets new queues. Takes no simulated time.
        """
        for queue in [queue for queue in self if queue.channel.name == name]:
            queue.closing = True
            self.settle(queue)

    def settle(self, queue: Queue) -> None:
        """Give up a queue whose channel was closed, where nothing uses it; called by its units when a use has ended."""
        if not queue.closing or queue.unreceived or not queue.ends or any(end.uses(queue) for end in queue.ends):
            return
        key = (queue.source, queue.destination, queue.channel)
        del self._queues[key]
        for end in queue.ends:
            end.forget(queue)
        slots = self._slots.pop(key)
        if isinstance(slots, int):
            self._ctx.memory.unreserve(slots)

    def neighbour(self, pe: int, direction: str) -> int | None:
        """Return the nearest PE of the same SIP in a direction of the cube meshes, None where there is none."""
        key = (pe, direction)
        if key not in self._neighbours:
            sip, nodes = self._ctx.design.pes[pe].sip, self._ctx.graph.nodes
            places = {site.index: nodes[site.pe_cpu].position for site in self._ctx.design.pes if site.sip == sip}
            self._neighbours[key] = nearest_in(places, pe, direction)
        return self._neighbours[key]

    def unreceived(self) -> Iterator[str]:
        """Say of each queue with messages that were sent and never received between whom, and where."""
        names = self._ctx.design.pes
        for queue in self:
            if not queue.unreceived:
                continue
            first, more = queue.unreceived[0], len(queue.unreceived) - 1
            others = f", and {more} more after it" if more else ""
            last = queue.last_receipt
            at = "" if last is None else f" (the last receipt there was at {describe_site(last)})"
            yield (
                f"a message of {first.total} B, sent by {names[queue.source].prefix} at {describe_site(first.site)}, "
                f"was never received by {names[queue.destination].prefix}{at}{others}; each must be received once. "
                "Receive it there, or do not send it: a queue outlives its launch, so what one launch leaves in it the "
                "next takes for its own, and the message left at last may be of a later launch than the fault."
            )

    def _make(self, source: int, destination: int, command: QueueCommand) -> Queue:
        ctx, channel = self._ctx, command.channel
        sites = ctx.design.pes
        keeper = ctx.components.get(pe_unit(sites[destination].prefix, UNIT))
        if keeper is None:
            raise KernelError(
                f"{command.call} at {describe_site(command.site)} must use a PE that keeps queues, and "
                f"{sites[destination].prefix} has no unit {UNIT}; add one to the configuration."
            )
        given = keeper.params
        slots: Any = given.get("slots") if channel.slots is None else channel.slots
        slot_bytes: Any = given.get("slot_bytes") if channel.slot_bytes is None else channel.slot_bytes
        tier: Any = given.get("tier") if channel.tier is None else channel.tier
        check_slots(keeper.id, slots, slot_bytes, tier)
        base = self._reserve(source, destination, tier, slots, slot_bytes, command)
        regions = tuple(Region(base + i * slot_bytes, slot_bytes) for i in range(slots))
        return Queue(source, destination, channel, tier, regions, slot_bytes)

    def _reserve(
        self, source: int, destination: int, tier: str, slots: int, slot_bytes: int, command: QueueCommand
    ) -> int:
        """Reserve the slots and return their first physical address."""
        ctx = self._ctx
        site, nbytes = ctx.design.pes[destination], slots * slot_bytes
        key = (source, destination, command.channel)
        what = f"queue from {ctx.design.pes[source].prefix}"
        block: TcmBlock | int | None
        if tier == "tcm":
            table = state_of(ctx, site).tcm
            fit, block = table.fit, table.find(what, (slots, slot_bytes), "int8", nbytes, command.site)
        else:
            fit = ctx.memory.unit_of(site, tier)
            block = fit.alloc(nbytes, what)
        if block is None:
            raise QueueOverflowError(self._overflow(key, tier, slots, slot_bytes, fit, command))
        self._slots[key] = block
        return block if isinstance(block, int) else block.address

    def _overflow(
        self, key: Key, tier: str, slots: int, slot_bytes: int, fit: FirstFit, command: QueueCommand
    ) -> str:
        source, destination = (self._ctx.design.pes[pe].prefix for pe in key[:2])
        launch = self._launch_on(command.pe)
        need = format_bytes(slots * slot_bytes)
        fewer = "fewer slots, " if slots > 1 else ""
        others = " or ".join(other for other in TIERS if other != tier)
        return (
            f"the queue from {source} to {destination}{launch and ', for '}{launch}, must find {need} for its slots "
            f"({slots} x {format_bytes(slot_bytes)}) in the {tier} there, of which {format_bytes(fit.free_bytes)} of "
            f"{format_bytes(fit.size)} are free (largest hole {format_bytes(fit.largest_hole)}); take {fewer}a smaller "
            f"slot_bytes or another tier ({others}): {command.channel.chosen_by or CHOSEN_BY}.\n  It is first used by "
            f"{command.call} at {describe_site(command.site)}, at {format_time(self._ctx.env.now)}."
            + "".join(_held(fit))
        )


def _held(fit: FirstFit) -> Iterator[str]:
    """Sum up what a memory holds, in a few lines: the most bytes first, all queues as one."""
    counts: dict[str, list[int]] = {}
    for block in fit.table():
        owner = str(block.owner.op if isinstance(block.owner, Birth) else block.owner)
        name = "queues" if owner.startswith("queue from ") else str(block.owner)
        counts.setdefault(name, []).append(block.nbytes)
    listed = sorted(counts.items(), key=lambda item: (-sum(item[1]), item[0]))
    if listed:
        yield " What is there:"
    for name, sizes in listed[:_MOST_ROWS]:
        yield f"\n  {format_bytes(sum(sizes)):>9}  {f'{len(sizes)} x ' if len(sizes) > 1 else ''}{name}"
    rest = [nbytes for _, sizes in listed[_MOST_ROWS:] for nbytes in sizes]
    if rest:
        yield f"\n  {format_bytes(sum(rest)):>9}  {len(rest)} more"
