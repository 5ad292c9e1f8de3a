"""The control processor of an IO chiplet."""

from __future__ import annotations

from typing import ClassVar

from kernbench_builtin.launch_fan_out import LaunchFanOut
from kernbench_core.graph import PeSite
from kernbench_core.messages import Launch, MsgBase
from kernbench_core.params import Param


class IoCpu(LaunchFanOut):
    """Stamp launches with a common start, send them to each cube's m_cpu, and gather the answers.

    Models: a processing latency per launch and per answer; the start stamp; the fan-out over its NoC port.
    Ignores: Launches and answers do not contend for the processor.
    Timing: out = arrival + overhead; the stamp is out plus the largest lower bound from here to any of the launch's \
PEs; the answer leaves when the last cube's answer has been served.
    Source: an estimate of the order of a few hundred cycles at 1 to 2 GHz, unverified.
    """

    PARAMS: ClassVar[tuple[Param, ...]] = (
        Param("overhead", "time", "10 ns", "Processing time of a launch or of an answer."),
    )

    def next_node(self, site: PeSite) -> str:
        """Return the m_cpu that serves `site`."""
        return site.m_cpu

    def fan_out(self, parent: MsgBase, launch: Launch, targets: tuple[int, ...]) -> None:
        """Stamp the launch, unless the host did, and send it on."""
        self.stamp(launch, targets)
        super().fan_out(parent, launch, targets)
