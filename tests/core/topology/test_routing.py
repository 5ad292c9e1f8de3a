"""Routing against networkx: every path is a walk over edges, as short as possible, by the nodes it may use."""

from __future__ import annotations

import math
import re
import threading
import time
from fractions import Fraction
from functools import cache
from itertools import pairwise, product

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernbench_core.errors import RoutingError
from kernbench_core.graph import Edge, EdgeKind, Graph, Node
from kernbench_core.topology import routing
from kernbench_core.topology.design import design_of
from kernbench_core.topology.routing import VIEWS, PathRouter, is_transit
from tests.core.small_machine import machine


@cache
def built(sips: int = 2, width: int = 2, height: int = 2, pes: int = 8) -> tuple[Graph, PathRouter]:
    graph = machine(
        sets=[f"system.sips={sips}", f"sip.mesh={{width: {width}, height: {height}}}", f"cube.pes={pes}",
              f"cube.hbm.capacity={pes} MiB"]
    )  # fmt: skip
    return graph, PathRouter(graph)


def test_paths_are_found_once_for_all_runs_on_a_graph() -> None:
    """Each graph has a router of its own, equal ones too, and it goes with the graph."""
    graph, other = machine(), machine()
    router = PathRouter.of(graph)
    assert PathRouter.of(graph) is router and PathRouter.of(other) is not router
    assert graph == other


def oracle(graph: Graph, src: str, dst: str, excluded: frozenset[EdgeKind]) -> float:
    """Return the wire latency of the best path by networkx, over whole numbers: borders first, then grid steps."""
    net: nx.DiGraph[str] = nx.DiGraph()
    for (a, b), edge in graph.edges.items():
        inner = [graph.nodes[end] for end in (a, b) if end not in (src, dst)]
        if edge.kind in excluded or not all(is_transit(node) for node in inner):
            continue
        ports = [end for end in (a, b) if "ucie" in end]
        borders = 10**8 * (edge.kind is EdgeKind.SCALE_UP)
        borders += 10**4 if len(ports) == 2 and any(".io_ucie" in port for port in ports) else len(ports) > 0
        if edge.kind is EdgeKind.IO_NOC:
            borders = 0
        net.add_edge(a, b, weight=(borders << 64) + int(edge.latency * 2**16))
    total = int(nx.shortest_path_length(net, src, dst, weight="weight"))
    return (total & (1 << 64) - 1) / 2**16


def latency(graph: Graph, path: tuple[str, ...]) -> float:
    return sum(graph.edges[pair].latency for pair in pairwise(path))


def memories(graph: Graph) -> list[str]:
    return [name for name, node in graph.nodes.items() if node.kind in ("hbm_ctrl", "sram")]


def masters(graph: Graph) -> list[str]:
    return [name for name, node in graph.nodes.items() if node.kind in ("host", "m_cpu", "pe_dma")]


@settings(max_examples=150)
@given(st.sampled_from([(1, 1, 1, 4), (2, 2, 2, 8), (3, 3, 2, 5)]), st.data())
def test_a_memory_path_is_as_short_as_networkx_says(shape: tuple[int, int, int, int], data: st.DataObject) -> None:
    graph, router = built(*shape)
    src = data.draw(st.sampled_from(masters(graph)))
    dst = data.draw(st.sampled_from(memories(graph)))
    path = router.find_memory_path(src, dst)
    assert (path[0], path[-1]) == (src, dst)
    assert len(set(path)) == len(path)
    assert latency(graph, path) == oracle(graph, src, dst, VIEWS["mcpu_dma"])
    assert all(is_transit(graph.nodes[node]) for node in path[1:-1])
    assert all(graph.edges[pair].kind not in VIEWS["mcpu_dma"] for pair in pairwise(path))
    assert router.find_mcpu_dma_path(src, dst) == path


