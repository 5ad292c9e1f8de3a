"""Formulas and faults of `kernels/counting.py`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.builtin.triton.families.case import Case, Fault
from tests.builtin.triton.families.elementwise import ALL, normal, wide
from tests.builtin.triton.families.softmax import log_softmax


def philox(seed: int, counters: Any) -> Any:
    """Give the four words that Philox 4x32-10 makes of each counter: Salmon and others, SC 2011, section 4."""
    words = [np.asarray(counters, np.uint64) & 0xFFFFFFFF, np.asarray(counters, np.uint64) >> 32]
    a, b, c, d = *words, 0 * words[0], 0 * words[0]
    key = [seed % 2**32, seed >> 32]
    for _ in range(10):
        left, right = a * np.uint64(0xD2511F53), c * np.uint64(0xCD9E8D57)
        a, c = (right >> 32) ^ b ^ np.uint64(key[0]), (left >> 32) ^ d ^ np.uint64(key[1])
        b, d = right & 0xFFFFFFFF, left & 0xFFFFFFFF
        key = [(key[0] + 0x9E3779B9) % 2**32, (key[1] + 0xBB67AE85) % 2**32]
    return np.stack([a, b, c, d])


def _uniform(words: Any) -> Any:
    signed = words.astype(np.uint32).view(np.int32).astype(np.int64)
    return np.where(signed < 0, -signed - 1, signed).astype(np.float32) * np.float32(4.6566127342e-10)


def _dropped(x: Any, p: float, seed: int) -> Any:
    keep = _uniform(philox(seed, np.arange(x.size))[0]) > np.float32(p)
    return np.where(keep, wide(x) / (1 - p), 0)


def _dropped_by_four(x: Any, p: float, seed: int) -> Any:
    words = philox(seed, np.arange(-(-x.size // 64) * 16)).reshape(4, -1, 16)
    shares = (words.transpose(1, 0, 2).ravel()[: x.size] >> np.uint64(8)) / 2**24
    return np.where(shares >= np.float32(p), wide(x) / (1 - p), 0)


def _drops(rng: Any, dtype: Any, n: int, seed: int) -> tuple[Any, ...]:
    return (1 + rng.random(n)).astype(dtype), 0.4, seed


def _binned(rng: Any, dtype: Any, n: int, in_block: int) -> tuple[Any, ...]:
    return *normal(1)(rng, dtype, n), -2.0, 2.0, bool(in_block)


def _counts(x: Any, low: float, high: float, in_block: bool) -> Any:
    return np.histogram(np.clip(wide(x), low, high - 1e-6), 16, (low, high))[0]


def _in_groups(rng: Any, dtype: Any, n: int, count: int) -> tuple[Any, ...]:
    return rng.integers(-999, 999, n).astype(dtype), rng.integers(0, count, n).astype(np.int32), count


def _extremes(x: Any, groups: Any, count: int) -> Any:
    own = [[int(v) for v, g in zip(x, groups, strict=True) if g == group] for group in range(count)]
    return np.array([min(each, default=2**31 - 1) for each in own]), np.array([max(each, default=-(2**31)) for each in own])


def _cumsum(x: Any, reverse: bool) -> Any:
    return wide(x)[::-1].cumsum(0)[::-1] if reverse else wide(x).cumsum(0)


def _recurrence(a: Any, b: Any) -> Any:
    a, b = wide(a, b)
    h = np.zeros(a.shape[1])
    return np.stack([h := fade * h + more for fade, more in zip(a, b, strict=True)])


def _gates(rng: Any, dtype: Any, t: int, n: int) -> tuple[Any, ...]:
    return rng.random((t, n)).astype(dtype), *normal(1)(rng, dtype, t, n)


def _chosen(x: Any, k: int) -> Any:
    p = np.exp(log_softmax(x))
    ids = np.argsort(-p, axis=1, kind="stable")[:, :k]
    shares = np.take_along_axis(p, ids, 1)
    return ids, shares / shares.sum(1, keepdims=True)


def _routed(rng: Any, dtype: Any, tokens: int, experts: int, k: int, n: int, top: int) -> tuple[Any, ...]:
    ids = np.stack([rng.permutation(experts)[:top] for _ in range(tokens)]).astype(np.int32)
    ids[ids == 0] = experts - 1
    x, w = normal(1)(rng, dtype, tokens, k), normal(1)(rng, dtype, experts, n, k)
    return *x, *w, ids, rng.random((tokens, top), np.float32)


def _moe(x: Any, w: Any, ids: Any, weights: Any) -> Any:
    return np.einsum("tk,tink->tin", wide(x), wide(w)[ids]) * wide(weights)[:, :, None]


def _compacted(x: Any) -> Any:
    kept = x[x > 0]
    return np.concatenate([kept, np.zeros(x.size - kept.size, x.dtype)]), np.array([kept.size])


def _whole(rng: Any, dtype: Any, n: int) -> tuple[Any, ...]:
    return (rng.integers(-50, 50, n).astype(dtype),)


CASES = (
    Case(
        "counting", "dropout", _drops, _dropped, ((200, 123), (64, 2**40 + 5)),
        (Fault("tl.rand(seed, offsets)", "tl.rand(seed + 1, offsets)"), Fault("x_keep = random > p", "x_keep = random < p")), ALL,
    ),
    Case(
        "counting", "dropout4", _drops, _dropped_by_four, ((200, 7), (64, 2**33)),
        (Fault("counter = tl.program_id(0) * quarter + lane", "counter = first + lane"), Fault("first + i * quarter + lane", "first + i + lane")),
    ),
    Case(
        "counting", "histogram", _binned, _counts, ((300, 0), (300, 1), (64, 0)),
        (Fault("counts_ptr + bins, 1, mask=at < n", "counts_ptr + bins, 1"), Fault("tl.maximum(bins, 0), BINS - 1)", "tl.maximum(bins, 0), BINS)", "must stay inside tensor 'counts_ptr'"),
         Fault("tl.atomic_add(counts_ptr + bins, 1,", "tl.atomic_max(counts_ptr + bins, 1,")),
    ),
    Case(
        "counting", "extremes", _in_groups, _extremes, ((100, 5), (32, 3)),
        (Fault("tl.atomic_min(low_ptr + group, x", "tl.atomic_min(low_ptr + group, -x"), Fault("tl.atomic_max(high_ptr + group", "tl.store(high_ptr + group", "hazard")), ("i32",),
    ),
    Case(
        "counting", "argmax", normal(1), lambda x: np.array([wide(x).argmax()]), ((150,), (32,), (33,)),
        (Fault("place + pid * BLOCK", "place + pid"), Fault("values_ptr + at, mask=at < blocks, other=-float", "values_ptr + at + 1, mask=at < blocks, other=-float", "must stay inside tensor 'values_ptr'")), ("f32", "f16"),
    ),
    Case(
        "counting", "cumsum", lambda rng, dtype, t, n, reverse: (*normal(1)(rng, dtype, t, n), bool(reverse)), _cumsum,
        ((21, 20, 0), (21, 20, 1), (8, 16, 0)), (Fault("        carry += tl.sum(x, axis=0)\n", ""), Fault("(t < T)[:, None] & (n < N)[None, :]", "(n < N)[None, :]", "must stay inside tensor 'x_ptr'")), ALL, loose=4,
    ),
    Case(
        "counting", "gated_scan", _gates, _recurrence, ((21, 3), (8, 2), (5, 1)),
        (Fault("return a1 * a2, a2 * b1 + b2", "return a1 * a2, a1 * b1 + b2"), Fault("y = own + fades * h", "y = own + h")), ("f32", "bf16"), loose=3,
    ),
    Case(
        "counting", "var_mean", normal(1), lambda x: (wide(x).var(1), wide(x).mean(1)), ((4, 50), (2, 64), (3, 1)),
        (Fault("delta * delta * w1 * share", "delta * delta * w2 * share"), Fault("inside.to(tl.float32)", "(cols < BLOCK).to(tl.float32)")), ALL, loose=2,
    ),
    Case(
        "counting", "sort", lambda rng, dtype, m, n, turned: (*normal(1)(rng, dtype, m, n), bool(turned)),
        lambda x, turned: -np.sort(-wide(x), 1) if turned else np.sort(wide(x), 1), ((3, 21, 0), (2, 32, 1)),
        (Fault('rest = -float("inf") if DESCENDING else float("inf")', "rest = 0.0"), Fault("descending=DESCENDING)", "descending=not DESCENDING)")), ALL,
    ),
    Case(
        "counting", "topk_gate", lambda rng, dtype, m, n, k: (*normal(1)(rng, dtype, m, n), k), _chosen,
        ((5, 11, 3), (2, 16, 2), (1, 5, 5)), (Fault("p = tl.where(e == best, -1.0, p)", "p = tl.where(e == i, -1.0, p)"), Fault("shares / total", "shares")),
    ),
    Case(
        "counting", "fused_moe", _routed, _moe, ((19, 5, 20, 24, 2), (4, 3, 16, 16, 1)),
        (
            Fault("(token // top_k)[:, None] * K", "token[:, None] * K", "must stay inside tensor 'x_ptr'"),
            Fault("starts = tl.cumsum(padded, 0) - padded", "starts = tl.cumsum(counts, 0) - counts", "hazard"),
            Fault("if expert == -1:", "if expert == -2:", "must stay inside tensor 'w_ptr'"),
        ), ALL, loose=3,
    ),
    Case(
        "counting", "compact", _whole, _compacted, ((50,), (16,), (3,)),
        (Fault("tl.cumsum(keep.to(tl.int32), 0) - 1\n", "tl.cumsum(keep.to(tl.int32), 0)\n"), Fault("y_ptr + kept + place", "y_ptr + first + place")), ("i32",),
    ),
    Case(
        "counting", "work_queue", _whole, lambda x: (x.astype(int) ** 2, np.array([-(-x.size // 16) + 4])), ((100,), (16,)),
        (Fault("while tile < tiles:", "if tile < tiles:"), Fault("y_ptr + at, x * x", "y_ptr + at + 1, x * x", "must stay inside tensor 'y_ptr'")), ("i32",),
    ),
)  # fmt: skip
