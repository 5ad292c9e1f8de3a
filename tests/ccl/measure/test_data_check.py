"""The check of data: exact integers, reals within steps x eps, and failures that say where."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernbench_ccl.collectives import COLLECTIVES
from kernbench_ccl.measure.data_check import Data, Kept, compare, replace_data
from kernbench_core.compute.executor import DataExecutor
from kernbench_core.compute.substitution import Substitution
from kernbench_core.errors import ExecutionError
from kernbench_core.oplog.log import OpLog
from kernbench_core.values.dtypes import cast, numpy_dtype
from kernbench_core.values.memory_store import MemoryStore
from kernbench_core.values.region import Region
from kernbench_core.values.value import AssemblyValue, Part, ResultValue
from tests.ccl.measure.logged_collective import Collective
from tests.core.arrays import adopt

WORLD = 4
ALL_REDUCE = COLLECTIVES["all_reduce"]


@pytest.mark.parametrize("dtype", ["f64", "f32", "f16", "bf16", "f8e4m3", "f8e5m2"])
@pytest.mark.parametrize("redop, name", [("sum", "add"), ("product", "mul"), ("max", "maximum"), ("min", "minimum")])
def test_any_order_of_reducing_is_right(dtype, redop, name):
    """Each rank may add up in an order of its own; integers are exact, reals within the tolerance."""
    made = Collective(Data(ALL_REDUCE, dtype, redop, 0, 333, WORLD))
    orders = [[0, 1, 2, 3], [3, 1, 0, 2], [2, 3, 1, 0], [1, 0, 3, 2]]
    assert made.verdict({rank: made.chain(order, name) for rank, order in enumerate(orders)}).wrong == 0


@pytest.mark.parametrize("redop", ["sum", "avg", "product", "min", "max"])
def test_reals_of_f64_have_all_their_digits(redop):
    """What is right is what Python's own floats say; inputs that fit f32 would hide a result rounded to it."""
    data = Data(ALL_REDUCE, "f64", redop, 0, 33, WORLD)
    inputs = data.reals()
    assert all(np.count_nonzero(x != x.astype(np.float32)) > 30 for x in inputs)
    one = {"sum": sum, "avg": lambda x: sum(x) / WORLD, "product": math.prod, "min": min, "max": max}[redop]
    naive = [one(each) for each in zip(*(x.tolist() for x in inputs), strict=True)]
    for right in data.right(inputs):
        np.testing.assert_allclose(right, naive, rtol=0, atol=1e-14)


@pytest.mark.parametrize("dtype", ["f8e4m3", "bf16", "f16", "f32", "f64"])
@pytest.mark.parametrize("redop, least, most", [("sum", -4, 4), ("product", 0.5, 1.5)])
def test_reals_are_spread_over_their_range(dtype, redop, least, most):
    """As many in each quarter of it, few of them whole, and no two ranks bring the same."""
    inputs = [x.astype(np.float64) for x in Data(ALL_REDUCE, dtype, redop, 0, 100_000, WORLD).reals()]
    for x in inputs:
        assert least <= x.min() and x.max() <= most
        quarters, _ = np.histogram(x, 4, (least, most))
        # rounding to few digits takes numbers over a border of quarters
        assert quarters == pytest.approx(np.full(4, 25_000), rel=0.3 if dtype == "f8e4m3" else 0.03)
        assert np.count_nonzero(x == np.rint(x)) < 25_000
    assert all((x != inputs[0]).mean() > 0.8 for x in inputs[1:])


def test_a_contribution_that_is_missing_is_counted_element_by_element():
    """The number of wrong elements is exact, and the sentence names rank, element and both numbers."""
    made = Collective(Data(ALL_REDUCE, "f16", "sum", 0, 100, WORLD))
    good, bad = made.chain([0, 1, 2, 3]), made.chain([0, 1, 3])
    verdict = made.verdict({0: good, 1: bad, 2: good, 3: good})
    assert np.all(made.integers[2] > 0)
    right = sum(float(array[0]) for array in made.integers)
    assert verdict.wrong == 100
    assert verdict.failures == (
        f"rank 1, integers: elements 0 to 99 of 100 are wrong; element 0 must be {right:g}, not "
        f"{right - float(made.integers[2][0]):g}.",
    )


def test_a_loss_that_integers_do_not_show_is_found_by_the_reals():
    """An output that was rounded to whole numbers passes the integers and fails the reals."""
    made = Collective(Data(ALL_REDUCE, "f32", "sum", 0, 64, WORLD))
    good = made.chain([0, 1, 2, 3])
    verdict = made.verdict({0: good, 1: good, 2: made.op("floor", good), 3: good})
    assert verdict.wrong > 50
    assert verdict.failures[0].startswith("rank 2, reals: ")
    assert " within " in verdict.failures[0]


