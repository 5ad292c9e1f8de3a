"""Flits, the virtual channels that hold them, the ports of a router, and the part of a path that a message goes.

A flit is the piece of a message that buffers, credits and switches count.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Protocol

from kernbench_core.messages import MsgBase
from kernbench_core.units import grid_ceil
from kernbench_core.wire import Wire


class Woken(Protocol):
    """The router of a port."""

    def wake(self, time: float) -> None:
        """Have it decide at `time` ns, or in its first cycle after that."""


class VirtualChannel:
    """Hold the flits of one virtual channel of an input port, and which output channel the message in front has."""

    __slots__ = ("flits", "number", "out", "out_channel", "port", "turn")

    def __init__(self, port: InputPort, number: int) -> None:
        self.port = port
        self.number = number
        self.flits: deque[Flit] = deque()
        self.out: OutputPort | None = None
        self.out_channel = 0
        #: Which of the output channels is asked for first.
        self.turn = 0


class InputPort:
    """Hold the virtual channels that one neighbour sends into.

    `feeder` is the output port at the other end, which counts credits. Without one this is the edge of the network:
    messages come whole and wait in `pending`, without limit, for a channel that has none.
    """

    __slots__ = ("active", "channels", "feeder", "index", "pending", "turn")

    def __init__(self, index: int, channels: int) -> None:
        self.index = index
        self.channels = [VirtualChannel(self, number) for number in range(channels)]
        self.active: list[VirtualChannel] = []
        self.feeder: OutputPort | None = None
        self.pending: deque[list[Flit]] = deque()
        self.turn = 0


class OutputPort:
    """Know which messages have the virtual channels behind a wire, and how many flits their buffers still take.

    `target` is the input port at the other end; without one this is the edge of the network, and takes everything.
    Without a `wire` messages end here. `flit_ns` is how long a flit takes.
    """

    __slots__ = (
        "arrive", "channel_turns", "credits", "flit_ns", "free_at", "owners", "returning", "router", "target", "turn",
        "wire",
    )  # fmt: skip

    def __init__(self, router: Woken, wire: Wire | None, flit_ns: float, channels: int) -> None:
        self.router = router
        self.wire = wire
        self.flit_ns = flit_ns
        self.free_at = -math.inf
        self.target: InputPort | None = None
        self.arrive: tuple[Callable[[Any], None], ...] = ()
        self.owners: list[VirtualChannel | None] = [None] * channels
        self.channel_turns = [0] * channels
        self.credits: list[int] = []
        #: Credits on their way back: from when on (ns) each counts, and for which channel.
        self.returning: deque[tuple[float, int]] = deque()
        self.turn = 0

    def join(self, target: InputPort, flits: int, arrive: Callable[[Any], None]) -> None:
        """Send into a port whose channels take `flits` each; `arrive` is called with each flit."""
        self.target = target
        self.arrive = (arrive,)
        target.feeder = self
        self.owners = [None] * len(target.channels)
        self.channel_turns = [0] * len(target.channels)
        self.credits = [flits] * len(target.channels)

    def may_send(self, channel: int, now: float) -> bool:
        """Say whether the buffer behind a channel has room, as far as is known at `now` ns."""
        if self.target is None:
            return True
        returning = self.returning
        while returning and returning[0][0] <= now:
            self.credits[returning.popleft()[1]] += 1
        return self.credits[channel] > 0

    def give_back(self, channel: int, time: float) -> None:
        """Take back a credit, to count from `time` ns on."""
        self.returning.append((time, channel))
        if not self.credits[channel]:
            self.router.wake(time)

    def free_channel(self, first: int, last: int, turn: int) -> int | None:
        """Return the first channel from `first` to before `last`, beginning at its `turn`, that no message has."""
        count = last - first
        for step in range(count):
            channel = first + (turn + step) % count
            if self.owners[channel] is None:
                return channel
        return None


class Switching(Protocol):
    """A router, as far as the parts of paths know it."""

    latency_ns: float
    outputs: dict[str, OutputPort]


class Subpath:
    """Be the part of a path from its node number `start` to `end`, all of them routers with virtual channels.

    `steps` has for each router the output port and the first and last + 1 of the channels that may be taken there.
    `fixed_ns` is what all wires and routers add for a message that meets nobody, `wires_ns` the wires' part of it.
    """

    __slots__ = ("end", "entered", "fixed_ns", "held", "left", "slowest_ns", "steps", "wires_ns")

    def __init__(self, routers: Sequence[Switching], steps: list[tuple[OutputPort, int, int]], end: int) -> None:
        self.steps = steps
        self.end = end
        self.slowest_ns = max(port.flit_ns for port, _, _ in steps)
        self.wires_ns = sum(port.wire.latency for port, _, _ in steps if port.wire is not None)
        self.fixed_ns = self.wires_ns + sum(router.latency_ns for router in routers)
        #: How many messages have entered and left, and those that came out before their turn, by number.
        self.entered = self.left = 0
        self.held: dict[int, tuple[Crossing, float, float]] = {}

    def count(self, nbytes: int, size: int) -> int:
        """Return how many flits of `size` bytes a message is, with its headers on the wire that needs most of them."""
        most = max((port.wire.bytes_on_wire(nbytes) for port, _, _ in self.steps if port.wire is not None), default=0)
        return max(1, -(-max(nbytes, most) // size))

    def least_tail(self, crossing: Crossing, size: int) -> float:
        """Return when in ns the last byte of a message that meets nobody is out: behind its tail, and all its flits."""
        flits = self.count(crossing.msg.nbytes, size) * self.slowest_ns
        return max(crossing.tail, crossing.head + flits) + self.fixed_ns


class Crossing:
    """Keep one message on its way along a `subpath`: it is the `number`-th on it, and came at (`head`, `tail`) ns."""

    __slots__ = ("head", "msg", "number", "subpath", "tail")

    def __init__(self, msg: MsgBase, subpath: Subpath, number: int) -> None:
        self.msg = msg
        self.subpath = subpath
        self.number = number
        self.head = msg.head
        self.tail = msg.tail


class Flit:
    """Move one piece of a message from router to router; it is the event of its own arrival.

    `at` counts the routers of its subpath that it has passed. `channel` is the virtual channel that it is bound for or
    lies in, and `came` when (ns). From `ready` on it may ask for what it needs next: an output channel if it `leads`,
    else the switch.
    """

    __slots__ = ("at", "callbacks", "came", "channel", "crossing", "ends", "leads", "nbytes", "ready")

    _ok: ClassVar[bool] = True
    _value: ClassVar[None] = None

    def __init__(self, crossing: Crossing, leads: bool, ends: bool, nbytes: int, ready: float) -> None:
        self.crossing = crossing
        self.leads = leads
        self.ends = ends
        self.nbytes = nbytes
        self.came = self.ready = ready
        self.at = 0
        self.channel: VirtualChannel | None = None
        self.callbacks: tuple[Callable[[Any], None], ...] | None = None


def flits_of(crossing: Crossing, count: int, size: int) -> list[Flit]:
    """Cut a message into `count` flits of `size` bytes; each is ready when its first byte is at the first router."""
    left, step = crossing.msg.nbytes, (crossing.tail - crossing.head) / count
    flits = []
    for index in range(count):
        nbytes = min(size, left) if index + 1 < count else left
        left -= nbytes
        flits.append(Flit(crossing, not index, index + 1 == count, nbytes, grid_ceil(crossing.head + index * step)))
    return flits
