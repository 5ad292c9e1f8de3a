"""The queues between PEs: for each (sender, receiver, channel) a ring of slots in the receiver's memory.

Queues come into being when a PE first sends or receives through them and stay for the run, or until their channel is
closed. What moves the payload and counts the credits is the component `pe_ipcq`; this is what both ends agree on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol

from kernbench_core.callsite import CallSite, describe_site
from kernbench_core.errors import KernelError, QueueOverflowError
from kernbench_core.fabric import Fabric, SharedPart
from kernbench_core.kernel import UNIT, Kernels
from kernbench_core.memory import Birth, TcmBlock
from kernbench_core.peers import TIERS, Channel, check_slots
from kernbench_core.topology.naming import pe_unit
from kernbench_core.units import format_bytes, format_time
from kernbench_core.values import Region

if TYPE_CHECKING:
    from kernbench_core.kernel import QueueCommand, SendCmd
    from kernbench_core.memory import FirstFit
    from kernbench_core.values import Chunk

_Key = tuple[int, int, Channel]
"""Which queue: the sender, the receiver and the channel."""

CHOSEN_BY: Final = "slots, slot_bytes and tier of pe_ipcq, as --set components.pe_ipcq.params.tier={tier} has it"
"""How the slots are chosen of a channel that does not say it."""

_MOST_ROWS: Final = 6


class QueueEnd(Protocol):
    """A unit that keeps something of queues: where they stand, who waits at them."""

    def uses(self, queue: Queue) -> bool:
        """Tell whether anything of the queue is still under way here; asked when its channel has been closed."""

    def forget(self, queue: Queue) -> None:
        """Drop what is kept of a queue that is given up; the next message makes a new one."""


class Queue:
    """Messages from PE `source` to PE `destination` (machine indices): `slots` are physical regions in `tier`.

    `unreceived` are the messages that were sent and not received yet, the oldest first; `received` counts the others.
    `ends` are the units that keep something of it, the sender's what is at `outgoing`, the receiver's at `incoming`;
    `closing` says that it goes as soon as none of them uses it. `cuts` are the chunks of what was last in each slot,
    and its bytes.
    """

    __slots__ = (
        "channel", "closing", "cuts", "destination", "ends", "incoming", "last_receipt", "outgoing", "received",
        "slot_bytes", "slots", "source", "tier", "unreceived",
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
        self.unreceived: list[SendCmd] = []
        self.received = 0
        self.last_receipt: CallSite | None = None
        self.ends: list[QueueEnd] = []
        self.outgoing: Any = None
        self.incoming: Any = None
        self.closing = False
        self.cuts: list[tuple[int, tuple[Chunk, ...]] | None] = [None] * len(slots)

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
        self.unreceived.pop(0)
        self.received += 1
        self.last_receipt = site


class Queues(SharedPart):
    """All queues of one run, made when they are first asked for."""

    needs: ClassVar[tuple[type, ...]] = (Kernels,)

    def __init__(self, fabric: Fabric) -> None:
        """Make no queue yet; the node of each PE's `pe_ipcq` says which slots it keeps where a channel does not."""
        self._sites, self._nodes, self._env = fabric.layout.pes, fabric.graph.nodes, fabric.env
        self._kernels: Kernels = fabric.parts[Kernels]
        self._queues: dict[_Key, Queue] = {}
        #: What keeps the slots of each queue: a block of a scratchpad, or their address in SRAM or HBM.
        self._slots: dict[_Key, TcmBlock | int] = {}

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

    def close(self, channel: str) -> None:
        """Give up the queues of channels of this name, which no launch will use any more: their slots are free again.

        A queue that is in use goes when it no longer is: when its messages have been received, and its slots are back
        at the sender. A message that nobody receives keeps its queue, and is told at the end of the run as any other.
        A launch that uses such a channel all the same gets new queues. Takes no simulated time.
        """
        for queue in [queue for queue in self if queue.channel.name == channel]:
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
            self._kernels.memory.unreserve(slots)

    def unreceived(self) -> Iterator[str]:
        """Say of each queue with messages that were sent and never received between whom, and where."""
        names = self._sites
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
        channel, sites = command.channel, self._sites
        keeper = self._nodes.get(pe_unit(sites[destination].prefix, UNIT))
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
        site, nbytes = self._sites[destination], slots * slot_bytes
        key = (source, destination, command.channel)
        what = f"queue from {self._sites[source].prefix}"
        block: TcmBlock | int | None
        if tier == "tcm":
            table = self._kernels.state(site).tcm
            fit, block = table.fit, table.find(what, (slots, slot_bytes), "int8", nbytes, command.site)
        else:
            fit = self._kernels.memory.unit_of(site, tier)
            block = fit.alloc(nbytes, what)
        if block is None:
            raise QueueOverflowError(self._overflow(key, tier, slots, slot_bytes, fit, command))
        self._slots[key] = block
        return block if isinstance(block, int) else block.address

    def _overflow(
        self, key: _Key, tier: str, slots: int, slot_bytes: int, fit: FirstFit, command: QueueCommand
    ) -> str:
        source, destination = (self._sites[pe].prefix for pe in key[:2])
        launch = self._kernels.launch_on(command.pe)
        need = format_bytes(slots * slot_bytes)
        fits = fit.largest_hole // slot_bytes
        fewer = f"at most {fits} slot{'s' if fits > 1 else ''}, " if fits else ""
        others = [other for other in TIERS if other != tier]
        chosen_by = (command.channel.chosen_by or CHOSEN_BY).replace("{tier}", others[-1])
        return (
            f"the queue from {source} to {destination}{launch and ', for '}{launch}, must find {need} for its slots "
            f"({slots} x {format_bytes(slot_bytes)}) in the {tier} there, of which {format_bytes(fit.free_bytes)} of "
            f"{format_bytes(fit.size)} are free (largest hole {format_bytes(fit.largest_hole)}); take {fewer}a smaller "
            f"slot_bytes or another tier ({' or '.join(others)}): {chosen_by}.\n  It is first used by "
            f"{command.call} at {describe_site(command.site)}, at {format_time(self._env.now)}."
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
