"""The presets compile, hold together as machines, and give a source for every number."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from importlib import resources
from itertools import pairwise

import networkx as nx
import pytest

from kernbench_core.graph import EdgeKind, Graph
from kernbench_core.plugins import Plugins
from kernbench_core.topology.compilation import compile_topology
from kernbench_core.topology.configuration import load_config
from kernbench_core.topology.design import design_of
from kernbench_core.topology.routing import PathRouter
from tests.conftest import count_calls

FOLDER = resources.files("kernbench_builtin") / "topologies"
PRESETS = {"tiny": (1, 1, 4), "default": (2, 4, 8), "full": (4, 16, 8)}
FILES = ("base", *PRESETS, "mesh")
_COUNTS = "channels|lanes|rows|columns|servers|tiles_in_flight|rates|costs"
_QUANTITY = re.compile(rf"\d\s*(ns|GB/s|[KMG]iB|B|mm|GHz|ns/mm)\b|\b({_COUNTS}): [\d{{]")


@pytest.fixture(scope="module")
def graphs(plugins: Plugins) -> dict[str, Graph]:
    return {name: compile_topology(load_config(str(FOLDER / f"{name}.yaml")), plugins) for name in PRESETS}


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_has_the_shape_it_promises(graphs: dict[str, Graph], name: str) -> None:
    graph, (sips, cubes, pes) = graphs[name], PRESETS[name]
    design = design_of(graph)
    assert (design.sips, design.cubes_per_sip, design.pes_per_cube) == (sips, cubes, pes)
    assert len(design.pes) == sips * cubes * pes
    kinds = Counter(node.kind for node in graph.nodes.values())
    assert kinds["hbm_ctrl"] == kinds["pe_cpu"] == len(design.pes)
    assert kinds["link"] == {1: 0, 2: 2, 4: 8}[sips]
    assert nx.is_strongly_connected(nx.DiGraph(list(graph.edges)))
    assert graph.warnings == ()


@pytest.mark.parametrize("name", PRESETS)
def test_local_memory_traffic_is_not_throttled_on_its_way(graphs: dict[str, Graph], name: str) -> None:
    graph = graphs[name]
    router = PathRouter(graph)
    for site in design_of(graph).pes[:8]:
        params = graph.nodes[site.hbm_ctrl].params
        full_slice = params["channels"] * params["channel_bandwidth"]
        path = router.find_memory_path(f"{site.prefix}.pe_dma", site.hbm_ctrl)
        assert len(path) == 3, "pe_dma, its own router, its own controller"
        for pair in pairwise(path):
            edge = graph.edges[pair]
            framed = edge.payload_bytes / (edge.payload_bytes + edge.header_bytes)
            assert edge.bandwidth * framed >= full_slice


@pytest.mark.parametrize("name", PRESETS)
def test_a_ucie_port_reaches_routers_enough_for_its_bandwidth(graphs: dict[str, Graph], name: str) -> None:
    edges = graphs[name].edges
    ucie = max(edge.bandwidth for edge in edges.values() if edge.kind is EdgeKind.UCIE)
    for side in "nswe":
        port = f"sip0.cube0.ucie_{side}"
        attached = [edge.bandwidth for (src, dst), edge in edges.items() if src == port and ".r" in dst]
        assert sum(attached) >= ucie


def test_a_stack_of_the_default_machine_is_an_hbm3_stack(graphs: dict[str, Graph]) -> None:
    graph = graphs["default"]
    stack = [node.params for node in graph.nodes.values() if node.id.startswith("sip0.cube0.hbm_ctrl")]
    assert sum(params["channels"] for params in stack) == 32
    assert sum(params["channels"] * params["channel_bandwidth"] for params in stack) == pytest.approx(819.2)


def test_a_pe_has_the_mac_rate_of_its_source(graphs: dict[str, Graph]) -> None:
    params = graphs["default"].nodes["sip0.cube0.pe0.pe_gemm"].params
    assert 2 * params["clock"] * params["rows"] * params["columns"] / 1000 == pytest.approx(4.1, abs=0.05), "TFLOP/s"


def test_every_kind_of_node_has_its_implementation_from_configuration(graphs: dict[str, Graph]) -> None:
    assert all(node.impl.startswith("builtin.") for node in graphs["full"].nodes.values())


def test_what_a_model_takes_by_default_is_what_the_presets_give_it(graphs: dict[str, Graph], plugins: Plugins) -> None:
    """Naming another model in a configuration changes no figure behind the user's back."""
    for node in graphs["default"].nodes.values():
        if node.kind != "link":  # a scale-up port is slower than the forwarding on a die
            defaults = {param.name: param.default_value for param in plugins.components.declared(node.impl)}
            assert dict(node.params) == defaults, node.kind


def test_the_largest_preset_compiles_in_a_third_of_a_second(plugins: Plugins, graphs: dict[str, Graph]) -> None:
    """An edge takes 8 calls, whatever the size: 260 thousand for 512 PEs."""

    def taken(name: str) -> float:
        file = str(FOLDER / f"{name}.yaml")
        calls = count_calls(lambda: compile_topology(load_config(file), plugins))
        return calls / len(graphs[name].edges)

    large, small = taken("full"), taken("default")
    assert large < 10
    assert large < small


@pytest.mark.parametrize("name", FILES)
def test_every_number_has_a_source_in_its_line(name: str) -> None:
    source = re.compile(r"#.*\[(S|A|chosen|unverified)\b")
    for number, line in enumerate(_lines(name), 1):
        value, _, _ = line.partition("#")
        quantity = _QUANTITY.search(value)
        if quantity:
            assert source.search(line), f"{name}.yaml:{number} gives a number without a source: {line.strip()}"


@cache
def _lines(name: str) -> tuple[str, ...]:
    return tuple((FOLDER / f"{name}.yaml").read_text(encoding="utf-8").splitlines())
