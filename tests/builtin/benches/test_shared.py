"""What benches share: checks of arrays, and references that are right and no stricter than arithmetic allows."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_builtin.benches._shared import _rounding, product


def test_products_of_integers_are_exact() -> None:
    a, b = (np.random.default_rng(1).integers(-128, 128, shape).astype(np.int8) for shape in ((7, 500), (500, 5)))
    exact = [[sum(int(x) * int(y) for x, y in zip(row, column, strict=True)) for column in b.T] for row in a]
    found = product(a, b, "int32")
    assert found.dtype == np.int32
    assert found.tolist() == exact


@pytest.mark.parametrize(("dtype", "steps"), [("f16", 2.0**-11), ("bf16", 2.0**-8), ("f32", 2.0**-20)])
def test_products_of_floats_are_rounded_once(dtype, steps) -> None:
    kinds = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32}
    a, b = (np.random.default_rng(2).uniform(1, 2, shape).astype(kinds[dtype]) for shape in ((9, 300), (300, 8)))
    exact = a.astype(np.float64) @ b.astype(np.float64)
    found = product(a, b, dtype)
    assert found.dtype == kinds[dtype]
    assert np.abs(found.astype(np.float64) / exact - 1).max() <= steps * 1.01


@given(st.integers(0, 2**32), st.integers(2, 3000), st.integers(1, 200), st.sampled_from([1e-3, 1.0, 1e4]))
def test_two_orders_of_summation_stay_within_the_bound(seed, k, tile, scale) -> None:
    rng = np.random.default_rng(seed)
    a, b = (rng.standard_normal(shape, np.float32) * np.float32(scale) for shape in ((16, k), (k, 16)))
    tiled = np.zeros((16, 16), np.float32)
    for start in range(0, k, tile):
        tiled += a[:, start : start + tile] @ b[start : start + tile]
    assert np.abs(tiled - product(a, b, "f32")).max() <= max(1e-5 * np.abs(tiled).max(), _rounding(a, b))


def test_bf16_from_a_file(run, tmp_path) -> None:
    a, b = (np.random.default_rng(5).standard_normal(shape).astype(ml_dtypes.bfloat16) for shape in ((9, 6), (6, 4)))
    np.save(tmp_path / "A.npy", a)
    np.save(tmp_path / "B.npy", b)
    files = {name: str(tmp_path / f"{name.upper()}.npy") for name in "ab"}
    assert run("gemm", **files).verified
