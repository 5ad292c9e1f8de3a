"""Words that files in Triton use beside the most common: methods, lists of extents, types, modules, refusals."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest

import kernbench as kb
from kernbench_core.errors import KernbenchError, UnsupportedError

# mypy: disable-error-code="import-not-found"


def test_shapes_are_compared_with_lists_and_given_one_by_one() -> None:
    seen: list[Any] = []
    out = np.zeros((2, 8), np.float32)
    with kb.triton("tiny"):
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(out_ptr: Any, N: tl.constexpr) -> None:  # noqa: N803
            at = tl.arange(0, N)
            x = tl.load(out_ptr + at)
            tl.static_assert(x.shape == [N])
            tl.static_assert(x.shape != [N, 1])
            seen.append([x.shape == [8], x.shape == (8,), [1, 2] == [1, 2], x.view(2, 4).shape == [2, 4]])
            seen.append([x.view(2, 4).shape, x.view((4, 2)).shape, x.reshape(2, 4, can_reorder=True).shape])
            seen.append([tl.reshape(x, (8, 1), can_reorder=True).shape, at.reshape(2, 4, can_reorder=True).shape])
            seen.append([at[None, :].broadcast_to(2, 8).shape, x[None, :].broadcast_to(2, 8).shape])
            tl.store(out_ptr + at.reshape(1, 8).broadcast_to(2, N), x[None, :].broadcast_to(2, 8) + 1.0)

        kernel[(1,)](out, 8)
    assert seen[0] == [True, True, True, True]
    assert seen[1] == [(2, 4), (4, 2), (2, 4)]
    assert seen[2] == [(8, 1), (2, 4)]
    assert seen[3] == [(2, 8), (2, 8)]


@pytest.mark.parametrize("descending", [True, False])
def test_topk_gives_the_greatest_or_the_least(descending: bool) -> None:
    x = np.random.default_rng(3).permutation(32).astype(np.int32)
    out = np.zeros(4, np.int32)
    with kb.triton("tiny"):
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(x_ptr: Any, out_ptr: Any, descending: tl.constexpr) -> None:
            found = tl.topk(tl.load(x_ptr + tl.arange(0, 32)), 4, descending=descending)
            tl.store(out_ptr + tl.arange(0, 4), found)

        kernel[(1,)](x, out, descending)
    assert out.tolist() == ([31, 30, 29, 28] if descending else [0, 1, 2, 3])


NAN = np.nan


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize(
    "row",
    [
        [NAN, 6, 8, 8], [3, 5, NAN, 5], [NAN, -np.inf, NAN, -np.inf], [NAN] * 4, [np.inf, NAN, np.inf, -0.0],
        [-0.0, 0.0, NAN, 0.0],
    ],
)  # fmt: skip
def test_extremes_leave_nan_out(row: list[float], dtype: Any) -> None:
    """Their places, too: of NaN alone the first one. numpy's, of what is left, says the same."""
    x, at, best = np.array(row, dtype), np.zeros(4, np.int32), np.zeros(4, np.float32)
    with kb.triton("tiny", verify_ops=True):
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(x_ptr: Any, at_ptr: Any, best_ptr: Any) -> None:
            x = tl.load(x_ptr + tl.arange(0, 4))
            tl.store(at_ptr, tl.argmax(x, axis=0))
            tl.store(at_ptr + 1, tl.argmin(x, axis=0))
            greatest, where = tl.max(x, axis=0, return_indices=True)
            tl.store(best_ptr, greatest)
            tl.store(at_ptr + 2, where)
            least, where = tl.min(x, axis=0, return_indices=True)
            tl.store(best_ptr + 1, least)
            tl.store(at_ptr + 3, where)

        kernel[(1,)](x, at, best)
    kept = [place for place in range(4) if row[place] == row[place]]
    first = max(kept, key=row.__getitem__, default=0), min(kept, key=row.__getitem__, default=0)
    assert at.tolist() == [*first, *first]
    np.testing.assert_array_equal(best[:2], np.array([row[each] for each in first], dtype).astype(np.float32))


def test_triton_is_there_for_who_looks_for_it(monkeypatch: Any) -> None:
    """As for torch, which remembers what it found, inside the `with` and not outside."""
    asked: list[str] = []

    def there() -> bool:
        return "triton" in sys.modules

    there.cache_clear = lambda: asked.append("again")  # type: ignore[attr-defined]
    torch_utils = ModuleType("torch.utils._triton")
    torch_utils.has_triton_package = there  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch.utils._triton", torch_utils)
    with kb.triton("tiny"):
        for name in ("triton", "triton.language", "triton.testing", "triton.tools.tensor_descriptor"):
            assert importlib.util.find_spec(name) is not None
        assert asked == ["again"]
    assert asked == ["again"] * 2
    assert "triton" not in sys.modules


