"""The HBM controller of one PE slice, with banks, rows and refresh."""

from __future__ import annotations

import math
from collections.abc import Iterable
from types import MappingProxyType
from typing import Any, ClassVar

import attrs

from kernbench_builtin.components.atomic_units import ATOMIC_STEP, AtomicUnits
from kernbench_builtin.components.banks.atomic_queue import AtomicQueue
from kernbench_builtin.components.banks.channel import BankChannel
from kernbench_builtin.components.banks.front_end import BankedMemory, FrontEnd
from kernbench_builtin.components.banks.mapping import MAPPINGS, BankMapping
from kernbench_builtin.components.banks.parameter_checks import check_parameters
from kernbench_builtin.components.banks.pseudo_channel import PseudoChannel
from kernbench_builtin.components.banks.queues import BurstQueue
from kernbench_builtin.components.banks.timing import BankTiming, QueueSizes
from kernbench_builtin.components.dram import CHANNEL_HASH, DramGeometry, hashes_channels, without_hash
from kernbench_builtin.memory_standards import DEFAULT, STANDARDS, figures
from kernbench_core.fabric import Fabric
from kernbench_core.graph import Node
from kernbench_core.memory import AtomicMemory
from kernbench_core.params import Param
from kernbench_core.reporting import Stat


def _figure(name: str, dimension: str, doc: str, **limits: Any) -> Param:
    """Declare a parameter whose default is the figure of the standard."""
    values = figures(name)
    return Param(name, dimension, values[DEFAULT], doc, follows=("standard", values), **limits)


_TIMES: tuple[tuple[str, str], ...] = (
    ("tCL", "From a read command to its first byte."),
    ("tCWL", "From a write command to its first byte."),
    ("tRCDRD", "From an activation to a read of the row."),
    ("tRCDWR", "From an activation to a write to the row."),
    ("tRP", "From a precharge to the next activation of the bank."),
    ("tRAS", "From an activation to the precharge of the bank."),
    ("tRC", "Between activations of one bank."),
    ("tCCD_S", "Between column commands to different bank groups; at least a burst."),
    ("tCCD_L", "Between column commands to one bank group."),
    ("tCCD_R", "Between reads of different stack IDs."),
    ("tRRD_S", "Between activations in different bank groups."),
    ("tRRD_L", "Between activations in one bank group."),
    ("tFAW", "Time in which at most four activations fall."),
    ("tWR", "From the end of write data to a precharge of the bank."),
    ("tWTR_S", "From the end of write data to a read in another bank group."),
    ("tWTR_L", "From the end of write data to a read in the same bank group."),
    ("tRTP", "From a read command to a precharge of the bank."),
    ("tPPD", "Between precharges of a pseudo-channel."),
    ("tRFC", "A refresh of all banks."),
    ("tRFCpb", "A refresh of one bank."),
    ("tRREFD", "From a refresh of one bank to an activation or a refresh of another one."),
    ("tREFI", "In which every bank is refreshed once; 0 ns for never."),
)


