"""Records and plain values as JSON and back: equal, of the same types, and nothing that is not on the list."""

from __future__ import annotations

import importlib
import json
import math
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_core.cache import NotCacheable
from kernbench_core.host.figures.columns import ColumnTable, TextColumn
from kernbench_core.runs.cached.columns import Arrays, array_at, table_json, table_of
from kernbench_core.runs.cached.records import _MODULES, decode, encode

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.sampled_from(["a", "@", "of", ""]) | st.integers(0, 2), inner, max_size=3)
    ),
    max_leaves=8,
)


def there_and_back(value: Any) -> Any:
    return decode(json.loads(json.dumps(encode(value))))


def spelled(value: Any) -> str:
    """Spell a value with its types; one NaN is as another."""
    return "nan" if isinstance(value, float) and math.isnan(value) else f"{type(value).__name__} {value!r}"


@given(value=VALUES)
def test_plain_values_come_back_as_they_were(value: Any) -> None:
    assert repr(there_and_back(value)) == repr(value) and spelled(there_and_back(value)) == spelled(value)


@pytest.mark.parametrize("name", _MODULES)
def test_each_record_comes_back_as_it_was(name: str) -> None:
    """With a value of its own in each field; what a result leaves behind stays behind."""
    kind = getattr(importlib.import_module(_MODULES[name]), name)
    fields = [field for field in attrs.fields(kind) if field.init]
    given = {field.alias or field.name: (at, f"v{at}", at / 7, None, {"k": (at,)}) for at, field in enumerate(fields)}
    record = kind(**given)
    back = there_and_back(record)
    assert type(back) is kind
    for field in fields:
        was = getattr(record, field.name)
        assert getattr(back, field.name) == (None if (name, field.name) == ("Failure", "value") else was)


def test_numbers_of_numpy_become_pythons() -> None:
    back = there_and_back((np.float64(1 / 3), np.int32(7), np.bool_(True), np.float32(0.5), np.array(4)))
    assert back == (1 / 3, 7, True, 0.5, 4) and [type(each) for each in back] == [float, int, bool, float, int]


@pytest.mark.parametrize("thing", [object(), {1, 2}, b"bytes", print, np.zeros(2)])
def test_what_is_no_record_is_refused(thing: Any) -> None:
    with pytest.raises(NotCacheable, match=r"^the result has a .*, which the cache cannot keep\.$"):
        encode((1, [thing]))


def test_nothing_is_made_of_a_name_that_is_not_on_the_list() -> None:
    with pytest.raises(KeyError):
        decode({"@": "Popen", "of": [["touch", "file"]]})


@given(
    numbers=st.lists(st.integers(-9, 9), max_size=5),
    texts=st.lists(st.sampled_from(["a", "b", "é", ""]), min_size=5, max_size=5),
)
def test_tables_come_back_with_their_types(numbers: list[int], texts: list[str]) -> None:
    """Numbers of each type, texts that repeat in two forms; rows may be none."""
    rows = len(numbers)
    table = ColumnTable(
        rows,
        {
            "i": np.array(numbers, np.int16),
            "f": lambda: np.array(numbers, np.float64) / 3,
            "b": np.array(numbers, np.int64) > 0,
            "t": TextColumn(np.arange(rows) % 2, ["x", "y"]),
            "o": np.array(texts[:rows], object),
        },
    )
    arrays = Arrays()
    said = json.loads(json.dumps(table_json(table, arrays)))
    back = table_of(said, arrays.data())
    assert back == table and back.keys() == table.keys() and len(back) == rows
    assert [back[name].dtype for name in back.keys()] == [table[name].dtype for name in table.keys()]  # noqa: SIM118
    assert back.to_json() == table.to_json() and list(back) == list(table)


@pytest.mark.parametrize("dtype", ["f4", ">f8", "i1", "bool", "c16", "bfloat16", "float8_e5m2"])
def test_arrays_come_back_byte_for_byte(dtype: str) -> None:
    import ml_dtypes

    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    array = np.arange(12).reshape(3, 4).astype(kind)
    arrays = Arrays()
    arrays.add(np.zeros(3, np.int8))
    said = arrays.add(array.T)
    back = array_at(arrays.data(), json.loads(json.dumps(said)))
    assert back.dtype == kind and back.shape == (4, 3) and back.tobytes() == array.T.tobytes()
    assert not back.flags.writeable


def test_arrays_of_objects_are_refused() -> None:
    with pytest.raises(NotCacheable) as caught:
        Arrays().add(np.array([None]))
    assert str(caught.value) == "the result has an array of objects, which the cache cannot keep."
    with pytest.raises(NotCacheable) as caught:
        table_json(ColumnTable(1, {"c": np.array([1.5], object)}), Arrays())
    assert str(caught.value) == "the result has a column 'c' of objects, which the cache cannot keep."
