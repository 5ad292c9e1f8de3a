"""A directed edge as an analytic wire: bandwidth, latency, who is on it until when.

For a message that reaches the wire with head h and tail t, n bytes with its headers:

    start        = max(h, available_at)
    available_at = max(start + n / bandwidth, t)
    head_out     = start + latency
    tail_out     = available_at + latency

A wire is not a process: the arrival at the other end is computed when the message enters, and one
event delivers it.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappush
from operator import index
from typing import Any

from kernbench_core.environment import DELIVERY, SEQUENCE_BITS, Environment
from kernbench_core.events.declared import refuses_to_be_hidden
from kernbench_core.events.faults import Untimely
from kernbench_core.events.queue import COMPILED
from kernbench_core.messages import MsgBase
from kernbench_core.units import grid_ceil


class Waits:
    """Count messages that queued at one place: how many, how long together, and the longest, in ns."""

    __slots__ = ("longest_wait_ns", "waited_ns", "waits")

    __init_subclass__ = refuses_to_be_hidden

    def __init__(self) -> None:
        self.waits = 0
        self.waited_ns = 0.0
        self.longest_wait_ns = 0.0

    def note_wait(self, waited: float, until: float | None = None) -> None:
        """Count a message that queued here for `waited` ns, `until` a time (None: until now)."""
        self.waits += 1
        self.waited_ns += waited
        if waited > self.longest_wait_ns:
            self.longest_wait_ns = waited


class Wire(Waits):
    """Carry messages one way, first come first served, and keep the ledger of what passed.

    `bandwidth` is bytes/ns, `latency` ns. `on_head(msg)` says whether the receiver acts on the first
    byte of a message (cut-through) or on its last. `fresh` says that it was not used since somebody last asked which
    wires were; its first use then adds it to `used`. `number` is its edge id: 1 for the first wire of a fabric, one
    more for each other.
    """

    __slots__ = (
        "_arrive", "_duration", "_key", "_last_nbytes", "_last_took", "_on_head", "_other_nbytes", "_other_took",
        "_queue", "_used", "available_at", "bandwidth", "busy_ns", "bytes_carried", "fresh", "header_bytes",
        "latency", "name", "number", "payload_bytes",
    )  # fmt: skip

    def __init__(
        self,
        env: Environment,
        edge_id: int,
        name: str,
        bandwidth: float,
        latency: float,
        *,
        arrive: Callable[[Any], None],
        on_head: bool | Callable[[Any], bool],
        payload_bytes: int = 0,
        header_bytes: int = 0,
        used: list[Wire] | None = None,
    ) -> None:
        super().__init__()
        self._queue = env.clock
        self._key = edge_id << SEQUENCE_BITS
        self._arrive = (arrive,)
        self._on_head = on_head
        self._duration: dict[int, float] = {}
        self._last_nbytes, self._last_took = -1, 0.0
        self._other_nbytes, self._other_took = -1, 0.0
        self.name = name
        self.number = edge_id
        self.bandwidth = bandwidth
        self.latency = grid_ceil(latency)
        self.payload_bytes = payload_bytes
        self.header_bytes = header_bytes
        self.available_at = 0.0
        self.busy_ns = 0.0
        self.bytes_carried = 0
        self.fresh = True
        self._used = [] if used is None else used

    @property
    def deliveries(self) -> int:
        """How many messages, or pieces of them, it has delivered."""
        return self._key & (1 << SEQUENCE_BITS) - 1

    def note_use(self) -> None:
        """Be used from now on: for who writes the totals of a wire, before that, and only while it is `fresh`."""
        self.fresh = False
        self._used.append(self)

    def bytes_on_wire(self, nbytes: int) -> int:
        """Return `nbytes` of payload plus its headers: one per started payload unit, at least one."""
        units = -(-nbytes // self.payload_bytes) if self.payload_bytes else 0
        return nbytes + max(1, units) * self.header_bytes

    def duration(self, nbytes: int) -> float:
        """Return how long `nbytes` of payload with their headers occupy the wire, in ns."""
        took = self._other_took
        if nbytes != self._other_nbytes:
            known = self._duration.get(nbytes)
            if known is None:
                # `index` refuses parts of bytes, which a compiled message does not take in the first place
                known = self._duration[nbytes] = grid_ceil(self.bytes_on_wire(index(nbytes)) / self.bandwidth)
            took = known
        # most wires carry two sizes by turns: requests, and chunks or acknowledgements
        self._other_nbytes, self._other_took = self._last_nbytes, self._last_took
        self._last_nbytes, self._last_took = nbytes, took
        return took

    def busy_by(self, time: float) -> float:
        """Return for how long, in ns, the wire was busy until `time`: what is booked after it does not count yet.

        A gap between two bookings after `time` is taken for one of them, so the result may be too small by that much.
        """
        return max(0.0, self.busy_ns - max(0.0, self.available_at - time))

    def passage(self, nbytes: int, head: float, tail: float, available_at: float) -> tuple[float, float]:
        """Return when a message begins to occupy a wire that is free from `available_at` on, and until when (ns)."""
        start = max(head, available_at)
        return start, max(start + self.duration(nbytes), tail)

    def book(self, nbytes: int, head: float, tail: float, msg: MsgBase | None = None) -> tuple[float, float]:
        """Occupy the wire with `nbytes` and return (head_out, tail_out), without delivering anything.

        `msg` is what is carried, for those who look on; here as in `carry` and `hold`.
        """
        # inlined from passage and duration for speed (tools/compare_trees.py: gemm -1 %)
        took = self._last_took if nbytes == self._last_nbytes else self.duration(nbytes)
        if self.fresh:
            self.note_use()
        start = self.available_at
        if start < head:
            start = head
        end = start + took
        if end < tail:
            end = tail
        self.available_at = end
        self.busy_ns += took
        self.bytes_carried += nbytes
        latency = self.latency
        return start + latency, end + latency

    def deliver(self, msg: MsgBase, time: float) -> None:
        """Deliver `msg` at `time` ns, as the wire's next delivery."""
        msg.callbacks = self._arrive
        self._key += 1
        if COMPILED:
            self._queue.push(time, DELIVERY, self._key, msg)
        else:
            heappush(self._queue, (time, DELIVERY, self._key, msg))

    def carry(self, piece: Any, nbytes: int, start: float, took: float, msg: MsgBase | None = None) -> None:
        """Carry a piece of a message from `start` ns on, taking the wire for `took` ns, with `nbytes` of payload.

        For models that cut messages themselves and wait until the wire is free. The piece, with callbacks of its own,
        is the event at which its first byte is at the other end.
        """
        self.hold(nbytes, start, took, msg)
        self._key += 1
        self._queue.push(start + self.latency, DELIVERY, self._key, piece)

    def hold(self, nbytes: int, start: float, took: float, msg: MsgBase | None = None) -> None:
        """Take the wire from `start` ns on for `took` ns, with `nbytes` of payload, without delivering anything."""
        if self.fresh:
            self.note_use()
        self.available_at = start + took
        self.busy_ns += took
        self.bytes_carried += nbytes

    def hand_over(self, msg: MsgBase) -> None:
        """Deliver a message whose pieces have been carried, at its `head` or `tail`, as its receiver acts on them."""
        on_head = self._on_head
        self.deliver(msg, msg.head if on_head is True or (on_head is not False and on_head(msg)) else msg.tail)

    def charge(self, msg: MsgBase, own: float, stretch: float) -> None:
        """Split what a booking added to a message's tail into serialisation and queueing.

        `stretch` (ns) is how much later the tail leaves than it came, `own` the part of the message's
        own duration that its tail had not spent yet; the rest was waiting.
        """
        waited = stretch
        if own > 0.0:
            msg.serialisation += own
            waited -= own
        if waited:
            msg.queueing += waited
            self.note_wait(waited, self.available_at - max(own, 0.0))

    def send(self, msg: MsgBase, head: float, tail: float) -> None:
        """Carry `msg`, whose first byte is here at `head` and whose last at `tail` (ns), across."""
        if not self._queue.now <= head <= tail:
            raise Untimely(msg, head, tail)
        # inlined from passage, note_use, book, charge and deliver for speed (tools/bench_engine.py: a hop -13 %)
        nbytes = msg.nbytes
        took = self._last_took if nbytes == self._last_nbytes else self.duration(nbytes)
        if self.fresh:
            self.fresh = False
            self._used.append(self)
        start = self.available_at
        if start <= head:  # the wire is free, so that nothing waits
            start = head
            end = start + took
            if end > tail:
                msg.serialisation += end - tail
            else:
                end = tail
        else:
            end = start + took
            if end < tail:
                end = tail
            own = took - (tail - head)
            waited = end - tail
            if own > 0.0:
                msg.serialisation += own
                waited -= own
            if waited:
                msg.queueing += waited
                self.note_wait(waited, start)
        self.available_at = end
        self.busy_ns += took
        self.bytes_carried += nbytes
        latency = self.latency
        msg.propagation += latency
        msg.head = head = start + latency
        msg.tail = tail = end + latency
        on_head = self._on_head
        if not on_head or (on_head is not True and not on_head(msg)):
            head = tail
        msg.callbacks = self._arrive
        self._key = key = self._key + 1
        if COMPILED:
            self._queue.push(head, DELIVERY, key, msg)
        else:
            heappush(self._queue, (head, DELIVERY, key, msg))


class Port:
    """Receive messages from one source; what the graph's wire delivers into, and tests put into."""

    __slots__ = ("_arrive", "_env", "source")

    def __init__(self, env: Environment, source: str, arrive: Callable[[Any], None]) -> None:
        self._env = env
        self._arrive = arrive
        self.source = source

    def put(self, msg: MsgBase) -> None:
        """Deliver `msg` now, from outside the graph, as an event of its own."""
        self._env.inject(msg, self._arrive)