@pytest.mark.parametrize("redop, divisor", [("sum", 1), ("avg", WORLD)])
def test_the_tolerance_of_reals_is_steps_times_eps_of_the_magnitudes(redop, divisor):
    """Twice the tolerance off is wrong, half of it is not: a tight pair."""
    data = Data(ALL_REDUCE, "f32", redop, 0, 50, WORLD)
    reals = data.reals()
    right, allowed = data.right(reals), data.tolerance(reals)
    magnitudes = sum(np.abs(array.astype(np.float64)) for array in reals)
    assert allowed[0] == pytest.approx(WORLD * 2.0**-23 * magnitudes / divisor)
    for factor, wrong in ((0.4, 0), (2.0, WORLD * 50)):
        off = {r: adopt((right[r].astype(np.float64) + factor * allowed[r]).astype(np.float32)) for r in range(WORLD)}
        found = compare(data, DataExecutor(OpLog(), MemoryStore()), off, right, allowed, "reals")
        assert found.wrong == wrong


@pytest.mark.parametrize("name", [name for name in COLLECTIVES if name != "barrier"])
@pytest.mark.parametrize("dtype", ["int32", "bf16"])
def test_what_is_right_is_what_numpy_says(name, dtype):
    """Outputs that hold the naive result of each collective pass, in every rank; other ranks have none."""
    kind, root = COLLECTIVES[name], 2
    data = Data(kind, dtype, "sum" if kind.reduces else None, root, 8, WORLD)
    inputs = data.integers()
    outputs = naive(name, inputs, root)
    assert [x is None for x in data.right(inputs)] == [x is None for x in outputs]
    held = {rank: adopt(np.array(array)) for rank, array in enumerate(outputs) if array is not None}
    executor = DataExecutor(OpLog(), MemoryStore())
    assert compare(data, executor, held, data.right(inputs), None, "integers").wrong == 0
    rank = root if root in held else 0
    spoilt = np.array(outputs[rank])
    spoilt[3] = spoilt[3] + cast(np.array(1), dtype)
    found = compare(data, executor, {**held, rank: adopt(spoilt)}, data.right(inputs), None, "integers")
    assert found.wrong == 1
    where = f"rank {rank}, integers: element 3 of {len(spoilt)} is wrong; element 3 must be "
    assert found.failures[0].startswith(where)


def naive(name, inputs, root):
    """Write out what each collective does, element by element."""
    ranks, n = range(WORLD), 8
    at_root = [rank == root for rank in ranks]
    if name in ("all_reduce", "reduce", "reduce_scatter"):
        whole = inputs[0]
        for other in inputs[1:]:
            wide = object if whole.dtype.kind == "i" else np.float64  # of what integers sum up to, the last bits count
            whole = whole.astype(wide) + other.astype(wide)
            whole = ((whole + 2**31) % 2**32 - 2**31 if wide is object else whole).astype(inputs[0].dtype)
        if name == "reduce_scatter":
            return [whole[r * n : (r + 1) * n] for r in ranks]
        return [whole if name == "all_reduce" or at_root[r] else None for r in ranks]
    if name in ("all_gather", "gather"):
        whole = np.concatenate(inputs)
        return [whole if name == "all_gather" or at_root[r] else None for r in ranks]
    if name == "broadcast":
        return [inputs[root] for _ in ranks]
    if name == "scatter":
        return [inputs[root][r * n : (r + 1) * n] for r in ranks]
    if name == "send_recv":
        return [inputs[r - 1] for r in ranks]
    return [np.concatenate([inputs[s][r * n : (r + 1) * n] for s in ranks]) for r in ranks]


def test_many_wrong_ranks_are_summed_up():
    """Four ranks are described, the others counted."""
    data = Data(ALL_REDUCE, "int32", "sum", 0, 4, 7)
    right = data.right(data.integers())
    zeros = {rank: adopt(np.zeros(4, np.int32) - 1) for rank in range(7)}
    found = compare(data, DataExecutor(OpLog(), MemoryStore()), zeros, right, None, "integers")
    assert found.wrong == 28
    assert len(found.failures) == 5
    assert found.failures[1].startswith("rank 1, integers: elements 0 to 3 of 4 are wrong; element 0 must be ")
    assert found.failures[4] == "and 3 more ranks."


