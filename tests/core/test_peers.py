"""Peers and channels: who a kernel means by a number, a pair or a direction, and what slots can be."""

from __future__ import annotations

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_core.errors import ConfigError, KernelError
from kernbench_core.messages import Launch
from kernbench_core.peers import DIRECTIONS, Channel, Peers, nearest_in
from kernbench_core.topology.networks import Extent, find_extent, neighbour, network_directions
from tests.core.shapes import NETWORKS

TWO_EACH = Peers(((4, 5), (8, 9), (0, 1)))


def said(peers: Peers, pe: int, to: object) -> str:
    """Give the sentence with which a peer is refused."""
    with pytest.raises(KernelError) as caught:
        peers.resolve(pe, to)  # type: ignore[arg-type]
    return str(caught.value)


def test_a_number_is_a_rank_and_the_same_place_there() -> None:
    """Places are those of the machine's PEs in their ranks; a pair names both."""
    assert TWO_EACH.resolve(5, 1) == 9
    assert TWO_EACH.resolve(4, 2) == 0
    assert TWO_EACH.resolve(4, (2, 1)) == 1
    assert TWO_EACH.place_of(9) == (1, 1)
    assert TWO_EACH.name_of(9) == (1, 1)
    assert Peers(((7,), (3,))).name_of(3) == 1


def test_what_is_no_peer_is_told() -> None:
    """Ranks and places out of range, and what is no number at all."""
    assert said(TWO_EACH, 4, 3) == "a peer must be a rank from 0 to 2, not 3."
    assert said(TWO_EACH, 4, -1) == "a peer must be a rank from 0 to 2, not -1."
    assert said(TWO_EACH, 4, True) == "a peer must be a rank from 0 to 2, not True."
    assert said(TWO_EACH, 4, 1.5) == "a peer must be a rank from 0 to 2, not 1.5."
    assert said(TWO_EACH, 4, (1, 2)) == "a peer's place must be one from 0 to 1 in rank 1, not 2."
    assert said(TWO_EACH, 4, "north") == "a peer must be a direction, one of n, e, s, w, not 'north'."
    assert said(TWO_EACH, 4, "n") == (
        "a peer must be in a direction in which this PE has a neighbour, not 'n'; name it by its number."
    )
    away = Peers(((4,), (5,)), direction=lambda pe, name: 6)
    assert said(away, 4, "e") == (
        "a peer must take part in the launch, and the neighbour in direction 'e' does not; launch on it too, or name "
        "another by its number."
    )


def test_directions_come_from_the_launch_or_else_from_the_machine() -> None:
    """What the launch says wins; what the machine says is asked for otherwise."""
    machine = {"e": 5}.get
    assert Peers(((4,), (5,))).resolve(4, "e", lambda pe, name: machine(name)) == 5
    turned = Peers(((4,), (5,)), direction=lambda pe, name: 9 - pe)
    assert turned.resolve(5, "e", lambda pe, name: 5) == 4


@given(st.integers(1, 5), st.integers(1, 5), st.data())
def test_the_nearest_in_a_direction_is_the_next_of_its_row_or_column(
    width: int, height: int, data: st.DataObject
) -> None:
    """On a grid with holes: against a search along the row or column, step by step; and back again."""
    cells = [(x, y) for y in range(height) for x in range(width)]
    kept = data.draw(st.lists(st.sampled_from(cells), min_size=1, unique=True))
    places = {index: (2.5 * x, 3.0 * y) for index, (x, y) in enumerate(kept)}
    at = {cell: index for index, cell in enumerate(kept)}
    for index, (x, y) in enumerate(kept):
        for name, (dx, dy) in DIRECTIONS.items():
            steps = ((x + n * dx, y + n * dy) for n in range(1, 6))
            wanted = next((at[cell] for cell in steps if cell in at), None)
            found = nearest_in(places, index, name)
            assert found == wanted
            if found is not None:
                assert nearest_in(places, found, {"n": "s", "s": "n", "e": "w", "w": "e"}[name]) == index


def test_a_pe_without_a_place_has_no_neighbours() -> None:
    """Machines that were built by hand know no positions."""
    assert nearest_in({0: None, 1: (1.0, 0.0)}, 0, "e") is None
    assert nearest_in({0: (0.0, 0.0), 1: None}, 0, "e") is None


@pytest.mark.parametrize("topology", sorted(NETWORKS))
@pytest.mark.parametrize("sips", [1, 2, 3, 6, 9])
def test_a_step_in_a_network_is_a_link(topology: str, sips: int) -> None:
    """Every neighbour is linked; a mesh has as many steps as links have ends; shapes without directions have none."""
    extent = find_extent(topology, NETWORKS[topology], sips)
    steps = [
        (sip, other)
        for sip in range(sips)
        for step in DIRECTIONS.values()
        if (other := neighbour(NETWORKS[topology], extent, sip, step)) is not None
    ]
    if topology in ("switch", "fully_connected"):
        assert steps == []
        return
    links = nx.Graph((link.sip, link.other_sip) for link in NETWORKS[topology].links(extent))
    assert {frozenset(step) for step in steps} == {frozenset(edge) for edge in links.edges}
    if topology == "mesh_2d":
        assert len(steps) == 2 * links.number_of_edges()


def test_ranks_of_several_pes_have_the_neighbour_of_the_same_place() -> None:
    """A 2 x 2 mesh of packages, two PEs of each: east of place 1 of rank 0 is place 1 of rank 1; no west of it."""
    ranks = ((0, 1), (4, 5), (8, 9), (12, 13))
    direction = network_directions(NETWORKS["mesh_2d"], Extent(4, 2, 2), ranks)
    assert [direction(1, name) for name in ("e", "s", "w", "n")] == [5, 9, None, None]
    ring = network_directions(NETWORKS["ring"], Extent(4, 4), ranks)
    assert [ring(1, name) for name in ("e", "w", "n", "s")] == [5, 13, None, None]
    peers = Peers(ranks, direction=direction)
    assert peers.resolve(0, "s") == 8


def test_slots_that_cannot_be_are_all_told() -> None:
    """A channel is checked when it is made, with a sentence for each fault."""
    assert Channel("a", slots=1, slot_bytes=128, tier="hbm") == Channel("a", 1, 128, "hbm")
    with pytest.raises(ConfigError) as caught:
        Channel("a", slots=0, slot_bytes=100, tier="l2")
    assert str(caught.value).splitlines() == [
        "channel 'a': slots must be a whole number of at least 1, not 0.",
        "channel 'a': slot_bytes must be a multiple of 64, a line of the scratchpad, not 100.",
        "channel 'a': tier must be one of tcm, sram, hbm, not 'l2'.",
    ]


def test_launches_on_the_same_pes_share_their_peers() -> None:
    """A run keeps its launches, so that thousands of them must not each keep a place for every PE."""
    first, second = (Launch(print, {}, (3, 1, 1), {4: (), 7: (), 5: ()}) for _ in range(2))
    assert first.peers is second.peers
    assert first.peers.ranks == ((4,), (7,), (5,))
    assert Launch(print, {}, (3, 1, 1), {4: (), 5: (), 7: ()}).peers.ranks == ((4,), (5,), (7,))
