"""The queues of a PE: it sends tiles into slots at other PEs, and receives what they sent into its own."""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import Any, ClassVar

from kernbench_builtin.queue_messages import Arrived, Credit, DmaOrder, Push
from kernbench_core.component import ComponentBase
from kernbench_core.context import RunContext
from kernbench_core.graph import Node
from kernbench_core.messages import Command, MsgBase
from kernbench_core.naming import pe_prefix, pe_unit
from kernbench_core.oplog import Access
from kernbench_core.params import Param
from kernbench_core.queue_commands import RecvCmd, SendCmd
from kernbench_core.queues import TIERS, Queue, SlotBlock
from kernbench_core.regions import Region
from kernbench_core.tcm import Birth
from kernbench_core.units import grid_ceil

Key = tuple[int, str]
"""The other PE, and the name of the channel."""


class PeIpcq(ComponentBase):
    """Keep the heads and tails of a PE's queues, and have its DMA move what goes through them.

    Models: for each (sender, receiver, channel) a ring of slots in the receiver's scratchpad, SRAM or HBM; a message \
is cut into pieces of a slot each, each piece takes a credit, and its credit comes back over the fabric when the slot \
is given back, in order; the sender blocks without credits, the receiver without a message; the DMA reads the tile and \
pushes it in chunks, one way, and the metadata comes with the last one; a receipt is a copy out of the slot by the \
DMA, or the slot itself.
    Ignores: Queues keep their state side by side: there is no limit on how many are open. \
A push needs no acknowledgement, and nothing is lost on the way.
    Timing: command + overhead, wait for a credit, then the DMA's set-up, its read of the scratchpad and the way over \
the fabric, the write of the slot, the note to the receiver + overhead, then the copy out of the slot, if any.
    Source: requirements of the project's own; the times are estimates, unverified.
    """

    PARAMS: ClassVar[tuple[Param, ...]] = (
        Param("overhead", "time", "4 ns", "Time to look at a command, a note of arrival or a credit."),
        Param("slots", "int", 4, "Slots of each queue into this PE.", minimum=1),
        Param("slot_bytes", "size", "16 KiB", "Bytes of a slot.", minimum=64),
        Param("tier", "str", "tcm", "Where the slots are.", choices=TIERS),
        Param("metadata_bytes", "size", "16 B", "What comes with the last chunk of a piece.", minimum=0),
        Param("credit_bytes", "size", "8 B", "Payload of a credit.", minimum=0),
    )

    def __init__(self, node: Node, ctx: RunContext) -> None:
        super().__init__(node, ctx)
        self._overhead = grid_ceil(self.params["overhead"])
        self._prefix = pe_prefix(self.id) or ""
        self._dma = pe_unit(self._prefix, "pe_dma")
        self._outgoing: dict[Key, _Outgoing] = {}
        self._incoming: dict[Key, _Incoming] = {}
        self._anybody: deque[RecvCmd] = deque()
        self._turn = -1
        self._open: dict[Command, float] = {}
        self._routes: dict[int, tuple[str, ...]] = {}
        self._index: int | None = None
        self.run_style = True
        self.arrive = self._receive

    def start(self) -> None:
        """Start nothing: everything happens when a message comes."""

    def _receive(self, msg: Any) -> None:
        if msg.reply:
            self._take_answer(msg)
            return
        self.served += 1
        handler = self._HANDLERS[type(msg)]
        self.env.call_at(self.env.now + self._overhead, msg, partial(handler, self))

    def _begin(self, command: Command) -> None:
        now = self.env.now
        self._open[command] = now
        command.queueing += now - command.tail
        self._on_process_start(command, now)

    def _finish(self, command: Command) -> None:
        now = self.env.now
        took = now - self._open.pop(command)
        command.service += took
        self.busy_ns += took
        self._on_process_end(command, now)
        self.emit(command, now, now)

    # Sending ------------------------------------------------------------------------------------------

    def _send(self, command: SendCmd) -> None:
        key = (command.to, command.channel.name)
        out = self._outgoing.get(key)
        if out is None:
            out = self._outgoing[key] = _Outgoing(self.ctx.queues.between(command.pe, command.to, command.channel))
        out.waiting.append(_Sending(command))
        self._pump(out)

    def _pump(self, out: _Outgoing) -> None:
        """Push pieces of the messages that wait, in order, as far as there are credits."""
        queue, now = out.queue, self.env.now
        while out.waiting and out.tail - out.given_back < len(queue.slots):
            sending = out.waiting[0]
            command = sending.command
            if not sending.sent:
                self._begin(command)
            nbytes = min(queue.slot_bytes, command.total - sending.sent)
            push = Push(
                command, queue, out.tail % len(queue.slots), sending.sent, nbytes, (self.id, self._dma),
                self._route(command.to), self.params["metadata_bytes"], sending.pushed,
            )  # fmt: skip
            out.tail += 1
            sending.sent += nbytes
            sending.out += 1
            push.born = now
            self.emit(push, now, now)
            if sending.sent == command.total:
                out.waiting.popleft()
                sending.done = self._finish

    def _credit(self, credit: Credit) -> None:
        out = self._outgoing[credit.queue.destination, credit.queue.channel.name]
        out.given_back = credit.given_back
        self._pump(out)

    def _route(self, to: int) -> tuple[str, ...]:
        """Return the nodes from this PE's DMA to another's."""
        route = self._routes.get(to)
        if route is None:
            peer = self.ctx.design.pes[to].prefix
            route = self._routes[to] = self.ctx.memory_path(self._dma, pe_unit(peer, "pe_tcm"))[:-1]
        return route

    # Receiving ----------------------------------------------------------------------------------------

    def _recv(self, command: RecvCmd) -> None:
        self._begin(command)
        queues = [self._from(source, command) for source in command.sources]
        if len(queues) == 1:
            queues[0].recvs.append(command)
            self._match(queues[0])
            return
        ready = [queue for queue in queues if queue.ready]
        if not ready:
            self._anybody.append(command)
            return
        after = [queue for queue in ready if queue.queue.source > self._turn]
        chosen = (after or ready)[0]
        self._turn = chosen.queue.source
        chosen.recvs.append(command)
        self._match(chosen)

    def _from(self, source: int, command: RecvCmd) -> _Incoming:
        return self._incoming_of(self.ctx.queues.between(source, command.pe, command.channel))

    def _incoming_of(self, queue: Queue) -> _Incoming:
        key = (queue.source, queue.channel.name)
        found = self._incoming.get(key)
        if found is None:
            found = self._incoming[key] = _Incoming(queue)
        return found

    def _arrived(self, note: Arrived) -> None:
        push = note.push
        self._on_process_start(note, push.came)
        self._on_process_end(note, self.env.now)
        incoming = self._incoming_of(push.queue)
        incoming.arrived.append(push)
        if not incoming.recvs:
            for command in self._anybody:
                if push.queue.source in command.sources and command.channel.name == push.queue.channel.name:
                    self._anybody.remove(command)
                    self._turn = push.queue.source
                    incoming.recvs.append(command)
                    break
        self._match(incoming)

    def _match(self, incoming: _Incoming) -> None:
        """Give the pieces that have arrived to the receives that wait, both in order."""
        while incoming.recvs and incoming.arrived:
            command, push = incoming.recvs[0], incoming.arrived.popleft()
            slot = Region(push.regions[0].base, push.total)
            if not push.offset:
                command.receive(push.send, Access(push.queue.tier, (slot,), push.send.value))
                command.error = command.fits(push.send)
            if push.last:
                incoming.recvs.popleft()
            if command.error is not None or not push.total:
                self._give_back(incoming, push.index)
                if push.last:
                    self._finish(command)
            elif command.local is None:
                self._lend(incoming, command, push, slot)
            else:
                order = DmaOrder(
                    "read", slot, (self.id, self._dma), command, partial(self._copied, incoming, command, push)
                )
                order.born = self.env.now
                self.emit(order, self.env.now, self.env.now)

    def _copied(self, incoming: _Incoming, command: RecvCmd, push: Push, _: DmaOrder) -> None:
        self._give_back(incoming, push.index)
        if push.last:
            self._finish(command)

    def _lend(self, incoming: _Incoming, command: RecvCmd, push: Push, slot: Region) -> None:
        """Let the kernel have the slot itself."""
        birth = Birth(command.call, command.value.shape, command.value.dtype, command.site)
        base, _ = self.ctx.memory.tcm_range(self.ctx.design.pes[command.pe])
        back = partial(self._give_back, incoming, push.index)
        command.slot = SlotBlock(slot, slot.base - base, birth, back)
        self._finish(command)

    def _give_back(self, incoming: _Incoming, index: int) -> None:
        """Note that a slot is free again; slots go back to the sender in order."""
        queue = incoming.queue
        incoming.free.add(index)
        before = incoming.given_back
        while incoming.given_back % len(queue.slots) in incoming.free:
            incoming.free.remove(incoming.given_back % len(queue.slots))
            incoming.given_back += 1
        if incoming.given_back == before:
            return
        peer = pe_unit(self.ctx.design.pes[queue.source].prefix, "pe_ipcq")
        path = (self.id, *self._route(queue.source), peer)
        credit = Credit(queue, self.params["credit_bytes"], incoming.given_back, path)
        now = self.env.now
        credit.born = now
        self.emit(credit, now, now)

    _HANDLERS: ClassVar[dict[type, Any]] = {SendCmd: _send, RecvCmd: _recv, Arrived: _arrived, Credit: _credit}

    # What reports ask -----------------------------------------------------------------------------------

    @property
    def serving(self) -> tuple[tuple[MsgBase, float], ...]:
        """The commands in service, each with the time in ns at which its service began."""
        return tuple(self._open.items())

    @property
    def waiting(self) -> tuple[MsgBase, ...]:
        """The commands that wait for earlier ones, and what has arrived and nobody received."""
        sends = [sending.command for out in self._outgoing.values() for sending in out.waiting if not sending.sent]
        left: list[MsgBase] = [push for incoming in self._incoming.values() for push in incoming.arrived]
        return (*sends, *left)


