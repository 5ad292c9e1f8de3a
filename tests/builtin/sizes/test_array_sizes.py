"""What arrays say of sizes and dtypes: derived where it is not given, and a sentence where two do not fit."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_builtin.sizes.array_sizes import ANY_SHAPE, ArraySizes
from kernbench_core.errors import UsageError

CHOICES = {"dtype": ("f16", "bf16", "f32")}
PRODUCT = ArraySizes({"a": (("M", "K"),), "b": (("K", "N"),)}, {"a": "dtype", "b": "dtype"})
HEADS = ArraySizes({"q": (("heads", "tokens", "d"), ("heads*tokens", "d")), "k": (("groups*tokens", "d"),)}, {})

extents = st.integers(1, 9)


def zeros(*shape: int, dtype: Any = np.float16) -> Any:
    return np.zeros(shape, dtype)


def derive(sizes: ArraySizes, **given: Any) -> dict[str, Any]:
    files = {"a": "A.npy"} if "a" in given else {}
    return sizes.derive("thing", given, files, CHOICES)


def sentence(sizes: ArraySizes, **given: Any) -> str:
    with pytest.raises(UsageError) as caught:
        derive(sizes, **given)
    return str(caught.value)


@given(extents, extents, extents, st.sets(st.sampled_from("MKN")), st.sampled_from(["f16", "f32"]))
def test_what_arrays_say_is_what_they_are_made_of(m, k, n, also, dtype) -> None:
    """Sizes that are given too change nothing; extents that no parameter is called after are told as well."""
    kind = {"f16": np.float16, "f32": np.float32}[dtype]
    every = {"M": m, "K": k, "N": n}
    found = derive(
        PRODUCT, a=zeros(m, k, dtype=kind), b=zeros(k, n, dtype=kind), **{name: every[name] for name in also}
    )
    assert found == {**every, "dtype": dtype}


def test_what_no_array_says_is_left_out() -> None:
    assert derive(PRODUCT) == {}
    assert derive(PRODUCT, a=zeros(3, 4), b=None, N=None) == {"M": 3, "K": 4, "dtype": "f16"}


def test_a_tensor_of_the_device_names_its_dtype() -> None:
    tensor = SimpleNamespace(shape=(2, 5), dtype="bf16")
    assert derive(PRODUCT, b=tensor) == {"K": 2, "N": 5, "dtype": "bf16"}


@given(extents, extents, extents, extents)
def test_one_factor_of_a_product_follows_from_the_others(heads, groups, tokens, d) -> None:
    """From one given by hand, and from one that another array says, also where that comes later."""
    k = zeros(groups * tokens, d)
    assert derive(HEADS, q=zeros(heads * tokens, d), heads=heads)["tokens"] == tokens
    found = derive(HEADS, k=k, q=zeros(heads, tokens, d))
    assert found == {"heads": heads, "tokens": tokens, "d": d, "groups": groups}


@given(st.lists(extents, max_size=4), st.booleans())
def test_elements_of_any_shape_may_be_counted(shape, also) -> None:
    """However many dimensions there are; a list of another count is told with both."""
    flat = ArraySizes({"x": ((ANY_SHAPE, "n"),), "y": (("n",),)}, {})
    count = math.prod(shape)
    x = zeros(*shape)
    assert derive(flat, x=x, **({"n": count} if also else {})) == {"n": count}
    assert derive(flat, x=x, y=zeros(count)) == {"n": count}
    assert sentence(flat, x=x, y=zeros(count + 1)) == (
        f"arrays 'x' and 'y' of bench 'thing' must agree on 'n', not be 'x' of shape {tuple(shape)}, n = {count} in "
        f"all and 'y' of shape (n,) = ({count + 1},); give another array."
    )
    assert flat.sentences() == {"x": "Of n elements in any shape.", "y": "Of shape (n,)."}


def test_two_unknown_factors_are_left_to_the_bench() -> None:
    assert derive(HEADS, q=zeros(12, 5)) == {"d": 5}
    assert derive(HEADS, q=zeros(12, 5), heads=0) == {"d": 5}


def test_bytes_without_a_name_are_the_one_narrow_dtype_of_their_size() -> None:
    """numpy's files say of bf16 only that its elements have two bytes."""
    pairs = zeros(3, 4, dtype=ml_dtypes.bfloat16).view("V2")
    assert derive(PRODUCT, a=pairs)["dtype"] == "bf16"
    eighths = ArraySizes({"a": (("n",),)}, {"a": "dtype"})
    named = zeros(3, dtype=ml_dtypes.float8_e5m2)
    assert eighths.derive("thing", {"a": named}, {}, {"dtype": ("f8e4m3", "f8e5m2")}) == {"n": 3, "dtype": "f8e5m2"}
    single = np.zeros(3, "V1")
    choices = {"dtype": ("f8e4m3", "f8e5m2", "f16")}
    assert eighths.derive("thing", {"a": single, "dtype": "f8e5m2"}, {}, choices)["dtype"] == "f8e5m2"
    with pytest.raises(UsageError) as caught:
        eighths.derive("thing", {"a": single}, {}, choices)
    assert str(caught.value) == (
        "parameter 'dtype' of bench 'thing' must be given, as f8e4m3 or f8e5m2: array 'a' of dtype |V1 holds bytes, "
        "and does not say which."
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"a": zeros(3, 4), "M": 5},
            "parameter 'M' of bench 'thing' must be 3, as in array 'a' in 'A.npy' of shape (M, K) = (3, 4), not 5; "
            "leave it out, or give another array.",
        ),
        (
            {"a": zeros(3, 4), "b": zeros(5, 6)},
            "arrays 'a' and 'b' of bench 'thing' must agree on 'K', not be 'a' in 'A.npy' of shape (M, K) = (3, 4) and "
            "'b' of shape (K, N) = (5, 6); give another array.",
        ),
        (
            {"a": zeros(3, 4), "b": zeros(4, 6, dtype=np.float32)},
            "arrays 'a' and 'b' of bench 'thing' must agree on 'dtype', not be 'a' in 'A.npy' of dtype f16 and 'b' "
            "of dtype f32; give another array.",
        ),
        (
            {"a": zeros(3, 4), "dtype": "f32"},
            "parameter 'dtype' of bench 'thing' must be 'f16', as in array 'a' in 'A.npy' of dtype f16, not 'f32'; "
            "leave it out, or give another array.",
        ),
        (
            {"a": zeros(3, 4, dtype=np.complex64)},
            "parameter 'a' of bench 'thing' must be an array of dtype f16 or bf16 or f32, not that in 'A.npy' of "
            "complex64; cast it.",
        ),
        (
            {"a": zeros(3, 4, dtype=np.int8)},
            "parameter 'a' of bench 'thing' must be an array of dtype f16 or bf16 or f32, not that in 'A.npy' of int8; "
            "cast it.",
        ),
        (
            {"a": zeros(0, 4)},
            "parameter 'a' of bench 'thing' must be an array with elements, not that in 'A.npy' of shape (0, 4); give "
            "another array.",
        ),
        (
            {"a": zeros(3)},
            "parameter 'a' of bench 'thing' must be an array of 2 dimensions, (M, K), not that in 'A.npy' of shape "
            "(3,); give another array.",
        ),
    ],
)
def test_what_does_not_fit_is_a_sentence(given, message) -> None:
    assert sentence(PRODUCT, **given) == message


def test_products_that_do_not_fit() -> None:
    assert sentence(HEADS, q=zeros(12, 5), heads=5) == (
        "array 'q' of shape (heads*tokens, d) = (12, 5) of bench 'thing' must have heads*tokens = 5 * tokens in place "
        "of 12; give other sizes, or another array."
    )
    assert sentence(HEADS, q=zeros(12, 5), heads=3, tokens=2) == (
        "array 'q' of shape (heads*tokens, d) = (12, 5) of bench 'thing' must have heads*tokens = 3 * 2 in place of "
        "12; give other sizes, or another array."
    )
    assert sentence(HEADS, q=zeros(2, 3, 4, 5)) == (
        "parameter 'q' of bench 'thing' must be an array of 3 dimensions, (heads, tokens, d), or of 2 dimensions, "
        "(heads*tokens, d), not of shape (2, 3, 4, 5); give another array."
    )
