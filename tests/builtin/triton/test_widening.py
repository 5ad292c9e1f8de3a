"""Dtypes and numbers of reductions, scans, shifts, divisions and constants, held against Triton's rules in numpy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import kernbench as kb
from kernbench_core.values.dtypes import NAMES, dtype_name, is_float, numpy_dtype

KEPT = [name for name in NAMES if not name.startswith("f8")]


def picked(dtype: str) -> str:
    """Give what integers are added up in: 32 bits at least, signed or not as they are."""
    kind = numpy_dtype(dtype)
    if kind.kind not in "iub" or kind.itemsize >= 4:
        return dtype
    return "int32" if kind.kind == "i" else "uint32"


def extreme(dtype: str) -> str:
    kind = numpy_dtype(dtype)
    return dtype if kind.itemsize >= 4 else "f32" if is_float(dtype) else "int32"


@pytest.fixture(scope="module")
def seen() -> dict[tuple[str, str], Any]:
    """Reduce and scan numbers of each dtype; give the dtype that each has in the kernel, and the numbers."""
    rng, found = np.random.default_rng(5), {}
    with kb.triton("tiny"):
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(x_ptr: Any) -> None:
            x = tl.load(x_ptr + tl.arange(0, 64))
            for name, result in (
                ("max", tl.max(x, 0)), ("min", tl.min(x, 0)), ("sum", tl.sum(x, 0)), ("cumsum", tl.cumsum(x, 0)),
                ("cumprod", tl.cumprod(x, 0)), ("with index", tl.max(x, 0, return_indices=True)[0]),
                ("down", tl.cumsum(x, 0, reverse=True)), ("to int64", tl.cumsum(x, 0, dtype=tl.int64)),
                ("plus", x + 1), ("times", x * 2.5), ("shifted", None if is_float(x.dtype) else x >> 1),
                ("over", None if x.dtype == "bool" else x / 3),
                ("cut", None if is_float(x.dtype) or x.dtype == "bool" else x // 3),
            ):  # fmt: skip
                if result is not None:
                    found[given, name] = (result.dtype + "", result.numpy())

        for given in KEPT:
            kind = numpy_dtype(given)
            if is_float(given):
                x = rng.standard_normal(64).astype(kind)
            elif given == "bool":
                x = rng.integers(0, 2, 64).astype(bool)
            else:
                ends = np.iinfo(kind)
                x = rng.integers(ends.min, ends.max, 64, dtype=kind)
            found[given, "x"] = (given, x)
            kernel[(1,)](x.copy())
    return found


@pytest.mark.parametrize("dtype", KEPT)
def test_extremes_are_of_32_bits_at_least(seen: Any, dtype: str) -> None:
    """And the very numbers; beside an index only bf16 is widened."""
    x = seen[dtype, "x"][1]
    for name, wanted in (("max", x.max()), ("min", x.min())):
        own, value = seen[dtype, name]
        assert own == dtype_name(value.dtype) == extreme(dtype)
        assert value == np.asarray(wanted).astype(numpy_dtype(own))
    own, value = seen[dtype, "with index"]
    assert own == ("f32" if dtype == "bf16" else dtype)
    assert value == np.asarray(x.max()).astype(value.dtype)


@pytest.mark.parametrize("dtype", KEPT)
def test_sums_are_of_the_dtype_that_triton_picks(seen: Any, dtype: str) -> None:
    """Integers wrap in it; floats of 16 bits are added up in f32, and rounded once; scans of bf16 stay in f32."""
    x = seen[dtype, "x"][1]
    wide = picked(dtype)
    assert seen[dtype, "sum"][0] == wide
    scanned = "f32" if dtype == "bf16" else wide
    assert seen[dtype, "cumsum"][0] == seen[dtype, "down"][0] == scanned
    assert seen[dtype, "cumprod"][0] == ("f32" if dtype == "bf16" else dtype)
    assert seen[dtype, "to int64"][0] == "int64"
    if is_float(dtype):
        room = {"f16": 2e-3, "bf16": 8e-3, "f32": 1e-6, "f64": 1e-14}
        exact = x.astype(np.float64)
        for name, want in (("sum", exact.sum()), ("cumsum", exact.cumsum()), ("down", exact[::-1].cumsum()[::-1])):
            own, value = seen[dtype, name]
            np.testing.assert_allclose(value.astype(np.float64), want, rtol=room[own], atol=8 * room[own])
    else:
        number = numpy_dtype(wide)
        with np.errstate(over="ignore"):
            assert seen[dtype, "sum"][1] == x.astype(number).sum(dtype=number)
            assert np.array_equal(seen[dtype, "cumsum"][1], x.astype(number).cumsum(dtype=number))


@pytest.mark.parametrize("dtype", KEPT)
def test_constants_keep_the_dtype_of_the_tile(seen: Any, dtype: str) -> None:
    """But a float makes f32 of integers, and an integer int32 of bools; `/` is of f32 at least."""
    assert seen[dtype, "plus"][0] == ("int32" if dtype == "bool" else dtype)
    assert seen[dtype, "times"][0] == (dtype if is_float(dtype) else "f32")
    if dtype != "bool":
        assert seen[dtype, "over"][0] == ("f64" if dtype == "f64" else "f32")
    x = seen[dtype, "x"][1]
    if dtype == "bf16":
        want = (x.astype(np.float32) + np.float32(1)).astype(ml_dtypes.bfloat16)
        assert np.array_equal(seen[dtype, "plus"][1], want), "computed in f32, rounded once"
    if not is_float(dtype):
        wide = x.astype(np.int32) if dtype == "bool" else x
        assert np.array_equal(seen[dtype, "shifted"][1], wide >> wide.dtype.type(1)), "signed ones keep their sign"
        if dtype != "bool":
            cut = [abs(n) // 3 * (1 if n >= 0 else -1) for n in map(int, x)]
            assert seen[dtype, "cut"][1].tolist() == cut, "towards zero"
