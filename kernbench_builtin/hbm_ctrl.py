"""The HBM controller of one PE slice."""

from __future__ import annotations

from typing import Any, ClassVar

from kernbench_builtin.channelled_memory import ChannelledMemory, Interleaving, Shares
from kernbench_core.context import RunContext
from kernbench_core.errors import ConfigError
from kernbench_core.graph import Node
from kernbench_core.messages import MsgBase
from kernbench_core.params import Param


class HbmCtrl(ChannelledMemory):
    """Serve reads and writes of one HBM slice through its pseudo-channels.

    Models: a controller latency per request; pseudo-channels that interleave by address and serialise by bandwidth; \
reads and writes share a channel; a row moves whole bursts, so short rows waste bandwidth.
    Ignores: Rows, banks, bank groups and refresh are not modelled: every burst runs at the channel's peak rate. \
Read-write turnaround is free. Addresses are not hashed: rows a power of two apart may share a channel. \
Requests of a channel are served first come first served.
    Timing: out = arrival + overhead; per channel start = max(out, free), free = start + bytes / channel_bandwidth, \
then channel_latency.
    Source: JESD238 (25.6 GB/s per pseudo-channel); Ramulator 2 preset HBM3-6400 (tRCD + tCL = 31.9 ns).
    """

    PARAMS: ClassVar[tuple[Param, ...]] = (
        Param("overhead", "time", "10 ns", "Controller pipeline latency, per request."),
        Param("channels", "int", 4, "Pseudo-channels of this slice.", minimum=1),
        Param("channel_bandwidth", "bandwidth", "25.6 GB/s", "Peak rate of one pseudo-channel.", positive=True),
        Param("channel_latency", "time", "31.9 ns", "Time from a request's turn to its first byte.", positive=True),
        Param("interleave_bytes", "size", "256 B", "Consecutive bytes on one channel before the next.", positive=True),
        Param("burst_bytes", "size", "32 B", "Least that a channel moves; divides interleave_bytes.", positive=True),
    )

    def __init__(self, node: Node, ctx: RunContext) -> None:
        super().__init__(node, ctx)
        self._overhead: float = self.params["overhead"]
        channels: int = self.params["channels"]
        block, burst = self.params["interleave_bytes"], self.params["burst_bytes"]
        if block % burst:
            raise ConfigError(
                f"{node.id}: interleave_bytes must be a multiple of burst_bytes, not {block} of {burst}; correct one."
            )
        self._interleaving = Interleaving(channels, block, burst)
        self.channel_wires = [
            self.internal_wire(f"pc{i}", self.params["channel_bandwidth"], self.params["channel_latency"])
            for i in range(channels)
        ]

    def overhead(self, msg: MsgBase) -> float:
        """Return the controller latency in ns."""
        return self._overhead

    def shares(self, msg: Any) -> Shares:
        """Return the bytes on each pseudo-channel, by address."""
        return self._interleaving.shares(msg.regions)
