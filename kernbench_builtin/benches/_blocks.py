"""How a matrix product is cut over a machine: a grid of blocks of C, rows over packages first."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from kernbench_core.dtypes import itemsize
from kernbench_core.placement import Interleave, Placement, Shard
from kernbench_core.runtime import Runtime


@frozen
class Blocks:
    """Cut an M x N result into blocks of `rows` x `cols`, one per PE, `across` of them side by side.

    PEs count along a row of blocks first. The last blocks of a row or a column may be smaller or empty.
    """

    rows: int
    cols: int
    across: int

    @classmethod
    def over(cls, rt: Runtime, m: int, n: int) -> Blocks:
        """Choose the grid that reads least: rows are dealt to packages, and each package is a grid of its own.

        A PE reads `rows` + `cols` of the operands. Rows of A that a package needs lie in it, as rows are dealt.
        """
        packages, cubes, pes = rt.mesh
        grids = [(cubes * pes // across, across) for across in range(1, cubes * pes + 1) if cubes * pes % across == 0]
        down, across = min(grids, key=lambda grid: (-(-m // (packages * grid[0])) + -(-n // grid[1]), grid))
        return cls(-(-m // (packages * down)), -(-n // across), across)


def rows_by_cube(rt: Runtime, rows: int, columns: int, dtype: str) -> Mapping[str, Placement] | None:
    """Return the placement of A: rows cut over packages and cubes, and dealt one by one to a cube's PEs.

    So a tile is spread evenly over the slices of one cube. None where the rows do not divide over the cubes.
    """
    packages, cubes, _ = rt.mesh
    if rows % (packages * cubes):
        return None
    return {"sip": Shard(0), "cube": Shard(0), "pe": Interleave(columns * itemsize(dtype))}


def columns_by_cube(rt: Runtime, columns: int, dtype: str) -> Mapping[str, Placement] | None:
    """Return the placement of B: a copy in each package, columns cut over its cubes, rows dealt to a cube's PEs.

    None where the columns do not divide over the cubes.
    """
    _, cubes, _ = rt.mesh
    if columns % cubes:
        return None
    return {"cube": Shard(1), "pe": Interleave(columns // cubes * itemsize(dtype))}
