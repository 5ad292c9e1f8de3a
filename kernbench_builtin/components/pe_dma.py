"""The DMA engine of a PE."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Any, ClassVar

from kernbench_builtin.components.dma_jobs import DmaChannel, Job, Trips
from kernbench_builtin.components.pe_mmu import PeMmu
from kernbench_builtin.components.pe_tcm import PeTcm
from kernbench_builtin.components.queues.messages import Arrived, Credit, DmaOrder, Fetch, Landing, Push, PushChunk
from kernbench_core.component import ComponentBase
from kernbench_core.errors import ComponentError
from kernbench_core.fabric import Fabric
from kernbench_core.graph import Node
from kernbench_core.memory import AtomicMemory, AtomicTransaction
from kernbench_core.messages import MsgBase, Transaction
from kernbench_core.params import Param
from kernbench_core.topology.naming import pe_prefix, pe_unit
from kernbench_core.units import grid_ceil
from kernbench_core.values.chunking import Chunk
from kernbench_core.wire import Wire


class PeDma(ComponentBase):
    """Move strided descriptors between HBM or SRAM and the PE's scratchpad, in chunks, several in flight.

    A descriptor is a command or a tile token with `dma_op` ("read", "write" or "atomic") and physical `regions`.

    Models: a descriptor is cut on arrival into chunks of one memory each, rows gathered; a read and a write channel, \
each with its own queue and at most `servers` chunks outstanding, first come first served; set-up of a descriptor and \
of each chunk, address translation, the round trip over the fabric, and the scratchpad's end of it on the scratchpad's \
own channels. An atomic op goes on the write channel: its operands leave as those of a write do, what it \
found comes back as what is read does. Traffic of others to the PE's scratchpad passes through. Messages between PEs: \
chunks are pushed to the other DMA, one way, and what comes is put into its slot.
    Ignores: Descriptors are set up side by side: there is no limit on how many are known to the DMA. \
Cutting a descriptor into chunks and rows takes no time of its own. What others send to or get from the scratchpad \
passes without delay.
    Timing: a chunk leaves at max(taken, start of its descriptor + descriptor_overhead) + overhead + translation. \
