"""Lower bounds against the closed forms, a maximum flow and shortest paths of networkx, and each other."""

from __future__ import annotations

from itertools import combinations

import networkx as nx
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from kernbench_ccl.collectives import COLLECTIVES as KINDS
from kernbench_ccl.measure.bounds import SWITCH, Link, RankLinks, cuts, fabric_of, lower_bound
from kernbench_core.plugins import load_plugins
from kernbench_core.runs.bench_run import configure
from kernbench_core.topology.compilation import compile_topology
from kernbench_core.topology.networks import find_extent
from tests.core.shapes import NETWORKS

B, A, S = 100.0, 500.0, 1 << 20
COLLECTIVES = (
    "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "reduce", "gather", "scatter", "send_recv",
)  # fmt: skip


def fabric(topology, world, bandwidth=B, latency=A):
    found = []
    for link in NETWORKS[topology].links(find_extent(topology, NETWORKS[topology], world)):
        ends = [SWITCH if sip is None else sip for sip in (link.sip, link.other_sip)]
        found += [Link(a, b, bandwidth, latency) for a, b in (ends, ends[::-1])]
    return RankLinks(world, tuple(found))


def graph_of(fabric):
    graph = nx.DiGraph()
    for link in fabric.links:
        graph.add_edge(link.source, link.target, capacity=link.bandwidth, latency=link.latency)
    return graph


def ns(collective, fabric, nbytes=S, root=0):
    return lower_bound(KINDS[collective], fabric, nbytes, root).ns


@pytest.mark.parametrize("world", [3, 5, 8])
def test_a_ring_has_two_links_of_each_rank(world):
    """2 (N - 1) / N S / 2b for all-reduce and half of it for its halves, after one latency."""
    ring = fabric("ring", world)
    share = (world - 1) / world * S / (2 * B)
    assert ns("all_reduce", ring) == pytest.approx(A + 2 * share)
    assert ns("all_gather", ring) == ns("reduce_scatter", ring) == pytest.approx(A + share)
    assert ns("broadcast", ring) == ns("reduce", ring) == pytest.approx(A + S / (2 * B))


@pytest.mark.parametrize("world", [2, 4, 7])
def test_direct_networks_are_bound_by_what_a_rank_injects(world):
    """Fully connected: N - 1 links of each rank; a switch: one, and two wires to get through."""
    full, switch = fabric("fully_connected", world), fabric("switch", world)
    part = S / world
    assert ns("all_to_all", full) == pytest.approx(A + part / B)
    assert ns("all_to_all", switch) == pytest.approx(2 * A + (world - 1) * part / B)
    assert ns("all_reduce", switch) == pytest.approx(2 * A + 2 * (world - 1) * part / B)
    assert ns("gather", switch) == ns("scatter", switch) == pytest.approx(2 * A + (world - 1) * part / B)
    assert ns("send_recv", switch) == pytest.approx(2 * A + S / B)


def test_an_all_to_all_is_bound_by_the_bisection_or_the_work_of_the_links():
    """On a long ring every byte travels far: N S / (4 B_cut), which the work of all links equals."""
    found = lower_bound(KINDS["all_to_all"], fabric("ring", 16), S)
    assert found.ns == pytest.approx(16 * S / (4 * 2 * B))
    assert found.reason in ("cut", "work")
    mesh = lower_bound(KINDS["all_to_all"], fabric("mesh_2d", 16), S)
    assert mesh.ns == pytest.approx(16 * S / (4 * 4 * B))
    assert mesh.reason == "cut"


@pytest.mark.parametrize("topology", sorted(NETWORKS))
@pytest.mark.parametrize("world", [2, 6, 9])
def test_small_messages_are_bound_by_the_distance(topology, world):
    """The latency of the farthest pair, which networkx finds too; of the farthest from the root in a broadcast."""
    found = fabric(topology, world)
    lengths = dict(nx.all_pairs_dijkstra_path_length(graph_of(found), weight="latency"))
    ranks = range(world)
    diameter = max(lengths[a][b] for a in ranks for b in ranks)
    assert ns("all_reduce", found, 4) == pytest.approx(diameter, abs=1.0)
    assert ns("broadcast", found, 4, root=1) == pytest.approx(max(lengths[1][b] for b in ranks), abs=1.0)
    assert ns("gather", found, 4, root=1) == pytest.approx(max(lengths[b][1] for b in ranks), abs=1.0)
    for a in ranks:
        for b in ranks:
            assert found.latency(a, b) == pytest.approx(lengths[a][b])


