"""How much of a collective a PE may hold, and have under way: what fills the links, as far as its scratchpad has room.

A link of b bytes/ns whose messages take T ns to their receiver stands idle unless b T bytes are under way on it, and
one more message is ready to follow at each of its ends. What a switch has in whole before it goes on is in T. A PE that
sends over several links, to as many peers, needs that of each; PEs of a rank share it. What is under way may wait in
the PE's scratchpad, and in slots of its peers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from attrs import frozen

from kernbench_ccl.contract import HELD_BYTES
from kernbench_core.graph import EdgeKind
from kernbench_core.kernel import UNIT
from kernbench_core.topology.naming import pe_unit

if TYPE_CHECKING:
    from kernbench_ccl.plan.groups import Group
    from kernbench_core.component import ComponentBase
    from kernbench_core.graph import Graph
    from kernbench_core.host import Runtime
    from kernbench_core.peers import Channel

PART_OF_TCM: Final = 4
"""Tiles that are held may take one in so many bytes of a scratchpad."""

BESIDE_SLOTS: Final = 2
"""And one in so many of the bytes that slots leave of it: loads ahead and receipts need the rest."""

FEW_WAYS: Final = 2
"""So many ways a PE sends whose algorithm has few peers: up and down, or both ways around; a switch has one link."""

AT_BOTH_ENDS: Final = 2
"""Messages on a link that are not on their way: one goes in as the last comes out."""

LEAST: Final = HELD_BYTES // 2
"""Bytes that are under way where links want less, as PEs are not in step."""


@frozen
class MessageWindow:
    """What a PE may keep in its scratchpad, what of it may be under way, and what that should be; all in bytes.

    `held` is what tiles may take at once, queues not counted; `queued` is what the slots of its peers take of it. Where
    `under_way` or `queued` is less than `wanted`, links may stand idle.
    """

    held: int
    under_way: int
    wanted: int
    queued: int

    @property
    def limit(self) -> str | None:
        """What has less room than is wanted: "scratchpad" or "slots"; None where all of it has room."""
        if self.under_way < self.wanted:
            return "scratchpad"
        return "slots" if self.queued < self.wanted else None


def room_of(tcm_bytes: int, slot_bytes: int) -> int:
    """Return what tiles of a PE may take of a scratchpad in which slots take `slot_bytes`; at least one byte."""
    return max(1, min(tcm_bytes // PART_OF_TCM, (tcm_bytes - slot_bytes) // BESIDE_SLOTS))


def wanted_bytes(rates: Iterable[float], latency: float, n_pe: int, message: float, most: float) -> int:
    """Return the bytes that a PE, one of `n_pe`, should have under way over links of these rates (GB/s), one a peer.

    `latency` is that of the path to a peer in ns, `message` the bytes of a message; a peer gets `most` bytes in all.
    """
    each = (max(message, (rate * latency + AT_BOTH_ENDS * message) / n_pe) for rate in rates)
    return math.ceil(sum(min(bytes_, most) for bytes_ in each))


def window_of(held: int, wanted: int, queued: int) -> MessageWindow:
    """Return a window of what is wanted, at most half of what is held: what is received takes as much."""
    return MessageWindow(held, max(1, min(max(wanted, LEAST), held // 2)), wanted, queued)


def window_for(
    rt: Runtime, group: Group, channel: Channel, peers: int, n_pe: int, message: int, whole: int
) -> MessageWindow:
    """Return the window of each PE, of `n_pe` of each rank, that receives from `peers` others (0: few).

    `message` are the bytes of the largest message, `whole` those of the collective, 0 where ranks bring what they like.
    """
    site = rt.design.pes[group.pes[0][0]]
    keeper = rt.components.get(pe_unit(site.prefix, UNIT))
    given = {} if keeper is None else keeper.params
    slot = channel.slot_bytes or given.get("slot_bytes", 0)
    queue = (channel.slots or given.get("slots", 0)) * slot
    in_tcm = (channel.tier or given.get("tier")) == "tcm"
    held = room_of(rt.design.tcm_bytes, max(peers, FEW_WAYS) * queue if in_tcm else 0)
    rates = _links_out(rt.graph, site.sip)
    rates = rates[:peers] if peers else (rates * FEW_WAYS)[:FEW_WAYS]
    others = [pes[0] for pes in group.pes[1 : 1 + (peers or 1)]]
    packet = min(rt.design.chunk_bytes, slot or math.inf, message)
    latency = max((_latency(rt, group.pes[0][0], other, packet) for other in others), default=0.0)
    own = math.ceil(whole / n_pe) if whole else math.inf
    wanted = wanted_bytes(rates, latency, n_pe, min(message, own), own)
    return window_of(held, wanted, queue * (peers or len(rates)))


def _links_out(graph: Graph, sip: int | None) -> list[float]:
    """Return the bandwidths (GB/s) of the links out of a SIP, the fastest first."""
    found = [edge.bandwidth for edge in graph.edges.values()
             if edge.kind is EdgeKind.SCALE_UP and graph.nodes[edge.src].sip == sip]  # fmt: skip
    return sorted(found, reverse=True)


def _latency(rt: Runtime, source: int, target: int, packet: float) -> float:
    """Return the time in ns of the wires and nodes between the DMA of a PE and that of another, by machine index.

    A node that acts on last bytes has a `packet` of so many bytes in whole first.
    """
    start, end = (rt.design.pes[index].prefix for index in (source, target))
    path = rt.routes.find_memory_path(pe_unit(start, "pe_dma"), pe_unit(end, "pe_tcm"))[:-1]
    edges = [rt.graph.edges[pair] for pair in pairwise(path)]
    inner = [rt.components[node] for node in path[1:-1]]
    nodes = sum(float(each.params.get("overhead", 0.0)) for each in inner)
    stored = sum(packet / into.bandwidth for into, each in zip(edges, inner, strict=False) if acts_on_tails(each))
    return sum(edge.latency for edge in edges) + nodes + stored


def acts_on_tails(node: ComponentBase) -> bool:
    """Say whether a model on the way has a packet in whole before it passes it on."""
    return bool(node.params.get("store_and_forward")) or not type(node).ON_HEAD
