"""What a second way to an op gives: a result with a slack, before it is rounded. See `record.Again`."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from kernbench_core.values import dtypes
from kernbench_core.values.arrays import Array


@frozen(eq=False)
class Anew:
    """A result before it is rounded: f64, or integers; floats may be wrong by `slack`. `exact`: it was only moved."""

    value: Array
    slack: Array | float = 0.0
    exact: bool = False

    @property
    def whole(self) -> bool:
        """Whether the elements are integers."""
        return self.value.dtype.kind in "iub"


def comparable(x: Array) -> Array:
    """Return integers as they are, and floats in f64."""
    return x if x.dtype.kind in "iub" else x.astype(np.float64)


def rounded(value: Array, dtype: str) -> Array:
    """Round to a dtype: floats to the nearest, integers by cutting and wrapping; f8 stops at its greatest number."""
    target, greatest = dtypes.numpy_dtype(dtype), dtypes.info(dtype).greatest
    with np.errstate(all="ignore"):
        if greatest is not None and value.dtype != target:  # what is one of its infinities already stays one
            value = np.clip(value.astype(np.float64), -greatest, greatest)
        elif target.kind in "iu" and value.dtype.kind not in "iub":
            value = _wrapped_in_64_bits(value.astype(np.float64))
        return value.astype(target)


def _wrapped_in_64_bits(value: Array) -> Array:
    """Cut floats to int64; those that it does not hold by Python's integers, one by one."""
    fits = np.abs(value) < 2.0**63
    whole = np.where(fits, np.trunc(value), 0.0).astype(np.int64)
    for index in zip(*np.nonzero(np.atleast_1d(np.isfinite(value) & ~fits)), strict=True):
        at = index if value.ndim else ()
        whole[at] = (int(value[at]) + (1 << 63)) % (1 << 64) - (1 << 63)
    return whole
