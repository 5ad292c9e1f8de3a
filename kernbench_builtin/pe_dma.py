"""The DMA engine of a PE."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from kernbench_core.chunking import Chunk, chunks
from kernbench_core.component import ComponentBase
from kernbench_core.context import RunContext
from kernbench_core.environment import Environment, ProcessGenerator, Signal
from kernbench_core.graph import Node
from kernbench_core.messages import MsgBase, Transaction
from kernbench_core.params import Param


class PeDma(ComponentBase):
    """Move strided descriptors between HBM or SRAM and the PE, in chunks, several in flight.

    A descriptor is a command or a tile token with `dma_op` ("read" or "write") and physical `regions`.

    Models: a descriptor is cut on arrival into chunks of one memory each, rows gathered; each of `servers` workers \
serves one chunk: address translation and set-up, then the round trip over the fabric. Traffic of others to the PE's \
scratchpad passes through.
    Ignores: The TCM side of a transfer takes no time: TCM ports are assumed as fast as the fabric. \
Reads and writes share the workers.
    Timing: per chunk overhead + translation, then the round trip; a descriptor ends with its last chunk.
    Source: bandwidth = outstanding x chunk / round trip (Little's law); the set-up time is an estimate, unverified.
    """

    PARAMS: ClassVar[tuple[Param, ...]] = (
        Param("overhead", "time", "20 ns", "Set-up time of a chunk."),
        Param("servers", "int", 8, "Chunks in flight.", minimum=1),
    )

    def __init__(self, node: Node, ctx: RunContext) -> None:
        super().__init__(node, ctx)
        self._overhead: float = self.params["overhead"]
        self._in_flight: dict[Transaction, None] = {}
        self._mmu: Any = None
        self.arrive = self._receive

    def connect(self) -> None:
        """Find the PE's mmu; without one, translation takes no time."""
        neighbour = self.id.rpartition(".")[0] + ".pe_mmu"
        self._mmu = self.ctx.components.get(neighbour)

    def _receive(self, msg: Any) -> None:
        """Pass on what others send to or get from the PE's scratchpad, and take in everything else.

        What passes needs no worker: two DMAs that are busy with each other's scratchpads must not wait in a circle.
        """
        if isinstance(msg, Transaction) and msg.hop + 1 < len(msg.path):
            super().emit(msg, self.env.now, msg.tail)
        else:
            self._arrive_run(msg)

    def split(self, msg: Any) -> Iterator[MsgBase]:
        """Cut a descriptor into chunks; one without bytes still takes a worker's set-up time."""
        pieces = list(chunks(msg.regions, self.ctx.chunk_bytes, self.ctx.resolver.resolve))
        job = _Job(msg, len(pieces) or 1)
        for piece in pieces or [None]:
            yield _ChunkMsg(job, piece, self.env.now)

    def run(self, env: Environment, msg: Any) -> ProcessGenerator:
        """Serve one chunk: translate, set up, send, and wait for the answer."""
        job: _Job = msg.job
        if job.began is None:
            job.began = env.now
            self._on_process_start(job.msg, env.now)
        chunk: Chunk | None = msg.chunk
        setup = self._overhead
        if chunk is not None and self._mmu is not None:
            setup += self._mmu.translation_ns(chunk.regions)
        yield env.timeout(setup)
        if chunk is None:
            return
        path = self.ctx.memory_path(self.id, chunk.node)
        sent = Transaction(job.msg.dma_op, chunk.regions, chunk.nbytes, path, self._answered)
        sent.born = env.now
        self._in_flight[sent] = None
        self.ctx.issued += 1
        sent.waiter = Signal()
        super().emit(sent, env.now, env.now)
        yield sent.waiter

    def emit(self, msg: Any, head: float, tail: float) -> None:
        """End the descriptor with its last chunk; only then is there anything to send on."""
        if not isinstance(msg, _ChunkMsg):
            super().emit(msg, head, tail)
            return
        job = msg.job
        job.waiting -= 1
        if not job.waiting:
            asked, began = job.msg, tail if job.began is None else job.began
            asked.queueing += began - asked.tail
            asked.service += tail - began
            self._on_process_end(asked, tail)
            super().emit(asked, head, tail)

    def awaiting(self) -> tuple[MsgBase, ...]:
        """Return the chunks that are out on the fabric."""
        return tuple(self._in_flight)

    def _answered(self, sent: Transaction) -> None:
        del self._in_flight[sent]
        self.ctx.note_round_trip(sent)
        sent.waiter.fire()


class _Job:
    """Keep how many chunks of a descriptor are still to end, and when (ns) service of the first began."""

    __slots__ = ("began", "msg", "waiting")

    def __init__(self, msg: Any, waiting: int) -> None:
        self.msg = msg
        self.waiting = waiting
        self.began: float | None = None


class _ChunkMsg(MsgBase):
    """Wait for a worker as one chunk of a descriptor."""

    __slots__ = ("chunk", "job")

    def __init__(self, job: _Job, chunk: Chunk | None, now: float) -> None:
        super().__init__(0)
        self.job = job
        self.chunk = chunk
        self.head = self.tail = self.born = now
