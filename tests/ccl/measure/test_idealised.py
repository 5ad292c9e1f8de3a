"""Nothing but the scale-up links takes time under --idealised, on every preset and network."""

from __future__ import annotations

import pytest

from kernbench_ccl.measure.idealised import OVERLAY, remaining
from kernbench_core.graph import EdgeKind
from kernbench_core.plugins import load_plugins
from kernbench_core.runs.bench_run import configure
from kernbench_core.topology.compilation import compile_topology
from kernbench_core.units import GRID_NS
from tests.core.shapes import NETWORKS


@pytest.fixture(scope="module")
def plugins():
    return load_plugins()


def machine(plugins, preset, *sets, components=OVERLAY):
    return compile_topology(configure(plugins, preset, components, sets), plugins)


@pytest.mark.parametrize(
    "preset, sets",
    [("tiny", (f"system.network.topology={name}", "system.sips=4")) for name in NETWORKS]
    + [("default", ()), ("default", ("sip.io_chiplets=2", "system.network.bandwidth=25 GB/s")), ("full", ())],
)
def test_nothing_is_left_in_the_resolved_configuration(plugins, preset, sets):
    """Walk every edge and every declared parameter of every node."""
    graph = machine(plugins, preset, *sets)
    assert remaining(graph, plugins.components) == ()
    for edge in graph.edges.values():
        assert edge.header_bytes == 0
        if edge.kind is not EdgeKind.SCALE_UP:
            assert (edge.bandwidth, edge.latency) == (1e6, GRID_NS)


def test_scale_up_links_keep_their_figures(plugins):
    """The overlay leaves what --link-bw and --link-latency say."""
    plain = machine(plugins, "tiny", "system.sips=3", components=None)
    ideal = machine(plugins, "tiny", "system.sips=3")
    figures = [
        [(e.src, e.dst, e.bandwidth, e.latency) for e in graph.edges.values() if e.kind is EdgeKind.SCALE_UP]
        for graph in (plain, ideal)
    ]
    assert figures[0] == figures[1]
    assert len(figures[0]) == 6


def test_every_component_of_a_plain_machine_is_told(plugins):
    """The check sees what is there: wires, headers, times, bandwidths and clocks of the plain machine."""
    found = remaining(machine(plugins, "tiny", components=None), plugins.components)
    for said in (
        "header_bytes of noc wires is 32 B", "bandwidth of noc wires is 128 GB/s", "latency of io_noc wires is 1 ns",
        "overhead of builtin.forwarding is 4 ns", "channel_bandwidth of builtin.hbm_ctrl is 25.6 GB/s",
        "clock of builtin.pe_math is 0.96 GHz",
    ):  # fmt: skip
        assert said in found


def test_a_model_that_the_overlay_does_not_know_is_told(plugins):
    """Bank timings stay, so a machine with banks is not ideal, and the check says which they are."""
    sets = ("components.hbm_ctrl.impl=builtin.hbm_ctrl_bank", "components.hbm_ctrl.params={overhead: 1 ns}")
    found = remaining(machine(plugins, "tiny", *sets), plugins.components)
    assert "tRCDRD of builtin.hbm_ctrl_bank is 19.375 ns" in found
