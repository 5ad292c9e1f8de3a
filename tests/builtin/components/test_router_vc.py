"""Routers with virtual channels: lone messages, credits, back-pressure at every edge, order, ledgers and refusals."""

from __future__ import annotations

import warnings
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_builtin.components.forwarding import Forwarding
from kernbench_builtin.components.router_vc import RouterVc
from kernbench_core.errors import ConfigError, KernbenchWarning
from kernbench_core.graph import Edge
from kernbench_core.messages import MsgBase
from kernbench_core.testing import Harness, Model, Probe, Rig, assert_ready_at, edge, line, place

pytestmark = pytest.mark.filterwarnings("ignore:.*raise buffer_flits to")  # small buffers are what is tested

FLIT = 32
RATE = 32.0
"""Bytes/ns: a flit takes 1 ns, a cycle."""


class HeadProbe(Probe):
    """Take messages at their first byte."""

    ON_HEAD = True


class Echo(MsgBase):
    """Be answered with `back` bytes where the path ends."""

    __slots__ = ("back", "done")

    def __init__(self, nbytes: int, back: int) -> None:
        super().__init__(nbytes)
        self.back = back
        self.done = -1.0

    def turn_around(self, nbytes: int = 0) -> None:
        super().turn_around(self.back)

    def answered(self) -> None:
        self.done = self.tail


def chain(routers: int, *, latency: float = 1.0, bandwidth: float = RATE, last: float = RATE, **params: Any) -> Harness:
    """Return a -> routers -> b, both ways, with the wire to b of another bandwidth."""
    names = [f"n{i}" for i in range(routers)]
    nodes: dict[str, Model] = {"a": Probe, "b": Probe} | {name: place(RouterVc, **params) for name in names}
    wires = [
        *line("a", *names, bandwidth=bandwidth, latency=latency),
        edge(names[-1], "b", bandwidth=last, latency=latency),
    ]
    return Harness(nodes, [*wires, edge("b", names[-1], bandwidth=last, latency=latency)])


def way(routers: int) -> tuple[str, ...]:
    return ("a", *(f"n{i}" for i in range(routers)), "b")


@pytest.mark.parametrize("routers", [1, 2, 5])
@pytest.mark.parametrize("flits", [1, 2, 9])
def test_a_lone_message_takes_overheads_latencies_and_its_flits_once(routers: int, flits: int) -> None:
    machine = chain(routers, overhead="5 ns", buffer_flits=16)
    machine.send(way(routers), 0, flits * FLIT)
    assert_ready_at(machine, 5 * routers + 1 * (routers + 1) + flits)


@given(
    st.integers(0, 300),
    st.integers(1, 4),
    st.sampled_from([0.25, 1.0, 3.5]),
    st.sampled_from([10.0, 32.0, 77.0, 128.0]),
)
def test_a_lone_message_is_as_fast_as_over_forwarding_nodes_but_for_its_last_flit(
    nbytes: int, routers: int, latency: float, last: float
) -> None:
    """Its last flit counts whole, and a wire that is slower than the others begins to be filled a flit at a time."""
    ours = chain(routers, latency=latency, last=last, overhead="6 ns", buffer_flits=64)
    names = [f"n{i}" for i in range(routers)]
    plain: dict[str, Model] = {"a": Probe, "b": Probe} | {name: place(Forwarding, overhead="6 ns") for name in names}
    wires = [*line("a", *names, bandwidth=RATE, latency=latency), edge(names[-1], "b", bandwidth=last, latency=latency)]
    cheap = Harness(plain, wires)
    ends = []
    for machine in (ours, cheap):
        machine.send(way(routers), 0, nbytes)
        ends.append(machine.run().arrivals[0].tail)
    assert ends[1] <= ends[0] <= ends[1] + FLIT / min(last, RATE) + FLIT / RATE


