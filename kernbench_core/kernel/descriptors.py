"""Turn what a pointer tensor addresses into strided regions: affine shapes directly, gathers by coalescing."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernbench_core.values.region import Region

_Addresses = NDArray[np.int64]
Mask = NDArray[np.bool_]


def affine_regions(base: int, shape: Sequence[int], strides: Sequence[int], itemsize: int) -> tuple[Region, ...]:
    """Give the regions of `base + Σ index·stride` (all bytes) in row-major order, as few as the strides allow."""
    dims = [(extent, stride) for extent, stride in zip(shape, strides, strict=True) if extent != 1]
    row = itemsize
    while dims and dims[-1][1] == row:
        row *= dims.pop()[0]
    if not dims:
        return (Region(base, row),) if row else ()
    rows, pitch = 1, 0
    if dims[-1][1] >= 0:
        rows, pitch = dims.pop()
        while dims and dims[-1][1] == rows * pitch:
            rows *= dims.pop()[0]
    if not row or not rows or any(extent == 0 for extent, _ in dims):
        return ()
    if not dims:
        return (Region(base, row, rows, pitch),)
    outer = product(*([step * stride for step in range(extent)] for extent, stride in dims))
    return tuple(Region(base + sum(offsets), row, rows, pitch) for offsets in outer)


def gather_regions(addresses: _Addresses, itemsize: int) -> tuple[Region, ...]:
    """Give the regions of elements at `addresses` (bytes, any shape, read in row-major order).

    Neighbouring elements become one row, equal rows at equal steps one region.
    """
    flat = addresses.ravel()
    if not flat.size:
        return ()
    breaks = np.flatnonzero(np.diff(flat) != itemsize) + 1
    first = np.concatenate(([0], breaks))
    lengths = np.diff(np.concatenate((first, [flat.size]))) * itemsize
    return _group_rows(flat[first], lengths)


def _group_rows(starts: _Addresses, lengths: _Addresses) -> tuple[Region, ...]:
    """Join consecutive rows of one length that follow each other at one positive step."""
    steps = np.diff(starts)
    steps[(lengths[1:] != lengths[:-1]) | (steps <= 0)] = 0
    # run_end[i]: the last row that the run of equal steps leaving row i reaches
    ends = np.concatenate((np.flatnonzero(np.diff(steps)) + 1, [len(steps)]))
    run_end = np.repeat(ends, np.diff(np.concatenate(([0], ends)))).tolist()
    first, nbytes, step = starts.tolist(), lengths.tolist(), steps.tolist()
    found: list[Region] = []
    row = 0
    while row < len(first):
        if row < len(step) and step[row]:
            last = run_end[row]
            found.append(Region(first[row], nbytes[row], last - row + 1, step[row]))
            row = last + 1
        else:
            found.append(Region(first[row], nbytes[row]))
            row += 1
    return tuple(found)


def mask_box(mask: Mask) -> tuple[tuple[int, int], ...] | None:
    """Give the (low, high) bounds per dimension if the true elements of `mask` fill one box, else None."""
    bounds = []
    for axis in range(mask.ndim):
        line = mask.any(axis=tuple(other for other in range(mask.ndim) if other != axis))
        true = np.flatnonzero(line)
        if not true.size:
            return tuple((0, 0) for _ in mask.shape)
        bounds.append((int(true[0]), int(true[-1]) + 1))
    inside: Any = mask[tuple(slice(low, high) for low, high in bounds)]
    return tuple(bounds) if inside.all() else None


def contiguous_strides(shape: Sequence[int], unit: int = 1) -> tuple[int, ...]:
    """Give the row-major strides of `shape`, where neighbours lie `unit` apart."""
    strides = []
    for extent in reversed(shape):
        strides.append(unit)
        unit *= extent
    return tuple(reversed(strides))
