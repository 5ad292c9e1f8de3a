"""The names of `tl.math` and `libdevice`, each held against numpy, or Python's `math`, in f64."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import kernbench as kb
from kernbench_builtin.triton.language.libdevice import SPELLINGS
from kernbench_core.compute.ops import OPS

# mypy: disable-error-code="import-not-found"

X = np.array([0.25, 0.5, 0.75, 0.9, 0.1, 0.33, 0.6, 0.99], np.float32)
WIDE = np.array([-2.5, -0.5, 0.5, 1.5, 2.5, -1.2, 0.49999997, 7.0], np.float32)
STRANGE = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1.0, -1.0, 3e38], np.float32)
EXPECTED: dict[str, tuple[np.ndarray, Any]] = {
    **{name: (X, getattr(np, f"arc{name[1:]}")) for name in ("asin", "acos", "atan", "asinh", "atanh")},
    **{name: (X, getattr(np, name)) for name in ("tan", "sinh", "cosh", "expm1", "log10", "log1p", "cbrt")},
    "acosh": (X + 1, np.arccosh),
    "exp10": (X, lambda x: 10**x),
    "erfc": (X, np.vectorize(math.erfc)),
    "lgamma": (X, np.vectorize(math.lgamma)),
    "tgamma": (X, np.vectorize(math.gamma)),
    "rcp": (X, lambda x: 1 / x),
    "rint": (WIDE, lambda x: [-2, 0, 0, 2, 2, -1, 0, 7]),
    "round": (WIDE, lambda x: [-3, -1, 1, 2, 3, -1, 0, 7]),
    "trunc": (WIDE, lambda x: [-2, 0, 0, 1, 2, -1, 0, 7]),
    "llrint": (WIDE, lambda x: [-2, 0, 0, 2, 2, -1, 0, 7]),
    "llround": (WIDE, lambda x: [-3, -1, 1, 2, 3, -1, 0, 7]),
    "isnan": (STRANGE, lambda x: [1, 0, 0, 0, 0, 0, 0, 0]),
    "isinf": (STRANGE, lambda x: [0, 1, 1, 0, 0, 0, 0, 0]),
    "isfinite": (STRANGE, lambda x: [0, 0, 0, 1, 1, 1, 1, 1]),
    "signbit": (STRANGE[1:], lambda x: [0, 1, 1, 0, 0, 1, 0]),
    **{name: (X, getattr(np, name)) for name in ("exp", "log", "log2", "sin", "cos", "tanh", "sqrt")},
    "rsqrt": (X, lambda x: x**-0.5),
    "abs": (WIDE, np.abs),
    "pow": (X, lambda x: x ** (x + 1)),
    "atan2": (X, lambda x: np.arctan2(x, x + 1)),
    "copysign": (WIDE, lambda x: [-2.5, 0.5, 0.5, 1.5, 2.5, -1.2, 0.49999997, 7.0]),
    "fdim": (WIDE, lambda x: 0 * x),
    "mod": (np.array([-3.25, -7.5, -1.75, 2], np.float32), lambda x: [-1, -1, -0.25, 2]),
    "add": (X, lambda x: 2 * x + 1),
    "sub": (X, lambda x: 0 * x - 1),
    "mul": (X, lambda x: x * (x + 1)),
    "div": (X, lambda x: x / (x + 1)),
}
"""By op: an operand, and what numpy gives of it in f64; ops of two get the operand and one more than it."""


def values(names: list[str], inputs: np.ndarray) -> np.ndarray:
    """Give a row for each name: what it gives of a row of operands, as f32; every op is checked a second way."""
    out = np.full(inputs.shape, np.nan, np.float32)
    with kb.triton("tiny", verify_ops=True) as sim:
        import triton
        import triton.language as tl
        from triton.language.extra.cuda import libdevice

        modules = (tl.math, tl.extra.libdevice, libdevice)

        @triton.jit
        def each(x_ptr: Any, out_ptr: Any, n: tl.constexpr, names: tl.constexpr, two: tl.constexpr) -> None:
            at = tl.arange(0, n)
            for number, name in enumerate(names):
                x = tl.load(x_ptr + number * n + at)
                function = getattr(modules[number % 3], name)
                found = function(x, x + 1.0) if name in two else function(x)
                tl.store(out_ptr + number * n + at, found.to(tl.float32))

        two = frozenset(name for name in names if OPS[SPELLINGS.get(name, name)].arity == 2)
        each[(1,)](inputs, out, inputs.shape[1], tuple(names), two)
    assert sim.result is not None
    return out


def test_every_name_gives_what_numpy_gives() -> None:
    """Under each of its modules in turn; those of integers are in the tests of ops."""
    names = sorted(name for name, op in SPELLINGS.items() if op != "umulhi")
    rows = [EXPECTED[SPELLINGS[name]] for name in names]
    inputs = np.stack([np.resize(x, 8) for x, _ in rows]).astype(np.float32)
    found = values(names, inputs)
    for name, got, given, (_, expected) in zip(names, found, inputs, rows, strict=True):
        want = np.resize(np.asarray(expected(given.astype(np.float64)), np.float64), 8)
        np.testing.assert_allclose(got, want, rtol=3e-6, atol=3e-7, err_msg=name)


def test_half_floats_are_computed_in_f32_and_numbers_become_scalars() -> None:
    """A f16 tile stays f16; a number gives a typed scalar with `.to`."""
    x, out = np.array([0.3, 1.7], np.float16), np.zeros(4, np.float32)
    with kb.triton("tiny"):
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(x_ptr: Any, out_ptr: Any, scale: Any) -> None:
            found = tl.math.log1p(tl.load(x_ptr + tl.arange(0, 2)))
            assert found.dtype == tl.float16
            assert found.dtype.is_fp16()
            tl.store(out_ptr + tl.arange(0, 2), found)
            tl.store(out_ptr + 2, tl.math.pow(scale, 2.0).to(tl.float32))
            tl.store(out_ptr + 3, tl.math.hypot(tl.load(out_ptr + 2) + 0.75, 4.0))

        kernel[(1,)](x, out, 1.5)
    assert out[:2].tolist() == np.log1p(x.astype(np.float32)).astype(np.float16).astype(np.float32).tolist()
    assert out[2] == 2.25
    assert out[3] == 5


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("div_rz", "the units round to nearest; use div_rn"),
        ("j0", "the vector unit has no such op; compute it with tl's ops, or register a math op in a plug-in"),
    ],
)
def test_what_no_op_stands_for_is_refused(name: str, told: str) -> None:
    """With the line that calls it."""
    with kb.triton("tiny"):
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(x_ptr: Any) -> None:
            getattr(tl.math, name)(tl.load(x_ptr))

        with pytest.raises(kb.KernbenchError) as error:
            kernel[(1,)](np.ones(1, np.float32))
        line = kernel.fn.__code__.co_firstlineno + 2
    assert str(error.value).startswith(
        f"tl.math.{name} at {__file__}:{line} is a name of Triton's that kernbench refuses: {told}."
    )


def test_extremes_of_two_operands() -> None:
    """Where `max` and `min` are names of `math` or of libdevice; in `tl` itself they are reductions."""
    x, out = WIDE, np.zeros((2, 8), np.float32)
    with kb.triton("tiny"):
        import triton
        import triton.language as tl
        from triton.language.extra import libdevice

        @triton.jit
        def kernel(x_ptr: Any, out_ptr: Any) -> None:
            at = tl.arange(0, 8)
            x = tl.load(x_ptr + at)
            tl.store(out_ptr + at, tl.math.max(x, 1.0) + tl.max(x))
            tl.store(out_ptr + 8 + at, libdevice.min(-x, x))

        kernel[(1,)](x, out)
    np.testing.assert_array_equal(out, [np.maximum(x, 1) + x.max(), -np.abs(x)])


def test_bits_are_kept_where_that_is_asked_for() -> None:
    """From floats and back, of tiles and of scalars."""
    x, out = WIDE, np.zeros((3, 8), np.int32)
    with kb.triton("tiny"):
        import triton
        import triton.language as tl
        from triton.language.extra import libdevice

        @triton.jit
        def kernel(x_ptr: Any, out_ptr: Any, one: Any) -> None:
            at = tl.arange(0, 8)
            bits = libdevice.float_as_int(tl.load(x_ptr + at))
            tl.store(out_ptr + at, bits)
            tl.store(out_ptr + 8 + at, libdevice.int_as_float(bits) * 2)
            assert libdevice.float_as_uint(one).dtype == tl.uint32
            again = libdevice.uint_as_float(libdevice.float_as_uint(one))
            tl.store(out_ptr + 16 + at, at * 0 + libdevice.float_as_uint(again))

        kernel[(1,)](x, out, 1.0)
    np.testing.assert_array_equal(out, [x.view(np.int32), (x * 2).astype(np.int32), [0x3F800000] * 8])
