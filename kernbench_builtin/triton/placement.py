"""Where the arrays of kernels in Triton lie: near the programs of the launch that is the first to be given them.

`near` is a rule of the launch alone. Of P programs on n PEs, and arrays of N elements in rows:

1. A launch of one axis, and of ceil(R / B) programs for one of its `tl.constexpr` B from 2 on: pieces of B rows, one a
   program; R is N in an array of one dimension. Of any array where B is the only constant that may be a block (a power
   of two from 16 on, or without one any from 16 on), with ceil(N / B): pieces of B elements.
2. A launch of one axis whose only such block is B, with a program for each row: pieces of a row. So where B is the
   first that holds a row; but of 4 KiB where a row has less than 1 KiB, as nobody knows which a program takes.
3. Other arrays of one dimension: pieces of one element where N = P, else of the next power of two of N / P, of
   at least 1 KiB.
4. All others, and all of a launch of one program: equal blocks of rows, of at least 4 KiB, on the packages that have
   programs.

What is in order in a larger array lies as it would alone. Pieces are dealt to PEs in turn, as programs are: a kernel
whose program p works on piece p finds it in the HBM of its own PE.
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
    """What a launch says of its programs: how many, along how many axes, and its constants that may be blocks.

    `pes` are those of the device, `near` those of its packages that have programs. `counts` are all constants that may
    be a number of rows.
    """

    programs: int
    axes: int
    pes: int
    near: int
    constants: tuple[int, ...] = ()
    counts: tuple[int, ...] = ()

    @classmethod
    def of(cls, grid: Sequence[int], packages: Sequence[int], constants: Mapping[str, Any]) -> LaunchShape:
        """Take it from a grid, the package of each PE, and what a kernel's `tl.constexpr` parameters are given."""
        numbers = (getattr(each, "value", each) for each in constants.values())
        counts = sorted({n for n in numbers if type(n) is int and n > 1})
        large = [n for n in counts if n >= _LEAST_BLOCK]
        blocks = [n for n in large if n & (n - 1) == 0] or large
        programs = math.prod(grid)
        used = {*packages[:programs]}
        near = sum(each in used for each in packages)
        return cls(programs, sum(extent > 1 for extent in grid), len(packages), near, tuple(blocks), tuple(counts))

    def piece(self, elements: int, row: int, item: int) -> int:
        """Return the elements of a piece of an array near these programs; `row` is 0 where it has no known rows."""
        rows = elements // row if row > 1 else 0
        found = self._of_one_axis(elements, rows, item) if self.axes == 1 else 0
        if found:
            return found
        if row != 1 or self.programs == 1:
            unit = row or 1
            return max(-(-(elements // unit) // self.near) * unit, -(-_INTERLEAVED_BYTES // item))
        if elements == self.programs:
            return 1
        return max(1 << (-(-elements // self.programs) - 1).bit_length(), -(-_LEAST_BYTES // item))

    def _of_one_axis(self, elements: int, rows: int, item: int) -> int:
        """Return the elements that a program of a launch of one axis takes; 0 where that does not say."""
        single = self.constants[0] if len(self.constants) == 1 else 0
        row = elements // rows if rows else 0
        for block in self.constants:
            if (single or not rows) and -(-elements // block) == self.programs:
                return block
            if rows and -(-rows // block) == self.programs:
                return block * row
        for count in self.counts:
            if -(-(rows or elements) // count) == self.programs:
                return count * (row or 1)
        if rows and rows == self.programs and single:
            return row
        if rows and row <= single < 2 * row:
            return row if row * item >= _LEAST_BYTES else _INTERLEAVED_BYTES // item
        return 0


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
    """Choose where an array of `elements` lies, of `item` bytes each; of a part of it the shape is known, or ()."""
    nbytes = elements * item
    each = math.prod(shape)
    if how == "blocks" or not nbytes:
        return ArrayPlace(name, nbytes, 0, min(elements, launch.pes))
    known = bool(shape and each and not elements % each)
    row = 0 if not known else shape[-1] if len(shape) > 1 else 1
    piece = _INTERLEAVED_BYTES
    if how == "near":
        piece = launch.piece(each if known else elements, row, item) * item
    return ArrayPlace(name, nbytes, piece, min(launch.pes, -(-nbytes // piece)))


def placed_for(rt: Runtime, asked: JitLaunch, name: str, value: Any) -> Any:
    """Return the device's tensor for an array of a kernel that is run alone; everything else as it is."""
    if not isinstance(value, NewArray | np.ndarray):
        return value
    kind = value.numpy_dtype if isinstance(value, NewArray) else value.dtype
    launch = LaunchShape.of(asked.grid, [site.sip for site in rt.pes], asked.of_compile_time)
    found = place(rt.use_placement(), launch, name, value.shape, math.prod(value.shape), kind.itemsize)
    return placed(rt, name, value, placement(found))


def placement(found: ArrayPlace) -> Interleave | None:
    """Give a place as `rt.tensor` takes it."""
    return Interleave(found.piece) if found.piece else None
