"""The HBM controller of one PE slice, with banks, rows and refresh."""

from __future__ import annotations

import math
from collections.abc import Iterable
from types import MappingProxyType
from typing import Any, ClassVar

import attrs

from kernbench_builtin.components.banks.channel import READ, WRITE, BankChannel, Burst
from kernbench_builtin.components.banks.mapping import MAPPINGS, BankMapping
from kernbench_builtin.components.banks.timing import BankTiming, QueueSizes
from kernbench_builtin.components.dram import DramGeometry
from kernbench_core.component import ComponentBase
from kernbench_core.errors import ConfigError
from kernbench_core.fabric import Fabric
from kernbench_core.graph import Node
from kernbench_core.messages import MsgBase
from kernbench_core.params import Param
from kernbench_core.reporting import Stat
from kernbench_core.units import grid_ceil


def _time(name: str, default: str, doc: str) -> Param:
    return Param(name, "time", default, doc)


_TIMINGS: tuple[Param, ...] = (
    _time("tCL", "12.5 ns", "From a read command to its first byte: 20 clocks."),
    _time("tCWL", "6.25 ns", "From a write command to its first byte: 10 clocks."),
    _time("tRCDRD", "19.375 ns", "From an activation to a read of the row: 31 clocks."),
    _time("tRCDWR", "9.375 ns", "From an activation to a write to the row: 15 clocks."),
    _time("tRP", "16.25 ns", "From a precharge to the next activation of the bank: 26 clocks."),
    _time("tRAS", "28.125 ns", "From an activation to the precharge of the bank: 45 clocks."),
    _time("tRC", "45 ns", "Between activations of one bank: 72 clocks."),
    _time("tCCD_S", "1.25 ns", "Between column commands to different bank groups: 2 clocks."),
    _time("tCCD_L", "2.5 ns", "Between column commands to one bank group: 4 clocks."),
    _time("tRRD_S", "2.5 ns", "Between activations in different bank groups: 4 clocks."),
    _time("tRRD_L", "3.125 ns", "Between activations in one bank group: 5 clocks."),
    _time("tFAW", "15 ns", "Time in which at most four activations fall: 24 clocks."),
    _time("tWR", "20.625 ns", "From the end of write data to a precharge of the bank: 33 clocks."),
    _time("tWTR_S", "4.375 ns", "From the end of write data to a read in another bank group: 7 clocks."),
    _time("tWTR_L", "6.25 ns", "From the end of write data to a read in the same bank group: 10 clocks."),
    _time("tRTP", "5.625 ns", "From a read command to a precharge of the bank: 9 clocks."),
    _time("tRTW", "8.75 ns", "From a read command to a write command: tCL + burst + 2 clocks - tCWL."),
    _time("tRFC", "260 ns", "A refresh of all banks."),
    _time("tREFI", "3900 ns", "Between refreshes; 0 ns for none."),
)