def test_ranks_with_the_same_wrong_result_are_counted_one_by_one():
    """Equal results are compared once, and are wrong for each rank; one that differs is looked at by itself."""
    made = Collective(Data(ALL_REDUCE, "f16", "sum", 0, 70_000, WORLD))
    wrong, right = made.chain([0, 1, 2]), made.chain([0, 1, 2, 3])
    missing = np.count_nonzero(made.integers[3])
    executor, must_be = DataExecutor(made.log, made.store), made.data.right(made.integers)
    executor.run()
    found = compare(made.data, executor, {0: wrong, 1: wrong, 2: right, 3: wrong}, must_be, None, "")
    assert found.wrong == 3 * missing and [told[:6] for told in found.failures] == ["rank 0", "rank 1", "rank 3"]


def test_inputs_that_are_not_left_as_they_were_are_counted():
    """What stands in a part of an input is compared with what the rank brought, on integers and on reals."""
    made = Collective(Data(ALL_REDUCE, "f32", "sum", 0, 10, WORLD))
    total = made.chain([0, 1, 2, 3])
    right = float(sum(array[4] for array in made.integers))
    part = AssemblyValue((3,), "f32", (Part(Region(0, 12), total, Region(16, 12)),))
    same = AssemblyValue((3,), "f32", (Part(Region(0, 12), made.inputs[2], Region(16, 12)),))
    kept = [Kept(1, 4, part), Kept(2, 4, same)]
    verdict = made.verdict(dict.fromkeys(range(WORLD), total), kept)
    assert verdict.wrong == 3
    assert verdict.failures == (
        f"rank 1, integers: elements 4 to 6 of its input of 10 were changed; element 4 must be "
        f"{float(made.integers[1][4]):g}, not {right:g}.",
        "an input must be left as it is; kernbench ccl check says which line stores there.",
    )


def test_an_output_in_pieces_is_put_together():
    """A tensor lies in several memories; its value is an assembly."""
    data = Data(COLLECTIVES["broadcast"], "f32", None, 1, 6, 2)
    made = Collective(data)
    first, last = (adopt(np.array(made.integers[1][a:b])) for a, b in ((0, 4), (4, 6)))
    joined = AssemblyValue(
        (6,), "f32", (Part(Region(0, 16), first, Region(0, 16)), Part(Region(16, 8), last, Region(0, 8)))
    )
    executor = DataExecutor(OpLog(), MemoryStore())
    assert compare(data, executor, {0: joined, 1: made.inputs[1]}, data.right(made.integers), None, "").wrong == 0


@settings(max_examples=25)
@given(
    st.sampled_from(["f16", "bf16", "f8e4m3", "f8e5m2", "f32", "int8"]), st.integers(2, 17), st.integers(1, 40),
    st.sampled_from(["sum", "product", "max", "min"]),
)  # fmt: skip
def test_integers_are_exact_in_any_order(dtype, world, count, redop):
    """Reducing in the dtype itself, in rank order, gives exactly what is right."""
    data = Data(ALL_REDUCE, dtype, redop, 0, count, world)
    inputs = data.integers()
    ufunc = {"sum": np.add, "product": np.multiply, "max": np.maximum, "min": np.minimum}[redop]
    total = inputs[0]
    for other in inputs[1:]:
        total = ufunc(total, other).astype(numpy_dtype(dtype))
    assert np.array_equal(total, data.right(inputs)[0])


@settings(max_examples=50)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.permutations(range(4)))
def test_replace_data_finds_the_pieces_of_a_tensor(sizes, order):
    """Whatever pieces a tensor lies in, memory holds the new array after the substitution."""
    pieces = [adopt(np.arange(10 * i, 10 * i + n, dtype=np.float32)) for i, n in enumerate(sizes)]
    parts, at = [], 0
    for number in (n for n in order if n < len(pieces)):
        for k in range(pieces[number].shape[0]):
            parts.append(Part(Region(at, 4), pieces[number], Region(4 * k, 4)))
            at += 4
    tensor = AssemblyValue((at // 4,), "f32", tuple(parts))
    array = np.arange(100, 100 + at // 4, dtype=np.float32)
    inputs = replace_data([(tensor, array)])
    assert set(inputs) == set(pieces)
    assert np.array_equal(Substitution(inputs).of(tensor).array(), array)


def test_replace_data_refuses_a_tensor_that_ops_wrote():
    """Only what the host wrote has a place for other data."""
    with pytest.raises(ExecutionError) as caught:
        replace_data([(ResultValue((0, 1), (2,), "f32"), np.array([1, 2], np.float32))])
    assert str(caught.value) == (
        "Other data must replace what the host wrote, not what an op computed; take the value of the tensor before "
        "the launch."
    )
