"""How many slots, and of what size, the queues of an algorithm get where nobody says it and there are many of them."""

from __future__ import annotations

from typing import Final

from attrs import evolve

from kernbench_core.peers import SLOT_ALIGNMENT, Channel

PART_OF_TCM: Final = 2
"""Slots may take one in so many bytes of a scratchpad; the rest is for tiles."""

FEWEST_SLOTS: Final = 2
"""With one, a message waits for the credit of the one before; smaller slots cost less than that."""

SMALLEST_SLOT: Final = 4 * SLOT_ALIGNMENT
"""Bytes of a slot below which none is made smaller."""


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
