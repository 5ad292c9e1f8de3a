"""Closed forms over a switch that has a packet in whole before it goes on: each step takes a packet more.

Packets are 4 KiB at most, messages 16 KiB. One PE of a rank sends on the idealised machine, or one for each way.
"""

from __future__ import annotations

import pytest
from attrs import evolve

from kernbench_builtin.components.forwarding import Forwarding
from kernbench_ccl.catalogue import Catalogue
from kernbench_ccl.measure import Setup, machine_of
from kernbench_ccl.measure.measurement import formula_ns, measure
from tests.ccl.algorithms.measured_forms import HALVES, PAIRS, PLUGINS, RINGS, TREES, B, L, case, machine, run

STORES = ("system.network.topology=switch", "components.switch.params.store_and_forward=true")
EVERY = [
    ("ring", "all_reduce"),
    *(one[:2] for one in RINGS),
    *(one[:2] for one in (*PAIRS, *TREES, *HALVES) if one[2] == "switch"),
]


def over_switch(name, what, nbytes, world, **how):
    return run(name, what, nbytes, world, *STORES, idealised=True, **how)


def packet(nbytes):
    return min(4096, nbytes) / B


def hands():
    """Forms written down by hand: what a step sends, at B, twice the latency, and the packet that waits."""
    yield "ring", "all_reduce", 3, 3 * 2048, 4 * (2 * L + 2048 / B + packet(2048))
    yield "ring", "all_gather", 4, 4 * 6000, 3 * (2 * L + 6000 / B + packet(6000))
    yield "direct", "all_reduce", 3, 3 * 8192, 2 * (2 * L + 2 * 8192 / B + packet(8192))
    yield "direct", "send_recv", 2, 1024, 2 * L + 1024 / B + packet(1024)
    yield "binomial_tree", "broadcast", 4, 8192, 2 * (2 * L + 8192 / B + packet(8192))
    yield "pairwise", "all_to_all", 3, 3 * 1000, 2 * (2 * L + 1000 / B + packet(1000))
    yield "ring_bidirectional", "all_gather", 3, 3 * 4096, 2 * (2 * L + 4096 / B + packet(2048))
    # the last tile of each block has 2016 bytes; while the root sends one to the other rank, a packet is passed on
    yield "direct", "scatter", 3, 3 * 18400, 2 * L + 2 * 18400 / B + (4096 - 2016) / B
    yield "direct", "scatter", 4, 4 * 18400, 2 * L + 3 * 18400 / B + packet(2016)
    yield "direct", "broadcast", 3, 16384 + 3000, 2 * L + 2 * (16384 + 3000) / B + packet(3000)


@pytest.mark.parametrize(("name", "what", "world", "nbytes", "right"), list(hands()))
def test_a_step_takes_a_packet_more(name, what, world, nbytes, right):
    measured, formula, _ = over_switch(name, what, nbytes, world)
    assert formula == pytest.approx(right, rel=1e-9)
    assert measured.time_ns == pytest.approx(right, rel=1e-3)


def forms():
    """Yield every algorithm, with 2 to 8 ranks."""
    for name, what in EVERY:
        for world in (2, 4, 8) if name == "halving_doubling" else (2, 3, 4, 8):
            yield (name, what, world)


@pytest.mark.parametrize(("name", "what", "world"), list(forms()))
def test_every_form_holds_over_a_switch_that_stores(name, what, world):
    """Within 1 % step by step, and pipelined never above."""
    for nbytes in (1000, 24576, 200_000 if world == 4 else 40_000):
        measured, formula, _ = over_switch(name, what, nbytes, world)
        assert measured.time_ns == pytest.approx(formula, rel=0.01), nbytes
        streamed, most, _ = over_switch(name, what, nbytes, world, pipeline=True)
        assert streamed.time_ns <= most * 1.01, nbytes


def whole(name, what, world, nbytes, **given):
    """Measure with messages, and packets, as large as what a rank sends to another, but for what is `given`."""
    part = nbytes // world
    on = machine(world, *STORES, f"system.chunk_bytes={part} B", idealised=True)
    asked = case(name, what, nbytes, world, pes=1)
    asked = evolve(asked, settings=evolve(asked.settings, **{"chunk": part, "slot_bytes": part, **given}))
    measured = measure(asked, on, PLUGINS, checked=False)
    algorithm = Catalogue.of(PLUGINS).open(asked.algorithm, what)
    return measured.time_ns, formula_ns(asked, on, algorithm, 1)


@pytest.mark.parametrize(
    ("what", "world"), [("all_gather", 5), ("all_gather", 8), ("all_reduce", 6), ("all_to_all", 7)]
)
def test_in_whole_messages_what_the_switch_holds_is_under_way_too(what, world):
    """By hand, a phase takes both latencies, all that a rank sends and one message that waits in the switch."""
    part = 1 << 17
    right = (2 if what == "all_reduce" else 1) * (2 * L + world * part / B)
    measured, formula = whole("direct", what, world, world * part)
    assert formula == pytest.approx(right, rel=1e-9)
    assert measured == pytest.approx(right, rel=1e-3)


def test_a_packet_has_no_more_than_a_slot():
    """Messages are cut into slots of 16 KiB, as the machine's queues have them."""
    measured, formula = whole("direct", "all_gather", 5, 5 << 17, slot_bytes=None)
    assert formula == pytest.approx(2 * L + (4 * (1 << 17) + (1 << 14)) / B, rel=1e-9)
    assert measured == pytest.approx(formula, rel=1e-3)


def test_it_is_told_of_any_model_that_acts_on_last_bytes(monkeypatch):
    plain = Setup("tiny", None, ("system.sips=2", STORES[0]), True, checked=False)
    assert machine_of(plain, PLUGINS).stored == 0
    assert machine(2, *STORES, idealised=True).stored == 4096
    larger = Setup("tiny", None, ("system.sips=2", *STORES, "system.chunk_bytes=8 KiB"), True, checked=False)
    assert machine_of(larger, PLUGINS).stored == 8192
    storing = type("Storing", (Forwarding,), {"ON_HEAD": False})
    monkeypatch.setattr("kernbench_builtin.components.forwarding.Forwarding", storing)
    assert machine_of(plain, PLUGINS).stored == 4096


def test_a_ring_has_no_switch_to_store():
    """Ports of packages that store have the last byte of a message to wait for anyway."""
    ring = ("system.network.topology=ring", "components.link.params.store_and_forward=true")
    measured, formula, _ = run("ring", "all_gather", 6000, 3, *ring, "cube.pes=1", idealised=True, pes=1)
    assert formula == pytest.approx(2 * (L + 2000 / B))
    assert measured.time_ns == pytest.approx(formula, rel=1e-3)
