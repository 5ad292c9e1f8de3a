"""The comparison of results with what was expected, where arithmetic on the error says nothing: infinities and NaN."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernbench_core.compute.executor import DataExecutor
from kernbench_core.compute.verification import Expected, Verification
from kernbench_core.oplog.description import Access
from kernbench_core.oplog.log import OpLog
from kernbench_core.values.memory_store import MemoryStore
from kernbench_core.values.region import Region

INF, NAN = float("inf"), float("nan")


def compared(got: float, want: float) -> Verification:
    """Compare one f32 in memory with what was expected."""
    store = MemoryStore()
    store.write("hbm", 0, np.array([got], np.float32))
    return DataExecutor(OpLog(), store).verify({"x": (Access("hbm", (Region(0, 4),)), np.array([want], np.float32))})


@pytest.mark.parametrize(("got", "want"), [(INF, INF), (-INF, -INF), (NAN, NAN), (1.000001, 1.0)])
def test_equal_infinities_and_nan_are_right(got: float, want: float) -> None:
    """What is the same, or near a finite number, passes."""
    verdict = compared(got, want)
    assert (verdict.ok, verdict.failures) == (True, ())


@pytest.mark.parametrize(
    ("got", "want"), [(3.0, INF), (-INF, INF), (INF, -INF), (INF, 3.0), (NAN, INF), (INF, NAN), (3.0, NAN), (NAN, 3.0)]
)
def test_an_infinity_is_near_nothing_else(got: float, want: float) -> None:
    """A relative tolerance of an infinite value would let everything pass."""
    verdict = compared(got, want)
    assert verdict.failures == (
        "x must equal what is expected within rtol=1e-05, atol=1e-05, but 1 of 1 elements differ; the worst is [0]: "
        f"got {got}, expected {want}. No op made it: it was written by the host.",
    )


def test_what_memory_held_before_is_compared_as_any_nan() -> None:
    """A signalling NaN, as memory that nobody wrote may hold; numpy warns of its cast."""
    store, bits = MemoryStore(), np.array([0x7F800001], np.uint32)
    store.write("hbm", 0, bits.view(np.float32))
    access = Access("hbm", (Region(0, 4),))
    assert DataExecutor(OpLog(), store).verify({"x": (access, bits.view(np.float32))}).ok


def differing(wrong: np.ndarray[Any, Any]) -> str:
    """Return what a failure says between the number of elements that differ and the worst of them."""
    store = MemoryStore()
    store.write("hbm", 0, wrong.astype(np.int32))
    access = Access("hbm", (Region(0, 4 * wrong.size),))
    (failure,) = DataExecutor(OpLog(), store).verify({"x": (access, np.zeros(wrong.shape, np.int32))}).failures
    return failure.partition(" elements differ")[2].partition("; the worst is ")[0]


@given(st.lists(st.booleans(), min_size=2, max_size=16).filter(lambda wrong: sum(wrong) > 1))
def test_stretches_of_elements_are_spelled(wrong: list[bool]) -> None:
    """All of them, ascending: what is said is read back."""
    told = differing(np.array(wrong))
    first, _, more = told.removeprefix(": ").partition(" and ")
    read: set[int] = set()
    for stretch in first.split(", "):
        start, _, end = stretch.partition("-")
        read.update(range(int(start), int(end or start) + 1))
    right = {i for i, element in enumerate(wrong) if element}
    if not more:
        assert read == right
    else:
        left = right - read
        number = sum(i - 1 not in left for i in left)
        assert read < right and max(read) < min(left)
        assert more == f"{number} more stretch{'es' if number > 1 else ''}"


def test_stretches_of_a_matrix_go_row_by_row() -> None:
    """They are told by their first and last index; one element by its own."""
    wrong = np.zeros((3, 4), np.bool_)
    wrong[0, 1] = wrong[1, 2:] = wrong[2, 0] = True
    assert differing(wrong) == ": [0, 1], [1, 2] to [2, 0]"


@pytest.mark.parametrize(
    ("got", "want", "worst", "distance"),
    [
        ([5, 1 << 62, 7], [5, -(1 << 62), 7], 1, 2.0**63),
        ([5, (1 << 62) + 1, 7], [5, 1 << 62, 7], 1, 1.0),
        ([-(1 << 63), 0, 6], [(1 << 63) - 1, 0, 7], 0, 2.0**64),
    ],
)
def test_the_worst_of_large_integers_is_told(got: list[int], want: list[int], worst: int, distance: float) -> None:
    """Also where a difference does not fit into an int64, or is lost in a float."""
    store = MemoryStore()
    store.write("hbm", 0, np.array(got, np.int64))
    access = Access("hbm", (Region(0, 24),))
    verdict = DataExecutor(OpLog(), store).verify({"x": (access, np.array(want, np.int64))})
    assert verdict.max_abs_error == distance
    assert f"the worst is [{worst}]: got {got[worst]}, expected {want[worst]}." in verdict.failures[0]


#: What one type holds of what lies at the ends of another, and what f64 rounds to it.
ENDS = [end + by for end in (0, 1 << 7, 1 << 31, 1 << 53, 1 << 63, 1 << 64, -1 << 63, -1 << 53) for by in (-1, 0, 1)]


@settings(max_examples=40)
@given(
    got=st.tuples(st.sampled_from(["int8", "uint8", "int32", "uint32", "int64", "uint64"]), st.sampled_from(ENDS)),
    want=st.tuples(st.sampled_from(["int8", "int64", "uint64", "float64"]), st.sampled_from(ENDS)),
)
def test_integers_equal_what_python_says_that_they_equal(got: tuple[str, int], want: tuple[str, int]) -> None:
    """Whatever the types: no sign is lost, and none is rounded to a float."""
    one = np.array([got[1] % (1 << 64)], np.uint64).astype(got[0])
    other = np.array([want[1]], "f8") if want[0] == "float64" else np.array([want[1] % (1 << 64)], "u8").astype(want[0])
    store = MemoryStore()
    store.write("hbm", 0, one)
    expected = Expected(Access("hbm", (Region(0, one.nbytes),)), other, dtype=got[0])
    verdict = DataExecutor(OpLog(), store).verify({"x": expected})
    apart = abs(int(one[0]) - int(other[0]))
    assert verdict.ok == (one[0].item() == other[0].item()) == (not apart)
    assert want[0] == "float64" or verdict.max_abs_error == float(apart)


@pytest.mark.parametrize(("dtype", "within"), [("int32", "exactly"), ("float32", "within rtol=1e-05, atol=1e-05")])
def test_a_tensor_of_no_dimension_is_compared(dtype: str, within: str) -> None:
    """One element without an index: right, and wrong."""
    store = MemoryStore()
    store.write("hbm", 0, np.array(3, dtype))
    executor, access = DataExecutor(OpLog(), store), Access("hbm", (Region(0, 4),))
    assert executor.verify({"x": (access, np.array(3, dtype))}).ok
    got, expected = np.array([3, 4], dtype)
    assert executor.verify({"x": (access, np.array(4, dtype))}).failures == (
        f"x must equal what is expected {within}, but 1 of 1 elements differ; the worst is []: got {got}, expected "
        f"{expected}. No op made it: it was written by the host.",
    )


@pytest.mark.parametrize("wrong", [(7,), (99_999,), (10, 32_767, 32_768, 70_001), ()])
def test_large_arrays_are_compared_to_their_last_element(wrong: tuple[int, ...]) -> None:
    """However many are looked at together, all that differ are counted, and the worst of all is told at its place."""
    want = np.arange(100_000, dtype=np.int32).reshape(100, 1000)
    got = want.copy()
    for worse, at in enumerate(wrong, 1):
        got.flat[at] += worse
    store = MemoryStore()
    store.write("hbm", 0, got)
    verdict = DataExecutor(OpLog(), store).verify({"x": (Access("hbm", (Region(0, got.nbytes),)), want)})
    assert verdict.ok is not bool(wrong) and verdict.max_abs_error == len(wrong)
    if wrong:
        row, column = divmod(wrong[-1], 1000)
        said = verdict.failures[0]
        assert f"but {len(wrong)} of 100000 elements differ" in said
        assert f"the worst is [{row}, {column}]: got {wrong[-1] + len(wrong)}, expected {wrong[-1]}." in said
