"""Where the arrays of kernels in Triton lie: near the programs of the launch that is the first to be given them.

`near` is a rule of the launch alone. Of P programs on n PEs, and arrays of N elements in rows:

1. A launch of one axis whose `tl.constexpr` name one block of B elements (a power of two from 16 on), and that has
   ceil(N / B) programs: pieces of B elements, one a program.
2. Such a launch whose block is the first that holds a row: pieces of one row.
3. Other arrays of one dimension: pieces of the next power of two of N / P elements.
4. All others: equal blocks of rows, one for each PE that has a program.

Pieces of 3 and 4 have at least 1 KiB. Pieces are dealt to PEs in turn, as programs are: a kernel whose program p works
on piece p finds it in the HBM of its own PE.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import frozen

from kernbench_core.host.parameters.kernel_argument import NewArray, placed
from kernbench_core.memory.placement import Interleave
from kernbench_core.units import format_bytes

if TYPE_CHECKING:
    from kernbench_builtin.triton.simulation import JitLaunch
    from kernbench_core.host.runtime import Runtime

#: The least piece that an array is cut into which no program takes piece by piece, and the pieces of `interleaved`.
_LEAST_BYTES, _INTERLEAVED_BYTES = 1 << 10, 4 << 10
#: The least constant of a launch that may be a block.
_LEAST_BLOCK = 16


@frozen
class LaunchShape:
    """What a launch says of its programs: how many, along how many axes, the PEs they are on, and its constants."""

    programs: int
    axes: int
    pes: int
    constants: tuple[int, ...] = ()

    @classmethod
    def of(cls, grid: Sequence[int], pes: int, constants: Mapping[str, Any]) -> LaunchShape:
        """Take it from a grid and from what a kernel's `tl.constexpr` parameters are given."""
        numbers = (getattr(each, "value", each) for each in constants.values())
        blocks = sorted({n for n in numbers if type(n) is int and n >= _LEAST_BLOCK and n & (n - 1) == 0})
        return cls(math.prod(grid), sum(extent > 1 for extent in grid), pes, tuple(blocks))

    def piece(self, elements: int, row: int, item: int) -> int:
        """Return the elements of a piece of an array near these programs; `row` is 0 where it has no known rows."""
        block = self.constants[0] if len(self.constants) == 1 and self.axes < 2 else 0
        if block and -(-elements // block) == self.programs:
            return block
        if 1 < row <= block < 2 * row:
            return row
        if row == 1:
            share = -(-elements // self.programs)
            found = 1 << (share - 1).bit_length()
        else:
            unit, over = row or 1, min(self.programs, self.pes)
            found = -(-(elements // unit) // over) * unit
        return max(found, -(-_LEAST_BYTES // item))


@frozen
class ArrayPlace:
    """Where an array lies: in pieces of so many bytes, dealt to PEs in turn; one block for each PE where it says 0."""

    name: str
    nbytes: int
    piece: int
    pes: int

    def __str__(self) -> str:
        pieces = "equal blocks" if not self.piece else f"pieces of {format_bytes(self.piece)}"
        where = "on 1 PE" if self.pes == 1 else f"in {pieces} on {self.pes} PEs"
        return f"{self.name} ({format_bytes(self.nbytes)}) lies {where}"


def place(how: str, launch: LaunchShape, name: str, shape: Sequence[int], elements: int, item: int) -> ArrayPlace:
    """Choose where an array of `elements` lies, of `item` bytes each, whose shape is known if it has as many."""
    nbytes = elements * item
    if how == "blocks" or not nbytes:
        return ArrayPlace(name, nbytes, 0, min(elements, launch.pes))
    row = 0
    if math.prod(shape) == elements and shape:
        row = shape[-1] if len(shape) > 1 else 1
    piece = _INTERLEAVED_BYTES if how == "interleaved" else launch.piece(elements, row, item) * item
    return ArrayPlace(name, nbytes, piece, min(launch.pes, -(-nbytes // piece)))


def placed_for(rt: Runtime, asked: JitLaunch, name: str, value: Any) -> Any:
    """Return the device's tensor for an array of a kernel that is run alone; everything else as it is."""
    if not isinstance(value, NewArray | np.ndarray):
        return value
    kind = value.numpy_dtype if isinstance(value, NewArray) else value.dtype
    launch = LaunchShape.of(asked.grid, len(rt.pes), asked.of_compile_time)
    found = place(rt.array_placement, launch, name, value.shape, math.prod(value.shape), kind.itemsize)
    return placed(rt, name, value, placement(found))


def placement(found: ArrayPlace) -> Interleave | None:
    """Give a place as `rt.tensor` takes it."""
    return Interleave(found.piece) if found.piece else None
