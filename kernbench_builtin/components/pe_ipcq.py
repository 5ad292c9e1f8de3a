"""The queues of a PE: it sends tiles into slots at other PEs, and receives what they sent into its own."""

from __future__ import annotations

from collections import deque
from functools import partial
from operator import attrgetter
from typing import Any, ClassVar

from kernbench_builtin.components.queues.ends import Incoming, Outgoing
from kernbench_builtin.components.queues.messages import Arrived, Credit, Fetch, Push, TransferProgress
from kernbench_builtin.components.queues.rings import Queue, Queues
from kernbench_core.callsite import describe_site
from kernbench_core.component import ComponentBase
from kernbench_core.errors import KernelError, QueueOverflowError
from kernbench_core.fabric import Fabric
from kernbench_core.graph import Node
from kernbench_core.kernel import UNIT, SlotBlock
from kernbench_core.kernel.queue_commands import QueueCommand, RecvCmd, SendCmd
from kernbench_core.memory import Birth, DeviceMemory, Hazards
from kernbench_core.messages import MsgBase
from kernbench_core.oplog import Access
from kernbench_core.params import Param
from kernbench_core.peers import TIERS, Channel, check_slots
from kernbench_core.reporting import Waiting
from kernbench_core.topology.naming import pe_prefix, pe_unit
from kernbench_core.units import format_bytes, grid_ceil

