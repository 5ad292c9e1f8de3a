"""The data of a value, put together anew, and how far a result may be from its second way."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernbench_core.compute.ops.second_way import Anew, comparable, rounded
from kernbench_core.values import dtypes
from kernbench_core.values.arrays import Array
from kernbench_core.values.value import AssemblyValue, Value


def snapshot(value: Value) -> Array:
    """Return the data of a value; one that is made of parts is put together byte by byte, in order."""
    content = value.content()
    if not isinstance(content, AssemblyValue):
        return content.array()
    out = np.zeros(content.nbytes, np.uint8)
    for part in content.parts():
        source = np.frombuffer(np.ascontiguousarray(part.source.array()).tobytes(), np.uint8)
        out[_places(part.dst)] = source[_places(part.src)]
    return out.view(dtypes.numpy_dtype(content.dtype)).reshape(content.shape)


def _places(region: Any) -> Any:
    if region.rows == 1:
        return slice(region.base, region.base + region.row_bytes)
    return np.add.outer(region.base + region.pitch * np.arange(region.rows), np.arange(region.row_bytes)).ravel()


def differs(found: Array, wanted: Anew, dtype: str) -> tuple[Array, Array]:
    """Return which elements of `found` cannot be `wanted` rounded to `dtype`, and what they should be.

    A float, or an integer cut from one, must lie between the two ends of what is allowed, each rounded.
    """
    expected = rounded(wanted.value, dtype)
    got, right = comparable(found), comparable(expected)
    same = (got == right) | ((got != got) & (right != right))
    if wanted.exact or wanted.whole:
        return ~same, expected
    with np.errstate(all="ignore"):
        room = wanted.slack + (dtypes.tolerance(dtype) or dtypes.tolerance("f32")) * (1.0 + np.abs(wanted.value))
        low, high = (comparable(rounded(wanted.value + way * room, dtype)) for way in (-1.0, 1.0))
        inside = np.isfinite(wanted.value) & (low <= got) & (got <= high)
    return ~(same | inside), expected
