"""What the interpreter makes of numbers in kernels of Triton's: each case by hand from Triton's rules."""

from __future__ import annotations

import numpy as np
import pytest

from tests.reference.numerics import BOOL, F16, F32, F64, I32, I64, U8, U32, U64
from tests.reference.triton_tl import TritonRuntime, named, typed

SCRIPT = """
import numpy as np
import triton
import triton.language as tl

@triton.jit
def kernel(ones, eights, out, whole, flag, exact: "fp64", pair, fixed: tl.constexpr):
    total, count, low = 0.0, 0, -7
    for i in range(2100):
        total += tl.load(ones)
    for i in range(10):
        count += tl.load(eights)
    tl.store(out, total)
    tl.store(out + 1, tl.load(ones) * exact)
    tl.store(out + 2, tl.max(tl.load(eights) * (flag + 1) + tl.arange(0, 2), 0))
    scale = 60000.0
    tl.store(out + 3, tl.load(ones) * scale * 2)
    large = 2000000000
    large += large
    a, (b, c) = pair
    tl.store(whole, count)
    tl.store(whole + 1, low // 2)
    tl.store(whole + 2, low % 2)
    tl.store(whole + 3, -7 // 2)
    tl.store(whole + 4, large)
    tl.store(whole + 5, a + tl.load(b) + c + fixed // 2)
    row = tl.where(tl.arange(0, 4) > 1, tl.arange(0, 4).to(tl.float32), float("nan"))
    tl.store(whole + 6, tl.argmin(row, 0))
    tl.store(whole + 7, tl.argmax(row + float("nan"), 0))

ones, eights = np.ones(1, np.float16), np.full(1, 100, np.int8)
out, whole = np.zeros(4), np.zeros(8, np.int64)
kernel[(1,)](ones, eights, out, whole, True, 0.1, (5, (eights, True)), -7)
"""


def test_numbers_in_a_kernel_are_what_triton_makes_of_them() -> None:
    """Sums in f32 and int32, division towards zero, wrapping, f64 as the parameter says, and no place of NaN."""
    made = TritonRuntime(4).run_file(SCRIPT, "made_up.py")
    assert made["out"].tolist() == [2100.0, 0.1, 201.0, 120000.0]
    assert made["whole"].tolist() == [1000, -3, -1, -4, -294967296, 102, 2, 0]


@pytest.mark.parametrize(
    ("number", "dtype"),
    [(1, I32), (-(2**31), I32), (2**31, U32), (2**32, I64), (-(2**31) - 1, I64), (2**63, U64), (True, BOOL), (0.0, F32),
     (2.0**-126, F32), (1e-40, F64), (3.5e38, F64), (float("inf"), F32)],
)  # fmt: skip
def test_a_named_number_is_of_the_first_dtype_that_holds_it(number: float, dtype: np.dtype) -> None:  # type: ignore[type-arg]
    assert named(number).data.dtype == dtype


@pytest.mark.parametrize(
    ("number", "said", "dtype"),
    [(3, "", I32), (2**31, "", I64), (2**63, "", U64), (True, "", BOOL), (1e-40, "", F32), (3, "i64", I64), (3, U8, U8),
     (0.1, "fp64", F64), (0.1, F16, F16), (1, "u1", BOOL)],
)  # fmt: skip
def test_an_argument_is_of_the_dtype_that_its_parameter_says(number: float, said: object, dtype: np.dtype) -> None:  # type: ignore[type-arg]
    assert typed(number, said).data.dtype == dtype
