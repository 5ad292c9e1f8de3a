"""Simulated times of collectives agree with closed forms, which are written down here once more, by hand.

On the idealised machine, step by step, every algorithm takes its closed form. On a real one a ring all-reduce takes
that and an overhead per step which is the sum of what each part of the machine charges (docs/timing_model.md).
Pipelined, a time lies between the lower bound and the time of whole steps.
"""

from __future__ import annotations

import math

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from kernbench_ccl.catalogue import Catalogue
from kernbench_ccl.measure import time_collective
from kernbench_ccl.measure.measurement import formula_ns
from kernbench_ccl.plugin import ALGORITHMS
from tests.ccl.algorithms.measured_forms import (
    EVERY,
    METHODS,
    NETWORKS,
    PLUGINS,
    B,
    case,
    ideal,
    machine,
    ring,
    run,
)

#: PEs that an algorithm needs for all its ways, where one is too few.
WAYS = {"double_binary_tree": 2, "mesh": 2, "torus": 4}


def pes_of(name, *, few):
    """Return the settings and the PEs of a machine that has no more of them than the algorithm needs, or all."""
    pes = WAYS.get(name, 1)
    return ((f"cube.pes={pes}",), pes) if few else ((), None)


# Whole steps on the idealised machine ------------------------------------------------------------------


@pytest.mark.parametrize("world", range(2, 10))
@pytest.mark.parametrize("nbytes", [1 << 10, 1 << 13, 1 << 16])
def test_ring_all_reduce_takes_its_steps(world, nbytes):
    """2(N - 1)(S/(N B) + L), within what a segment of one element more takes."""
    measured, formula, _ = ideal("ring", "all_reduce", nbytes, world, "ring", "cube.pes=1", pes=1)
    assert formula == pytest.approx(ring(world, nbytes), rel=1e-12)
    assert measured.time_ns == pytest.approx(ring(world, nbytes), rel=1e-3)


def worlds_of(name, what, network):
    """Return numbers of ranks for one small size, and for one that is larger, with the PEs that it needs.

    Grids: square, one row, and not square both ways.
    """
    if network in ("mesh_2d", "torus_2d"):
        return ((6,), (2, 3, 4, 5, 8, 9, 12)) if what == "all_reduce" else ((), (2, 3, 4, 6, 8, 12))
    if name == "halving_doubling":
        if what != "all_reduce" or network == "switch":
            return (4,), (2, 8)
        return (6,), (2, 3, 4, 5, 7, 9)
    small = () if network == "fully_connected" and name != "direct" else (3,)
    return small, (2, 4, 5, 8)


def ideal_cases():
    for one in EVERY[1:]:
        small, large = worlds_of(*one)
        few = one not in (("direct", "all_reduce", "switch"), ("ring_bidirectional", "all_reduce", "ring"))
        for world in small:
            yield pytest.param(*one, world, 6144, few, id="-".join((*one, str(world))))
        for world in (*large, *(small if few else ())):
            yield pytest.param(*one, world, 24576, False, id="-".join((*one, f"{world} full")))


@pytest.mark.parametrize(("name", "what", "network", "world", "nbytes", "few"), list(ideal_cases()))
def test_every_algorithm_takes_its_closed_form(name, what, network, world, nbytes, few):
    """Whole steps on the idealised machine agree with `formula` within 1 %."""
    measured, formula, bound = stepped(name, what, nbytes, world, network, few=few)
    assert measured.time_ns == pytest.approx(formula, rel=0.01)
    assert bound <= measured.time_ns


def stepped(name, what, nbytes, world, network, *, few=False):
    sets, pes = pes_of(name, few=few)
    return ideal(name, what, nbytes, world, network, *sets, pes=pes)


