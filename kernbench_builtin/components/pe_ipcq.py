"""The queues of a PE: it sends tiles into slots at other PEs, and receives what they sent into its own."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from kernbench_builtin.components.queues.ends import Incoming, Outgoing
from kernbench_builtin.components.queues.messages import Arrived, Credit, Fetch, Push, TransferProgress
from kernbench_core.callsite import describe_site
from kernbench_core.component import ComponentBase
from kernbench_core.errors import KernelError, QueueOverflowError
from kernbench_core.fabric import Fabric
from kernbench_core.graph import Node
from kernbench_core.kernel import UNIT, Queue, QueueCommand, Queues, RecvCmd, SendCmd, SlotBlock
from kernbench_core.memory import Birth, DeviceMemory, Hazards
from kernbench_core.messages import MsgBase
from kernbench_core.oplog import Access
from kernbench_core.params import Param
from kernbench_core.peers import TIERS, Channel, check_slots
from kernbench_core.reporting import Waiting
from kernbench_core.topology.naming import pe_prefix, pe_unit
from kernbench_core.units import format_bytes, grid_ceil
from kernbench_core.values import Region

_Key = tuple[int, Channel]
"""The other PE, and the channel."""


class PeIpcq(ComponentBase):
    """Keep the heads and tails of a PE's queues, and have its DMA move what goes through them.

    Models: for each (sender, receiver, channel) a ring of slots in the receiver's scratchpad, SRAM or HBM; a message \
is cut into pieces of a slot each, each piece takes a credit, and its credit comes back over the fabric when the slot \
is given back, in order; the sender blocks without credits, the receiver without a message; the DMA reads the tile and \
pushes it in chunks, one way, and the metadata comes with the last one; a receipt is a copy out of the slot by the \
DMA, or the slot itself. What comes is looked at one by one.
    Ignores: Queues keep their state side by side: there is no limit on how many are open. \
A push needs no acknowledgement, and nothing is lost on the way.
    Timing: out = max(arrival, previous out) + overhead for a command, a note of arrival, a completion of the DMA, a \
