"""What an access through pointers moves: strided regions, directly of affine shapes, of gathers by coalescing.

An access must stay inside the tensor that its pointer came from; elements that a mask turns off are neither checked nor
transferred. In a run where elements outside are no errors they are noted, and left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import define, evolve
from numpy.typing import NDArray

from kernbench_core.callsite import call_site, describe_site
from kernbench_core.errors import OutOfBoundsError, ShapeError
from kernbench_core.kernel.index import IndexTensor, broadcast_shapes
from kernbench_core.kernel.pointers import ITEM_BYTES, Pointer, Ref, contiguous_strides
from kernbench_core.memory.device_memory import TensorAllocation
from kernbench_core.memory.elements import index_at
from kernbench_core.values.region import Region

if TYPE_CHECKING:
    from kernbench_core.kernel.pe_state import PeState
    from kernbench_core.memory.outside import OutsideAccesses

_Addresses = NDArray[np.int64]
Mask = NDArray[np.bool_]


@define  # not frozen, though nobody changes it: a call makes one, three times as fast
class Transfer:
    """What an access moves: virtual `regions` in order, as a tensor of `shape` and `dtype`, `nbytes` in all.

    `inside` is None when every element is moved, else where the moved bytes lie in the row-major tensor. `outside` are
    the bytes there of elements that were asked for and are outside of the tensor in memory, where that is no error.
    """

    regions: tuple[Region, ...]
    shape: tuple[int, ...]
    dtype: str
    nbytes: int
    inside: tuple[Region, ...] | None = None
    outside: tuple[Region, ...] = ()


@lru_cache(maxsize=4096)
def _tile(shape: tuple[int, ...], strides: tuple[int, ...], item: int) -> tuple[int, int, int, tuple[Region, ...]]:
    """Give what tiles of one shape share: lowest and highest element offset (bytes), size, regions from 0 on."""
    low = high = 0
    nbytes = item
    for extent, stride in zip(shape, strides, strict=True):
        nbytes *= extent
        reach = (extent - 1) * stride * item
        if reach < 0:
            low += reach
        else:
            high += reach
    return low, high, nbytes, affine_regions(0, shape, [stride * item for stride in strides], item)


def _affine_transfer(
    tensor: TensorAllocation, base: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: str, op: str
) -> Transfer:
    """Give what an access to a tile at virtual address `base` moves; OutOfBoundsError outside its tensor."""
    item = ITEM_BYTES[dtype]
    low, high, nbytes, regions = _tile(shape, strides, item)
    if base + low < tensor.va or base + high + item > tensor.va + tensor.nbytes:
        raise _out_of_bounds(tensor, base + (low if base + low < tensor.va else high), op)
    if len(regions) == 1:
        only = regions[0]
        return Transfer((Region(base + only.base, only.row_bytes, only.rows, only.pitch),), shape, dtype, nbytes)
    return Transfer(tuple(region.shifted(base) for region in regions), shape, dtype, nbytes)


def direct_transfer(ref: Ref, op: str) -> Transfer:
    """Give what an access to the whole of `ref` moves; OutOfBoundsError outside its tensor."""
    return _affine_transfer(ref.pointer.tensor, ref.base, ref.shape, ref.strides, ref.dtype, op)


def pointer_transfer(pointer: Pointer, mask: NDArray[np.bool_] | None, op: str) -> Transfer:
    """Give what an access through a tensor of pointers moves, where `mask` (its shape, or broadcast to it) is true.

    ShapeError for a single pointer and a mask of many, as in Triton.
    """
    offset = IndexTensor((), pointer.offset, ()) if isinstance(pointer.offset, int) else pointer.offset
    if mask is not None:
        if mask.ndim and not offset.shape:
            raise ShapeError(
                f"the mask of {op} at {describe_site(call_site())} must be a single bool for a single pointer, not of "
                f"shape {mask.shape}; add a block of offsets to the pointer."
            )
        shape = broadcast_shapes(offset.shape, mask.shape, f"the pointers and mask of {op}")
        offset = offset if offset.shape == shape else offset.broadcast_to(shape)
        mask = np.broadcast_to(mask, shape)
        if not mask.all():
            return _masked(pointer, offset, mask, op)
    return _whole(pointer, offset, op)


def _whole(pointer: Pointer, offset: IndexTensor, op: str) -> Transfer:
    """Give what an access to all of some offsets moves."""
    item, tensor = ITEM_BYTES[pointer.element], pointer.tensor
    if offset.affine is not None:
        base, strides = offset.affine
        return _affine_transfer(tensor, tensor.va + base * item, offset.shape, strides, pointer.element, op)
    low, high = offset.bounds()
    if low < 0 or (high + 1) * item > tensor.nbytes:
        raise _out_of_bounds(tensor, tensor.va + (low if low < 0 else high) * item, op)
    regions = gather_regions(offset.numpy() * item + tensor.va, item)
    return Transfer(regions, offset.shape, pointer.element, offset.numpy().size * item)


def _masked(pointer: Pointer, offset: IndexTensor, mask: NDArray[np.bool_], op: str) -> Transfer:
    item = ITEM_BYTES[pointer.element]
    strides = contiguous_strides(offset.shape, item)
    box = mask_box(mask) if offset.affine else None
    if box is None:
        chosen = IndexTensor.of(np.broadcast_to(offset.numpy(), offset.shape)[mask])
        inside = gather_regions(np.flatnonzero(mask) * item, item)
    else:
        assert offset.affine is not None
        base, steps = offset.affine
        extents = tuple(high - low for low, high in box)
        skipped = [low for low, _ in box]
        chosen = IndexTensor(extents, base + sum(a * b for a, b in zip(skipped, steps, strict=True)), steps)
        start = sum(a * b for a, b in zip(skipped, strides, strict=True))
        inside = affine_regions(start, extents, strides, item) if 0 not in extents else ()
    if 0 in chosen.shape:
        return Transfer((), offset.shape, pointer.element, 0, ())
    moved = _whole(pointer, chosen, op)
    return Transfer(moved.regions, offset.shape, pointer.element, moved.nbytes, inside)


def _out_of_bounds(tensor: TensorAllocation, address: int, op: str) -> OutOfBoundsError:
    """Spell the error with the element's index in the tensor, its first coordinate unbounded."""
    return OutOfBoundsError(
        f"{op} at {describe_site(call_site())} must stay inside tensor {tensor.name!r} of shape {tensor.shape}, and "
        f"reaches element {list(index_at(tensor, address))}; correct the index arithmetic, or mask it off."
    )


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


