"""Every link of a machine of toys with what passed it, against sums by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from kernbench_builtin.machines.figures.links import links
from kernbench_core.host.session import GraphEngine
from kernbench_core.messages import MemoryReadMsg, MemoryWriteMsg
from kernbench_core.values.region import Region
from tests.core.toy_machine import toy_engine

THERE = ("host->sip0.io0.pcie_ep", "sip0.io0.pcie_ep->sip0.cube0.r0c0", "sip0.cube0.r0c0->sip0.cube0.hbm_ctrl0")
CHANNELS = tuple(f"sip0.cube0.hbm_ctrl0#pc{i}" for i in range(4))


def copied(*requests: Any, pes: int = 1) -> GraphEngine:
    """Return a session after requests of the host, put in together."""
    engine = toy_engine(pes=pes)
    for request in requests:
        engine.submit(request)
    engine.advance()
    return engine


def at(offset: int, nbytes: int) -> tuple[Region, ...]:
    """Return bytes of the first memory."""
    start = toy_engine(pes=1).machine.design.address_map.encode(0, 0, "hbm0")
    return (Region(start + offset, nbytes),)


def of(engine: GraphEngine, names: Sequence[str], column: str) -> list[Any]:
    """Return what a column says of links, by their names."""
    found = links(engine.hardware)
    rows = found["name"].tolist()
    return [found[column][rows.index(name)].item() for name in names]


def test_a_row_for_each_edge_and_each_channel_used_or_not() -> None:
    """With the numbers of the design, and both ends; a channel lies within its memory."""
    engine = copied(pes=2)
    found = links(engine.hardware)
    edges = {f"{src}->{dst}": edge for (src, dst), edge in engine.graph.edges.items()}
    wires = {row["name"]: row for row in found if "#" not in row["name"]}
    channels = [row for row in found if "#" in row["name"]]
    assert wires.keys() == edges.keys()
    assert len(found) == len(edges) + 2 * 4
    for name, edge in edges.items():
        row = wires[name]
        assert (row["source"], row["destination"]) == (edge.src, edge.dst)
        assert (row["gb_per_s"], row["latency_ns"], row["kind"]) == (
            edge.bandwidth, edge.latency, f"{edge.kind.value} wire",
        )  # fmt: skip
    columns = ("source", "destination", "kind", "gb_per_s", "latency_ns")
    assert {tuple(row[column] for column in columns) for row in channels} == {
        (memory, memory, "hbm_ctrl channel", 8.0, 10.0) for memory in ("sip0.cube0.hbm_ctrl0", "sip0.cube0.hbm_ctrl1")
    }
    for column in ("bytes", "deliveries", "busy_ns", "utilisation", "waits", "waited_ns", "longest_wait_ns"):
        assert not found[column].any(), column


def test_what_a_write_leaves_on_its_way() -> None:
    """Payload is counted without headers, time with them: two of 16 B on 16 B/ns, none on the way of 64 B/ns."""
    engine = copied(MemoryWriteMsg(at(0, 512)))
    back = ["->".join(reversed(name.split("->"))) for name in THERE]
    assert of(engine, THERE, "bytes") == [512] * 3
    assert of(engine, THERE, "busy_ns") == [(512 + 2 * 16) / 16, 512 / 64, 512 / 64]
    assert of(engine, back, "bytes") == [0] * 3
    assert of(engine, back, "busy_ns") == [16 / 16, 0.0, 0.0]
    assert of(engine, [*THERE, *back], "deliveries") == [1] * 6
    # 256 B of it on each of two channels, of which the last to end tells of both
    assert of(engine, CHANNELS, "bytes") == [256, 256, 0, 0]
    assert of(engine, CHANNELS, "busy_ns") == [256 / 8, 256 / 8, 0.0, 0.0]
    assert sum(of(engine, CHANNELS, "deliveries")) == 1
    total = engine.env.now
    assert links(engine.hardware)["utilisation"] == pytest.approx(links(engine.hardware)["busy_ns"] / total)
    assert links(engine.hardware)["bytes"].sum() == 3 * 512 + 2 * 256


def test_two_at_once_wait_where_the_way_is_narrow() -> None:
    """The second stands at the first wire for as long as the first one takes it, and nowhere after that."""
    engine = copied(MemoryWriteMsg(at(0, 512)), MemoryWriteMsg(at(512, 512)), MemoryReadMsg(at(1024, 512)))
    took = (512 + 2 * 16) / 16
    assert of(engine, THERE, "waits") == [2, 0, 0]
    assert of(engine, THERE, "waited_ns") == [took + 2 * took, 0.0, 0.0]
    assert of(engine, THERE, "longest_wait_ns") == [2 * took, 0.0, 0.0]


def test_columns_of_texts_are_arrays_of_texts() -> None:
    """Also where many rows have the same."""
    kinds = links(copied().hardware)["kind"]
    assert isinstance(kinds, np.ndarray) and kinds.dtype == object
    assert set(kinds.tolist()) == {"pcie wire", "io_noc wire", "hbm wire", "command wire", "hbm_ctrl channel"}


def test_what_is_booked_for_later_is_no_use_yet() -> None:
    """Asked in the middle of a run: half of the first wire's 34 ns are over when half of them are."""
    engine = toy_engine(pes=1)
    engine.submit(MemoryWriteMsg(at(0, 512)))
    engine.env.advance(1)  # the host's: it has taken the wire from 2 ns on
    assert of(engine, THERE, "bytes") == [512, 0, 0]
    assert of(engine, THERE, "busy_ns") == [0.0, 0.0, 0.0]
    engine.env.timeout(2.0 + 17.0)
    while engine.env.now < 19.0:
        engine.env.advance(1)
    assert of(engine, THERE, "busy_ns")[0] == 17.0
    assert of(engine, THERE, "utilisation")[0] == 17.0 / 19.0
