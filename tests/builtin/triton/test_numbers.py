"""Typed scalars, constants, types, positions and products, as files of Triton have them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import kernbench as kb

# mypy: disable-error-code="import-not-found"


def test_constants_scalars_and_types() -> None:
    """What a kernel may ask of its arguments, and what arithmetic keeps."""
    x = np.array([3, 5], np.float16)
    seen: dict[str, Any] = {}
    with kb.triton("tiny"):
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(x_ptr: Any, n: Any, BLOCK: tl.constexpr, WIDTH: tl.constexpr = 3) -> None:  # noqa: N803
            assert isinstance(BLOCK, tl.constexpr)
            assert (BLOCK * WIDTH + 1).value == 7
            assert not isinstance(n, tl.constexpr)
            assert isinstance(BLOCK * n, tl.tensor)
            assert isinstance(tl.load(x_ptr), tl.tensor)
            assert isinstance(x_ptr, tl.tensor)
            assert not isinstance(BLOCK, tl.tensor)
            seen["types"] = [
                x_ptr.type.element_ty, x_ptr.dtype.element_ty.primitive_bitwidth, x_ptr.dtype.is_ptr(),
                tl.load(x_ptr).type.scalar, tl.arange(0, 2).dtype.is_int(), (BLOCK * n).dtype,
                x_ptr.type == tl.pointer_type(tl.float16), repr(x_ptr.dtype.element_ty),
            ]  # fmt: skip
            seen["numbers"] = [
                tl.cdiv(n, BLOCK), tl.cdiv(n, BLOCK).to(tl.int64).dtype, tl.math.exp2(n * 1.0).dtype,
                tl.minimum(n, 4).dtype, tl.to_tensor(2.5).dtype, tl.cast(1.0, tl.int32, bitcast=True),
                tl.zeros_like(n), tl.where(n > 3, n, 0).dtype, tl.load(x_ptr + 1).to(tl.int32) // BLOCK == 2,
            ]  # fmt: skip
            seen["loops"] = [
                [i.dtype for i in tl.range(0, 2)], [i.dtype for i in tl.range(n.to(tl.int64))][:1],
                sum(tl.static_range(BLOCK + 1)), list(range(tl.load(x_ptr).to(tl.int32))),
            ]  # fmt: skip
            assert 0 < tl.load(x_ptr) <= 3.0 < n

        kernel[(1,)](x, 7, BLOCK=2)
    assert seen["types"] == ["f16", 16, True, "f16", True, "int32", True, "float16"]
    assert seen["numbers"][:8] == [4, "int64", "f32", "int32", "f32", 0x3F800000, 0, "int32"]
    assert bool(np.all(seen["numbers"][8:])) is True
    assert seen["loops"] == [["int32", "int32"], ["int64"], 3, [0, 1, 2]]


@pytest.mark.parametrize("n", [65536, 2**40 + 3])
def test_index_arithmetic_is_that_of_int32(n: int) -> None:
    """It wraps, whatever comes of it, until an operand of 64 bits is met; numpy's int32 and int64 say the same."""
    out = np.zeros((10, 8), np.int64)
    with kb.triton("tiny"):
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(out_ptr: Any, n: Any, factor: tl.constexpr) -> None:
            at = tl.arange(0, 8)
            mixed = at * factor + 12345
            results = (
                mixed, -mixed >> 3, mixed % 100, mixed < 0, tl.where(mixed > 0, mixed, at), (at * at + 65536) * 65536,
                tl.program_id(0)[None] + 2147483647 + at, (at + 65536) * n, n - at * factor,
                at.to(tl.int64) * factor,
            )  # fmt: skip
            for row in tl.static_range(10):
                tl.store(out_ptr + row * 8 + at, results[row])

        kernel[(1,)](out, n, 1103515245)
    at, wide = np.arange(8, dtype=np.int32), n > 2**31
    mixed = at * np.int32(1103515245) + np.int32(12345)
    given = np.int64(n) if wide else np.int32(n)
    with np.errstate(over="ignore"):
        wanted = [
            mixed, -mixed >> 3, np.fmod(mixed, 100), mixed < 0, np.where(mixed > 0, mixed, at),
            (at * at + np.int32(65536)) * np.int32(65536), at + np.int32(2147483647), (at + np.int32(65536)) * given,
            given - at * np.int32(1103515245), at.astype(np.int64) * 1103515245,
        ]  # fmt: skip
    assert out.tolist() == [row.astype(np.int64).tolist() for row in wanted]


