"""Block pointers and tensor descriptors, held against slices of numpy's arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernbench as kb

# mypy: disable-error-code="import-not-found"

A = np.arange(1, 36, dtype=np.float32).reshape(5, 7)


def test_blocks_that_reach_over_edges_are_filled_and_cut() -> None:
    """Copy a transposed matrix by blocks of 4 x 4, advanced along the rows; outside is zero, or NaN where asked."""
    out, edge = np.full((7, 5), -1, np.float32), np.zeros((4, 4), np.float32)
    with kb.triton("tiny"):
        import triton
        import triton.language as tl

        @triton.jit
        def turn(x_ptr: Any, out_ptr: Any, edge_ptr: Any, M: Any, N: Any, B: tl.constexpr) -> None:  # noqa: N803
            source = tl.make_block_ptr(x_ptr, (N, M), (1, N), (tl.program_id(0) * B, 0), (B, B), order=(0, 1))
            target = tl.make_block_ptr(out_ptr, (N, M), (M, 1), (tl.program_id(0) * B, 0), (B, B), order=(1, 0))
            for _ in range(0, M, B):
                tile = tl.load(source, boundary_check=(0, 1), padding_option="zero")
                assert source.dtype.element_ty == tl.float32
                tl.store(target, tile.to(target.type.element_ty), boundary_check=(0, 1))
                source, target = tl.advance(source, (0, B)), tl.advance(target, (0, B))
            corner = tl.make_block_ptr(x_ptr, (M, N), (N, 1), (3, 5), (B, B), order=(1, 0))
            tl.store(
                tl.make_block_ptr(edge_ptr, (B, B), (B, 1), (0, 0), (B, B), (1, 0)),
                tl.load(corner, boundary_check=(0, 1), padding_option="nan"),
            )

        turn[(2,)](A, out, edge, 5, 7, B=4)
    assert out.tolist() == A.T.tolist()
    expected = np.full((4, 4), np.nan, np.float32)
    expected[:2, :2] = A[3:, 5:]
    np.testing.assert_array_equal(edge, expected)


def test_only_the_checked_dimensions_are_cut() -> None:
    """Unchecked, a block goes on into the next row, as the addresses do."""
    out = np.zeros((2, 4), np.float32)
    with kb.triton("tiny"):
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(x_ptr: Any, out_ptr: Any) -> None:
            block = tl.make_block_ptr(x_ptr, (5, 7), (7, 1), (0, 5), (2, 4), (1, 0))
            at = tl.arange(0, 2)[:, None] * 4 + tl.arange(0, 4)[None, :]
            tl.store(out_ptr + at, tl.load(block, boundary_check=(0,)))

        kernel[(1,)](A, out)
    assert out.tolist() == [A.ravel()[5:9].tolist(), A.ravel()[12:16].tolist()]


def test_descriptors_of_the_host_and_of_the_kernel() -> None:
    """A descriptor of a view with strides; loads are zero outside, stores are cut."""
    whole, out = np.arange(48, dtype=np.float32).reshape(6, 8), np.full((3, 5), -1, np.float32)
    with kb.triton("tiny"):
        import triton
        import triton.language as tl
        from triton.tools.tensor_descriptor import TensorDescriptor

        @triton.jit
        def kernel(source: Any, out_ptr: Any, M: Any, N: Any) -> None:  # noqa: N803
            target = tl.make_tensor_descriptor(out_ptr, shape=[M, N], strides=[N, 1], block_shape=[2, 4])
            y, x = tl.program_id(0) * 2, tl.program_id(1) * 4
            assert source.dtype == target.dtype == target.type == tl.float32
            assert source.block_shape == target.block_shape == [2, 4]
            target.store([y, x], (source.load([y, x]) + 1).to(target.dtype))

        kernel[(2, 2)](TensorDescriptor.from_tensor(whole[1:4:, 2:7], (2, 4)), out, 3, 5)
    assert out.tolist() == (whole[1:4, 2:7] + 1).tolist()


@settings(max_examples=6, deadline=None)
@given(st.data())
def test_rows_are_gathered_and_scattered_by_their_indices(data: st.DataObject) -> None:
    """Rows and columns outside of the matrix are zeros, or left out; of rows at one place the last stays."""
    dtype, index = data.draw(st.sampled_from(["f4", "f2", "i1"])), data.draw(st.sampled_from(["i2", "i4"]))
    rows, columns = data.draw(st.integers(1, 12)), data.draw(st.integers(1, 50))
    count, block, first = data.draw(st.sampled_from([8, 16])), 32, data.draw(st.integers(-20, 40))
    rng = np.random.default_rng(data.draw(st.integers(0, 9)))
    places = rng.integers(-2, rows + 2, count).astype(index)
    x = rng.integers(-99, 99, (rows, columns)).astype(dtype)
    given_rows = rng.integers(-99, 99, (count, block)).astype(dtype)
    gathered, scattered = np.full((count, block), -1, dtype), x.copy()
    with kb.triton("tiny") as sim:
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(x_ptr: Any, in_ptr: Any, at_ptr: Any, out_ptr: Any, y: Any, M: Any, N: Any) -> None:  # noqa: N803
            at = tl.load(at_ptr + tl.arange(0, count))
            whole = tl.arange(0, count)[:, None] * block + tl.arange(0, block)[None, :]
            rows = tl.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [1, block])
            tl.store(out_ptr + whole, rows.gather(at, y))
            rows.scatter(tl.load(in_ptr + whole), at, y)

        kernel[(1,)](scattered, given_rows, places, gathered, first, rows, columns)
    assert sim.verified
    expected_rows, expected = np.zeros((count, block), dtype), x.copy()
    for number, row in enumerate(places):
        for at in range(block):
            if 0 <= row < rows and 0 <= first + at < columns:
                expected_rows[number, at] = x[row, first + at]
                expected[row, first + at] = given_rows[number, at]
    np.testing.assert_array_equal(gathered, expected_rows)
    np.testing.assert_array_equal(scattered, expected)


def test_a_gather_moves_its_rows_only_and_takes_time_for_them() -> None:
    """A descriptor of the host, rows of index arithmetic: as long as a load of the same rows through pointers."""
    x = np.arange(64 * 32, dtype=np.float32).reshape(64, 32)
    times = []
    for by_descriptor in (True, False):
        out = np.zeros((8, 16), np.float32)
        with kb.triton("tiny") as sim:
            import triton
            import triton.language as tl
            from triton.tools.tensor_descriptor import TensorDescriptor

            @triton.jit
            def kernel(source: Any, x_ptr: Any, out_ptr: Any) -> None:
                rows, columns = tl.arange(0, 8) * 5 % 9 + 40, tl.arange(0, 16)
                if by_descriptor:  # noqa: B023
                    found = source.gather(rows, 8)
                else:
                    found = tl.load(x_ptr + rows[:, None] * 32 + 8 + columns[None, :])
                tl.store(out_ptr + tl.arange(0, 8)[:, None] * 16 + columns[None, :], found)

            kernel[(1,)](TensorDescriptor.from_tensor(x, [1, 16]), x, out)
        np.testing.assert_array_equal(out, x[np.arange(8) * 5 % 9 + 40, 8:24])
        times.append(sim.launches[0].time_ns)
    assert times[0] == times[1] > 0


@pytest.mark.parametrize(
    ("how", "dtype", "both"),
    [
        ("atomic_add", "f4", np.add), ("atomic_add", "f2", np.add), ("atomic_min", "i4", np.minimum),
        ("atomic_max", "u8", np.maximum), ("atomic_and", "i8", np.bitwise_and), ("atomic_or", "u4", np.bitwise_or),
        ("atomic_xor", "i4", np.bitwise_xor),
    ],
)  # fmt: skip
def test_atomics_of_a_descriptor_change_a_block_in_memory(how: str, dtype: str, both: Any) -> None:
    """Four programs that meet in one block; what of it is outside of the matrix is left out."""
    rng = np.random.default_rng(5)
    x, there = rng.integers(0, 50, (4, 2, 8)).astype(dtype), rng.integers(0, 50, (5, 11)).astype(dtype)
    out = there.copy()
    with kb.triton("tiny"):
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(x_ptr: Any, out_ptr: Any) -> None:
            at = tl.arange(0, 2)[:, None] * 8 + tl.arange(0, 8)[None, :]
            target = tl.make_tensor_descriptor(out_ptr, [5, 11], [11, 1], [2, 8])
            getattr(target, how)([4, 6], tl.load(x_ptr + tl.program_id(0) * 16 + at))

        kernel[(4,)](x, out)
    expected = there.copy()
    for each in x:
        expected[4:, 6:] = both(expected[4:, 6:], each[:1, :5])
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize(
    ("do", "told"),
    [
        (
            lambda tl, p: tl.make_block_ptr(p, (5, 7), (7,), (0, 0), (2, 2), (1, 0)),
            "tl.make_block_ptr at HERE must be given a stride for each of 2 dimensions, not 1; name each once.",
        ),
        (
            lambda tl, p: tl.load(tl.make_block_ptr(p, (5,), (1,), (0,), (2,), (0,)), mask=True),
            "tl.load at HERE must be given no mask and no other with a block pointer; name the dimensions to check in "
            "boundary_check.",
        ),
        (
            lambda tl, p: tl.load(tl.make_block_ptr(p, (5,), (1,), (0,), (2,), (0,)), boundary_check=(1,)),
            "boundary_check of tl.load at HERE must name dimensions from 0 to 0, not (1,); correct it.",
        ),
        (
            lambda tl, p: tl.load(tl.make_block_ptr(p, (5,), (1,), (0,), (2,), (0,)), padding_option="one"),
            "padding_option at HERE must be 'zero' or 'nan', not 'one'; use one of these.",
        ),
        (
            lambda tl, p: tl.advance(p, (1,)),
            "tl.advance at HERE must be given a block pointer, not Pointer; add to other pointers.",
        ),
        (
            lambda tl, p: tl.make_tensor_descriptor(p, [5, 7], [7, 1], [1, 2]),
            "tl.make_tensor_descriptor at HERE: Descriptor block shape must have at least 16 bytes in the last "
            "dimension, not 2 elements of 4 B; widen it.",
        ),
        (
            lambda tl, p: tl.make_tensor_descriptor(p, [1] * 6, [1] * 6, [4] * 6),
            "tl.make_tensor_descriptor at HERE must describe 1 to 5 dimensions, not 6; join some of them.",
        ),
        (
            lambda tl, p: tl.make_tensor_descriptor(p, [35], [1], [4]).store([0], tl.zeros((8,), tl.float32)),
            "store of a tensor descriptor at HERE must be given a tile of shape (4,), not (8,); reshape it.",
        ),
        (
            lambda tl, p: tl.make_tensor_descriptor(p, [35], [1], [4]).store([0], 1.0),
            "store of a tensor descriptor at HERE must be given a tile of shape (4,), not (); reshape it.",
        ),
        (
            lambda tl, p: tl.make_tensor_descriptor(p, [1, 5, 7], [35, 7, 1], [1, 1, 8]).gather(tl.arange(0, 8), 0),
            "gather of a tensor descriptor at HERE must be of a block of one row of a matrix, not of shape (1, 1, 8); "
            "give block_shape=[1, columns].",
        ),
        (
            lambda tl, p: tl.make_tensor_descriptor(p, [5, 7], [7, 1], [2, 8]).gather(tl.arange(0, 8), 0),
            "gather of a tensor descriptor at HERE must be of a block of one row of a matrix, not of shape (2, 8); "
            "give block_shape=[1, columns].",
        ),
        (
            lambda tl, p: tl.make_tensor_descriptor(p, [5, 7], [7, 1], [1, 8]).gather(tl.arange(0, 4), 0),
            "gather of a tensor descriptor at HERE must be given a line of at least 8 rows, not a tile of shape (4,); "
            "give more.",
        ),
        (
            lambda tl, p: tl.make_tensor_descriptor(p, [5, 7], [7, 1], [1, 8]).gather(tl.arange(0, 8)[:, None], 0),
            "gather of a tensor descriptor at HERE must be given a line of at least 8 rows, not a tile of shape "
            "(8, 1); give more.",
        ),
        (
            lambda tl, p: tl.make_tensor_descriptor(p, [5, 7], [7, 1], [1, 8]).gather([0] * 8, 0),
            "gather of a tensor descriptor at HERE must be given rows of int16 or int32, not list; cast them.",
        ),
        (
            lambda tl, p: tl.make_tensor_descriptor(p, [5, 7], [7, 1], [1, 8]).gather(tl.arange(0, 8).to(tl.int64), 0),
            "gather of a tensor descriptor at HERE must be given rows of int16 or int32, not int64; cast them.",
        ),
        (
            lambda tl, p: tl.make_tensor_descriptor(p, [5, 7], [7, 1], [1, 4]).gather(tl.arange(0, 8), 0),
            "gather of a tensor descriptor at HERE must have at least 8 columns of f32, not 4; widen the block.",
        ),
        (
            lambda tl, p: tl.make_tensor_descriptor(p, [5, 7], [7, 1], [1, 8]).scatter(
                tl.zeros((8, 4), tl.float32), tl.arange(0, 8), 0
            ),
            "scatter of a tensor descriptor at HERE must be given a tile of shape (8, 8), not (8, 4); reshape it.",
        ),
        (
            lambda tl, p: tl.make_tensor_descriptor(p, [35], [1], [4]).atomic_add([0], tl.zeros((8,), tl.float32)),
            "atomic_add of a tensor descriptor at HERE must be given a tile of shape (4,), not (8,); reshape it.",
        ),
        (
            lambda tl, p: tl.make_tensor_descriptor(p, [35], [1], [4]).atomic_max([0], tl.zeros((4,), tl.float32)),
            "atomic_max of a tensor descriptor at HERE must be of int32, int64, uint32, uint64, not f32; cast the "
            "tensor, or use tl.atomic_max.",
        ),
        (
            lambda tl, p: tl.make_tensor_descriptor(p, [35], [1], [4]).atomic_cas([0], 0),
            "atomic_cas of a tensor descriptor at HERE must be done by pointers, as Triton's descriptors have only "
            "atomic_add, atomic_and, atomic_max, atomic_min, atomic_or, atomic_xor; use tl.atomic_cas.",
        ),
    ],
)
def test_what_does_not_fit_is_a_sentence(do: Any, told: str) -> None:
    """With the line in the kernel."""
    with kb.triton("tiny"):
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(x_ptr: Any) -> None:
            do(tl, x_ptr)

        with pytest.raises(kb.KernbenchError) as error:
            kernel[(1,)](A)
    here = f"{__file__}:{do.__code__.co_firstlineno}"
    assert str(error.value).startswith(told.replace("HERE", here)), error.value


def test_a_block_of_the_host_is_refused_where_the_kernel_uses_it() -> None:
    """Its shape may change until the launch; the error that caused the launch's has Triton's words, too."""
    with kb.triton("tiny"):
        import triton
        from triton.tools.tensor_descriptor import TensorDescriptor

        @triton.jit
        def kernel(source: Any) -> None:
            source.load([0, 0])

        with pytest.raises(triton.CompilationError) as error:
            kernel[(1,)](TensorDescriptor.from_tensor(A.astype(np.float16), [4, 4]))
    told = "load of a tensor descriptor at "
    assert str(error.value).startswith(told)
    assert "Descriptor block shape must have at least 16 bytes" in str(error.value.__cause__)


def test_an_integer_tensor_has_no_nan_outside() -> None:
    """As Triton refuses it; floats are padded with NaN."""
    out = np.zeros((1, 8), np.float32)
    with kb.triton("tiny"):
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(x_ptr: Any, out_ptr: Any) -> None:
            source = tl.make_tensor_descriptor(x_ptr, [5, 7], [7, 1], [1, 8], padding_option="nan")
            tl.store(out_ptr + tl.arange(0, 8)[None, :], source.load([4, 4]))

        kernel[(1,)](A, out)
        with pytest.raises(kb.KernbenchError, match=r"padding_option at .* must be 'zero' for integers, not 'nan'"):
            kernel[(1,)](A.astype(np.int32), out)
    np.testing.assert_array_equal(out, [[33, 34, 35, *[np.nan] * 5]])


def test_a_block_of_five_dimensions() -> None:
    """As many as a descriptor may have; zeros behind the last columns."""
    x, out = np.arange(96, dtype=np.float32).reshape(2, 2, 2, 2, 6), np.zeros((2, 2, 2, 2, 6), np.float32)
    with kb.triton("tiny"):
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(x_ptr: Any, out_ptr: Any) -> None:
            source, target = (
                tl.make_tensor_descriptor(each, [2, 2, 2, 2, 6], [48, 24, 12, 6, 1], [1, 1, 2, 2, 4])
                for each in (x_ptr, out_ptr)
            )
            target.store([1, 0, 0, 0, 4], source.load([1, 0, 0, 0, 4]))

        kernel[(1,)](x, out)
    expected = np.zeros_like(x)
    expected[1, 0, ..., 4:] = x[1, 0, ..., 4:]
    np.testing.assert_array_equal(out, expected)


def test_rows_that_a_command_computed_are_computed_on_demand() -> None:
    """As addresses are; phase 2 computes them anew."""
    x, at, out = A.copy(), np.arange(8, dtype=np.int32) // 2, np.zeros((8, 8), np.float32)
    with kb.triton("tiny") as sim:
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(x_ptr: Any, at_ptr: Any, out_ptr: Any) -> None:
            rows = tl.load(at_ptr + tl.arange(0, 8)) + 1
            found = tl.make_tensor_descriptor(x_ptr, [5, 7], [7, 1], [1, 8]).gather(rows, 1)
            tl.store(out_ptr + tl.arange(0, 8)[:, None] * 8 + tl.arange(0, 8)[None, :], found)

        kernel[(1,)](x, at, out)
    np.testing.assert_array_equal(out[:, :6], A[at + 1, 1:])
    assert not out[:, 6:].any()
    assert sim.verified
