"""Casts between f16 and f32 have numpy's bits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernbench_core.values.halves import as_f16, as_f32

F32, F16 = np.dtype(np.float32), np.dtype(np.float16)
ALL = np.arange(1 << 16, dtype=np.uint16).view(F16)


def same(found: np.ndarray, want: np.ndarray) -> None:
    """Compare bits, and how they lie."""
    assert (found.dtype, found.shape, found.strides) == (want.dtype, want.shape, want.strides)
    bits = np.uint16 if want.dtype == F16 else np.uint32
    np.testing.assert_array_equal(found.view(bits), want.view(bits))


def around(numbers: np.ndarray) -> np.ndarray:
    """Return f32 numbers, the ones beside them, and those halfway to the next f16 with the ones beside these."""
    whole = numbers.astype(F32)
    bits = np.concatenate([whole.view(np.uint32) + np.uint32(step) for step in (0, 0x0FFF, 0x1000, 0x1001, 0x1FFF)])
    return np.concatenate([bits, bits + np.uint32(1), bits - np.uint32(1)]).view(F32)


@pytest.mark.filterwarnings("ignore:overflow")
def test_every_f16_and_what_is_around_it() -> None:
    """Of both signs, zeros, small ones, the largest; with infinities and NaN, and without."""
    same(as_f32(ALL), ALL.astype(F32))
    finite = ALL[np.isfinite(ALL)]
    for numbers in (around(finite), around(finite[np.abs(finite) < 60000]), ALL.astype(F32)):
        for each in (numbers, np.abs(numbers), np.abs(numbers)[numbers > 0]):
            with np.errstate(all="ignore"):
                same(as_f16(each), each.astype(F16))
    least = np.arange(0x33000000 - 9, 0x33000000 + 9, dtype=np.uint32)
    small = np.concatenate([np.arange(4096, dtype=np.uint32), least])
    for sign in (0, 0x80000000):
        numbers = (small | np.uint32(sign)).view(F32)
        same(as_f16(numbers), numbers.astype(F16))


@settings(max_examples=50)
@given(st.integers(0, 1 << 32), st.sampled_from([0, 8, 20, 100]), st.sampled_from(["c", "turned", "steps", "few"]))
def test_any_numbers_however_they_lie(seed: int, spread: int, how: str) -> None:
    """Rows, columns first, with steps, few."""
    rng = np.random.default_rng(seed)
    scales = 2.0 ** rng.integers(-spread - 24, spread - 6, (64, 96), endpoint=True)
    numbers = (rng.normal(size=(64, 96)) * scales).astype(F32)
    view = {"c": numbers, "turned": numbers.T, "steps": numbers[::-1, ::2], "few": numbers[:3, :5]}[how]
    with np.errstate(all="ignore"):
        want = view.astype(F16)
        same(as_f16(view), want)
        same(as_f32(want), want.astype(F32))
        same(as_f32(want.T), want.T.astype(F32))


def test_other_dtypes_are_numpys() -> None:
    """f64 is rounded once, not by way of f32; f32 stays itself."""
    numbers = np.full(5000, 1 + 2.0**-11 + 2.0**-40)
    same(as_f16(numbers), numbers.astype(F16))
    same(as_f32(numbers), numbers.astype(F32))
    whole = numbers.astype(F32)
    assert as_f32(whole) is whole