def test_blocks_of_index_arithmetic_are_tensors() -> None:
    """They have the methods of these; one of all elements is a scalar, and high halves of products are of 32 bits."""
    out, high = np.zeros(9, np.int64), np.zeros(8, np.int32)
    with kb.triton("tiny"):
        import triton
        import triton.language as tl

        @triton.jit
        def largest(a: Any, b: Any) -> Any:
            return tl.maximum(a, b)

        @triton.jit
        def kernel(out_ptr: Any, high_ptr: Any) -> None:
            at = tl.arange(0, 8)
            total = (at + 2147483640).sum(0)
            assert (total.dtype, at.numel, at.to(tl.int64).sum().dtype) == (tl.int32, 8, tl.int64)
            tl.store(out_ptr, total * 3)
            tl.store(out_ptr + 1 + at, at.view(2, 4).trans().reshape(8).flip() * at.max(axis=0) + at.reduce(0, largest))
            tl.store(high_ptr + at, tl.umulhi(at * 536870911, at + 2147483640))

        kernel[(1,)](out, high)
    at = np.arange(8, dtype=np.int32)
    total = (at + np.int32(2147483640)).sum(dtype=np.int32)
    unsigned = [(at * np.int32(536870911)).view(np.uint32), at.astype(np.uint32) + np.uint32(2147483640)]
    assert out.tolist() == [int(total * np.int32(3)), *(at.reshape(2, 4).T.ravel()[::-1] * 7 + 7).tolist()]
    assert high.tolist() == [int(a) * int(b) >> 32 for a, b in zip(*unsigned, strict=True)]


def test_pointers_add_what_int32_does_not_hold() -> None:
    """A pointer's offset is of 64 bits, and an integer of Python's that int32 lacks is refused beside one of int32."""
    with kb.triton("tiny"):
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(x_ptr: Any, factor: tl.constexpr) -> None:
            at = tl.arange(0, 2)
            tl.store(x_ptr + at + 2147483647 + (at * factor + 1), 1)

        x = np.zeros(4, np.int32)
        with pytest.raises(kb.KernbenchError, match=r"and reaches element \[2147483650\];"):
            kernel[(1,)](x, 1)
        with pytest.raises(kb.KernbenchError, match=r"must be one that int32 holds, .* 2654435761 is out of range;"):
            kernel[(1,)](x, 2654435761)


def test_what_is_divided_rounding_up_is_cut_towards_zero() -> None:
    """As Triton's `(x + y - 1) // y` of integers below 0 is, of scalars as of blocks; of constants it is Python's."""
    out = np.zeros(5, np.int32)
    with kb.triton("tiny"):
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(out_ptr: Any, n: Any) -> None:
            at = tl.arange(0, 1)
            given = tl.cdiv(n, 7), tl.cdiv(tl.load(out_ptr) + n, 7), tl.cdiv(7 - n, 7), tl.cdiv(-100, 7)
            for place in tl.static_range(4):
                tl.store(out_ptr + 1 + place, given[place])
            tl.store(out_ptr + at, tl.cdiv(at + n, 7))

        kernel[(1,)](out, -100)
    assert out.tolist() == [-13, -13, -13, 16, -14]


def test_groups_of_rows_are_walked_by_columns() -> None:
    """`swizzle2d` meets every place of the grid once, groups of two rows first, as it is documented."""
    order = np.zeros((3, 4), np.int32)
    with kb.triton("tiny"):
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(out_ptr: Any, rows: Any, columns: Any) -> None:
            i, j = tl.swizzle2d(tl.program_id(0), tl.program_id(1), rows, columns, 2)
            tl.store(out_ptr + i * columns + j, tl.program_id(0) * columns + tl.program_id(1))

        kernel[(3, 4)](order, 3, 4)
    assert order.tolist() == [[0, 2, 4, 6], [1, 3, 5, 7], [8, 9, 10, 11]]


@pytest.mark.parametrize("dtype", [np.float16, np.int8])
def test_stacks_of_matrices_are_multiplied(dtype: Any) -> None:
    """With an accumulator, of loaded and of computed stacks, each product an op of its own."""
    rng = np.random.default_rng(3)
    a, b = rng.integers(-4, 5, (3, 4, 8)).astype(dtype), rng.integers(-4, 5, (3, 8, 2)).astype(dtype)
    out = np.zeros((3, 4, 2), np.float32)
    with kb.triton("tiny", verify_ops=True) as sim:
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(a_ptr: Any, b_ptr: Any, out_ptr: Any) -> None:
            left, right = tl.load(a_ptr, shape=a.shape), tl.load(b_ptr, shape=b.shape)
            first = tl.dot(left, right)
            found = tl.dot(left + left, right, acc=first)
            tl.store(out_ptr, found.to(tl.float32))

        kernel[(1,)](a, b, out)
    np.testing.assert_array_equal(out, 3 * (a.astype(np.float32) @ b.astype(np.float32)))
    assert sim.result is not None
    assert sim.result.op_log is not None
    assert sum(record.op_kind == "gemm" for record in sim.result.op_log) == 6


