"""Every name that the table calls the same, or different in a stated way, does what numpy says."""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import redirect_stdout
from math import erf
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from kernbench_core.errors import KernelError
from kernbench_core.kernel.tl.language import DIFFERS, SAME
from kernbench_core.kernel.tl.tensor import METHODS
from kernbench_core.values.dtypes import TRITON
from tests.core.kernel.tl.bodies import F, G, I, N, P, U, run
from tests.core.kernel_rig import Rig

FLOAT8 = {"float8e4nv": ml_dtypes.float8_e4m3fn, "float8e5": ml_dtypes.float8_e5m2, "bfloat16": ml_dtypes.bfloat16}


def f32(array: Any) -> Any:
    """Give an array of any floats in f32, and any other as it is."""
    return np.asarray(array) if np.asarray(array).dtype.kind in "iub" else np.asarray(array).astype(np.float32)


Case = tuple[Callable[..., Any], tuple[Any, ...], Any]
softmax = np.exp(G) / np.exp(G).sum(0)
CASES: dict[str, Case] = {
    "where": (lambda tl, f, g: tl.where(g > 0, f, g), (F, G), np.where(G > 0, F, G)),
    "add": (lambda tl, f, g: tl.add(f, g), (F, G), F + G),
    "sub": (lambda tl, f, g: tl.sub(f, g), (F, G), F - G),
    "mul": (lambda tl, i, u: tl.mul(i, u), (I, U), I * U),
    "abs": (lambda tl, g, i: (tl.abs(g), tl.abs(i)), (G, I), (abs(G), abs(I))),
    "umulhi": (
        lambda tl, u: (tl.umulhi(u, 0xD2511F53), tl.umulhi(u.to(tl.int64) * -7, u.to(tl.int64) << 40)),
        (U.astype(np.uint32) << 20 | 12345,),
        (
            ((U.astype(np.uint64) << 20 | 12345) * 0xD2511F53 >> 32).astype(np.uint32),
            np.array([
                (((-7 * n % 2**64) * ((n << 40) % 2**64) >> 64) + 2**63) % 2**64 - 2**63
                for n in (U.astype(object) << 20 | 12345).ravel()
            ], np.int64).reshape(U.shape),
        ),
    ),
    "maximum": (lambda tl, n, g: tl.maximum(n, g * 0.5), (N, G), np.fmax(N, G * np.float32(0.5))),
    "minimum": (lambda tl, n, g: tl.minimum(n, g * 0.5), (N, G), np.fmin(N, G * np.float32(0.5))),
    "PropagateNan": (
        lambda tl, n, g: tl.maximum(n, g, propagate_nan=tl.PropagateNan.ALL), (N, F), np.maximum(N, F),
    ),
    "clamp": (
        lambda tl, n: (tl.clamp(n, -1.0, 1.0), tl.clamp(n, -1.0, 1.0, tl.PropagateNan.ALL)),
        (N,),
        (np.fmin(np.fmax(N, -1), 1), np.clip(N, -1, 1)),
    ),
    "fdiv": (lambda tl, f, g: tl.fdiv(g, f), (F, G), G / F),
    "div_rn": (lambda tl, f, g: tl.div_rn(g, f), (F, G), G / F),
    "sqrt_rn": (lambda tl, f: tl.sqrt_rn(f), (F,), np.sqrt(F)),
    "fma": (lambda tl, f, g: tl.fma(f, g, 1.0), (F, G), F * G + 1),
    "exp": (lambda tl, g: tl.exp(g), (G,), np.exp(G)),
    "exp2": (lambda tl, g: tl.exp2(g), (G,), np.exp2(G)),
    "log": (lambda tl, f: tl.log(f), (F,), np.log(F)),
    "log2": (lambda tl, f: tl.log2(f), (F,), np.log2(F)),
    "sqrt": (lambda tl, f: tl.sqrt(f), (F,), np.sqrt(F)),
    "rsqrt": (lambda tl, f: tl.rsqrt(f), (F,), 1 / np.sqrt(F)),
    "sin": (lambda tl, g: tl.sin(g), (G,), np.sin(G)),
    "cos": (lambda tl, g: tl.cos(g), (G,), np.cos(G)),
    "erf": (lambda tl, g: tl.erf(g), (G,), np.vectorize(erf)(G)),
    "sigmoid": (lambda tl, g: tl.sigmoid(g), (G,), 1 / (1 + np.exp(-G))),
    "floor": (lambda tl, g: tl.floor(g), (G,), np.floor(G)),
    "ceil": (lambda tl, g: tl.ceil(g), (G,), np.ceil(G)),
    "softmax": (lambda tl, g: (tl.softmax(g), tl.softmax(g, 0)), (G,), (softmax, softmax)),
    "sum": (
        lambda tl, g, u: (tl.sum(g, -1), tl.sum(u), tl.sum(u, 0, True), tl.sum(u, 1, dtype=tl.float32)),
        (G, U),
        (G.sum(1), U.sum(dtype=np.uint32), U.sum(0, dtype=np.uint32, keepdims=True), U.sum(1, dtype=np.float32)),
    ),
    "max": (
        lambda tl, n, i: (tl.max(n, 1, keep_dims=True), *tl.max(i, 0, return_indices=True), tl.max(i)),
        (N, I),
        (np.fmax.reduce(N, 1, keepdims=True), I.max(0), I.argmax(0).astype(np.int32), I.max()),
    ),
    "min": (
        lambda tl, n, i: (tl.min(n, 1, keepdims=True), *tl.min(i, 0, return_indices=True), tl.min(i)),
        (N, I),
        (np.fmin.reduce(N, 1, keepdims=True), I.min(0), I.argmin(0).astype(np.int32), I.min()),
    ),
    "argmax": (
        lambda tl, i: (tl.argmax(i, 1), tl.argmax(i, -1, keep_dims=True)),
        (I // 4,),
        ((I // 4).argmax(1).astype(np.int32), (I // 4).argmax(1, keepdims=True).astype(np.int32)),
    ),
    "argmin": (lambda tl, i: tl.argmin(i, 0), (I // 4,), (I // 4).argmin(0).astype(np.int32)),
    "xor_sum": (
        lambda tl, i, u: (tl.xor_sum(i, 1), tl.xor_sum(u, keep_dims=True)),
        (I, U),
        (np.bitwise_xor.reduce(I, 1), np.bitwise_xor.reduce(U, None, keepdims=True)),
    ),
    "reduce_or": (lambda tl, i: tl.reduce_or(i, 0), (I,), np.bitwise_or.reduce(I, 0)),
    "cumsum": (
        lambda tl, g, u: (tl.cumsum(g, 1), tl.cumsum(g, -2, reverse=True), tl.cumsum(u, 1)),
        (G, U),
        (G.cumsum(1), G[::-1].cumsum(0)[::-1], U.cumsum(1, dtype=np.uint32)),
    ),
    "cumprod": (lambda tl, f: tl.cumprod(f, 1, reverse=True), (F,), F[:, ::-1].cumprod(1)[:, ::-1]),
    "histogram": (
        lambda tl, u, g: (tl.histogram(u, 200), tl.histogram(u, 200, mask=g > 0)),
        (U, G),
        (np.bincount(U.ravel(), minlength=200).astype(np.int32), np.bincount(U[G > 0], minlength=200).astype(np.int32)),
    ),
    "expand_dims": (
        lambda tl, g: (tl.expand_dims(g, -1), tl.expand_dims(g, (0, -1))), (G,), (G[..., None], G[None, ..., None])
    ),
    "unsqueeze": (lambda tl, g: tl.unsqueeze(g, 1), (G,), G[:, None]),
    "squeeze": (lambda tl, g: tl.squeeze(g[:, None], 1), (G,), G),
    "broadcast_to": (lambda tl, g: tl.broadcast_to(g, (2, 5, 7)), (G,), np.broadcast_to(G, (2, 5, 7))),
    "broadcast": (
        lambda tl, g, f: tl.broadcast(tl.sum(g, 0)[None, :], f), (G, F), (np.broadcast_to(G.sum(0), (5, 7)), F),
    ),
    "reshape": (lambda tl, g: tl.reshape(g, 7, -1), (G,), G.reshape(7, 5)),
    "view": (lambda tl, g: tl.view(g, (35,)), (G,), G.ravel()),
    "ravel": (lambda tl, g: tl.ravel(g), (G,), G.ravel()),
    "trans": (lambda tl, p: (tl.trans(p), tl.trans(p, 2, 0, 1)), (P,), (P.swapaxes(1, 2), P.transpose(2, 0, 1))),
    "permute": (lambda tl, p: tl.permute(p, (1, 2, 0)), (P,), P.transpose(1, 2, 0)),
    "flip": (lambda tl, p: (tl.flip(p), tl.flip(p, 0)), (P,), (P[..., ::-1], P[::-1])),
    "join": (
        lambda tl, g, f: (tl.join(g, f), tl.join(g, tl.sum(f, 0))),
        (G, F),
        (np.stack((G, F), -1), np.stack((G, np.broadcast_to(F.sum(0), G.shape)), -1)),
    ),
    "split": (lambda tl, p: tl.split(p), (P,), (P[..., 0], P[..., 1])),
    "interleave": (lambda tl, g, f: tl.interleave(g, f), (G, F), np.stack((G, F), -1).reshape(5, 14)),
    "cat": (
        lambda tl, g, f: (tl.cat(g, f), tl.cat(tl.cat(g, f, dim=1), g, dim=-1)),
        (G, F),
        (np.concatenate((G, F)), np.concatenate((G, F, G), 1)),
    ),
    "gather": (
        lambda tl, g, i: (tl.gather(g, i, 0), tl.gather(
            g, (tl.arange(0, 7)[None, :] + tl.arange(0, 5)[:, None]) % 7, 1)
        ),
        (G, abs(I) % 5),
        (np.take_along_axis(G, abs(I) % 5, 0), np.take_along_axis(G, (np.arange(7) + np.arange(5)[:, None]) % 7, 1)),
    ),
    "cast": (
        lambda tl, g, i: (tl.cast(g, tl.int8), tl.cast(i, tl.uint8), tl.cast(g, tl.int32, bitcast=True)),
        (G, I),
        (G.astype(np.int8), I.astype(np.uint8), G.view(np.int32)),
    ),
    "dot": (
        lambda tl, g, f, u: (tl.dot(g, f.T), tl.dot(g, f.T, tl.dot(g, g.T)), tl.dot(u, u.T)),
        (G, F, U),
        (G @ F.T, G @ F.T + G @ G.T, U.astype(np.int32) @ U.T.astype(np.int32)),
    ),
    "zeros": (lambda tl: tl.zeros((3, 2), tl.bfloat16), (), np.zeros((3, 2), np.float32)),
    "full": (lambda tl: tl.full((3,), -2, tl.int16), (), np.full(3, -2, np.int16)),
    "zeros_like": (lambda tl, i: tl.zeros_like(i), (I,), np.zeros_like(I)),
    "arange": (lambda tl, i: i + tl.arange(3, 10)[None, :], (I,), I + np.arange(3, 10, dtype=np.int32)),
    "cdiv": (lambda tl: tl.cdiv(7, 2), (), np.int64(4)),
    "load": (lambda tl, g: g, (G,), G),
    "store": (lambda tl, g: g, (G,), G),
    "constexpr": (lambda tl: tl.constexpr(3), (), np.int64(3)),
    "program_id": (lambda tl: tl.program_id(0), (), np.int64(0)),
    "num_programs": (lambda tl: tl.num_programs(2), (), np.int64(1)),
    "range": (lambda tl: sum(tl.range(1, 6, 2, num_stages=2)), (), np.int64(9)),
    "static_range": (lambda tl: sum(tl.static_range(1, 6, 2)), (), np.int64(9)),
    "multiple_of": (lambda tl, g: tl.multiple_of(g, 8), (G,), G),
    "max_contiguous": (lambda tl, g: tl.max_contiguous(g, 8), (G,), G),
    "max_constancy": (lambda tl, g: tl.max_constancy(g, 8), (G,), G),
}  # fmt: skip
WITHOUT_RESULT = ("static_assert", "static_print", "device_print", "device_assert", "assume", "debug_barrier")


@pytest.mark.parametrize("name", CASES)
def test_a_name_does_what_numpy_does(name: str) -> None:
    """Odd extents, negative axes, NaN, ties, small and unsigned integers."""
    body, arrays, want = CASES[name]
    wants = want if isinstance(want, tuple) else (want,)
    got = run(body, *arrays)
    assert len(got) == len(wants)
    for found, expected in zip(got, wants, strict=True):
        exact = np.asarray(expected)
        assert found.shape == exact.shape
        if exact.dtype.kind in "iub":
            assert found.dtype == exact.dtype
            np.testing.assert_array_equal(found, exact)
        else:
            np.testing.assert_allclose(f32(found), exact.astype(np.float32), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("name", TRITON)
def test_each_dtype_is_stored_computed_and_cast(name: str) -> None:
    """Load, add, multiply, compare and cast there and back, as numpy does with one rounding per op."""
    kind = np.dtype(FLOAT8.get(name) or {"int1": "bool"}.get(name, name))
    given = (abs(I) % 2 if name == "int1" else abs(I) if name.startswith("u") else I).astype(kind)
    sums, more, back = run(
        lambda tl, x: (x + x, x > 1, x.to(tl.float32).to(getattr(tl, name))), given
    )
    wide = given.astype(np.float32)
    np.testing.assert_array_equal(f32(sums), wide * 0 if name == "int1" else wide * 2)  # one bit wraps
    np.testing.assert_array_equal(more, wide > 1)
    assert back.dtype == kind
    np.testing.assert_array_equal(f32(back), f32(given))


def test_names_without_a_result() -> None:
    """Prints show known data at once, checks that fail raise, hints do nothing."""

    def kernel(x: Any, tl: Any) -> None:
        tile = tl.load(x, shape=(2,))
        tl.static_print("now", 1)
        tl.device_print("tile", tile)
        tl.device_assert(tile > 0)
        tl.static_assert(True)
        tl.assume(False)
        tl.debug_barrier()

    shown = io.StringIO()
    rig = Rig()
    with redirect_stdout(shown):
        rig.run(kernel, rig.tensor(np.array([1, 2], np.int32)))
    assert shown.getvalue() == "now 1\ntile [1 2]\n"

    def false(x: Any, tl: Any) -> None:
        tl.device_assert(tl.load(x, shape=(2,)) > 1, "small")

    with pytest.raises(KernelError) as caught:
        rig.run(false, rig.tensor(np.array([1, 2], np.int32)))
    line = false.__code__.co_firstlineno + 1
    said = str(caught.value).partition("\n")[0]
    assert said == f"tl.device_assert at {__file__}:{line} must hold, and does not. small"


def test_every_name_of_the_table_is_called_above() -> None:
    """Nothing is promised that no test calls."""
    assert {*CASES, *WITHOUT_RESULT, *TRITON} == {*SAME, *DIFFERS}


@pytest.mark.parametrize("name", METHODS)
def test_functions_are_methods_too(name: str) -> None:
    """x.f(…) gives what tl.f(x, …) gives."""
    arguments: dict[str, tuple[Any, ...]] = {
        "cast": ("int32",), "permute": (1, 0), "histogram": (200,), "argmax": (0,), "argmin": (0,), "gather": (0,)
    }  # fmt: skip
    bits = name in ("xor_sum", "reduce_or", "histogram")
    source = U if bits else P[0] + 2 if name == "split" else F
    rest = arguments.get(name, ())

    def both(tl: Any, x: Any) -> Any:
        given = (tl.arange(0, 35).reshape(5, 7) % 5, 0) if name == "gather" else rest
        pair = getattr(x, name)(*given), getattr(tl, name)(x, *given)
        return (*pair[0], *pair[1]) if name == "split" else pair

    got = run(both, source)
    half = len(got) // 2
    for method, function in zip(got[:half], got[half:], strict=True):
        np.testing.assert_array_equal(method, function)


MIXED: dict[str, Case] = {
    "half and brain": (lambda tl, h, b: h + b, (np.float16(1.5), ml_dtypes.bfloat16(2)), np.float16(3.5)),
    "brain and byte": (lambda tl, b, y: b * y, (ml_dtypes.bfloat16(2), np.int8(-3)), np.float32(-6)),
    "signs": (lambda tl, i, u: i + u, (np.int32(-1), np.uint32(3)), np.uint32(2)),
    "signs compared": (lambda tl, i, u: i < u, (np.int32(-1), np.uint32(3)), np.bool_(False)),
    "wrap": (lambda tl, y: y + y, (np.int8(100),), np.int8(-56)),
    "unsigned wrap": (lambda tl, u: u - 5, (np.uint8(3),), np.uint8(254)),
    "unsigned minus": (lambda tl, u: -u, (np.uint32(3),), np.uint32(2**32 - 3)),
    "unsigned shift": (lambda tl, u: u >> 1, (np.uint8(200),), np.uint8(100)),
    "signed shift": (lambda tl, y: y >> 1, (np.int8(-7),), np.int8(-4)),
    "unsigned division": (lambda tl, u: u // 7, (np.uint32(4_000_000_000),), np.uint32(4_000_000_000 // 7)),
    "remainder of halves": (lambda tl, h: h % 2.0, (np.float16(-5.5),), np.float32(-1.5)),
    "bool arithmetic": (lambda tl, b: b + b, (np.bool_(True),), np.bool_(False)),
    "f8 by number": (lambda tl, e: e * 3.0, (ml_dtypes.float8_e4m3fn(5),), ml_dtypes.float8_e4m3fn(15)),
    "f8 saturates": (lambda tl, e: e * e, (ml_dtypes.float8_e4m3fn(64),), ml_dtypes.float8_e4m3fn(448)),
    "two f8": (lambda tl, e, d: e + d, (ml_dtypes.float8_e4m3fn(5), ml_dtypes.float8_e5m2(7)), np.float16(12)),
    "int16 sums": (lambda tl, s: tl.sum(s), (np.full(4, 30000, np.int16),), np.int32(120000)),
    "uint16 scans": (
        lambda tl, s: tl.cumsum(s), (np.full(3, 60000, np.uint16),), np.array([60000, 120000, 180000], np.uint32)
    ),
    "three operands": (
        lambda tl, a, b, c: tl.where(c, a, b),
        (np.arange(3, dtype=np.float16)[:, None], np.arange(4, dtype=np.float32)[None],
         np.array([True, False, True, True])),
        np.where([True, False, True, True], np.arange(3.0)[:, None], np.arange(4.0)[None]).astype(np.float32),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", MIXED)
def test_dtypes_meet_and_wrap_as_in_triton(case: str) -> None:
    """Value and dtype of mixed operands, on tensors of no, one and two dimensions."""
    body, arrays, want = MIXED[case]
    (got,) = run(body, *arrays)
    assert got.dtype == np.asarray(want).dtype
    np.testing.assert_array_equal(f32(got), f32(want))


@pytest.mark.parametrize("kind", [np.uint8, np.int8])
def test_products_of_bytes_are_exact(kind: Any) -> None:
    """Also where f32 could not hold the sum."""
    a, b = np.full((2, 900), np.iinfo(kind).max, kind), np.full((900, 3), np.iinfo(kind).max, kind)
    b[0] -= 1
    (got,) = run(lambda tl, a, b: tl.dot(a, b), a, b)
    np.testing.assert_array_equal(got, a.astype(np.int32) @ b.astype(np.int32))


@pytest.mark.parametrize("name", ["float8e4nv", "float8e5"])
def test_8_bit_floats_are_multiplied_into_f32(name: str) -> None:
    """Products are exact, sums are f32."""
    a, b = G.astype(FLOAT8[name]), F.T.astype(FLOAT8[name])
    (got,) = run(lambda tl, a, b: tl.dot(a, b), a, b)
    np.testing.assert_allclose(got, a.astype(np.float32) @ b.astype(np.float32), rtol=1e-6)
    other = F.T.astype(ml_dtypes.float8_e5m2)
    (got,) = run(lambda tl, a, b: tl.dot(a, b), a, other)
    np.testing.assert_allclose(got, a.astype(np.float32) @ other.astype(np.float32), rtol=1e-6)
