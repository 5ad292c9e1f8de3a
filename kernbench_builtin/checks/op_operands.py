"""The operands that ops are tried on: of several shapes, and with the numbers that ops are most often wrong for.

What is computed in f32 is compared with f64, so that no sum of them cancels what f32 cannot hold: numbers that are far
apart meet in elementwise ops only, and those of a long line have one sign.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from kernbench_builtin.verify.recomputation import way_of
from kernbench_core.compute.ops import Form, MathOp
from kernbench_core.values import dtypes
from kernbench_core.values.arrays import Array, Shape

ROWS, COLUMNS = 6, 5
_SHAPES: Final[tuple[Shape, ...]] = ((1, 1), (7, 3), (2, 3, 4))
_LONG: Final = (3, 1707)
_SEVERAL: Final = (7, 9)
_NUMBERS: Final[tuple[float, ...]] = (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, np.nan, np.inf, -np.inf)
_FAR: Final[tuple[float, ...]] = (1e-4, -1e-4, 100.0, -100.0, 1.2e4, -1.2e4, 3e4, -3e4)
_LARGE: Final = (1e4, 3e4)
#: What integers of 4 bytes and more stay below for a second way in floats, which holds their products.
_SMALL: Final = 1 << 15


def common(random: np.random.Generator, dtype: str, shape: Shape = (ROWS, COLUMNS), signed: bool = True) -> Array:
    """Return floats from 0.5 to 3, of either sign if `signed`; integers from 0 to 7; bools."""
    kind = dtypes.info(dtype).kind
    if kind == "float":
        signs = random.choice([-1.0, 1.0], shape) if signed else 1.0
        return dtypes.cast(random.uniform(0.5, 3.0, shape) * signs, dtype)
    return random.integers(0, 2 if kind == "bool" else 8, shape).astype(dtypes.numpy_dtype(dtype))


def more(random: np.random.Generator, op: MathOp, given: Sequence[str]) -> Iterator[list[Array]]:
    """Yield further operands of some dtypes: other shapes, many elements, then special numbers."""
    for shape in _SHAPES:
        yield [common(random, dtype, shape) for dtype in given]
    yield [common(random, dtype, _LONG, signed=op.form is Form.ELEMENTWISE) for dtype in given]
    yield [_special(random, op, dtype) for dtype in given]
    if any(map(dtypes.is_float, given)):
        yield [_large(random, dtype) for dtype in given]


def _special(random: np.random.Generator, op: MathOp, dtype: str) -> Array:
    kind = dtypes.info(dtype).kind
    if kind == "float":
        floats = _NUMBERS + _FAR if op.form is Form.ELEMENTWISE else _NUMBERS
        return dtypes.cast(random.choice(floats, _SEVERAL), dtype)
    if kind == "bool":
        return random.integers(0, 2, _SEVERAL).astype(bool)
    least, greatest = _ends(op, dtype)
    between = random.integers(least, min(greatest, 2**63), 8).tolist()
    numbers = [least, least + 1, -1, 0, 1, 2, greatest - 1, greatest, *between]
    held = [number for number in numbers if least <= number <= greatest]
    return random.choice(np.array(held, dtypes.numpy_dtype(dtype)), _SEVERAL)


def _ends(op: MathOp, dtype: str) -> tuple[int, int]:
    """Return the least and the greatest integer that an op is tried on."""
    limits = np.iinfo(dtypes.numpy_dtype(dtype))
    least, greatest = int(limits.min), int(limits.max)
    again = way_of(op)
    if again is None or again.integers is not None:
        return least, greatest
    most = _SMALL if op.form is Form.ELEMENTWISE else 7
    return max(least, -most), min(greatest, most)


def _large(random: np.random.Generator, dtype: str) -> Array:
    if dtypes.is_float(dtype):
        return dtypes.cast(random.uniform(*_LARGE, (ROWS, COLUMNS)), dtype)
    return common(random, dtype)
