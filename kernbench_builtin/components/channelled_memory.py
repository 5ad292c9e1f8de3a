"""What every memory model is: an overhead, channels that carry the bytes, and a response."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from kernbench_builtin.components.atomic_units import AtomicUnits
from kernbench_core.component import ComponentBase
from kernbench_core.fabric import Fabric
from kernbench_core.graph import Node
from kernbench_core.memory import AtomicTransaction
from kernbench_core.messages import MsgBase, Transaction
from kernbench_core.values import Region
from kernbench_core.wire import Wire

Shares = tuple[tuple[int, int], ...]

#: Regions, and chunks of several, whose shares are remembered.
MOST_KNOWN = 1024
#: Regions of a chunk that is: gathers have more, and hardly come twice.
FEW_REGIONS = 32
#: Digits of the address above the channel that a hash of channels takes in.
HASH_DIGITS = 4


class ChannelledMemory(ComponentBase):
    """Answer reads and writes: overhead, one internal wire per channel, response.

    A write is acted on when its first byte is there, a read when its request is there whole. A read's
    response leaves at the head of its earliest channel and ends with its latest; a write is acknowledged
    at the tail of its latest channel. A subclass fills `self.channel_wires`, and makes `self.interleaving` or defines
    `shares`; one that takes atomic ops is an `AtomicMemory` too, and makes `self.atomic_units`.
    """

    def __init__(self, node: Node, fabric: Fabric) -> None:
        super().__init__(node, fabric)
        self._overhead = 0.0
        self.channel_wires: list[Wire] = []
        #: How addresses are spread over the channels.
        self.interleaving: Interleaving | None = None
        #: Those of a memory that takes atomic ops.
        self.atomic_units: AtomicUnits | None = None

    def overhead(self, msg: MsgBase) -> float:
        """Return the time to accept a request, in ns."""
        return self._overhead

    def shares(self, msg: Any) -> Shares:
        """Return (channel index, bytes) for each channel that `msg` uses; default: by address."""
        if self.interleaving is None:
            raise NotImplementedError
        return self.interleaving.shares(msg.regions)

    def acts_on_head(self, msg: Any) -> bool:
        """Say that the data of a write is taken as it comes."""
        return bool(msg.op == "write" and not msg.reply)

    def channels(self, msg: Any) -> Iterable[tuple[int, float, float]]:
        """Return what each channel would carry of `msg`; for the lower bound."""
        for channel, nbytes in () if msg.op == "atomic" else self.shares(msg):  # a burst may be in its unit already
            wire = self.channel_wires[channel]
            yield nbytes, wire.bandwidth, wire.latency

    def emit(self, msg: Any, head: float, tail: float) -> None:
        """Book the channels from (`head`, `tail`) ns on; a message without data is answered at once."""
        request: Transaction = msg
        if request.op == "atomic":
            self._change(msg, tail)
            return
        shares = self.shares(request)
        if not shares:
            request.head = request.tail = tail
            self.env.call_at(tail, request, self.on_internal)
            return
        request.shares = shares
        wires = self.channel_wires
        first = last = wires[shares[0][0]]
        first_head, last_tail, last_bytes = math.inf, -math.inf, 0
        for channel, nbytes in shares:
            wire = wires[channel]
            head_out, tail_out = wire.book(nbytes, head, tail, request)
            if head_out < first_head:
                first, first_head = wire, head_out
            if tail_out > last_tail:
                last, last_tail, last_bytes = wire, tail_out, nbytes
        request.propagation += last.latency
        last.charge(request, last.duration(last_bytes) - (tail - head), last_tail - last.latency - tail)
        request.head, request.tail = first_head, last_tail
        if request.op == "write":
            last.deliver(request, last_tail)
        else:
            first.deliver(request, first_head)

    def _change(self, msg: AtomicTransaction, at: float) -> None:
        """Fetch the bursts of a read-modify-write, from `at` ns on, that are in no unit, and have the units do it."""
        units = self.atomic_units
        assert units is not None, "no other memory is sent one"
        work = units.take(msg, at)
        msg.shares = work.bytes_of(units.burst)
        ready = {}
        for channel, nbytes in msg.shares:
            ready[channel] = self.channel_wires[channel].book(nbytes, at, at, msg)[1]
        last, began = units.serve(work, ready, at)
        if last in ready:
            wire, nbytes = self.channel_wires[last], dict(msg.shares)[last]
            msg.propagation += wire.latency
            wire.charge(msg, wire.duration(nbytes), ready[last] - wire.latency - at)
        units.charge(work, began, ready.get(last, at))
        msg.head = msg.tail = work.end
        self.env.call_at(work.end, msg, self._changed)

    def _changed(self, msg: AtomicTransaction) -> None:
        """Write back what was fetched, and answer beside it."""
        now = self._time.now
        for channel, nbytes in msg.shares:
            self.channel_wires[channel].book(nbytes, now, now, msg)
        msg.turn_around()
        ComponentBase.emit(self, msg, now, now)

    def on_internal(self, msg: MsgBase) -> None:
        """Respond, once a channel has delivered."""
        self.respond(msg)

    def respond(self, msg: Any) -> None:
        """Send the answer back: a read's data as the channels bring it, a write's acknowledgement."""
        request: Transaction = msg
        tail = request.tail
        head = tail if request.op == "write" else request.head
        request.turn_around()
        ComponentBase.emit(self, request, head, tail)


def hashed(channel: int, stripe: int, channels: int) -> int:
    """Return `channel` XORed with the digits of `stripe`, `channels` (a power of two) to a digit; its own inverse.

    Only the lowest `HASH_DIGITS` digits count, so that the pattern of channels repeats.
    """
    for _digit in range(HASH_DIGITS):
        channel ^= stripe % channels
        stripe //= channels
    return channel


class Interleaving:
    """Share physical regions out over channels that take turns every `block` bytes and move whole bursts.

    `burst` divides `block` (bytes). A burst that several rows of one region touch is moved once. With `hash_channels`
    the turn of a block is XORed with the address bits above it, so that no power of two is a bad pitch.
    """

    def __init__(self, channels: int, block: int, burst: int = 1, *, hash_channels: bool = False) -> None:
        self._hashes = hash_channels
        self._period = block * channels ** (1 + HASH_DIGITS if hash_channels else 1)
        self._channels = channels
        self._block = block
        self._burst = burst
        self._of_one = lru_cache(MOST_KNOWN)(self._count)
        self._of_few = lru_cache(MOST_KNOWN)(self._sum)

    def shares(self, regions: tuple[Region, ...]) -> Shares:
        """Return (channel, bytes) for every channel that holds bytes of `regions`."""
        number = len(regions)
        if number == 1:
            return self._of_region(regions[0])
        return self._of_few(regions) if number <= FEW_REGIONS else self._sum(regions)

    def channel_of(self, address: int) -> int:
        """Return the channel that holds the burst at an address."""
        return self._of_region(Region(address, self._burst))[0][0]

    def _sum(self, regions: tuple[Region, ...]) -> Shares:
        total: dict[int, int] = {}
        for region in regions:
            for channel, nbytes in self._of_region(region):
                total[channel] = total.get(channel, 0) + nbytes
        return tuple(sorted(total.items()))

    def _of_region(self, region: Region) -> Shares:
        return self._of_one(region.base % self._period, region.row_bytes, region.rows, region.pitch)

    def _count(self, base: int, row_bytes: int, rows: int, pitch: int) -> Shares:
        total: dict[int, int] = {}
        moved_to = 0
        for row in range(rows):
            first = base + row * pitch
            at = first // self._burst * self._burst
            end = -(-(first + row_bytes) // self._burst) * self._burst
            if pitch > 0:
                at = max(at, moved_to)
            moved_to = max(moved_to, end)
            self._add_run(at, end, total)
        return tuple(sorted(total.items()))

    def _add_run(self, at: int, end: int, total: dict[int, int]) -> None:
        """Add the bytes from `at` to `end` to each channel's."""
        stripe = self._block * self._channels
        if self._hashes:
            # only a whole stripe holds one block of every channel, in whatever order
            aligned = min(end, -(-at // stripe) * stripe)
            self._add_blocks(at, aligned, total)
            at = aligned
        turns = max(0, end - at) // stripe
        if turns:
            for channel in range(self._channels):
                total[channel] = total.get(channel, 0) + turns * self._block
        self._add_blocks(at + turns * stripe, end, total)

    def _add_blocks(self, at: int, end: int, total: dict[int, int]) -> None:
        """Add the bytes from `at` to `end`, block by block."""
        while at < end:
            step = min(end, (at // self._block + 1) * self._block) - at
            stripe, channel = divmod(at // self._block, self._channels)
            if self._hashes:
                channel = hashed(channel, stripe, self._channels)
            total[channel] = total.get(channel, 0) + step
            at += step
