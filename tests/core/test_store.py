"""The memory store behaves as bytes, whatever shapes, strides and dtypes reach it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernbench_core.errors import UninitializedReadError
from kernbench_core.regions import Region
from kernbench_core.store import MemoryStore

SPAN = 160


@st.composite
def regions(draw, ascending: bool = False):
    """One region inside [0, SPAN); reads may also repeat or overlap rows, or go downwards."""
    row = draw(st.integers(1, 12))
    rows = draw(st.integers(1, 6))
    low = row if ascending else -12
    pitch = draw(st.integers(low, 24)) if rows > 1 else 0
    reach = abs(pitch) * (rows - 1) + row
    first = draw(st.integers(0, max(0, SPAN - reach)))
    base = first if pitch >= 0 else first - pitch * (rows - 1)
    return Region(base, row, rows, pitch)


def places(region_tuple):
    """The byte addresses of an access, in linear order: the naive reference."""
    return [r.base + i * r.pitch + c for r in region_tuple for i in range(r.rows) for c in range(r.row_bytes)]


accesses = st.lists(regions(), min_size=1, max_size=3).map(tuple)
steps = st.lists(st.tuples(st.sampled_from("wwrrsc"), accesses), min_size=1, max_size=14)


@settings(max_examples=400, deadline=None)
@given(steps, st.booleans())
def test_store_equals_bytes(script, zeroed) -> None:
    """Any sequence of writes and reads of regions gives what a byte array gives."""
    store, model = MemoryStore(), {}
    if zeroed:
        store.write("hbm", 0, np.zeros(SPAN, np.int8))
        model = dict.fromkeys(range(SPAN), 0)
    forks = []
    for number, (what, access) in enumerate(script):
        where = places(access)
        if what == "w":
            data = ((np.arange(len(where)) * 7 + number * 31) % 251 - 125).astype(np.int8)
            store.write("hbm", access, data)
            model.update(zip(where, data.tolist(), strict=True))
        elif what == "s":
            forks.append((store, dict(model)))
            store = store.snapshot()
        elif what == "c":
            store.compact()
        elif all(a in model for a in where):
            assert store.read("hbm", access, (len(where),), "int8").tolist() == [model[a] for a in where]
            assert store.has("hbm", access)
        else:
            assert not store.has("hbm", access)
            with pytest.raises(UninitializedReadError):
                store.value("hbm", access, (len(where),), "int8")
    for old, then in [*forks, (store, model)]:
        for address in range(SPAN):
            assert old.has("hbm", address) == (address in then)
            if address in then:
                assert old.read("hbm", address, (1,), "int8")[0] == then[address]
