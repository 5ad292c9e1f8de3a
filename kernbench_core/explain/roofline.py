"""What was achieved against what the machine could do: FLOP/s of units, GB/s of memories, a point for each launch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs

from kernbench_core.component import ComponentBase
from kernbench_core.messages import LaunchMsg, Transaction
from kernbench_core.topology.naming import pe_prefix

if TYPE_CHECKING:
    from kernbench_core.engine.hardware import Hardware
    from kernbench_core.messages import Launch, MsgBase


@attrs.frozen
class Achieved:
    """Compare what the resources of one kind did during a kernel with their peak; both in `unit`.

    `busiest` is the one that came nearest to its own peak, with its rate and that peak.
    """

    kind: str
    resources: int
    achieved: float
    peak: float
    unit: str
    busiest: str = ""
    busiest_achieved: float = 0.0
    busiest_peak: float = 0.0

    @property
    def share(self) -> float:
        """Achieved over peak."""
        return self.achieved / self.peak if self.peak else 0.0


@attrs.frozen
class RooflinePoint:
    """Place one launch under the roof. Rates in GFLOP/s and GB/s, `intensity` in FLOP per byte of HBM traffic.

    `attainable` is the lower of the units' peak and what the memories in use could feed; `bound` says which,
    "compute" or "memory". A launch without arithmetic has an attainable rate of 0 and is bound by memory.
    """

    flops: float
    hbm_bytes: int
    duration_ns: float
    intensity: float
    achieved: float
    attainable: float
    bound: str
    resources: tuple[Achieved, ...]

    @property
    def share(self) -> float:
        """Achieved over attainable."""
        return self.achieved / self.attainable if self.attainable else 0.0


@attrs.define
class _Unit:
    flops: float = 0.0
    peak: float = 0.0


@attrs.define
class _Work:
    units: dict[str, _Unit] = attrs.field(factory=dict)
    memories: dict[str, int] = attrs.field(factory=dict)


class WorkMeter:
    """Count the FLOP of each unit and the bytes of each memory, launch by launch."""

    def __init__(self, hardware: Hardware) -> None:
        self._ctx = hardware
        self._work: dict[Launch, _Work] = {}
        self._processor: dict[str, ComponentBase] = {}
        processors = {site.prefix: hardware.components[site.pe_cpu] for site in hardware.layout.pes}
        for node in hardware.graph.nodes:
            processor = processors.get(pe_prefix(node) or "")
            if processor is not None:
                self._processor[node] = processor

    def counts(self, component: ComponentBase) -> bool:
        """Say whether a component does arithmetic: whether its model says how much a message takes."""
        return type(component).flops is not ComponentBase.flops

    def served(self, component: ComponentBase, msg: Any) -> None:
        """Count the arithmetic of a message whose service ended."""
        work = self._of(component.id)
        if work is None:
            return
        unit = work.units.setdefault(component.id, _Unit())
        unit.flops += component.flops(msg)
        unit.peak = max(unit.peak, component.peak_flops(msg))

    def moved(self, msg: MsgBase) -> None:
        """Count the bytes of an answered transaction of a PE with an HBM controller."""
        if not isinstance(msg, Transaction):
            return
        memory, asker = msg.path[0], msg.path[-1]
        node = self._ctx.graph.nodes.get(memory)
        if node is None or node.kind != "hbm_ctrl":
            return
        work = self._of(asker)
        if work is not None:
            work.memories[memory] = work.memories.get(memory, 0) + msg.total

    def point(self, launch: Launch) -> RooflinePoint | None:
        """Return the point of a launch, None when no PE of it has both started and ended."""
        if not launch.ended_ns:
            return None
        duration = max(launch.ended_ns.values()) - min(launch.started_ns.values())
        work = self._work.get(launch, _Work())
        if not duration or not (work.units or work.memories):
            return None
        resources = (*self._units(work, duration), *self._memories(work, duration))
        flops = sum(unit.flops for unit in work.units.values())
        moved = sum(work.memories.values())
        peak = sum(each.peak for each in resources if each.unit == "GFLOP/s")
        bandwidth = sum(each.peak for each in resources if each.unit == "GB/s")
        intensity = flops / moved if moved else float("inf") if flops else 0.0
        fed = intensity * bandwidth if moved else peak
        bound = "memory" if fed < peak or not peak else "compute"
        return RooflinePoint(flops, moved, duration, intensity, flops / duration, min(peak, fed), bound, resources)

    def _of(self, node: str) -> _Work | None:
        cpu = self._processor.get(node)
        serving = () if cpu is None else cpu.serving
        if not serving or not isinstance(serving[0][0], LaunchMsg):
            return None
        return self._work.setdefault(serving[0][0].launch, _Work())

    def _units(self, work: _Work, duration: float) -> tuple[Achieved, ...]:
        kinds: dict[str, dict[str, tuple[float, float]]] = {}
        for node, unit in sorted(work.units.items()):
            kinds.setdefault(self._ctx.graph.nodes[node].kind, {})[node] = (unit.flops / duration, unit.peak)
        return tuple(_achieved(kind, rates, "GFLOP/s") for kind, rates in sorted(kinds.items()))

    def _memories(self, work: _Work, duration: float) -> tuple[Achieved, ...]:
        if not work.memories:
            return ()
        rates = {
            node: (moved / duration, self._ctx.components[node].peak_bandwidth)
            for node, moved in sorted(work.memories.items())
        }
        return (_achieved("hbm_ctrl", rates, "GB/s"),)


def _achieved(kind: str, rates: Mapping[str, tuple[float, float]], unit: str) -> Achieved:
    """Sum up rates and peaks of the resources of one kind, and name the one nearest to its peak."""
    busiest = max(rates, key=lambda node: rates[node][0] / rates[node][1] if rates[node][1] else 0.0)
    achieved, peak = (sum(each[index] for each in rates.values()) for index in (0, 1))
    return Achieved(kind, len(rates), achieved, peak, unit, busiest, *rates[busiest])
