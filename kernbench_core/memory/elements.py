"""Which element of a tensor an access is about: from bytes in physical memory back to an index, for messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from kernbench_core.errors import ShapeError
from kernbench_core.values.dtypes import itemsize
from kernbench_core.values.region import Region, ascending_pieces, intersect, linear_at

if TYPE_CHECKING:
    from kernbench_core.memory.device_memory import TensorAllocation


def index_at(tensor: TensorAllocation, va: int) -> tuple[int, ...]:
    """Return the index of the element at virtual address `va`; the first coordinate is unbounded, both ways."""
    element = (va - tensor.va) // itemsize(tensor.dtype)
    index = []
    for extent in reversed(tensor.shape[1:]):
        index.append(element % extent)
        element //= extent
    index.append(element)
    return tuple(index[::-1])


def spell_index(name: str, index: Sequence[int]) -> str:
    """Spell one element of a named tensor, as `a[3, 17]`."""
    return f"{name}[{', '.join(map(str, index))}]"


def missing_element(
    tensor: TensorAllocation,
    virtual: Sequence[Region],
    physical: Sequence[Region],
    missing: Iterable[tuple[int, int, int, int]],
) -> str:
    """Name the first element of an access that an error tells as `missing`: `element [3, 17] of tensor 'a'`."""
    found = first_common(physical, [Region(*each) for each in missing])
    position = 0 if found is None else found[0]
    return f"element {list(index_at(tensor, linear_at(virtual, position)))} of tensor {tensor.name!r}"


def unmapped_element(call: str, tensor: TensorAllocation, va: int, fault: object) -> str:
    """Say that `call`, given with its line, reaches the element at `va`, which is not mapped, as `fault` says."""
    return (
        f"{call} must reach memory that is mapped, and element {list(index_at(tensor, va))} of tensor "
        f"{tensor.name!r} is not: {fault} Free a tensor after its last use."
    )


def check_whole_elements(call: str, tensor: TensorAllocation, physical: Iterable[Region], dtype: str) -> None:
    """Raise ShapeError where an access as a wider dtype would put elements together from several places."""
    item = itemsize(dtype)
    if item <= itemsize(tensor.dtype) or not any((r.base | r.pitch | r.row_bytes) % item for r in physical):
        return
    raise ShapeError(
        f"{call} must find each element of {dtype} in one piece, but the placement of tensor {tensor.name!r} splits "
        f"its {item} bytes; give {tensor.dtype}, or place whole elements."
    )


def first_common(physical: Iterable[Region], others: Sequence[Region]) -> tuple[int, int] | None:
    """Return where the linear bytes of `physical` first meet `others`, and how many they share in all; None: nowhere.

    `others` are ascending regions that share no byte with each other.
    """
    offset = shared = 0
    first: int | None = None
    for region in physical:
        for piece in ascending_pieces(region):
            for other in others:
                if piece.base < other.end and other.base < piece.end:
                    for linear, _ in intersect(piece, other):
                        shared += linear.nbytes
                        first = offset + linear.base if first is None else min(first, offset + linear.base)
            offset += piece.nbytes
    return None if first is None else (first, shared)
