"""Every op of the language equals numpy, with Triton's dtypes, and costs one command."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from kernbench_core.errors import ShapeError, UnsupportedError
from kernbench_core.kernel.pointers import Pointer
from tests.core.kernel_rig import Rig

RNG = np.random.default_rng(7)
F = RNG.uniform(0.5, 2, (6, 8)).astype(np.float32)
G = RNG.uniform(-2, 2, (6, 8)).astype(np.float32)
I = RNG.integers(-9, 9, (6, 8)).astype(np.int32)  # noqa: E741


def compute(body: Callable[..., Any], *arrays: Any) -> tuple[Any, Rig]:
    """Run an expression over loaded tiles, store what it gives, and read it back after phase 2."""
    box: list[Any] = []

    def kernel(pointers: Any, tl: Any) -> None:
        tiles = [tl.load(Pointer(p, 0, p.dtype), shape=p.shape) for p in pointers]
        made = body(*tiles, tl)
        out = rig.empty(made.shape, made.dtype)
        tl.store(Pointer(out, 0, out.dtype), made)
        box.append(out)

    rig = Rig()
    rig.run(kernel, [rig.tensor(array) for array in arrays])
    return rig.numpy(box[0]), rig


FLOAT = {
    "add": (lambda f, g, tl: f + g, F + G),
    "number": (lambda f, g, tl: 2 * f - 0.5 / f, 2 * F - np.float32(0.5) / F),
    "negative": (lambda f, g, tl: -abs(g), -abs(G)),
    "compare": (lambda f, g, tl: (f < g) | (g == g), np.ones_like(F, bool)),
    "invert": (lambda f, g, tl: ~(f < g), ~(F < G)),
    "where": (lambda f, g, tl: tl.where(g > 0, f, 0.0), np.where(G > 0, F, 0)),
    "extremes": (lambda f, g, tl: tl.maximum(f, tl.minimum(g, 1.0)), np.maximum(F, np.minimum(G, 1))),
    "clamp": (lambda f, g, tl: tl.clamp(g, -1.0, 1.0), np.clip(G, -1, 1)),
    "fma": (lambda f, g, tl: tl.fma(f, g, f), F * G + F),
    "sum": (lambda f, g, tl: tl.sum(f, axis=1), F.sum(1)),
    "kept": (lambda f, g, tl: f - tl.max(f, 1, keep_dims=True), F - F.max(1, keepdims=True)),
    "all": (lambda f, g, tl: tl.min(g), G.min()),
    "method": (lambda f, g, tl: f.sum(0) + f.max(0) + f.min(0), F.sum(0) + F.max(0) + F.min(0)),
    "arg": (lambda f, g, tl: tl.argmax(g, 1) + tl.argmin(g, 1), (G.argmax(1) + G.argmin(1)).astype(np.int32)),
    "scan": (lambda f, g, tl: tl.cumsum(f, 1), F.cumsum(1)),
    "backward scan": (lambda f, g, tl: tl.cumprod(f, 0, reverse=True), F[::-1].cumprod(0)[::-1]),
    "broadcast": (lambda f, g, tl: tl.broadcast_to(tl.sum(f, 0)[None, :], (3, 8)), np.tile(F.sum(0), (3, 1))),
    "trans": (lambda f, g, tl: f.T + tl.trans(g, 1, 0), F.T + G.T),
    "reshape": (lambda f, g, tl: tl.reshape(f, (-1, 4)) + g.reshape(12, 4), (F + G).reshape(12, 4)),
    "cat": (lambda f, g, tl: tl.cat(f, g, dim=1), np.concatenate((F, G), 1)),
    "zeros": (lambda f, g, tl: tl.zeros((6, 8), "f32") + tl.full((8,), 3.0, tl.float32) + tl.zeros_like(f), 0 * F + 3),
    "dot": (lambda f, g, tl: tl.dot(f, tl.trans(g)), F @ G.T),
    "accumulate": (lambda f, g, tl: tl.dot(f, g.T, tl.dot(f, f.T)), F @ F.T + F @ G.T),
    "softmax": (lambda f, g, tl: tl.softmax(g, 1), np.exp(G) / np.exp(G).sum(1, keepdims=True)),
    "index operand": (lambda f, g, tl: f + tl.arange(0, 8)[None, :], F + np.arange(8, dtype=np.float32)),
}


@pytest.mark.parametrize("name", FLOAT)
def test_float_ops_equal_numpy(name: str) -> None:
    """Elementwise, reductions, scans, moves and products."""
    body, want = FLOAT[name]
    got, rig = compute(body, F, G)
    assert got.dtype == np.asarray(want).dtype
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-5)
    assert rig.ops()[:2] == ["dma_read", "dma_read"]


@pytest.mark.parametrize("op", ["exp", "exp2", "log", "log2", "sqrt", "sin", "cos", "tanh", "floor", "ceil", "abs"])
def test_unary_ops_equal_numpy(op: str) -> None:
    """On tiles, free of charge on numbers, and on index tensors by a command for each op on floats."""
    got, _ = compute(lambda f, tl: getattr(tl, op)(f), F)
    np.testing.assert_allclose(got, getattr(np, op)(F), rtol=1e-5, atol=1e-6)
    got, rig = compute(lambda f, tl: f * getattr(tl, op)(2.0) + getattr(tl, op)((tl.arange(0, 8) + 1) / 2)[None, :], F)
    want = F * getattr(np, op)(2.0) + getattr(np, op)((np.arange(8) + 1) / 2)
    np.testing.assert_allclose(got, want.astype(np.float32), rtol=1e-5)
    assert rig.ops() == ["dma_read", "mul", "div", op, "add", "dma_write"]


OF_INDICES = {
    "addresses": (lambda f, tl: f + ((tl.arange(0, 8) * 3 + 1) % 5 // 2)[None, :], []),
    "one element": (lambda f, tl: f + (tl.arange(0, 1) * 0.5)[None, :], []),
    "a cast": (lambda f, tl: f + tl.arange(0, 8).to(tl.float32)[None, :], ["cast"]),
    "a mask": (lambda f, tl: tl.where((tl.arange(0, 8) * 0.5 < 2.0)[None, :], f, 0.0), ["mul", "lt"]),
    "a choice": (lambda f, tl: f + tl.where(tl.arange(0, 8) < 4, 0.5, 0.0)[None, :], ["where"]),
    "a sum": (lambda f, tl: f + tl.sum(tl.exp(tl.arange(0, 8).to(tl.float32)), axis=0), ["cast", "exp", "copy"]),
    "back": (lambda f, tl: f + tl.floor(tl.arange(0, 8) / 3).to(tl.int32)[None, :], ["div", "floor", "cast"]),
}


@pytest.mark.parametrize("name", OF_INDICES)
def test_floats_of_indices_are_computed_by_a_unit(name: str) -> None:
    """Each op on them takes a command, and is known at once all the same; integers are addresses, and free."""
    body, commands = OF_INDICES[name]
    _, rig = compute(body, F)
    assert rig.ops() == ["dma_read", *commands, "where" if name == "a mask" else "add", "dma_write"]


def test_floats_of_indices_lead_to_addresses() -> None:
    """As of an image that is scaled: nothing waits for phase 2."""

    def body(f: Any, tl: Any) -> Any:
        at = tl.floor(tl.arange(0, 8) * 0.5).to(tl.int32)
        assert at.numpy().tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
        return f + at[None, :]

    got, _ = compute(body, F)
    np.testing.assert_allclose(got, F + np.arange(8) // 2, rtol=1e-6)


INTEGER = {
    "division": (lambda i, tl: i // 4, np.trunc(I / 4)),
    "remainder": (lambda i, tl: i % 4, np.fmod(I, 4)),
    "bits": (lambda i, tl: ((i & 6) ^ 3 | 8) << 2 >> 1, ((I & 6) ^ 3 | 8) << 2 >> 1),
    "sum": (lambda i, tl: tl.sum(i), I.sum()),
    "choice": (lambda i, tl: tl.where(i > 0, i, -i), abs(I)),
}


@pytest.mark.parametrize("name", INTEGER)
def test_integer_ops_equal_numpy(name: str) -> None:
    """Integers stay integers, are cut towards zero like Triton's, and are known at once."""
    body, want = INTEGER[name]
    got, _ = compute(body, I)
    assert got.dtype == np.int32
    np.testing.assert_array_equal(got, want)