@settings(max_examples=60)
@given(
    st.sampled_from(sorted(NETWORKS)), st.integers(2, 9), st.lists(st.floats(1.0, 100.0), min_size=4, max_size=4),
    st.data(),
)  # fmt: skip
def test_a_cut_is_what_a_maximum_flow_finds(topology, world, speeds, data):
    """The bandwidth out of a set of ranks, with links of different speed, against networkx."""
    plain = fabric(topology, world)
    uneven = tuple(
        Link(link.source, link.target, speeds[i % len(speeds)], A) for i, link in enumerate(plain.links)
    )
    found = RankLinks(world, uneven)
    inside = data.draw(st.sets(st.integers(0, world - 1), min_size=1, max_size=world - 1))
    graph = graph_of(found)
    for rank in range(world):
        graph.add_edge(*(("from", rank) if rank in inside else (rank, "to")))
    assert found.crossing(inside) == pytest.approx(nx.maximum_flow_value(graph, "from", "to"))


@settings(max_examples=60)
@given(st.sampled_from(sorted(NETWORKS)), st.integers(2, 9), st.sampled_from(COLLECTIVES), st.integers(1, 1 << 24))
def test_bounds_grow_with_the_size_and_shrink_with_the_bandwidth(topology, world, collective, size):
    """Twice the bytes never take less, twice the bandwidth never more, and neither changes the latency part."""
    slow, fast = fabric(topology, world), fabric(topology, world, 2 * B)
    assert ns(collective, slow, size) <= ns(collective, slow, 2 * size) <= 2 * ns(collective, slow, size)
    assert ns(collective, slow, size) / 2 <= ns(collective, fast, size) <= ns(collective, slow, size)
    assert ns(collective, slow, size) >= A


@settings(max_examples=100)
@given(st.sampled_from(sorted(NETWORKS)), st.integers(2, 9), st.sampled_from(COLLECTIVES), st.integers(1, 1 << 24))
def test_what_follows_from_the_pieces_is_no_more_than_what_a_record_states(topology, world, collective, size):
    """So that a collective that states no traffic has bounds that hold."""
    links, kind = fabric(topology, world), KINDS[collective]
    derived = lower_bound(evolve(kind, traffic=None), links, size, world - 1).ns
    assert A <= derived <= lower_bound(kind, links, size, world - 1).ns * (1 + 1e-9)


@pytest.mark.parametrize("collective", ["all_gather", "all_to_all", "broadcast", "gather", "scatter", "send_recv"])
def test_what_is_moved_is_bound_alike_by_the_pieces(collective):
    """Over a switch, where what a rank sends or receives is all that counts."""
    switch, kind = fabric("switch", 5), KINDS[collective]
    derived = lower_bound(evolve(kind, traffic=None), switch, S, 2)
    assert derived.ns == pytest.approx(lower_bound(kind, switch, S, 2).ns)
    assert derived.reason == "injection"


@given(st.sampled_from(sorted(NETWORKS)), st.integers(2, 24))
def test_cuts_are_proper_sets_of_ranks_each_once(topology, world):
    """No cut is empty, whole or repeated, and the others of each are one too."""
    found = list(cuts(fabric(topology, world)))
    assert len(set(found)) == len(found)
    assert all(0 < len(inside) < world for inside in found)
    assert {frozenset(range(world)) - inside for inside in found} == set(found)


def test_cuts_of_many_ranks_have_runs_columns_and_bits():
    """Of a star, where the neighbours of a rank are no such sets: 12 ranks, of which not every set is looked at."""
    found = set(cuts(of_graph(nx.star_graph(11))))
    runs = {frozenset(range(width)) for width in range(1, 12)}
    columns = {frozenset({0, 4, 8}), frozenset({0, 1, 4, 5, 8, 9}), frozenset({0, 3, 6, 9}), frozenset(range(0, 12, 2))}
    bits = {frozenset(rank for rank in range(12) if rank & 1 << bit) for bit in range(4)}
    assert runs | columns | bits <= found


