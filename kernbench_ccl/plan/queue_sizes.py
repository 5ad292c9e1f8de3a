"""How many slots, and of what size, the queues of an algorithm get where nobody says it and there are many of them.

And how long its messages may be: a queue that is empty holds any of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from attrs import evolve, frozen

from kernbench_core.kernel import UNIT
from kernbench_core.peers import SLOT_ALIGNMENT, Channel
from kernbench_core.topology.naming import pe_unit

if TYPE_CHECKING:
    from kernbench_core.graph import Graph, PeSite

PART_OF_TCM: Final = 2
"""Slots may take one in so many bytes of a scratchpad; the rest is for tiles."""

FEWEST_SLOTS: Final = 2
"""With one, a message waits for the credit of the one before; smaller slots cost less than that."""

SMALLEST_SLOT: Final = 4 * SLOT_ALIGNMENT
"""Bytes of a slot below which none is made smaller."""


@frozen
class OwnSlots:
    """The slots of each queue into a PE, where the channel says nothing."""

    slots: int
    slot_bytes: int
    tier: str


def own_slots(graph: Graph, pes: Iterable[PeSite]) -> tuple[OwnSlots, ...]:
    """Return the slots that the first of these PEs has, and each other one that another has; none without queues."""
    nodes = (graph.nodes.get(pe_unit(site.prefix, UNIT)) for site in pes)
    return tuple(
        {
            OwnSlots(node.params["slots"], node.params["slot_bytes"], node.params["tier"]): None
            for node in nodes
            if node is not None
        }
    )


def channel_for(channel: Channel, own: Sequence[OwnSlots], queues: int, tcm_bytes: int) -> Channel:
    """Return a channel with fewer and smaller slots where so many queues into a PE take too much of its scratchpad."""
    if not own:  # sending says so
        return channel
    return fitted(channel, queues, tcm_bytes, own[0].slots, own[0].slot_bytes, own[0].tier)


def message_elements(tile: int, itemsize: int, channel: Channel, own: Iterable[OwnSlots]) -> int:
    """Return the elements of a message: at most `tile`, and no more than any queue of a channel holds when it is empty.

    So a message waits only for those before it. A proof goes by that: a longer one also waits for its receiver.
    """
    held = [(channel.slots or each.slots) * (channel.slot_bytes or each.slot_bytes) for each in own]
    return max(1, min([tile, *(nbytes // itemsize for nbytes in held)]))


def fitted(channel: Channel, queues: int, tcm_bytes: int, slots: int, slot_bytes: int, tier: str) -> Channel:
    """Return a channel of which `queues` into one PE take at most half of its `tcm_bytes`, where that can be.

    `slots`, `slot_bytes` and `tier` are those of the PE, which hold where the channel says nothing. Only what the
    channel leaves open is changed: slots are halved down to two, then their bytes. Messages larger than a slot are
    streamed, so any size will do.
    """
    if (channel.tier or tier) != "tcm" or not queues:
        return channel
    number = slots if channel.slots is None else channel.slots
    size = slot_bytes if channel.slot_bytes is None else channel.slot_bytes
    room = tcm_bytes // PART_OF_TCM
    while channel.slots is None and number > FEWEST_SLOTS and queues * number * size > room:
        number = max(FEWEST_SLOTS, number // 2)
    while channel.slot_bytes is None and size > SMALLEST_SLOT and queues * number * size > room:
        size = max(SMALLEST_SLOT, size // 2 // SLOT_ALIGNMENT * SLOT_ALIGNMENT)
    if (number, size) == (channel.slots or slots, channel.slot_bytes or slot_bytes):
        return channel
    return evolve(channel, slots=number, slot_bytes=size)