def test_dtypes_meet_as_in_triton() -> None:
    """Numbers are weak; f16 with bf16 gives f16, integer division f32; int8 sums and products give int32."""
    half, brain, byte = F.astype(np.float16), F.astype(ml_dtypes.bfloat16), I.astype(np.int8)
    cases: list[tuple[Callable[..., Any], str]] = [
        (lambda h, b, i, y, tl: h * 2.5, "f16"),
        (lambda h, b, i, y, tl: h + b, "f16"),
        (lambda h, b, i, y, tl: i / 2, "f32"),
        (lambda h, b, i, y, tl: i + h, "f16"),
        (lambda h, b, i, y, tl: i * 0.5, "f32"),
        (lambda h, b, i, y, tl: tl.sum(y, 1), "int32"),
        (lambda h, b, i, y, tl: tl.dot(y, tl.trans(y)), "int32"),
        (lambda h, b, i, y, tl: tl.dot(h, h.T), "f32"),
        (lambda h, b, i, y, tl: tl.dot(h, h.T, out_dtype=tl.float16), "f16"),
        (lambda h, b, i, y, tl: h.to(tl.bfloat16), "bf16"),
        (lambda h, b, i, y, tl: tl.cast(h, "fp32"), "f32"),
        (lambda h, b, i, y, tl: h.to(np.int32), "int32"),
        (lambda h, b, i, y, tl: i > h, "bool"),
    ]
    found: list[str] = []

    def kernel(pointers: Any, tl: Any) -> None:
        tiles = [tl.load(Pointer(p, 0, p.dtype), shape=p.shape) for p in pointers]
        found.extend(case(*tiles, tl).dtype for case, _ in cases)

    rig = Rig()
    rig.run(kernel, [rig.tensor(array) for array in (half, brain, I, byte)])
    assert found == [dtype for _, dtype in cases]


