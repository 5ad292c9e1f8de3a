"""The front end of a controller with banks: requests to bursts for its queues, and settled bursts to answers."""

from __future__ import annotations

from collections import deque
from operator import attrgetter
from typing import Any

from kernbench_builtin.components.banks.atomic_queue import AtomicQueue, BurstTraffic
from kernbench_builtin.components.banks.channel import BankChannel
from kernbench_builtin.components.banks.mapping import BankMapping
from kernbench_builtin.components.banks.pseudo_channel import PseudoChannel
from kernbench_builtin.components.banks.queues import (
    BankLine,
    Burst,
    BurstPlace,
    BurstQueue,
    RequestProgress,
    Requests,
)
from kernbench_builtin.components.banks.timing import READ, WRITE
from kernbench_core.component import ComponentBase
from kernbench_core.fabric import Fabric
from kernbench_core.graph import Node
from kernbench_core.messages import MsgBase, Transaction
from kernbench_core.units import grid_ceil


class BankedMemory(ComponentBase):
    """Take requests in, and answer them: overhead, the front end, response.

    A subclass sets `front`, and `atomics`, which its atomic ops go through.
    """

    def __init__(self, node: Node, fabric: Fabric) -> None:
        super().__init__(node, fabric)
        self._overhead = 0.0
        self.front: FrontEnd
        self.atomics: AtomicQueue

    def overhead(self, msg: MsgBase) -> float:
        """Return the controller latency in ns."""
        return self._overhead

    def acts_on_head(self, msg: Any) -> bool:
        """Say that the data of a write is taken as it comes."""
        return msg.op == "write" and not msg.reply

    def emit(self, msg: Any, head: float, tail: float) -> None:
        """Hand a request, there from (`head`, `tail`) ns, to the channels, or to the atomic units."""
        request: Transaction = msg
        if request.op == "atomic":
            self.atomics.take(msg, tail)
        else:
            self.front.admit(request, head, tail)

    def taken_in(self, msg: Transaction, tail: float, now: float) -> None:
        """Acknowledge a write that came whole at `tail` ns, when the last of its bursts is in its queue."""
        if now > tail and type(msg) is not BurstTraffic:  # nobody waits for what is written back
            msg.queueing += now - tail
            self.note_wait(now - tail)
        msg.head = msg.tail = now
        self.on_internal(msg)

    def on_internal(self, msg: Any) -> None:
        """Respond: a read's data as it comes, a write's acknowledgement."""
        if type(msg) is BurstTraffic:
            self.atomics.moved(msg)
            return
        request: Transaction = msg
        head, tail, now = request.head, request.tail, self._time.now
        if request.op == "write":
            head = tail
        elif head < now:
            head = now
        request.turn_around()
        ComponentBase.emit(self, request, head, tail)

    def respond(self, msg: MsgBase, now: float) -> None:
        """Answer an atomic op."""
        msg.turn_around()
        ComponentBase.emit(self, msg, now, now)