def forms(name, what, nbytes, world, network):
    """Return the closed forms pipelined and step by step, None where there is none; nothing where it refuses."""
    on = machine(world, f"system.network.topology={network}", idealised=True)
    algorithm = Catalogue.of(PLUGINS).open(f"ccl.{name}_{what}", what)
    if algorithm.refusal(on.network) is not None:
        return ()
    asked = [case(name, what, nbytes, world, pipeline=pipeline) for pipeline in (True, False)]
    return tuple(formula_ns(one, on, algorithm) for one in asked)


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize(("name", "what"), METHODS)
def test_a_closed_form_holds_on_every_network_or_there_is_none(name, what, network):
    """Of 2 to 6 ranks: what a network has no links for, a form that counts the messages of a step alone leaves out."""
    for world in range(2, 7):
        both = forms(name, what, 24576, world, network)
        if both and both[1] is not None:
            measured, formula, _ = stepped(name, what, 24576, world, network)
            assert measured.time_ns == pytest.approx(formula, rel=0.01), world


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize(("name", "what"), METHODS)
def test_pipelined_is_not_below_the_lower_bound_on_any_network(name, what, network):
    """Also where messages share links."""
    for world in range(2, 7):
        if forms(name, what, 24576, world, network):
            measured, _, bound = ideal(name, what, 24576, world, network, pipeline=True)
            assert bound <= measured.time_ns, world


@pytest.mark.parametrize("worlds", [(2, 4, 6), (3, 5, 8)])
@pytest.mark.parametrize("network", NETWORKS)
def test_a_pipelined_form_is_at_most_that_of_whole_steps(network, worlds):
    """Of every algorithm, of few bytes and of many; one has a form where the other has, but for grids."""
    for world in worlds:
        for name, what in METHODS:
            for nbytes in (1024, 1 << 22):
                if found := forms(name, what, nbytes, world, network):
                    assert found[0] == found[1] or found[0] is None or 0 < found[0] <= found[1], (name, what, world)
                    assert found[0] is not None or found[1] is None or name in ("mesh", "torus"), (name, what, world)


@pytest.mark.parametrize("what", ["all_gather", "all_reduce", "broadcast", "reduce"])
def test_three_ranks_of_a_ring_are_fully_connected(what):
    """Messages to all others have links of their own; with four ranks they share some, and there is no form."""
    measured, formula, _ = ideal("direct", what, 24576, 3, "ring")
    assert measured.time_ns == pytest.approx(formula, rel=0.01)
    assert forms("direct", what, 24576, 3, "ring") == forms("direct", what, 24576, 3, "fully_connected")
    assert forms("direct", what, 24576, 4, "ring") == (None, None)


def test_other_links_have_no_closed_form():
    """Another network laid over the ranks, links that differ, fewer PEs than ways."""
    algorithm = Catalogue.of(PLUGINS).open("ccl.ring_all_reduce", "all_reduce")
    on = machine(4, "system.network.topology=ring", idealised=True)
    asked = case("ring", "all_reduce", 24576, 4)
    assert formula_ns(asked, on, algorithm) == pytest.approx(ring(4, 24576))
    laid = evolve(asked, settings=evolve(asked.settings, topology="fully_connected"))
    assert formula_ns(laid, on, algorithm) is None
    slow = "system.network.links=[{match: sip0-sip1, bandwidth: 10 GB/s}]"
    assert formula_ns(asked, machine(4, slow, idealised=True), algorithm) is None
    torus = machine(4, "system.network.topology=torus_2d", idealised=True)
    four_ways = Catalogue.of(PLUGINS).open("ccl.torus_all_reduce", "all_reduce")
    assert formula_ns(case("torus", "all_reduce", 24576, 4), torus, four_ways) is not None
    assert formula_ns(case("torus", "all_reduce", 24576, 4, pes=2), torus, four_ways) is None


@pytest.mark.parametrize(("network", "hop"), [("fully_connected", 500), ("switch", 1000)])
@pytest.mark.parametrize("world", [2, 5, 8])
def test_a_barrier_takes_its_rounds(world, network, hop):
    """ceil(log2 N) latencies, and one element of 2 B on the link in each."""
    measured, formula, _ = ideal("dissemination", "barrier", 2, world, network, "cube.pes=1")
    rounds = math.ceil(math.log2(world))
    assert formula == rounds * hop
    assert measured.time_ns == pytest.approx(rounds * (hop + 2 / B), rel=1e-4)


