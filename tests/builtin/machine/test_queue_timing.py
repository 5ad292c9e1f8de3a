"""How long messages between PEs take, against the closed form of docs/timing_model.md, with paths from networkx."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import networkx as nx
import pytest

from kernbench_builtin.components import pe_dma, pe_ipcq
from kernbench_builtin.components.pe_dma import PeDma
from kernbench_builtin.components.pe_ipcq import PeIpcq
from kernbench_core.engine.bound import one_way_latency
from kernbench_core.errors import SanityError
from kernbench_core.fabric import OneWay
from kernbench_core.graph import Edge, EdgeKind, Graph
from kernbench_core.host.sanity import check
from kernbench_core.host.session import GraphEngine
from kernbench_core.host.timing import resource_uses
from kernbench_core.messages import MsgBase
from kernbench_core.plugins import load_plugins
from kernbench_core.runs.bench_run import configure
from kernbench_core.topology.compilation import compile_topology
from kernbench_core.units import format_time

#: Machines that are slow enough for one wire to set the pace, whatever the units of a PE can do.
TWO_SIPS = ("default", "system.sips=2", "sip.mesh.width=2", "sip.mesh.height=1", "cube.pes=4")
CHUNK = 4096
METADATA, CREDIT = 16, 8
#: Parameters of the presets, in ns: pe_ipcq, a DMA's set-up of a descriptor and its first chunk, the scratchpad.
IPCQ, SET_UP, NEXT_CHUNK, TCM = 4.0, 16.0 + 4.0, 4.0, 3.0


def grid(ns: float) -> float:
    """Round a duration up to the grid of 2^-16 ns."""
    return math.ceil(ns * 65536) / 65536


def simulate(kernel: Callable[..., Any], *given: str) -> GraphEngine:
    """Run a kernel on every PE of a machine of two SIPs of two cubes each."""
    plugins = load_plugins()
    topology, *sets = TWO_SIPS
    graph = compile_topology(configure(plugins, topology, None, (*sets, *given)), plugins)
    engine = GraphEngine(graph, plugins.components)
    engine.run(lambda rt: rt.launch(kernel))
    return engine


def pe(engine: GraphEngine, index: int) -> str:
    return engine.device.design.pes[index].prefix


def took(edge: Edge, nbytes: int) -> float:
    """How long a wire is busy with `nbytes`, headers included."""
    packets = max(1, -(-nbytes // edge.payload_bytes))
    return grid((nbytes + packets * edge.header_bytes) / edge.bandwidth)


def across(engine: GraphEngine, source: str, destination: str) -> list[str]:
    """Find the nodes from one PE's DMA to another's: the quickest way, through IO chiplets only to another SIP."""
    graph: Graph = engine.graph
    fabric = nx.DiGraph()
    inside = source.partition(".")[0] == destination.partition(".")[0]
    for (a, b), edge in graph.edges.items():
        if edge.kind not in (EdgeKind.COMMAND, EdgeKind.PE, EdgeKind.PCIE) and not (inside and ".io" in a + b):
            fabric.add_edge(a, b, ns=edge.latency + graph.nodes[b].params.get("overhead", 0.0))
    return list(nx.shortest_path(fabric, f"{source}.pe_dma", f"{destination}.pe_dma", weight="ns"))


def way(engine: GraphEngine, path: list[str], nbytes: int) -> float:
    """From the first byte on the first wire to the last byte off the last: cut-through at every node between."""
    edges = [engine.graph.edges[pair] for pair in pairwise(path)]
    fixed = sum(grid(edge.latency) for edge in edges)
    fixed += sum(grid(engine.hardware.components[node].overhead(None)) for node in path[1:-1])  # type: ignore[arg-type]
    return fixed + max(took(edge, nbytes) for edge in edges)


def inner(engine: GraphEngine, prefix: str, source: str, destination: str, nbytes: int) -> tuple[float, float]:
    """Latency of a wire inside a PE, and how long `nbytes` are on it."""
    edge = engine.graph.edges[f"{prefix}.{source}", f"{prefix}.{destination}"]
    return grid(edge.latency), took(edge, nbytes)


def hop(engine: GraphEngine, prefix: str, source: str, destination: str, nbytes: int = 0) -> float:
    """A message inside a PE, acted on when it is there whole."""
    return sum(inner(engine, prefix, source, destination, nbytes))


def read_head(engine: GraphEngine, prefix: str) -> float:
    """From a DMA's set-up to the first byte that the scratchpad gives it."""
    there = hop(engine, prefix, "pe_dma", "pe_tcm")
    return there + TCM + inner(engine, prefix, "pe_tcm", "pe_dma", 0)[0]


