"""What benches share: checks of their parameters, and the numpy references of a matrix product."""

from __future__ import annotations

import numpy as np

from kernbench_core.errors import UsageError
from kernbench_core.host import DeviceTensor, Runtime
from kernbench_core.memory import Placements
from kernbench_core.values import Array
from kernbench_core.values.dtypes import info, is_int, itemsize, numpy_dtype, tolerance


def require_positive(**params: int) -> None:
    """Raise UsageError when one of these parameters is less than 1."""
    for name, value in params.items():
        if value < 1:
            raise UsageError(f"parameter {name!r} must be a positive integer, not {value!r}; give 1 or more.")


def require_divisor(name: str, value: int, of: str, whole: int) -> None:
    """Raise UsageError when parameter `name` does not divide parameter `of`."""
    if whole % value:
        raise UsageError(f"parameter {name!r} must divide {of!r}, which is {whole}, not {value!r}; give a divisor.")


def operand(
    rt: Runtime, name: str, given: Array | None, dtype: str, placement: Placements | None = None, /, **shape: int
) -> DeviceTensor:
    """Place `given` as tensor `name`, or random numbers when it is None; refuse a wrong shape or dtype.

    `shape` holds the extents under the names of the bench's parameters, first dimension first. A file of bf16 holds
    plain pairs of bytes, as numpy has no name for the type.
    """
    extents = tuple(shape.values())
    if given is None:
        return rt.tensor(extents, dtype, name=name, placement=placement)
    if info(dtype).library == "ml_dtypes" and given.dtype == np.dtype(f"V{itemsize(dtype)}"):
        given = given.view(numpy_dtype(dtype))
    if given.ndim != len(shape):
        raise UsageError(
            f"parameter {name!r} must be an array of {len(shape)} dimensions, not of shape {given.shape}; "
            "give another file."
        )
    if given.shape != extents:
        fits = " ".join(f"-p {param}={extent}" for param, extent in zip(shape, given.shape, strict=True))
        raise UsageError(
            f"parameter {name!r} must be an array of shape {extents}, not {given.shape}; give {fits}, or another file."
        )
    if given.dtype != numpy_dtype(dtype):
        raise UsageError(
            f"parameter {name!r} must be an array of dtype {numpy_dtype(dtype)}, not {given.dtype}; "
            "cast the file, or choose its dtype with -p dtype=NAME."
        )
    return rt.tensor(given, dtype, name=name, placement=placement)


def check_product(rt: Runtime, c: DeviceTensor, a: DeviceTensor, b: DeviceTensor) -> None:
    """Ask that `c`, as it is now, be compared with numpy's product of `a` and `b`."""
    if not rt.data:
        rt.check(c, lambda: product(a.numpy(), b.numpy(), c.dtype))
        return
    left, right = a.numpy(), b.numpy()
    atol = None if is_int(c.dtype) else max(tolerance(c.dtype), _rounding(left, right))
    rt.check(c, lambda: product(left, right, c.dtype), atol=atol)


def product(a: Array, b: Array, dtype: str) -> Array:
    """Multiply with numpy: sums in f32 (or int32), rounded once to `dtype`."""
    wide = np.int32 if is_int(dtype) else np.float32
    return (a.astype(wide) @ b.astype(wide)).astype(numpy_dtype(dtype))


def _rounding(a: Array, b: Array) -> float:
    """Return how far two f32 sums of the same terms may be apart in one element of the product.

    Each tiling adds the K terms in another order, and an element near 0 is a sum of terms that are not: each leaves
    about 2^-24 of a typical term behind. The maximum over many elements stays under 4 times that.
    """
    return float(a.shape[1] * 2.0**-22 * _rms(a) * _rms(b))


def _rms(array: Array) -> float:
    return float(np.sqrt(np.mean(np.square(array, dtype=np.float32))))
