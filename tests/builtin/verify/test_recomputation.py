"""Second ways at the ends: zeros with a sign, infinities, NaN; shifts by no bits and by all."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from ml_dtypes import finfo

from kernbench_builtin.verify.recomputation import anew, math_anew
from kernbench_core.compute.functions import COMPOSITE_MATH, composite_math, evaluate
from kernbench_core.compute.ops import OPS
from kernbench_core.compute.ops.second_way import Anew, rounded
from kernbench_core.compute.result_types import result_type
from kernbench_core.errors import ShapeError
from kernbench_core.values.dtypes import dtype_name, numpy_dtype
from tests.core.compute.typed_operands import PAIRS, sample, wide

EVERY = (
    "add", "and", "div", "eq", "floordiv", "ge", "gt", "le", "lt", "maximum", "minimum", "mod", "mul", "ne", "or",
    "sub", "xor", "shr", "where", "cat",
)  # fmt: skip
ENDS = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan)


@pytest.mark.parametrize("name", ["rsqrt", "atan2", "frac"])
def test_a_second_way_agrees_at_the_ends(name: str) -> None:
    """As IEEE 754 and C have them: 1/sqrt(-0) is -inf, atan2(-0, -1) is -pi, inf has no fraction."""
    pairs = np.array(list(itertools.product(ENDS, repeat=OPS[name].arity)), np.float32).T
    operands = [np.ascontiguousarray(row) for row in pairs]
    with np.errstate(all="ignore"):
        again = math_anew(name, {"dtype": "f32"}, [Anew(x) for x in operands]).value
    np.testing.assert_allclose(evaluate(name, {}, operands), again, rtol=1e-6)


def shifted(op: str, x: int, n: int, bits: int) -> int:
    """Shift Python's integers; by less than nothing is by all bits, as numpy has it."""
    if op == "shr":
        return x >> (n if n >= 0 else bits)
    return x << n if 0 <= n < bits else 0


@pytest.mark.parametrize("dtype", [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)])
@pytest.mark.parametrize("op", ["shl", "shr"])
def test_a_second_way_shifts_by_any_number_of_bits(op: str, dtype: str) -> None:
    """The ends of a dtype, and what lies around 0 and halfway, by nothing, by all bits but two, and on from there."""
    held = np.iinfo(dtype)
    ends = (held.min, held.min + 1, held.min // 2 - 1, held.min // 2, held.max // 2, held.max // 2 + 1, held.max)
    numbers = {-1, 0, 1, *ends}
    by = {-1, 0, 1, held.bits - 2, held.bits - 1, held.bits, held.bits + 1, held.max}
    pairs = [(x, n) for x in sorted(numbers) for n in sorted(by) if held.min <= min(x, n) and max(x, n) <= held.max]
    operands = [np.array(row, dtype) for row in zip(*pairs, strict=True)]
    again = math_anew(op, {"dtype": dtype}, [Anew(x) for x in operands]).value
    whole = [shifted(op, x, n, held.bits) % 2**held.bits for x, n in pairs]
    assert [n % 2**held.bits for n in rounded(again, dtype).tolist()] == whole
    assert [n % 2**held.bits for n in evaluate(op, {}, operands).tolist()] == whole


def test_the_second_way_of_philox_gives_the_published_words() -> None:
    """The known answer of Random123 for its second counter and key; each round has another key."""
    words = [np.full(1, 2**32 - 1, np.int64)] * 6
    found = [int(math_anew("philox", {"part": part}, [Anew(x) for x in words]).value[0]) for part in range(4)]
    assert [word % 2**32 for word in found] == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]


@pytest.mark.parametrize("op", EVERY)
def test_the_second_way_to_compute_obeys_the_rule_too(op: str) -> None:
    """What --verify-ops compares with meets in the same dtypes: integers are equal, floats within its slack."""
    for left, right in PAIRS:
        a, b = sample(left), sample(right)[::-1].copy()
        if op == "shr":
            b = np.array([0, 1, 1, 0, 1, 0, 1, 1], b.dtype)
        inputs = [np.array([1, 0, 1, 0, 1, 1, 0, 0], bool), a, b] if op == "where" else [a, b]
        try:
            dtype = result_type(op, [dtype_name(x.dtype) for x in inputs])
        except ShapeError:
            continue
        params = {"dtype": dtype, "axis": 0}
        with np.errstate(all="ignore"):
            got = evaluate(op, params, inputs)
            anew = math_anew(op, params, [Anew(x) for x in inputs])
            want = rounded(np.asarray(anew.value), dtype)
        if got.dtype.kind in "iub":
            np.testing.assert_array_equal(got, want, err_msg=f"{left} {op} {right}")
        else:
            step = 2.0 ** -(finfo(numpy_dtype(dtype)).nmant)
            np.testing.assert_allclose(wide(got), wide(want), rtol=step, atol=0, err_msg=f"{left} {op} {right}")


@pytest.mark.parametrize(
    ("dtype", "operand", "want"),
    [
        ("int8", "int8", [-57, -128, -1]),
        ("int8", "int32", [-57, -128, -1]),
        ("int8", "uint32", [2**32 - 57, 2**32 - 128, 2**32 - 1]),
        ("uint8", "int8", [199, 128, 255]),
        ("int32", "int8", [199, 128, -1]),
        ("int64", "bool", [199, 128, 4]),
    ],
)
def test_integers_of_a_composite_wrap_in_the_dtypes_of_its_steps(dtype: str, operand: str, want: list[int]) -> None:
    """100 + 100 is -56 in int8 and 200 in int32, and less 1 either way: each step finds what the one before it gave."""
    a, b, c = np.array([[100, 127, 3]]), np.array([[100, 1, 2]]), np.array([[1, 0, 1 if operand == "bool" else 6]])
    inputs = [a.astype(dtype), b.astype(dtype), c.astype(operand)]
    params = {"math_op": "add", "epilogue": (("sub", "output_tile", (2,)),), "dtype_out": "int64"}
    assert composite_math(params, inputs).tolist() == [want]
    assert rounded(anew(COMPOSITE_MATH, composite_math, params, inputs).value, "int64").tolist() == [want]