REFUSED: dict[str, tuple[Callable[..., Any], type[Exception], str]] = {
    "broadcast": (
        lambda f, tl: f + f.T,
        ShapeError,
        "tl.add at LINE must have operands that broadcast, not (6, 8) and (8, 6); reshape one of them.",
    ),
    "dot": (
        lambda f, tl: tl.dot(f, f),
        ShapeError,
        "tl.dot at LINE must be given shapes (m, k) and (k, n), not (6, 8) and (6, 8); 8 and 6 must be equal.",
    ),
    "dot dtypes": (
        lambda f, tl: tl.dot(f, f.T.to(tl.float16)),
        ShapeError,
        "tl.dot at LINE must be given operands of one dtype, not f32 and f16; cast one with .to.",
    ),
    "accumulator": (
        lambda f, tl: tl.dot(f, f.T, f),
        ShapeError,
        "tl.dot at LINE must be given an accumulator of shape (6, 6) and of f8e4m3 or f8e5m2 or f16 or bf16 or f32, "
        "not (6, 8) of f32; make it so.",
    ),
    "accumulator of floats": (
        lambda f, tl: tl.dot(f, f.T, tl.zeros((6, 6), "int32")),
        ShapeError,
        "tl.dot at LINE must be given an accumulator of shape (6, 6) and of f8e4m3 or f8e5m2 or f16 or bf16 or f32, "
        "not (6, 6) of int32; make it so.",
    ),
    "accumulator of integers": (
        lambda f, tl: tl.dot(f.to("int8"), f.T.to("int8"), tl.zeros((6, 6), "uint64")),
        ShapeError,
        "tl.dot at LINE must be given an accumulator of shape (6, 6) and of int32, not (6, 6) of uint64; make it so.",
    ),
    "batch": (
        lambda f, tl: tl.dot(f[None], f),
        UnsupportedError,
        "tl.dot at LINE must be given two matrices, not shapes (1, 6, 8) and (6, 8); loop over the batch.",
    ),
    "dot of numbers": (
        lambda f, tl: tl.dot(f, 2.0),
        ShapeError,
        "tl.dot at LINE must be given tensors in the scratchpad, not 2.0; load or make them.",
    ),
    "reshape": (
        lambda f, tl: f.reshape(5, 5),
        ShapeError,
        "tl.reshape at LINE must keep the 48 elements of shape (6, 8), and (5, 5) holds 25; choose a shape of the same "
        "size.",
    ),
    "axis": (
        lambda f, tl: tl.sum(f, 2),
        ShapeError,
        "tl.sum at LINE must have an axis of shape (6, 8), not the invalid axis 2; use one from -2 to 1.",
    ),
    "axis of a fraction": (
        lambda f, tl: tl.max(f, 1.0),
        ShapeError,
        "tl.max at LINE must have an axis of shape (6, 8), not 1.0; use one from -2 to 1, or tl.maximum of two "
        "operands.",
    ),
    "axis of a tensor": (
        lambda f, tl: tl.min(f, f),
        ShapeError,
        "tl.min at LINE must have an axis of shape (6, 8), not a tensor of shape (6, 8); use one from -2 to 1, or "
        "tl.minimum of two operands.",
    ),
    "axes": (
        lambda f, tl: tl.sum(f, (0, 1)),
        ShapeError,
        "tl.sum at LINE must have an axis of shape (6, 8), not (0, 1); use one from -2 to 1.",
    ),
    "axis by name": (
        lambda f, tl: tl.cumsum(f, "x"),
        ShapeError,
        "tl.cumsum at LINE must have an axis of shape (6, 8), not 'x'; use one from -2 to 1.",
    ),
    "reshape of a number": (
        lambda f, tl: tl.reshape(3, (1,)),
        ShapeError,
        "tl.reshape at LINE must be given a tensor, not the number 3; make one with tl.full.",
    ),
    "expand_dims of a number": (
        lambda f, tl: tl.expand_dims(2.5, 0),
        ShapeError,
        "tl.reshape at LINE must be given a tensor, not the number 2.5; make one with tl.full.",
    ),
    "trans of a number": (
        lambda f, tl: tl.trans(3),
        ShapeError,
        "tl.trans at LINE must be given a tensor, not the number 3; make one with tl.full.",
    ),
    "cat of a number": (
        lambda f, tl: tl.cat(3, tl.arange(0, 2)),
        ShapeError,
        "tl.cat at LINE must be given a tensor, not the number 3; make one with tl.full.",
    ),
    "zeros_like of a number": (
        lambda f, tl: tl.zeros_like(3),
        ShapeError,
        "tl.zeros_like at LINE must be given a tensor, not the number 3; make one with tl.full.",
    ),
    "trans of a vector": (
        lambda f, tl: tl.trans(f.reshape(48)),
        ShapeError,
        "tl.trans at LINE must be given an order of the dimensions of shape (48,), as there are no two to swap; use "
        "tl.reshape for a column.",
    ),
    "reshape of a text": (
        lambda f, tl: tl.reshape("x", (1,)),
        ShapeError,
        "tl.reshape at LINE must be given tensors and numbers, not str 'x'; load it, or make it with tl.arange or "
        "tl.full.",
    ),
    "order": (
        lambda f, tl: tl.trans(f, 0, 0),
        ShapeError,
        "tl.trans at LINE must be given an order of the 2 dimensions of shape (6, 8), not (0, 0); name each once.",
    ),
    "broadcast_to": (
        lambda f, tl: tl.broadcast_to(f, (1, 8)),
        ShapeError,
        "tl.broadcast_to at LINE must be given a shape that (6, 8) broadcasts to, not (1, 8); correct it.",
    ),
    "cat": (
        lambda f, tl: tl.cat(f, f.T),
        ShapeError,
        "tl.cat at LINE must be given shapes that differ along dimension 0 only, not (6, 8) and (8, 6); reshape one of "
        "them.",
    ),
    "float bits": (
        lambda f, tl: f & f,
        ShapeError,
        "tl.and at LINE: and must have integer or bool operands, not invalid operands of type f32; cast it first.",
    ),
    "dtype": (
        lambda f, tl: f.to("float128"),
        UnsupportedError,
        "a dtype must be one of bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, f8e4m3, f8e5m2, "
        "f16, bf16, f32, f64, not 'float128'; use one of these.",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_fit_is_refused(case: str) -> None:
    """Both shapes or dtypes, and the kernel line."""
    body, kind, text = REFUSED[case]
    with pytest.raises(kind) as caught:
        compute(body, F)
    said = str(caught.value).partition("\n")[0]
    assert said.replace(f"{__file__}:{body.__code__.co_firstlineno}", "LINE") == text


def test_minus_zero_is_kept_apart_from_zero() -> None:
    """Numbers that are equal and not the same are different operands."""
    found, _ = compute(lambda f, tl: tl.cat(1.0 / (f * 0.0), 1.0 / (f * -0.0)), np.ones((2, 2), np.float32))
    np.testing.assert_array_equal(found, np.repeat(np.array([np.inf, -np.inf], np.float32), 2)[:, None].repeat(2, 1))


def test_numbers_that_are_nan_are_passed_over_as_in_tiles() -> None:
    """In either place, unless NaN is to be propagated."""
    seen: list[Any] = []

    def kernel(tl: Any) -> None:
        nan = float("nan")
        seen.extend((tl.maximum(nan, -1.0), tl.maximum(-1.0, nan), tl.minimum(nan, 2), tl.minimum(3, 2)))
        seen.append(tl.clamp(nan, 0.0, 1.0))
        every = tl.PropagateNan.ALL
        seen.extend((tl.maximum(nan, 1.0, every), tl.minimum(1.0, nan, every)))

    Rig().run(kernel)
    assert seen[:5] == [-1.0, -1.0, 2, 2, 0.0]
    assert np.isnan(seen[5:]).all()