class _Sending:
    """Keep how far a message has been sent: bytes `sent`, pieces `out` at the DMA; `done` is set with the last."""

    __slots__ = ("command", "done", "out", "sent")

    def __init__(self, command: SendCmd) -> None:
        self.command = command
        self.sent = 0
        self.out = 0
        self.done: Any = None

    def pushed(self, _: DmaOrder) -> None:
        """Note that a piece has left the scratchpad."""
        self.out -= 1
        if not self.out and self.done is not None:
            self.done(self.command)


class _Outgoing:
    """The sender's side of a queue: the slots it has used (`tail`) and those it knows to be given back."""

    __slots__ = ("given_back", "queue", "tail", "waiting")

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.tail = 0
        self.given_back = 0
        self.waiting: deque[_Sending] = deque()


class _Incoming:
    """The receiver's side of a queue: pieces that have arrived, receives that wait, slots `free` out of order."""

    __slots__ = ("arrived", "free", "given_back", "queue", "recvs")

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.arrived: deque[Push] = deque()
        self.recvs: deque[RecvCmd] = deque()
        self.free: set[int] = set()
        self.given_back = 0

    @property
    def ready(self) -> bool:
        """Whether a message, or the beginning of one, is there for a new receive."""
        return bool(self.arrived) and not self.recvs
