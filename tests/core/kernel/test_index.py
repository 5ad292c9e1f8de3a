"""Index tensors compute what numpy computes, and stay affine while they can."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_core.errors import ShapeError
from kernbench_core.kernel.index import IndexTensor, number_as


def arange(start: int, end: int) -> IndexTensor:
    return IndexTensor((end - start,), start, (1,))


@st.composite
def pairs(draw: st.DrawFn) -> tuple[IndexTensor, np.ndarray[Any, Any]]:
    """Draw an index tensor of shape (4, 3), or one that broadcasts to it, built with the same steps as an array."""
    extent, axis = draw(st.sampled_from([(4, 0), (3, 1)]))
    start = draw(st.integers(-5, 5))
    mine: Any = arange(start, start + extent)
    theirs: Any = np.arange(start, start + extent)
    mine, theirs = (mine[:, None], theirs[:, None]) if axis == 0 else (mine[None, :], theirs[None, :])
    for _ in range(draw(st.integers(0, 3))):
        op = draw(st.sampled_from([operator.add, operator.sub, operator.mul]))
        other = draw(st.integers(-7, 7))
        if draw(st.booleans()):
            mine, theirs = op(mine, other), op(theirs, other)
        else:
            mine, theirs = op(other, mine), op(other, theirs)
    return mine, theirs


@given(pairs(), pairs(), st.sampled_from([operator.add, operator.sub]))
def test_affine_arithmetic_equals_numpy(left: Any, right: Any, op: Any) -> None:
    """Sums, differences and integer multiples of ranges stay affine and have numpy's elements and bounds."""
    mine, theirs = op(left[0], right[0]), op(left[1], right[1])
    assert mine.affine is not None
    assert mine.shape == theirs.shape
    np.testing.assert_array_equal(mine.numpy(), theirs)
    assert mine.bounds() == (theirs.min(), theirs.max())


OTHER = [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne,
         operator.and_, operator.or_, operator.xor, operator.mul]  # fmt: skip


@given(pairs(), st.integers(1, 9), st.sampled_from(OTHER))
def test_other_arithmetic_equals_numpy(drawn: Any, number: int, op: Any) -> None:
    """Division, comparison and bit operations become arrays with numpy's elements."""
    np.testing.assert_array_equal(op(drawn[0], number).numpy(), op(drawn[1], number))
    np.testing.assert_array_equal(op(drawn[0], drawn[0] * 0 + number).numpy(), op(drawn[1], drawn[1] * 0 + number))


