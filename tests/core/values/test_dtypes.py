"""Names, sizes, promotion and rounding of the element types."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from kernbench_core.compute.ops.second_way import rounded
from kernbench_core.errors import StoreError, UnsupportedError
from kernbench_core.values import dtypes
from kernbench_core.values.dtypes import dtype_of


@pytest.mark.parametrize("name", dtypes.NAMES)
def test_names_and_numpy_types_agree(name) -> None:
    """Each name has a numpy type of its size, and goes there and back."""
    assert dtypes.numpy_dtype(name).itemsize == dtypes.itemsize(name)
    assert dtypes.dtype_name(dtypes.numpy_dtype(name)) == name


@pytest.mark.parametrize("name", [name for name in dtypes.NAMES if dtypes.is_float(name)])
def test_the_numbers_of_a_float_are_those_of_its_numpy_type(name) -> None:
    """Distances and ends as ml_dtypes has them; every integer up to the limit is held, and the next is not."""
    record, kind = dtypes.info(name), dtypes.numpy_dtype(name)
    found = ml_dtypes.finfo(kind)
    assert dtypes.epsilon(name) == float(found.eps)
    assert record.least == float(found.smallest_subnormal)
    assert record.greatest in (None, float(found.max))
    limit = dtypes.exact_limit(name)
    numbers = [*range(max(0, limit - 8), limit + 1)]
    assert [int(np.array(number).astype(kind)) for number in numbers] == numbers
    assert int(np.array(limit + 1).astype(kind)) != limit + 1


@pytest.mark.parametrize("name", [name for name in dtypes.NAMES if not dtypes.is_float(name)])
def test_integers_hold_all_up_to_their_greatest(name) -> None:
    """Which numpy knows, but of bool."""
    assert dtypes.exact_limit(name) == (1 if name == "bool" else np.iinfo(dtypes.numpy_dtype(name)).max)


def test_every_spelling_leads_to_one_name() -> None:
    """Triton's names, kernbench's, numpy's types."""
    assert [dtype_of(name) for name in dtypes.NAMES] == list(dtypes.NAMES)
    assert set(dtypes.TRITON.values()) == set(dtypes.NAMES)
    assert dtype_of("float16") == dtype_of("fp16") == dtype_of(np.float16) == dtype_of(np.dtype("f2")) == "f16"


@pytest.mark.parametrize("name", dtypes.REFUSED)
def test_dtypes_without_a_unit_are_refused(name: str) -> None:
    """The sentence lists what there is."""
    with pytest.raises(UnsupportedError) as caught:
        dtype_of(name)
    assert str(caught.value) == (
        "a dtype must be one of bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, f8e4m3, f8e5m2, "
        f"f16, bf16, f32, f64, not {name!r}; use one of these."
    )


def test_unknown_names_are_sentences() -> None:
    """An unknown name, and a numpy type that kernbench lacks, list what there is."""
    with pytest.raises(StoreError) as caught:
        dtypes.itemsize("fp16")
    known = "bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, f8e4m3, f8e5m2, f16, bf16, f32, f64"
    assert str(caught.value) == f"A dtype must be one of {known}, not 'fp16'; use one of these."
    with pytest.raises(StoreError) as caught:
        dtypes.dtype_name(np.dtype(np.complex64))
    assert str(caught.value) == f"An array must have one of the dtypes {known}, not 'complex64'; cast it first."


@pytest.mark.parametrize("name", ["int64", "uint64", "int32", "uint32", "uint16", "int8", "uint8"])
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_floats_of_any_size_wrap_into_integers(name: str, kind: str) -> None:
    """As Python's integers modulo 2 to the number of bits do; between 2**62 and 2**63 int64 holds the number itself."""
    numbers = [0.0, -1.5, 3e9, 5e18, -5e18, 2.0**62, 2.0**63, -(2.0**63), 1.5 * 2.0**63, 2.0**64, 1e20, -1e20, 3e38]
    floats = np.array([*numbers, np.nan, np.inf, -np.inf], kind)
    info = np.iinfo(name)
    modulus, low = 1 << info.bits, int(info.min)
    wanted = [(int(x) - low) % modulus + low for x in floats[: len(numbers)].tolist()] + [0, 0, 0]
    for shape in ((-1,), (2, -1)):
        assert dtypes.cast(floats.reshape(shape), name).ravel().tolist() == wanted
    assert [dtypes.cast(np.array(x), name).item() for x in floats] == wanted
    assert rounded(floats, name).tolist() == wanted
    assert [rounded(np.array(x), name).item() for x in floats] == wanted


def test_cast_truncates_wraps_and_never_warns() -> None:
    """Floats are cut towards zero, NaN gives 0, integers wrap, f32 overflows to infinity in f16."""
    floats = np.array([1.9, -1.9, np.nan, np.inf], np.float32)
    assert dtypes.cast(floats, "int32").tolist()[:3] == [1, -1, 0]
    assert dtypes.cast(np.array([300], np.int32), "int8").tolist() == [44]
    assert np.isinf(dtypes.cast(np.array([1e6], np.float32), "f16")[0])


@pytest.mark.parametrize(
    ("name", "greatest", "near_300"), [("f8e4m3", 448.0, 288.0), ("f8e5m2", 57344.0, 320.0)]
)
def test_8_bit_floats_saturate(name, greatest, near_300) -> None:
    """What is greater than the greatest finite number becomes that, infinities too; NaN stays; rounding is to even."""
    given = np.array([1e9, -1e9, np.inf, np.nan, greatest, 0.5], np.float32)
    got = dtypes.cast(given, name).astype(np.float32)
    np.testing.assert_array_equal(got, [greatest, -greatest, greatest, np.nan, greatest, 0.5])
    assert dtypes.cast(np.array([300, -3, 17], np.int32), name).astype(np.float32).tolist() == [near_300, -3, 16]


def test_ml_dtypes_is_imported_when_bf16_is_used() -> None:
    """Importing every phase 2 module leaves ml_dtypes alone."""
    code = (
        "import sys, kernbench_builtin.saved.saved_run, kernbench_core.compute.executor as e\n"
        "assert 'ml_dtypes' not in sys.modules\n"
        "from kernbench_core.values.dtypes import numpy_dtype\n"
        "assert numpy_dtype('bf16').name == 'bfloat16' and 'ml_dtypes' in sys.modules"
    )
    root = Path(__file__).resolve().parents[3]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
