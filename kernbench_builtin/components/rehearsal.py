"""When a launch reaches the last of its PEs, worked out before it is sent: the fan-out on an idle machine.

It follows every message of the fan-out over its wires, as its wires say (a message waits for the one before it) and
in the order of deliveries (time, then edge), so that on a machine that does nothing else nobody is late, and nobody
waits longer than the farthest PE makes necessary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from kernbench_core.messages import LaunchMsg
from kernbench_core.units import grid_ceil

if TYPE_CHECKING:
    from kernbench_core.fabric import Neighbour

Sender = Callable[[str, tuple[int, ...]], Iterator[LaunchMsg]]
"""Make the messages that a node sends on for some PEs; none where the fan-out ends."""
_Key = tuple[float, bool, tuple[str, str], int]


class Rehearsal:
    """Play one fan-out through; `reach` gives the time in ns from its first message to its last arrival."""

    def __init__(self, components: Mapping[str, Neighbour], fan_out: Sender) -> None:
        self._components, self._fan_out = components, fan_out
        self._available: dict[tuple[str, str], float] = {}
        self._coming: list[tuple[_Key, LaunchMsg]] = []
        self._sent = 0

    def reach(self, start: str, targets: tuple[int, ...]) -> float:
        """Return how long after `start` sends them on the messages for `targets` have all arrived, in ns."""
        last = 0.0
        self._begin(start, targets, 0.0)
        while self._coming:
            (now, served, _, _), msg = heappop(self._coming)
            here = self._components[msg.path[msg.hop]]
            if served:
                self._begin(here.id, msg.targets, now)
                continue
            took = grid_ceil(here.min_service_ns(msg))
            if msg.hop < len(msg.path) - 1:
                self._send(msg, now + took, msg.tail + took)
            elif next(self._fan_out(here.id, msg.targets), None) is None:
                last = max(last, msg.tail + took)
            else:
                self._come(msg.tail + took, True, msg)
        return last

    def _begin(self, node: str, targets: tuple[int, ...], now: float) -> None:
        for msg in self._fan_out(node, targets):
            self._send(msg, now, now)

    def _send(self, msg: LaunchMsg, head: float, tail: float) -> None:
        """Put a message on the wire behind its node, as a wire would."""
        pair = (msg.path[msg.hop], msg.path[msg.hop + 1])
        wire = self._components[pair[0]].out_ports[pair[1]]
        start, end = wire.passage(msg.nbytes, head, tail, self._available.get(pair, 0.0))
        self._available[pair] = end
        msg.hop += 1
        msg.head, msg.tail = start + wire.latency, end + wire.latency
        acts_on_head = self._components[pair[1]].acts_on_head(msg)
        self._come(msg.head if acts_on_head else msg.tail, False, msg)

    def _come(self, time: float, served: bool, msg: LaunchMsg) -> None:
        """Note when something happens next: deliveries come before everything else of one time, by edge."""
        self._sent += 1
        heappush(self._coming, ((time, served, (msg.path[msg.hop - 1], msg.path[msg.hop]), self._sent), msg))