@given(st.integers(0, 300), st.lists(st.sampled_from([10.0, 32.0, 77.0, 128.0]), min_size=4, max_size=4))
def test_a_lone_message_is_no_faster_than_over_forwarding_nodes_whichever_wire_is_slow(
    nbytes: int, rates: list[float]
) -> None:
    """Behind a slow wire the last byte of a flit comes later than its first, however fast the next wire is."""
    wires = [edge(a, b, bandwidth=rate, latency=1) for (a, b), rate in zip(pairwise(way(3)), rates, strict=True)]
    ends = []
    for router in (place(RouterVc, overhead="6 ns", buffer_flits=64), place(Forwarding, overhead="6 ns")):
        nodes: dict[str, Model] = {"a": Probe, "b": Probe, "n0": router, "n1": router, "n2": router}
        machine = Harness(nodes, wires)
        machine.send(way(3), 0, nbytes)
        ends.append(machine.run().arrivals[0].tail)
    assert ends[1] <= ends[0] <= ends[1] + 2 * FLIT / min(rates)


@pytest.mark.parametrize(("buffer", "credit"), [(1, 2.0), (2, 2.0), (3, 5.0), (4, 2.0), (8, 9.0), (16, 2.0)])
def test_one_channel_carries_its_buffer_once_each_round_of_a_credit(buffer: int, credit: float) -> None:
    """A flit's place comes back after the rest of the pipeline, the wire, and the credit's own time.

    In a long message only the first flit is routed, so in the middle of it nothing else counts.
    """
    overhead, routing, latency, flits = 6, 2, 3.0, 400
    pipeline = overhead - routing - 1
    machine = chain(
        2, latency=latency, overhead=f"{overhead} ns", routing_delay=f"{routing} ns", vcs=1, buffer_flits=buffer,
        credit_delay=f"{credit} ns",
    )  # fmt: skip
    machine.send(way(2), 0, flits * FLIT)
    took = machine.run().arrivals[0].tail
    each = max(1.0, (pipeline + latency + credit) / buffer)
    assert took == pytest.approx(flits * each, abs=(buffer + 2) * (pipeline + latency + credit))
    assert took >= (flits - buffer) * each


@pytest.mark.parametrize(("flits", "routing"), [(1, 0), (1, 1), (1, 3), (2, 1), (5, 2)])
def test_one_channel_passes_a_message_each_length_and_routing_and_cycle(flits: int, routing: int) -> None:
    """The next message is routed when the last flit of the one before has gone, then asks for a channel."""
    machine = chain(2, overhead="6 ns", routing_delay=f"{routing} ns", vcs=1, buffer_flits=64)
    for _ in range(40):
        machine.send(way(2), 0, flits * FLIT)
    ends = [arrival.tail for arrival in machine.run().arrivals]
    assert [b - a for a, b in pairwise(ends)] == [flits + 1 + routing] * 39


