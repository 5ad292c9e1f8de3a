"""The HBM controller of one PE slice."""

from __future__ import annotations

from typing import ClassVar

from kernbench_builtin.components.atomic_units import ATOMIC_STEP, AtomicUnits
from kernbench_builtin.components.channelled_memory import ChannelledMemory, Interleaving
from kernbench_builtin.components.dram import CHANNEL_HASH, DramGeometry, hashes_channels, without_hash
from kernbench_core.errors import ConfigError
from kernbench_core.fabric import Fabric
from kernbench_core.graph import Node
from kernbench_core.memory import AtomicMemory
from kernbench_core.params import Param


class HbmCtrl(AtomicMemory, ChannelledMemory):
    """Serve reads and writes of one HBM slice through its pseudo-channels.

    Models: a controller latency per request; pseudo-channels that interleave by address and serialise by bandwidth; \
reads and writes share a channel; a row of a strided access moves whole bursts, so short rows waste bandwidth; the \
share of the peak that refresh leaves to sequential reads, measured on builtin.hbm_ctrl_bank. An atomic unit for each \
channel: it takes requests in order, a step for each burst changes each of its elements once, lanes that meet in an \
element take a step each; a burst is fetched by the first request for it, kept while others wait, and written back. \
Plain reads and writes of what a unit holds pass it by.
    Ignores: Row buffers, banks and bank groups are not modelled: random bursts of 32 B run 3.0 times too fast, \
random chunks of 4 KiB 1.05 times, row conflicts in one bank 36 times. \
Read-write turnaround is free: sequential reads and writes in equal parts run 1.13 times too fast. \
Refresh takes its share of the rate all the time instead of stopping everything now and then. \
Requests of a channel are served first come first served.
    Timing: out = arrival + overhead; per channel start = max(out, free), \
free = start + bytes / (channel_bandwidth x efficiency), for a write not before its last byte is there, then \
channel_latency. An atomic op: a read of the bursts that no unit keeps, then atomic_step for each step; the write back \
takes its channel, and nobody waits for it.
    Source: JESD238 (25.6 GB/s per pseudo-channel); Ramulator 2 preset HBM3-6400 (tRCD + tCL = 31.9 ns); \
tools/derive_hbm.py (efficiency, factors). Atomic ops at one address: one a clock (NVIDIA, Kepler GK110 whitepaper), \
here of 1 GHz.
    """

    PARAMS: ClassVar[tuple[Param, ...]] = (
        Param("overhead", "time", "10 ns", "Controller pipeline latency, per request."),
        Param("channels", "int", 4, "Pseudo-channels of this slice.", minimum=1, maximum=1024),
        Param("channel_bandwidth", "bandwidth", "25.6 GB/s", "Peak rate of one pseudo-channel.", positive=True),
        Param("efficiency", "float", 0.923, "Fraction of the peak that is sustained, above 0 to 1.", positive=True),
        Param("channel_latency", "time", "31.9 ns", "Time from a request's turn to its first byte.", positive=True),
        Param("interleave_bytes", "size", "256 B", "Consecutive bytes on one channel before the next.", positive=True),
        Param("burst_bytes", "size", "32 B", "Least that a channel moves; divides interleave_bytes.", positive=True),
        CHANNEL_HASH,
        ATOMIC_STEP,
    )

    def __init__(self, node: Node, fabric: Fabric) -> None:
        super().__init__(node, fabric)
        self._overhead: float = self.params["overhead"]
        channels: int = self.params["channels"]
        block, burst = self.params["interleave_bytes"], self.params["burst_bytes"]
        if block % burst:
            raise ConfigError(
                f"{node.id}: interleave_bytes must be a multiple of burst_bytes, not {block} of {burst}; correct one."
            )
        efficiency, hashes = self.params["efficiency"], hashes_channels(self.params)
        if efficiency > 1:
            raise ConfigError(f"{node.id}: efficiency must be at most 1, not {efficiency:g}; correct it.")
        if hashes and channels & (channels - 1):
            raise ConfigError(
                f"{node.id}: channels must be a power of two with channel_hash on, not {channels}; correct one."
            )
        self.ignores = without_hash(self.params)
        self.interleaving = Interleaving(channels, block, burst, hash_channels=hashes)
        rate = self.params["channel_bandwidth"] * efficiency
        self.channel_wires = [
            self.internal_wire(f"pc{i}", rate, self.params["channel_latency"]) for i in range(channels)
        ]
        self.atomic_units = AtomicUnits(self, burst, self.interleaving.channel_of)

    @property
    def peak_bandwidth(self) -> float:
        """The peak rate of all pseudo-channels, in bytes/ns, of which `efficiency` is sustained."""
        return float(self.params["channels"] * self.params["channel_bandwidth"])

    def geometry(self) -> DramGeometry:
        """Describe the channels, for tools that drive the controller; rows and banks there are none."""
        p, interleaving = self.params, self.interleaving
        assert interleaving is not None
        return DramGeometry(
            channels=p["channels"],
            channel_bandwidth=p["channel_bandwidth"],
            interleave_bytes=p["interleave_bytes"],
            burst_bytes=p["burst_bytes"],
            span_bytes=1 << 28,
            sustained=p["efficiency"],
            shares=interleaving.shares,
        )
