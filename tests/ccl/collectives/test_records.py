"""What is right: sizes, bus bandwidth factors, numpy results, and inputs that reduce exactly in any order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernbench_ccl.collectives import COLLECTIVES, CallShape, exact_inputs, right_outputs
from kernbench_ccl.reductions import REDOPS, reduced, refuse_redop
from kernbench_core.values.dtypes import NAMES, cast, epsilon, info, is_float, is_int, numpy_dtype, to_compute
from tests.ccl import numpy_results


@pytest.mark.parametrize(
    ("name", "counts", "size", "factor"),
    [
        ("all_reduce", (10, 10), 10, 1.5),
        ("all_gather", (10, 40), 40, 0.75),
        ("reduce_scatter", (40, 10), 40, 0.75),
        ("all_to_all", (40, 40), 40, 0.75),
        ("broadcast", (10, 10), 10, 1.0),
        ("reduce", (10, 10), 10, 1.0),
        ("gather", (10, 40), 40, 0.75),
        ("scatter", (40, 10), 40, 0.75),
        ("send_recv", (10, 10), 10, 1.0),
        ("barrier", (0, 0), 0, 1.0),
    ],
)
def test_sizes_and_factors_are_those_of_nccl_tests(
    name: str, counts: tuple[int, int], size: int, factor: float
) -> None:
    """Four ranks, a count of ten, at the root."""
    kind = COLLECTIVES[name]
    call = CallShape(4, 10)
    assert (kind.in_count(call, 0), kind.out_count(call, 0)) == counts
    assert kind.size_count(10, 4) == size and kind.factor(4) == factor
    assert kind.busbw(1000, 10.0, 4) == 100 * factor
    if size:
        assert kind.count_of(size, 4) == 10


def test_only_the_root_has_an_input_or_an_output_where_there_is_one() -> None:
    """Rank 1 is not the root."""
    call = CallShape(4, 10, root=0)
    sizes = {n: (k.in_count(call, 1), k.out_count(call, 1)) for n, k in COLLECTIVES.items() if k.rooted}
    assert sizes == {"broadcast": (0, 10), "reduce": (10, 0), "gather": (10, 0), "scatter": (0, 10)}


def test_uneven_splits_decide_the_sizes() -> None:
    """Rows are sent, columns are received."""
    kind = COLLECTIVES["all_to_all"]
    call = CallShape(2, 4, counts=((1, 2), (3, 4)))
    assert [kind.in_count(call, r) for r in (0, 1)] == [3, 7]
    assert [kind.out_count(call, r) for r in (0, 1)] == [4, 6]


def expected(name: str, inputs: list[Any], count: int = 4, **details: Any) -> list[Any]:
    """Return what a record says that the outputs must hold."""
    return right_outputs(COLLECTIVES[name], CallShape(len(inputs), count, **details), inputs)


def test_the_right_result_of_every_collective() -> None:
    """Written out for two ranks."""
    a, b = np.array([1, 2, 3, 4]), np.array([10, 20, 30, 40])
    assert [list(x) for x in expected("all_reduce", [a, b], redop="sum")] == [[11, 22, 33, 44]] * 2
    assert [list(x) for x in expected("reduce_scatter", [a, b], 2, redop="sum")] == [[11, 22], [33, 44]]
    assert [list(x) for x in expected("all_gather", [a, b])] == [[1, 2, 3, 4, 10, 20, 30, 40]] * 2
    assert [list(x) for x in expected("all_to_all", [a, b], 2)] == [[1, 2, 10, 20], [3, 4, 30, 40]]
    assert [list(x) for x in expected("all_to_all", [a, b], counts=((1, 3), (4, 0)))] == [
        [1, 10, 20, 30, 40],
        [2, 3, 4],
    ]
    assert [list(x) for x in expected("broadcast", [a, b], root=1)] == [[10, 20, 30, 40]] * 2
    assert [list(x) for x in expected("scatter", [a, b], 2, root=1)] == [[10, 20], [30, 40]]
    assert [list(x) for x in expected("send_recv", [a, b])] == [[10, 20, 30, 40], [1, 2, 3, 4]]
    assert expected("barrier", [a, b]) == [None, None]
    at_root = expected("reduce", [a, b], redop="max", root=1)
    assert at_root[0] is None and list(at_root[1]) == [10, 20, 30, 40]
    gathered = expected("gather", [a, b], root=0)
    assert gathered[1] is None and list(gathered[0]) == [1, 2, 3, 4, 10, 20, 30, 40]


@settings(max_examples=150)
@given(st.sampled_from(sorted(COLLECTIVES)), st.integers(1, 7), st.integers(0, 9), st.data())
def test_pieces_are_what_numpy_says(name: str, world: int, count: int, data: st.DataObject) -> None:
    """Of any number of ranks and elements, root, reduction and splits."""
    kind = COLLECTIVES[name]
    redop = data.draw(st.sampled_from(REDOPS)) if kind.reduces else None
    root = data.draw(st.integers(0, world - 1)) if kind.rooted else 0
    row = st.lists(st.integers(0, 4), min_size=world, max_size=world)
    uneven = kind.takes_counts and data.draw(st.booleans())
    counts = data.draw(st.lists(row, min_size=world, max_size=world)) if uneven else None
    call = CallShape(world, count, redop, root, counts)
    inputs = [exact_inputs("f32", redop, kind.in_count(call, rank), world, rank) for rank in range(world)]
    right = numpy_results.expected(name, inputs, redop=redop, root=root, counts=counts)
    found = right_outputs(kind, call, inputs)
    assert [x is None for x in found] == [x is None for x in right]
    for rank, (one, other) in enumerate(zip(found, right, strict=True)):
        if one is not None:
            np.testing.assert_array_equal(one, other)
            assert one.dtype == other.dtype and kind.out_count(call, rank) == len(one)


@pytest.mark.parametrize("redop", REDOPS)
@pytest.mark.parametrize("dtype", NAMES)
def test_inputs_reduce_exactly_in_every_order(dtype: str, redop: str) -> None:
    """One after the other in the dtype itself, forwards and in a shuffled order, is what the reference says."""
    if refuse_redop(redop, dtype) is not None:
        assert redop == "avg" and not is_float(dtype)
        return
    for world in (2, 7, 64):
        inputs = [exact_inputs(dtype, redop, 200, world, rank) for rank in range(world)]
        right = reduced(inputs, redop)
        assert right.dtype == numpy_dtype(dtype)
        for order in (range(world), np.random.default_rng(0).permutation(world)):
            np.testing.assert_array_equal(_one_by_one([inputs[r] for r in order], redop, world), right)


@pytest.mark.parametrize("redop", REDOPS)
@pytest.mark.parametrize("dtype", NAMES)
def test_a_contribution_that_is_lost_or_doubled_shows_with_as_few_elements_as_ranks(dtype: str, redop: str) -> None:
    """By more than an average may be rounded; what comes twice changes no greatest, no least, and no bool."""
    if refuse_redop(redop, dtype) is not None:
        return
    for world in (2, 3, 8, 40):
        inputs = [exact_inputs(dtype, redop, world, world, rank) for rank in range(world)]
        right = _exactly(inputs, redop)
        allowed = 2 * epsilon(dtype) * np.abs(right) if redop == "avg" else 0.0
        for rank in range(world):
            assert (np.abs(_exactly(inputs[:rank] + inputs[rank + 1 :], redop) - right) > allowed).any()
            if redop not in ("min", "max") and dtype != "bool":
                assert (np.abs(_exactly([*inputs, inputs[rank]], redop) - right) > allowed).any()


def _exactly(inputs: list[np.ndarray], redop: str) -> np.ndarray:
    """Reduce, of bool to 0 and 1, integers modulo what their dtype wraps at; an average is left undivided."""
    functions = {"sum": np.add, "avg": np.add, "product": np.multiply, "min": np.minimum, "max": np.maximum}
    if inputs[0].dtype.kind in "iu":
        return functions[redop].reduce([x.astype(object) for x in inputs]) % (1 << 8 * inputs[0].itemsize)
    found = functions[redop].reduce([x.astype(np.float64) for x in inputs])
    return np.minimum(found, 1.0) if inputs[0].dtype == bool else found


INTEGERS = [name for name in NAMES if is_int(name)]


@pytest.mark.parametrize("redop", [None, "sum", "product", "min", "max"])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_are_of_the_whole_range(dtype: str, redop: str | None) -> None:
    """Each bit of theirs differs but the last of a product, and so do those of results; few have only small ones."""
    inputs = [exact_inputs(dtype, redop, 2000, 3, rank) for rank in range(3)]
    fixed = 1 if redop == "product" else 0
    for each in (*inputs, inputs[0] if redop is None else reduced(inputs, redop)):
        bits = each.view(f"u{each.itemsize}")
        every = (1 << 8 * each.itemsize) - 1
        assert int(np.bitwise_or.reduce(bits)) == every and int(np.bitwise_and.reduce(bits)) == fixed
        assert each.itemsize == 1 or np.count_nonzero(bits < 1 << 4 * each.itemsize) < 200


@pytest.mark.parametrize("redop", ["min", "max"])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_a_least_or_greatest_that_is_compared_with_what_nobody_brought_shows(dtype: str, redop: str) -> None:
    """With the middle of the range, which is 0 of signed ones, or as if the highest bit were, or were not, a sign."""
    inputs = [exact_inputs(dtype, redop, 60, 3, rank) for rank in range(3)]
    right, top = reduced(inputs, redop), 1 << (8 * inputs[0].itemsize - 1)
    middle = np.full_like(right, 0 if right.dtype.kind == "i" else top)
    other = np.dtype(("u" if right.dtype.kind == "i" else "i") + str(right.itemsize))
    for wrong in ([*inputs, middle], [x.view(other) for x in inputs]):
        assert np.count_nonzero(reduced(wrong, redop).view(right.dtype) != right) > 6


@pytest.mark.parametrize("redop", ["sum", "product", "min", "max"])
def test_results_of_bool_are_both(redop: str) -> None:
    """Of one element more than there are ranks: what writes always the same is wrong."""
    inputs = [exact_inputs("bool", redop, 4, 3, rank) for rank in range(3)]
    assert sorted(set(_exactly(inputs, redop))) == [0.0, 1.0]


@pytest.mark.parametrize("redop", [None, *REDOPS])
def test_no_stretch_of_inputs_is_another_one(redop: str | None) -> None:
    """Of any dtype and rank, though ranks take turns: so data that was put elsewhere shows."""
    for dtype in NAMES:
        if redop is None or refuse_redop(redop, dtype) is None:
            x = [exact_inputs(dtype, redop, 400, 2, rank).astype(np.float64) for rank in range(2)]
            whole = x[0] + x[1] if redop is not None and dtype != "bool" else x[0]
            assert all((whole[100:200] != whole[100 + by : 200 + by]).any() for by in range(-100, 200) if by)


@pytest.mark.parametrize("dtype", [name for name in NAMES if is_float(name)])
def test_an_average_is_right_whether_it_is_divided_or_multiplied(dtype: str) -> None:
    """At the end, or each contribution before as NCCL does: within two eps of the dtype."""
    for world in (3, 7, 49):
        inputs = [exact_inputs(dtype, "avg", 500, world, rank) for rank in range(world)]
        right = to_compute(reduced(inputs, "avg")).astype(np.float64)
        part = to_compute(cast(np.array([1 / world]), dtype))
        late = (to_compute(_one_by_one(inputs, "sum", world)) * part).astype(inputs[0].dtype)
        early = _one_by_one([(to_compute(x) * part).astype(x.dtype) for x in inputs], "sum", world)
        allowed = 2 * epsilon(dtype) * right + 2 * info(dtype).least
        for found in (late, early):
            assert (np.abs(to_compute(found).astype(np.float64) - right) <= allowed).all()


def _one_by_one(inputs: list[np.ndarray], redop: str, world: int) -> np.ndarray:
    """Reduce with a rounding to the dtype after every step."""
    functions = {"sum": np.add, "avg": np.add, "product": np.multiply, "min": np.minimum, "max": np.maximum}
    dtype, total = inputs[0].dtype, inputs[0]
    for x in inputs[1:]:
        total = functions[redop](to_compute(total), to_compute(x)).astype(dtype)
    return (to_compute(total) / np.float32(world)).astype(dtype) if redop == "avg" else total


def test_many_inputs_are_drawn_as_if_at_once() -> None:
    """They are made by blocks; each quarter of a step of the generator, the lowest first, gives one."""
    steps = np.random.PCG64(np.random.SeedSequence((3, 1))).random_raw(37_501).tolist()
    quarters = [step >> shift & 0xFFFF for step in steps for shift in (0, 16, 32, 48)][:150_001]
    for dtype, most in (("f16", 512), ("f32", 1000), ("bf16", 64)):
        found = exact_inputs(dtype, "sum", 150_001, 4, 1, seed=3)
        assert found.dtype == numpy_dtype(dtype)
        assert found.astype(int).tolist() == [1 + (quarter * most >> 16) for quarter in quarters]


def test_inputs_differ_by_rank_and_are_the_same_every_time() -> None:
    """So that data that went the wrong way shows, and results repeat."""
    a, b = (exact_inputs("f16", "sum", 100, 4, rank) for rank in (0, 1))
    assert (a != b).any() and (a == exact_inputs("f16", "sum", 100, 4, 0)).all()
    assert (a != exact_inputs("f16", "sum", 100, 4, 0, seed=1)).any()