@given(pairs(), st.integers(1, 9))
def test_division_cuts_towards_zero(drawn: Any, number: int) -> None:
    """Quotients and remainders of integers are those of C and of Triton."""
    np.testing.assert_array_equal((drawn[0] // number).numpy(), np.trunc(drawn[1] / number))
    np.testing.assert_array_equal((drawn[0] % number).numpy(), np.fmod(drawn[1], number))


def test_scalars_read_out_are_python_numbers() -> None:
    """Indexing down to one element gives a plain int that branches and indexes."""
    offsets = arange(3, 8) * 2
    assert type(offsets[2]) is int
    assert offsets[2] == 10
    assert [10, 20, 30][arange(1, 2)] == 20
    assert bool(arange(0, 1) == 0)
    with pytest.raises(ShapeError) as caught:
        bool(arange(0, 4) < 2)
    assert str(caught.value) == "a tensor of shape (4,) must have one element to be read as a scalar; index it."


def test_shapes_that_do_not_broadcast_are_refused() -> None:
    """The sentence holds both shapes."""
    with pytest.raises(ShapeError) as caught:
        arange(0, 4) + arange(0, 3)
    line = test_shapes_that_do_not_broadcast_are_refused.__code__.co_firstlineno + 3
    assert str(caught.value) == (
        f"index arithmetic at {__file__}:{line} must have operands that broadcast, not (4,) and (3,); "
        "reshape one of them."
    )


def test_views_keep_the_elements() -> None:
    """Broadcasts, permutations and reshapes equal numpy's."""
    tile = arange(0, 4)[:, None] * 10 + arange(0, 3)[None, :]
    want = np.arange(4)[:, None] * 10 + np.arange(3)[None, :]
    np.testing.assert_array_equal(tile.permute((1, 0)).numpy(), want.T)
    np.testing.assert_array_equal(tile.reshape(12).numpy(), want.reshape(12))
    np.testing.assert_array_equal(tile.broadcast_to((2, 4, 3)).numpy(), np.broadcast_to(want, (2, 4, 3)))
    np.testing.assert_array_equal(tile.T.numpy(), want.T)
    np.testing.assert_array_equal(tile.expand_dims(-1).numpy(), want[:, :, None])
    np.testing.assert_array_equal(tile.to("f32").numpy(), want.astype(np.float32))
    np.testing.assert_array_equal((tile * 100).to("int8").numpy(), (want * 100).astype(np.int8))
    assert tile.to("int32") is tile
    assert (tile.to("int64").affine, tile.to("int64").dtype) == (tile.affine, "int64")
    assert tile.broadcast_to((2, 4, 3)).affine == (0, (0, 10, 1))


def test_the_operand_dtype_is_the_smallest_that_holds_the_elements() -> None:
    """int32 while the elements fit, int64 beyond, f32 for fractions, bool for comparisons."""
    assert arange(0, 4).dtype == "int32"
    assert (arange(0, 4) * 2**31).dtype == "int64"
    assert (arange(0, 4) / 2).dtype == "f32"
    assert (arange(0, 4) < 2).dtype == "bool"


@pytest.mark.parametrize(
    ("number", "dtype"),
    [(float("inf"), "int32"), (float("-inf"), "uint8"), (float("nan"), "int64"), (1e20, "int64"), (300.0, "int8"),
     (-1.0, "uint32"), (2.0**31, "int32"), (np.float32(-129), "int8")],
)  # fmt: skip
def test_floats_that_an_integer_dtype_does_not_hold_are_sentences(number: Any, dtype: str) -> None:
    """As integers are: the `other` of a load, and the number of tl.full."""
    with pytest.raises(ShapeError) as caught:
        number_as(number, dtype)
    limits = np.iinfo(dtype)
    assert str(caught.value).endswith(
        f" must be one that {dtype} holds, from {limits.min} to {limits.max}, and {number} is out of range; "
        "cast the tensor first."
    )


@pytest.mark.parametrize(
    ("number", "dtype", "held"), [(127.9, "int8", 127), (-0.9, "uint8", 0), (-128.5, "int8", -128)]
)
def test_floats_are_cut_before_they_are_compared_with_the_limits(number: float, dtype: str, held: int) -> None:
    """127.9 is 127 in int8; bool holds whatever is not zero."""
    assert number_as(number, dtype).item() == held
    assert number_as(float("inf"), "bool").item() is True


@pytest.mark.parametrize(
    ("compare", "given"),
    [
        (lambda: arange(0, 4) == [0, 1, 2, 3], "list [0, 1, 2, 3]"),
        (lambda: arange(0, 2) != (0, 1), "tuple (0, 1)"),
        (lambda: arange(0, 4) != None, "NoneType None"),  # noqa: E711
        (lambda: arange(0, 4)[::2] == "x", "str 'x'"),
        (lambda: arange(0, 2) == np.arange(2), "ndarray array([0, 1])"),
    ],
)
def test_what_cannot_be_compared_is_a_sentence(compare: Any, given: str) -> None:
    """Left to Python it would be one bool, by identity."""
    with pytest.raises(ShapeError) as caught:
        compare()
    assert str(caught.value) == (
        f"a comparison at {__file__}:{compare.__code__.co_firstlineno} must be of tensors and numbers, not of an index "
        f"tensor and {given}; compare with an index tensor of tl.arange, or a number."
    )
