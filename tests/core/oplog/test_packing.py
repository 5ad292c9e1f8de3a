"""Packed columns read like arrays, and take the room that their numbers need."""

from __future__ import annotations

import tracemalloc
from array import array
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kernbench_core.oplog.packing import PackedColumn
from kernbench_core.oplog.spill import take

EDGES = [sign * (1 << bits) + near for bits in (0, 7, 8, 15, 16, 31, 32, 62) for near in (-1, 0, 1) for sign in (1, -1)]
WIDE = st.one_of(st.sampled_from([*EDGES, 2**63 - 1, -(2**63)]), st.integers(-(2**63), 2**63 - 1), st.integers(-9, 9))
KINDS = {
    "q": WIDE,
    "i": st.one_of(st.integers(-(2**31), 2**31 - 1), st.integers(-2, 2)),
    "d": st.one_of(st.floats(allow_nan=False), st.integers(0, 2**40).map(lambda count: count * 2.0**-16)),
}


@settings(max_examples=200)
@given(st.sampled_from(sorted(KINDS)), st.integers(1, 9), st.data())
def test_a_column_reads_like_an_array(code: str, every: int, draw: Any) -> None:
    """Items, slices, picks and the whole, with older parts packed and a part not."""
    numbers = draw.draw(st.lists(KINDS[code], max_size=40))
    column = PackedColumn(array(code))
    for at, number in enumerate(numbers):
        column.append(number)
        if at % every == every - 1:
            column.settle()
    assert len(column) == len(numbers) and len(column.tail) < every
    assert list(map(repr, column)) == list(map(repr, numbers))
    assert numbers == np.asarray(column).tolist() == [column[i] for i in range(len(numbers))]
    assert np.asarray(column).dtype == np.dtype(code)
    start, stop = draw.draw(st.integers(0, 45)), draw.draw(st.integers(0, 45))
    assert column[start:stop].tolist() == numbers[start:stop]
    if numbers:
        rows = np.array(draw.draw(st.lists(st.integers(0, len(numbers) - 1), max_size=9)), np.int64)
        assert take(column, rows).tolist() == [numbers[row] for row in rows]
        assert column[-1] == numbers[-1]


def room(code: str, numbers: np.ndarray[Any, Any]) -> float:
    """Bytes a number that a settled column holds."""
    tracemalloc.start()
    column = PackedColumn(array(code))
    column.extend(array(code, numbers.astype(code).tobytes()))
    column.settle()
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return held / len(numbers)


def test_numbers_take_the_room_that_they_need() -> None:
    """Constants none, near ones a byte or two, small ones among addresses a byte of their own."""
    count = 1 << 14
    at = np.arange(count)
    assert room("q", np.full(count, 2**50)) < 0.3
    assert room("q", 2**50 + at % 256) < 1.3
    assert room("i", at) < 2.3
    assert room("q", np.where(at % 4, at % 100, (at << 40) + 7)) < 1 / 4 * 8 + 3 / 4 + 0.6
    assert room("i", at * 100000) < 4.3
    assert room("d", at / 3) < 8.3
    assert room("d", 1e9 + at / 4) < 4.3