@pytest.mark.parametrize("world", [2, 3])
def test_vectors_of_pes_cross_the_links_once(world):
    """Hierarchical: within a SIP nothing takes time, between SIPs it is the ring of one vector."""
    (row,) = time_collective(
        "all_reduce", [6144], "tiny", ranks=world, contributors="pe", idealised=True, pipeline=False, check=False
    )
    assert row.algorithm == "ccl.hierarchical_all_reduce"
    assert row.formula_ns == pytest.approx(ring(world, 6144))
    assert row.out_of_place.time_ns == pytest.approx(ring(world, 6144), rel=0.01)


def test_every_shipped_algorithm_is_here():
    """Those of the two tests before are named there."""
    here = {f"ccl.{name}_{what}" for name, what, _ in EVERY}
    shipped = {name for name in PLUGINS.of(ALGORITHMS) if name.startswith("ccl.")}
    assert shipped - here == {"ccl.dissemination_barrier", "ccl.hierarchical_all_reduce"}


@pytest.mark.parametrize(
    ("name", "what", "network", "world", "right"),
    [
        # two trees with 3 levels below the root; a vector in halves; 1 MB takes 1e4 ns on a link
        ("double_binary_tree", "all_reduce", "fully_connected", 8, 6 * (500 + 5e3)),
        ("binomial_tree", "broadcast", "fully_connected", 5, 2 * (500 + 1e4)),
        ("binomial_tree", "broadcast", "switch", 5, 2 * 1000 + 3 * 1e4),
        ("binomial_tree", "reduce", "switch", 8, 3 * (1000 + 1e4)),
        ("ring", "broadcast", "ring", 5, 4 * (500 + 1e4)),
        # 3 x 2: steps of rows or columns; both parts in rows at four of them; two ways back of one link each
        ("mesh", "all_reduce", "mesh_2d", 6, 6 * 500 + 2 * 500 + (4 / 2 + 2 / 6) * 5e3),
        # 4 x 3: columns, columns, the way back of a row (2 links more), columns, columns, with two ways back (1 more)
        ("mesh", "all_gather", "mesh_2d", 12, (5 + 2 + 2) * 500 + 5e3 * (2 / 12 + (1 / 12 + 1 / 4) + 2 / 3)),
        ("torus", "all_reduce", "torus_2d", 16, 12 * 500 + 2.5e3 * (6 / 4 + 6 / 16)),
    ],
)
def test_forms_of_whole_steps(name, what, network, world, right):
    """Those that count messages one by one, worked out by hand for 1 MB."""
    on = machine(world, f"system.network.topology={network}", idealised=True)
    algorithm = Catalogue.of(PLUGINS).open(f"ccl.{name}_{what}", what)
    asked = evolve(case(name, what, 1 << 20, world), nbytes=1_000_000)
    assert formula_ns(asked, on, algorithm) == pytest.approx(right, rel=1e-4)


# Pipelined ---------------------------------------------------------------------------------------------


def pipelined_cases():
    for one in EVERY:
        if one[2] != "switch":
            world = 4 if one[0] in ("halving_doubling", "mesh", "torus") else 3
            yield pytest.param(*one, world, 4096, True, id="-".join(one))
        yield pytest.param(*one, 4, 4096, False, id="-".join((*one, "full")))
        yield pytest.param(*one, 4, 1 << 18, False, id="-".join((*one, "large")))
        if one[1] == "all_reduce":
            yield pytest.param(*one, 6, 1 << 17, False, id="-".join((*one, "six")))


@pytest.mark.parametrize(("name", "what", "network", "world", "nbytes", "few"), list(pipelined_cases()))
def test_pipelined_lies_between_the_bound_and_whole_steps(name, what, network, world, nbytes, few):
    """On a real machine, each algorithm on its networks, with the PEs it needs and with all of them."""
    sets, pes = pes_of(name, few=few)
    on = (f"system.network.topology={network}", *sets)
    stepped, _, bound = run(name, what, nbytes, world, *on, pes=pes)
    streamed, _, _ = run(name, what, nbytes, world, *on, pipeline=True, pes=pes)
    assert bound <= streamed.time_ns <= stepped.time_ns


