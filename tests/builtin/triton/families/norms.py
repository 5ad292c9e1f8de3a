"""Formulas and faults of `kernels/norms.py`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.builtin.triton.families.case import Case, Fault
from tests.builtin.triton.families.elementwise import ALL, normal, wide


def _weighted(rng: Any, dtype: Any, m: int, n: int) -> tuple[Any, ...]:
    x = rng.standard_normal((m, n)) * 2 + 3
    return (x.astype(dtype), *normal(2)(rng, dtype, n), 1e-5)


def _layer_norm(x: Any, w: Any, b: Any, eps: float) -> Any:
    x, w, b = wide(x, w, b)
    mean, rstd = x.mean(1), 1 / np.sqrt(x.var(1) + eps)
    return (x - mean[:, None]) * rstd[:, None] * w + b, mean, rstd


def _sloped(rng: Any, dtype: Any, m: int, n: int) -> tuple[Any, ...]:
    return (*normal(2)(rng, dtype, m, n), *normal(1)(rng, dtype, n))


def _through_norm(dy: Any, x: Any, w: Any, centred: bool, eps: float) -> Any:
    """The gradients by the matrix of partial derivatives of each row."""
    dy, x, w = wide(dy, x, w)
    n = x.shape[1]
    less = np.eye(n) - centred / n
    dx, dw = np.empty_like(x), np.zeros(n)
    for row, (g, v) in enumerate(zip(dy, x, strict=True)):
        v = less @ v
        r = 1 / np.sqrt((v * v).mean() + eps)
        slope = r * less - r**3 / n * np.outer(v, v) @ less
        dx[row] = (g * w) @ slope
        dw += g * v * r
    return (dx, dw, dy.sum(0)) if centred else (dx, dw)


def _rms(rng: Any, dtype: Any, m: int, n: int, offset: int, in_f32: int) -> tuple[Any, ...]:
    return (*normal(1)(rng, dtype, m, n), *normal(1)(rng, dtype, n), 1e-6, float(offset), bool(in_f32))


def _rms_norm(x: Any, w: Any, eps: float, offset: float, in_f32: bool) -> Any:
    r = 1 / np.sqrt((wide(x) ** 2).mean(1) + eps)
    return wide(x) * r[:, None] * (offset + wide(w)), r


def _grouped(rng: Any, dtype: Any, n: int, c: int, h: int, w: int, groups: int) -> tuple[Any, ...]:
    return (*normal(1)(rng, dtype, n, c, h, w), *normal(2)(rng, dtype, c), groups)


def _group_norm(x: Any, w: Any, b: Any, groups: int) -> Any:
    shape = x.shape
    parts = wide(x).reshape(shape[0], groups, -1)
    parts = (parts - parts.mean(2, keepdims=True)) / np.sqrt(parts.var(2, keepdims=True) + 1e-5)
    return parts.reshape(shape) * wide(w)[:, None, None] + wide(b)[:, None, None]


CASES = (
    Case(
        "norms", "layer_norm", _weighted, _layer_norm, ((5, 70), (2, 32), (1, 3)),
        (
            Fault("x = tl.where(cols < N, x - mean, 0.0)", "x = x - mean"),
            Fault("b = tl.load(B + cols, mask=mask)", "b = tl.load(B + cols)", "must stay inside tensor 'B'"),
            Fault("    Y += row * stride\n", "    Y += (row + 1) * stride\n", "must stay inside tensor 'Y'"),
        ), ALL, loose=3,
    ),
    Case(
        "norms", "layer_norm_backward", _sloped, lambda dy, x, w: _through_norm(dy, x, w, True, 1e-5), ((8, 50), (3, 16)),
        (Fault("xhat * c1 + c2)) * rstd, mask=mask)\n        dw", "xhat * c1)) * rstd, mask=mask)\n        dw"),
         Fault("tl.store(DB + pid * N + cols", "tl.store(DB + cols", "hazard")), ALL, loose=5,
    ),
    Case(
        "norms", "layer_norm_backward_locked", _sloped, lambda dy, x, w: _through_norm(dy, x, w, True, 1e-5), ((7, 50),),
        (Fault("Count = Lock + GROUP_SIZE_M", "Count = Lock + 2 * GROUP_SIZE_M", "must stay inside tensor 'Lock'"),
         Fault("partial_dw += tl.load(DW, mask=mask)", "partial_dw = partial_dw")), loose=5,
    ),
    Case(
        "norms", "rms_norm", _rms, _rms_norm, ((5, 50, 0, 1), (4, 64, 1, 0)),
        (Fault("/ n_cols\n    rstd = tl.rsqrt", "/ BLOCK_SIZE\n    rstd = tl.rsqrt"),
         Fault("tl.store(R + row_idx, rstd)", "tl.store(R + row_idx + 1, rstd)", "must stay inside tensor 'R'")), ALL,
    ),
    Case(
        "norms", "rms_norm_backward", _sloped, lambda dy, x, w: _through_norm(dy, x, w, False, 1e-6), ((8, 50), (2, 16)),
        (Fault("row_end = min((row_block_id + 1) * rows_per_program, n_rows)", "row_end = (row_block_id + 1) * rows_per_program", "must stay inside tensor"),
         Fault("rstd_row * rstd_row * tl.sum", "rstd_row * tl.sum")), ALL, loose=5,
    ),
    Case(
        "norms", "group_norm", _grouped, _group_norm, ((2, 6, 3, 5, 2), (1, 8, 4, 4, 4)),
        (Fault("c = g * size +", "c = g * BLOCK_C +", "must stay inside tensor"), Fault("centred = tl.where(mask, x - mean, 0.0)", "centred = x - mean")), ALL, loose=3,
    ),
)  # fmt: skip
