"""Formulas and faults of `kernels/moves.py`."""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np

from tests.builtin.triton.families.case import Case, Fault
from tests.builtin.triton.families.elementwise import ALL, normal, wide


def _words(rng: Any, dtype: Any, n: int, words: int, dim: int) -> tuple[Any, ...]:
    return rng.integers(0, words, n), *normal(1)(rng, dtype, words, dim), 1


def _embedded(ids: Any, w: Any, padding: int) -> Any:
    return np.stack([np.zeros(w.shape[1]) if each == padding else wide(w)[each] for each in ids])


def _sloped(rng: Any, dtype: Any, n: int, words: int, dim: int) -> tuple[Any, ...]:
    return rng.integers(0, words, n), rng.integers(-9, 9, (n, dim)).astype(dtype), words


def _collected(ids: Any, dy: Any, words: int) -> Any:
    dw = np.zeros((words, dy.shape[1]))
    np.add.at(dw, ids, dy)
    return dw


def _turning(rng: Any, dtype: Any, b: int, t: int, h: int, d: int, backward: int) -> tuple[Any, ...]:
    angle = rng.random((t, d // 2)) * 6
    return *normal(1)(rng, dtype, b, t, h, d), np.cos(angle).astype(dtype), np.sin(angle).astype(dtype), bool(backward)


def _turned(q: Any, cos: Any, sin: Any, backward: bool) -> Any:
    z = wide(q)[..., : q.shape[-1] // 2] + 1j * wide(q)[..., q.shape[-1] // 2 :]
    z = z * (wide(cos) + (-1j if backward else 1j) * wide(sin))[:, None, :]
    return np.concatenate([z.real, z.imag], -1)


def _spiral(x: Any, theta: float) -> Any:
    t, d = x.shape
    z = (wide(x)[:, ::2] + 1j * wide(x)[:, 1::2]) * np.exp(1j * np.outer(np.arange(t), theta ** (-np.arange(0, d, 2) / d)))
    return np.stack([z.real, z.imag], -1).reshape(t, d)


def _grid(rng: Any, dtype: Any, m: int, n: int) -> tuple[Any, ...]:
    """Rows that are quarters of a power of two times integers, so that rounding is the same everywhere; one is 0."""
    x = rng.integers(-500, 501, (m, n)) / 4
    x[:, 0] = -127
    x[-1] = 0
    return (x.astype(dtype),)


def _by_rows(x: Any) -> Any:
    scale = np.abs(wide(x)).max(1) / 127
    scale[scale == 0] = 1
    return np.rint(wide(x) / scale[:, None]), scale


def _nibbles(rng: Any, dtype: Any, groups: int, group: int) -> tuple[Any, ...]:
    q = rng.integers(-(2**31), 2**31, groups * group).astype(np.int32)
    return q, rng.random(groups, np.float32), rng.integers(0, 16, groups).astype(np.int32), group


def _unpacked(q: Any, s: Any, z: Any, group: int) -> Any:
    own = [[int(word) % 2**32 // 16**i % 16 for i in range(8)] for word in q]
    return ((np.array(own) - np.repeat(z, group)[:, None]) * np.repeat(wide(s), group)[:, None]).ravel()


def _eighths(x: Any) -> Any:
    blocks = [wide(x)[at : at + 64] for at in range(0, len(x), 64)]
    scales = [np.abs(block).max() / 448 for block in blocks]
    cast = [(block / s).astype(ml_dtypes.float8_e4m3fn).astype(float) for block, s in zip(blocks, scales, strict=True)]
    return np.concatenate(cast), np.array(scales)


def _pooled(x: Any, k: int, stride: int) -> Any:
    windows = np.lib.stride_tricks.sliding_window_view(wide(x), (k, k), (1, 2))[:, ::stride, ::stride]
    flat = windows.reshape(*windows.shape[:3], -1).argmax(-1)
    top, left = np.arange(windows.shape[1])[:, None] * stride, np.arange(windows.shape[2]) * stride
    return windows.max((-1, -2)), (top + flat // k) * x.shape[2] + left + flat % k


def _sparse(rng: Any, dtype: Any, m: int, n: int, most: int) -> tuple[Any, ...]:
    counts = rng.integers(0, most + 1, m)
    counts[0] = most
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    total = int(indptr[-1])
    return indptr, rng.integers(0, n, total).astype(np.int32), *normal(1)(rng, dtype, total), *normal(1)(rng, dtype, n)


def _matvec(indptr: Any, indices: Any, values: Any, x: Any) -> Any:
    each = wide(values) * wide(x)[indices]
    return np.array([each[a:b].sum() for a, b in itertools.pairwise(indptr)])


CASES = (
    Case(
        "moves", "transpose", normal(1), lambda x: wide(x).T, ((33, 50), (16, 16), (3, 70)),
        (Fault("y_ptr + rn[:, None] * M + rm[None, :]", "y_ptr + rn[:, None] * N + rm[None, :]", "must stay inside tensor 'y_ptr'"),
         Fault("tl.trans(x), mask=tl.trans(mask)", "x, mask=tl.trans(mask)")), ALL,
    ),
    Case(
        "moves", "embedding", _words, _embedded, ((21, 11, 50), (8, 3, 32)),
        (Fault("tl.load(ids_ptr + rows, mask=rows < n, other=0)\n", "tl.load(ids_ptr + rows, mask=rows < n, other=0) + 1\n", "must stay inside tensor 'w_ptr'"),
         Fault("mask & (ids != padding_idx)[:, None]", "mask")), ALL,
    ),
    Case(
        "moves", "embedding_backward", _sloped, _collected, ((21, 5, 40), (8, 3, 32)),
        (Fault("tl.atomic_add(dw_ptr", "tl.store(dw_ptr", "hazard"), Fault("dy_ptr + row * dim", "dy_ptr + at * dim")), ("i32", "i64"),
    ),
    Case(
        "moves", "rope", _turning, _turned, ((2, 5, 3, 24, 0), (1, 4, 4, 16, 1)),
        (Fault("row = pid % seq_len", "row = pid", "must stay inside tensor 'cos_ptr'"), Fault("b * cos + a * sin", "b * cos - a * sin")), ALL,
    ),
    Case(
        "moves", "rope_interleaved", lambda rng, dtype, t, d: (*normal(1)(rng, dtype, t, d), 100.0), _spiral,
        ((21, 16), (8, 32)), (Fault("tl.interleave(even * c - odd * s, odd * c + even * s)", "tl.interleave(odd * c + even * s, even * c - odd * s)"), Fault("2.0 * i.to", "1.0 * i.to")), ALL, loose=4,
    ),
    Case(
        "moves", "quantize_rows", _grid, _by_rows, ((5, 50), (2, 64)),
        (Fault("scale = tl.where(scale == 0, 1.0, scale)", "scale = scale + 0.01"), Fault("tl.max(tl.abs(x), axis=0)", "tl.max(x, axis=0)", "numbers")),
    ),
    Case(
        "moves", "dequantize_int4", _nibbles, _unpacked, ((5, 8), (4, 4)),
        (Fault("tl.arange(0, 8) * 4\n", "(7 - tl.arange(0, 8)) * 4\n"), Fault("z_ptr + word // GROUP", "z_ptr + word", "must stay inside tensor 'z_ptr'")), ("i32",),
    ),
    Case(
        "moves", "quantize_fp8", normal(1), _eighths, ((150,), (64,)),
        (Fault("/ 448.0", "/ 44.8"), Fault("s_ptr + tl.program_id(0), s", "s_ptr + tl.program_id(0) + 1, s", "must stay inside tensor 's_ptr'")), ("f32", "bf16"), loose=2,
    ),
    Case(
        "moves", "max_pool", lambda rng, dtype, c, h, w, k, stride: (*normal(1)(rng, dtype, c, h, w), k, stride), _pooled,
        ((2, 9, 8, 3, 1), (1, 8, 8, 2, 2)), (Fault("(top + r) * W + left + s", "(top + r) * H + left + s", "must stay inside tensor 'x_ptr'"), Fault("better = x > best", "better = x >= -best")), ALL,
    ),
    Case(
        "moves", "csr_matvec", _sparse, _matvec, ((9, 20, 7), (3, 5, 4)),
        (Fault("tl.load(x + col, mask", "tl.load(x + col + 1, mask", "must stay inside tensor 'x'"), Fault("while begin < end:", "if begin < end:")), loose=2,
    ),
)  # fmt: skip
