"""Arithmetic and comparisons of typed scalars, held against numpy's of arrays of one element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import kernbench as kb

# mypy: disable-error-code="import-not-found"


def inside(body: Callable[..., Any], *arguments: Any) -> Any:
    """Give what `body(tl, *arguments)` gives in a kernel, where numbers are typed."""
    found = []
    with kb.triton("tiny"):
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(x_ptr: Any, a: Any, b: Any, c: Any) -> None:
            found.append(body(tl, *(a, b, c)[: len(arguments)]))

        kernel[(1,)](np.zeros(1, np.int32), *arguments, *(0,) * (3 - len(arguments)))
    return found[0]


@pytest.mark.parametrize("n", [0, 1])
def test_comparisons_are_scalars_of_one_bit(n: int) -> None:
    """They are cast, negated and met as such: `~` of one is the other."""

    def body(tl: Any, n: Any) -> Any:
        less = n < 1
        assert less.dtype == tl.int1
        assert isinstance(less, tl.tensor)
        assert less.to(tl.int32).dtype == tl.int32
        assert (less & True).dtype == tl.int1
        both, either = less & (n == 0), less | (n == 1)
        other = 5 if ~less else 4
        bits = [bool(each) for each in (less, ~less, both, either)]
        return *bits, other, less.to(tl.int32) + 1, (less + less).to(tl.int8)

    zero = n == 0
    assert inside(body, n) == (zero, not zero, zero, True, 4 if zero else 5, zero + 1, 0)


@pytest.mark.parametrize("n", [0, 1])
def test_a_negated_comparison_masks(n: int) -> None:
    """Of a load, a store and a choice."""
    out = np.full(4, -1, np.int32)
    with kb.triton("tiny"):
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(out_ptr: Any, n: Any) -> None:
            at = tl.arange(0, 2)
            tl.store(out_ptr + at, tl.where(~(n > 0), at + 10, at + 20), mask=(at < 2) & ~(n > 0))
            tl.store(out_ptr + 2, 7, mask=~(n > 0))
            tl.store(out_ptr + 3, tl.load(out_ptr + 3, mask=n > 0, other=9))

        kernel[(1,)](out, n)
    assert out.tolist() == ([-1, -1, -1, -1] if n else [10, 11, 7, 9])


def test_operands_are_rounded_before_they_meet() -> None:
    """As in f32 arrays: of a large integer, of a Python float, and where they are compared."""
    large, tenth = np.int32(2057687051), np.float32(0.1)
    f32 = np.float32

    def body(tl: Any, n: Any, x: Any) -> Any:
        met = [(1 / n).item(), (n + x).item(), (x * 0.3).item(), (0.3 - x).item()]
        return [*met, bool(x == 0.1), bool(n == 2057687040.0)]

    expected = [f32(1) / f32(large), f32(large) + tenth, tenth * f32(0.3), f32(0.3) - tenth, True, True]
    assert inside(body, int(large), 0.1) == [float(each) if isinstance(each, f32) else each for each in expected]


def test_signed_and_unsigned_are_compared_as_unsigned() -> None:
    """As arrays of 32 bits are in C."""
    assert inside(lambda tl, n, m: bool(n < m.to(tl.uint32)), -1, 2**32 - 5) is False
    assert inside(lambda tl, n: bool(n < 2**31 - 1), -1) is True


def test_a_scalar_wraps_beside_an_unsigned_tile() -> None:
    """It is converted, as a tile of its dtype would be; a Python number is refused."""
    out = np.zeros((2, 4), np.uint16)
    with kb.triton("tiny"):
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(out_ptr: Any, n: Any) -> None:
            at = tl.arange(0, 4)
            tile = tl.full((4,), 3, tl.uint16)
            tl.store(out_ptr + at, tile + n.to(tl.int16))
            tl.store(out_ptr + 4 + at, tl.load(out_ptr + at, mask=at < 2, other=n))

        kernel[(1,)](out, -5)
    assert out.tolist() == [[2**16 - 2] * 4, [2**16 - 2] * 2 + [2**16 - 5] * 2]


def test_casts_to_narrow_floats_overflow_as_those_of_tiles() -> None:
    """Those of 8 bits saturate, others become infinite; neither warns."""
    out = np.zeros(4, np.float32)
    with kb.triton("tiny"):
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(out_ptr: Any, n: Any) -> None:
            tl.store(out_ptr, n.to(tl.float8e4nv).to(tl.float32))
            tl.store(out_ptr + 1, (-n).to(tl.float8e5))
            tl.store(out_ptr + 2, n.to(tl.float16))
            tl.store(out_ptr + 3, n.to(tl.bfloat16) * -1e30 * 1e30)

        kernel[(1,)](out, 2057687051)
    assert out.tolist() == [448, -57344, np.inf, -np.inf]


@pytest.mark.parametrize("body", [lambda tl, n: n + 2**40, lambda tl, n: n > 2**40, lambda tl, n: n.to(tl.uint8) * -1])
def test_numbers_that_a_dtype_lacks_are_refused(body: Any) -> None:
    """As beside tiles: Triton does not compile it."""
    with pytest.raises(kb.KernbenchError) as error:
        inside(body, 3)
    holds = "int32 holds, from -2147483648 to 2147483647, and 1099511627776 is out of range"
    if "uint8" in str(error.value):
        holds = "uint8 holds, from 0 to 255, and -1 is out of range"
    here = f"{__file__}:{body.__code__.co_firstlineno}"
    assert str(error.value).startswith(f"a number at {here} must be one that {holds}; cast the tensor first.")


def test_numbers_that_go_to_memory_are_cast() -> None:
    """An integer of Python's is one of int32 that a pointer's dtype cuts: stored, exchanged, under a mask."""
    out, small = np.zeros(6, np.uint32), np.zeros(3, np.uint8)
    with kb.triton("tiny"):
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(out_ptr: Any, small_ptr: Any, LESS: tl.constexpr) -> None:  # noqa: N803 - as kernels are written
            at = tl.arange(0, 4)
            tl.store(out_ptr + at, tl.load(out_ptr + at, mask=at < 2, other=-1))
            tl.store(out_ptr + 4, LESS)
            tl.store(small_ptr, 300)
            block = tl.make_block_ptr(small_ptr, (3,), (1,), (1,), (2,), (0,))
            tl.store(block, -2, boundary_check=(0,))
            tl.atomic_xchg(out_ptr + 5, -7)

        kernel[(1,)](out, small, LESS=-3)
    assert out.tolist() == [0, 0, 2**32 - 1, 2**32 - 1, 2**32 - 3, 2**32 - 7]
    assert small.tolist() == [44, 254, 254]


def test_numbers_of_numpy_are_given_as_pythons_are() -> None:
    """As scales that a host computes."""

    def body(tl: Any, n: Any, x: Any) -> Any:
        return n.dtype, (n + x).dtype, (n / x).item(), bool(n < x), bool(np.float64(0.1) == x)

    assert inside(body, np.int64(3), np.float64(0.5)) == ("int32", "f32", 6.0, False, False)
    assert inside(lambda tl, x: x.dtype, np.float32(0.5)) == "f32"


def test_numbers_of_loops_are_scalars() -> None:
    """Python's `range` counts as Triton's does: in int32, or int64 where a bound is; constants of loops stay."""
    seen = []
    with kb.triton("tiny"):
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(x_ptr: Any, n: Any, BLOCK: tl.constexpr) -> None:  # noqa: N803 - as kernels are written
            for i in range(n):
                seen.append((i * BLOCK).to(tl.int64).dtype)
            for i in range(0, n.to(tl.int64), BLOCK):
                seen.append(i.dtype)
            for i in range(2, 0, -1):
                seen.append((isinstance(i, tl.tensor), i + 0))
            seen.extend(range(BLOCK)[1:])

        kernel[(1,)](np.zeros(1, np.int32), 2, BLOCK=2)
    assert seen == ["int64", "int64", "int64", (True, 2), (True, 1), 1]


def test_floats_before_scalars_of_integers() -> None:
    """They meet as behind them, in f32, and compare to one bit."""

    def body(tl: Any, n: Any) -> Any:
        less = 0.5 < n  # noqa: SIM300 - what is tried
        return (0.1 * n).dtype, (0.1 * n).item(), (1.0 / n).item(), bool(~less), (2.5 - n).to(tl.int32) + 0

    import kernbench_builtin.triton.kernel as front

    f32 = np.float32
    found = []
    with kb.triton("tiny"):
        import triton
        import triton.language as tl

        written = triton.jit(body)
        assert isinstance(written, front.JitFunction)

        @triton.jit
        def kernel(x_ptr: Any, n: Any) -> None:
            found.append(written(tl, n))

        kernel[(1,)](np.zeros(1, np.int32), 3)
    assert found == [("f32", float(f32(0.1) * f32(3)), float(f32(1) / f32(3)), False, 0)]


def test_a_scalar_is_made_a_block_of_one_element() -> None:
    """By None; and converted by `cast`, which tiles and index arithmetic have, too."""
    y = np.zeros(4, np.float32)
    with kb.triton("tiny"):
        import triton
        import triton.language as tl

        @triton.jit  # type: ignore[untyped-decorator]
        def kernel(y_ptr: Any, n: Any, x: Any, BLOCK: tl.constexpr) -> None:  # noqa: N803
            at = tl.arange(0, BLOCK)
            whole = n[None] + at
            tl.static_assert(n[None, None].shape == (1, 1))
            tl.static_assert(n.cast(tl.int64).dtype == tl.int64)
            tl.static_assert(at.cast(tl.int64).dtype == tl.int64)
            tl.store(y_ptr + at, (whole.to(tl.float32) + x[None]).cast(tl.float16))

        kernel[(1,)](y, 3, 0.5, BLOCK=4)
        with pytest.raises(kb.KernbenchError) as error:

            @triton.jit  # type: ignore[untyped-decorator]
            def wrong(y_ptr: Any, n: Any) -> None:
                tl.store(y_ptr, n[0])

            wrong[(1,)](y, 3)
        with pytest.raises(kb.KernbenchError) as cut:

            @triton.jit  # type: ignore[untyped-decorator]
            def reach(y_ptr: Any) -> None:
                tl.load(y_ptr)[:, None]

            reach[(1,)](y)
    assert "must name one element of shape () or insert dimensions with None" in str(cut.value)
    assert y.tolist() == [3.5, 4.5, 5.5, 6.5]
    assert "a scalar must be indexed by None only, not by [0]; it has no elements." in str(error.value)


def test_the_least_and_the_greatest_of_pythons_are_tritons() -> None:
    """Of scalars and constants a scalar, of tiles element by element; of Python's numbers Python's."""
    out = np.zeros((2, 4), np.int32)
    seen = []
    with kb.triton("tiny"):
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(out_ptr: Any, n: Any, BLOCK: tl.constexpr) -> None:  # noqa: N803 - as kernels are written
            seen.extend([min(n, BLOCK).to(tl.int64).dtype, max(n, 3, BLOCK) + 0, min(7, 5), max([2, 9]), min(BLOCK, 9)])
            at = tl.arange(0, 4)
            tl.store(out_ptr + at, min(at, n - 3))
            tl.store(out_ptr + 4 + at, max(tl.load(out_ptr + at), 1))

        kernel[(1,)](out, 5, BLOCK=4)
    assert seen == ["int64", 5, 5, 9, 4]
    assert out.tolist() == [[0, 1, 2, 2], [1, 1, 2, 2]]


@pytest.mark.parametrize("loop", [lambda tl, n: tl.range(n / 2), lambda tl, n: list(tl.range(0, 2.5))])
def test_loops_are_bounded_by_integers(loop: Any) -> None:
    """A float is not cut."""
    with pytest.raises(kb.KernelError) as error:
        inside(lambda tl, n: list(loop(tl, n)), 4)
    assert "TypeError: " in str(error.value)
    assert "object cannot be interpreted as an integer" in str(error.value)