def test_a_full_buffer_stops_the_flits_behind_it_all_the_way_to_the_source() -> None:
    """The last wire is hardly there: what has left the source fits the buffers, and one flit for each output."""
    routers, buffer = 4, 3
    machine = chain(routers, last=0.001, overhead="2 ns", vcs=2, buffer_flits=buffer)
    for _ in range(10):
        machine.send(way(routers), 0, 20 * FLIT)
    machine.run(until_ns=5000)
    wires = {wire.name: wire.bytes_carried // FLIT for wire in machine.hardware.wires}
    assert wires["a->n0"] == 200, "the edge without credits waits without limit"
    assert wires["n0->n1"] == 3 * 2 * buffer + 1
    assert wires["n1->n2"] == 2 * 2 * buffer + 1
    assert wires["n2->n3"] == 1 * 2 * buffer + 1


def test_a_source_with_channels_of_its_own_is_blocked_too() -> None:
    names: dict[str, Model] = {name: place(RouterVc, overhead="2 ns", vcs=1, buffer_flits=2) for name in ("a", "n0")}
    machine = Harness({**names, "b": Probe}, [*line("a", "n0", bandwidth=RATE), edge("n0", "b", bandwidth=0.001)])
    for _ in range(5):
        machine.send(("a", "n0", "b"), 0, FLIT)
    machine.run(until_ns=2000)
    assert machine.component("a").out_ports["n0"].bytes_carried == 3 * FLIT
    assert len(machine.component("a").waiting) == 4, "the first is all on the last wire"


def test_blocked_messages_do_not_hold_up_others_that_have_a_channel() -> None:
    """With one channel the message for the free output waits behind the other; with two it passes."""
    arrived = {}
    for vcs in (1, 2):
        nodes: dict[str, Model] = {
            name: place(RouterVc, overhead="2 ns", vcs=vcs, buffer_flits=2) for name in ("m", "n")
        }
        ends: dict[str, Model] = {"a": Probe, "slow": Probe, "free": Probe}
        wires: list[Edge] = [
            *line("a", "m", "n", bandwidth=RATE),
            edge("n", "slow", bandwidth=0.01),
            edge("n", "free", bandwidth=RATE),
        ]
        machine = Harness({**nodes, **ends}, wires)
        machine.send(("a", "m", "n", "slow"), 0, 8 * FLIT)
        machine.send(("a", "m", "n", "free"), 0, FLIT)
        arrived[vcs] = next(each.tail for each in machine.run().arrivals if each.node == "free")
    assert arrived[1] > FLIT / 0.01
    assert arrived[2] < 40


def test_a_message_is_delivered_when_its_last_flit_is_there_even_to_who_acts_on_heads() -> None:
    machine = Harness(
        {"a": Probe, "n": place(RouterVc, overhead="4 ns"), "b": HeadProbe},
        line("a", "n", "b", bandwidth=RATE),
    )
    machine.send(("a", "n", "b"), 0, 10 * FLIT)
    (arrival,) = machine.run().arrivals
    assert (arrival.head, arrival.tail) == (1 + 4 + 9 + 1, 1 + 4 + 10 + 1)
    assert arrival.time == arrival.head


def overtaking(in_order: bool) -> list[tuple[str, float]]:
    """Send a long message and a short one, on one path, where each input gives every second cycle to each of them."""
    machine = chain(2, overhead="3 ns", vcs=2, buffer_flits=8, in_order=in_order)
    machine.send(way(2), 0, 40 * FLIT)
    machine.send(way(2), 0, FLIT)
    return [(arrival.label, arrival.tail) for arrival in machine.run().arrivals]


def test_messages_of_one_path_come_out_in_order_unless_they_need_not() -> None:
    loose, kept = overtaking(False), overtaking(True)
    assert [label for label, _ in loose] == ["Ping1", "Ping2"], "the first wire serialises them"
    assert loose == kept

    def crossing(in_order: bool) -> list[str]:
        nodes: dict[str, Model] = {
            name: place(RouterVc, overhead="3 ns", vcs=2, in_order=in_order) for name in ("s", "n")
        }
        machine = Harness({**nodes, "b": Probe}, line("s", "n", "b", bandwidth=RATE))
        machine.send(("s", "n", "b"), 0, 40 * FLIT)
        machine.send(("s", "n", "b"), 0, FLIT)
        return [arrival.label for arrival in machine.run().arrivals]

    assert crossing(False) == ["Ping2", "Ping1"]
    assert crossing(True) == ["Ping1", "Ping2"]


@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 400), st.booleans()), min_size=1, max_size=12),
    st.sampled_from([1, 2, 4]),
    st.sampled_from([1, 3, 8]),
)
def test_ledgers_add_up_and_no_byte_is_lost(feeds: list[tuple[int, int, bool]], vcs: int, buffer: int) -> None:
    machine = chain(3, last=20.0, overhead="5 ns", vcs=vcs, buffer_flits=buffer)
    sent = []
    for at, nbytes, back in sorted(feeds):
        path = way(3)[::-1] if back else way(3)
        sent.append(machine.send(path, at, nbytes))
    machine.run()
    assert len(machine.arrivals) == len(sent)
    for msg in sent:
        parts = msg.propagation, msg.serialisation, msg.overhead, msg.queueing, msg.service
        assert all(part >= 0 for part in parts)
        assert sum(parts) == msg.elapsed
        assert (msg.propagation, msg.overhead) == (4.0, 15.0)
    there = sum(nbytes for _, nbytes, back in feeds if not back)
    assert machine.component("n1").out_ports["n2"].bytes_carried == there
    assert all(wire.busy_ns <= machine.env.now for wire in machine.hardware.wires)
    assert all(not component.waiting for component in machine.hardware.components.values())


