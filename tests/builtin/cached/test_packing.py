"""Values as files and back: equal, of the same types, and never an object of a class that is not core's."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_builtin.cache.packing import pack, unpack
from kernbench_core.cache.dependencies import NotCacheable
from kernbench_core.host.figures.columns import ColumnTable, TextColumn

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.sampled_from(["a", "@", "of", ""]) | st.integers(0, 2), inner, max_size=3)
    ),
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
    first, back, last = unpack(pack((array, array.T, b"x".decode())))
    assert (back.dtype, back.shape, back.tobytes()) == (array.dtype, array.T.shape, array.T.tobytes())
    assert first.tobytes() == array.tobytes() and last == "x" and not back.flags.writeable


def test_tables_come_back_as_they_were() -> None:
    table = ColumnTable(2, {"n": lambda: np.arange(2), "text": TextColumn.of(["x", "y"])})
    back = unpack(pack({"table": table}))["table"]
    assert type(back) is ColumnTable and back == table and back[1] == {"n": 1, "text": "y"}


def test_numbers_of_numpy_become_pythons() -> None:
    assert repr(unpack(pack([np.float32(0.5), np.int64(3), np.bool_(True)]))) == "[0.5, 3, True]"


@pytest.mark.parametrize("dtype", [ml_dtypes.int4, object, [("a", "O")]])
def test_arrays_that_numpy_cannot_spell_are_refused(dtype: Any) -> None:
    with pytest.raises(NotCacheable, match=r"^the result has an array of .*, which the cache cannot keep\.$"):
        pack(np.zeros(2, dtype))


class Own:
    """A class of somebody else."""


@pytest.mark.parametrize("value", [Own(), {"x": {1, 2}}, b"bytes", print])
def test_what_has_no_form_is_refused(value: Any) -> None:
    kind = type(value["x"] if isinstance(value, Mapping) else value)
    with pytest.raises(NotCacheable) as caught:
        pack((1, value))
    assert str(caught.value) == (
        f"the result has a {kind.__module__}.{kind.__qualname__}, which the cache cannot keep; give numbers and texts."
    )


@pytest.mark.parametrize("name", ["subprocess:Popen", "kernbench_core.package:time", "kernbench_core.oplog:nothing"])
def test_no_other_class_is_ever_made(name: str) -> None:
    packed = pack(ColumnTable(0, {})).replace(b"kernbench_core.host.figures.columns:ColumnTable", name.encode())
    with pytest.raises((ValueError, AttributeError)):
        unpack(packed)