A read then takes its round trip and the wire and access to the scratchpad, into which its bytes go as they come; \
a write first the wires and access to the scratchpad, from which its bytes leave as they come, then its round trip. \
A push ends when its last byte is on the wire to the router. A descriptor ends with its last chunk.
    Source: bandwidth = outstanding x chunk / round trip (Little's law); the set-up times are estimates, unverified.
    """

    PARAMS: ClassVar[tuple[Param, ...]] = (
        Param("descriptor_overhead", "time", "16 ns", "Set-up time of a descriptor, before its first chunk."),
        Param("overhead", "time", "4 ns", "Set-up time of a chunk."),
        Param("servers", "int", 8, "Chunks in flight on each channel, reads and writes.", minimum=1, maximum=4096),
        Param("read_outstanding", "int", 0, "Chunks in flight on the read channel; 0 for `servers`.", minimum=0,
              maximum=1024),
        Param("write_outstanding", "int", 0, "Chunks in flight on the write channel; 0 for `servers`.", minimum=0,
              maximum=1024),
    )

    def __init__(self, node: Node, fabric: Fabric) -> None:
        super().__init__(node, fabric)
        self._descriptor_overhead = grid_ceil(self.params["descriptor_overhead"])
        self._overhead = grid_ceil(self.params["overhead"])
        reads = self.params["read_outstanding"] or self.params["servers"]
        writes = self.params["write_outstanding"] or self.params["servers"]
        self._reads, self._writes = DmaChannel(reads), DmaChannel(writes)
        self.servers = reads + writes
        # chunks are served, though by events and not by processes: a worker for each would cost more than they do
        self._active: dict[_ChunkMsg, None] = {}
        self._paths: dict[str, tuple[str, ...]] = {}
        self._read_trips, self._write_trips = Trips(), Trips()
        #: What reads took, and what writes and atomic ops did.
        self.trips = self._read_trips, self._write_trips
        self._mmu: Any = None
        self._tcm: Any = None
        #: The same, where they are kernbench's own: these can be asked without objects made of numbers.
        self._own_mmu: PeMmu | None = None
        self._own_tcm: PeTcm | None = None
        # callbacks, made once: every chunk is scheduled with two of them
        self._to_leave, self._to_fetch = (self._leave,), (self._fetch,)
        self._to_go_on, self._to_finish = (self._fetched,), (self._finish,)
        #: The wires to and from the scratchpad.
        self._to_tcm: Wire | None = None
        self._from_tcm: Wire | None = None
        self._prefix = pe_prefix(self.id) or ""
        self._ipcq = pe_unit(self._prefix, "pe_ipcq")

    def connect(self) -> None:
        """Find the PE's mmu and scratchpad; what is not there, or says nothing of its time, takes none."""
        self._mmu = self.fabric.components.get(pe_unit(self._prefix, "pe_mmu"))
        self._own_mmu = self._mmu if type(self._mmu) is PeMmu else None
        tcm = self.fabric.components.get(pe_unit(self._prefix, "pe_tcm"))
        if tcm is not None and hasattr(tcm, "book_access") and tcm.id in self.out_ports:
            self._tcm = tcm
            self._own_tcm = tcm if isinstance(tcm, PeTcm) else None
            self._to_tcm, self._from_tcm = self.out_ports[tcm.id], tcm.out_ports.get(self.id)

    def acts_on_head(self, msg: MsgBase) -> bool:
        """Say that what passes through is passed on as it comes, and so is payload for a slot that is elsewhere."""
        if msg.path[-1] != self.id:
            return True
        return type(msg) is PushChunk and not self._inside(msg.push)

    # From a descriptor to chunks ----------------------------------------------------------------------

    def receive(self, msg: Any) -> None:
        """Pass on what others send to or get from the PE's scratchpad, take answers, and cut up descriptors.

        What passes takes no channel: two DMAs that are busy with each other's scratchpads must not wait in a circle.
        """
        if isinstance(msg, (Transaction, PushChunk, Credit)):
            known: MsgBase = msg
            if known.hop + 1 < len(known.path):
                self.served += 1
                self.emit(known, self._time.now, known.tail)
            elif isinstance(msg, PushChunk):
                self.served += 1
                self._land(msg)
            else:
                self.take_answer(msg)
            return
        op: str = msg.dma_op
        order: DmaOrder | None = msg if isinstance(msg, DmaOrder) else None
        pieces: Sequence[Chunk | None] = self.fabric.cut(msg.regions) if order is None else order.cut(self.fabric)
        pieces = pieces or (None,)
        job = Job(msg, op, len(pieces))
        if order is None:
            job.fetches = self._tcm is not None and op != "read"
            job.translates = self._mmu is not None
        else:
            job.pushes = isinstance(order, Push)
            job.fetches = self._tcm is not None and (op != "read" or (type(order) is Fetch and self._inside(order)))
        channel = self._reads if op == "read" else self._writes
        now, waiting = self._time.now, channel.queue
        for piece in pieces:
            waiting.append(_ChunkMsg(self, job, channel, piece, now))
        self._serve(channel)

    def pick_chunk(self, queue: deque[_ChunkMsg]) -> _ChunkMsg:
        """Remove and return the chunk to serve next; the one place for priority."""
        return queue.popleft()

    def _serve(self, channel: DmaChannel) -> None:
        """Begin waiting chunks as far as the channel has places, and schedule when each leaves."""
        queue, free, now = channel.queue, channel.free, self._time.now
        while queue and free:
            taken = heappop(free)
            self._begin(self.pick_chunk(queue), taken if taken > now else now)

    def _begin(self, chunk_msg: _ChunkMsg, taken: float) -> None:
        chunk_msg.taken = taken
        if taken > chunk_msg.born:
            self.note_wait(taken - chunk_msg.born, taken)
        self._active[chunk_msg] = None
        job = chunk_msg.job
        if not job.started:
            job.started = True
            job.began = taken
            job.ready = taken + self._descriptor_overhead
            self._on_process_start(job.msg, taken)
        leave = (job.ready if job.ready > taken else taken) + self._overhead
        chunk = chunk_msg.chunk
        if chunk is None:
            if not job.pushes:
                self.env.call_at(leave, chunk_msg, self._empty)
                return
        elif job.translates:
            mmu = self._own_mmu
            if mmu is not None:  # whose times are on the grid
                translation = mmu.translation_ns(chunk.regions, leave)
            else:
                translation = grid_ceil(self._mmu.translation_ns(chunk.regions, leave))
            chunk_msg.translation = translation
            leave += translation
        chunk_msg.ready = leave
        self._time.appoint(leave, chunk_msg, self._to_fetch if job.fetches else self._to_leave)

    # The round trip of a chunk ------------------------------------------------------------------------

    def _leave(self, chunk_msg: _ChunkMsg) -> None:
        """Send what needs nothing from the scratchpad: a read."""
        now = self._time.now
        self._send(chunk_msg, now, now)

    def _fetch(self, chunk_msg: _ChunkMsg) -> None:
        """Fetch what a write, or a copy inside the scratchpad, takes from there."""
        now, job = self._time.now, chunk_msg.job
        nbytes = 0 if chunk_msg.chunk is None else chunk_msg.chunk.nbytes
        if job.op == "atomic":
            nbytes = job.msg.sent
        assert self._to_tcm is not None
        _, asked = self._to_tcm.book(0, now, now, chunk_msg)
        head, tail = self._access("read", nbytes, asked, asked)
        back = self._from_tcm if self._from_tcm is not None else self._tcm.out_ports[self.id]
        chunk_msg.head, chunk_msg.tail = back.book(nbytes, head, tail)
        self._time.appoint(chunk_msg.head, chunk_msg, self._to_go_on)

    def _fetched(self, chunk_msg: _ChunkMsg) -> None:
        if chunk_msg.job.op != "read":
            self._send(chunk_msg, chunk_msg.head, chunk_msg.tail)
        else:
            assert chunk_msg.chunk is not None
            self._end(chunk_msg, self._write_tcm(chunk_msg.chunk.nbytes, chunk_msg.head, chunk_msg.tail))

    def _write_tcm(self, nbytes: int, head: float, tail: float) -> float:
        """Put bytes that are here at (`head`, `tail`) ns into the scratchpad; return when the last is in."""
        assert self._to_tcm is not None
        head, tail = self._to_tcm.book(nbytes, head, tail)
        return self._access("write", nbytes, head, tail)[1]

    def _access(self, op: str, nbytes: int, head: float, tail: float) -> tuple[float, float]:
        """Occupy the scratchpad's channel of a direction; see `PeTcm.book_access`."""
        tcm = self._own_tcm
        if tcm is not None:
            return tcm.book_access(op, nbytes, head, tail)
        return self._tcm.book_access(op, nbytes, head, tail)  # type: ignore[no-any-return]

    def _send(self, chunk_msg: _ChunkMsg, head: float, tail: float) -> None:
        job, chunk = chunk_msg.job, chunk_msg.chunk
        if job.pushes:
            self._push(chunk_msg, job.msg, head, tail)
            return
        assert chunk is not None
        fabric = self.fabric
        path = self._paths.get(chunk.node)
        if path is None:
            path = self._paths[chunk.node] = fabric.memory_path(self.id, chunk.node)
        if job.op == "atomic":
            sent = self._atomic(job.msg, path, chunk_msg)
        else:
            sent = Transaction(job.op, chunk.regions, chunk.nbytes, path, chunk_msg.came_back)
        chunk_msg.sent = sent
        sent.born = head
        sent.serialisation = tail - head
        fabric.issued += 1
        self.emit(sent, head, tail)

    def _atomic(self, msg: Any, path: tuple[str, ...], chunk_msg: _ChunkMsg) -> Transaction:
        """Make what has a memory change elements; ComponentError where it is no memory that does."""
        memory = self.fabric.components[path[-1]]
        if not isinstance(memory, AtomicMemory):
            raise ComponentError(
                f"{memory.id}: {type(memory).__name__} must be a memory that takes atomic ops for {msg.in_words}, and "
                "is not; choose one that does, as builtin.hbm_ctrl, or make it an AtomicMemory."
            )
        sent: AtomicTransaction = msg.transaction(path, chunk_msg.came_back)
        return sent

    # Payload of queues --------------------------------------------------------------------------------

    def _push(self, chunk_msg: _ChunkMsg, push: Push, head: float, tail: float) -> None:
        """Send a chunk of a piece to the other PE's DMA; its place is free when its last byte is on the first wire."""
        nbytes = 0
        regions: tuple[Any, ...] = ()
        if chunk_msg.chunk is not None:
            nbytes, regions = chunk_msg.chunk.nbytes, chunk_msg.chunk.regions
        push.sent += nbytes
        extra = push.metadata_bytes if push.sent == push.total else 0
        chunk = PushChunk(push, regions, nbytes, extra)
        chunk.born = head
        chunk.serialisation = tail - head
        fabric = self.fabric
        fabric.issued += 1
        fabric.pushed_bytes += nbytes
        fabric.under_way[chunk] = None
        self.emit(chunk, head, tail)
        out: Wire = self.out_ports[push.route[1]]
        self._end(chunk_msg, tail if tail > out.available_at else out.available_at)

    def _inside(self, order: DmaOrder) -> bool:
        """Whether an order's slot is in a scratchpad that says how long an access takes."""
        return order.queue.tier == "tcm" and self._tcm is not None

    def _land(self, chunk: PushChunk) -> None:
        """Put a chunk of a piece into its slot: the PE's scratchpad, or by a write of its own SRAM or HBM."""
        push, fabric = chunk.push, self.fabric
        fabric.note_one_way(chunk)
        del fabric.under_way[chunk]
        if push.came < 0.0:
            push.came = chunk.head
        if self._inside(push):
            self._landed(push, chunk.total, self._write_tcm(chunk.total, chunk.head, chunk.tail))
        elif not chunk.total:
            self._landed(push, 0, chunk.tail)
        else:
            path = fabric.memory_path(self.id, fabric.addresses.resolve(chunk.regions[0].base))
            write = Landing(chunk, path, self._written)
            write.born = chunk.head
            write.serialisation = chunk.tail - chunk.head
            fabric.issued += 1
            self.emit(write, chunk.head, chunk.tail)

    def _written(self, write: Landing) -> None:
        self.fabric.note_round_trip(write)
        self._landed(write.push, write.total, self._time.now)

    def _landed(self, push: Push, nbytes: int, end: float) -> None:
        """Note that a chunk is in its slot at `end` ns; with the last, the metadata goes to the PE's queues."""
        self.fabric.landed_bytes += nbytes
        push.landed += nbytes
        if end > push.ends:
            push.ends = end
        if push.landed == push.total:
            note = Arrived(push, (self.id, self._ipcq))
            note.born = self._time.now
            note.service = push.ends - note.born
            if push.ends > note.born:
                self.env.call_at(push.ends, note, self._tell)
            else:
                self._tell(note)

    def _tell(self, note: Arrived) -> None:
        self.emit(note, self._time.now, self._time.now)

    def answered(self, chunk_msg: _ChunkMsg, sent: Transaction) -> None:
        """Take the answer of a chunk; what was read goes on to the scratchpad."""
        fabric, end = self.fabric, self._time.now
        fabric.note_round_trip(sent)
        trips = self._read_trips if chunk_msg.job.op == "read" else self._write_trips
        trips.add(sent)
        trips.set_up += chunk_msg.ready - chunk_msg.taken - chunk_msg.translation
        trips.translation += chunk_msg.translation
        trips.scratchpad += sent.born - chunk_msg.ready
        if chunk_msg.job.fetches:  # its bytes left no faster than the scratchpad gave them
            taken = chunk_msg.tail - chunk_msg.head
            trips.scratchpad += taken
            trips.serialisation -= taken
        if chunk_msg.job.op == "atomic" and isinstance(sent, AtomicTransaction):
            sent.check_changed()
        if self._tcm is not None and sent.nbytes:
            end = self._write_tcm(sent.nbytes, sent.head, end)
            trips.scratchpad += end - self._time.now
        self._end(chunk_msg, end)

    def _empty(self, chunk_msg: _ChunkMsg) -> None:
        self._end(chunk_msg, self._time.now)

    def _end(self, chunk_msg: _ChunkMsg, end: float) -> None:
        """Give the chunk's place to the next one at `end` ns, and end its descriptor if it was the last one."""
        del self._active[chunk_msg]
        self.served += 1
        self.note_busy(end - chunk_msg.taken, end)
        job, channel = chunk_msg.job, chunk_msg.channel
        heappush(channel.free, end)
        self._serve(channel)
        if end > job.ends:
            job.ends = end
        job.waiting -= 1
        if job.waiting:
            return
        if job.ends > self._time.now:
            self._time.appoint(job.ends, chunk_msg, self._to_finish)
        else:
            self._finish(chunk_msg)

    def _finish(self, chunk_msg: _ChunkMsg) -> None:
        """Answer a descriptor, or send a tile on."""
        job, now = chunk_msg.job, self._time.now
        asked = job.msg
        if not isinstance(asked, DmaOrder):
            trips = self._read_trips if job.op == "read" else self._write_trips
            trips.served += now - asked.tail
            trips.way += asked.propagation + asked.serialisation + asked.overhead
        asked.queueing += job.began - asked.tail
        asked.service += now - job.began
        self._on_process_end(asked, now)
        if job.op == "atomic":
            sent = chunk_msg.sent
            if isinstance(sent, AtomicTransaction) and sent.answer is not None:
                self._on_process_start(sent.answer, sent.changed_ns or 0.0)
                self._on_process_end(sent.answer, now)
        self.emit(asked, now, now)

    # What reports ask -----------------------------------------------------------------------------------

    def awaiting(self) -> tuple[MsgBase, ...]:
        """Return the chunks that are out on the fabric."""
        return tuple(chunk.sent for chunk in self._active if chunk.sent is not None)

    def booked_ahead(self, time: float) -> float:
        """Return how long, in ns, places are still taken after `time` by chunks that have been counted."""
        free = (at for channel in (self._reads, self._writes) for at in channel.free)
        return sum(max(0.0, at - time) for at in (*free, *(chunk.taken for chunk in self._active)))

    @property
    def serving(self) -> tuple[tuple[MsgBase, float], ...]:
        """The chunks in service, each with the time in ns at which its service began."""
        return tuple((chunk, chunk.taken) for chunk in self._active)

    @property
    def waiting(self) -> tuple[MsgBase, ...]:
        """The chunks that wait for a place, reads before writes."""
        return (*self._reads.queue, *self._writes.queue)


class _ChunkMsg(MsgBase):
    """Be one chunk of a descriptor, from waiting for a place in its channel to its end."""

    __slots__ = ("channel", "chunk", "dma", "job", "ready", "sent", "taken", "translation")

    def __init__(self, dma: PeDma, job: Job, channel: DmaChannel, chunk: Chunk | None, now: float) -> None:
        # inlined from MsgBase, which a chunk is only for being scheduled, and for reports: it never travels
        self.nbytes, self.path, self.hop, self.reply = 0, (), 0, False
        self.propagation = self.serialisation = self.overhead = self.queueing = self.service = 0.0
        self.callbacks = None
        self.dma = dma
        self.job = job
        self.channel = channel
        self.chunk = chunk
        self.sent: Transaction | None = None
        self.taken = self.ready = self.translation = 0.0
        self.head = self.tail = self.born = now

    @property
    def origin(self) -> MsgBase:
        """The command or tile token that this is a chunk of."""
        asked: MsgBase = self.job.msg
        return asked

    def came_back(self, sent: Transaction) -> None:
        """Tell the DMA that the round trip is over."""
        self.dma.answered(self, sent)