def test_a_request_that_ends_at_a_router_is_answered_over_the_network() -> None:
    machine = Harness(
        {"a": Probe, "m": place(RouterVc, overhead="3 ns"), "n": place(RouterVc, overhead="3 ns")},
        line("a", "m", "n", bandwidth=RATE),
    )
    echo = Echo(3 * FLIT, 5 * FLIT)
    machine.send(("a", "m", "n"), 0, msg=echo)
    machine.run()
    request = (1 + 3 + 1 + 3) + 3
    head_of_answer = request - 1  # a message that ends is answered when its last flit is there
    assert echo.done == pytest.approx(head_of_answer + (3 + 1 + 3 + 1) + 5, abs=1)


def test_a_slow_wire_is_kept_full_though_the_router_decides_for_a_fast_one_too() -> None:
    """Flits leave for it up to a cycle ahead, as it is seldom free at the moment of a decision."""
    wires = [*line("a", "n", bandwidth=RATE), *line("c", "n", bandwidth=RATE)]
    wires += [edge("n", "slow", bandwidth=20.0), edge("n", "fast", bandwidth=RATE)]
    machine = Harness(
        {"n": place(RouterVc, overhead="3 ns"), "a": Probe, "c": Probe, "slow": Probe, "fast": Probe}, wires
    )
    machine.send(("a", "n", "slow"), 0, 100 * FLIT)
    machine.send(("c", "n", "fast"), 0.5, 200 * FLIT)
    ends = {arrival.node: arrival.tail for arrival in machine.run().arrivals}
    assert ends["slow"] == pytest.approx(1 + 3 + 1 + 100 * 1.6, abs=2)
    assert ends["fast"] == pytest.approx(0.5 + 1 + 3 + 1 + 200, abs=2)


def test_waiting_for_a_wire_is_queueing_and_not_serialisation() -> None:
    rig = Rig(RouterVc, {"overhead": "3 ns"}, inputs=2, bandwidth=RATE, latency=1.0)
    rig.feed(0, FLIT, port=0).feed(0, FLIT, port=1).run()
    parts = [(msg.message.serialisation, msg.message.queueing) for msg in rig.arrivals]
    assert parts == [(1.0, 0.0), (1.0, 1.0)]


@pytest.mark.parametrize(("nbytes", "flits"), [(0, 1), (32, 2), (33, 3), (64, 3), (65, 5)])
def test_a_message_is_as_many_flits_as_its_bytes_and_headers_need_anywhere(nbytes: int, flits: int) -> None:
    """A header of a flit for each 64 B on the last wire; those before have none."""
    wires = [*line("a", "m", "n", bandwidth=RATE), edge("n", "b", bandwidth=RATE, payload_bytes=64, header_bytes=FLIT)]
    machine = Harness({"a": Probe, "m": RouterVc, "n": RouterVc, "b": Probe}, wires)
    machine.send(("a", "m", "n", "b"), 0, nbytes)
    machine.run()
    assert machine.arrivals[0].tail == 1 + 4 + 1 + 4 + 1 + flits
    assert machine.component("n").out_ports["b"].busy_ns == flits


