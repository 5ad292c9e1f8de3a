"""What all kernels of a run did together: the time that any ran, what was busiest then, and what they achieved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from kernbench_builtin.machines.figures.roofline import RooflinePoint, roofline_point
from kernbench_core.reporting import LaunchWork, UnitWork
from kernbench_core.units import format_time

if TYPE_CHECKING:
    from kernbench_builtin.machines.figures.meter import LaunchMeter, LaunchUse
    from kernbench_core.engine.hardware import Hardware


@attrs.frozen(repr=False)
class KernelUse:
    """Say how busy the busiest resource of a kind was while kernels ran, and over the run: shares of its capacity.

    `alike` is how many of its kind were used while kernels ran, `mean_utilisation` the mean over them; `busy_ns` is of
    that time, of its `servers` together. `nbytes` is the payload that passed it in that time, `run_nbytes` in the run.
    """

    name: str
    kind: str
    utilisation: float
    run_utilisation: float
    busy_ns: float
    run_nbytes: int
    alike: int
    mean_utilisation: float
    servers: int = 1
    nbytes: int = 0

    def __repr__(self) -> str:
        return f"<KernelUse {self.name} ({self.kind}) {self.utilisation:.1%}, of the run {self.run_utilisation:.1%}>"


@attrs.frozen
class ArrayFill:
    """Say how the units of one kind, arrays of cells, spent the time at work, together; times in ns.

    In `filling_ns` they started, filled and drained; `unfilled_ns` is time in which operands entered, times the share
    of cells that had no element.
    """

    kind: str
    units: int
    busy_ns: float
    filling_ns: float
    unfilled_ns: float

    @property
    def lost(self) -> float:
        """The share of the time at work that gave no results."""
        return (self.filling_ns + self.unfilled_ns) / self.busy_ns


@attrs.frozen(repr=False)
class KernelFigures:
    """What the kernels of a run did together: `time_ns` is how long any ran, the rest is about that time."""

    time_ns: float
    busiest: tuple[KernelUse, ...]
    roofline: RooflinePoint | None
    fills: tuple[ArrayFill, ...]

    def __repr__(self) -> str:
        first = f", {self.busiest[0].name} {self.busiest[0].utilisation:.1%} busy" if self.busiest else ""
        return f"<KernelFigures of {format_time(self.time_ns)}{first}>"

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON types."""
        return {
            "time_ns": self.time_ns,
            "busiest": [attrs.asdict(use) for use in self.busiest],
            "roofline": None if self.roofline is None else self.roofline.to_json(),
            "fills": [{**attrs.asdict(fill), "lost": fill.lost} for fill in self.fills],
        }


def kernel_figures(hardware: Hardware, meter: LaunchMeter) -> KernelFigures | None:
    """Return what all kernels of a run did together, None where none ran to its end, or took any time."""
    span = sum(each.span for each in meter.intervals())
    if not span:
        return None
    return KernelFigures(
        span,
        tuple(_over_the_run(hardware, meter.busiest())),
        roofline_point(_together(meter.work()), span, hardware),
        tuple(_fills(hardware)),
    )


def _together(works: Sequence[LaunchWork]) -> LaunchWork:
    """Add up what launches did; of peaks the highest counts."""
    found = LaunchWork()
    for work in works:
        for node, unit in work.units.items():
            mine = found.units.setdefault(node, UnitWork())
            mine.flops += unit.flops
            mine.peak = max(mine.peak, unit.peak)
        for memory, moved in work.memories.items():
            found.memories[memory] = found.memories.get(memory, 0) + moved
    return found


def _over_the_run(hardware: Hardware, busiest: Sequence[LaunchUse]) -> Sequence[KernelUse]:
    """Add how busy these resources were over the whole run."""
    names, total = {use.name for use in busiest}, hardware.env.now
    of_run: dict[str, tuple[float, int]] = {}
    for wire in hardware.wires:
        if wire.name in names:
            of_run[wire.name] = wire.busy_by(total) / total, wire.bytes_carried
    components: Mapping[str, Any] = hardware.components
    for name in names - of_run.keys():
        unit = components[name]
        of_run[name] = unit.busy_by(total) / (total * unit.servers), 0
    return [
        KernelUse(
            use.name, use.kind, use.utilisation, of_run[use.name][0], use.busy_ns, of_run[use.name][1], use.alike,
            use.mean_utilisation, use.servers, use.nbytes,
        )
        for use in busiest
    ]  # fmt: skip


def _fills(hardware: Hardware) -> Sequence[ArrayFill]:
    """Sum up the units that tell of filling, by kind, those that were at work the longest first."""
    kinds: dict[str, list[tuple[float, float, float]]] = {}
    for unit in hardware.components.values():
        if unit.filling_ns or unit.unfilled_ns:
            told = unit.busy_by(hardware.env.now), unit.filling_ns, unit.unfilled_ns
            kinds.setdefault(unit.node.kind, []).append(told)
    found = [ArrayFill(kind, len(each), *map(sum, zip(*each, strict=True))) for kind, each in kinds.items()]
    return sorted(found, key=lambda fill: (-fill.busy_ns, fill.kind))
