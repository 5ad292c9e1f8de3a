"""What the components of one run share."""

from __future__ import annotations

import pytest

from kernbench_core.environment import Environment
from kernbench_core.errors import ConfigError
from kernbench_core.fabric import Fabric
from kernbench_core.graph import Graph, Node
from kernbench_core.messages import Transaction
from kernbench_core.reporting import LaunchWork, PeCounter
from kernbench_core.testing import line
from kernbench_core.values.region import Region


def make_fabric() -> Fabric:
    """Return the fabric of an empty graph made by hand."""
    return Fabric(Environment(), Graph.of([], []))


def nothing(_: object) -> None:
    """Ignore."""


def test_edges_keep_their_ids_and_other_wires_follow() -> None:
    """Edge ids 1 to n belong to the graph's edges, whatever is made before them."""
    nodes = [Node(name, "router") for name in "abc"]
    fabric = Fabric(Environment(), Graph.of(nodes, line("a", "b", "c")[:3]))
    wires = [
        fabric.new_wire("x#pc0", 1.0, 1.0, arrive=nothing, on_head=False),
        fabric.new_wire("a->b", 1.0, 1.0, arrive=nothing, on_head=False, edge_id=2),
        fabric.new_wire("x#pc1", 1.0, 1.0, arrive=nothing, on_head=False),
    ]
    assert [wire._key >> 40 for wire in wires] == [4, 2, 5]
    assert fabric.wires == wires


def test_quickest_round_trip_of_each_kind_is_kept() -> None:
    """Trips of one source, memory, op and size share an entry; the quickest stays, on its way out."""
    fabric = make_fabric()
    for elapsed in (30.0, 20.0, 25.0):
        sent = Transaction("read", (Region(int(elapsed), 64),), 64, ("a", "b", "m"), nothing)
        sent.turn_around()
        sent.born, sent.tail = 5.0, 5.0 + elapsed
        fabric.note_round_trip(sent)
    (trip,) = fabric.round_trips.values()
    assert (trip.least_ns, trip.path, trip.regions[0].base) == (20.0, ("a", "b", "m"), 20)
    assert fabric.completed == 3


def test_round_trips_are_as_many_as_bounds_and_not_as_shares() -> None:
    """Gathers spread over channels in ever new ways: what decides the bound, the largest share, is what counts."""
    fabric = make_fabric()
    for first in range(1, 64):
        sent = Transaction("read", (Region(first, 128),), 128, ("a", "b", "m"), nothing)
        sent.turn_around()
        sent.shares = ((0, first), (1, 64), (2, 64 - first))
        sent.born, sent.tail = 0.0, 1000.0 - first
        fabric.note_round_trip(sent)
    (trip,) = fabric.round_trips.values()
    assert (trip.least_ns, trip.regions[0].base) == (937.0, 63)


def test_payload_is_counted_for_who_asked_while_somebody_wants_it() -> None:
    """Without the addresses of further ranges, by memory; others ask for nobody."""
    fabric = make_fabric()
    work = LaunchWork()
    counter = fabric.counters["a"] = PeCounter(work)
    for asker, memory, nbytes in (("a", "m", 64), ("c", "m", 1000), ("a", "n", 32), ("a", "m", 128), ("a", "m", 512)):
        counter.work = work if nbytes < 512 else None
        regions = Region(0, nbytes // 2), Region(4096, nbytes // 2)
        sent = Transaction("write", regions, nbytes, (asker, memory), nothing)
        sent.turn_around()
        fabric.note_round_trip(sent)
    assert work.memories == {"m": 192, "n": 32}
    assert fabric.moved_bytes == {"m": 1704 + 4 * 8, "n": 32 + 8}


def test_graph_made_by_hand_has_no_design() -> None:
    """Asking for what only a machine has is a sentence; a session offers nothing there."""
    fabric = make_fabric()
    for what, ask in {
        "design": lambda: fabric.chunk_bytes,
        "routes": lambda: fabric.command_path("a", "b"),
        "addresses": lambda: fabric.addresses,
    }.items():
        with pytest.raises(ConfigError) as caught:
            ask()
        assert str(caught.value) == (
            f"this graph was built by hand and has no {what}; compile it from a topology instead."
        )
    assert fabric.find(Fabric) is None