def test_each_router_logs_an_op_as_forwarding_does() -> None:
    rig = Rig(RouterVc, {"overhead": "6 ns"}, bandwidth=RATE, latency=1.0).feed(0, FLIT).run()
    assert [(each.t_start, each.t_end) for each in rig.log] == [(1.0, 7.0)]


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"buffer_flits": 0}, "under_test.buffer_flits must be an integer from 1 to 65536, not 0."),
        ({"vcs": 0}, "under_test.vcs must be an integer from 1 to 64, not 0."),
        ({"credit_delay": "0 ns"}, "under_test.credit_delay must be a positive time, not '0 ns'."),
        (
            {"overhead": "1 ns"},
            "under_test: overhead must hold routing_delay and a cycle of 1 ns for the allocation of a channel, 2 ns "
            "together, not 1 ns; raise overhead or lower routing_delay.",
        ),
    ],
)
def test_what_cannot_work_is_refused(params: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Rig(RouterVc, params, bandwidth=RATE)
    assert str(caught.value) == sentence


def test_neighbours_must_agree_on_what_a_flit_is() -> None:
    nodes: dict[str, Model] = {"a": Probe, "m": RouterVc, "n": place(RouterVc, flit="64 B"), "b": Probe}
    with pytest.raises(ConfigError) as caught:
        Harness(nodes, line("a", "m", "n", "b", bandwidth=RATE))
    assert str(caught.value) == "m: flit must be that of n, 64 B, not 32 B; give both the same."


def test_a_circle_of_waits_is_refused_where_no_order_of_dimensions_prevents_it() -> None:
    """Four routers in a ring that are no mesh: messages over two links each, one way round."""
    names = ["p", "q", "r", "s"]
    nodes: dict[str, Model] = {name: place(RouterVc, overhead="2 ns") for name in names}
    ends: dict[str, Model] = {f"{name}_end": Probe for name in names}
    wires = [edge(a, b, bandwidth=RATE) for a, b in zip(names, names[1:] + names[:1], strict=True)]
    wires += [each for name in names for each in line(f"{name}_end", name, bandwidth=RATE)]
    machine = Harness({**nodes, **ends}, wires)
    for index in range(4):
        a, b, c = (names[(index + step) % 4] for step in range(3))
        machine.send((f"{a}_end", a, b, c, f"{c}_end"), 0, FLIT)
    with pytest.raises(ConfigError) as caught:
        machine.run()
    assert str(caught.value) == (
        "routers with virtual channels must not wait for each other in a cycle, but messages may block each other "
        "along p -> q -> r -> s -> p; choose builtin.forwarding for one of these nodes."
    )


@pytest.mark.parametrize(("vcs", "buffer", "told"), [(1, 4, "17.4%"), (1, 22, "95.7%"), (1, 23, None), (2, 12, None),
                                                     (2, 8, "69.6%")])  # fmt: skip
def test_buffers_too_small_for_a_wire_are_told(vcs: int, buffer: int, told: str | None) -> None:
    """A flit takes 1 ns; a credit is back after 4 - 1 - 1 of the router, 9 of the wire, and 12: after 23 ns."""

    def arrives(flits: int, buffer: int) -> float:
        router = place(RouterVc, overhead="4 ns", credit_delay="12 ns", vcs=vcs, buffer_flits=buffer)
        machine = Harness({"a": Probe, "m": router, "n": router, "b": Probe}, line("a", "m", "n", "b", bandwidth=RATE,
                                                                                   latency=9))  # fmt: skip
        machine.send(("a", "m", "n", "b"), nbytes=FLIT * flits)
        return machine.run().arrivals[0].tail

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        arrives(1, buffer)
    channels = "1 channel" if vcs == 1 else "2 channels"
    assert [(str(each.message), each.category) for each in caught] == [
        (
            f"{end}: {channels} of {buffer} flits carry at most {told} of what the wire from {start} could, as a "
            f"credit is back after 23 ns; raise buffer_flits to {-(-23 // vcs)}, or to 23 for a single message.",
            KernbenchWarning,
        )
        for start, end in [("m", "n")]
        if told
    ]
    lone = arrives(1, 23)
    assert arrives(500, 23) == lone + 499
    assert arrives(500, 22) > lone + 510
