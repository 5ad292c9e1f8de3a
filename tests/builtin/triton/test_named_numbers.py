"""Numbers that a jit function gives a name are typed: each assignment makes int32 or f32 of one, as Triton's does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import kernbench as kb
from kernbench_core.errors import ShapeError

# mypy: disable-error-code="import-not-found"


def test_sums_are_of_the_type_that_the_first_number_has() -> None:
    """4,096 ones in f16 sum up in f32, and 8-bit integers in int32; a factor of f32 widens what it meets."""
    ones, eights = np.ones(4096, np.float16), np.full(10, 100, np.int8)
    big, out, whole = np.full(4, 60000, np.float16), np.zeros(2, np.float32), np.zeros(1, np.int32)
    with kb.triton("tiny"):
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(ones_ptr: Any, eights_ptr: Any, big_ptr: Any, out_ptr: Any, whole_ptr: Any) -> None:
            total = 0.0
            for i in range(0, 4096, 512):
                total += tl.sum(tl.load(ones_ptr + i + tl.arange(0, 512)), axis=0)
            tl.store(out_ptr, total)
            count = 0
            for i in range(10):
                count += tl.load(eights_ptr + i)
            tl.store(whole_ptr, count)
            scale = 4.0
            tl.store(out_ptr + 1, tl.max(tl.load(big_ptr + tl.arange(0, 4)) * scale, axis=0))

        kernel[(1,)](ones, eights, big, out, whole)
    assert out.tolist() == [4096.0, 240000.0]
    assert whole.tolist() == [1000]


def test_each_element_of_f16_is_added_in_f32() -> None:
    """Scalars, as tiles, where f16 would stop at 2048."""
    ones, out = np.ones(2300, np.float16), np.zeros(1, np.float32)
    with kb.triton("tiny"):
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(ones_ptr: Any, out_ptr: Any) -> None:
            total = 0.0
            for i in range(2300):
                total += tl.load(ones_ptr + i)
            tl.store(out_ptr, total)

        kernel[(1,)](ones, out)
    assert out.tolist() == [2300.0]


def test_named_numbers_count_as_c_does() -> None:
    """They wrap at 32 bits, and are divided towards zero; what does not fit is wider."""
    seen: list[Any] = []
    with kb.triton("tiny"):
        import triton

        @triton.jit
        def kernel(BLOCK: triton.language.constexpr) -> None:  # noqa: N803
            import triton.language as tl

            n, two = -7, 2
            large = 2000000000
            seen.append([n // two, n % two, n // 2, large + large, (large + large).dtype, 2000000000 + 2000000000])
            (value) = 1
            t = 0.0
            seen.append([value.dtype, t.dtype, t.to(tl.float16).dtype, value.to(tl.int64).dtype])
            a, (b, c) = 1.5, (2**31, -(2**31) - 1)
            d = e = 2**63
            tiny_one: tl.float32 = 1e-40
            largest = 3.5e38
            seen.append([each.dtype for each in (a, b, c, d, e, tiny_one, largest)])
            fixed: tl.constexpr = 3
            named = BLOCK
            more = BLOCK
            more *= 2
            seen.append([fixed.value, BLOCK.value, named.dtype, more.dtype, more + 0])

        kernel[(1,)](BLOCK=4)
    assert seen[0] == [-3, -1, -3, -294967296, "int32", 4000000000]
    assert seen[1] == ["int32", "f32", "f16", "int64"]
    assert seen[2] == ["f32", "uint32", "int64", "uint64", "uint64", "f64", "f64"]
    assert seen[3] == [3, 4, "int32", "int32", 8]


def test_everything_else_of_a_name_is_as_in_python() -> None:
    """Ranges, shapes, keyword arguments, keys, helpers, `type`, `is`, `:=`, `with`, texts, types and sequences."""
    out = np.zeros(8, np.float32)
    seen: list[Any] = []

    def helper(n: Any, *, by: int = 1) -> Any:
        return [n] * by

    class Held:
        def __enter__(self) -> int:
            return 5

        def __exit__(self, *given: object) -> None:
            pass

    with kb.triton("tiny"):
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(out_ptr: Any, flag: Any, BLOCK: tl.constexpr) -> None:  # noqa: N803
            size, times, on, name, kind, nothing = 8, 2, True, "x", tl.float32, None
            half = 0.5
            rows = (size, 1)
            x = tl.zeros(rows, dtype=kind) + 1.0
            tl.store(out_ptr + tl.arange(0, size), tl.sum(x, axis=1, keep_dims=False))
            table = {size: "eight", True: "yes"}
            seen.append([table[8], table[on], list(range(times)), helper(size, by=times), name, nothing])
            seen.append([type(size) is int, type(half) is float, type(on) is bool, on is True, on is not False])
            seen.append([flag is True, flag is False, flag is not None, nothing is None, type(name) is str])
            if (k := 3) > 2:
                seen.append([k, type(k) is int])
            with Held() as held:
                seen.append(held)
            tl.store(out_ptr + tl.arange(0, size)[:, None], x, mask=(tl.arange(0, size) < 4)[:, None])
            x = tl.sum(x, axis=1, keep_dims=on)
            seen.append([list(x.shape), [i + 1 for i in (size, times)], f"{size} {on}", [0] * size, "abcdefghij"[size]])

        kernel[(1,)](out, True, BLOCK=4)
    assert out.tolist() == [1.0] * 8
    assert seen[0] == ["eight", "yes", [0, 1], [8, 8], "x", None]
    assert seen[1] == [True] * 5
    assert seen[2] == [True, False, True, True, True]
    assert seen[3:5] == [[3, True], 5]
    assert seen[5] == [[8, 1], [9, 3], "8 True", [0] * 8, "i"]


def test_kernels_of_our_own_stay_python() -> None:
    """Where no jit is written nothing is typed."""
    seen: list[Any] = []

    def kernel(n: Any, tl: Any) -> None:
        half, large = -7, 2000000000
        seen.append([type(half), large + large, half // 2, type(n)])

    def bench(rt: Any) -> None:
        rt.launch(kernel, 3)

    kb.run(bench, "tiny")
    assert seen[0] == [int, 4000000000, -4, int]


ARGUMENTS = [
    (3, "int32"), (-(2**31), "int32"), (2**31, "int64"), (2**32 - 1, "int64"), (-(2**31) - 1, "int64"),
    (2**63 - 1, "int64"), (2**63, "uint64"), (2**64 - 1, "uint64"), (True, "bool"), (1.5, "f32"),
    (np.float64(1e300), "f32"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "dtype"), ARGUMENTS)
def test_arguments_are_typed_as_compiled_triton_types_them(given: Any, dtype: str) -> None:
    seen: list[Any] = []
    with kb.triton("tiny"):
        import triton

        @triton.jit
        def kernel(n: Any) -> None:
            seen.append([n.dtype, n + n, -n])

        kernel[(1,)](given)
    assert seen[0][0] == dtype
    if dtype == "int64" and given < 2**62:
        assert seen[0][1:] == [2 * given, -given]


def test_annotations_of_arguments_are_kept() -> None:
    """By the dtype or its texts, as Triton has them; a bool meets a literal as int32."""
    seen: list[Any] = []
    x, out = np.full(4, 100, np.int8), np.zeros(4, np.int32)
    with kb.triton("tiny"):
        import triton
        import triton.language as tl

        def kernel(x_ptr: Any, out_ptr: Any, a: tl.int64, b: tl.float64, c: Any, d: Any, e: Any, f: Any, u: Any):
            seen.append([each.dtype for each in (a, b, c, d, e, f, u)])
            seen.append([a, b, c, d, e, f])
            at = tl.arange(0, 4)
            tl.store(out_ptr + at, tl.load(x_ptr + at) * (u + 1))

        kernel.__annotations__ |= {"c": "fp64", "d": "i64", "e": "u1", "f": "'tl.uint8'"}
        triton.jit(kernel)[(1,)](x, out, 3, 0.1, 0.1, 4, 1, 200, True)
    assert seen[0] == ["int64", "f64", "f64", "int64", "bool", "uint8", "bool"]
    assert seen[1] == [3, 0.1, 0.1, 4, 1, 200]
    assert out.tolist() == [200] * 4


@pytest.mark.parametrize("divide", [lambda a: a // 2, lambda a: 2.5 // a, lambda a: a // a])
def test_floats_are_not_divided_by_the_operator_of_integers(divide: Any) -> None:
    """Triton has no `//` of floats, of scalars as little as of tiles; their remainder it has."""
    seen: list[Any] = []
    with kb.triton("tiny"):
        import triton

        @triton.jit
        def kernel(share: Any) -> None:
            half = 0.75
            seen.append([half % 0.5, -7.5 // 2])
            with pytest.raises(ShapeError) as told:
                divide(share)
            seen.append(str(told.value))

        kernel[(1,)](0.75)
    assert seen[0] == [0.25, -4.0]
    assert seen[1] == "`//` must have integer operands, not floats; use tl.floor(a / b), or cast them first."


def test_functions_of_several_operands_make_scalars_of_numbers_first() -> None:
    """So `maximum` and its like widen narrow tiles beside a number, where an operator would not; bf16 is f32."""
    halves, bytes_ = np.full(4, 60000, np.float16), np.full(4, 100, np.int8)
    out, whole, seen = np.zeros((6, 4), np.float32), np.zeros(4, np.int32), []
    with kb.triton("tiny"):
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(h_ptr: Any, b_ptr: Any, out_ptr: Any, whole_ptr: Any) -> None:
            at = tl.arange(0, 4)
            a, c = tl.load(h_ptr + at), tl.load(b_ptr + at)
            first = tl.maximum(a, 0.0), tl.minimum(65000.0, a), tl.clamp(a, 0.0, 65000.0)
            wide = (*first, max(a, 1.0), tl.fma(a, 1.0, 0.0))
            for row in tl.static_range(5):
                tl.store(out_ptr + row * 4 + at, wide[row] * 2)
            tl.store(out_ptr + 20 + at, tl.fdiv(a, 0.5))
            tl.store(whole_ptr + at, tl.maximum(c, 3) * 3)
            narrow = a.to(tl.bfloat16)
            seen.append([tl.maximum(narrow, narrow).dtype, tl.minimum(a, a).dtype, tl.maximum(a, -2).dtype])
            seen.append([tl.maximum(1, 2).dtype, tl.minimum(1, 2.5).dtype, (a + 1.0).dtype])

        kernel[(1,)](halves, bytes_, out, whole)
    assert out.tolist() == [[120000.0] * 4] * 6
    assert whole.tolist() == [300] * 4
    assert seen == [["f32", "f16", "f16"], ["int32", "f32", "f16"]]


@pytest.mark.parametrize("name", ["sqrt", "exp", "log", "sin", "abs", "floor", "rsqrt"])
def test_functions_of_wide_scalars_are_wide(name: str) -> None:
    """As numpy computes them in f64, not in f32."""
    seen: list[Any] = []
    with kb.triton("tiny"):
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(x: tl.float64) -> None:
            seen.append(getattr(tl, name)(x))

        kernel[(1,)](8.1)
    wanted = 1 / np.sqrt(8.1) if name == "rsqrt" else getattr(np, name)(np.float64(8.1))
    assert seen[0].dtype == "f64"
    assert abs(seen[0] - wanted) <= 1e-14 * abs(wanted)


def test_a_function_without_a_file_is_told_of() -> None:
    """It is Python's, as in Triton's interpreter: nobody can read what it names."""
    made: dict[str, Any] = {}
    with kb.triton("tiny") as sim:
        import triton

        exec("def kernel(x_ptr):\n    n = 1\n    seen.append(type(n))", made | {"seen": (seen := [])}, made)
        triton.jit(made["kernel"])[(1,)](np.zeros(1, np.float32))
    assert seen == [int]
    assert sim.notes == [
        "the source of 'kernel' is not to be had, as of a function that was made of a text: numbers that it names stay "
        "Python's, and are not typed; put it into a file."
    ]


def test_a_lambda_is_told_of() -> None:
    """Its source is there, but it is no statement that could be compiled anew."""
    seen: list[Any] = []
    with kb.triton("tiny") as sim:
        import triton

        triton.jit(lambda x_ptr: seen.append(type(n := 1)))[(1,)](np.zeros(1, np.float32))  # noqa: F841
    assert seen == [int]
    assert sim.notes == [
        "a kernel that is a lambda is not read as Triton reads functions: numbers that it names stay Python's, and are "
        "not typed; write it with def."
    ]


def test_numbers_of_loops_have_the_dtype_that_their_bounds_meet_in() -> None:
    out, seen = np.zeros(6, np.int64), []
    with kb.triton("tiny"):
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(out_ptr: Any, N: tl.constexpr) -> None:  # noqa: N803
            for i in range(3000000000, 3000000001):
                tl.store(out_ptr, i)
                seen.append(i.dtype)
            for i in range(N, N + 1):
                tl.store(out_ptr + 1, i)
                seen.append(i.dtype)
            for i in tl.range(0, 2**40, 2**39):
                tl.store(out_ptr + 2, i)
            m = 2**31
            for i in range(m, m + 1):
                tl.store(out_ptr + 3, i)

        kernel[(1,)](out, 2**35)
    assert out.tolist() == [3000000000, 2**35, 2**39, 2**31, 0, 0]
    assert seen == ["uint32", "int64"]


def test_scalars_that_are_no_numbers_are_passed_over_and_cast() -> None:
    """As of tiles: NaN of either place, infinities in integers and remainders."""
    seen: list[Any] = []
    with kb.triton("tiny"):
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(n: Any, m: Any) -> None:
            large = float("inf")
            seen.append([tl.minimum(n, m), tl.minimum(m, n), tl.maximum(n, -1.0), tl.clamp(n, 0.0, 1.0)])
            seen.append([large.to(tl.int32).dtype, n.to(tl.int32).dtype, large % 2.0 != large % 2.0])

        kernel[(1,)](float("nan"), 1.0)
    assert seen[0] == [1.0, 1.0, -1.0, 0.0]
    assert seen[1] == ["int32", "int32", True]


def test_a_float_that_goes_to_memory_is_f32_first() -> None:
    """In f64 it has what f32 has of it; what a tile is made of is as wide as the tile."""
    out = np.zeros(5, np.float64)
    with kb.triton("tiny"):
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(out_ptr: Any) -> None:
            tl.store(out_ptr, 0.1)
            tl.store(out_ptr + 1, tl.load(out_ptr + 4, mask=tl.program_id(0) > 0, other=0.1))
            tl.store(out_ptr + 2, tl.cast(0.1, tl.float64))
            tl.store(out_ptr + 3 + tl.arange(0, 2), tl.full((2,), 0.1, tl.float64))

        kernel[(1,)](out)
    assert out.tolist() == [float(np.float32(0.1))] * 3 + [0.1] * 2


@pytest.mark.parametrize(("annotation", "given"), [("i32", 3.7), ("i32", 2**40), ("u8", 300), ("u8", -1)])
def test_an_argument_that_its_annotation_does_not_hold_is_refused(annotation: str, given: Any) -> None:
    with kb.triton("tiny"):
        import triton

        def kernel(n: Any) -> None:
            pass

        kernel.__annotations__["n"] = annotation
        with pytest.raises(kb.KernbenchError) as caught:
            triton.jit(kernel)[(1,)](given)
    dtype = {"i32": "int32", "u8": "uint8"}[annotation]
    wanted = f"an argument annotated as {dtype} must be one that it holds, not {given}; cast it."
    assert wanted in str(caught.value)


def test_classes_texts_and_lists_in_a_jit_function() -> None:
    seen: list[Any] = []
    with kb.triton("tiny"):
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(N: tl.constexpr, M: tl.constexpr) -> None:  # noqa: N803
            class Held:
                value = -7
                more = value < 0 and N > 0

            v = tl.zeros((4, 2), tl.float16)
            seen.append([Held.value, Held.more, [4, 2] == v.shape, [4, 2] != v.shape])  # noqa: SIM300
            seen.append([f"{v.dtype} {tl.int1} {N:03d}", type(N) is int, type(M) is str])

        kernel[(1,)](5, "text")
    assert seen == [[-7, True, True, False], ["fp16 int1 005", True, True]]