def write_tail(engine: GraphEngine, prefix: str) -> float:
    """From the last byte at the DMA to the last byte in the scratchpad."""
    return inner(engine, prefix, "pe_dma", "pe_tcm", 0)[0] + TCM


def arrival(engine: GraphEngine, a: str, b: str, nbytes: int) -> float:
    """From a tl.send at the pe_ipcq of `a` to the note of a message of at most a chunk, looked at by that of `b`."""
    path = across(engine, a, b)
    return (
        IPCQ + hop(engine, a, "pe_ipcq", "pe_dma", 32) + SET_UP + read_head(engine, a)
        + way(engine, path, nbytes + METADATA)
        + write_tail(engine, b) + hop(engine, b, "pe_dma", "pe_ipcq") + IPCQ
    )  # fmt: skip


def copy_out(engine: GraphEngine, b: str, nbytes: int) -> float:
    """From a message's arrival to the end of its receipt: out of the slot and into the tile."""
    if not nbytes:
        return 0.0
    through = max(inner(engine, b, "pe_tcm", "pe_dma", nbytes)[1], grid(nbytes / 512))
    moved = SET_UP + read_head(engine, b) + through + write_tail(engine, b)
    return hop(engine, b, "pe_ipcq", "pe_dma", 32) + moved + hop(engine, b, "pe_dma", "pe_ipcq") + IPCQ


def lone(count: int, to: int) -> Callable[..., Any]:
    """Send one message of `count` bytes from PE 0; its receiver has waited for it for long."""

    def kernel(tl: Any) -> None:
        if tl.program_id(0) == 0:
            tile = tl.full((count,), 1, "int8")
            for _ in range(8):
                tile = tile + 1 if count else tl.full((count,), 1, "int8")
            tl.send(tile, to)
        elif tl.program_id(0) == to:
            tl.recv((count,), "int8", 0)

    return kernel


@pytest.mark.parametrize("to", [1, 4, 8])
@pytest.mark.parametrize("nbytes", [0, 1, 100, CHUNK - METADATA])
def test_a_lone_message_takes_what_the_formula_says(nbytes: int, to: int) -> None:
    """Within a cube (PE 1), between cubes (PE 4) and between SIPs (PE 8): to the last bit."""
    engine = simulate(lone(nbytes, to))
    (send,) = [record for record in engine.op_log if record.op_name == "ipcq_send"]
    (copy,) = [record for record in engine.op_log if record.op_name == "ipcq_copy"]
    (receipt,) = [record for record in engine.op_log if record.op_name == "ipcq_recv"]
    a, b = pe(engine, 0), pe(engine, to)
    assert copy.t_end - send.t_start == arrival(engine, a, b, nbytes)
    assert receipt.t_end - copy.t_end == copy_out(engine, b, nbytes)


def credit_way(engine: GraphEngine, a: str, b: str) -> float:
    """From a slot that is given back at `b` to the next piece of a message leaving the pe_ipcq of `a`."""
    path = [f"{b}.pe_ipcq", *across(engine, b, a), f"{a}.pe_ipcq"]
    return way(engine, path, CREDIT) + IPCQ


def streams(engine: GraphEngine) -> list[float]:
    """When each piece of the one message had arrived, in ns."""
    return sorted(record.t_end for record in engine.op_log if record.op_name == "ipcq_copy")