def noted_transfer(
    pointer: Pointer, mask: NDArray[np.bool_] | None, op: str, state: PeState, noted: OutsideAccesses
) -> Transfer:
    """Give what an access moves of the elements that are inside of its tensor; the others are noted."""
    kept, places = noted_mask(pointer, mask, op, state, noted)
    moved = pointer_transfer(pointer, kept, op)
    if places is None:
        return moved
    item = ITEM_BYTES[moved.dtype]
    return evolve(moved, outside=gather_regions(places * item, item))


def noted_mask(
    pointer: Pointer, mask: NDArray[np.bool_] | None, op: str, state: PeState, noted: OutsideAccesses
) -> tuple[NDArray[np.bool_] | None, NDArray[np.int64] | None]:
    """Give the mask of an access without the elements outside of its tensor, and where these are; they are noted."""
    kept, outside = within(pointer, mask)
    if outside is None:
        return kept, None
    shape = np.broadcast_shapes(pointer.shape, outside.shape)
    places = np.flatnonzero(np.broadcast_to(outside, shape))
    offset = pointer.offset if isinstance(pointer.offset, int) else pointer.offset.numpy()
    first = int(np.broadcast_to(offset, shape).reshape(-1)[places[0]]) * ITEM_BYTES[pointer.element]
    tensor, site = pointer.tensor, call_site()
    noted.note(op, site, state.site.prefix, tensor, tensor.va + first, len(places), writes=op != "tl.load")
    return kept, places


def within(
    pointer: Pointer, mask: NDArray[np.bool_] | None
) -> tuple[NDArray[np.bool_] | None, NDArray[np.bool_] | None]:
    """Give the mask of an access without the elements that are outside of its tensor, and these; None for none."""
    offset = IndexTensor((), pointer.offset, ()) if isinstance(pointer.offset, int) else pointer.offset
    item, nbytes = ITEM_BYTES[pointer.element], pointer.tensor.nbytes
    low, high = offset.bounds()
    if low >= 0 and (high + 1) * item <= nbytes:
        return mask, None
    elements = offset.numpy()  # in bytes they may be more than 64 bits hold
    reached = (elements < 0) | (elements >= nbytes // item)
    asked = np.ones((), bool) if mask is None else mask
    if asked.ndim and not offset.shape:
        return mask, None  # refused by who makes a transfer of it
    outside = np.logical_and(reached, asked)
    return (np.logical_and(asked, ~reached), outside) if outside.any() else (mask, None)