class FrontEnd(Requests):
    """Let requests in in order, at most so many until all of their bursts are in the queues, and see to their answers.

    `join` gives it the channels. A write is answered by the memory's `on_internal`, inside an event; the data of a read
    comes by the wire of its last pseudo-channel.
    """

    __slots__ = (
        "_burst_bytes", "_burst_takes", "_channel_of", "_channels", "_clock", "_mapping", "_memory", "_places", "_room",
        "_seq", "_time", "_to_data", "_waiting",
    )  # fmt: skip

    def __init__(self, memory: BankedMemory, room: int, mapping: BankMapping, burst_bytes: int) -> None:
        self._memory = memory
        self._time = memory.env.clock
        self._mapping = mapping
        self._burst_bytes = burst_bytes
        self._seq = 0
        self._room = room
        self._waiting: deque[RequestProgress] = deque()
        self._places: list[PseudoChannel] = []
        self._channels: list[BankChannel] = []
        self._channel_of: list[BankChannel] = []

    def join(self, channel: BankChannel, places: list[PseudoChannel]) -> None:
        """Take a channel and its pseudo-channels, the next ones in order."""
        timing = places[0].timing
        self._clock, self._to_data, self._burst_takes = timing.tCK, timing.tCL, timing.tBL
        self._channels.append(channel)
        self._places.extend(places)
        self._channel_of.extend([channel] * len(places))

    # Requests to bursts ---------------------------------------------------------------------------

    def admit(self, msg: Transaction, head: float, tail: float) -> None:
        """Hand the bursts of a request, there from (`head`, `tail`) ns, to their channels."""
        runs = self._mapping.runs(msg.regions)
        if not runs:
            msg.head = msg.tail = tail
            self._memory.env.call_at(tail, msg, self._memory.on_internal)
            return
        job = RequestProgress(msg, runs, head, tail)
        if not (self._room or self._waiting):
            for channel in self._channels:
                channel.let_in_before(self._time.now)
        if self._room:
            self._room -= 1
            self._dispatch(job, 0.0, None)
        else:
            self._waiting.append(job)
            if len(self._waiting) == 1:
                for channel in self._channels:
                    channel.hurry(self._time.now)

    def _dispatch(self, job: RequestProgress, now: float, here: BurstQueue | None) -> None:
        """Send the bursts of a request to their queues, each from when it is there, and not before `now` (ns); to the
        queue that lets bursts in at the clock before, `here`, not before that.
        """
        msg = job.msg
        before = now - self._clock
        kind = READ if msg.op == "read" else WRITE
        if job.waiting == 1:  # it needs no sorting, and random traffic is made of these
            index, ((bank, row),) = job.runs[0]
            self._seq += 1
            job.entering, job.alone, msg.shares = 1, True, ((index, self._burst_bytes),)
            place = self._places[index]
            queue = place.queue
            line: BankLine = place.lines[kind][bank]
            at = before if queue is here else now
            burst = Burst(job.tail if job.tail > at else at, line, row, job, self._seq, last=True)
            side = queue.sides[kind]
            stuck = side.is_stuck()
            side.arriving.append(burst)
            if kind == WRITE:
                queue.only_reads = False
            if not stuck:
                self._wake(self._channel_of[index], queue, burst.at)
            return
        by_place = self._by_place(job, kind, before if here is not None else now)
        msg.shares = tuple([(index, len(bursts) * self._burst_bytes) for index, bursts in by_place.items()])
        by_queue: dict[BurstQueue, tuple[int, list[Burst]]] = {}
        for index, bursts in by_place.items():
            queue = self._places[index].queue
            if queue in by_queue:  # of a queue that several share in order of address
                bursts = sorted(by_queue[queue][1] + bursts, key=attrgetter("seq"))
            by_queue[queue] = index, bursts
            if queue is not here:
                for burst in bursts:
                    if burst.at < now:
                        burst.at = now
        job.entering = len(by_queue)
        job.alone = job.entering == 1
        for queue, (index, bursts) in by_queue.items():
            stuck = queue.sides[kind].is_stuck()
            queue.add(kind, bursts)
            if not stuck:
                self._wake(self._channel_of[index], queue, bursts[0].at)

    def _by_place(self, job: RequestProgress, kind: int, now: float) -> dict[int, list[Burst]]:
        """Return the bursts for each pseudo-channel, in order of these: of a write, each comes at its own time."""
        head, tail, seq = job.first, job.tail if job.tail > now else now, self._seq
        pace = 0.0 if kind == READ else (job.tail - head) / job.waiting
        at, number = tail, 0
        found: dict[int, list[Burst]] = {}
        for index, places in job.runs:
            lines = self._places[index].lines[kind]
            bursts = found.get(index)
            if bursts is None:
                bursts = found[index] = []
            for bank, row in places:
                number += 1
                if pace:
                    at = max(now, min(tail, grid_ceil(head + number * pace)))
                bursts.append(Burst(at, lines[bank], row, job, seq + number))
        self._seq = seq + number
        return {index: found[index] for index in sorted(found)}

    def _wake(self, channel: BankChannel, queue: BurstQueue, at: float) -> None:
        """Have a queue looked at when what was put in front of it is there."""
        now = self._time.now
        channel.wake(at if at > now else now, queue)

    # Bursts to answers ----------------------------------------------------------------------------

    def settled(
        self, place: BurstPlace, job: RequestProgress, number: int, start: float, end: float, opening: float
    ) -> None:
        """Note when bursts of a read are on the data bus; answer when the last one is settled."""
        if job.last is None:
            if number == job.waiting:
                self._answer_read(job, place, start, end, opening)
                return
            job.head, job.end, job.opening, job.last = start, end, opening, place
        else:
            if start < job.head:
                job.head = start
            if opening > job.opening:
                job.opening = opening
            if end > job.end:
                job.end, job.last = end, place
        job.waiting -= number
        if not job.waiting:
            self._answer_read(job, job.last, job.head, job.end, job.opening)

    def _answer_read(
        self, job: RequestProgress, place: BurstPlace, head: float, end: float, opening: float
    ) -> None:
        """Split the time of a read into its parts, and send the answer with its first byte."""
        msg, shares = job.msg, job.msg.shares
        last: PseudoChannel = place  # type: ignore[assignment]
        nbytes = shares[0][1] if len(shares) == 1 else dict(shares)[self._places.index(last)]
        own = nbytes // self._burst_bytes * self._burst_takes
        rest = end - job.tail - self._to_data - own
        if opening > rest:
            opening = rest
        msg.propagation += self._to_data
        msg.serialisation += own
        msg.service += opening
        msg.queueing += rest - opening
        wire = last.wire
        if rest > opening:
            wire.note_wait(rest - opening, end - self._to_data - own)
        msg.head, msg.tail = head, end
        now = self._time.now
        wire.deliver(msg, head if head > now else now)

    def taken(self, burst: Burst, now: float) -> None:
        """Let the next request in when one is in the queues as a whole; a write is acknowledged then."""
        job = burst.job
        job.entering -= 1
        if job.entering:
            return
        if burst.line.kind == WRITE:
            self._memory.taken_in(job.msg, job.tail, now)
        if self._waiting:
            # the order in which several queues let bursts in at one clock must not matter
            here = burst.line.place.queue if job.alone else None
            self._dispatch(self._waiting.popleft(), now + self._clock, here)
            if not self._waiting:
                for channel in self._channels:
                    channel.hurried = False
        else:
            self._room += 1