def test_inside_a_mesh_columns_come_before_rows_where_both_legs_exist() -> None:
    graph, router = built()
    cells = {
        name: (int(match[1]), int(match[2]))
        for name in graph.nodes
        if (match := re.fullmatch(r"sip0\.cube0\.r(\d+)c(\d+)", name))
    }
    at = {cell: name for name, cell in cells.items()}
    dimension_ordered = 0
    for src, dst in product(cells, cells):
        path = router.find_path(src, dst)
        (row, column), (last_row, last_column) = cells[src], cells[dst]
        across = [(row, c) for c in _steps(column, last_column)]
        down = [(r, last_column) for r in _steps(row, last_row)[1:]]
        if all(cell in at for cell in across + down):
            assert path == tuple(at[cell] for cell in across + down)
            dimension_ordered += 1
        else:
            assert latency(graph, path) == oracle(graph, src, dst, frozenset())
    assert 0 < dimension_ordered < len(cells) ** 2


def _steps(first: int, last: int) -> list[int]:
    return list(range(first, last + 1)) if first <= last else list(range(first, last - 1, -1))


def test_memory_and_launch_take_the_paths_of_the_machine() -> None:
    _, router = built()
    assert router.find_memory_path("host", "sip1.cube0.hbm_ctrl0") == (
        "host", "sip1.io0.pcie_ep", "sip1.io0.io_noc", "sip1.io0.io_ucie", "sip1.cube0.ucie_n", "sip1.cube0.r0c0",
        "sip1.cube0.hbm_ctrl0",
    )  # fmt: skip
    assert router.find_path("host", "sip1.io0.io_cpu") == (
        "host", "sip1.io0.pcie_ep", "sip1.io0.io_noc", "sip1.io0.io_cpu",
    )  # fmt: skip
    assert router.find_node_path("sip0.io0.io_cpu", "sip0.cube1.m_cpu") == (
        "sip0.io0.io_cpu", "sip0.io0.io_noc", "sip0.io0.io_ucie", "sip0.cube1.ucie_n", "sip0.cube1.r0c0",
        "sip0.cube1.r1c0", "sip0.cube1.m_cpu",
    )  # fmt: skip
    assert router.find_path("sip0.cube1.m_cpu", "sip0.cube1.pe3.pe_cpu") == (
        "sip0.cube1.m_cpu", "sip0.cube1.pe3.pe_cpu",
    )  # fmt: skip
    assert router.find_memory_path("sip0.cube0.pe0.pe_dma", "sip0.cube0.hbm_ctrl0") == (
        "sip0.cube0.pe0.pe_dma", "sip0.cube0.r0c0", "sip0.cube0.hbm_ctrl0",
    )  # fmt: skip


def test_another_package_is_reached_over_the_scale_up_links() -> None:
    _, router = built()
    path = router.find_memory_path("sip0.cube3.pe7.pe_dma", "sip1.cube0.sram")
    middle = path.index("sip0.io0.link_sip1")
    assert path[middle - 2 : middle + 3] == (
        "sip0.io0.io_ucie", "sip0.io0.io_noc", "sip0.io0.link_sip1", "sip1.io0.link_sip0", "sip1.io0.io_noc",
    )  # fmt: skip


