"""What hardware has reached so far, in one table: a machine that is configured beyond it is told so in the result.

The figures are the largest that a source gives for one thing of a kind; what is beyond may be meant, and is no error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from attrs import frozen

from kernbench_core.graph import EdgeKind
from kernbench_core.topology.naming import pe_prefix
from kernbench_core.units import format_bandwidth, format_flops
from kernbench_core.values.dtypes import itemsize

if TYPE_CHECKING:
    from kernbench_core.engine.hardware import Hardware


@frozen
class Ceiling:
    """The most that one thing of a kind does, in bytes/ns (= GB/s) or operations per ns (= GFLOP/s), and whose."""

    most: float
    what: str
    source: str


HBM_STACK: Final = Ceiling(2050.0, "an HBM4 stack", "JEDEC announcement: 32 channels, 8 Gb/s")
MATRIX_UNIT: Final = Ceiling(79_000.0, "a Trainium2 core in bf16", "AWS Neuron docs: 128 x 128 at 2.4 GHz")
#: A link in one direction, by kind.
LINKS: Final[Mapping[EdgeKind, Ceiling]] = MappingProxyType(
    {
        EdgeKind.PCIE: Ceiling(118.0, "PCIe generation 6 x16", "PCI-SIG: 64 GT/s, 236 of 256 B of a flit"),
        EdgeKind.UCIE: Ceiling(512.0, "an advanced UCIe module", "UCIe 3.0: 64 lanes at 64 GT/s"),
        EdgeKind.SCALE_UP: Ceiling(1280.0, "all NeuronLinks of a Trainium2 chip", "AWS Neuron docs"),
    }
)


def above_ceilings(hardware: Hardware) -> tuple[str, ...]:
    """Return a sentence for each kind of thing that goes beyond its ceiling, about the one that is furthest."""
    return (*_links(hardware), *_stacks(hardware), *_units(hardware))


def _links(hardware: Hardware) -> Iterator[str]:
    rates: dict[EdgeKind, dict[str, float]] = {kind: {} for kind in LINKS}
    for edge in hardware.graph.edges.values():
        if edge.kind in rates and edge.bandwidth > LINKS[edge.kind].most:
            rates[edge.kind][f"{edge.src}->{edge.dst}"] = edge.bandwidth
    for kind, found in rates.items():
        yield from _furthest(found, LINKS[kind], "carries", format_bandwidth)


def _stacks(hardware: Hardware) -> Iterator[str]:
    rates: dict[str, float] = {}
    for component in hardware.components.values():
        if component.node.kind == "hbm_ctrl":
            cube = component.id.rpartition(".")[0]
            rates[cube] = rates.get(cube, 0.0) + component.peak_bandwidth
    yield from _furthest(rates, HBM_STACK, "has HBM of", format_bandwidth)


def _units(hardware: Hardware) -> Iterator[str]:
    """Compare the arithmetic units that were used; operands of a byte may go twice as fast as those of two."""
    rates = {
        component.id: max(peak / (2 if itemsize(dtype) == 1 else 1) for dtype, peak in component.rates.peaks.items())
        for component in hardware.components.values()
        if component.rates.peaks and pe_prefix(component.id)
    }
    yield from _furthest(rates, MATRIX_UNIT, "computes up to", format_flops)


def _furthest(
    rates: Mapping[str, float], ceiling: Ceiling, does: str, spell: Callable[[float], str]
) -> Iterator[str]:
    above = {name: rate for name, rate in rates.items() if rate > ceiling.most * (1 + 1e-9)}
    if above:
        name = max(above, key=lambda each: (above[each], each))
        more = f" ({len(above) - 1} more like this)" if len(above) > 1 else ""
        yield (
            f"{name} {does} {spell(above[name])}, more than {ceiling.what} with {spell(ceiling.most)} "
            f"({ceiling.source}){more}; check the configuration."
        )