@pytest.mark.parametrize("to", [1, 8])
@pytest.mark.parametrize("slot", [1024, CHUNK - METADATA - 16])
def test_one_slot_makes_a_round_trip_for_each_piece(slot: int, to: int) -> None:
    """A message of many pieces through a queue of one slot: the next leaves when the credit of the last is back."""
    slot = slot // 64 * 64
    given = ("components.pe_ipcq.params.slots=1", f"components.pe_ipcq.params.slot_bytes={slot} B")
    engine = simulate(lone(6 * slot, to), *given)
    a, b = pe(engine, 0), pe(engine, to)
    period = arrival(engine, a, b, slot) - IPCQ + copy_out(engine, b, slot) + credit_way(engine, a, b)
    assert [later - sooner for sooner, later in pairwise(streams(engine))] == [period] * 5


@pytest.mark.parametrize("to", [1, 8])
@pytest.mark.parametrize("slots", [2, 4, 12])
def test_a_stream_is_as_fast_as_its_wire_or_its_credits(slots: int, to: int) -> None:
    """A piece takes the most of what the narrowest wire needs for it and of the round trip / slots (to 3 %, for the
    scratchpad is shared by what lands and what is copied)."""
    slot, count = 4 * CHUNK, 37
    engine = simulate(lone(count * slot, to), f"components.pe_ipcq.params.slots={slots}", "pe.tcm.capacity=8 MiB")
    a, b, arrived = pe(engine, 0), pe(engine, to), streams(engine)
    edges = [engine.graph.edges[pair] for pair in pairwise(across(engine, a, b))]
    wire = max(3 * took(edge, CHUNK) + took(edge, CHUNK + METADATA) for edge in edges)
    whole = arrival(engine, a, b, CHUNK) - IPCQ + copy_out(engine, b, CHUNK) + credit_way(engine, a, b)
    round_trip = whole + wire - max(took(edge, CHUNK) for edge in edges) + 3 * CHUNK / 512
    period = (arrived[-1] - arrived[12]) / (count - 13)
    assert period == pytest.approx(max(wire, round_trip / slots), rel=0.03)
    assert period >= wire


def test_two_senders_over_one_link_have_half_of_it_each() -> None:
    """PEs 0 and 1 send to PEs of the other SIP at once: the link is always busy, each stream takes twice as long."""
    slot, count = 4 * CHUNK, 24

    def kernel(tl: Any) -> None:
        me = tl.program_id(0)
        if me in senders:
            tl.send(tl.full((count * slot,), 1, "int8"), me + 8)
        elif me - 8 in senders:
            tl.recv((count * slot,), "int8", me - 8)

    def rate(engine: GraphEngine, sender: int) -> float:
        receiver = f"{pe(engine, sender + 8)}.pe_ipcq"
        arrived = sorted(r.t_end for r in engine.op_log if r.op_name == "ipcq_copy" and r.component_id == receiver)
        return (len(arrived) - 9) / (arrived[-1] - arrived[8])

    given = ("components.pe_ipcq.params.slots=12", "pe.tcm.capacity=8 MiB")
    senders = (0,)
    alone = rate(simulate(kernel, *given), 0)
    senders = (0, 1)
    both = simulate(kernel, *given)
    for sender in senders:
        assert rate(both, sender) == pytest.approx(alone / 2, rel=0.05)


def test_credits_take_the_wires_back() -> None:
    """Each piece has one credit, which takes its bytes, headers apart, of every wire of the way back, and no others."""
    engine = simulate(lone(5 * 1024, 8), "components.pe_ipcq.params.slot_bytes=1 KiB")
    a, b = pe(engine, 0), pe(engine, 8)
    there, back = across(engine, a, b), across(engine, b, a)
    for path, nbytes in ((there, 5 * (1024 + METADATA)), (back, 5 * CREDIT)):
        for source, destination in pairwise(path):
            if "link" in source and "link" in destination:
                assert engine.hardware.components[source].out_ports[destination].bytes_carried == nbytes
    assert engine.hardware.pushed_bytes == engine.hardware.landed_bytes == 5 * 1024


def test_the_lower_bound_of_a_lone_chunk_is_exact() -> None:
    """What the sanity check compares with is what a lone chunk takes, and never more than one takes under load."""
    engine = simulate(lone(1000, 8))
    (entry,) = engine.hardware.one_ways.values()
    assert entry.nbytes == 1000 + METADATA
    found = one_way_latency(engine.graph, engine.hardware.components, MsgBase(entry.nbytes, entry.path))
    path = across(engine, pe(engine, 0), pe(engine, 8))
    assert found == way(engine, path, entry.nbytes) == entry.least_ns
    assert [*entry.path] == path