def test_what_a_compiler_or_a_profiler_is_told_changes_nothing() -> None:
    out = np.zeros(1, np.float32)
    with kb.triton("tiny"):
        import triton
        import triton.language as tl
        import triton.profiler as proton
        from triton.knobs import runtime

        @triton.constexpr_function
        def twice(n: int) -> int:
            return 2 * n

        @triton.jit
        def kernel(out_ptr: Any, N: tl.constexpr) -> None:  # noqa: N803
            tl.store(out_ptr, tl.sum(tl.full((twice(N),), 1.0, tl.float32), axis=0))

        runtime.debug = True
        proton.start("name", hook="triton")
        with proton.scope("a part", {"flops": 3}):
            kernel[(1,)](out, 4, extern_libs=None, launch_pdl=True, debug=True, sanitize_overflow=False)
        proton.finalize()
        assert triton.knobs.compilation.instrumentation_mode is None
        assert runtime.debug
    assert out.tolist() == [8.0]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda triton: triton.compile(None),
            "triton.compile is a name of Triton's that kernbench refuses; launch the kernel.",
        ),
        (
            lambda triton: triton.aggregate(int),
            "triton.aggregate is a name of Triton's that kernbench refuses; pass the values of the class one by one, "
            "or as a tuple.",
        ),
        (
            lambda triton: triton.profiler.viewer.parse([], "f"),
            "triton.profiler.viewer is a name of Triton's that kernbench refuses; see `kernbench report`, or "
            "`kernbench run --json`.",
        ),
    ],
)  # fmt: skip
def test_what_is_refused_is_told(call: Callable[[Any], Any], sentence: str) -> None:
    with kb.triton("tiny"):
        import triton

        assert triton.TritonError is KernbenchError
        with pytest.raises(UnsupportedError) as caught:
            call(triton)
    assert str(caught.value) == sentence


def test_names_of_dtypes_short_and_long() -> None:
    with kb.triton("tiny"):
        import triton.language as tl
        from triton.runtime.jit import type_canonicalisation_dict

        assert tl.str_to_ty("*fp16", None) == tl.float16
        assert type_canonicalisation_dict["float8_e5m2"] == "fp8e5"
        assert tl.str_to_ty("float8_e5m2", None) == tl.float8e5


class Pair(NamedTuple):
    """Two arguments in one."""

    x: Any
    n: Any


def test_tuples_with_names_and_tuples_of_tuples_are_arguments() -> None:
    """Arrays in them are pointers, read and written; numbers are typed as any."""
    x, out, seen = np.arange(8, dtype=np.float32), np.zeros(4, np.float32), []
    with kb.triton("tiny"):
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(pair: Any, nested: Any, SHAPE: tl.constexpr) -> None:  # noqa: N803
            ((out_ptr, _), (first, (second, none))) = nested
            seen.append([type(pair).__name__, pair.n.dtype, pair[1] + 0, len(nested), first.dtype, second.dtype, none])
            made = tl.tuple((1, 2.5))
            seen.append([isinstance(made, tl.tuple), isinstance(first, tl.tuple), made[1].dtype])
            seen.append(tl.zeros(SHAPE, tl.int8).shape)
            tl.store(out_ptr + tl.arange(0, 4), tl.load(pair.x + pair.n + tl.arange(0, 4)))

        kernel[(1,)](Pair(x, 3), ((out, x), (1, (2.0, None))), (2, 4))
    assert out.tolist() == [3, 4, 5, 6]
    assert seen == [["Pair", "int32", 3, 2, "int32", "f32", None], [True, False, "f32"], (2, 4)]


def test_dtypes_are_printed_and_asked_as_in_triton(capsys: pytest.CaptureFixture[str]) -> None:
    """In jit functions and outside; kernbench's own language keeps its texts."""
    x, seen = np.zeros(8, np.float16), []
    with kb.triton("tiny"):
        import triton
        import triton.language as tl

        assert [str(tl.float32), f"{tl.int1}", str(tl.float8e4nv), tl.bfloat16] == ["fp32", "int1", "fp8e4nv", "bf16"]

        @triton.jit
        def kernel(x_ptr: Any) -> None:
            x = tl.load(x_ptr + tl.arange(0, 8))
            seen.append([str(x.dtype), str((x > 0).dtype), str(x_ptr.dtype), str(tl.int64), str(3)])
            seen.append([isinstance(x_ptr.dtype, tl.pointer_type), isinstance(x.dtype, tl.pointer_type)])
            seen.append([isinstance(tl.float32, tl.dtype), [tl.float16.fp_mantissa_width, x.dtype.fp_mantissa_width]])
            seen.append([each.fp_mantissa_width for each in (tl.bfloat16, tl.float32, tl.float64, tl.float8e5)])
            seen.append([n + 0 for n in tl.static_range(1, 8, step=3)])
            seen.append([n.value for n in tl.static_range(2)])
            seen.append(tl.random.uint_to_uniform_float(tl.randint(0, tl.arange(0, 4))).shape)
            seen.append([x_ptr[None].shape, x_ptr[None, None, :].shape])
            print(x.dtype, *[tl.int1.name], x_ptr.dtype, sep=", ")

        kernel[(1,)](x)
    assert capsys.readouterr().out == "fp16, int1, pointer<fp16>\n"
    assert seen[0] == ["fp16", "int1", "pointer<fp16>", "int64", "3"]
    assert seen[1:4] == [[True, False], [True, [10, 10]], [7, 23, 52, 2]]
    assert seen[4:] == [[1, 4, 7], [0, 1], (4,), [(1,), (1, 1)]]


