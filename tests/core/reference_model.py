"""The naive model of ports, wires and components that the engine must equal, bit for bit.

Every port is a `simpy.Store`, every wire a process that is busy while bytes pass, every component a set of
worker processes. It shares no code with the engine: only the wire rule, the time grid and the tie key
(deliveries first, by edge id and sequence) are the same, each written down here once more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Mapping
from heapq import heappush
from typing import Any

import attrs
import simpy

from kernbench_core.graph import Edge

Steps = Generator[simpy.Event, Any, Any]


def up(ns: float) -> float:
    """Round up to a multiple of 2^-16 ns."""
    return math.ceil(ns * 65536) / 65536


@attrs.frozen
class Behaviour:
    """Say how a node of the reference serves: `service(nbytes)` ns, pipelined or by `servers` workers."""

    service: Callable[[int], float] = lambda nbytes: 0.0
    pipelined: bool = True
    interval: Callable[[int], float] = lambda nbytes: 0.0
    servers: int = 1
    on_head: bool = False


@attrs.define(eq=False)
class Packet:
    """One message on its way."""

    number: int
    path: tuple[str, ...]
    nbytes: int
    hop: int = 0
    head: float = 0.0
    tail: float = 0.0


class ReferenceEnvironment(simpy.Environment):
    """Process deliveries before everything else at one time, in the order of their keys."""

    def schedule(self, event: simpy.Event, priority: Any = 1, delay: float = 0) -> None:
        """Put an event on the queue, its delay rounded up to the grid."""
        heappush(self._queue, (self.now + up(delay), priority, next(self._eid), event))

    def delivery(self, at: float, edge_id: int, sequence: int) -> simpy.Event:
        """Return an event at `at`, which comes before others by (edge id, sequence)."""
        event = self.event()
        event._ok, event._value = True, None
        heappush(self._queue, (at, -1, (edge_id, sequence), event))
        return event


class ReferenceMachine:
    """Simulate `behaviours` joined by `edges`; `feed`, then `run`, then look at `log` and `completions`."""

    def __init__(self, behaviours: Mapping[str, Behaviour], edges: Iterable[Edge]) -> None:
        self.env = ReferenceEnvironment()
        self.events = 0
        self.hops = 0
        self.log: list[tuple[float, float, str, int]] = []
        self.completions: list[tuple[float, str, int, float, float]] = []
        self._behaviours = behaviours
        self._in = {node: simpy.Store(self.env) for node in behaviours}
        self._out: dict[tuple[str, str], simpy.Store] = {}
        self._fed = 0
        for edge_id, edge in enumerate(sorted(edges, key=lambda e: (e.src, e.dst)), 1):
            self._out[edge.src, edge.dst] = simpy.Store(self.env)
            self.env.process(self._wire(edge_id, edge))
        for node, behaviour in sorted(behaviours.items()):
            if behaviour.pipelined:
                middle = simpy.Store(self.env)
                self.env.process(self._pipeline_entry(node, behaviour, middle))
                self.env.process(self._pipeline_exit(node, behaviour, middle))
            else:
                for _ in range(behaviour.servers):
                    self.env.process(self._worker(node, behaviour))

    def feed(self, path: tuple[str, ...], at: float, nbytes: int) -> None:
        """Put a packet of `nbytes` into the first node of `path` at `at` ns."""
        self._fed += 1
        self.env.process(self._injection(Packet(self._fed, path, nbytes), up(at)))

    def run(self) -> None:
        """Process every event, counting."""
        while self.env.peek() < math.inf:
            self.env.step()
            self.events += 1

    def _injection(self, packet: Packet, at: float) -> Steps:
        yield self.env.delivery(at, 0, packet.number)
        packet.head = packet.tail = at
        yield self._in[packet.path[0]].put(packet)

    def _wire(self, edge_id: int, edge: Edge) -> Steps:
        sequence = 0
        latency = up(edge.latency)
        acts_on_head = self._behaviours[edge.dst].on_head
        while True:
            packet: Packet = yield self._out[edge.src, edge.dst].get()
            start = self.env.now
            headers = max(1, math.ceil(packet.nbytes / edge.payload_bytes)) * edge.header_bytes
            end = max(start + up((packet.nbytes + headers) / edge.bandwidth), packet.tail)
            packet.head, packet.tail = start + latency, end + latency
            sequence += 1
            arrival = self.env.delivery(packet.head if acts_on_head else packet.tail, edge_id, sequence)
            self.env.process(self._flight(packet, arrival, edge.dst))
            yield self.env.timeout(end - start)

    def _flight(self, packet: Packet, arrival: simpy.Event, node: str) -> Steps:
        yield arrival
        self.hops += 1
        yield self._in[node].put(packet)

    def _pipeline_entry(self, node: str, behaviour: Behaviour, middle: simpy.Store) -> Steps:
        while True:
            packet: Packet = yield self._in[node].get()
            yield middle.put((packet, self.env.now, up(behaviour.service(packet.nbytes))))

    def _pipeline_exit(self, node: str, behaviour: Behaviour, middle: simpy.Store) -> Steps:
        last_out = -math.inf
        while True:
            packet, arrival, overhead = yield middle.get()
            due = max(arrival + overhead, last_out + up(behaviour.interval(packet.nbytes)))
            yield self.env.timeout(max(0.0, due - self.env.now))
            last_out = self.env.now
            self.log.append((last_out - overhead, last_out, node, packet.number))
            yield from self._leave(node, packet, packet.tail + overhead)

    def _worker(self, node: str, behaviour: Behaviour) -> Steps:
        while True:
            packet: Packet = yield self._in[node].get()
            start = self.env.now
            yield self.env.timeout(behaviour.service(packet.nbytes))
            self.log.append((start, self.env.now, node, packet.number))
            yield from self._leave(node, packet, packet.tail + (self.env.now - start))

    def _leave(self, node: str, packet: Packet, earliest_tail: float) -> Steps:
        packet.head = self.env.now
        packet.tail = max(earliest_tail, packet.head)
        packet.hop += 1
        if packet.hop < len(packet.path):
            yield self._out[node, packet.path[packet.hop]].put(packet)
        else:
            self.completions.append((self.env.now, node, packet.number, packet.head, packet.tail))
