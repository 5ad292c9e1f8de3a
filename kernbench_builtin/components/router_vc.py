"""A router that buffers flits in virtual channels, and sends them when the next router has given it credit."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from kernbench_builtin.components.flits.buffers import tell_slow_wires
from kernbench_builtin.components.flits.channels import Crossing, Flit, InputPort, OutputPort, VirtualChannel, flits_of
from kernbench_builtin.components.flits.subpaths import Subpaths
from kernbench_core.component import ComponentBase
from kernbench_core.errors import ConfigError
from kernbench_core.fabric import Fabric
from kernbench_core.graph import Node
from kernbench_core.messages import MsgBase
from kernbench_core.params import Param
from kernbench_core.reporting import Stat
from kernbench_core.units import format_time, grid_ceil


class _Decision:
    """Be the event at which a router decides."""

    __slots__ = ("callbacks",)

    _ok: ClassVar[bool] = True
    _value: ClassVar[None] = None

    def __init__(self, decide: Callable[[Any], None]) -> None:
        self.callbacks: tuple[Callable[[Any], None], ...] | None = (decide,)


class RouterVc(ComponentBase):
    """Pass messages on flit by flit, each when the buffer that it goes to has room.

    Models: virtual channels with finite buffers, credits that take time to come back, wormhole flow control, routing, \
channel and switch allocation by separable, input-first, round-robin arbiters, one decision a cycle; where rows or \
columns are rings, classes of channels with a dateline.
    Ignores: Credits take no bandwidth. Speculation, look-ahead and adaptive routing are not modelled.
    Timing: a head flit leaves overhead after it came, if it meets nobody; then one flit a cycle. A credit counts \