class HbmCtrlBank(ComponentBase):
    """Serve reads and writes of one HBM slice burst by burst, by the timing rules of its banks.

    Models: a controller latency per request; pseudo-channels that interleave by address; banks in groups with open \
rows, and every time between commands of tCL, tCWL, tRCD, tRP, tRAS, tRC, tCCD, tRRD, tFAW, tWR, tWTR, tRTP, tRTW; \
refresh of all banks every tREFI; a read and a write queue per channel, first ready first come first served (row hits \
before others, then the oldest), writes drained from an upper to a lower mark or when no read waits. Bursts of a write \
are taken as they arrive; it is acknowledged when its last one is in the queue.
    Ignores: Command buses are never full and every command may come at any time: commands are not aligned to a clock. \
Refresh of single banks, its postponement, and power-down are not modelled. A read of what is still in the write \
queue goes to the array. Requests wait without limit in front of the queues.
    Timing: out = arrival + overhead; a burst of a lone read: row hit tCL + tBL, closed row tRCDRD + tCL + tBL, \
another row open tRP + tRCDRD + tCL + tBL, tBL = burst_bytes / channel_bandwidth; several bursts at the pace of tCCD.
    Source: JESD238; Ramulator 2 preset HBM3-6400, times as multiples of its 0.625 ns clock.
    """

    STATS: ClassVar[tuple[Stat, ...]] = (
        Stat("row_hits", "", "sum", "Bursts that found their row open."),
        Stat("row_misses", "", "sum", "Bursts that found their bank closed."),
        Stat("row_conflicts", "", "sum", "Bursts that found another row open."),
    )
    PARAMS: ClassVar[tuple[Param, ...]] = (
        Param("overhead", "time", "10 ns", "Controller pipeline latency, per request."),
        Param("channels", "int", 4, "Pseudo-channels of this slice.", minimum=1, maximum=1024),
        Param("channel_bandwidth", "bandwidth", "25.6 GB/s", "Peak rate of one pseudo-channel.", positive=True),
        Param("interleave_bytes", "size", "256 B", "Consecutive bytes on one channel before the next.", positive=True),
        Param("burst_bytes", "size", "32 B", "Bytes of one column command; divides interleave_bytes.", positive=True),
        Param("channel_hash", "bool", False, "XOR the channel with the address bits above it."),
        Param("banks", "int", 16, "Banks of a pseudo-channel, all groups together.", minimum=1, maximum=256),
        Param("bank_groups", "int", 4, "Bank groups of a pseudo-channel; divides banks.", minimum=1, maximum=256),
        Param("row_bytes", "size", "1 KiB", "Bytes of a row; a multiple of burst_bytes.", positive=True),
        Param("mapping", "str", "RoBaCo", "Order of row, bank and column, the highest address bits first.",
              choices=MAPPINGS),
        Param("bank_group_interleave", "bool", True, "Change the bank group with every burst of a channel."),
        Param("bank_hash", "bool", False, "XOR the bank with the low bits of the row."),
        *_TIMINGS,
        Param("read_queue", "int", 64, "Read bursts that a channel chooses from.", minimum=1, maximum=65536),
        Param("write_queue", "int", 64, "Write bursts that a channel holds.", minimum=1, maximum=65536),
        Param("drain_from", "float", 0.8, "Fraction of the write queue at which writes go before reads.", minimum=0.0),
        Param("drain_to", "float", 0.2, "Fraction of the write queue at which reads go again.", minimum=0.0),
    )  # fmt: skip
    bound_is_exact: ClassVar[bool] = False

    def __init__(self, node: Node, fabric: Fabric) -> None:
        super().__init__(node, fabric)
        p = self.params
        _check(node)
        self._overhead: float = p["overhead"]
        self._burst_bytes: int = p["burst_bytes"]
        shape = {field.name: p[field.name] for field in attrs.fields(BankMapping) if field.name in p}
        self.mapping = BankMapping(**shape, group_interleave=p["bank_group_interleave"])
        self.timing = _timing(p)
        sizes = QueueSizes(
            p["read_queue"],
            p["write_queue"],
            max(1, math.ceil(p["drain_from"] * p["write_queue"])),
            math.floor(p["drain_to"] * p["write_queue"]),
        )
        self.banked: list[BankChannel] = []
        for index in range(p["channels"]):
            wire = self.internal_wire(f"pc{index}", p["channel_bandwidth"], self.timing.tCL)
            channel = BankChannel(
                fabric.env, wire, self.timing, p["banks"], p["bank_groups"], sizes, self._burst_bytes,
                self._data_settled, self._taken,
            )  # fmt: skip
            self.banked.append(channel)

    def overhead(self, msg: MsgBase) -> float:
        """Return the controller latency in ns."""
        return self._overhead

    def acts_on_head(self, msg: Any) -> bool:
        """Say that the data of a write is taken as it comes."""
        return bool(msg.op == "write" and not msg.reply)

    def channels(self, msg: Any) -> Iterable[tuple[int, float, float]]:
        """Return what each channel at least carries of a read; a write only has to reach the queues."""
        if msg.op == "read":
            counts: dict[int, int] = {}
            for address in self.mapping.bursts(msg.regions):
                channel = self.mapping.split(address)[0]
                counts[channel] = counts.get(channel, 0) + self._burst_bytes
            for channel, nbytes in sorted(counts.items()):
                wire = self.banked[channel].wire
                yield nbytes, wire.bandwidth, wire.latency

    def geometry(self) -> DramGeometry:
        """Describe banks, rows and times, for tools that drive the controller."""
        p, mapping = self.params, self.mapping
        rows = 1 << 12
        return DramGeometry(
            channels=mapping.channels,
            channel_bandwidth=p["channel_bandwidth"],
            interleave_bytes=mapping.interleave_bytes,
            burst_bytes=mapping.burst_bytes,
            span_bytes=mapping.channels * mapping.banks * mapping.row_bytes * rows,
            row_bytes=mapping.row_bytes,
            banks=mapping.banks,
            bank_groups=mapping.bank_groups,
            timing=MappingProxyType(attrs.asdict(self.timing)),
            address=mapping.address,
            locate=mapping.locate,
            outcomes=self._outcomes,
        )

    @property
    def row_hits(self) -> int:
        """Bursts that found their row open."""
        return sum(channel.hits for channel in self.banked)

    @property
    def row_misses(self) -> int:
        """Bursts that found their bank closed."""
        return sum(channel.misses for channel in self.banked)

    @property
    def row_conflicts(self) -> int:
        """Bursts that found another row open."""
        return sum(channel.conflicts for channel in self.banked)

    def _outcomes(self) -> tuple[int, int, int]:
        return self.row_hits, self.row_misses, self.row_conflicts

    # Requests to bursts ---------------------------------------------------------------------------

    def emit(self, msg: Any, head: float, tail: float) -> None:
        """Hand the bursts of a request, there from (`head`, `tail`) ns, to their channels."""
        split = self.mapping.split
        addresses = list(self.mapping.bursts(msg.regions))
        if not addresses:
            msg.head = msg.tail = tail
            self.env.call_at(tail, msg, self.on_internal)
            return
        job = _Job(msg, len(addresses), tail)
        reads = msg.op == "read"
        by_channel: dict[int, list[Burst]] = {}
        first, pace = (tail, 0.0) if reads else (head, (tail - head) / len(addresses))
        for number, address in enumerate(addresses, 1):
            channel, bank, row = split(address)
            at = min(tail, grid_ceil(first + number * pace)) if pace else tail
            burst = Burst(at, bank, row, job)
            if channel in by_channel:
                by_channel[channel].append(burst)
            else:
                by_channel[channel] = [burst]
        counts = {channel: len(bursts) for channel, bursts in sorted(by_channel.items())}
        msg.shares = tuple((channel, count * self._burst_bytes) for channel, count in counts.items())
        for channel in counts:
            self.banked[channel].add(READ if reads else WRITE, by_channel[channel])

    def _data_settled(self, channel: BankChannel, burst: Burst, start: float, end: float, opening: float) -> None:
        """Note when a read's burst is on the data bus; answer when the last one is settled."""
        job: _Job = burst.job
        job.head = min(job.head, start)
        job.opening = max(job.opening, opening)
        if end > job.end:
            job.end, job.last = end, channel
        job.waiting -= 1
        if not job.waiting:
            self._answer_read(job)

    def _answer_read(self, job: _Job) -> None:
        """Split the time of a read into its parts, and send the answer with its first byte."""
        msg, last = job.msg, job.last
        carried = dict(msg.shares)[self.banked.index(last)] // self._burst_bytes
        own = carried * self.timing.tBL
        rest = job.end - job.tail - self.timing.tCL - own
        opening = min(job.opening, rest)
        msg.propagation += self.timing.tCL
        msg.serialisation += own
        msg.service += opening
        msg.queueing += rest - opening
        msg.head, msg.tail = job.head, job.end
        last.wire.deliver(msg, max(job.head, self.env.now))

    def _taken(self, burst: Burst, now: float) -> None:
        """Acknowledge a write whose last burst is in its queue."""
        job: _Job = burst.job
        job.waiting -= 1
        if not job.waiting:
            msg = job.msg
            msg.queueing += now - job.tail
            msg.head = msg.tail = now
            self.on_internal(msg)

    def on_internal(self, msg: Any) -> None:
        """Respond: a read's data as it comes, a write's acknowledgement."""
        head, tail = (msg.tail, msg.tail) if msg.op == "write" else (max(msg.head, self.env.now), msg.tail)
        msg.turn_around()
        super().emit(msg, head, tail)


