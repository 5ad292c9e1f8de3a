"""Values are immutable, lazy, and pending exactly as long as their data is not there."""

from __future__ import annotations

import numpy as np
import pytest

from kernbench_core.dtypes import numpy_dtype
from kernbench_core.errors import NoDataError, PendingDataError, ShapeError
from kernbench_core.regions import Region
from kernbench_core.values import (
    AbstractValue,
    ArrayValue,
    AssemblyValue,
    LoadedValue,
    Part,
    ResultValue,
    adopt,
    view_of,
)


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
        Part(Region((8 + 2) * size, 4 * size, 4, 8 * size), value, Region((16 + 1) * size, 4 * size, 4, 8 * size)),
        Part(Region(0, 8 * size), value, Region(56 * size, 8 * size)),
        Part(Region(10 * size, 2 * size), value, Region(0, 2 * size)),
    )
    made = AssemblyValue((6, 8), dtype, parts, fill=7)
    np.testing.assert_array_equal(made.array(), want)
    np.testing.assert_array_equal(made.gather(np.dtype(np.float32)), want.astype(np.float32))
    assert made.array() is made.array()


def test_assemblies_are_flat() -> None:
    """An assembly of an assembly of a view names the array itself."""
    base = adopt(np.arange(64, dtype=np.float32).reshape(8, 8))
    view = view_of(base, Region(8, 16, 4, 32), (4, 4), "f32")
    assert view is not None
    inner = AssemblyValue((2, 4, 4), "f32", (Part(Region(0, 64), view, Region(0, 64)),), fill=1)
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
