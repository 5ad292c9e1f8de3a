"""Formulas and faults of `kernels/idioms.py`."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from tests.builtin.triton.families.case import Case, Fault
from tests.builtin.triton.families.elementwise import ALL, normal, wide


def _applied(x: Any, name: str) -> Any:
    return np.where(wide(x) < 0, wide(x) / 5, wide(x)) if name == "leaky" else np.tanh(2 * wide(x))


def _positive(x: Any) -> Any:
    return np.array([(x > 0).sum() * (2 if x.size > 64 else 1)])


def _states(rng: Any, dtype: Any, b: int, length: int, d: int, n: int, skips: int) -> tuple[Any, ...]:
    u, delta = normal(2)(rng, dtype, b, length, d)
    delta[0, 0, 0] = 30
    a = -rng.random((d, n)).astype(np.float32) - 0.1
    return u, delta, a, *normal(2)(rng, dtype, b, length, n), *(normal(1)(rng, dtype, d) if skips else (None,))


def _scanned(u: Any, delta: Any, a: Any, b: Any, c: Any, skip: Any) -> Any:
    u, delta, a, b, c = wide(u, delta, a, b, c)
    delta = np.logaddexp(0, delta)
    y = np.empty_like(u)
    for batch in range(len(u)):
        h = np.zeros(a.shape)
        for t in range(u.shape[1]):
            h = np.exp(delta[batch, t][:, None] * a) * h + np.outer(delta[batch, t] * u[batch, t], b[batch, t])
            y[batch, t] = h @ c[batch, t]
    return y if skip is None else y + u * wide(skip)


def _packed(rng: Any, dtype: Any, m: int, n: int, k: int, group: int) -> tuple[Any, ...]:
    q = rng.integers(-(2**31), 2**31, (k // 8, n)).astype(np.int32)
    zeros = rng.integers(-(2**31), 2**31, (k // group, n // 8)).astype(np.int32)
    return *normal(1)(rng, dtype, m, k), q, rng.random((k // group, n)).astype(dtype), zeros, group


def nibbles(words: Any) -> Any:
    """Give the eight nibbles of each word, the lowest first, along a new last axis."""
    return np.stack([(words.astype(np.int64) % 2**32) // 16**i % 16 for i in range(8)], -1)


def _unpacked(x: Any, q: Any, scales: Any, zeros: Any, group: int) -> Any:
    w = np.moveaxis(nibbles(q), -1, 1).reshape(-1, q.shape[1])
    z = nibbles(zeros).reshape(len(zeros), -1)
    return wide(x) @ ((w - np.repeat(z, group, 0)) * np.repeat(wide(scales), group, 0))


def _inverses(a: Any) -> Any:
    out = np.zeros(a.shape)
    for head in range(len(a)):
        for first in range(0, a.shape[1], a.shape[2]):
            rows = a[head, first : first + a.shape[2]]
            n = len(rows)
            out[head, first : first + n, :n] = np.linalg.inv(np.eye(n) + np.tril(wide(rows)[:, :n], -1))
    return out


def _seen(rng: Any, dtype: Any, h: int, t: int, d: int, window: int) -> tuple[Any, ...]:
    return (*normal(3)(rng, dtype, h, t, d), 0.7, window)


def _windowed(q: Any, k: Any, v: Any, scale: float, window: int) -> Any:
    q, k, v = wide(q, k, v)
    out = np.empty_like(q)
    for head in range(len(q)):
        for t in range(q.shape[1]):
            own = slice(max(0, t - window + 1), t + 1)
            weights = np.exp(5 * np.tanh(k[head, own] @ q[head, t] * scale / 5))
            out[head, t] = weights @ v[head, own] / weights.sum()
    return out


def _jagged(rng: Any, dtype: Any, rows: int, d: int, groups: int) -> tuple[Any, ...]:
    cuts = np.sort(rng.integers(0, rows + 1, groups - 1))
    cuts[-1] = cuts[0]
    return *normal(1)(rng, dtype, rows, d), np.concatenate([[0], np.sort(cuts), [rows]]).astype(np.int32)


def _means(x: Any, offsets: Any) -> Any:
    return np.stack([wide(x)[a:b].mean(0) if b > a else np.zeros(x.shape[1]) for a, b in pairwise(offsets)])


def _relaxed(x: Any) -> Any:
    y = wide(x)
    y[1:-1, 1:-1] = (wide(x)[:-2, 1:-1] + wide(x)[2:, 1:-1] + wide(x)[1:-1, :-2] + wide(x)[1:-1, 2:]) / 4
    return y


CASES = (
    Case(
        "idioms", "apply", lambda rng, dtype, n, which: (*normal(1)(rng, dtype, n), ("leaky", "squashed")[which]), _applied,
        ((100, 0), (100, 1)), (Fault("tl.constexpr(0.2)", "tl.constexpr(0.3)"), Fault("x = ACT(x)\n", "x = ACT(-x)\n")), ALL,
    ),
    Case(
        "idioms", "tuned_count", normal(1), _positive, ((150,), (64,), (20,)),
        (Fault('args["n"] > 64', 'args["n"] < 64'), Fault("tl.atomic_add(total_ptr, count)", "tl.store(total_ptr, count)", "hazard")),
    ),
    Case(
        "idioms", "selective_scan", _states, _scanned, ((2, 9, 11, 4, 1), (1, 5, 8, 8, 0)),
        (Fault("tl.where(delta <= 20.0, tl.math.log1p(tl.exp(delta)), delta)", "tl.math.log1p(tl.exp(delta * 2))"),
         Fault("delta_ptr += b * L * D", "delta_ptr += b * D"), Fault("B_ptr + (b * L + t) * N + n)", "B_ptr + (b * L + t + 1) * N + n)", "must stay inside tensor 'B_ptr'")), ALL, loose=3,
    ),
    Case(
        "idioms", "packed_matmul", _packed, _unpacked, ((20, 24, 64, 32), (3, 16, 32, 16)),
        (Fault("((rn % per_word) * 4)) & 15", "((rn % per_word) * 4)) & 7"), Fault("group = k // GROUP", "group = k // BK", "must stay inside tensor")), ("f32", "f16"), loose=20,
    ),
    Case(
        "idioms", "solve_tril", lambda rng, dtype, h, t, block: ((rng.standard_normal((h, t, block)) / 3).astype(dtype),), _inverses,
        ((2, 21, 8), (1, 16, 16)), (Fault("b_a = tl.where(o_i < i, b_a, 0.0)", "b_a = tl.where(o_i <= i, b_a, 0.0)"), Fault("range(1, min(BT, T - i_t * BT))", "range(1, BT)", "must stay inside tensor 'A_ptr'")), ALL, loose=8,
    ),
    Case(
        "idioms", "window_attention", _seen, _windowed, ((2, 37, 16, 9), (1, 16, 16, 40), (1, 20, 32, 1)),
        (Fault("(0 <= gap) & (gap < WINDOW)", "(0 <= gap) & (gap <= WINDOW)"), Fault("tl.maximum(start - WINDOW + 1, 0)", "tl.maximum(start, 0)"), Fault("last = tl.minimum(start + BM, T)", "last = tl.minimum(start, T)")), ALL, loose=2,
    ),
    Case(
        "idioms", "argsort", lambda rng, dtype, m, n: (rng.integers(-9, 9, (m, n)).astype(dtype),), lambda x: np.argsort(x, 1, kind="stable"),
        ((3, 21), (2, 16)), (Fault("(x << 32) | at", "(x << 3) | at"), Fault("other=2147483647", "other=0")), ("i32",),
    ),
    Case(
        "idioms", "jagged_mean", _jagged, _means, ((23, 11, 5), (9, 16, 4)),
        (Fault("if begin == end:", "if begin > end:"), Fault("mask = (rows < end)[:, None] & ", "mask = ")), ALL, loose=2,
    ),
    Case(
        "idioms", "qk_norm", lambda rng, dtype, t, h, d: (*normal(1)(rng, dtype, t, h, d), *normal(1)(rng, dtype, d), 1e-6),
        lambda x, w, eps: wide(x) / np.sqrt((wide(x) ** 2).mean(-1, keepdims=True) + eps) * wide(w), ((3, 4, 16), (2, 2, 8)),
        (Fault("axis=1, keep_dims=True) / D", "axis=0, keep_dims=True) / D"), Fault("reshape(HEADS, D)", "reshape(D, HEADS)", "must")), ALL,
    ),
    Case(
        "idioms", "stencil", normal(1), _relaxed, ((7, 37), (3, 3), (5, 16)),
        (Fault("if 0 < i < H - 1:", "if 0 < i < H:", "must stay inside tensor 'x_ptr'"), Fault("inner = (j > 0) & (j < W - 1)", "inner = j < W - 1")), ALL,
    ),
)  # fmt: skip