def of_graph(graph):
    """Return the links of an undirected graph of networkx whose edges are all alike."""
    return RankLinks(len(graph), tuple(Link(a, b, B, A) for edge in graph.edges for a, b in (edge, edge[::-1])))


#: Networks of no shape that core has, with numbers of ranks for which every cut is looked at here.
OTHERS = {
    "hypercube of 8": nx.convert_node_labels_to_integers(nx.hypercube_graph(3)),
    "hypercube of 16": nx.convert_node_labels_to_integers(nx.hypercube_graph(4)),
    "Petersen": nx.petersen_graph(),
    "chordal ring": nx.circulant_graph(12, [1, 4]),
    "two cliques": nx.barbell_graph(6, 0),
    "tree": nx.balanced_tree(2, 2),
    "star": nx.star_graph(8),
    "folded ladder": nx.moebius_kantor_graph(),
}


@pytest.mark.parametrize("name", OTHERS)
def test_the_bounds_of_any_network_follow_from_its_links(name):
    """Diameter and tightest cut of networks that nobody named, against networkx and every set of ranks there is."""
    graph = OTHERS[name]
    found, world, part = of_graph(graph), len(graph), S / len(graph)
    assert ns("all_gather", found, 4) == pytest.approx(nx.diameter(graph) * A, abs=1.0)
    sets = [frozenset(inside) for size in range(1, world // 2 + 1) for inside in combinations(range(world), size)]
    sparsest = max(len(inside) * (world - len(inside)) / nx.cut_size(graph, inside) for inside in sets)
    looked_at = max(len(inside) * (world - len(inside)) * part / found.crossing(inside) for inside in cuts(found))
    assert looked_at == pytest.approx(sparsest * part / B)
    total = sum(length for _, lengths in nx.all_pairs_shortest_path_length(graph) for length in lengths.values())
    work = total * part / (2 * graph.number_of_edges() * B)
    assert ns("all_to_all", found) >= max(sparsest * part / B, work)


@settings(max_examples=40)
@given(st.integers(3, 8), st.data())
def test_every_cut_of_few_ranks_is_looked_at(world, data):
    """Of random connected networks too; and nothing is claimed that a set of ranks does not ask for."""
    extra = data.draw(st.lists(st.tuples(st.integers(0, world - 1), st.integers(0, world - 1)), max_size=8))
    graph = nx.Graph([*((n, data.draw(st.integers(0, n - 1))) for n in range(1, world)), *extra])
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    found = of_graph(graph)
    sets = [set(inside) for size in range(1, world) for inside in combinations(range(world), size)]
    tightest = max((world - len(inside)) / nx.cut_size(graph, inside) for inside in sets)
    assert max((world - len(i)) / found.crossing(i) for i in cuts(found)) * B == pytest.approx(tightest)
    bound = lower_bound(KINDS["reduce_scatter"], found, 1 << 30)
    assert bound.ns >= tightest * (1 << 30) / world / B


def test_one_rank_or_nothing_has_no_bound():
    """What crosses no link takes no time by these arguments."""
    assert ns("all_reduce", RankLinks(1, ())) == 0.0
    assert ns("all_reduce", fabric("ring", 4), 0) == 0.0


def test_the_links_of_a_compiled_machine_are_read_with_their_overrides():
    """Rank i is SIP i; a link made slower in the configuration is slower here."""
    plugins = load_plugins()
    slow = "system.network.links=[{match: sip1-switch0, bandwidth: 10 GB/s}]"
    sets = ("system.sips=3", "system.network.topology=switch", slow)
    found = fabric_of(compile_topology(configure(plugins, "tiny", sets=sets), plugins))
    assert found.world == 3
    assert sorted((link.source, link.target, link.bandwidth, link.latency) for link in found.links) == sorted(
        (a, b, 10.0 if 1 in (a, b) else 100.0, 500.0) for rank in range(3) for a, b in ((rank, SWITCH), (SWITCH, rank))
    )
