"""The lower bound: recomputed with networkx and fractions, met by a lone chunk, never undercut under load."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import pairwise
from typing import Any

import networkx as nx
import pytest

from kernbench_core.component import ComponentBase
from kernbench_core.engine.bound import formula_latency, one_way_latency
from kernbench_core.environment import Environment, ProcessGenerator
from kernbench_core.errors import ComponentError
from kernbench_core.graph import Edge
from kernbench_core.messages import MsgBase, Transaction
from kernbench_core.testing import Harness, Probe, edge, line, place
from kernbench_core.values.region import Region
from tests.core.toy_machine import ToyForward, ToyMemory

SOURCES, MEMORIES = ("s0", "s1", "s2"), ("m0", "m1")


class StoreAndForward(ToyForward):
    """Wait for the last byte."""

    ON_HEAD = False


def nothing(_: object) -> None:
    """Ignore an answer."""


def grid(ns: Fraction | float) -> Fraction:
    """Round up to 2^-16 ns."""
    return Fraction(math.ceil(Fraction(ns) * 65536), 65536)


def random_machine(rng: random.Random) -> tuple[Harness, nx.DiGraph]:
    """Return a machine of forwarding nodes between sources and memories, and the same as a networkx graph."""
    names = [f"n{i}" for i in range(6)]
    nodes: dict[str, Any] = dict.fromkeys(SOURCES, Probe)
    facts: dict[str, dict[str, Any]] = {name: {"overhead": 0.0, "cut": False} for name in SOURCES}
    for name in names:
        cut = rng.random() < 0.7
        overhead = rng.choice((0, 1, 2.5, 0.3))
        nodes[name] = place(ToyForward if cut else StoreAndForward, overhead=f"{overhead} ns")
        facts[name] = {"overhead": overhead, "cut": cut}
    for name in MEMORIES:
        channels, bandwidth, latency = rng.choice((1, 4)), rng.choice((2, 7, 32)), rng.choice((5, 12.3))
        params = {"channels": channels, "bandwidth": f"{bandwidth} GB/s", "latency": f"{latency} ns"}
        nodes[name] = place(ToyMemory, overhead="3 ns", **params)
        facts[name] = {"overhead": 3.0, "cut": None, "channels": channels, "bandwidth": bandwidth, "latency": latency}
    pairs = [(a, rng.choice(names)) for a in (*SOURCES, *MEMORIES)] + list(nx.path_graph(names).edges)
    pairs += [tuple(rng.sample(names, 2)) for _ in range(4)]
    edges: dict[tuple[str, str], Edge] = {}
    for a, b in pairs:
        for src, dst in ((a, b), (b, a)):
            wire = {"bandwidth": rng.choice((3.0, 10.0, 64.0)), "latency": rng.choice((1.0, 0.7, 40.0))}
            edges[src, dst] = edge(src, dst, payload_bytes=256, header_bytes=rng.choice((0, 16)), **wire)
    drawn = nx.DiGraph()
    for name, known in facts.items():
        drawn.add_node(name, **known)
    for (src, dst), each in edges.items():
        drawn.add_edge(src, dst, latency=each.latency, edge=each)
    return Harness(nodes, edges.values()), drawn


def transaction(rng: random.Random, drawn: nx.DiGraph, op: str, done: Any = nothing) -> Transaction:
    """Return a random transaction along the path of least latency."""
    path = tuple(nx.shortest_path(drawn, rng.choice(SOURCES), rng.choice(MEMORIES), weight="latency"))
    nbytes = rng.choice((1, 64, 256, 1000, 4096))
    return Transaction(op, (Region(256 * rng.randint(0, 9) + rng.choice((0, 100)), nbytes),), nbytes, path, done)


def recomputed(drawn: nx.DiGraph, sent: Transaction) -> Fraction:
    """Compute the bound of a round trip from the graph's attributes alone."""
    total, slowest = Fraction(0), Fraction(0)
    memory = drawn.nodes[sent.path[-1]]

    def walk(path: tuple[str, ...], nbytes: int) -> None:
        nonlocal total, slowest
        for a, b in pairwise(path):
            wire = drawn.edges[a, b]["edge"]
            on_wire = nbytes + max(1, -(-nbytes // wire.payload_bytes)) * wire.header_bytes
            slowest = max(slowest, grid(on_wire / wire.bandwidth))
            total += grid(wire.latency) + grid(drawn.nodes[b]["overhead"])
            if drawn.nodes[b]["cut"] is False or (drawn.nodes[b]["cut"] is None and sent.op == "read"):
                total, slowest = total + slowest, Fraction(0)

    walk(sent.path, sent.total if sent.op == "write" else 0)
    (region,) = sent.regions
    shares = [0] * memory["channels"]
    for address in range(region.base, region.end):
        shares[address // 256 % memory["channels"]] += 1
    slowest = max([slowest, *(grid(share / memory["bandwidth"]) for share in shares)])
    total += grid(memory["latency"])
    if sent.op == "write":
        total, slowest = total + slowest, Fraction(0)
    walk(sent.path[::-1], 0 if sent.op == "write" else sent.total)
    return total + slowest


@pytest.mark.parametrize("op", ["read", "write"])
@pytest.mark.parametrize("seed", range(25))
def test_bound_is_the_recomputed_one_and_a_lone_chunk_meets_it(seed: int, op: str) -> None:
    """Formula, recomputation and simulation of one chunk alone agree bit for bit."""
    rng = random.Random(seed)
    machine, drawn = random_machine(rng)
    sent = transaction(rng, drawn, op)
    expected = recomputed(drawn, sent)
    hardware = machine.hardware
    copy = Transaction(op, sent.regions, sent.total, sent.path, nothing)
    assert formula_latency(hardware.graph, hardware.components, copy) == expected
    machine.send(sent.path, 5.0, msg=sent)
    machine.run()
    assert sent.elapsed == expected


@pytest.mark.parametrize("seed", range(8))
def test_no_chunk_undercuts_its_bound_under_load(seed: int) -> None:
    """Of many transactions that meet on wires and channels, none is faster than its bound, and some are slower."""
    rng = random.Random(100 + seed)
    machine, drawn = random_machine(rng)
    all_sent = []
    for _ in range(150):
        sent = transaction(rng, drawn, rng.choice(("read", "write")))
        bound = recomputed(drawn, sent)
        machine.send(sent.path, float(rng.randint(0, 2000)), msg=sent)
        all_sent.append((sent, bound))
    machine.run()
    assert all(sent.elapsed >= bound for sent, bound in all_sent)
    assert any(sent.elapsed > bound for sent, bound in all_sent)


def test_channels_of_unequal_latency_are_not_overestimated() -> None:
    """The slowest channel may have the shorter latency: the bound adds the least of them."""

    class Uneven(ToyMemory):
        def connect(self) -> None:
            self.wires[0].latency = 100.0

    machine = Harness({"s0": Probe, "m0": Uneven}, [edge("s0", "m0"), edge("m0", "s0")])
    # 1 byte on the channel of 100 ns, 256 B on one of 10 ns at 8 B/ns
    sent = Transaction("write", (Region(255, 257),), 257, ("s0", "m0"), nothing)
    copy = Transaction("write", (Region(255, 257),), 257, ("s0", "m0"), nothing)
    bound = formula_latency(machine.hardware.graph, machine.hardware.components, copy)
    machine.send(sent.path, 0.0, msg=sent)
    machine.run()
    assert sent.elapsed >= bound


def test_a_run_on_the_way_adds_what_it_says() -> None:
    """A lone chunk through a node that runs takes its bound where the node says how long it takes, each way."""

    class Runs(ComponentBase):
        def run(self, env: Environment, msg: MsgBase) -> ProcessGenerator:
            yield env.timeout(50.0)

        def min_service_ns(self, msg: MsgBase) -> float:
            return 50.0

    edges = [*line("a", "b", "c", bandwidth=8, latency=2), *line("c", "m", bandwidth=4, latency=3)]
    nodes = {"a": Probe, "b": place(ToyForward, overhead="5 ns"), "c": Runs, "m": ToyMemory}
    machine = Harness(nodes, edges)
    sent, copy = (Transaction("read", (Region(0, 64),), 64, ("a", "b", "c", "m"), nothing) for _ in range(2))
    bound = formula_latency(machine.hardware.graph, machine.hardware.components, copy)
    machine.send(sent.path, 0.0, msg=sent)
    machine.run()
    assert sent.elapsed == bound > 2 * (5 + 50) + 64 / 4 + 64 / 8
    assert ComponentBase.min_service_ns(machine.component("c"), sent) == 0.0


@pytest.mark.parametrize("found", [None, math.nan, -1.0, "3 ns"])
def test_a_least_time_that_is_none_is_told_with_its_model(found: Any) -> None:
    """And nothing of kernbench is blamed for what comes of it."""

    class Odd(ToyForward):
        def min_service_ns(self, msg: MsgBase) -> Any:
            return found

    machine = Harness({"a": Probe, "b": place(Odd, overhead="5 ns")}, line("a", "b", bandwidth=8, latency=2))
    with pytest.raises(ComponentError) as caught:
        one_way_latency(machine.hardware.graph, machine.hardware.components, MsgBase(64, ("a", "b")))
    model = f"b: {__name__}.{Odd.__qualname__}.min_service_ns"
    must = f"must return a finite time in ns, at least 0, not {found!r}"
    kind = machine.component("b").node.kind
    assert str(caught.value) == f"{model} {must}; correct the component or choose another one for kind {kind!r}."


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (None, "'NoneType' object is not iterable"),
        ([(1, 0, 2)], "division by zero"),
    ],
)
def test_channels_that_are_none_are_told_with_their_model(found: Any, why: str) -> None:
    """They are read for bounds only, in no method of the model."""

    class Odd(ToyMemory):
        def channels(self, msg: MsgBase) -> Any:
            return found

    machine = Harness({"s0": Probe, "m0": Odd}, [edge("s0", "m0"), edge("m0", "s0")])
    with pytest.raises(ComponentError) as caught:
        sent = Transaction("read", (Region(0, 64),), 64, ("s0", "m0"), nothing)
        formula_latency(machine.hardware.graph, machine.hardware.components, sent)
    kind = machine.component("m0").node.kind
    assert str(caught.value) == (
        f"m0: {__name__}.{Odd.__qualname__}.channels must return (bytes, bytes/ns, latency in ns) of each channel, or "
        f"nothing ({why}), not {found!r}; correct the component or choose another one for kind {kind!r}."
    )
