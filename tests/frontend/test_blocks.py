"""Block pointers and tensor descriptors, held against slices of numpy's arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import kernbench_core as kb

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
            target.store([y, x], (source.load([y, x]) + 1).to(target.dtype))

        kernel[(2, 2)](TensorDescriptor.from_tensor(whole[1:4:, 2:7], [2, 4]), out, 3, 5)
    assert out.tolist() == (whole[1:4, 2:7] + 1).tolist()


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
            lambda tl, p: tl.make_tensor_descriptor(p, [5], [1], [2]).gather([0]),
            "gather of a tensor descriptor at HERE must be done by pointers, as kernbench's descriptors load and store "
            "whole blocks only; use tl.load and tl.store.",
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
