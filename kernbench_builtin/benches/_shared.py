"""What benches share: checks of their parameters, and the numpy references of a matrix product."""

from __future__ import annotations

import numpy as np

from kernbench_core.errors import UsageError
from kernbench_core.host import DeviceTensor, Runtime
from kernbench_core.values import Array
from kernbench_core.values.dtypes import is_int, numpy_dtype, tolerance
from kernbench_core.wording import brief


def require_positive(**params: int | str) -> None:
    """Raise UsageError when one of these parameters is a number less than 1."""
    for name, value in params.items():
        if not isinstance(value, str) and value < 1:
            raise UsageError(f"parameter {name!r} must be a positive integer, not {brief(value)}; give 1 or more.")


def require_divisor(name: str, value: int, of: str, whole: int) -> None:
    """Raise UsageError when parameter `name` does not divide parameter `of`."""
    if whole % value:
        raise UsageError(
            f"parameter {name!r} must divide {of!r}, which is {whole}, not {brief(value)}; give a divisor."
        )


def read_back(rt: Runtime, result: DeviceTensor, *operands: object) -> None:
    """Take the time of copying a result to the host, unless another bench called, with a tensor of the device."""
    if not any(isinstance(operand, DeviceTensor) for operand in operands):
        rt.copy_to_host(result)


def check_product(rt: Runtime, c: DeviceTensor, a: DeviceTensor, b: DeviceTensor) -> None:
    """Ask that `c`, as it is now, be compared with numpy's product of `a` and `b`, as they are now."""
    left, right = a.snapshot(), b.snapshot()

    def atol() -> float:
        return max(tolerance(c.dtype), _rounding(left(), right()))

    rt.check(c, lambda: product(left(), right(), c.dtype), atol=None if is_int(c.dtype) else atol)


def product(a: Array, b: Array, dtype: str) -> Array:
    """Multiply with numpy: sums in f32 (or int32), rounded once to `dtype`."""
    wide = np.int32 if is_int(dtype) else np.float32
    with np.errstate(invalid="ignore"):  # some builds of BLAS set the flag for lanes that nobody asked for
        return (a.astype(wide) @ b.astype(wide)).astype(numpy_dtype(dtype))


def _rounding(a: Array, b: Array) -> float:
    """Return how far two f32 sums of the same terms may be apart in one element of the product.

    Each tiling adds the K terms in another order, and an element near 0 is a sum of terms that are not: each leaves
    about 2^-24 of a typical term behind. The maximum over many elements stays under 4 times that.
    """
    return float(a.shape[1] * 2.0**-22 * _rms(a) * _rms(b))


def _rms(array: Array) -> float:
    return float(np.sqrt(np.mean(np.square(array, dtype=np.float32))))