def test_a_product_of_index_arithmetic() -> None:
    """A selection matrix made of comparisons of indices, as kernels make it."""
    x, out = np.arange(16, dtype=np.float32).reshape(4, 4), np.zeros((4, 4), np.float32)
    with kb.triton("tiny"):
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(x_ptr: Any, out_ptr: Any) -> None:
            at = tl.arange(0, 4)
            turned = (at[:, None] == 3 - at[None, :]).to(tl.float32)
            tl.store(out_ptr, tl.dot(turned, tl.load(x_ptr, shape=(4, 4))))

        kernel[(1,)](x, out)
    assert out.tolist() == x[::-1].tolist()


def test_stacks_that_do_not_fit_are_a_sentence() -> None:
    """With both shapes."""
    with kb.triton("tiny"):
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(a_ptr: Any) -> None:
            a = tl.zeros((2, 4, 4), tl.float32)
            tl.dot(a, tl.zeros((3, 4, 4), tl.float32))

        with pytest.raises(kb.KernbenchError) as error:
            kernel[(1,)](np.zeros(4, np.float32))
        here = f"{__file__}:{kernel.fn.__code__.co_firstlineno + 3}"
    assert str(error.value).startswith(
        f"tl.dot at {here} must be given stacks (b, m, k) and (b, k, n) of one dtype, not f32 of shape (2, 4, 4) and "
        "f32 of shape (3, 4, 4); reshape or cast them."
    )


def test_pointers_are_cast_to_pointers_of_other_elements() -> None:
    """The same bytes as narrower elements, and back, from the middle of a tensor; never to an integer."""
    x, halves, back = np.arange(4, dtype=np.int32) + 70000, np.zeros(8, np.uint16), np.zeros(2, np.int32)
    with kb.triton("tiny"):
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(x_ptr: Any, halves_ptr: Any, back_ptr: Any) -> None:
            narrow = (x_ptr + 1).to(tl.pointer_type(tl.uint16))
            tl.store(halves_ptr + tl.arange(0, 6), tl.load(narrow + tl.arange(0, 6)))
            wide = tl.cast(narrow + 2, tl.pointer_type(tl.int32))
            tl.store(back_ptr + tl.arange(0, 2), tl.load(wide + tl.arange(0, 2)))

        @triton.jit
        def odd(x_ptr: Any) -> None:
            (x_ptr.to(tl.pointer_type(tl.uint16)) + 1).to(tl.pointer_type(tl.int32))

        @triton.jit
        def number(x_ptr: Any) -> None:
            x_ptr.to(tl.int64)

        kernel[(1,)](x, halves, back)
        told = []
        for refused in (odd, number):
            with pytest.raises(kb.KernbenchError) as error:
                refused[(1,)](x)
            told.append(str(error.value).partition("\n")[0])
    assert halves[:6].tolist() == x[1:].view(np.uint16).tolist()
    assert back.tolist() == x[2:].tolist()
    assert told == [
        f"a cast of a pointer at {__file__}:{odd.fn.__code__.co_firstlineno + 2} must be of one pointer, to a multiple "
        "of 4 B in its tensor; cast it earlier.",
        f"a cast of a pointer at {__file__}:{number.fn.__code__.co_firstlineno + 2} must be to a pointer's type, as "
        "tl.pointer_type(tl.int8), not 'int64'; an address is no number here.",
    ]


def test_dtypes_that_the_units_lack_are_compared_and_refused() -> None:
    """A kernel may ask whether it has one."""
    with kb.triton("tiny"):
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(x_ptr: Any) -> None:
            assert tl.load(x_ptr).dtype != tl.float8e4b8
            tl.load(x_ptr).to(tl.float8e4b8)

        with pytest.raises(kb.KernbenchError) as error:
            kernel[(1,)](np.zeros(1, np.int32))
    assert str(error.value).startswith("a dtype must be one of bool, int8, ")
    assert ", not 'float8e4b8'; use one of these." in str(error.value)