class HbmCtrlBank(AtomicMemory, BankedMemory):
    """Serve reads and writes of one HBM slice burst by burst, by the timing rules of its banks.

    Models: a controller latency per request; an in-order front end; pseudo-channels that interleave by address, some \
of which share a row-command bus (an activation takes two clocks, a precharge or a refresh one) and a column-command \
bus; commands at clock edges only; banks in groups of stack IDs with open rows, and every time between commands of \
tCL, tCWL, tRCD, tRP, tRAS, tRC, tCCD, tRRD, tFAW, tWR, tWTR, tRTP, tPPD, tRFC, tRREFD, and tCL + burst + \
turnaround_clocks - tCWL from a read to a write; refresh of all banks every tREFI, or of one after the other; read and \
write queues of a pseudo-channel or of all that share a bus, first ready first come first served (row hits before \
others, then the oldest; a row is closed for a burst that is older than what hits it), writes drained from an upper to \
a lower mark or when no read waits. A burst whose row is opened leaves its queue; the row stays open until its column \
command, which comes whosever turn it is. Bursts of a write are taken as they \
arrive; it is acknowledged when its last one is in the queue. An atomic unit for each pseudo-channel, as those of \
builtin.hbm_ctrl: what they fetch and write back are requests of the controller, all in order of their arrival.
    Ignores: A precharge on the falling edge of the clock and activations of 1.5 clocks (HBM3, HBM4) are not \
modelled. Refresh is never postponed or pulled in, and rows that are open are closed for it only. Power-down and \
refresh management are not modelled. A read of what is still in the write queue goes to the array. Up to 32 column \
commands in a row are settled at once; a write that comes during them waits for their end.
    Timing: out = arrival + overhead; from the next clock edge a burst of a lone read takes: row hit tCL + tBL, closed \
row tRCDRD + tCL + tBL, another row open tRP + tRCDRD + tCL + tBL, tBL = burst_bytes / channel_bandwidth; several \
bursts at the pace of tCCD. An atomic op: a read of the bursts that no unit keeps, then atomic_step for each step.
    Source: JESD235, JESD238; Ramulator 2.1 presets (kernbench_builtin/memory_standards.py, figure by \
figure), builtin.hbm_ctrl (atomic_step).
    """

    STATS: ClassVar[tuple[Stat, ...]] = (
        Stat("row_hits", "", "sum", "Bursts that found their row open."),
        Stat("row_misses", "", "sum", "Bursts that found their bank closed."),
        Stat("row_conflicts", "", "sum", "Bursts that found another row open."),
    )
    PARAMS: ClassVar[tuple[Param, ...]] = (
        Param("standard", "str", DEFAULT, "Where the defaults of rate, burst, banks, row and times come from.",
              choices=tuple(STANDARDS), entries="memory_standards"),
        Param("overhead", "time", "10 ns", "Controller pipeline latency, per request."),
        Param("channels", "int", 4, "Pseudo-channels of this slice.", minimum=1, maximum=1024),
        Param("pseudo_channels", "int", 2, "Pseudo-channels that share command buses, from the first on.", minimum=1,
              maximum=1024),
        _figure("channel_bandwidth", "bandwidth", "Peak rate of one pseudo-channel; 16 B a clock.", positive=True),
        Param("interleave_bytes", "size", "256 B", "Consecutive bytes on one channel before the next.", positive=True),
        _figure("burst_bytes", "size", "Bytes of one column command; divides interleave_bytes.", positive=True),
        CHANNEL_HASH,
        _figure("banks", "int", "Banks of a pseudo-channel, all groups together.", minimum=1, maximum=256),
        _figure("bank_groups", "int", "Bank groups of a stack ID; divides banks.", minimum=1, maximum=256),
        _figure("stack_ids", "int", "Stack IDs of a pseudo-channel, whose banks its groups share.", minimum=1,
                maximum=16),
        _figure("row_bytes", "size", "Bytes of a row; a multiple of burst_bytes.", positive=True),
        Param("mapping", "str", "RoBaCo", "Order of row, bank and column, the highest address bits first.",
              choices=MAPPINGS),
        Param("bank_group_interleave", "bool", True, "Change the bank group with every burst of a channel."),
        Param("bank_hash", "bool", False, "XOR the bank with the low bits of the row."),
        *(_figure(name, "time", doc) for name, doc in _TIMES),
        _figure("turnaround_clocks", "int", "Clocks between read data and the write data after it.", minimum=0,
                maximum=1024),
        Param("activate_clocks", "int", 2, "Clocks of the row-command bus that an activation takes.", minimum=1,
              maximum=16),
        Param("precharge_clocks", "int", 1, "Clocks of the row-command bus that any other command takes.", minimum=1,
              maximum=16),
        Param("refresh", "str", "all_bank", "Refresh all banks at once, one after the other, or never.",
              choices=("all_bank", "per_bank", "none")),
        Param("front_end", "int", 256, "Requests whose bursts may wait for room in the queues; later ones wait in "
              "front of it, in order.", minimum=1, maximum=65536),
        Param("queues", "str", "per_pseudo_channel", "Whose the queues are.",
              choices=("per_pseudo_channel", "shared")),
        Param("read_queue", "int", 64, "Read bursts that a queue shows its scheduler.", minimum=1, maximum=65536),
        Param("write_queue", "int", 64, "Write bursts that a queue holds.", minimum=1, maximum=65536),
        Param("drain_from", "float", 0.8, "Fraction of the write queue at which writes go before reads.", minimum=0.0),
        Param("drain_to", "float", 0.2, "Fraction of the write queue at which reads go again.", minimum=0.0),
        ATOMIC_STEP,
    )  # fmt: skip
    bound_is_exact: ClassVar[bool] = False

    def __init__(self, node: Node, fabric: Fabric) -> None:
        super().__init__(node, fabric)
        p = self.params
        check_parameters(node)
        self._overhead = p["overhead"]
        self._burst_bytes: int = p["burst_bytes"]
        self.mapping = BankMapping(
            group_interleave=p["bank_group_interleave"],
            channel_hash=hashes_channels(p),
            **{name: p[name] for name in (
                "channels", "interleave_bytes", "burst_bytes", "banks", "bank_groups", "row_bytes", "mapping",
                "bank_hash",
            )},
        )  # fmt: skip
        self.ignores = without_hash(p)
        self.timing = BankTiming.of(p)
        self.front = FrontEnd(self, p["front_end"], self.mapping, self._burst_bytes)
        self.banked = [self._pseudo_channel(index) for index in range(p["channels"])]
        self._sizes = QueueSizes(
            p["read_queue"],
            p["write_queue"],
            max(1, math.ceil(p["drain_from"] * p["write_queue"])),
            math.floor(p["drain_to"] * p["write_queue"]),
        )
        units = AtomicUnits(self, self._burst_bytes, lambda address: self.mapping.split(address)[0])
        self.atomics = AtomicQueue(self, units, lambda msg, at: self.front.admit(msg, at, at), self.respond)
        together = p["pseudo_channels"]
        for first in range(0, p["channels"], together):
            self._join(self.banked[first : first + together])

    def _pseudo_channel(self, index: int) -> PseudoChannel:
        p = self.params
        wire = self.internal_wire(f"pc{index}", p["channel_bandwidth"], self.timing.tCL)
        return PseudoChannel(
            wire, self.timing, p["banks"], p["bank_groups"], p["stack_ids"], self._burst_bytes,
            p["refresh"] == "per_bank", self.front,
        )  # fmt: skip

    def _join(self, places: list[PseudoChannel]) -> None:
        """Have some pseudo-channels share command buses, and queues if they shall."""
        sharers = [places] if self.params["queues"] == "shared" else [[place] for place in places]
        queues = [BurstQueue(self._sizes, self.timing.tCK, sharing, self.front) for sharing in sharers]
        self.front.join(BankChannel(self.env, places, queues), places)

    def channels(self, msg: Any) -> Iterable[tuple[int, float, float]]:
        """Return what each channel at least carries of a read; a write only has to reach the queues."""
        if msg.op == "read":
            counts: dict[int, int] = {}
            for channel, places in self.mapping.runs(msg.regions):
                counts[channel] = counts.get(channel, 0) + self._burst_bytes * len(places)
            for channel, nbytes in sorted(counts.items()):
                wire = self.banked[channel].wire
                yield nbytes, wire.bandwidth, wire.latency

    def geometry(self) -> DramGeometry:
        """Describe banks, rows and times, for tools that drive the controller."""
        p, mapping, sizes = self.params, self.mapping, self._sizes
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
            buses=p["pseudo_channels"],
            queue_of=min(p["pseudo_channels"], p["channels"]) if p["queues"] == "shared" else 1,
            window=(sizes.reads, sizes.writes),
            drain=(sizes.drain_from, sizes.drain_to),
            front_end=p["front_end"],
            overhead=p["overhead"],
            refresh=p["refresh"],
            standard=p["standard"],
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