_Key = tuple[int, Channel]  # the other PE, and the channel


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
        #: The queues to and from other PEs that were used last.
        self._last_to: dict[int, Outgoing] = {}
        self._last_from: dict[int, Incoming] = {}
        self._anybody: deque[TransferProgress] = deque()
        self._turn, self._free = -1, 0.0

    # One by one ---------------------------------------------------------------------------------------

    def receive(self, msg: Any) -> None:
        """Look at what has come; what follows from it happens `overhead` later, after that of what came before.

        The order of what follows is that of arrivals, so all of it is done now, with the times at which it happens.
        """
        out, kind = self._look(), type(msg)
        if kind is Push:
            self._pushed(msg, out)
        elif kind is Arrived:
            self._arrived(msg, out)
        elif kind is Fetch:
            self._fetched(msg, out)
        elif kind is Credit:
            self._credit(msg, out)
        elif kind is SendCmd:
            self._send(msg, out)
        else:
            self._recv(msg, out)

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

    def _begin(self, progress: TransferProgress, out: float) -> None:
        command: QueueCommand = progress.command
        start = progress.began = out - self._overhead
        command.queueing += start - command.tail
        self._on_process_start(command, start)

    def _finish(self, progress: TransferProgress, out: float) -> None:
        command: QueueCommand = progress.command
        command.service += out - progress.began
        self._on_process_end(command, out)
        self.emit(command, out, out)

    # Sending ------------------------------------------------------------------------------------------

    def _send(self, command: SendCmd, out: float) -> None:
        outgoing = self._last_to.get(command.to)
        if outgoing is None or outgoing.channel is not command.channel:
            try:
                outgoing = self._outgoing_of(command)
            except QueueOverflowError:  # no use to go on: the others will fare alike
                raise
            except KernelError as error:
                self._refuse(command, error, out)
                return
        outgoing.queue.enter(command)
        outgoing.waiting.append(TransferProgress(command))
        self._pump(outgoing, out)

    def _outgoing_of(self, command: SendCmd) -> Outgoing:
        """Return the queue of a message, found by its channel, which is slow to hash, and kept for the next one."""
        key = (command.to, command.channel)
        found = self._outgoing.get(key)
        if found is None:
            queue = self._queues.between(command.pe, command.to, command)
            queue.ends.append(self)
            found = self._outgoing[key] = queue.outgoing = Outgoing(queue)
        found.channel = command.channel
        self._last_to[command.to] = found
        return found

    def _refuse(self, command: QueueCommand, error: KernelError, out: float) -> None:
        """End a command that cannot be served; the kernel raises `error` where it waits for it."""
        command.error = error
        self.emit(command, out, out)

    def _pump(self, outgoing: Outgoing, out: float) -> None:
        """Push pieces of the messages that wait, in order, as far as there are credits."""
        queue, waiting = outgoing.queue, outgoing.waiting
        while waiting and outgoing.tail - outgoing.given_back < outgoing.slots:
            progress = waiting[0]
            if not progress.begun:
                self._begin(progress, out)
                if not outgoing.route:
                    outgoing.route = self._route(queue.destination)
            nbytes = min(queue.slot_bytes, progress.total - progress.begun)
            push = Push(progress, queue, outgoing.tail, nbytes, self._to_dma, outgoing.route, self._metadata_bytes)
            outgoing.tail += 1
            progress.begun += nbytes
            if progress.begun == progress.total:
                waiting.pop(0)
            self._emit(push, out)

    def _pushed(self, push: Push, out: float) -> None:
        """Note that a piece has left the scratchpad; its message is sent when all have."""
        if push.progress.done(push.total):
            self._finish(push.progress, out)

    def _credit(self, credit: Credit, out: float) -> None:
        del self.fabric.under_way[credit]
        queue = credit.queue
        outgoing: Outgoing = queue.outgoing
        outgoing.given_back = credit.given_back
        self._pump(outgoing, out)
        if queue.closing:
            self._queues.settle(queue)

    def _route(self, to: int) -> tuple[str, ...]:
        """Return the nodes from this PE's DMA to another's."""
        peer = pe_unit(self.fabric.layout.pes[to].prefix, "pe_tcm")
        return self.fabric.memory_path(self._to_dma[1], peer)[:-1]

    # Receiving ----------------------------------------------------------------------------------------

    def _recv(self, command: RecvCmd, out: float) -> None:
        try:
            queues = [self._from(source, command) for source in command.sources]
        except QueueOverflowError:
            raise
        except KernelError as error:
            self._refuse(command, error, out)
            return
        progress = TransferProgress(command)
        self._begin(progress, out)
        if len(queues) == 1:
            queues[0].recvs.append(progress)
            self._match(queues[0], out)
            return
        ready = sorted([queue for queue in queues if queue.ready], key=attrgetter("queue.source"))
        if not ready:
            self._anybody.append(progress)
            return
        later = [queue for queue in ready if queue.queue.source > self._turn]
        self._give_turn((later or ready)[0], progress, out)

    def _give_turn(self, chosen: Incoming, progress: TransferProgress, out: float) -> None:
        """Let a receipt from several take from one of them, which is then the last to be asked again."""
        self._turn = chosen.queue.source
        chosen.recvs.append(progress)
        self._match(chosen, out)

    def _from(self, source: int, command: RecvCmd) -> Incoming:
        """Return the queue from a PE; KernelError when the slots do not do for the command."""
        incoming = self._last_from.get(source)
        if incoming is None or incoming.channel is not command.channel:
            incoming = self._incoming.get((source, command.channel))
        queue = self._queues.between(source, command.pe, command) if incoming is None else incoming.queue
        if command.local is None and (queue.tier != "tcm" or command.total > queue.slot_bytes):
            cure = "give the queue larger slots" if queue.tier == "tcm" else "put the slots there, with tier tcm"
            raise KernelError(
                f"{command.call} at {describe_site(command.site)} with copy=False must receive a message that fits one "
                f"slot of the scratchpad, not {command.total} B where slots have {format_bytes(queue.slot_bytes)} of "
                f"{queue.tier}; receive a copy, or {cure}."
            )
        found = self._incoming_of(queue) if incoming is None else incoming
        found.channel = command.channel
        self._last_from[source] = found
        return found

    def _incoming_of(self, queue: Queue) -> Incoming:
        found: Incoming | None = queue.incoming
        if found is None:
            queue.ends.append(self)
            found = self._incoming[queue.source, queue.channel] = queue.incoming = Incoming(queue)
        return found

    def _arrived(self, note: Arrived, out: float) -> None:
        """Take a piece that is in its slot; one that overtook others on its way into HBM or SRAM waits for them."""
        push = note.push
        self._on_process_start(note, push.came)
        self._on_process_end(note, out)
        incoming = self._incoming_of(push.queue)
        incoming.take_in(push)
        self._match(incoming, out)
        if self._anybody and incoming.ready:
            self._offer(incoming, out)

    def _offer(self, incoming: Incoming, out: float) -> None:
        """Give what has come to the first of the receipts from several that asks for it."""
        queue = incoming.queue
        for progress in self._anybody:
            command: RecvCmd = progress.command
            if queue.source in command.sources and command.channel == queue.channel:
                self._anybody.remove(progress)
                self._give_turn(incoming, progress, out)
                self._settle(command)
                break

    def _match(self, incoming: Incoming, out: float) -> None:
        """Give the pieces that have arrived to the receives that wait, both in order."""
        while incoming.recvs and incoming.arrived:
            progress, push = incoming.recvs[0], incoming.arrived.pop(0)
            command: RecvCmd = progress.command
            last = push.last
            if not push.offset:
                self._take(incoming, progress, push, last, out)
            if last:
                incoming.recvs.pop(0)
            if command.error is None and command.local is None:
                self._lend(incoming, command, push)
                self._finish(progress, out)
            elif command.error is not None or not push.total:
                self._give_back(incoming, push.index, out)
                if last:
                    self._finish(progress, out)
            else:
                progress.begun += push.total
                incoming.copies += 1
                self._emit(Fetch(push, incoming, self._to_dma, progress), out)

    def _take(self, incoming: Incoming, progress: TransferProgress, push: Push, whole: bool, out: float) -> None:
        """Give the message that begins with a piece to a receipt; the time without one was waiting, and not service."""
        command: RecvCmd = progress.command
        queue, sent = incoming.queue, push.send
        queue.take(command.site)
        command.queueing += out - self._overhead - progress.began
        progress.began = out - self._overhead
        regions = push.regions if whole else queue.regions_of(push.number, sent.total)
        command.receive(sent, Access(queue.tier, regions, sent.value))
        command.error = command.fits(sent)

    def _fetched(self, fetch: Fetch, out: float) -> None:
        """Note that a piece is out of its slot; its message is received when all are."""
        push, progress, incoming = fetch.push, fetch.progress, fetch.incoming
        incoming.copies -= 1
        self._give_back(incoming, push.index, out)
        if progress.done(push.total):
            self._finish(progress, out)

    def _lend(self, incoming: Incoming, command: RecvCmd, push: Push) -> None:
        """Let the kernel have the slot itself."""
        sites, slot = self.fabric.layout.pes, push.regions[0]
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
        if not incoming.take_back(index):
            return
        queue = incoming.queue
        if not incoming.back:
            sender = pe_unit(self.fabric.layout.pes[queue.source].prefix, UNIT)
            incoming.back = (self.id, *self._route(queue.source), sender)
        credit = Credit(queue, self._credit_bytes, incoming.given_back, incoming.back)
        self.fabric.under_way[credit] = None
        self._emit(credit, out)

    # Queues that go ---------------------------------------------------------------------------------------

    def uses(self, queue: Queue) -> bool:
        """Tell whether a queue has a slot in use, as far as this end knows, or a receipt that waits."""
        outgoing = self._outgoing.get((queue.destination, queue.channel))
        if outgoing is not None and outgoing.queue is queue:
            return bool(outgoing.waiting) or outgoing.tail != outgoing.given_back
        incoming = self._incoming[queue.source, queue.channel]
        asked = [progress.command for progress in self._anybody if progress.command.channel == queue.channel]
        return any(queue.source in command.sources for command in asked) or bool(incoming.recvs)

    def forget(self, queue: Queue) -> None:
        """Drop the side of a queue that is kept here."""
        outgoing = self._outgoing.get((queue.destination, queue.channel))
        if outgoing is not None and outgoing.queue is queue:
            del self._outgoing[queue.destination, queue.channel]
            self._last_to.pop(queue.destination, None)
        else:
            del self._incoming[queue.source, queue.channel]
            self._last_from.pop(queue.source, None)

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
        sends = [progress.command for outgoing in self._outgoing.values() for progress in outgoing.waiting]
        recvs = [progress.command for incoming in self._incoming.values() for progress in incoming.recvs]
        return (*sends, *recvs, *(progress.command for progress in self._anybody))

    def open_waits(self) -> tuple[Waiting, ...]:
        """Say what each command waits for: a message from whom, or slots of which queue."""
        names = self.fabric.layout.pes
        told = []
        for outgoing in self._outgoing.values():
            for progress in outgoing.waiting:
                told.append(self._told(progress, outgoing.told(names[outgoing.queue.destination].prefix, progress)))
        for incoming in self._incoming.values():
            for progress in incoming.recvs:
                told.append(self._told(progress, incoming.told(names[incoming.queue.source].prefix, progress)))
        for progress in self._anybody:
            among = " or ".join(names[source].prefix for source in progress.command.sources)
            told.append(self._told(progress, f"waits for a message from {among}"))
        return tuple(told)

    def _told(self, progress: TransferProgress, what: str) -> Waiting:
        command: QueueCommand = progress.command
        return Waiting(f"{command.call} at {describe_site(command.site)} {what}", command.born)
