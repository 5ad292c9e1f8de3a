"""What an access through pointers moves equals a naive byte gather, and stays inside its tensor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_core.callsite import line_number
from kernbench_core.errors import OutOfBoundsError, ShapeError, UnsupportedError
from kernbench_core.kernel.index import IndexTensor
from kernbench_core.kernel.pointers import Pointer, make_ref
from kernbench_core.kernel.transfers import direct_transfer, pointer_transfer
from kernbench_core.memory.device_memory import TensorAllocation, TensorSegment
from kernbench_core.values.region import Region

ROWS, COLS = 12, 10
SIZE = ROWS * COLS * 4
TENSOR = TensorAllocation("x", 4096, (ROWS, COLS), "f32", SIZE, (TensorSegment(4096, 0, SIZE, 0),))
X = Pointer(TENSOR, 0, "f32")
REF = make_ref(X, (2, 3), None, None, "tl.ref")


def arange(end: int) -> IndexTensor:
    return IndexTensor((end,), 0, (1,))


def bytes_of(regions: tuple[Region, ...]) -> list[int]:
    """List the addresses of regions in order, one by one."""
    return [r.base + row * r.pitch + column for r in regions for row in range(r.rows) for column in range(r.row_bytes)]


def element_bytes(offsets: Any) -> list[int]:
    """List the virtual addresses of the bytes of f32 elements, in row-major order."""
    return [4096 + 4 * offset + byte for offset in np.asarray(offsets).ravel().tolist() for byte in range(4)]


@given(st.integers(1, 5), st.integers(1, 5), st.integers(0, 3), st.integers(1, COLS), st.booleans())
def test_pointer_tensors_equal_a_naive_gather(m: int, n: int, start: int, stride: int, dense: bool) -> None:
    """Affine pointers and the same offsets as data move the same bytes in the same order."""
    pointers = X + start + arange(m)[:, None] * stride + arange(n)[None, :]
    offsets = start + np.arange(m)[:, None] * stride + np.arange(n)[None, :]
    if dense:
        pointers = X + IndexTensor.of(offsets)
    moved = pointer_transfer(pointers, None, "tl.load")
    assert moved.shape == (m, n)
    assert moved.nbytes == 4 * m * n
    assert bytes_of(moved.regions) == element_bytes(offsets)
    if not dense:
        direct = direct_transfer(make_ref(X + start, (m, n), (stride, 1), None, "tl.load"), "tl.load")
        assert bytes_of(direct.regions) == element_bytes(offsets)


@given(st.data())
def test_masked_accesses_move_only_what_is_on(data: Any) -> None:
    """Moved bytes, and where they belong in the tile, equal a naive gather, whatever the mask and the pointers."""
    m, n = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 5))
    stride = data.draw(st.integers(1, 7))
    offsets = np.arange(m)[:, None] * stride + np.arange(n)[None, :]
    if data.draw(st.booleans()):
        mask = np.arange(m)[:, None] < data.draw(st.integers(0, 5))
        mask = mask & (np.arange(n)[None, :] < data.draw(st.integers(0, 5)))
    else:
        mask = np.array(data.draw(st.lists(st.booleans(), min_size=m * n, max_size=m * n))).reshape(m, n)
    pointers = X + arange(m)[:, None] * stride + arange(n)[None, :]
    if data.draw(st.booleans()):
        pointers = X + IndexTensor.of(offsets)
    moved = pointer_transfer(pointers, mask, "tl.load")
    assert bytes_of(moved.regions) == element_bytes(offsets[mask])
    inside = bytes_of(moved.inside) if moved.inside is not None else list(range(4 * m * n))
    assert inside == [4 * at + byte for at in np.flatnonzero(mask).tolist() for byte in range(4)]


@given(st.integers(0, 8), st.integers(0, 8))
def test_strided_masked_tiles_take_few_descriptors(rows: int, cols: int) -> None:
    """A ragged edge of a tile stays one descriptor: it is not gathered element by element."""
    mask = (np.arange(8)[:, None] < rows) & (np.arange(8)[None, :] < cols)
    moved = pointer_transfer(X + arange(8)[:, None] * COLS + arange(8)[None, :], mask, "tl.load")
    assert len(moved.regions) <= 1


def test_an_access_outside_its_tensor_names_the_element_and_the_line() -> None:
    """Past the end and before the start, direct or through pointers; coordinates of the tensor."""
    here = test_an_access_outside_its_tensor_names_the_element_and_the_line.__code__

    def message(element: list[int]) -> str:
        return (
            f"tl.load at {__file__}:{line} must stay inside tensor 'x' of shape (12, 10), and reaches element "
            f"{element}; correct the index arithmetic, or mask it off."
        )

    with pytest.raises(OutOfBoundsError) as caught:
        pointer_transfer(X + arange(3) * 50 + 30, None, "tl.load")
    line = here.co_firstlineno + 11
    assert str(caught.value) == message([13, 0])
    with pytest.raises(OutOfBoundsError) as caught:
        direct_transfer(make_ref(X + 115, (2, 3), (1, 2), None, "tl.load"), "tl.load")
    line += 4
    assert str(caught.value) == message([12, 0])
    with pytest.raises(OutOfBoundsError) as caught:
        pointer_transfer(X + IndexTensor.of(np.array([4, -1, 7])), None, "tl.load")
    line += 4
    assert str(caught.value) == message([-1, 9])
    assert line_number((here, 0)) == here.co_firstlineno


def test_masked_off_elements_are_not_checked() -> None:
    """The last block of a vector may reach past its end where the mask is false."""
    offsets = arange(16) + 112
    moved = pointer_transfer(X + offsets, (offsets < 120).numpy(), "tl.load")
    assert moved.regions == (Region(4096 + 448, 32),)
    assert moved.nbytes == 32


def test_another_dtype_reinterprets_bytes() -> None:
    """Strides count elements of the dtype that is asked for; bounds count bytes."""
    moved = direct_transfer(make_ref(X + 1, (4, 2), (20, 1), "f16", "tl.load"), "tl.load")
    assert moved.regions == (Region(4100, 4, 4, 40),)
    with pytest.raises(OutOfBoundsError):
        direct_transfer(make_ref(X, (481,), None, "int8", "tl.load"), "tl.load")


def test_pointer_arithmetic_counts_elements() -> None:
    """Ints from either side, subtraction, and inserted dimensions."""
    moved = pointer_transfer(2 + (X + arange(4) - 1)[None, :], None, "tl.load")
    assert moved.shape == (1, 4)
    assert moved.regions == (Region(4100, 16),)
    assert X.dtype == "f32"
    assert X.dtype.element_ty == "f32"
    assert repr(X + 3) == f"Pointer(x f32[12, 10] + 3, at 0x{X.tensor.va + 12:x})"
    assert repr(X + arange(4)) == "Pointer(x f32[12, 10] + [0, 1, 2, 3])"


@pytest.mark.parametrize(
    ("make", "given"),
    [
        (lambda: X + 1.0, "float 1.0"),
        (lambda: "1" + X, "str '1'"),
        (lambda: X - None, "NoneType None"),
        (lambda: X - X, "another pointer"),
    ],
)
def test_pointer_arithmetic_is_of_integers(make: Any, given: str) -> None:
    """Anything else is a sentence with the line, from either side."""
    with pytest.raises(ShapeError) as caught:
        make()
    line = make.__code__.co_firstlineno
    assert str(caught.value) == (
        f"pointer arithmetic at {__file__}:{line} must use integers, not {given}; offsets count elements."
    )


@pytest.mark.parametrize(
    "make",
    [
        lambda: 2.0 - X,
        lambda: arange(4) - X,
        lambda: X * 2,
        lambda: arange(4) * X,
        lambda: (X + arange(4)) / 2,
        lambda: -X,
        lambda: arange(4) < X,
        lambda: int(X),
        lambda: range(X),
        lambda: float(X),
    ],
)
def test_pointers_have_no_other_arithmetic(make: Any) -> None:
    """From either side, and whatever the other operand is: Python says so by itself."""
    with pytest.raises(TypeError, match="Pointer"):
        make()


def test_pointers_are_compared_by_address() -> None:
    """A bool for single ones, elementwise for blocks, whatever they were made from and of whichever dtype."""
    other = TensorAllocation("y", 4096 + 8, (4,), "f16", 8, (TensorSegment(4096, 0, 8, 0),))
    half = Pointer(other, 0, "f16")
    assert ((X + 0 == X), (X + 1 == X), (X + 0 != X), (X + 1 != X)) == (True, False, False, True)
    assert (half == X, half == X + 2, half + 2 == X + 3, half != X + 2) == (False, True, True, False)
    for found, numbers in (
        (X + arange(4) == X + arange(4), [True] * 4),
        (X + arange(4) != X + arange(4), [False] * 4),
        (X + arange(4) == X + 2, [False, False, True, False]),
        (X + arange(4) * arange(4) == 1 + X, [False, True, False, False]),
        ((X + arange(2))[:, None] == (X + arange(2))[None, :], [[True, False], [False, True]]),
        (half + arange(4) == X + 3, [False, False, True, False]),
    ):
        assert isinstance(found, IndexTensor)
        assert found.dtype == "bool"
        assert found.numpy().tolist() == numbers
    with pytest.raises(ShapeError) as caught:
        _ = X + arange(4) == X + arange(3)
    assert "a comparison of pointers at" in str(caught.value)
    assert "must have operands that broadcast, not (4,) and (3,)" in str(caught.value)


@pytest.mark.parametrize(
    ("compare", "given"),
    [
        (lambda: X == 0, "int 0"),
        (lambda: X != 0.0, "float 0.0"),
        (lambda: X + arange(2) != None, "NoneType None"),  # noqa: E711
        (lambda: arange(4) == X, "index arithmetic"),
        (lambda: X == REF, "a ref to a tile of shape (2, 3) of tensor 'x', which is in HBM"),
    ],
)
def test_pointers_are_compared_with_pointers_only(compare: Any, given: str) -> None:
    """Python would say that they differ, by identity."""
    with pytest.raises(ShapeError) as caught:
        compare()
    line = compare.__code__.co_firstlineno
    assert str(caught.value) == (
        f"a comparison with a pointer at {__file__}:{line} must be of another pointer, not {given}; tl.load what it "
        "points to, or ask for None by 'is None'."
    )


def test_a_pointer_is_a_condition_and_many_are_none() -> None:
    """`if bias_ptr:` tells a pointer from None; of many pointers there is no one answer."""
    assert bool(X) and bool(X + 0)
    asked = lambda: bool(X + arange(4))  # noqa: E731
    with pytest.raises(ShapeError) as caught:
        asked()
    assert str(caught.value) == (
        f"a condition at {__file__}:{asked.__code__.co_firstlineno} must be a single bool, not (4,) pointers; ask for "
        "None by 'is None'."
    )


def test_a_single_pointer_takes_a_single_mask() -> None:
    """As in Triton; a block of pointers may take a single one, or one that is broadcast to it."""
    here = test_a_single_pointer_takes_a_single_mask.__code__.co_firstlineno
    for shape in ((1,), (4,), (2, 2)):
        with pytest.raises(ShapeError) as caught:
            pointer_transfer(X, np.ones(shape, bool), "tl.store")
        assert str(caught.value) == (
            f"the mask of tl.store at {__file__}:{here + 5} must be a single bool for a single pointer, not of shape "
            f"{shape}; add a block of offsets to the pointer."
        )
    assert pointer_transfer(X + 3, np.array(True), "tl.store").regions == (Region(4096 + 12, 4),)
    for mask in (np.array(True), np.ones((1,), bool)):
        assert pointer_transfer(X + arange(4), mask, "tl.store").regions == (Region(4096, 16),)


@pytest.mark.parametrize("kinds", [(np.int64, int), (int, np.int64)])
def test_extents_of_numpy_are_ints(kinds: tuple[Any, Any]) -> None:
    """Whichever a process sees first: what is equal has one place in a cache."""
    rows = 2 if kinds[0] is int else 3  # a tile of the other case would be known already
    for kind in kinds:
        found = make_ref(X, (kind(rows), kind(2)), None, None, "tl.load")
        assert found.shape == (rows, 2) and found.strides == (2, 1)
        assert {type(number) for number in (*found.shape, *found.strides)} == {int}


def test_pointers_are_not_indexed_and_shapes_are_sound() -> None:
    """Reading by index, a tile of many pointers, and impossible extents are sentences with the line."""
    here = test_pointers_are_not_indexed_and_shapes_are_sound.__code__.co_firstlineno
    with pytest.raises(UnsupportedError) as caught:
        X[3]
    assert str(caught.value) == (
        f"a pointer at {__file__}:{here + 4} must be read with tl.load(ptr + index), not by an "
        "unsupported tensor index; an index may only insert dimensions, as in ptrs[:, None]."
    )
    with pytest.raises(ShapeError) as caught:
        make_ref(X + arange(4), (2, 2), None, None, "tl.load")
    assert str(caught.value) == (
        f"tl.load at {__file__}:{here + 10} must start at one pointer when a shape is given, not at a tensor of (4,) "
        "pointers; pass the pointer of the first element."
    )
    with pytest.raises(ShapeError) as caught:
        make_ref(X, (2, 0), None, None, "tl.load")
    assert str(caught.value) == (
        f"tl.load at {__file__}:{here + 16} must have positive extents and one stride for each, not shape (2, 0) with "
        "strides (0, 1); correct them."
    )
