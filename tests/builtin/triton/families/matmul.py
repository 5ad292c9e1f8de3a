"""Formulas and faults of `kernels/matmul.py` and `kernels/products.py`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.builtin.triton.families.case import Case, Fault
from tests.builtin.triton.families.elementwise import ALL, normal, wide


def _pair(rng: Any, dtype: Any, m: int, n: int, k: int, turned: int = 0) -> tuple[Any, ...]:
    """Two matrices, the second one stored by columns where `turned`."""
    a, b = rng.standard_normal((m, k)) / 2, rng.standard_normal((n, k)).T / 2
    return a.astype(dtype), b.astype(dtype) if turned else np.ascontiguousarray(b.astype(dtype))


def _activated(rng: Any, dtype: Any, m: int, n: int, k: int, turned: int, act: str) -> tuple[Any, ...]:
    return (*_pair(rng, dtype, m, n, k, turned), act)


def _product(a: Any, b: Any, act: str = "") -> Any:
    c = np.einsum("mk,kn->mn", wide(a), wide(b))
    return np.where(c < 0, c / 100, c) if act else c


def _bytes(rng: Any, dtype: Any, m: int, n: int, k: int) -> tuple[Any, ...]:
    a, b = rng.integers(-128, 128, (m, k)).astype(np.int8), rng.integers(-128, 128, (k, n)).astype(np.int8)
    return a, b, rng.random(m, np.float32) / 100, rng.random(n, np.float32) / 100


def _scaled(a: Any, b: Any, scale_a: Any, scale_b: Any) -> Any:
    return (a.astype(np.int64) @ b.astype(np.int64)) * wide(scale_a)[:, None] * wide(scale_b)


def _eighths(rng: Any, dtype: Any, m: int, n: int, k: int) -> tuple[Any, ...]:
    blocks = -(-k // 32)
    a, b = rng.standard_normal((m, k)).astype(dtype), rng.standard_normal((n, k)).astype(dtype)
    return a, b, rng.random((m, blocks), np.float32), rng.random((-(-n // 16), blocks), np.float32)


def _by_blocks(a: Any, b: Any, scale_a: Any, scale_b: Any) -> Any:
    k = a.shape[1]
    a = wide(a) * np.repeat(wide(scale_a), 32, 1)[:, :k]
    b = wide(b) * np.repeat(np.repeat(wide(scale_b), 16, 0)[: len(b)], 32, 1)[:, :k]
    return a @ b.T


def _groups(rng: Any, dtype: Any, rows: int, n: int, k: int, groups: int) -> tuple[Any, ...]:
    ends = np.sort(rng.integers(0, rows + 1, groups)).astype(np.int32)
    ends[-1] = rows
    return *normal(1)(rng, dtype, rows, k), *normal(1)(rng, dtype, groups, k, n), ends


def _grouped(x: Any, w: Any, ends: Any) -> Any:
    x, w = wide(x, w)
    return np.stack([row @ w[np.searchsorted(ends, i, "right")] for i, row in enumerate(x)])


def _several(rng: Any, dtype: Any, *sizes: int) -> tuple[Any, ...]:
    shapes = zip(sizes[::3], sizes[1::3], sizes[2::3], strict=True)
    return tuple(rng.standard_normal(shape).astype(dtype) for m, n, k in shapes for shape in ((m, k), (k, n)))


def _stacks(rng: Any, dtype: Any, b: int, m: int, n: int, k: int) -> tuple[Any, ...]:
    return *normal(1)(rng, dtype, b, m, k), *normal(1)(rng, dtype, b, k, n)


def _image(rng: Any, dtype: Any, n: int, c: int, h: int, w: int, k: int, r: int, stride: int, padding: int) -> Any:
    return *normal(1)(rng, dtype, n, c, h, w), *normal(1)(rng, dtype, k, c, r, r), stride, padding


def _conv2d(x: Any, w: Any, stride: int, padding: int) -> Any:
    x, w = wide(x, w)
    x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], (2, 3))[:, :, ::stride, ::stride]
    return np.einsum("nchwrs,kcrs->nkhw", windows, w)


def _tokens(rng: Any, dtype: Any, b: int, length: int, d: int, width: int, silu: int) -> tuple[Any, ...]:
    return *normal(1)(rng, dtype, b, length, d), *normal(1)(rng, dtype, d, width), *normal(1)(rng, dtype, d), bool(silu)


def _causal(x: Any, w: Any, bias: Any, silu: bool) -> Any:
    x, w, bias = wide(x, w, bias)
    y = np.empty_like(x)
    for b in range(x.shape[0]):
        for d in range(x.shape[2]):
            y[b, :, d] = np.convolve(x[b, :, d], w[d, ::-1])[: x.shape[1]] + bias[d]
    return y / (1 + np.exp(-y)) if silu else y


SHAPES = ((45, 50, 37), (16, 32, 32), (5, 33, 3))
CASES = (
    Case(
        "matmul", "matmul", _activated, _product,
        ((45, 50, 37, 0, "leaky_relu"), (33, 20, 64, 1, ""), (64, 64, 32, 0, "")),
        (
            Fault("pid_n = (pid % num_pid_in_group) // group_size_m", "pid_n = pid % num_pid_n"),
            Fault("for k in range(0, tl.cdiv(K, BLOCK_SIZE_K)):", "for k in range(0, K // BLOCK_SIZE_K):"),
            Fault("b_ptrs += BLOCK_SIZE_K * stride_bk", "b_ptrs += BLOCK_SIZE_K * stride_bn"),
            Fault("% N\n    offs_k = tl.arange(0, BLOCK_SIZE_K)\n", "\n    offs_k = tl.arange(0, BLOCK_SIZE_K)\n", "must stay inside tensor 'b_ptr'"),
        ), ALL, loose=3,
    ),
    Case(
        "matmul", "matmul_block", _pair, _product, (*SHAPES, (40, 17, 70, 1)),
        (
            Fault("b_block, (BK, 0)", "b_block, (0, BK)"),
            Fault("b = tl.load(b_block, boundary_check=(0, 1)", "b = tl.load(b_block, boundary_check=(1,)", "must stay inside tensor 'B'"),
        ), ALL, loose=3,
    ),
    Case(
        "matmul", "matmul_descriptor", lambda rng, dtype, m, n, k: normal(1)(rng, dtype, m, k) + normal(1)(rng, dtype, n, k),
        lambda a, b: _product(a, b.T), SHAPES,
        (Fault("tl.dot(a, b.T, acc)", "tl.dot(a, b, acc)"), Fault("b_desc.load([offs_n, k", "b_desc.load([offs_n + 1, k")), ALL, loose=3,
    ),
    Case(
        "matmul", "matmul_persistent", _pair, _product, (*SHAPES, (70, 40, 20, 1)),
        (Fault("num_tiles, NUM_SMS, flatten", "num_tiles - 1, NUM_SMS, flatten"),
         Fault("offs_bn = tl.where(offs_bn < N, offs_bn, 0)", "offs_bn = tl.where(offs_bn < M, offs_bn, 0)")), ALL, loose=3,
    ),
    Case(
        "matmul", "matmul_int8", _bytes, _scaled, ((45, 50, 77), (16, 32, 32), (3, 5, 7)),
        (Fault("scale_b_ptr + rn, mask=rn < N, other=0.0)", "scale_b_ptr + rn // 2, mask=rn < N, other=0.0)"),
         Fault("(rk[:, None] < K) & (rn[None, :] < N), other=0)\n        acc +=", "(rn[None, :] < N), other=0)\n        acc +=", "must stay inside tensor 'b_ptr'")), ("i8",),
    ),
    Case(
        "matmul", "matmul_fp8", _eighths, _by_blocks, ((20, 33, 70), (16, 16, 32), (3, 5, 90)),
        (Fault("(offs_n // BN) * k_blocks", "offs_n * k_blocks", "must stay inside tensor 'bs_ptr'"), Fault("        a_s_ptrs += 1\n", "")), ("f8",), loose=3,
    ),
    Case(
        "products", "split_k", lambda rng, dtype, m, n, k, split: (*_bytes(rng, dtype, m, n, k)[:2], split),
        lambda a, b, split: a.astype(np.int64) @ b.astype(np.int64), ((33, 20, 100, 4), (16, 16, 64, 1), (5, 7, 40, 3)),
        (Fault("tl.atomic_add(c_ptr", "tl.store(c_ptr", "hazard"), Fault("rk = pid_z * BK", "rk = pid_z")), ("i8",),
    ),
    Case(
        "products", "grouped_gemm", _groups, _grouped, ((50, 20, 30, 4), (33, 16, 16, 5), (7, 40, 9, 2)),
        (Fault("        first_row = end_row\n", "        first_row = end_row + 1\n"), Fault("            tile_idx += NUM_SM\n        last_problem_end = last_problem_end + num_tiles\n        first_row", "            tile_idx += 2 * NUM_SM\n        last_problem_end = last_problem_end + num_tiles\n        first_row"),
         Fault("w_ptr + g * K * N", "w_ptr + (g + 1) * K * N", "must stay inside tensor 'w_ptr'")), ALL, loose=3,
    ),
    Case(
        "products", "group_pointers", _several, lambda *given: tuple(_product(a, b) for a, b in zip(given[::2], given[1::2], strict=True)),
        ((20, 33, 17, 16, 16, 16, 5, 7, 40), (3, 4, 5)),
        (Fault("gk = tl.load(group_gemm_sizes + g * 3 + 2)", "gk = tl.load(group_gemm_sizes + g * 3 + 1)", "must stay inside"),
         Fault("c_ptr = tl.load(group_c_ptrs + g)", "c_ptr = tl.load(group_c_ptrs)"), Fault("    tile_idx += NUM_SM\n        last_problem_end = last_problem_end + num_tiles\n\n", "    tile_idx += NUM_SM + 1\n        last_problem_end = last_problem_end + num_tiles\n\n")), loose=3,
    ),
    Case(
        "products", "bmm", _stacks, lambda a, b: np.einsum("bmk,bkn->bmn", wide(a), wide(b)),
        ((3, 20, 33, 10), (2, 16, 16, 16)), (Fault("B += pid_b * K * N", "B += pid_b * M * K", "numbers"), Fault("O += pid_b * M * N", "O += pid_b", "hazard")), ALL, loose=3,
    ),
    Case(
        "products", "mv", lambda rng, dtype, m, n: normal(1)(rng, dtype, m, n) + normal(1)(rng, dtype, n),
        lambda a, v: wide(a) @ wide(v), ((21, 50), (8, 32), (1, 3)),
        (Fault("x = tl.load(v + cols + start,", "x = tl.load(v + cols,"), Fault("mask = (rows < M) & (cols + start < N)", "mask = cols + start < N", "must stay inside tensor 'A'")), ALL, loose=3,
    ),
    Case(
        "products", "conv2d", _image, _conv2d, ((2, 3, 9, 8, 5, 3, 1, 1), (1, 5, 7, 7, 17, 3, 2, 0), (1, 4, 5, 5, 4, 1, 1, 0)),
        (Fault("ow * stride - padding + s", "ow * stride - padding - s"), Fault("(iw >= 0) & (iw < W) & ", "", "must stay inside tensor 'x_ptr'")), ALL, loose=3,
    ),
    Case(
        "products", "causal_conv1d", _tokens, _causal, ((2, 37, 20, 4, 1), (1, 16, 32, 3, 0), (2, 3, 40, 4, 0)),
        (Fault("t - (WIDTH - 1) + i", "t - WIDTH + i"), Fault("(at >= 0)[:, None] & ", "", "must stay inside tensor 'x_ptr'")), ALL, loose=2,
    ),
)  # fmt: skip
