"""What launches achieve against what a machine could do: FLOP/s of units, GB/s of memories, a point under the roof."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs

from kernbench_core.reporting import LaunchWork, UnitWork
from kernbench_core.units import format_bandwidth, format_flops

if TYPE_CHECKING:
    from kernbench_core.engine.hardware import Hardware


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


def rate_text(rate: float, unit: str) -> str:
    """Write what `Achieved` compares in `unit`: GFLOP/s of computing, or GB/s of moving; `630.3 MFLOP/s`."""
    return format_bandwidth(rate) if unit == "GB/s" else format_flops(rate)


@attrs.frozen
class RooflinePoint:
    """Place one launch under the roof. Rates in GFLOP/s and GB/s, `intensity` in FLOP per byte of HBM traffic.

    `attainable` is the lower of the units' peak and what the memories in use could feed; `bound` says which,
    "compute" or "memory". A launch without arithmetic has an attainable rate of 0 and is bound by memory. `flops` are
    those of all lanes of a block, those that a mask leaves out too; `hbm_bytes` are of the lanes that it leaves in.
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

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON types; an endless intensity is None."""
        resources = [{**attrs.asdict(each), "share": each.share} for each in self.resources]
        intensity = self.intensity if self.intensity != float("inf") else None
        return {**attrs.asdict(self), "intensity": intensity, "share": self.share, "resources": resources}


def roofline_point(work: LaunchWork, duration_ns: float, hardware: Hardware) -> RooflinePoint | None:
    """Return the point of what was done in `duration_ns`, None where nothing was, or in no time."""
    units = {node: unit for node, unit in work.units.items() if unit.flops or unit.peak}
    memories = {node: moved for node, moved in work.memories.items() if hardware.graph.nodes[node].kind == "hbm_ctrl"}
    if not duration_ns or not (units or memories):
        return None
    resources = (*_units(units, duration_ns, hardware), *_memories(memories, duration_ns, hardware))
    flops = sum(unit.flops for unit in units.values())
    moved = sum(memories.values())
    peak = sum(each.peak for each in resources if each.unit == "GFLOP/s")
    bandwidth = sum(each.peak for each in resources if each.unit == "GB/s")
    intensity = flops / moved if moved else float("inf") if flops else 0.0
    fed = intensity * bandwidth if moved else peak
    bound = "memory" if fed < peak or not peak else "compute"
    achieved, attainable = flops / duration_ns, min(peak, fed)
    return RooflinePoint(flops, moved, duration_ns, intensity, achieved, attainable, bound, resources)


def _units(units: Mapping[str, UnitWork], duration: float, hardware: Hardware) -> tuple[Achieved, ...]:
    kinds: dict[str, dict[str, tuple[float, float]]] = {}
    for node, unit in sorted(units.items()):
        kinds.setdefault(hardware.graph.nodes[node].kind, {})[node] = (unit.flops / duration, unit.peak)
    return tuple(_achieved(kind, rates, "GFLOP/s") for kind, rates in sorted(kinds.items()))


def _memories(memories: Mapping[str, int], duration: float, hardware: Hardware) -> tuple[Achieved, ...]:
    if not memories:
        return ()
    rates = {
        node: (moved / duration, hardware.components[node].peak_bandwidth) for node, moved in sorted(memories.items())
    }
    return (_achieved("hbm_ctrl", rates, "GB/s"),)


def _achieved(kind: str, rates: Mapping[str, tuple[float, float]], unit: str) -> Achieved:
    """Sum up rates and peaks of the resources of one kind, and name the one nearest to its peak."""
    busiest = max(rates, key=lambda node: rates[node][0] / rates[node][1] if rates[node][1] else 0.0)
    achieved, peak = (sum(each[index] for each in rates.values()) for index in (0, 1))
    return Achieved(kind, len(rates), achieved, peak, unit, busiest, *rates[busiest])
