"""Copy strided bytes between arrays: what an assembly of values costs when it is finally made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from kernbench_core.values.arrays import Array, Shape
from kernbench_core.values.region import Region

DType = np.dtype[Any]

# Rows shorter than this are copied by elements as wide as they allow, longer ones by bytes (which numpy moves in runs).
_SHORT_ROW: Final = 64
_UNITS: Final[tuple[DType, ...]] = (np.dtype(np.uint64), np.dtype(np.uint32), np.dtype(np.uint16))


def covered(places: Sequence[Region], nbytes: int) -> bool:
    """Tell whether regions, overlapping or not, hold every byte from 0 to `nbytes`."""
    if not nbytes or any(p.contiguous and p.base <= 0 and p.base + p.nbytes >= nbytes for p in places):
        return True
    if sum(place.nbytes for place in places) < nbytes:
        return False
    rows, pitch = places[0].rows, places[0].pitch
    if rows * pitch == nbytes and all(p.rows == rows and p.pitch == pitch and p.base < pitch for p in places):
        return covered([Region(place.base, place.row_bytes) for place in places], pitch)  # columns: each row is alike
    runs = [
        (place.base, place.nbytes, 1, 0) if place.contiguous else (place.base, place.row_bytes, place.rows, place.pitch)
        for place in places
    ]
    starts = np.concatenate([base + pitch * np.arange(rows) for base, _, rows, pitch in runs])
    ends = np.concatenate([base + size + pitch * np.arange(rows) for base, size, rows, pitch in runs])
    order = np.argsort(starts, kind="stable")
    starts, reached = starts[order], np.maximum.accumulate(ends[order])
    return bool(starts[0] <= 0 and reached[-1] >= nbytes and (starts[1:] <= reached[:-1]).all())


def view_strides(src: Region, shape: Shape, size: int) -> tuple[int, ...] | None:
    """Return the strides that lay `shape` over a region, or None if its rows do not fall on whole trailing axes."""
    strides: list[int] = []
    inner = size
    outer = 0
    for extent in reversed(shape):
        if inner < src.row_bytes or src.rows == 1:
            strides.append(inner)
            inner *= extent
        else:
            outer = outer or src.pitch
            strides.append(outer)
            outer *= extent
        if inner > src.row_bytes:
            return None
    return tuple(reversed(strides)) if inner == src.row_bytes or 0 in shape else None


def strided(flat: Array, region: Region, dtype: DType, scale: int = 1) -> Array:
    """View bytes as rows of elements; `scale` says how many bytes stand here for one of the region."""
    size = dtype.itemsize
    columns = region.row_bytes * scale // size
    return np.ndarray((region.rows, columns), dtype, flat.data, region.base * scale, (region.pitch * scale, size))


def paint(out: Array, dst: Region, data: Array, src: Region) -> None:
    """Copy the bytes `src` of one flat byte array to the bytes `dst` of another."""
    unit: DType = np.dtype(np.uint8)
    shortest = min(dst.row_bytes, src.row_bytes)
    if shortest <= _SHORT_ROW:
        both = dst.row_bytes | src.row_bytes
        unit = next((u for u in _UNITS if not both % u.itemsize), unit)
    _assign(strided(out, dst, unit), strided(data, src, unit))


def paint_converted(out: Array, dst: Region, data: Array, src: Region, own: DType) -> bool:
    """Copy elements of dtype `own` from flat bytes into an array of another dtype; `dst` counts bytes of `own`.

    Returns False, with nothing done, when a region cuts elements apart.
    """
    size = own.itemsize
    if any(r.base % size or r.row_bytes % size or r.pitch % size for r in (dst, src)):
        return False
    elements = Region(dst.base // size, dst.row_bytes // size, dst.rows, dst.pitch // size)
    flat = out.reshape(-1).view(np.uint8)
    _assign(strided(flat, elements, out.dtype, out.dtype.itemsize), strided(data, src, own))
    return True


def _assign(target: Array, data: Array) -> None:
    if not data.strides[0] and data.shape[1] == 1:
        target[...] = data[0, 0]  # one element, repeated
        return
    target[...] = data if data.shape == target.shape else np.ascontiguousarray(data).reshape(target.shape)