credit_delay after its flit left the buffer.
    Source: Dally and Towles, Principles and Practices of Interconnection Networks, chapters 13, 16 and 19.
    """

    ON_HEAD = True
    bound_is_exact = False
    back_pressure = True
    PARAMS: ClassVar[tuple[Param, ...]] = (
        Param("overhead", "time", "4 ns", "Latency of a head flit from input to output port, if it meets nobody."),
        Param("routing_delay", "time", "1 ns", "Part of it that only a head flit takes, in front of its channel."),
        Param("credit_delay", "time", "2 ns", "Until room in a buffer counts where it is filled.", positive=True),
        Param("vcs", "int", 4, "Virtual channels of each input port.", minimum=1, maximum=64),
        Param("buffer_flits", "int", 8, "Flits that the buffer of a virtual channel takes: a long wire needs its "
              "bandwidth x (latency + overhead + credit_delay) / flit for a message, scale-up links hundreds.",
              minimum=1, maximum=65536),
        Param("flit", "size", "32 B", "Size of a flit.", positive=True),
        Param("in_order", "bool", True, "Whether messages on one path wait for each other to come out in order."),
    )  # fmt: skip
    STATS: ClassVar[tuple[Stat, ...]] = (
        Stat("flits", "", "sum", "Flits that were switched."),
        Stat("credit_stalls", "", "sum", "Decisions in which a flit stayed for want of a credit."),
    )

    def __init__(self, node: Node, fabric: Fabric) -> None:
        super().__init__(node, fabric)
        params = self.params
        self.latency_ns = grid_ceil(params["overhead"])
        self.flits = self.credit_stalls = 0
        self.cycle_ns = 0.0
        self.outputs: dict[str, OutputPort] = {}
        self.subpaths: Subpaths
        self._routing = grid_ceil(params["routing_delay"])
        self._credit_delay = grid_ceil(params["credit_delay"])
        self._size: int = params["flit"]
        self._vcs: int = params["vcs"]
        self._in_order: bool = params["in_order"]
        self._inputs: list[InputPort] = []
        self._edges: dict[str, InputPort] = {}
        self._inside: dict[MsgBase, None] = {}
        self._due = math.inf
        self._last = -math.inf
        self._again = False
        self._later = math.inf

    # Neighbours -------------------------------------------------------------------------------------

    def connect(self) -> None:
        """Make the ports of all routers of a run, and what they share; the first of them does so for all."""
        if self.outputs:
            return
        peers = {name: other for name, other in self.fabric.components.items() if isinstance(other, RouterVc)}
        for router in peers.values():
            router._make_ports()
        for router in peers.values():
            router._join(peers)
        subpaths = Subpaths(peers)
        for router in peers.values():
            router.subpaths = subpaths
            router._check(peers)
        tell_slow_wires(
            (router.id, name, out, router._round_ns(name, peers[name]))
            for router in peers.values()
            for name, out in router.outputs.items()
            if name in peers
        )

    def _make_ports(self) -> None:
        took = {name: grid_ceil(self._size / wire.bandwidth) for name, wire in self.out_ports.items()}
        self.cycle_ns = min(took.values(), default=grid_ceil(1.0))
        self._after = self.latency_ns - self._routing - self.cycle_ns
        self.outputs = {name: OutputPort(self, wire, took[name], self._vcs) for name, wire in self.out_ports.items()}
        self.outputs[""] = OutputPort(self, None, self.cycle_ns, self._vcs)
        for name in ("", *self.in_ports):
            port = InputPort(len(self._inputs), self._vcs)
            self._inputs.append(port)
            self._edges[name] = port

    def _join(self, peers: dict[str, RouterVc]) -> None:
        for name, output in self.outputs.items():
            if name in peers:
                peer = peers[name]
                output.join(peer._edges.pop(self.id), peer.params["buffer_flits"], peer._take)

    def _round_ns(self, name: str, peer: RouterVc) -> float:
        """Return after how many ns a place in the buffer of a neighbour is there again: the round of a credit."""
        return self._after + self.out_ports[name].latency + peer._credit_delay

    def _check(self, peers: dict[str, RouterVc]) -> None:
        """Raise ConfigError for what cannot work."""
        if self._after < 0:
            raise ConfigError(
                f"{self.id}: overhead must hold routing_delay and a cycle of {format_time(self.cycle_ns)} for the "
                f"allocation of a channel, {format_time(self._routing + self.cycle_ns)} together, not "
                f"{format_time(self.latency_ns)}; raise overhead or lower routing_delay."
            )
        for name in self.outputs:
            peer = peers.get(name)
            if peer is not None and peer._size != self._size:
                raise ConfigError(
                    f"{self.id}: flit must be that of {name}, {peer._size} B, not {self._size} B; give both the same."
                )
            if peer is not None and peer._vcs < 2 and self.subpaths.needs_classes(self.id, name):
                raise ConfigError(
                    f"{name}: vcs must be at least 2 where rows, columns or packages are closed to rings, or paths "
                    f"lead around holes of a mesh, not {peer._vcs}; with one, messages could wait for each other in a "
                    "cycle."
                )

    def sending_ns(self, nbytes: int, destination: str) -> float:
        """Return for how long, in ns, the flits of a message take the wire to a neighbour."""
        return max(1, -(-nbytes // self._size)) * self.outputs[destination].flit_ns

    def taking_ns(self, nbytes: int, source: str) -> float:
        """Return how long, in ns, an input port takes to pass on the flits of a message, one a cycle."""
        return max(1, -(-nbytes // self._size)) * self.cycle_ns

    # The edge of the network ------------------------------------------------------------------------

    def overhead(self, msg: MsgBase) -> float:
        """Return the latency of a head flit that meets nobody, in ns."""
        return self.latency_ns

    def receive(self, msg: MsgBase) -> None:
        """Take a message from a neighbour without channels, or one that begins here, and cut it into flits."""
        port = self._edges[msg.path[msg.hop - 1] if msg.hop else ""]
        subpath = self.subpaths.find(msg.path, msg.hop)
        crossing = Crossing(msg, subpath, subpath.entered)
        subpath.entered += 1
        self._inside[msg] = None
        port.pending.append(flits_of(crossing, subpath.count(msg.nbytes, self._size), self._size))
        for channel in port.channels:
            if not channel.flits and channel.out is None:
                self._begin(channel, self._time.now)
                break

    def _begin(self, channel: VirtualChannel, time: float) -> None:
        """Have the next message at an edge use a channel from `time` ns on."""
        flits = channel.port.pending.popleft()
        channel.flits.extend(flits)
        channel.port.active.append(channel)
        flits[0].ready = max(flits[0].ready, time) + self._routing
        self.wake(flits[0].ready)

    def emit(self, msg: MsgBase, head: float, tail: float) -> None:
        """Send on what was answered here: it enters the network at (`head`, `tail`) ns."""
        msg.head, msg.tail = head, tail
        self.env.call_at(head, msg, self.receive)

    # Cycle by cycle ---------------------------------------------------------------------------------

    def _take(self, flit: Flit) -> None:
        """Put a flit into the buffer that has been kept for it."""
        channel = flit.channel
        assert channel is not None
        flit.came = flit.ready = self._time.now
        if not channel.flits:
            channel.port.active.append(channel)
            if flit.leads:
                flit.ready += self._routing
            self.wake(flit.ready)
        channel.flits.append(flit)

    def wake(self, time: float) -> None:
        """Decide at `time` ns, or in the first cycle after that."""
        time = max(time, self._last + self.cycle_ns)
        if time < self._due:
            self._due = time
            self.env.schedule(_Decision(self._decide), delay=time - self._time.now)  # type: ignore[arg-type]

    def _decide(self, _: _Decision) -> None:
        """Let flits through the switch, then give free output channels to messages."""
        now = self._time.now
        if now != self._due:
            return  # an earlier cause has been seen to
        self._due, self._last = math.inf, now
        self._again, self._later = False, math.inf
        for channel, out in list(self._switched(now)):
            self._send(channel, out, now)
        self._allocate(now)
        if self._again:
            self.wake(now + self.cycle_ns)
        elif self._later < math.inf:
            self.wake(self._later)

    def _switched(self, now: float) -> Iterator[tuple[VirtualChannel, OutputPort]]:
        """Yield who may use the switch: each input port names one channel, each output port takes one of those."""
        wanted: dict[OutputPort, list[VirtualChannel]] = {}
        for port in self._inputs:
            best, rank = None, 0
            for channel in port.active:
                out = channel.out
                if out is None or not self._may_go(channel, out, now):
                    continue
                place = (channel.number - port.turn) % len(port.channels)
                if best is None or place < rank:
                    best, rank = channel, place
            if best is not None and best.out is not None:
                wanted.setdefault(best.out, []).append(best)
        ports = len(self._inputs)
        for out, channels in wanted.items():
            self._again = True
            turn = out.turn
            winner = channels[0] if len(channels) == 1 else min(channels, key=lambda c: (c.port.index - turn) % ports)
            out.turn = (winner.port.index + 1) % ports
            winner.port.turn = (winner.number + 1) % len(winner.port.channels)
            yield winner, out

    def _may_go(self, channel: VirtualChannel, out: OutputPort, now: float) -> bool:
        """Say whether the flit in front is there, its buffer has room, and its wire is free within a cycle."""
        ready = channel.flits[0].ready
        if ready > now:
            self._later = min(self._later, ready)
            return False
        if not out.may_send(channel.out_channel, now):
            self.credit_stalls += 1
            if out.returning:
                self._later = min(self._later, out.returning[0][0])
            return False
        free = out.free_at if out.wire is None else out.wire.available_at
        if free > now + self._after + self.cycle_ns:
            self._later = min(self._later, free - self._after - self.cycle_ns)
            return False
        return True

    def _send(self, channel: VirtualChannel, out: OutputPort, now: float) -> None:
        """Send the flit in front of a channel, give its place back, and free the output channel behind the last."""
        flit = channel.flits.popleft()
        port, number = channel.port, channel.out_channel
        self.flits += 1
        if port.feeder is not None:
            port.feeder.give_back(channel.number, now + self._credit_delay)
        if flit.ends:
            out.owners[number] = None
            channel.out = None
            self._note(flit, now)
        if channel.flits:
            if flit.ends:
                following = channel.flits[0]
                following.ready = max(following.ready, now + self.cycle_ns) + self._routing
        else:
            port.active.remove(channel)
            if flit.ends and port.pending:
                self._begin(channel, now + self.cycle_ns)
        self._put(flit, out, number, now + self._after)

    def _put(self, flit: Flit, out: OutputPort, number: int, leaves: float) -> None:
        """Put a flit on its wire, at `leaves` ns or when the wire is free."""
        flit.at += 1
        wire = out.wire
        if wire is None:
            start = out.free_at = max(leaves, out.free_at)
            out.free_at += out.flit_ns
            if flit.ends:
                self._leave(flit, out, start, start + out.flit_ns)
            return
        start = max(leaves, wire.available_at)
        if out.target is not None:
            out.credits[number] -= 1
            flit.channel = out.target.channels[number]
            flit.callbacks = out.arrive
            wire.carry(flit, flit.nbytes, start, out.flit_ns, flit.crossing.msg)
        else:
            wire.hold(flit.nbytes, start, out.flit_ns, flit.crossing.msg)
            if flit.ends:
                self._leave(flit, out, start + wire.latency, start + out.flit_ns + wire.latency)

    def _allocate(self, now: float) -> None:
        """Give free output channels: each message names one, each of these takes one of those that name it."""
        wanted: dict[tuple[OutputPort, int], list[tuple[VirtualChannel, int]]] = {}
        for port in self._inputs:
            for channel in port.active:
                if channel.out is not None:
                    continue
                flit = channel.flits[0]
                if flit.ready > now:
                    self._later = min(self._later, flit.ready)
                    continue
                out, first, last = flit.crossing.subpath.steps[flit.at]
                number = out.free_channel(first, last, channel.turn)
                if number is not None:
                    wanted.setdefault((out, number), []).append((channel, first))
        places = len(self._inputs) * self._vcs
        for (out, number), asking in wanted.items():
            self._again = True
            turn = out.channel_turns[number]
            winner, first = min(asking, key=lambda each: (self._place(each[0]) - turn) % places)
            out.channel_turns[number] = (self._place(winner) + 1) % places
            winner.turn = number - first + 1
            winner.out, winner.out_channel = out, number
            out.owners[number] = winner

    def _place(self, channel: VirtualChannel) -> int:
        return channel.port.index * self._vcs + channel.number

    def _note(self, flit: Flit, now: float) -> None:
        """Count a message whose last flit has gone through, and log it if it is an op."""
        self.served += 1
        self.note_wait(max(0.0, now - flit.came - self._routing - self.cycle_ns))
        msg = flit.crossing.msg
        if msg.data_op:
            self._on_process_start(msg, now + self._after - self.latency_ns)
            self._on_process_end(msg, now + self._after)

    # Out of the network -----------------------------------------------------------------------------

    def _leave(self, flit: Flit, out: OutputPort, head: float, tail: float) -> None:
        """Put a message together that is all here: its last flit leaves the network at (`head`, `tail`) ns."""
        crossing = flit.crossing
        subpath = crossing.subpath
        tail = max(tail, subpath.least_tail(crossing, self._size))
        subpath.held[crossing.number] = (crossing, head, tail)
        if not self._in_order:
            self._deliver(out, *subpath.held.pop(crossing.number))
            return
        while subpath.left in subpath.held:
            crossing, its_head, its_tail = subpath.held.pop(subpath.left)
            head, tail = max(head, its_head), max(tail, its_tail)
            subpath.left += 1
            self._deliver(out, crossing, head, tail)

    def _deliver(self, out: OutputPort, crossing: Crossing, head: float, tail: float) -> None:
        msg, subpath = crossing.msg, crossing.subpath
        self._settle(crossing, tail)
        first = self.fabric.components[msg.path[msg.hop]]
        assert isinstance(first, RouterVc)
        del first._inside[msg]
        msg.head, msg.tail = head, tail
        if out.wire is None:
            msg.hop = subpath.end
            self.env.call_at(head, msg, self._finish)
        else:
            msg.hop = subpath.end + 1
            out.wire.hand_over(msg)

    def _settle(self, crossing: Crossing, tail: float) -> None:
        """Add the way through the network to the ledger of a message: what it took beyond its lone time is waiting."""
        msg, subpath = crossing.msg, crossing.subpath
        count = subpath.count(msg.nbytes, self._size)
        msg.propagation += subpath.wires_ns
        msg.overhead += subpath.fixed_ns - subpath.wires_ns
        rest = tail - crossing.tail - subpath.fixed_ns
        own = min(rest, max(0.0, count * subpath.slowest_ns - (crossing.tail - crossing.head)))
        msg.serialisation += own
        msg.queueing += rest - own

    def _finish(self, msg: MsgBase) -> None:
        """End a message's way here: an answer is taken note of, a request is answered."""
        if msg.reply:
            self.take_answer(msg)
        else:
            msg.at_end(self, msg.head, msg.tail)

    # What reports ask -------------------------------------------------------------------------------

    @property
    def waiting(self) -> tuple[MsgBase, ...]:
        """The messages that entered the network here and have not left it."""
        return tuple(self._inside)