@given(
    st.sampled_from(METHODS),
    st.sampled_from(NETWORKS),
    st.integers(2, 6),
    st.integers(1, 12_000),
    st.booleans(),
)
@settings(max_examples=16)
def test_nothing_is_below_its_lower_bound(method, network, world, nbytes, pipeline):
    """On the idealised machine, where nothing but links is in the way; also where messages share links."""
    on = machine(world, f"system.network.topology={network}", idealised=True)
    algorithm = Catalogue.of(PLUGINS).open("ccl." + "_".join(method), method[1])
    if network not in algorithm.topologies or algorithm.refusal(on.network) is not None:
        return
    sets, pes = pes_of(method[0], few=True)
    measured, _, bound = ideal(*method, nbytes, world, network, *sets, pipeline=pipeline, pes=pes)
    assert 0 < bound <= measured.time_ns


# Bandwidth, and what the options do --------------------------------------------------------------------

PAYLOAD = B * 4096 / (4096 + 32)
"""GB/s of payload on a link of 100 GB/s."""


@pytest.mark.parametrize(
    ("topology", "world", "nbytes", "sets"),
    [
        ("tiny", 4, 3 << 19, ("system.network.latency=50 ns",)),  # else it takes more bytes to hide them
        *(("default", 8, size << 20, ()) for size in (2, 64)),
    ],
)
def test_a_ring_fills_its_links(topology, world, nbytes, sets):
    """Busbw of at least 95 % of the payload rate with default settings, and never above it."""
    measured, _, _ = run("ring", "all_reduce", nbytes, world, *sets, pipeline=True, topology=topology)
    assert 0.95 * PAYLOAD <= measured.busbw < PAYLOAD
    assert measured.busbw == pytest.approx(2 * (world - 1) / world * nbytes / measured.time_ns)


def test_link_options_move_times_as_the_form_says():
    """Tight pairs on the idealised machine: 4 latencies, 4 segments; a hop over a switch is two links."""
    nbytes, steps = 3072, 4
    sets = {
        "plain": (), "longer": ("system.network.latency=501 ns",), "narrower": ("system.network.bandwidth=50 GB/s",),
        "switch": ("system.network.topology=switch",), "full": ("system.network.topology=fully_connected",),
    }  # fmt: skip
    took = {
        key: run("ring", "all_reduce", nbytes, 3, "cube.pes=1", *how, idealised=True, pes=1)[0].time_ns
        for key, how in sets.items()
    }
    more = {key: ns - took["plain"] for key, ns in took.items()}
    assert more["longer"] == pytest.approx(steps, abs=0.001)
    assert more["narrower"] == pytest.approx(steps * nbytes / 3 / 100, abs=0.001)
    assert more["switch"] == pytest.approx(steps * 500, abs=0.1)
    assert more["full"] == pytest.approx(0, abs=0.001)


@pytest.mark.parametrize(
    ("what", "name"), [("all_reduce", "ring_bidirectional"), ("reduce_scatter", "ring"), ("reduce", "ring")]
)
def test_a_ring_round_a_grid_takes_what_a_ring_of_these_links_takes(what, name):
    """To the bit: each of its steps is one link, which no other message has."""
    for world, grid in ((4, "mesh_2d"), (9, "torus_2d")):
        sets = [(f"system.network.topology={network}", "cube.pes=1") for network in ("ring", grid)]
        on_ring, on_grid = (run(name, what, 1024, world, *each)[0] for each in sets)
        assert on_ring.time_ns == on_grid.time_ns


def test_a_torus_and_a_mesh_differ_by_the_way_back():
    """Three ranks in a row: two latencies more on a mesh, in an all-reduce of four steps, and half the links."""
    nbytes = 6144
    torus = ideal("torus", "all_reduce", nbytes, 3, "torus_2d")[0].time_ns
    mesh = ideal("mesh", "all_reduce", nbytes, 3, "mesh_2d")[0].time_ns
    assert mesh - torus == pytest.approx(2 * 500 + 4 * nbytes / 3 / 2 / 100, abs=0.2)
