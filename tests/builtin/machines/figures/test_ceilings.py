"""Machines beyond the hardware of today: named warnings, no errors; up to the ceiling, none."""

from __future__ import annotations

import attrs
import pytest

from kernbench_builtin.machines.figures.ceilings import HBM_STACK, LINKS, MATRIX_UNIT, above_ceilings
from kernbench_core.graph import EdgeKind
from kernbench_core.host.session import GraphEngine
from tests.core.toy_machine import toy_engine


def with_links(engine: GraphEngine, kind: EdgeKind, bandwidth: float) -> GraphEngine:
    """Give all links of a kind a bandwidth, as a configuration would."""
    edges = {pair: attrs.evolve(edge, kind=kind, bandwidth=bandwidth) for pair, edge in engine.graph.edges.items()}
    engine.hardware.graph = attrs.evolve(engine.graph, edges=edges)
    return engine


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        (
            EdgeKind.PCIE,
            "118.1 GB/s, more than PCIe generation 6 x16 with 118 GB/s (PCI-SIG: 64 GT/s, 236 of 256 B of a flit)",
        ),
        (EdgeKind.UCIE, "512.1 GB/s, more than an advanced UCIe module with 512 GB/s (UCIe 3.0: 64 lanes at 64 GT/s)"),
        (
            EdgeKind.SCALE_UP,
            "1.28 TB/s, more than all NeuronLinks of a Trainium2 chip with 1.28 TB/s (AWS Neuron docs)",
        ),
    ],
)  # fmt: skip
def test_a_link_beyond_its_ceiling_is_named(kind: EdgeKind, told: str) -> None:
    """One sentence for each kind, with the ceiling and its source; none for a link just at it."""
    most = LINKS[kind].most
    assert above_ceilings(with_links(toy_engine(pes=1), kind, most).hardware) == ()
    engine = with_links(toy_engine(pes=1), kind, most + 0.1)
    last = max(f"{a}->{b}" for a, b in engine.graph.edges)
    more = len(engine.graph.edges) - 1
    sentence = f"{last} carries {told} ({more} more like this); check the configuration."
    assert above_ceilings(engine.hardware) == (sentence,)


def test_hbm_is_summed_up_over_a_cube() -> None:
    """Each controller is below the ceiling, a stack of them is not."""
    engine = toy_engine(pes=4)
    wires = [
        wire for component in engine.hardware.components.values() if component.node.kind == "hbm_ctrl"
        for wire in component.internal_wires
    ]  # fmt: skip
    for wire in wires:
        wire.bandwidth = HBM_STACK.most / len(wires)
    assert above_ceilings(engine.hardware) == ()
    wires[0].bandwidth += 1000
    assert above_ceilings(engine.hardware) == (
        "sip0.cube0 has HBM of 3.05 TB/s, more than an HBM4 stack with 2.05 TB/s (JEDEC announcement: 32 channels, "
        "8 Gb/s); check the configuration.",
    )


@pytest.mark.parametrize(("dtype", "factor"), [("bf16", 1.0), ("f32", 1.0), ("int8", 2.0), ("f8e4m3", 2.0)])
def test_a_unit_is_compared_by_the_dtypes_that_it_was_used_with(dtype: str, factor: float) -> None:
    """Operands of one byte may go twice as fast."""
    engine = toy_engine(pes=1)
    unit = next(component for name, component in engine.hardware.components.items() if ".pe0." in name)
    unit.rates.peaks = {dtype: MATRIX_UNIT.most * factor}
    assert above_ceilings(engine.hardware) == ()
    unit.rates.peaks = {dtype: 2 * MATRIX_UNIT.most * factor, "f16": 1.0}
    assert above_ceilings(engine.hardware) == (
        f"{unit.id} computes up to 158 TFLOP/s, more than a Trainium2 core in bf16 with 79 TFLOP/s (AWS Neuron docs: "
        "128 x 128 at 2.4 GHz); check the configuration.",
    )


def test_every_ceiling_has_its_source() -> None:
    """A figure without one is a guess."""
    assert all(ceiling.source and ceiling.what for ceiling in (HBM_STACK, MATRIX_UNIT, *LINKS.values()))
