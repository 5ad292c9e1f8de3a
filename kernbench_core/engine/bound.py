"""The lower bound of a transaction's latency, from a formula that shares nothing with the wires.

A leg ends wherever something acts on the last byte. The bound is the sum of all node overheads and
wire latencies, plus for each leg the largest (bytes on the wire) / bandwidth over its wires and
memory channels, plus each `min_service_ns`. Simulated time is never below it, and equals it for one
lone chunk over overhead-style nodes and memory.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

from kernbench_core.events.faults import unusable
from kernbench_core.reporting import checked_ns

if TYPE_CHECKING:
    from kernbench_core.component import ComponentBase
    from kernbench_core.graph import Graph
    from kernbench_core.messages import MsgBase, Transaction

_GRID = 1 << 16


KnownHops: TypeAlias = "dict[tuple[str, str], tuple[float, float, int, int, ComponentBase]]"
"""What is known of hops: latency on the grid, bandwidth, payload and header bytes of the wire, and where it ends."""


def formula_latency(
    graph: Graph, components: Mapping[str, ComponentBase], transaction: Transaction, hops: KnownHops | None = None
) -> float:
    """Return the least time in ns of the round trip of `transaction`, which must not have been sent.

    Counted from the moment it enters its first wire to the moment its answer has wholly arrived.
    `transaction` is turned around by the call. Calls for one machine may share `hops`, an empty dict at first.
    """
    memory = components[transaction.path[-1]]
    walk = _Walk(hops=hops)
    walk.along(graph, components, transaction)
    walk.through_channels(memory, transaction, starts_leg=not memory.acts_on_head(transaction))
    if transaction.op == "write":
        walk.end_leg()
    transaction.turn_around()
    walk.along(graph, components, transaction)
    walk.end_leg()
    return walk.total


def transit_latency(graph: Graph, components: Mapping[str, ComponentBase], transaction: Transaction) -> float:
    """Return the least time in ns of the round trip of `transaction` if its memory took none; see `formula_latency`."""
    memory = components[transaction.path[-1]]
    walk = _Walk(memory)
    walk.along(graph, components, transaction)
    if transaction.op == "write" or not memory.acts_on_head(transaction):
        walk.end_leg()
    transaction.turn_around()
    walk.along(graph, components, transaction)
    walk.end_leg()
    return walk.total


def one_way_latency(graph: Graph, components: Mapping[str, ComponentBase], msg: MsgBase) -> float:
    """Return the least time in ns of a message that nothing answers, which must not have been sent.

    Counted from the moment it enters its first wire to the moment it has wholly arrived.
    """
    walk = _Walk()
    walk.along(graph, components, msg)
    walk.end_leg()
    return walk.total


class _Walk:
    """Add up a path: fixed times at once, the slowest wire of a leg when the leg ends; one node may be `instant`."""

    def __init__(self, instant: ComponentBase | None = None, hops: KnownHops | None = None) -> None:
        self.total = 0.0
        self._slowest = 0.0
        self._instant = instant
        self._hops: KnownHops = {} if hops is None else hops

    def along(self, graph: Graph, components: Mapping[str, ComponentBase], msg: MsgBase) -> None:
        hops, nbytes, end = self._hops, msg.nbytes, msg.path[-1]
        total, slowest = self.total, self._slowest
        for hop in pairwise(msg.path):
            known = hops.get(hop)
            if known is None:
                edge, node = graph.edges[hop], components[hop[1]]
                wire = _on_grid(edge.latency), edge.bandwidth, edge.payload_bytes, edge.header_bytes
                known = hops[hop] = (*wire, node)
            latency, bandwidth, payload_bytes, header_bytes, node = known
            total += latency
            took = _duration(nbytes, bandwidth, payload_bytes, header_bytes)
            if took > slowest:
                slowest = took
            if not node.acts_on_head(msg):
                total += slowest
                slowest = 0.0
            if node is not self._instant and (hop[1] != end or not (msg.reply and node.run_style)):
                total += checked_ns(node, node.min_service_ns(msg), "min_service_ns")
        self.total, self._slowest = total, slowest

    def through_channels(self, memory: ComponentBase, transaction: Transaction, *, starts_leg: bool) -> None:
        if starts_leg:
            self.end_leg()
        used = memory.channels(transaction)
        try:
            times = [(nbytes / bandwidth, latency) for nbytes, bandwidth, latency in used]
        except (TypeError, ValueError, ZeroDivisionError) as error:
            must = f"return (bytes, bytes/ns, latency in ns) of each channel, or nothing ({error})"
            raise unusable(memory, "channels", must, used) from error
        self._slowest = max([self._slowest, *(checked_ns(memory, took, "channels") for took, _ in times)])
        # the slowest channel need not be the one of the longest latency
        self.total += min((checked_ns(memory, latency, "channels") for _, latency in times), default=0.0)

    def end_leg(self) -> None:
        self.total += self._slowest
        self._slowest = 0.0


@lru_cache(4096)
def _duration(nbytes: int, bandwidth: float, payload_bytes: int, header_bytes: int) -> float:
    packets = max(1, math.ceil(nbytes / payload_bytes)) if payload_bytes else 1
    return _on_grid((nbytes + packets * header_bytes) / bandwidth)


@lru_cache(4096)
def _on_grid(ns: float) -> float:
    return math.ceil(ns * _GRID) / _GRID
