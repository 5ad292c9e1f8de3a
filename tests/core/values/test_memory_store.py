"""The memory store behaves as bytes, whatever shapes, strides and dtypes reach it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernbench_core.errors import PendingDataError, StoreError, UninitializedReadError
from kernbench_core.values.dtypes import itemsize, numpy_dtype
from kernbench_core.values.memory_store import MemoryStore
from kernbench_core.values.region import Region
from kernbench_core.values.value import AssemblyValue, Part, ResultValue
from kernbench_core.values.views import AbstractValue, FillValue, ground
from tests.core.arrays import adopt

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
steps = st.lists(st.tuples(st.sampled_from("wwrrscf"), accesses), min_size=1, max_size=14)


@settings(max_examples=150)
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
        elif what == "f":
            store.forget("hbm", access)
            for address in where:
                model.pop(address, None)
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


def test_exact_hit_gives_the_value_itself() -> None:
    """Reading just what was written returns the same object, pending or not, until something overlaps it."""
    store = MemoryStore()
    tile = Region(4096, 256, 32, 2048)
    result = ResultValue((0, 1), (32, 128), "f16")
    store.write("hbm", tile, result)
    assert store.value("hbm", tile, (32, 128), "f16") is result
    with pytest.raises(PendingDataError):
        store.read("hbm", tile, (32, 128), "f16")
    store.write("hbm", Region(4096 + 256, 256, 32, 2048), np.zeros((32, 128), np.float16))
    assert store.value("hbm", (tile,), (32, 128), "f16") is result
    store.write("hbm", 4096, np.ones(1, np.float16))
    patched = store.value("hbm", tile, (32, 128), "f16")
    assert patched is not result and patched.pending
    result.fill(np.full((32, 128), 3, np.float16))
    want = np.full((32, 128), 3, np.float16)
    want[0, 0] = 1
    np.testing.assert_array_equal(patched.array(), want)


def test_equal_reads_share_one_value() -> None:
    """The assembly of a tensor that lies in many slices is made once, and anew after a write to it."""
    store = MemoryStore()
    slabs = tuple(Region(i << 30, 64) for i in range(16))
    for i, slab in enumerate(slabs):
        store.write("hbm", slab, np.full(16, i, np.float32))
    first = store.value("hbm", slabs, (16, 16), "f32")
    store.write("hbm", 1 << 50, np.zeros(4, np.float32))
    assert store.value("hbm", slabs, (16, 16), "f32") is first
    store.write("hbm", slabs[3], np.full(16, 99, np.float32))
    second = store.value("hbm", slabs, (16, 16), "f32")
    assert (first.array()[3, 0], second.array()[3, 0]) == (3, 99)


def test_tile_of_one_array_is_a_view() -> None:
    """A strided read of one written array copies nothing."""
    store = MemoryStore()
    data = np.array(np.arange(64 * 64).reshape(64, 64), np.float32, order="C")
    data.flags.writeable = False
    store.write("hbm", 0, data)
    tile = store.read("hbm", Region((8 * 64 + 16) * 4, 64, 8, 256), (8, 16), "f32")
    assert np.shares_memory(tile, data)
    np.testing.assert_array_equal(tile, data[8:16, 16:32])


def test_neighbouring_pieces_of_one_value_are_that_value() -> None:
    """What is read in two pieces that never were apart is not put together from them."""
    store, value = MemoryStore(), adopt(np.arange(8, dtype=np.float32))
    store.write("hbm", 0, value)
    assert store.value("hbm", (Region(0, 12), Region(12, 20)), (8,), "f32") is value


def test_a_part_of_a_masked_load_shows_what_was_loaded_and_not_its_fill_alone() -> None:
    """The fill is the first of its parts, and lies under all of them."""
    store = MemoryStore()
    parts = (
        ground(FillValue(np.full((), 7, np.float32)), 32),
        Part(Region(8, 8), adopt(np.array([1, 2], np.float32)), Region(0, 8)),
    )
    store.write("hbm", 0, AssemblyValue((8,), "f32", parts))
    assert store.read("hbm", Region(4, 16), (4,), "f32").tolist() == [7, 1, 2, 7]


def test_hidden_pending_values_do_not_make_a_read_pending() -> None:
    """Bytes that a newer write hides are not part of what is read."""
    store = MemoryStore()
    store.write("hbm", 0, ResultValue((0, 0), (8,), "f32"))
    store.write("hbm", 0, np.ones(4, np.float32))
    store.write("hbm", 16, np.full(4, 2, np.float32))
    assert store.read("hbm", 0, (8,), "f32").tolist() == [1] * 4 + [2] * 4
    store.compact()
    assert list(store.results()) == []


def test_reinterpretation() -> None:
    """Another dtype sees the same bytes."""
    store = MemoryStore()
    store.write("hbm", 64, np.array([[1.0, 2.0]], np.float32))
    assert store.read("hbm", 64, (2,), "int32").tolist() == np.array([1.0, 2.0], np.float32).view(np.int32).tolist()


def test_errors_are_sentences() -> None:
    """Sizes that differ, and memory that nobody wrote, are named with their place."""
    store = MemoryStore()
    with pytest.raises(StoreError) as caught:
        store.write("hbm", Region(0, 8), np.zeros(4, np.float32))
    assert str(caught.value) == (
        "A write of f32[4] at hbm 0x0..0x8 must cover 16 bytes, not 8; give regions of the tensor's size."
    )
    store.write("hbm", 0, np.zeros(4, np.float32))
    with pytest.raises(UninitializedReadError) as caught:
        store.read("hbm", 0, (8,), "f32")
    assert str(caught.value) == (
        "A read of hbm 0x0..0x20 must find memory that was written, not 16 unwritten bytes from 0x10 to 0x20; store "
        "to them first."
    )
    with pytest.raises(UninitializedReadError):
        store.read("sram", 0, (1,), "int8")


def test_writes_remember_their_writers() -> None:
    """A write knows its writer; newest first."""
    store = MemoryStore()
    store.write("hbm", 0, np.zeros(8, np.int8))
    store.write("hbm", 4, np.zeros(8, np.int8), writer=(3, 7))
    assert [w.writer for w in store.writes("hbm", Region(0, 6))] == [(3, 7), None]
    assert store.writes("hbm", 100) == ()


def test_without_data_nothing_is_kept() -> None:
    """A store of shapes forgets writes, and anything read has a shape only."""
    store = MemoryStore(data=False)
    store.write("hbm", 0, np.zeros(1 << 20, np.int8))
    found = store.value("hbm", 1 << 60, (4, 4), "f16")
    assert type(found) is AbstractValue and (found.shape, found.dtype) == ((4, 4), "f16")
    assert store.value("hbm", 0, (4, 4), "f16") is found
    assert store.spaces() == () and store.snapshot().data is False


def test_many_tiles_stay_cheap() -> None:
    """Writing and reading 512 strided tiles of one output, over a zeroed tensor, looks at a few entries each."""
    store = MemoryStore()
    rows, columns, tile = 1024, 1024, (32, 64)
    store.write("hbm", 0, np.zeros((rows, columns), np.float16))
    index = store._spaces["hbm"]
    seen = 0
    for r in range(0, rows, tile[0]):
        for c in range(0, columns, tile[1]):
            region = Region((r * columns + c) * 2, tile[1] * 2, tile[0], columns * 2)
            seen += len(index.touching(region))
            store.write("hbm", region, ResultValue((r, c), tile, "f16"))
    assert seen == rows * columns // (tile[0] * tile[1])
    whole = store.value("hbm", 0, (rows, columns), "f16")
    assert isinstance(whole, AssemblyValue) and len(whole.parts()) == seen
    store.compact()
    assert sum(1 for _ in store.entries("hbm")) == seen


@given(st.lists(accesses, min_size=1, max_size=6), st.lists(accesses, min_size=1, max_size=4))
def test_a_sample_names_the_writers_of_the_bytes_that_it_shows(written, read) -> None:
    """Who is hidden whole by later writes is not named, and neither is the host; the same again from the cache."""
    store, owner = MemoryStore(), dict.fromkeys(range(SPAN))
    store.write("hbm", 0, np.zeros(SPAN, np.int8))
    for number, access in enumerate(written):
        where = places(access)
        store.write("hbm", access, np.full(len(where), number, np.int8), writer=(0, number))
        owner.update(dict.fromkeys(where, (0, number)))
    for access in [*read, *read, *written]:
        where = places(access)
        value, writers = store.sample("hbm", access, (len(where),), "int8")
        assert set(writers) == {owner[a] for a in where} - {None}
        assert len(set(writers)) == len(writers)
        assert value.array().tolist() == [owner[a][1] if owner[a] else 0 for a in where]


def test_rows_dealt_to_several_memories_come_back_from_each_at_one_step() -> None:
    """64 rows taken in turn from 4 arrays are 4 parts, not 64; the bytes are those of numpy."""
    store = MemoryStore()
    arrays = [np.arange(16 * 8, dtype=np.int32).reshape(16, 8) + 1000 * i for i in range(4)]
    for i, array in enumerate(arrays):
        store.write("hbm", i << 20, array)
    rows = tuple(Region((row % 4 << 20) + row // 4 * 32 + 8, 16) for row in range(64))
    value = store.value("hbm", rows, (64, 4), "int32")
    assert isinstance(value, AssemblyValue)
    assert len(value.parts()) == 4
    np.testing.assert_array_equal(value.array(), np.stack(arrays, axis=1).reshape(64, 8)[:, 2:6])


def test_rows_dealt_out_show_what_was_written_over_them_later() -> None:
    """Parts that hide others stay behind them: some rows, and halves of rows, are overwritten first."""
    store = MemoryStore()
    expected = np.arange(64 * 8, dtype=np.int32).reshape(64, 8)
    for i in range(4):
        store.write("hbm", i << 20, expected[i::4].copy())
    for row in (3, 4, 17, 40):
        new = -np.arange(1, 5, dtype=np.int32) * row
        store.write("hbm", (row % 4 << 20) + row // 4 * 32 + 8, new)
        expected[row, 2:6] = new
    rows = tuple(Region((row % 4 << 20) + row // 4 * 32, 32) for row in range(64))
    np.testing.assert_array_equal(store.read("hbm", rows, (64, 8), "int32"), expected)


@pytest.mark.parametrize("dtype", ["int8", "f16", "f32", "int64"])
def test_elements_lie_at_multiples_of_their_size(dtype) -> None:
    """Reads and writes at every other address, pitch or row length are refused; those that fit are not."""
    store, item = MemoryStore(), itemsize(dtype)
    store.write("hbm", 0, np.arange(256, dtype=np.uint8))
    value = np.zeros((2, 2), numpy_dtype(dtype))
    for base in range(9):
        for pitch in range(2 * item, 4 * item + 1):
            where = (Region(base, 2 * item, 2, pitch),)
            for use in (lambda where=where: store.write("hbm", where, value),
                        lambda where=where: store.read("hbm", where, (2, 2), dtype)):  # fmt: skip
                if base % item == pitch % item == 0:
                    use()
                else:
                    with pytest.raises(StoreError):
                        use()


def test_a_misaligned_access_is_a_sentence() -> None:
    """f32 at address 2, and rows that start between two elements."""
    store = MemoryStore()
    store.write("hbm", 0, np.zeros(64, np.uint8))
    with pytest.raises(StoreError) as caught:
        store.read("hbm", 2, (2,), "f32")
    assert str(caught.value) == (
        "A read of f32[2] at hbm 0x2..0xa must start, and have its rows, at multiples of 4 bytes, the size of f32; "
        "align the address."
    )
    with pytest.raises(StoreError) as caught:
        store.write("hbm", (Region(0, 4, 2, 6),), np.zeros(2, np.float32))
    assert str(caught.value) == (
        "A write of f32[2] at hbm 0x0 (2 rows of 4 B every 6 B) must start, and have its rows, at multiples of 4 "
        "bytes, the size of f32; align the address."
    )


@settings(max_examples=100)
@given(steps)
def test_what_ops_wrote_is_known_byte_by_byte(script) -> None:
    """A region holds results where the last write of one of its bytes was an op's, whatever nobody wrote."""
    store, last = MemoryStore(), [None] * (SPAN + 1)
    for number, (kind, access) in enumerate(script):
        region = access[0] if access[0].pitch >= 0 else Region(0, 8)
        at = places((region,))
        if len(set(at)) < len(at):
            continue
        if kind in "ws":
            op = (0, number) if kind == "s" else None
            store.write("hbm", region, adopt(np.full(region.nbytes, number, np.int8)), writer=op)
            for byte in at:
                last[byte] = op or "host"
        else:
            expected = any(isinstance(last[byte], tuple) for byte in at)
            assert store.holds_results("hbm", region) == expected
    assert not store.holds_results("tcm", Region(0, SPAN))