def test_paths_to_other_packages_share_what_is_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all pairs of PEs each way to a link and from one is searched once; a direct all-reduce has all pairs."""
    searched, search = list[tuple[str, str, object]](), routing._View._shortest

    def counted(view: routing._View, src: str, dst: str, half: routing.Half | None) -> object:
        searched.append((src, dst, half))
        return search(view, src, dst, half)

    monkeypatch.setattr(routing._View, "_shortest", counted)
    graph, router = built(sips=4, width=1, height=1, pes=4)
    dmas = [f"{site.prefix}.pe_dma" for site in design_of(graph).pes]
    for src, dst in product(dmas, dmas):
        router.find_memory_path(src, dst)
    assert len(searched) == len(set(searched))


def test_no_path_takes_a_port_or_an_io_chiplet_as_a_short_cut() -> None:
    graph, router = built(1, 3, 1, 8)
    for src, dst in product(masters(graph), memories(graph)):
        if src == "host":
            continue
        path = router.find_memory_path(src, dst)
        assert not any(".io0." in node for node in path)
        first, last = (int(node.split(".")[1][len("cube") :]) for node in (src, dst))
        assert len({node.split(".")[1] for node in path}) == 1 + abs(first - last)


def test_a_port_on_several_routers_uses_all_of_them() -> None:
    graph, router = built(1, 1, 3, 8)
    transit = graph.edges.keys() & {("sip0.cube1.ucie_n", "sip0.cube1.r0c0"), ("sip0.cube1.ucie_n", "sip0.cube1.r0c3")}
    used = {
        pair
        for pe in range(8)
        for pair in pairwise(router.find_memory_path("host", f"sip0.cube2.hbm_ctrl{pe}"))
        if pair in transit
    }
    assert len(transit) == 2
    assert used == transit


def test_a_tcm_is_reached_through_the_dma_of_its_pe() -> None:
    graph, router = built()
    path = router.find_memory_path("sip0.cube0.pe0.pe_dma", "sip1.cube1.pe2.pe_tcm")
    assert path[-2:] == ("sip1.cube1.pe2.pe_dma", "sip1.cube1.pe2.pe_tcm")
    assert path[:-1] == router.find_memory_path("sip0.cube0.pe0.pe_dma", "sip1.cube1.pe2.pe_dma")
    assert router.find_memory_path("sip0.cube0.pe0.pe_dma", "sip0.cube0.pe0.pe_tcm") == (
        "sip0.cube0.pe0.pe_dma", "sip0.cube0.pe0.pe_tcm",
    )  # fmt: skip
    address = design_of(graph).address_map.encode(1, 1, "tcm2", 64)
    assert router.find_memory_path("sip0.cube0.pe0.pe_dma", address) == path


def test_an_address_leads_to_its_owner() -> None:
    graph, router = built()
    address = design_of(graph).address_map.encode(1, 3, "hbm6", 4096)
    assert router.find_memory_path("host", address)[-1] == "sip1.cube3.hbm_ctrl6"


def test_distance_is_the_latency_of_the_wires() -> None:
    graph, router = built()
    path, distance = router.find_path_with_distance("host", "sip0.cube3.m_cpu")
    assert path == router.find_path("host", "sip0.cube3.m_cpu")
    assert distance == latency(graph, path) == oracle(graph, "host", "sip0.cube3.m_cpu", frozenset())


def test_the_views_differ_in_the_kinds_of_edge_they_leave_out() -> None:
    graph, router = built(1, 1, 1, 4)
    for view, excluded in VIEWS.items():
        shown = {(edge.src, edge.dst) for edges in router.adjacency(view).values() for edge in edges}
        assert shown == {pair for pair, edge in graph.edges.items() if edge.kind not in excluded}
        assert router.adjacency(view).keys() == graph.nodes.keys()
    assert list(VIEWS) == ["all", "command", "mcpu_dma", "pe_local"]
    assert len({frozenset(kinds) for kinds in VIEWS.values()}) == 4


def test_the_same_question_has_the_same_answer_in_any_order() -> None:
    graph, router = built()
    pairs = [(src, dst) for src in masters(graph)[:6] for dst in memories(graph)[::5]]
    asked = {pair: router.find_memory_path(*pair) for pair in pairs}
    again = PathRouter(graph)
    assert {pair: again.find_memory_path(*pair) for pair in reversed(pairs)} == {**asked}


def test_a_node_to_itself_is_a_path_of_one() -> None:
    assert built()[1].find_path("host", "host") == ("host",)


def test_hand_built_graphs_are_routed_by_their_edges() -> None:
    nodes = [Node(name, "hop") for name in "abcd"]
    latencies = {("a", "b"): 1.0, ("b", "c"): 1.0, ("c", "d"): 1.0, ("a", "d"): 9.0}
    edges = [Edge(a, b, EdgeKind.NOC, 1.0, ns) for (a, b), ns in latencies.items()]
    router = PathRouter(Graph.of(nodes, edges))
    assert router.find_path("a", "c") == ("a", "b", "c")
    assert router.find_path("a", "d") == ("a", "d"), "a direct edge is a path"


@settings(max_examples=60)
@given(
    st.dictionaries(
        st.tuples(st.sampled_from("abcdef"), st.sampled_from("abcdef")).filter(lambda pair: pair[0] != pair[1]),
        st.one_of(st.sampled_from([0.1, 0.2, 0.3, 1.0, 2.0**-16]), st.floats(1e-9, 1e9)),
        min_size=6,
    )
)
def test_latencies_off_the_grid_add_up_exactly(latencies: dict[tuple[str, str], float]) -> None:
    """By networkx over fractions: least latency, then fewest hops; a direct edge is a path whatever it costs."""
    graph = Graph.of(
        [Node(name, "hop") for name in "abcdef"],
        [Edge(a, b, EdgeKind.NOC, 1.0, ns) for (a, b), ns in latencies.items()],
    )
    router, net = PathRouter(graph), nx.DiGraph()
    for (a, b), ns in latencies.items():
        net.add_edge(a, b, weight=Fraction(ns) + Fraction(1, 2**2000))
    for src, dst in product("abcdef", repeat=2):
        if src == dst or (src, dst) in latencies:
            continue
        try:
            least = nx.shortest_path_length(net, src, dst, weight="weight")
        except (nx.NetworkXNoPath, nx.NodeNotFound):
            continue
        assert sum(net.edges[pair]["weight"] for pair in pairwise(router.find_path(src, dst))) == least


def test_a_wire_that_takes_for_ever_is_the_last_resort() -> None:
    edges = [("a", "b", math.inf), ("b", "d", 1.0), ("a", "c", 1e17), ("c", "d", 1.0)]
    graph = Graph.of([Node(name, "hop") for name in "abcd"], [Edge(a, b, EdgeKind.NOC, 1.0, ns) for a, b, ns in edges])
    assert PathRouter(graph).find_path("a", "d") == ("a", "c", "d")


def test_a_missing_path_names_both_nodes() -> None:
    router = PathRouter(Graph.of([Node("a", "hop"), Node("b", "hop")], []))
    with pytest.raises(RoutingError) as caught:
        router.find_path("a", "b")
    assert str(caught.value) == (
        "b must be reachable from a, but no path joins them (edges of the 'all' view); "
        "check system.network and the mesh."
    )
    with pytest.raises(RoutingError) as caught:
        router.find_path("a", "c")
    assert str(caught.value) == "path from a to c must join existing nodes, but there is no node 'c'."


def test_processors_are_no_way_through() -> None:
    _, router = built()
    with pytest.raises(RoutingError):
        router.find_memory_path("host", "sip0.cube0.pe0.pe_gemm")
    assert router.find_memory_path("sip0.cube0.m_cpu", "sip0.cube0.hbm_ctrl5")[1] == "sip0.cube0.r1c0"


def test_threads_search_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search goes on where another one stopped, so that two at a time would take nodes from each other."""
    graph = machine()
    router = PathRouter(graph)
    (one, other, *_), memory = ([node.id for node in graph.nodes.values() if node.kind == kind] for kind in KINDS)
    usual, entered = router._search, threading.Event()
    inside: list[str] = []
    most: list[int] = []

    def watched(view: str, src: str, dst: str) -> tuple[str, ...]:
        inside.append(src)
        most.append(len(inside))
        entered.set()
        time.sleep(0.05)
        inside.remove(src)
        return usual(view, src, dst)

    monkeypatch.setattr(router, "_search", watched)
    first = threading.Thread(target=router.find_memory_path, args=(one, memory[0]))
    first.start()
    assert entered.wait(10)
    second = router.find_memory_path(other, memory[0])
    first.join()
    assert max(most) == 1
    assert second == PathRouter(graph).find_memory_path(other, memory[0])


KINDS = ("pe_dma", "hbm_ctrl")
