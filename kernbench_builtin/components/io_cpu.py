"""The control processor of an IO chiplet."""

from __future__ import annotations

from typing import ClassVar

from kernbench_builtin.components.launch_fan_out import LaunchFanOut, Order
from kernbench_core.graph import PeSite
from kernbench_core.messages import Launch, MsgBase
from kernbench_core.params import Param


class IoCpu(LaunchFanOut):
    """Stamp launches with a common start, send launches and map updates to each cube's m_cpu, gather the answers.

    Models: a processing latency per order and per answer; the start stamp; the fan-out over its NoC port.
    Ignores: Launches, map updates and answers do not contend for the processor of an IO chiplet.
    Timing: out = arrival + overhead; the stamp is out plus the time in which the last of the launch's PEs is reached \
where nothing else is under way, messages waiting for one another included; the answer leaves when the last cube's \
answer has been served.
    Source: an estimate of the order of a few hundred cycles at 1 to 2 GHz, unverified.
    """

    PARAMS: ClassVar[tuple[Param, ...]] = (
        Param("overhead", "time", "10 ns", "Processing time of a launch, a map update or an answer."),
    )

    def next_node(self, site: PeSite, order: Order) -> str:
        """Return the m_cpu that serves `site`."""
        return site.m_cpu

    def fan_out(self, parent: MsgBase, order: Order, targets: tuple[int, ...]) -> None:
        """Send an order on; stamp a launch before, unless the host did."""
        if isinstance(order, Launch):
            self.stamp(order, targets)
        super().fan_out(parent, order, targets)
