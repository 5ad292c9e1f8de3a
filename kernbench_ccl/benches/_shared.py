"""What the benches of ranks share: products in blocks, weights, tolerances, and the checks of their parameters."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from attrs import frozen

from kernbench_core.errors import UsageError
from kernbench_core.host import Runtime
from kernbench_core.memory import Placement, Shard
from kernbench_core.values import Array
from kernbench_core.values.dtypes import epsilon, numpy_dtype, tolerance
from kernbench_core.wording import brief


def product_kernel(a_ptr, b_ptr, c_ptr, K, cut, activation, tl):
    """Compute one PE's block of C = A @ B, with an activation if one is named, as one composite."""
    row, col, rows, cols = cut.of(tl.program_id(0))
    if rows <= 0 or cols <= 0:
        return
    a = tl.ref(a_ptr + row * K, shape=(rows, K))
    b = tl.ref(b_ptr + col, shape=(K, cols), strides=(cut.cols, 1))
    c = tl.ref(c_ptr + row * cut.cols + col, shape=(rows, cols), strides=(cut.cols, 1))
    tl.composite(op="gemm", a=a, b=b, out=c, epilogue=[activation] if activation else [])


@frozen
class Cut:
    """Cut a result of `rows` x `cols` into blocks: columns over `cubes`, a cube's part into a `grid` over its PEs."""

    rows: int
    cols: int
    cubes: int
    grid: tuple[int, int]

    @classmethod
    def over(cls, rows: int, cols: int, cubes: int, pes: int) -> Cut:
        """Choose the grid of `pes` blocks in each cube that reads least: a PE reads its rows and its columns."""
        wide = -(-cols // cubes)
        grids = [(pes // across, across) for across in range(1, pes + 1) if pes % across == 0]
        best = min(grids, key=lambda grid: (-(-rows // grid[0]) + -(-wide // grid[1]), grid))
        return cls(rows, cols, cubes, best)

    def of(self, number: int) -> tuple[int, int, int, int]:
        """Return first row, first column, rows and columns of a PE's block; less than 1 of these where it has none."""
        cube, inside = divmod(number, self.grid[0] * self.grid[1])
        down, across = divmod(inside, self.grid[1])
        wide = -(-self.cols // self.cubes)
        row, rows = cut_share(self.rows, self.grid[0], down)
        col, cols = cut_share(min(wide, self.cols - cube * wide), self.grid[1], across)
        return row, cube * wide + col, rows, cols


def cut_share(count: int, parts: int, index: int) -> tuple[int, int]:
    """Return the start and the length of a part of `count`; the last ones may be shorter, or missing."""
    size = -(-count // parts)
    return index * size, min(size, count - index * size)


def by_cubes(rt: Runtime, shape: tuple[int, int]) -> Mapping[str, Placement] | None:
    """Return the placement of a matrix whose columns the cubes share, as in a `Cut`: its rows over a cube's PEs.

    None, which deals rows, where that does not divide.
    """
    _, cubes, pes = rt.mesh
    return {"cube": Shard(1), "pe": Shard(0)} if shape[1] % cubes == 0 and shape[0] % pes == 0 else None


def normal(rt: Runtime, shape: tuple[int, ...], dtype: str, scale: float = 1.0) -> Array:
    """Draw normal numbers of this standard deviation."""
    found: Array = (rt.rng.standard_normal(shape, np.float32) * np.float32(scale)).astype(numpy_dtype(dtype))
    return found


def drawn(rt: Runtime, shape: tuple[int, ...], dtype: str, scale: float = 1.0) -> Array | None:
    """Draw as `normal` does; None in a run without data."""
    return normal(rt, shape, dtype, scale) if rt.data else None


def product(a: Array, b: Array, dtype: str) -> Array:
    """Multiply with numpy: sums in f32, rounded once to `dtype`."""
    return (a.astype(np.float32) @ b.astype(np.float32)).astype(numpy_dtype(dtype))


def rounding(expected: Array, dtype: str, steps: int) -> float:
    """Return how far a result may be off that was rounded `steps` times on its way where the reference was not.

    One rounding is off by at most eps / 2 of what it rounds, which is about as large as the result is in the mean.
    """
    rms = float(np.sqrt(np.mean(np.square(expected, dtype=np.float32))))
    return max(tolerance(dtype), steps * epsilon(dtype) * rms)


def require_positive(**params: int) -> None:
    """Raise UsageError when one of these parameters is less than 1."""
    for name, value in params.items():
        if value < 1:
            raise UsageError(f"parameter {name!r} must be a positive integer, not {brief(value)}; give 1 or more.")


def require_multiple(name: str, value: int, of: int, what: str) -> None:
    """Raise UsageError when parameter `name` is no multiple of `of`, which is `what`."""
    if value % of:
        fits = -(-value // of) * of
        raise UsageError(f"parameter {name!r} must be a multiple of {of}, {what}, not {brief(value)}; give {fits}.")
