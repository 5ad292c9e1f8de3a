"""Loads under way find what others write until they complete, and of their own PE what was written before them."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kernbench_core.values.memory_store import MemoryStore
from kernbench_core.values.region import Region

ROOM = 32


@st.composite
def places(draw: Any) -> tuple[Region, ...]:
    """One or two strided regions of a small memory, which may overlap each other."""
    found = []
    for _ in range(draw(st.integers(1, 2))):
        width, rows = draw(st.integers(1, 5)), draw(st.integers(1, 3))
        pitch = width + draw(st.integers(0, 3))
        base = draw(st.integers(0, ROOM - ((rows - 1) * pitch + width)))
        found.append(Region(base, width, rows, pitch if rows > 1 else 0))
    return tuple(found)


def _bytes_of(regions: tuple[Region, ...]) -> list[int]:
    return [r.base + row * r.pitch + column for r in regions for row in range(r.rows) for column in range(r.row_bytes)]


Step = tuple[str, int | None, tuple[Region, ...]]
STEPS = st.tuples(st.sampled_from(["begin", "write", "write", "end"]), st.sampled_from([0, 1, None]), places())


@example([("begin", 0, (Region(0, 8),)), ("write", 0, (Region(0, 8),)), ("write", 0, (Region(2, 2),))])
@example([("write", 1, (Region(4, 4),)), ("begin", 0, (Region(0, 8),)), ("write", 0, (Region(0, 2),))])
@example([("begin", 0, (Region(0, 8),)), ("write", 0, (Region(0, 2),)), ("write", 1, (Region(1, 4),))])
@given(st.lists(STEPS, max_size=24))
@settings(max_examples=200)
def test_loads_sample_at_their_end_without_later_own_writes(steps: list[Step]) -> None:
    """Any interleaving of loads and writes of two PEs and the host, byte by byte against a list of all writes."""
    store = MemoryStore()
    store.write("hbm", 0, np.zeros(ROOM, np.int8))
    written: list[tuple[int | None, int, int]] = []  # who, where, what: in order
    under_way: list[Any] = []
    number = 0

    def end(load: Any, pe: int, regions: tuple[Region, ...], since: int) -> None:
        reached = _bytes_of(regions)
        value, _ = store.end_load(load, "hbm", regions, (len(reached),), "int8")
        want = dict.fromkeys(reached, 0)
        for at, (who, byte, what) in enumerate(written):
            if byte in want and (who != pe or at < since):
                want[byte] = what
        assert value.array().tolist() == [want[byte] for byte in reached]

    for what, pe, regions in steps:
        if what == "begin":
            load = store.begin_load("hbm", regions, pe or 0)
            under_way.append((load, pe or 0, regions, len(written)))
        elif what == "end" and under_way:
            end(*under_way.pop(len(regions) % len(under_way)))
        else:
            reached = _bytes_of(regions)
            number = number % 120 + 1
            data = np.full(len(reached), number, np.int8)
            store.write("hbm", regions, data, writer=None if pe is None else (pe, number))
            written.extend((pe, byte, number) for byte in reached)
    for load in under_way:
        end(*load)
    memory = np.zeros(ROOM, np.int8)
    for _, byte, what_ in written:
        memory[byte] = what_
    assert store.read("hbm", 0, (ROOM,), "int8").tolist() == memory.tolist()
