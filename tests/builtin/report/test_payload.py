"""Data inside of a page: nothing breaks out of it, and arrays come back as they were."""

from __future__ import annotations

import base64
import json
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from kernbench_builtin.pages.report.payload import packed, script_text

TYPES = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "float32", "float64"]


def unpacked(found: dict[str, object]) -> np.ndarray:
    """Do what the page's script does, in another way: join the planes of bytes number by number."""
    kind = np.dtype(str(found["$"])).newbyteorder("<")
    data, number = zlib.decompress(base64.b64decode(str(found["z"]))), int(str(found["n"]))
    joined = bytes(data[plane * number + i] for i in range(number) for plane in range(kind.itemsize))
    return np.frombuffer(joined, kind)


@given(st.sampled_from(TYPES).flatmap(lambda kind: arrays.arrays(kind, st.integers(0, 80))))
def test_arrays_come_back(array: np.ndarray) -> None:
    """Whatever their type, length and numbers."""
    assert unpacked(packed(array)).tobytes() == array.tobytes()


@given(st.text(), st.text())
def test_no_text_ends_the_script(name: str, value: str) -> None:
    """The text is JSON of the same value, without what HTML or JavaScript would stop at."""
    text = script_text({name: [value, "</script><!--", "\u2028"]})
    assert json.loads(text) == {name: [value, "</script><!--", "\u2028"]}
    assert not set(text) & set("<>&\u2028\u2029")


def test_numbers_that_json_has_not_are_null() -> None:
    """Infinite ones, too; numpy's are plain."""
    assert script_text([float("inf"), float("nan"), np.float64(2.5), np.int64(3)]) == "[null,null,2.5,3]"
    assert json.loads(script_text(np.arange(3, dtype=np.uint8))) == {"$": "uint8", "v": [0, 1, 2]}


def test_a_type_that_browsers_have_not_is_refused() -> None:
    """With the types that there are."""
    with pytest.raises(ValueError) as caught:
        packed(np.zeros(40, np.int64))
    assert str(caught.value) == f"an array must be of {', '.join(TYPES)}, not int64"
