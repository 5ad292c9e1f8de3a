"""Compiling: the right nodes and wires, implementations by kind, pattern and added unit, and every fault at once."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernbench_core.errors import ConfigError, UsageError
from kernbench_core.graph import EdgeKind, Graph
from kernbench_core.params import did_you_mean
from kernbench_core.plugins import ComponentRegistry
from kernbench_core.topology.compilation import compile_topology
from kernbench_core.topology.design import design_of
from kernbench_core.units import GRID_NS
from tests.core.offered import OFFERED
from tests.core.small_machine import TEXT, machine

PE_WIRES = {
    *(("pe_cpu", unit) for unit in
      ("pe_scheduler", "pe_dma", "pe_ipcq", "pe_mmu", "pe_tcm", "pe_fetch_store", "pe_gemm", "pe_math")),
    *(("pe_scheduler", unit) for unit in
      ("pe_dma", "pe_ipcq", "pe_mmu", "pe_tcm", "pe_fetch_store", "pe_gemm", "pe_math")),
    *(("pe_tcm", unit) for unit in ("pe_dma", "pe_fetch_store", "pe_gemm", "pe_math")),
    ("pe_dma", "pe_fetch_store"), ("pe_fetch_store", "pe_gemm"), ("pe_fetch_store", "pe_math"),
    ("pe_gemm", "pe_math"), ("pe_dma", "pe_mmu"), ("pe_dma", "pe_ipcq"), ("pe_dma", "pe_gemm"), ("pe_dma", "pe_math"),
}  # fmt: skip


def problems(*sets: str, text: str = TEXT) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        machine(text, sets)
    return caught.value.problems


def joined(graph: Graph, kind: EdgeKind) -> set[tuple[str, str]]:
    return {pair for pair, edge in graph.edges.items() if edge.kind is kind}


@settings(max_examples=25)
@given(st.integers(1, 5), st.integers(1, 3), st.integers(1, 3), st.integers(1, 9), st.integers(1, 4))
def test_a_machine_is_whole(sips: int, width: int, height: int, pes: int, ios: int) -> None:
    graph = machine(
        sets=[f"system.sips={sips}", f"sip.mesh={{width: {width}, height: {height}}}", f"cube.pes={pes}",
              f"cube.hbm.capacity={pes} MiB", f"sip.io_chiplets={ios}"]
    )  # fmt: skip
    kinds = Counter(node.kind for node in graph.nodes.values())
    cubes = sips * width * height
    assert kinds["host"] == 1
    assert {kinds[kind] for kind in ("pcie_ep", "io_noc", "io_cpu", "io_ucie")} == {sips * ios}
    assert kinds["m_cpu"] == kinds["sram"] == cubes
    assert kinds["ucie"] == 4 * cubes
    assert kinds["hbm_ctrl"] == kinds["pe_cpu"] == kinds["pe_gemm"] == cubes * pes
    assert kinds["link"] == {1: 0, 2: 2}.get(sips, 2 * sips)
    assert len(design_of(graph).pes) == cubes * pes
    assert [site.index for site in design_of(graph).pes] == list(range(cubes * pes))
    assert nx.is_strongly_connected(nx.DiGraph(list(graph.edges)))
    assert all((dst, src) in graph.edges for src, dst in graph.edges)
    assert all(edge.latency > 0 and edge.latency % GRID_NS == 0 for edge in graph.edges.values())


def test_a_pe_is_wired_as_the_machine_says() -> None:
    graph = machine()
    prefix = "sip0.cube0.pe1."
    inside = {
        (src.removeprefix(prefix), dst.removeprefix(prefix))
        for src, dst in joined(graph, EdgeKind.PE)
        if src.startswith(prefix)
    }
    assert inside == PE_WIRES | {(b, a) for a, b in PE_WIRES}
    (router,) = {src for src, dst in graph.edges if dst == "sip0.cube0.hbm_ctrl1"}
    assert (router, "sip0.cube0.pe1.pe_dma") in joined(graph, EdgeKind.ATTACH)
    assert ("sip0.cube0.m_cpu", "sip0.cube0.pe1.pe_cpu") in joined(graph, EdgeKind.COMMAND)


def test_io_ucie_joins_every_cube_of_the_nearest_edge() -> None:
    graph = machine(sets=["sip.mesh={width: 3, height: 2}", "sip.io_chiplets=3"])
    reached = {
        io: sorted(dst for src, dst in joined(graph, EdgeKind.UCIE) if src == f"sip0.io{io}.io_ucie") for io in range(3)
    }
    assert reached == {
        0: ["sip0.cube0.ucie_n", "sip0.cube1.ucie_n", "sip0.cube2.ucie_n"],
        1: ["sip0.cube3.ucie_s", "sip0.cube4.ucie_s", "sip0.cube5.ucie_s"],
        2: ["sip0.cube0.ucie_w", "sip0.cube3.ucie_w"],
    }


@pytest.mark.parametrize(
    ("sips", "pairs"),
    [(1, []), (2, [(0, 1)]), (3, [(0, 1), (0, 2), (1, 2)]), (5, [(0, 1), (0, 4), (1, 2), (2, 3), (3, 4)])],
)
def test_a_ring_joins_neighbours_once(sips: int, pairs: list[tuple[int, int]]) -> None:
    links = joined(machine(sets=[f"system.sips={sips}"]), EdgeKind.SCALE_UP)
    expected = {(f"sip{a}.io0.link_sip{b}", f"sip{b}.io0.link_sip{a}") for a, b in pairs}
    assert links == expected | {(b, a) for a, b in expected}


def test_links_are_dealt_to_the_io_chiplets() -> None:
    graph = machine(sets=["system.sips=3", "sip.io_chiplets=2"])
    assert {"sip0.io0.link_sip1", "sip0.io1.link_sip2"} <= graph.nodes.keys()
    assert ("sip0.io1.io_noc", "sip0.io1.link_sip2") in graph.edges


def test_latency_grows_with_distance_and_framing_has_defaults() -> None:
    graph = machine()
    hop = graph.edges["sip0.cube0.r0c0", "sip0.cube0.r0c1"]
    assert hop.latency == pytest.approx(1 + 0.1 * 10 / 3, abs=2 * GRID_NS)
    assert (hop.payload_bytes, hop.header_bytes) == (4096, 32)
    pcie = graph.edges["host", "sip0.io0.pcie_ep"]
    assert (pcie.bandwidth, pcie.latency, pcie.payload_bytes, pcie.header_bytes) == (10.0, 50.0, 256, 24)


@pytest.mark.parametrize(
    ("link", "kind"),
    [
        ("sip.ucie", EdgeKind.UCIE), ("cube.noc", EdgeKind.NOC), ("cube.sram.link", EdgeKind.ATTACH),
        ("cube.command", EdgeKind.COMMAND), ("host.pcie", None), ("system.network", None), ("sip.noc", None),
        ("cube.hbm.link", None), ("pe.links.control", None), ("pe.links.data", None), ("pe.links.dma", None),
    ],
)  # fmt: skip
def test_a_time_per_length_is_for_wires_that_have_a_length(link: str, kind: EdgeKind | None) -> None:
    setting = f"{link}.ns_per_mm=7 ns/mm"
    if kind is None:
        assert problems(setting)[0].startswith(f"--set {setting}: {link}.ns_per_mm must be a known key.")
        return
    before, after = machine().edges, machine(sets=[setting]).edges
    assert any(after[pair].latency > before[pair].latency + 7 for pair in joined(machine(), kind))


def test_components_are_swapped_per_kind_and_by_pattern() -> None:
    graph = machine(
        sets=[
            "components.pe_math.params.overhead=7 ns",
            "components.pe_gemm.impl=test.array",
            "components.pe_gemm.params.rows=8",
            "overrides=[{match: 'sip0.cube[01].pe0.pe_gemm', params: {columns: 4}},"
            " {match: '*.cube1.pe0.pe_gemm', impl: test.pe_gemm, params: {servers: 2}}]",
        ]
    )
    found = {name: (node.impl, dict(node.params)) for name, node in graph.nodes.items()}
    assert found["sip0.cube0.pe0.pe_math"] == ("test.pe_math", {"overhead": 7.0, "servers": 1})
    assert found["sip0.cube2.pe0.pe_gemm"] == ("test.array", {"rows": 8, "columns": 16})
    assert found["sip0.cube0.pe0.pe_gemm"] == ("test.array", {"rows": 8, "columns": 4})
    assert found["sip0.cube1.pe0.pe_gemm"] == ("test.pe_gemm", {"overhead": 5.0, "servers": 2})


def test_a_unit_is_added_by_configuration() -> None:
    graph = machine(sets=["pe.units={pe_sfu: {impl: test.sfu, params: {lanes: 8}}}"])
    assert len([node for node in graph.nodes.values() if node.kind == "pe_sfu"]) == 16
    node = graph.nodes["sip0.cube0.pe1.pe_sfu"]
    assert (node.impl, node.params, node.pe) == ("test.sfu", {"lanes": 8}, 1)
    neighbours = {dst for src, dst in graph.edges if src == node.id}
    assert neighbours == {f"sip0.cube0.pe1.{kind}" for kind in ("pe_tcm", "pe_scheduler", "pe_cpu")}


def test_faults_of_implementations_are_reported_with_their_place() -> None:
    assert problems(
        "components.pe_gemm.impl=test.pe_gem",
        "components.pe_math.params.overhed=1 ns",
        "components.pe_gem.impl=test.sfu",
        "components.sram.params.overhead=1 GB/s",
        "overrides=[{match: 'sip0.cube9.*', params: {servers: 2}}, {match: '*.m_cpu', params: {servers: 0}}]",
    ) == (
        "--set components.pe_gem.impl=test.sfu: components.pe_gem must be a kind of node. Did you mean 'pe_gemm'?",
        "--set overrides=[{match: 'sip0.cube9.*', params: {servers: 2}}, {match: '*.m_cpu', params: {servers: 0}}]: "
        "overrides.1.params.servers must be an integer of at least 1, not 0.",
        "--set components.sram.params.overhead=1 GB/s: components.sram.params.overhead must be a time, "
        "not '1 GB/s'. Did you mean '1 ns'?",
        "--set components.pe_gemm.impl=test.pe_gem: components.pe_gemm.impl must be a registered component, "
        "not 'test.pe_gem'. Did you mean 'test.pe_gemm'?",
        "--set components.pe_math.params.overhed=1 ns: components.pe_math.params.overhed must be a declared parameter. "
        "Did you mean 'overhead'?",
        "--set overrides=[{match: 'sip0.cube9.*', params: {servers: 2}}, {match: '*.m_cpu', params: {servers: 0}}]: "
        "overrides.0.match must match at least one node id, not 'sip0.cube9.*'."
        + did_you_mean("sip0.cube9.*", machine().nodes),
    )


def test_a_component_under_a_kind_that_it_was_not_made_for_is_refused() -> None:
    sets = ("components.router.impl=test.pe_gemm", "overrides=[{match: '*.pe1.pe_gemm', impl: test.sram}]")
    assert problems(*sets) == (
        f"--set {sets[0]}: components.router.impl must be a component for router, not 'test.pe_gemm', which is made "
        "for pe_gemm; see 'kernbench components'.",
        f"--set {sets[1]}: overrides.0.impl must be a component for pe_gemm, not 'test.sram', which is made for sram; "
        "see 'kernbench components'.",
    )


def test_a_component_made_for_any_kind_and_a_unit_of_a_new_kind_fit() -> None:
    graph = machine(sets=["components.pe_gemm.impl=test.sfu", "pe.units={pe_sfu: {impl: test.pe_math}}"])
    assert graph.nodes["sip0.cube0.pe0.pe_gemm"].impl == "test.sfu"
    assert graph.nodes["sip0.cube0.pe0.pe_sfu"].impl == "test.pe_math"


def test_sizes_that_hold_nothing_are_refused() -> None:
    """A scratchpad has at least one line, a page at least one element."""
    sets = ("pe.tcm.capacity=1 B", "system.page_bytes=4 B")
    assert problems(*sets) == (
        f"--set {sets[0]}: pe.tcm.capacity must be at least a line of a scratchpad, 64 B, not 1 B.",
        f"--set {sets[1]}: system.page_bytes must be a power of two of at least 8 B, the widest element, not 4 B.",
    )
    assert design_of(machine(sets=["pe.tcm.capacity=64 B", "system.page_bytes=8 B"])).page_bytes == 8


def test_a_kind_without_implementation_is_reported() -> None:
    text = TEXT.replace("  pe_mmu: {impl: test.pe_mmu}\n", "")
    assert problems(text=text) == (
        "m.yaml:24:1: components must name an implementation for pe_mmu; add 'pe_mmu: {impl: …}'.",
    )


def test_implementations_are_checked_even_when_the_machine_is_wrong() -> None:
    sets = ("cube.pes=0", "components.pe_gemm.impl=test.pe_gem", "overrides=[{match: x, impl: test.array}]")
    assert problems(*sets) == (
        "--set cube.pes=0: cube.pes must be a positive integer, not 0.",
        "--set components.pe_gemm.impl=test.pe_gem: components.pe_gemm.impl must be a registered component, "
        "not 'test.pe_gem'. Did you mean 'test.pe_gemm'?",
        "--set overrides=[{match: x, impl: test.array}]: overrides.0.params.rows must be given: Rows of the array.",
    )


def test_faults_of_the_whole_are_reported_together() -> None:
    assert problems(
        "system.network.topology=mesh_3d",
        "system.page_bytes=3000 B",
        "sip.io_chiplets=5",
        "cube.mesh={rows: 1, columns: 2}",
        "pe.units={pe_gemm: {impl: test.sfu}, PE-X: {impl: test.sfu, attach: pe_tmc}}",
        "pe.tcm.capacity=1 TiB",
    )[:8] == (
        "--set system.network.topology=mesh_3d: system.network.topology must be one of 'fully_connected', 'mesh_2d', "
        "'ring', 'switch', 'torus_2d', not 'mesh_3d'. Did you mean 'mesh_2d'?",
        "--set sip.io_chiplets=5: sip.io_chiplets must be at most 4, not 5; "
        "the address fields or the package have no room.",
        "m.yaml:15:9: cube.hbm.capacity must split into 4 slices of whole pages of 2.93 KiB, not 4 MiB.",
        "--set pe.tcm.capacity=1 TiB: pe.tcm.capacity must be at most 64 GiB for one unit, not 1 TiB.",
        "--set system.page_bytes=3000 B: system.page_bytes must be a power of two of at least 8 B, the widest element, "
        "not 3000 B.",
        "--set pe.units={pe_gemm: {impl: test.sfu}, PE-X: {impl: test.sfu, attach: pe_tmc}}: "
        "pe.units.pe_gemm must be a new kind of unit, not 'pe_gemm'; use components to replace an existing one.",
        "--set pe.units={pe_gemm: {impl: test.sfu}, PE-X: {impl: test.sfu, attach: pe_tmc}}: "
        "pe.units.PE-X must be named in lower-case letters, digits and '_', not 'PE-X'.",
        "--set pe.units={pe_gemm: {impl: test.sfu}, PE-X: {impl: test.sfu, attach: pe_tmc}}: "
        "pe.units.PE-X.attach must be another unit of the PE, not 'pe_tmc'. Did you mean 'pe_tcm'?",
    )


def test_a_machine_beyond_all_bounds_is_refused_quickly() -> None:
    assert problems("system.sips=512", "sip.mesh={width: 16, height: 16}", "cube.pes=256") == (
        "--set system.sips=512: system.sips must give at most 65536 PEs, not 33554432; model a smaller machine.",
    )


def test_a_mesh_too_small_for_its_pes_is_refused() -> None:
    sentence = (
        "cube.mesh must have a router for each of 4 PEs, "
        "but 1 x 3 with 0 under HBM leaves 3; give more rows or columns, or a smaller hbm_zone."
    )
    assert problems("cube.mesh={rows: 1, columns: 3}") == (f"--set cube.mesh={{rows: 1, columns: 3}}: {sentence}",)
    text = TEXT.replace("  pes: 4\n", "  pes: 1\n  mesh: {rows: 1, columns: 3}\n")
    assert problems("cube.pes=4", text=text) == (f"--set cube.pes=4: {sentence}",)
    text = TEXT.replace("  pes: 4\n", "  pes: 4\n  mesh: {rows: auto, columns: auto}\n")
    sets = ("cube.mesh.rows=1", "cube.mesh.columns=3", "system.sips=2")
    assert problems(*sets, text=text) == (f"--set cube.mesh.columns=3: {sentence}",)
    assert problems(text=text.replace("rows: auto, columns: auto", "rows: 1, columns: 3")) == (
        f"m.yaml:14:19: {sentence}",
    )


def test_a_link_wider_than_any_path_on_the_die_is_warned_about() -> None:
    assert machine(sets=["system.sips=2"]).warnings == ()
    assert machine(sets=["system.sips=2", "system.network.bandwidth=50 GB/s"]).warnings == ()
    assert machine(sets=["system.sips=2", "system.network.bandwidth=51 GB/s"]).warnings == (
        "scale-up link sip0.io0.link_sip1 of 51 GB/s should have an on-die path at least as wide, but the widest to "
        "any HBM controller carries 50 GB/s; widen sip.noc, sip.ucie, cube.noc and cube.hbm.link, or narrow "
        "system.network.",
    )


def test_a_port_wider_than_its_side_of_the_mesh_is_warned_about() -> None:
    (warning,) = machine(sets=["sip.ucie.bandwidth=200 GB/s"]).warnings
    assert warning == (
        "a UCIe port should reach as many routers as its 200 GB/s need, but a side of the mesh has only 3 of 50 GB/s; "
        "widen cube.noc.bandwidth or the mesh."
    )


def test_compiling_is_the_same_under_any_hash_seed() -> None:
    code = (
        "import hashlib; from tests.core.small_machine import machine; g = machine(sets=['system.sips=3']);"
        "print(hashlib.sha256(repr((list(g.nodes.values()), list(g.edges.values()))).encode()).hexdigest())"
    )
    root = Path(__file__).parents[3]
    digests = {
        subprocess.run(
            [sys.executable, "-c", code], cwd=root, env={**os.environ, "PYTHONHASHSEED": seed}, text=True,
            capture_output=True, check=True,
        ).stdout
        for seed in ("0", "1")
    }  # fmt: skip
    assert len(digests) == 1


@pytest.mark.parametrize(
    ("args", "shown"),
    [
        (("tiny",), "'tiny' alone"), (("tiny", OFFERED), "'tiny'"),
        (({},), "{} alone"), (({}, ComponentRegistry()), "{}"),
    ],
)
def test_what_was_not_read_or_has_no_plugins_is_told_what_to_call(args: tuple[Any, ...], shown: str) -> None:
    """A preset's name, as kb.run takes it, and a configuration by itself."""
    with pytest.raises(UsageError) as caught:
        compile_topology(*args)
    assert str(caught.value) == (
        f"compile_topology must be given a configuration that was read, with plug-ins, not {shown}; call "
        "compile_topology(configure(plugins, 'tiny'), plugins), with configure of kernbench_core.runs and "
        "plugins = kb.load_plugins()."
    )
