"""The queues between PEs: for each (sender, receiver, channel) a ring of slots in the receiver's memory.

Queues come into being when a PE first sends or receives through them and stay for the run. What moves the payload and
counts the credits is the component `pe_ipcq`; this is what both ends agree on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from attrs import frozen

from kernbench_core.callsite import CallSite, describe_site
from kernbench_core.dispatch import state_of
from kernbench_core.errors import KernelError
from kernbench_core.naming import pe_unit
from kernbench_core.regions import Region
from kernbench_core.tcm import Birth, TcmBlock

if TYPE_CHECKING:
    from kernbench_core.context import RunContext
    from kernbench_core.peers import Channel

TIERS: Final = ("tcm", "sram", "hbm")
"""Where slots may be: the receiver's scratchpad, its cube's SRAM, its own HBM slice."""


@frozen(eq=False)
class Queue:
    """Messages from PE `source` to PE `destination` (machine indices): `slots` are physical regions in `tier`."""

    source: int
    destination: int
    channel: Channel
    tier: str
    slots: tuple[Region, ...]
    slot_bytes: int

    def slots_of(self, nbytes: int) -> int:
        """How many slots a message takes; an empty one takes one."""
        return max(1, -(-nbytes // self.slot_bytes))


class SlotBlock(TcmBlock):
    """A slot of a queue in the scratchpad, lent to a kernel; it goes back to the sender when nothing refers to it.

    `tl.free` gives it back at once; using it after that is a hazard, because the sender may write the next message.
    """

    __slots__ = ("_back", "given_back_at")

    def __init__(self, region: Region, offset: int, birth: Birth, back: Callable[[], None]) -> None:
        self._table = None
        self.address = region.base
        self.offset = offset
        self.region = region
        self.birth = birth
        self.users = 0
        self.freed_at = None
        self.given_back_at: CallSite | None = None
        self._back: Callable[[], None] | None = back

    def free(self, site: CallSite) -> None:
        """Give the slot back now; called by `tl.free` only."""
        if self.given_back_at is not None:
            raise KernelError(
                f"tl.free at {describe_site(site)} must be given a slot once, and {self} was given back at "
                f"{describe_site(self.given_back_at)}."
            )
        self.given_back_at = site
        self._release()

    def _release(self) -> None:
        back, self._back = self._back, None
        if back is not None:
            back()


class Queues:
    """All queues of one run, made when they are first asked for."""

    def __init__(self, ctx: RunContext) -> None:
        self._ctx = ctx
        self._queues: dict[tuple[int, int, str], Queue] = {}
        self._kept: list[TcmBlock] = []

    def __iter__(self) -> Iterator[Queue]:
        return iter(self._queues.values())

    def between(self, source: int, destination: int, channel: Channel) -> Queue:
        """Return the queue from one PE to another; the first call reserves its slots at the receiver."""
        key = (source, destination, channel.name)
        found = self._queues.get(key)
        if found is None:
            found = self._queues[key] = self._make(source, destination, channel)
        return found

    def _make(self, source: int, destination: int, channel: Channel) -> Queue:
        ctx = self._ctx
        sites = ctx.design.pes
        unit = pe_unit(sites[destination].prefix, "pe_ipcq")
        params = ctx.components[unit].params
        slots = params["slots"] if channel.slots is None else channel.slots
        slot_bytes = params["slot_bytes"] if channel.slot_bytes is None else channel.slot_bytes
        tier = params["tier"] if channel.tier is None else channel.tier
        base = self._reserve(source, destination, tier, slots, slot_bytes)
        regions = tuple(Region(base + i * slot_bytes, slot_bytes) for i in range(slots))
        return Queue(source, destination, channel, tier, regions, slot_bytes)

    def _reserve(self, source: int, destination: int, tier: str, slots: int, slot_bytes: int) -> int:
        """Reserve the slots and return their first physical address."""
        ctx = self._ctx
        site = ctx.design.pes[destination]
        sender = ctx.design.pes[source].prefix
        if tier == "tcm":
            table = state_of(ctx, site).tcm
            what = f"slots of the queue from {sender}"
            block = table.allocate(what, (slots, slot_bytes), "int8", slots * slot_bytes, _HERE)
            self._kept.append(block)
            return block.address
        return ctx.memory.reserve(site, tier, slots * slot_bytes, f"the queue from {sender}")


_HERE: CallSite = (Queues._make.__code__, 0)