def test_a_message_below_its_bound_or_lost_is_told() -> None:
    """The checks at the end see a push that was too quick, bytes that did not land, and a chunk without an end."""
    engine = simulate(lone(1000, 8))
    ((key, entry),) = engine.hardware.one_ways.items()
    engine.hardware.one_ways[key] = OneWay(entry.least_ns / 2, entry.path, entry.nbytes)
    engine.hardware.landed_bytes -= 1
    engine.hardware.completed -= 1
    with pytest.raises(SanityError) as caught:
        check(engine.hardware, engine.get_timing_result())
    first, lost, quick = str(caught.value).splitlines()
    assert first == (
        "do not use this result: 1 memory transactions were sent but 0 answered; each must be answered once."
    )
    assert lost == "  1000 B of messages between PEs were sent but 999 B got into their slots; none may be lost."
    assert quick == (
        f"  a message of 1016 B from sip0.cube0.pe0.pe_dma to sip1.cube0.pe0.pe_dma took "
        f"{format_time(entry.least_ns / 2)}, below its lower bound of {format_time(entry.least_ns)}."
    )


@pytest.mark.parametrize("overhead", [0.5, 10_000.0])
def test_the_queues_and_the_dma_are_busy_for_as_long_as_they_served(
    monkeypatch: pytest.MonkeyPatch, overhead: float
) -> None:
    """At any look, and at the end, which leaves the last credits to be looked at: spans of service, up to then.

    Looks follow each other; a chunk has its place from when it is taken until it ends, which the DMA knows ahead.
    """
    looks: dict[str, list[float]] = {}
    chunks: dict[str, list[tuple[float, float]]] = {}

    class Queues(PeIpcq):
        def _look(self) -> float:
            looks.setdefault(self.id, []).append(self.env.now)
            out = super()._look()
            assert self.busy_by(self.env.now) == within(back_to_back(looks[self.id], overhead), self.env.now)
            return out

    class Dma(PeDma):
        def _end(self, chunk_msg: Any, end: float) -> None:
            chunks.setdefault(self.id, []).append((chunk_msg.taken, end))
            super()._end(chunk_msg, end)
            now = self.env.now
            under_way = [(each.taken, now) for each in self._active if each.taken < now]
            assert self.busy_by(now) == within([*chunks[self.id], *under_way], now)

    monkeypatch.setattr(pe_ipcq, "PeIpcq", Queues)
    monkeypatch.setattr(pe_dma, "PeDma", Dma)

    def kernel(tl: Any) -> None:
        me = tl.program_id(0)
        for _ in range(5):
            tl.send(tl.full((12000,), 1, "int8"), me ^ 1, wait=False)
        for _ in range(5):
            tl.recv((12000,), "int8", me ^ 1)

    engine = simulate(kernel, f"components.pe_ipcq.params.overhead={overhead} ns")
    total = engine.get_timing_result().total_ns
    uses = {use.name: use for use in resource_uses(engine.hardware, total)}
    beyond = 0.0
    for unit, times in looks.items():
        spans = back_to_back(times, overhead)
        assert uses[unit].busy_ns == within(spans, total) < total
        beyond = max(beyond, spans[-1][1] - total)
    assert (beyond > 0.0) == (overhead > 1.0)
    for unit, spans in chunks.items():
        assert uses[unit].busy_ns == within(spans, total)


def back_to_back(times: list[float], each: float) -> list[tuple[float, float]]:
    """Return the spans of services of one length that arrive at `times` and follow each other."""
    spans: list[tuple[float, float]] = []
    for time in times:
        start = max(time, spans[-1][1]) if spans else time
        spans.append((start, start + each))
    return spans


def within(spans: list[tuple[float, float]], until: float) -> float:
    """Sum up how long spans last before `until`."""
    return sum(max(0.0, min(end, until) - start) for start, end in spans)
