"""Values are immutable, lazy, and pending exactly as long as their data is not there."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_core.errors import NoDataError, PendingDataError, ShapeError, StoreError
from kernbench_core.values.dtypes import numpy_dtype
from kernbench_core.values.region import Region
from kernbench_core.values.value import ArrayValue, AssemblyValue, LoadedValue, Part, ResultValue, Value, sub_parts
from kernbench_core.values.views import AbstractValue, FillValue, ground, view_of
from tests.core.arrays import adopt


def test_arrays_are_copied_only_if_the_caller_could_write() -> None:
    """A writable array is copied once, through any view of it; a read-only one is kept."""
    mine = np.arange(6, dtype=np.float32)
    kept = ArrayValue(mine[:3])
    mine[:] = 9
    assert kept.array().tolist() == [0, 1, 2]
    mine.flags.writeable = False
    assert ArrayValue(mine).array() is mine
    with pytest.raises(ValueError, match="read-only"):
        kept.array()[0] = 1


def test_load_mirrors_what_it_found() -> None:
    """A load is pending until it is bound, then as pending as its content."""
    load = LoadedValue((2,), "f32")
    with pytest.raises(PendingDataError) as caught:
        load.array()
    assert str(caught.value) == "The load of f32[2] has not completed; wait for it first."
    result = ResultValue((3, 4), (2,), "f32")
    load.bind(result)
    assert load.pending and load.results() == (result,) and load.content() is result
    result.fill(np.ones(2, np.float32))
    assert not load.pending
    assert load.array().tolist() == [1, 1]
    with pytest.raises(ShapeError) as caught:
        LoadedValue((2,), "f32").bind(adopt(np.zeros(3, np.float32)))
    assert str(caught.value) == (
        "A load of f32[2] must be bound to a value of that shape and dtype, not f32[3]; read memory with the shape of "
        "the load."
    )


@pytest.mark.parametrize("dtype", ["f16", "bf16", "int32"])
def test_assembly_of_strided_pieces(dtype) -> None:
    """Pieces land where they belong, later over earlier, fill elsewhere; conversion on the way equals astype."""
    kind = numpy_dtype(dtype)
    size = kind.itemsize
    source = np.arange(64).reshape(8, 8).astype(kind)
    want = np.full((6, 8), 7).astype(kind)
    want[1:5, 2:6] = source[2:6, 1:5]
    want[0] = source[7]
    want[1, 2:4] = source[0, :2]
    value = adopt(source)
    parts = (
        ground(FillValue(np.full((), 7, kind)), 48 * size),
        Part(Region((8 + 2) * size, 4 * size, 4, 8 * size), value, Region((16 + 1) * size, 4 * size, 4, 8 * size)),
        Part(Region(0, 8 * size), value, Region(56 * size, 8 * size)),
        Part(Region(10 * size, 2 * size), value, Region(0, 2 * size)),
    )
    made = AssemblyValue((6, 8), dtype, parts)
    np.testing.assert_array_equal(made.array(), want)
    np.testing.assert_array_equal(made.gather(np.dtype(np.float32)), want.astype(np.float32))
    assert made.array() is made.array()


def test_assemblies_are_flat() -> None:
    """An assembly of an assembly of a view names the array itself."""
    base = adopt(np.arange(64, dtype=np.float32).reshape(8, 8))
    view = view_of(base, Region(8, 16, 4, 32), (4, 4), "f32")
    assert view is not None
    under = ground(FillValue(np.full((), 1, np.float32)), 128)
    inner = AssemblyValue((2, 4, 4), "f32", (under, Part(Region(0, 64), view, Region(0, 64))))
    outer = AssemblyValue((4, 2), "f32", (Part(Region(0, 32), inner, Region(0, 16, 2, 32)),))
    np.testing.assert_array_equal(outer.array().reshape(2, 4), base.array()[[0, 2], 2:6])
    assert {p.source for p in outer.parts() if p.source.shape == (8, 8)} == {base}
    late = LoadedValue((4,), "f32")
    waiting = AssemblyValue((4,), "f32", (Part(Region(0, 16), late, Region(0, 16)),))
    assert waiting.pending
    late.bind(adopt(np.ones(4, np.float32)))
    assert not waiting.pending and waiting.array().tolist() == [1] * 4


def test_view_is_no_copy() -> None:
    """A strided tile of one array shares its memory."""
    base = adopt(np.arange(64, dtype=np.float32).reshape(8, 8))
    view = view_of(base, Region(8, 16, 4, 32), (4, 4), "f32")
    assert view is not None and np.shares_memory(view.array(), base.array())
    np.testing.assert_array_equal(view.array(), base.array()[:4, 2:6])
    assert view_of(base, Region(8, 16, 4, 32), (2, 8), "f32") is None


def test_reshape_keeps_bytes() -> None:
    """A new shape of the same size shares the bytes; another size is refused."""
    value = adopt(np.arange(6, dtype=np.float32))
    assert value.reshape((2, 3)).array().tolist() == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(ShapeError) as caught:
        value.reshape((4,))
    assert str(caught.value) == ("A new shape must hold 6 elements as (6,) does, not (4,); choose one of equal size.")


def test_no_data_is_refused_in_words() -> None:
    """A shape without data says what it is and what to do."""
    with pytest.raises(NoDataError) as caught:
        AbstractValue((4, 2), "f16").array()
    assert str(caught.value) == "The data of f16[4, 2] is not kept in a run without data; run with data to read it."


@given(st.data())
def test_a_ground_shows_through_every_view(data) -> None:
    """What no part is painted on has the ground's element: under another shape, cut, cut again, and put together."""
    kind = data.draw(st.sampled_from(["int8", "f16", "f32", "int64"]))
    size, dtype = numpy_dtype(kind).itemsize, numpy_dtype(kind)
    want = np.full(24, 7, dtype)
    source = adopt(np.arange(50, 74).astype(dtype))
    parts = [ground(FillValue(np.full((), 7, dtype)), 24 * size)]
    for first, count in data.draw(st.lists(st.tuples(st.integers(0, 23), st.integers(1, 6)), max_size=3)):
        count = min(count, 24 - first)
        want[first : first + count] = source.array()[:count]
        parts.append(Part(Region(first * size, count * size), source, Region(0, count * size)))
    value: Value = AssemblyValue((24,), kind, tuple(parts))
    for _ in range(data.draw(st.integers(1, 3))):
        shape = data.draw(st.sampled_from([(24,), (1, 24), (4, 6), (2, 3, 4), (24, 1)]))
        value, want = value.reshape(shape), want.reshape(shape)
        if data.draw(st.booleans()):  # a strided tile of it, and the rest put round that
            rows = Region(2 * size, 3 * size, 4, 6 * size)
            tile = AssemblyValue((4, 3), kind, tuple(sub_parts(value, rows, Region(0, 12 * size))))
            np.testing.assert_array_equal(tile.array(), want.reshape(4, 6)[:, 2:5])
            whole = Region(0, 24 * size)
            value = AssemblyValue((24,), kind, (Part(whole, value, whole), Part(rows, tile, Region(0, 12 * size))))
            want = want.reshape(24)
    np.testing.assert_array_equal(value.array(), want)
    wide = np.dtype(np.float64)
    assert isinstance(value, ArrayValue) or np.array_equal(value.gather(wide), want.astype(wide))


