"""How a matrix product is cut over a machine: a grid of blocks of C, rows over packages first."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from kernbench_core.host import Runtime
from kernbench_core.memory import Interleave, Placement, Shard
from kernbench_core.values.dtypes import itemsize


@frozen
class Blocks:
    """Cut an M x N result into blocks of `rows` x `cols`, one per PE; the last of a row or a column may be smaller.

    `grid` is how many blocks lie below each other and side by side in a package. `cubes` is how many cubes do, where
    each cube has a rectangle of the grid; else PEs count along a row of blocks first.
    """

    m: int
    n: int
    rows: int
    cols: int
    grid: tuple[int, int]
    cubes: tuple[int, int] = (1, 1)

    @classmethod
    def over(cls, rt: Runtime, m: int, n: int) -> Blocks:
        """Choose the grid that reads least: rows are dealt to packages, and each package is a grid of its own.

        A PE reads `rows` + `cols` of the operands. Of equal grids one that gives cubes rectangles is taken.
        """
        packages, cubes, pes = rt.mesh
        grids = [(cubes * pes // across, across) for across in range(1, cubes * pes + 1) if cubes * pes % across == 0]
        width, height = rt.cube_mesh

        def worth(grid: tuple[int, int]) -> tuple[int, bool, tuple[int, int]]:
            fits = grid[0] % height == 0 and grid[1] % width == 0
            return -(-m // (packages * grid[0])) + -(-n // grid[1]), not fits, grid

        _, loose, (down, across) = min(map(worth, grids))
        sizes = (-(-m // (packages * down)), -(-n // across))
        return cls(m, n, *sizes, (down, across), (1, 1) if loose else (height, width))

    def of(self, pe: int) -> tuple[int, int, int, int]:
        """Return the first row and column of a PE's block, and how many of each it has; less than 1 if it has none.

        A cube's rows are those of its row of cubes, whose part of A lies there. Columns are dealt so that a cube's
        column of cubes holds its part of B, which `columns_by_cube` cuts by the cubes' numbers.
        """
        (down, across), (height, width) = self.grid, self.cubes
        package, left = divmod(pe, down * across)
        cube, inside = divmod(left, down * across // (height * width))
        (y, x), (row, col) = divmod(cube, width), divmod(inside, across // width)
        along = x * (across // width) + col
        if across % (height * width) == 0:
            together = across // (height * width)
            along = (col // together * width + x) * together + col % together
        first_row = ((package * height + y) * (down // height) + row) * self.rows
        first_col = along * self.cols
        return first_row, first_col, min(self.rows, self.m - first_row), min(self.cols, self.n - first_col)


def rows_by_cube(rt: Runtime, rows: int, columns: int, dtype: str) -> Mapping[str, Placement] | None:
    """Return the placement of A: rows cut over packages and cubes, and dealt one by one to a cube's PEs.

    So a tile is spread evenly over the slices of one cube. None where the rows do not divide over cubes and PEs.
    """
    packages, cubes, pes = rt.mesh
    if packages * cubes > 1 and rows % (packages * cubes * pes):
        return None
    return {"sip": Shard(0), "cube": Shard(0), "pe": Interleave(columns * itemsize(dtype))}


def columns_by_cube(rt: Runtime, rows: int, columns: int, dtype: str) -> Mapping[str, Placement]:
    """Return the placement of B: a copy in each package, columns cut over its cubes, rows dealt to a cube's PEs.

    Where that does not divide, rows are dealt to all PEs of the package.
    """
    _, cubes, pes = rt.mesh
    if cubes > 1 and (columns % cubes or rows % pes):
        dealt = Interleave(columns * itemsize(dtype))
        return {"cube": dealt, "pe": dealt}
    return {"cube": Shard(1), "pe": Interleave(columns // cubes * itemsize(dtype))}
