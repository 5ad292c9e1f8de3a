"""Wires: the rule of head and tail, framing, first come first served, the ledger, exact accumulators."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernbench_core.component import ComponentBase
from kernbench_core.environment import Environment
from kernbench_core.errors import ConfigError
from kernbench_core.fabric import Fabric
from kernbench_core.graph import Graph
from kernbench_core.messages import MsgBase
from kernbench_core.params import Param
from kernbench_core.testing import Harness, Probe, assert_ready_at, edge, line, place
from kernbench_core.wire import Wire


class Node5(ComponentBase):
    """Forward with `overhead`, cut-through."""

    ON_HEAD = True
    PARAMS = (Param("overhead", "time", "5 ns", "Latency."),)

    def overhead(self, msg: MsgBase) -> float:
        return float(self.params["overhead"])


def make_wire(bandwidth: float = 10.0, latency: float = 2.0, **framing: int) -> Wire:
    """Return a wire on its own."""
    fabric = Fabric(Environment(), Graph.of([], []))
    return fabric.new_wire("a->b", bandwidth, latency, arrive=lambda _: None, on_head=False, **framing)


def test_uncontended_transfer_pays_the_narrowest_wire_once() -> None:
    """100 B over 10 B/ns and 2 ns, a node of 5 ns, 100 B/ns and 2 ns: 2 + 5 + 2 + 10 = 19 ns."""
    edges = (edge("a", "n", bandwidth=10, latency=2), edge("n", "b", bandwidth=100, latency=2))
    machine = Harness({"a": Probe, "n": Node5, "b": Probe}, edges)
    msg = machine.send(("a", "n", "b"), 0.0, 100)
    assert_ready_at(machine, 19.0)
    assert (msg.propagation, msg.overhead, msg.serialisation, msg.queueing, msg.service) == (4.0, 5.0, 10.0, 0.0, 0.0)


def test_narrow_wire_behind_a_wide_one_costs_the_same() -> None:
    """The order of the two wires does not matter to the last byte."""
    edges = (edge("a", "n", bandwidth=100, latency=2), edge("n", "b", bandwidth=10, latency=2))
    machine = Harness({"a": Probe, "n": Node5, "b": Probe}, edges)
    machine.send(("a", "n", "b"), 0.0, 100)
    assert_ready_at(machine, 19.0)


def test_two_messages_on_one_wire_serialise_in_order() -> None:
    """The second starts when the last byte of the first has passed, and its wait is queueing."""
    machine = Harness({"a": Probe, "b": Probe}, line("a", "b", bandwidth=10, latency=2))
    first, second = machine.send(("a", "b"), 0.0, 100), machine.send(("a", "b"), 4.0, 50)
    assert_ready_at(machine, 12.0)
    assert_ready_at(machine, 17.0, arrival=2)
    assert (first.queueing, second.queueing, second.serialisation) == (0.0, 6.0, 5.0)


def test_directions_do_not_share_a_wire() -> None:
    """Traffic back does not wait for traffic there."""
    machine = Harness({"a": Probe, "b": Probe}, line("a", "b", bandwidth=10, latency=2))
    machine.send(("a", "b"), 0.0, 100)
    machine.send(("b", "a"), 0.0, 100)
    assert [(a.node, a.time) for a in machine.run().arrivals] == [("b", 12.0), ("a", 12.0)]


@settings(deadline=None)
@given(
    messages=st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30), st.integers(0, 500)), min_size=1, max_size=25),
    bandwidth=st.sampled_from((1.0, 3.0, 10.0, 64.0)),
    header=st.sampled_from((0, 16)),
)
def test_rule_of_head_and_tail(messages: list[tuple[int, int, int]], bandwidth: float, header: int) -> None:
    """`passage` and `book` give what the formula gives, recomputed with exact fractions."""
    wire = make_wire(bandwidth, 0.3, payload_bytes=64, header_bytes=header)
    step = Fraction(1, 65536)
    latency = math.ceil(Fraction(0.3) / step) * step
    free = Fraction(0)
    for after, length, nbytes in messages:
        head, tail = Fraction(after), Fraction(after + length)
        on_wire = nbytes + max(1, -(-nbytes // 64)) * header
        # the quotient is a float before it is rounded, as in any model
        took = math.ceil(Fraction(on_wire / bandwidth) / step) * step
        start = max(head, free)
        assert wire.passage(nbytes, float(head), float(tail), float(free)) == (start, max(start + took, tail))
        free = max(start + took, tail)
        assert wire.book(nbytes, float(head), float(tail)) == (start + latency, free + latency)


@pytest.mark.parametrize(
    ("nbytes", "on_wire"), [(0, 16), (1, 17), (63, 79), (64, 80), (65, 97), (128, 160), (129, 177)]
)
def test_every_started_payload_unit_has_a_header(nbytes: int, on_wire: int) -> None:
    """n bytes occupy n + ceil(n / payload) headers, at least one."""
    assert make_wire(payload_bytes=64, header_bytes=16).bytes_on_wire(nbytes) == on_wire


def test_durations_are_rounded_up_to_the_grid_once() -> None:
    """10 B at 3 B/ns is no multiple of 2^-16 ns; the wire takes the next one, its latency too."""
    wire = make_wire(3.0, 0.1)
    assert wire.duration(10) == math.ceil(10 / 3 * 65536) / 65536
    assert wire.latency == math.ceil(0.1 * 65536) / 65536


def test_ledger_counts_bytes_busy_time_and_deliveries() -> None:
    """Payload bytes, time under way and deliveries add up; headers count as time."""
    machine = Harness(
        {"a": Probe, "b": Probe}, line("a", "b", bandwidth=10, latency=2, payload_bytes=50, header_bytes=5)
    )
    for _ in range(3):
        machine.send(("a", "b"), 0.0, 100)
    wire = machine.run().component("a").out_ports["b"]
    assert (wire.bytes_carried, wire.busy_ns, wire.deliveries, wire.available_at) == (300, 33.0, 3, 33.0)


@pytest.mark.parametrize("way", ["send", "book", "hold", "carry"])
def test_the_first_use_is_noted_until_somebody_asks(way: str) -> None:
    """With how long the wire had been busy, and until when it was taken, before it; later uses are not."""
    fabric = Fabric(Environment(), Graph.of([], []))
    wire, other = (
        fabric.new_wire(name, 10.0, 2.0, arrive=lambda _: None, on_head=False) for name in ("a->b", "b->a")
    )

    def use() -> None:
        calls = {
            "send": lambda: wire.send(MsgBase(100), 0.0, 0.0),
            "book": lambda: wire.book(100, 0.0, 0.0),
            "hold": lambda: wire.hold(100, wire.available_at, 10.0),
            "carry": lambda: wire.carry(MsgBase(100), 100, wire.available_at, 10.0),
        }
        calls[way]()

    use()
    use()
    assert fabric.used_wires == [wire]
    assert (wire.fresh, other.fresh, wire.busy_ns) == (False, True, 20.0)
    fabric.used_wires.clear()
    wire.fresh = True
    use()
    assert fabric.used_wires == [wire] and not wire.fresh
    assert (wire.number, other.number) == (1, 2)


@settings(deadline=None)
@given(
    sizes=st.lists(st.integers(0, 300), min_size=1, max_size=12),
    widths=st.tuples(*[st.sampled_from((1.0, 7.0, 10.0, 64.0))] * 3),
    times=st.lists(st.integers(0, 40), min_size=12, max_size=12),
    on_head=st.tuples(st.booleans(), st.booleans()),
)
def test_accumulators_sum_to_the_time_since_birth(
    sizes: list[int], widths: tuple[float, ...], times: list[int], on_head: tuple[bool, bool]
) -> None:
    """Propagation, serialisation, overhead, queueing and service are all of it, exactly."""
    models = [type("Stage", (Node5,), {"ON_HEAD": acts}) for acts in on_head]
    edges = [edge(a, b, bandwidth=w, latency=0.7) for (a, b), w in zip(("ac", "cd", "db"), widths, strict=True)]
    machine = Harness({"a": Probe, "b": Probe, "c": place(models[0]), "d": place(models[1], overhead="0.3 ns")}, edges)
    sent = [machine.send("acdb", float(at), n) for at, n in zip(times, sizes, strict=False)]
    machine.run()
    for msg in sent:
        parts = (msg.propagation, msg.serialisation, msg.overhead, msg.queueing, msg.service)
        assert sum(parts) == msg.elapsed
        assert min(parts) >= 0.0


@pytest.mark.parametrize(("what", "bandwidth", "latency"), [("bandwidth", 0.0, 1.0), ("latency", 1.0, 0.0)])
def test_wire_must_have_bandwidth_and_latency(what: str, bandwidth: float, latency: float) -> None:
    """A wire without bandwidth or latency is refused when it is made."""
    with pytest.raises(ConfigError) as caught:
        make_wire(bandwidth, latency)
    assert str(caught.value) == f"a->b: {what} must be greater than 0, not 0.0."