credit, a slot that is given back. A piece of a message leaves when its credit and all pieces before it have; a \
receipt ends when its last piece is out of its slot, or at once with the slot itself.
    Source: requirements of the project's own; the times are estimates, unverified.
    """

    PARAMS: ClassVar[tuple[Param, ...]] = (
        Param("overhead", "time", "4 ns", "Time to look at a command, a note of arrival, a completion or a credit."),
        Param("slots", "int", 4, "Slots of each queue into this PE.", minimum=1, maximum=65536),
        Param("slot_bytes", "size", "16 KiB", "Bytes of a slot, a multiple of 64.", minimum=64),
        Param("tier", "str", "tcm", "Where the slots are.", choices=TIERS),
        Param("metadata_bytes", "size", "16 B", "What comes with the last chunk of a piece.", minimum=0),
        Param("credit_bytes", "size", "8 B", "Payload of a credit.", minimum=0),
    )

    needs: ClassVar[tuple[type, ...]] = (Queues, DeviceMemory, Hazards)

    def __init__(self, node: Node, fabric: Fabric) -> None:
        super().__init__(node, fabric)
        check_slots(self.id, self.params["slots"], self.params["slot_bytes"], self.params["tier"])
        self._queues, self._memory, self._hazards = self.part(Queues), self.part(DeviceMemory), self.part(Hazards)
        self._overhead = grid_ceil(self.params["overhead"])
        self._metadata_bytes: int = self.params["metadata_bytes"]
        self._credit_bytes: int = self.params["credit_bytes"]
        self._prefix = pe_prefix(self.id) or ""
        self._to_dma = (self.id, pe_unit(self._prefix, "pe_dma"))
        self._outgoing: dict[_Key, Outgoing] = {}
        self._incoming: dict[_Key, Incoming] = {}
        self._anybody: deque[RecvCmd] = deque()
        self._turn = -1
        self._began: dict[QueueCommand, float] = {}
        self._routes: dict[int, tuple[str, ...]] = {}
        self._free = 0.0
        self._handlers: dict[type, Callable[[Any, float], None]] = {
            SendCmd: self._send, RecvCmd: self._recv, Push: self._pushed, Fetch: self._fetched, Arrived: self._arrived,
            Credit: self._credit,
        }  # fmt: skip

    # One by one ---------------------------------------------------------------------------------------

    def receive(self, msg: Any) -> None:
        """Look at what has come; what follows from it happens `overhead` later, after that of what came before.

        The order of what follows is that of arrivals, so all of it is done now, with the times at which it happens.
        """
        self._handlers[type(msg)](msg, self._look())

    def _look(self) -> float:
        """Take the next turn, and return when (ns) it is over."""
        now = self._time.now
        start = self._free
        if start > now:
            self.note_wait(start - now, start)
        else:
            start = now
        out = self._free = start + self._overhead
        self.served += 1
        self.note_busy(self._overhead, out)
        return out

    def booked_ahead(self, time: float) -> float:
        """Return for how long after `time` ns turns are taken already: they follow each other without a gap."""
        return max(0.0, self._free - time)

    def _emit(self, msg: MsgBase, out: float) -> None:
        """Send a message of the queues at `out` ns: since what caused it the queues have been at work."""
        msg.born = self._time.now
        msg.overhead = self._overhead
        msg.queueing = out - self._overhead - msg.born
        self.emit(msg, out, out)

    def _begin(self, command: QueueCommand, out: float) -> None:
        start = self._began[command] = out - self._overhead
        command.queueing += start - command.tail
        self._on_process_start(command, start)

    def _finish(self, command: QueueCommand, out: float) -> None:
        command.service += out - self._began.pop(command)
        self._on_process_end(command, out)
        self.emit(command, out, out)

    # Sending ------------------------------------------------------------------------------------------

    def _send(self, command: SendCmd, out: float) -> None:
        key = (command.to, command.channel)
        outgoing = self._outgoing.get(key)
        if outgoing is None:
            try:
                queue = self._queues.between(command.pe, command.to, command)
            except QueueOverflowError:  # no use to go on: the others will fare alike
                raise
            except KernelError as error:
                self._refuse(command, error, out)
                return
            queue.ends.append(self)
            outgoing = self._outgoing[key] = Outgoing(queue)
        outgoing.queue.enter(command)
        outgoing.waiting.append((command, TransferProgress(command.total)))
        self._pump(outgoing, out)

    def _refuse(self, command: QueueCommand, error: KernelError, out: float) -> None:
        """End a command that cannot be served; the kernel raises `error` where it waits for it."""
        command.error = error
        self.emit(command, out, out)

    def _pump(self, outgoing: Outgoing, out: float) -> None:
        """Push pieces of the messages that wait, in order, as far as there are credits."""
        queue = outgoing.queue
        while outgoing.waiting and outgoing.tail - outgoing.given_back < len(queue.slots):
            command, progress = outgoing.waiting[0]
            if not progress.begun:
                self._begin(command, out)
            nbytes = min(queue.slot_bytes, command.total - progress.begun)
            push = Push(
                command, queue, outgoing.tail, progress.begun, nbytes, self._to_dma, self._route(command.to),
                self._metadata_bytes, progress,
            )  # fmt: skip
            outgoing.tail += 1
            progress.begun += nbytes
            if progress.begun == command.total:
                outgoing.waiting.popleft()
            self._emit(push, out)

    def _pushed(self, push: Push, out: float) -> None:
        """Note that a piece has left the scratchpad; its message is sent when all have."""
        if push.progress.done(push.total):
            self._finish(push.send, out)

    def _credit(self, credit: Credit, out: float) -> None:
        del self.fabric.under_way[credit]
        outgoing = self._outgoing[credit.queue.destination, credit.queue.channel]
        outgoing.given_back = credit.given_back
        self._pump(outgoing, out)
        if credit.queue.closing:
            self._queues.settle(credit.queue)

    def _route(self, to: int) -> tuple[str, ...]:
        """Return the nodes from this PE's DMA to another's."""
        route = self._routes.get(to)
        if route is None:
            peer = self.fabric.layout.pes[to].prefix
            route = self._routes[to] = self.fabric.memory_path(self._to_dma[1], pe_unit(peer, "pe_tcm"))[:-1]
        return route

    # Receiving ----------------------------------------------------------------------------------------

    def _recv(self, command: RecvCmd, out: float) -> None:
        try:
            queues = [self._from(source, command) for source in command.sources]
        except QueueOverflowError:
            raise
        except KernelError as error:
            self._refuse(command, error, out)
            return
        self._begin(command, out)
        if len(queues) == 1:
            queues[0].recvs.append((command, TransferProgress(command.total)))
            self._match(queues[0], out)
            return
        ready = [queue for queue in queues if queue.ready]
        if not ready:
            self._anybody.append(command)
            return
        ready.sort(key=_source)
        chosen = next((queue for queue in ready if queue.queue.source > self._turn), ready[0])
        self._give_turn(chosen, command, out)

    def _give_turn(self, chosen: Incoming, command: RecvCmd, out: float) -> None:
        """Let a receipt from several take from one of them, which is then the last to be asked again."""
        self._turn = chosen.queue.source
        chosen.recvs.append((command, TransferProgress(command.total)))
        self._match(chosen, out)

    def _from(self, source: int, command: RecvCmd) -> Incoming:
        """Return the queue from a PE; KernelError when the slots do not do for the command."""
        incoming = self._incoming.get((source, command.channel))
        queue = self._queues.between(source, command.pe, command) if incoming is None else incoming.queue
        if command.local is None and (queue.tier != "tcm" or command.total > queue.slot_bytes):
            cure = "give the queue larger slots" if queue.tier == "tcm" else "put the slots there, with tier tcm"
            raise KernelError(
                f"{command.call} at {describe_site(command.site)} with copy=False must receive a message that fits one "
                f"slot of the scratchpad, not {command.total} B where slots have {format_bytes(queue.slot_bytes)} of "
                f"{queue.tier}; receive a copy, or {cure}."
            )
        return self._incoming_of(queue)

    def _incoming_of(self, queue: Queue) -> Incoming:
        key = (queue.source, queue.channel)
        found = self._incoming.get(key)
        if found is None:
            queue.ends.append(self)
            found = self._incoming[key] = Incoming(queue)
        return found

    def _arrived(self, note: Arrived, out: float) -> None:
        """Take a piece that is in its slot; one that overtook others on its way into HBM or SRAM waits for them."""
        push = note.push
        self._on_process_start(note, push.came)
        self._on_process_end(note, out)
        incoming = self._incoming_of(push.queue)
        incoming.take_in(push)
        self._match(incoming, out)
        for command in self._anybody if incoming.ready else ():
            if push.queue.source in command.sources and command.channel == push.queue.channel:
                self._anybody.remove(command)
                self._give_turn(incoming, command, out)
                self._settle(command)
                break

    def _match(self, incoming: Incoming, out: float) -> None:
        """Give the pieces that have arrived to the receives that wait, both in order."""
        while incoming.recvs and incoming.arrived:
            (command, progress), push = incoming.recvs[0], incoming.arrived.popleft()
            slot = Region(push.regions[0].base, push.total)
            if not push.offset:
                incoming.queue.take(command.site)
                self._note_wait_of(command, out - self._overhead)
                regions = push.queue.regions_of(push.number, push.send.total)
                command.receive(push.send, Access(push.queue.tier, regions, push.send.value))
                command.error = command.fits(push.send)
            if push.last:
                incoming.recvs.popleft()
            if command.error is None and command.local is None:
                self._lend(incoming, command, push, slot)
                self._finish(command, out)
            elif command.error is not None or not push.total:
                self._give_back(incoming, push.index, out)
                if push.last:
                    self._finish(command, out)
            else:
                progress.begun += push.total
                incoming.copies[push.number] = progress
                self._emit(Fetch(push, slot, self._to_dma, command), out)

    def _note_wait_of(self, command: RecvCmd, until: float) -> None:
        """Count the time in which a receipt had no message, until `until` ns, as waiting and not as service."""
        command.queueing += until - self._began[command]
        self._began[command] = until

    def _fetched(self, fetch: Fetch, out: float) -> None:
        """Note that a piece is out of its slot; its message is received when all are."""
        push = fetch.push
        incoming = self._incoming[push.queue.source, push.queue.channel]
        progress = incoming.copies.pop(push.number)
        self._give_back(incoming, push.index, out)
        if progress.done(push.total):
            self._finish(fetch.receive, out)

    def _lend(self, incoming: Incoming, command: RecvCmd, push: Push, slot: Region) -> None:
        """Let the kernel have the slot itself."""
        sites = self.fabric.layout.pes
        birth = Birth(command.call, command.value.shape, command.value.dtype, command.site)
        base, _ = self._memory.tcm_range(sites[command.pe])
        command.slot = SlotBlock(
            slot, slot.base - base, birth, partial(self._given_back, incoming, push.index),
            f"slot {push.index} of the queue from {sites[push.queue.source].prefix} to {self._prefix}",
            command.pe, self._hazards,
        )  # fmt: skip

    def _given_back(self, incoming: Incoming, index: int) -> None:
        """Take a slot back from the kernel."""
        self._give_back(incoming, index, self._look())

    def _give_back(self, incoming: Incoming, index: int, out: float) -> None:
        """Note that a slot is free again; slots go back to the sender in order."""
        queue = incoming.queue
        incoming.free.add(index)
        before = incoming.given_back
        while incoming.given_back % len(queue.slots) in incoming.free:
            incoming.free.remove(incoming.given_back % len(queue.slots))
            incoming.given_back += 1
        if incoming.given_back == before:
            return
        peer = pe_unit(self.fabric.layout.pes[queue.source].prefix, UNIT)
        path = (self.id, *self._route(queue.source), peer)
        credit = Credit(queue, self._credit_bytes, incoming.given_back, path)
        self.fabric.under_way[credit] = None
        self._emit(credit, out)

    # Queues that go ---------------------------------------------------------------------------------------

    def uses(self, queue: Queue) -> bool:
        """Tell whether a queue has a slot in use, as far as this end knows, or a receipt that waits."""
        outgoing = self._outgoing.get((queue.destination, queue.channel))
        if outgoing is not None and outgoing.queue is queue:
            return bool(outgoing.waiting) or outgoing.tail != outgoing.given_back
        incoming = self._incoming[queue.source, queue.channel]
        anybody = any(queue.source in asked.sources and asked.channel == queue.channel for asked in self._anybody)
        return anybody or bool(incoming.recvs)

    def forget(self, queue: Queue) -> None:
        """Drop the side of a queue that is kept here."""
        outgoing = self._outgoing.get((queue.destination, queue.channel))
        if outgoing is not None and outgoing.queue is queue:
            del self._outgoing[queue.destination, queue.channel]
        else:
            del self._incoming[queue.source, queue.channel]

    def _settle(self, command: RecvCmd) -> None:
        """Let closed queues go that a receipt from several has waited for, and has got nothing from."""
        for source in command.sources:
            incoming = self._incoming.get((source, command.channel))
            if incoming is not None:
                self._queues.settle(incoming.queue)

    # What reports ask -----------------------------------------------------------------------------------

    @property
    def waiting(self) -> tuple[MsgBase, ...]:
        """The commands that wait for a message or for free slots, and receipts that are not complete."""
        sends = [command for outgoing in self._outgoing.values() for command, _ in outgoing.waiting]
        recvs = [command for incoming in self._incoming.values() for command, _ in incoming.recvs]
        return (*sends, *recvs, *self._anybody)

    def open_waits(self) -> tuple[Waiting, ...]:
        """Say what each command waits for: a message from whom, or slots of which queue."""
        names = self.fabric.layout.pes
        told = []
        for outgoing in self._outgoing.values():
            for send, progress in outgoing.waiting:
                told.append(self._told(send, outgoing.told(names[send.to].prefix, progress)))
        for incoming in self._incoming.values():
            for receive, progress in incoming.recvs:
                told.append(self._told(receive, incoming.told(names[incoming.queue.source].prefix, progress)))
        for receive in self._anybody:
            among = " or ".join(names[source].prefix for source in receive.sources)
            told.append(self._told(receive, f"waits for a message from {among}"))
        return tuple(told)

    def _told(self, command: QueueCommand, what: str) -> Waiting:
        return Waiting(f"{command.call} at {describe_site(command.site)} {what}", command.born)


def _source(incoming: Incoming) -> int:
    return incoming.queue.source