class _Job:
    """Keep how far a request is: bursts still waiting, its data's first and last time, what its rows took to open."""

    __slots__ = ("end", "head", "last", "msg", "opening", "tail", "waiting")

    def __init__(self, msg: Any, waiting: int, tail: float) -> None:
        self.msg = msg
        self.waiting = waiting
        self.tail = tail
        self.head = math.inf
        self.end = self.opening = 0.0
        self.last: Any = None


def _timing(params: Any) -> BankTiming:
    """Return the times of a channel on the grid; bursts never overlap on the data bus, whatever the parameters say."""
    times = {param.name: grid_ceil(params[param.name]) for param in _TIMINGS}
    burst = grid_ceil(params["burst_bytes"] / params["channel_bandwidth"])
    times["tCCD_S"] = max(times["tCCD_S"], burst)
    times["tCCD_L"] = max(times["tCCD_L"], times["tCCD_S"])
    times["tRTW"] = max(times["tRTW"], times["tCL"] + burst - times["tCWL"])
    times["tREFI"] = times["tREFI"] or math.inf
    return BankTiming(tBL=burst, **times)


def _check(node: Node) -> None:
    """Raise ConfigError with every fault that the parameters have together."""
    p, problems = node.params, []
    for part, whole in (("burst_bytes", "interleave_bytes"), ("burst_bytes", "row_bytes"), ("bank_groups", "banks")):
        if p[whole] % p[part]:
            problems.append(
                f"{node.id}: {whole} must be a multiple of {part}, not {p[whole]} of {p[part]}; correct one."
            )
    for option, counted in (("channel_hash", "channels"), ("bank_hash", "banks")):
        if p[option] and p[counted] & (p[counted] - 1):
            problems.append(
                f"{node.id}: {counted} must be a power of two with {option}, not {p[counted]}; correct one."
            )
    if not 0.0 <= p["drain_to"] < p["drain_from"] <= 1.0:
        problems.append(
            f"{node.id}: drain_to must be below drain_from and both from 0 to 1, not {p['drain_to']:g} and "
            f"{p['drain_from']:g}; correct one."
        )
    needs = p["tRTP"] + 2 * p["tRP"] + p["tRFC"] + p["tRCDRD"] + p["tRC"]
    if p["tREFI"] and p["tREFI"] <= needs:
        problems.append(
            f"{node.id}: tREFI must be longer than a refresh with what surrounds it, {needs:g} ns, not {p['tREFI']:g} "
            "ns; correct one, or give 0 ns for none."
        )
    if problems:
        raise ConfigError(*problems)