@given(st.lists(st.tuples(st.integers(0, 11), st.integers(1, 6), st.integers(1, 4), st.integers(0, 5)), max_size=5))
def test_an_assembly_with_a_hole_is_an_error(places: list[tuple[int, int, int, int]]) -> None:
    """Parts that leave a byte open are refused when the data is asked for, and no others."""
    held = np.zeros(12, bool)
    parts = []
    for base, width, rows, gap in places:
        region = Region(base, width, rows, width + gap)
        if region.end <= 12:
            for row in range(rows):
                held[base + row * (width + gap) :][:width] = True
            whole = Region(0, region.nbytes)
            parts.append(Part(region, adopt(np.zeros(region.nbytes, np.int8)), whole))
    made = AssemblyValue((12,), "int8", tuple(parts))
    if held.all():
        assert made.array().tolist() == [0] * 12
        return
    with pytest.raises(StoreError) as caught:
        made.array()
    assert str(caught.value) == (
        "The parts of AssemblyValue(int8[12], ready) must cover all of its 12 bytes, and leave some open; paint them "
        "over a ground."
    )


@pytest.mark.parametrize("missing", [None, 0, 1, 3])
@pytest.mark.parametrize("overlap", [0, 1])
def test_columns_cover_a_matrix_together_or_not(missing: int | None, overlap: int) -> None:
    """Strided parts of one pitch, as columns dealt to several memories come."""
    parts = [
        Part(Region(2 * i, width, 3, 8), adopt(np.full(9, i, np.int8)), Region(0, 3 * width))
        for i, width in enumerate((2 + overlap, 2 + overlap, 2 + overlap, 2))
        if i != missing
    ]
    made = AssemblyValue((3, 8), "int8", tuple(parts))
    if missing is None:
        assert made.array().tolist() == [[0, 0, 1, 1, 2, 2, 3, 3]] * 3
    else:
        with pytest.raises(StoreError):
            made.array()


def test_nothing_is_covered_by_nothing() -> None:
    """What a store moves whose mask is off everywhere has no parts and no bytes."""
    assert AssemblyValue((0,), "f32", ()).array().shape == (0,)
