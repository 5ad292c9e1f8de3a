"""Values as files and back: equal, of the same types, and never an object of a class that is not core's."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_builtin.cache.packing import pack, unpack
from kernbench_core.cache.dependencies import NotCacheable

KEYS = st.sampled_from(["a", "@", "of", ""]) | st.integers(0, 2)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.one_of(st.lists(inner), st.lists(inner).map(tuple), st.dictionaries(KEYS, inner)),
    max_leaves=8,
)


@given(value=VALUES)
def test_plain_values_come_back_as_they_were(value: Any) -> None:
    back = unpack(pack(value))
    assert repr(back) == repr(value) and type(back) is type(value)


@pytest.mark.parametrize("dtype", [np.float32, np.int8, ">i4", bool, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2, "U3"])
@pytest.mark.parametrize("shape", [(3, 5), (0, 2), ()])
def test_arrays_come_back_as_they_were(dtype: Any, shape: tuple[int, ...]) -> None:
    """Several in one, each after the other, and not one that can be written."""
    array = np.arange(math.prod(shape)).reshape(shape).astype(dtype)
    first, back, *last = unpack(pack((array, array.T, "x", np.float32(0.5))))
    assert (back.dtype, back.shape, back.tobytes()) == (array.dtype, array.T.shape, array.T.tobytes())
    assert first.tobytes() == array.tobytes() and repr(last) == "['x', 0.5]" and not back.flags.writeable


@pytest.mark.parametrize(
    "value, what",
    [
        *((np.zeros(2, dtype), f"an array of {np.dtype(dtype)}") for dtype in (ml_dtypes.int4, object, [("a", "O")])),
        (Fraction(1, 2), "a fractions.Fraction"), ({1, 2}, "a builtins.set"), (b"bytes", "a builtins.bytes"),
    ],
)  # fmt: skip
def test_what_has_no_form_is_refused(value: Any, what: str) -> None:
    sentence = f"the result has {re.escape(what)}, which the cache cannot keep(; give numbers and texts)?."
    with pytest.raises(NotCacheable, match=f"^{sentence}$"):
        pack((1, {"x": value}))