@pytest.mark.parametrize(
    ("call", "dtype", "wanted"),
    [
        ("atomic_add", np.int8, "does not support int8, as atomic_add in Triton; use elements of 32 bits."),
        ("atomic_max", np.int16, "does not support int16, as atomic_max in Triton; use elements of 32 bits."),
        ("atomic_xchg", np.float16, "does not support fp16, as atomic_xchg in Triton; use elements of 32 bits."),
        ("atomic_cas", np.int8, "only supports elements of 16, 32 and 64 bits, not int8; use wider ones."),
    ],
)
def test_atomics_of_elements_that_triton_has_none_of_are_refused(call: str, dtype: Any, wanted: str) -> None:
    x = np.zeros(4, dtype)
    with kb.triton("tiny"):
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(x_ptr: Any) -> None:
            getattr(tl, call)(x_ptr, *([1, 1] if call == "atomic_cas" else [1]))

        with pytest.raises(KernbenchError) as caught:
            kernel[(1,)](x)
    line = kernel.fn.__code__.co_firstlineno + 2
    assert str(caught.value).splitlines()[0] == f"tl.{call} at {__file__}:{line} {wanted}"


def test_a_poll_waits_for_another_program_or_looks_once() -> None:
    flag, payload, out = np.zeros(1, np.int32), np.zeros(1, np.int32), np.zeros(2, np.int32)
    narrow = np.ones(1, np.int16)
    with kb.triton("tiny"):
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(flag_ptr: Any, payload_ptr: Any, out_ptr: Any, narrow_ptr: Any) -> None:
            if tl.program_id(0) == 0:
                tl.atomic_poll(flag_ptr, 1)
                tl.store(out_ptr, tl.load(payload_ptr))
                tl.store(out_ptr + 1, tl.atomic_poll(flag_ptr, 1) + tl.atomic_poll(narrow_ptr, 2, timeout_ns=0) * 4)
            else:
                tl.store(payload_ptr, 42)
                tl.atomic_xchg(flag_ptr, 1, sem="release")

        kernel[(2,)](flag, payload, out, narrow)
    assert out.tolist() == [42, 1]
    assert narrow.tolist() == [1]


def test_pointers_and_numbers_get_dimensions() -> None:
    x, out, seen = np.arange(8, dtype=np.float32), np.zeros(8, np.float32), []
    with kb.triton("tiny"):
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(x_ptr: Any, out_ptr: Any) -> None:
            at = tl.arange(0, 8)
            turned = tl.expand_dims(x_ptr + at, 0)
            seen.append([turned.shape, tl.expand_dims(x_ptr, (0, 1)).shape, tl.expand_dims(3, axis=-1).shape])
            seen.append([at.reshape(2, 4).permute(1, 0).shape, tl.float16.exponent_bias, tl.float8e4nv.exponent_bias])
            words = tl.full((8,), 2**63 + 5, tl.uint64)
            tl.store(out_ptr, tl.max(tl.random.uint_to_uniform_float(words), axis=0))
            seen.append(0.99 < float(tl.load(out_ptr)) < 1)
            tl.store(out_ptr + tl.expand_dims(at, 0), tl.load(turned))

        kernel[(1,)](x, out)
    assert seen == [[(1, 8), (1, 1), (1,)], [(4, 2), 15, 7], True]
    assert out.tolist() == x.tolist()


@pytest.mark.parametrize(
    ("call", "wanted"),
    [
        (
            lambda tl, at: tl.program_id(20),
            "tl.program_id at HERE: program_id axis must be 0, 1, or 2 but got 20; a grid has three.",
        ),
        (
            lambda tl, at: tl.expand_dims(at, (0, -3)),
            "tl.expand_dims at HERE must be given each axis once, not duplicate axes, normalized axes = [0, 0].",
        ),
    ],
)
def test_wrong_axes_are_told_in_words_of_triton_too(call: Callable[..., Any], wanted: str) -> None:
    with kb.triton("tiny"):
        import triton
        import triton.language as tl

        @triton.jit
        def kernel() -> None:
            call(tl, tl.arange(0, 4))

        with pytest.raises(KernbenchError) as caught:
            kernel[(1,)]()
    here = f"{__file__}:{call.__code__.co_firstlineno}"
    assert str(caught.value).splitlines()[0] == wanted.replace("HERE", here)


def test_a_dtype_that_no_unit_has_says_so_when_it_is_asked() -> None:
    with kb.triton("tiny"):
        import triton.language as tl

        with pytest.raises(UnsupportedError) as caught:
            print(tl.float8e4b15.fp_mantissa_width)
    assert str(caught.value) == (
        "tl.float8e4b15 is a dtype of Triton's that kernbench refuses: the units have float8e4nv and float8e5 only; "
        "use one of these."
    )
