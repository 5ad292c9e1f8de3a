"""Accesses through pointers in a run where those outside of their tensor are no errors, but noted and left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from attrs import evolve
from numpy.typing import NDArray

from kernbench_core.callsite import call_site
from kernbench_core.kernel.descriptors import gather_regions
from kernbench_core.kernel.index import IndexTensor
from kernbench_core.kernel.pointers import Pointer, Transfer, pointer_transfer
from kernbench_core.values.dtypes import itemsize

if TYPE_CHECKING:
    from kernbench_core.kernel.pe_state import PeState
    from kernbench_core.memory.outside import OutsideAccesses


def noted_transfer(
    pointer: Pointer, mask: NDArray[np.bool_] | None, op: str, state: PeState, noted: OutsideAccesses
) -> Transfer:
    """Give what an access moves of the elements that are inside of its tensor; the others are noted."""
    kept, places = noted_mask(pointer, mask, op, state, noted)
    moved = pointer_transfer(pointer, kept, op)
    if places is None:
        return moved
    item = itemsize(moved.dtype)
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
    first = int(np.broadcast_to(offset, shape).reshape(-1)[places[0]]) * itemsize(pointer.element)
    tensor, site = pointer.tensor, call_site()
    noted.note(op, site, state.site.prefix, tensor, tensor.va + first, len(places), writes=op != "tl.load")
    return kept, places


def within(
    pointer: Pointer, mask: NDArray[np.bool_] | None
) -> tuple[NDArray[np.bool_] | None, NDArray[np.bool_] | None]:
    """Give the mask of an access without the elements that are outside of its tensor, and these; None for none."""
    offset = IndexTensor((), pointer.offset, ()) if isinstance(pointer.offset, int) else pointer.offset
    item, nbytes = itemsize(pointer.element), pointer.tensor.nbytes
    low, high = offset.bounds()
    if low >= 0 and (high + 1) * item <= nbytes:
        return mask, None
    first = offset.numpy() * item
    reached = (first < 0) | (first + item > nbytes)
    asked = np.ones((), bool) if mask is None else mask
    if asked.ndim and not offset.shape:
        return mask, None  # refused by who makes a transfer of it
    outside = np.logical_and(reached, asked)
    return (np.logical_and(asked, ~reached), outside) if outside.any() else (mask, None)
