"""Strided regions hold exactly the bytes that a naive gather would, in its order."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kernbench_core.kernel.pointers import contiguous_strides
from kernbench_core.kernel.transfers import affine_regions, gather_regions, mask_box
from kernbench_core.values.region import Region


def bytes_of(regions: tuple[Region, ...]) -> list[int]:
    """List the addresses of regions in order, one by one."""
    return [r.base + row * r.pitch + column for r in regions for row in range(r.rows) for column in range(r.row_bytes)]


ITEM = st.sampled_from([1, 2, 4])


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(-9, 9)), max_size=4), ITEM)
def test_affine_regions_equal_a_naive_gather(dims: list[tuple[int, int]], item: int) -> None:
    """Any extents and strides, zero and negative ones included."""
    shape, strides = [n for n, _ in dims], [s * item for _, s in dims]
    wanted = [
        1000 + sum(i * s for i, s in zip(index, strides, strict=True)) + column
        for index in product(*map(range, shape))
        for column in range(item)
    ]
    assert bytes_of(affine_regions(1000, shape, strides, item)) == wanted


def test_plain_tiles_are_one_region() -> None:
    """A row-major tile of a matrix, a whole matrix, a column and a 3-d slab need one descriptor each."""
    assert affine_regions(0, (8, 16), (256, 4), 4) == (Region(0, 64, 8, 256),)
    assert affine_regions(0, (8, 64), (256, 4), 4) == (Region(0, 2048),)
    assert affine_regions(0, (8, 1), (256, 4), 4) == (Region(0, 4, 8, 256),)
    assert affine_regions(0, (2, 8, 16), (2048, 256, 4), 4) == (Region(0, 64, 16, 256),)


@given(st.lists(st.integers(0, 200), max_size=60), ITEM)
def test_gathers_equal_a_naive_gather(offsets: list[int], item: int) -> None:
    """Any order, with repetitions."""
    addresses = np.array(offsets, np.int64) * item
    wanted = [start + column for start in addresses.tolist() for column in range(item)]
    assert bytes_of(gather_regions(addresses, item)) == wanted


@given(st.integers(1, 6), st.integers(1, 6), st.integers(1, 20), ITEM)
def test_a_gather_of_a_regular_tile_is_one_region(rows: int, cols: int, gap: int, item: int) -> None:
    """Runs and equal steps coalesce as far as they can."""
    tile = (np.arange(rows)[:, None] * (cols + gap) + np.arange(cols)[None, :]) * item
    assert len(gather_regions(tile, item)) == 1


@given(st.data())
def test_mask_box_finds_boxes_and_nothing_else(data: Any) -> None:
    """A filled box gives its bounds; knock one element out of its inside and there is none."""
    low = [data.draw(st.integers(0, 3)) for _ in range(2)]
    size = [data.draw(st.integers(1, 4)) for _ in range(2)]
    mask = np.zeros((8, 8), bool)
    mask[low[0] : low[0] + size[0], low[1] : low[1] + size[1]] = True
    assert mask_box(mask) == tuple((a, a + n) for a, n in zip(low, size, strict=True))
    if size[0] > 1 and size[1] > 1:
        mask[low[0], low[1]] = False
        assert mask_box(mask) is None
    assert mask_box(np.zeros((2, 3), bool)) == ((0, 0), (0, 0))


def test_contiguous_strides_are_numpys() -> None:
    """Row-major strides of a shape, in elements or bytes."""
    shape = (3, 4, 5)
    assert contiguous_strides(shape, 4) == np.zeros(shape, np.float32).strides
    assert contiguous_strides(()) == ()