def test_wide_floats_and_unsigned_integers() -> None:
    """f64 and uint64 through memory, arithmetic, reductions and scalars, as numpy has them."""
    rng = np.random.default_rng(4)
    x, y = rng.standard_normal(200), np.zeros(3)
    u, v = rng.integers(0, 2**64 - 1, 200, dtype=np.uint64), np.zeros(200, np.uint64)
    with kb.triton("tiny") as sim:
        import triton
        import triton.language as tl

        @triton.jit
        def wide(x_ptr: Any, y_ptr: Any, u_ptr: Any, v_ptr: Any, n: Any, big: Any) -> None:
            at = tl.arange(0, 256)
            x = tl.load(x_ptr + at, mask=at < n, other=0.0)
            tl.store(y_ptr, tl.sum(x, 0))
            tl.store(y_ptr + 1, tl.sum(tl.exp(x), 0) * 3)
            tl.store(y_ptr + 2, tl.max(x, 0).to(tl.float32))
            u = tl.load(u_ptr + at, mask=at < n, other=0)
            tl.store(v_ptr + at, u // 3 + u % 7 + (u >> 60) + tl.maximum(u, big), mask=at < n)

        wide[(1,)](x, y, u, v, 200, 2**63 + 1)
        big = np.uint64(2**63 + 1)
        assert np.array_equal(v, u // 3 + u % 7 + (u >> np.uint64(60)) + np.maximum(u, big))
        np.testing.assert_allclose(y[:2], [x.sum(), (np.exp(x).sum() + 56) * 3], rtol=1e-13)
        assert y[2] == np.float32(x.max())
    assert sim.launches[0].time_ns > 0


def test_index_arithmetic_keeps_its_bits() -> None:
    """In a dtype of the same size: as another integer it is index arithmetic still, as a float a tile."""
    high, low, floats = np.zeros(16, np.int64), np.zeros(16, np.uint8), np.zeros(16, np.float32)
    with kb.triton("tiny") as sim:
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(high_ptr, low_ptr, floats_ptr):
            at = tl.arange(0, 16)
            wide = (at - 8).to(tl.uint32, bitcast=True)
            tl.static_assert(wide.dtype == tl.uint32)
            tl.store(high_ptr + at, wide.to(tl.int64))
            tl.store(low_ptr + (wide + 8).to(tl.int32, bitcast=True), (at - 8).to(tl.int8).to(tl.uint8, bitcast=True))
            one = (at * 65536 + 0x3F800000).to(tl.float32, bitcast=True)
            tl.store(floats_ptr + at, (-one).to(tl.int32, bitcast=True).to(tl.float32, bitcast=True))

        kernel[(1,)](high, low, floats)
        with pytest.raises(kb.KernbenchError, match="the element size with bitcast=True, not go from int32 to int16"):
            refused = triton.jit(lambda x_ptr: tl.arange(0, 8).to(tl.int16, bitcast=True))
            refused[(1,)](high)
    at = np.arange(16)
    assert high.tolist() == ((at - 8) % 2**32).tolist() and low.tolist() == ((at - 8) % 256).tolist()
    assert floats.tolist() == (-(at * 65536 + 0x3F800000).astype(np.int32).view(np.float32)).tolist()
    assert sim.launches[0].time_ns > 0


def test_data_that_free_arithmetic_made_is_told_of() -> None:
    """Of more than eight ops in a row, once for each line that stores or computes with it; not of a mask or a tile."""
    x, out, hashed = np.ones(64, np.int32), np.zeros(64, np.int32), np.arange(64)
    for _ in range(9):
        hashed = (hashed ^ 61) & 0xFFFF
    with kb.triton("tiny") as sim:
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(x_ptr: Any, out_ptr: Any, n: Any, TILE: tl.constexpr) -> None:  # noqa: N803 - as kernels are written
            at = tl.arange(0, 64)
            mixed = at + tl.zeros((64,), tl.int32) if TILE else at
            for _ in range(n):
                mixed ^= 61
                mixed &= 0xFFFF
            ones = tl.load(x_ptr + at + (mixed & 0), mask=mixed >= 0)
            tl.store(out_ptr + at, mixed)
            tl.store(out_ptr + at, ones + mixed.to(tl.uint32).to(tl.int32))

        line = kernel.fn.__code__.co_firstlineno + 7
        for n, tile in ((4, False), (9, True), (9, False), (9, False)):
            kernel[(1,)](x, out, n, TILE=tile)
    assert sim.result is not None and np.array_equal(out, 1 + hashed)
    assert [each for each in sim.result.warnings if "tl.arange" in each] == [
        f"what is stored or computed with at {__file__}:{line + at} comes from tl.arange by 18 integer ops in a row at "
        "least, which take no time, as index arithmetic; to time them, begin with a tile, as tl.arange(…) + "
        "tl.zeros(…, tl.int32)."
        for at in (1, 2)
    ]
    assert sim.launches[1].time_ns > sim.launches[2].time_ns
