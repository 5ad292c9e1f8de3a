"""Formulas and faults of `kernels/softmax.py`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.builtin.triton.families.case import Case, Fault
from tests.builtin.triton.families.elementwise import ALL, wide


def log_softmax(x: Any) -> Any:
    """Give the logarithms of a softmax along the last axis."""
    x = wide(x)
    x = x - x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def _large(rng: Any, dtype: Any, *shape: int) -> tuple[Any, ...]:
    """Numbers of which `exp` overflows."""
    return ((rng.standard_normal(shape) * 100 + 90).astype(dtype),)


def _logged(rng: Any, dtype: Any, m: int, n: int, log: int) -> tuple[Any, ...]:
    return (*_large(rng, dtype, m, n), bool(log))


def _of_probabilities(rng: Any, dtype: Any, *shape: int) -> tuple[Any, ...]:
    dy, x = rng.standard_normal((2, *shape))
    return dy.astype(dtype), np.exp(log_softmax(x)).astype(dtype)


def _slope(dy: Any, y: Any) -> Any:
    dy, y = wide(dy, y)
    return y * (dy - (dy * y).sum(-1, keepdims=True))


def _labelled(rng: Any, dtype: Any, m: int, n: int, tenths: int) -> tuple[Any, ...]:
    x = (rng.standard_normal((m, n)) * 30).astype(dtype)
    target = rng.integers(0, n, m)
    target[1::3] = -100
    return x, target, -100, tenths / 10


def _cross_entropy(x: Any, target: Any, ignore: int, smoothing: float) -> Any:
    logs, n = log_softmax(x), x.shape[1]
    kept = target != ignore
    wanted = np.full(x.shape, smoothing / n)
    wanted[np.nonzero(kept)[0], target[kept]] += 1 - smoothing
    count = kept.sum()
    return kept[:, None] * (np.exp(logs) - wanted) / count, kept * -(wanted * logs).sum(1) / count


def _two(rng: Any, dtype: Any, m: int, n: int, mean: int) -> tuple[Any, ...]:
    p, q = log_softmax(rng.standard_normal((m, n))), np.exp(log_softmax(rng.standard_normal((m, n)) * 3))
    q[:, ::7] = 0
    return p.astype(dtype), q.astype(dtype), bool(mean)


def _kl_div(p: Any, q: Any, mean: bool) -> Any:
    p, q = wide(p, q)
    each = np.where(q > 0, q * (np.log(np.where(q > 0, q, 1)) - p), 0)
    return each.mean(1) if mean else each.sum(1)


CASES = (
    Case(
        "softmax", "softmax", _large, lambda x: np.exp(log_softmax(x)), ((7, 45), (1, 1), (9, 64)),
        (
            Fault("row - tl.max(row, axis=0)", "row"),
            Fault('mask=mask, other=-float("inf")).to(tl.float32)\n        row_minus', "mask=mask, other=900.0).to(tl.float32)\n        row_minus"),
            Fault("row_idx * output_row_stride", "row_start * output_row_stride"),
            Fault("range(row_start, n_rows, row_step", "range(row_start, n_rows + 1, row_step", "must stay inside tensor 'input_ptr'"),
        ), ALL,
    ),
    Case(
        "softmax", "online_softmax", _logged, lambda x, log: log_softmax(x) if log else np.exp(log_softmax(x)),
        ((5, 77, 0), (5, 77, 1), (2, 32, 0)),
        (Fault("d * tl.exp(m - new)", "d"), Fault("while at < n_cols:", "while at < n_cols - BLOCK:")), ALL,
    ),
    Case(
        "softmax", "softmax_backward", _of_probabilities, _slope, ((6, 19), (4, 16), (1, 3)),
        (Fault("tl.sum(dy * y, 1, keep_dims=True)", "tl.sum(dy * y, 0, keep_dims=True)"),
         Fault("mask = (rows < M) & (cols < N)\n    at = rows * N", "mask = (rows < M) & (cols < N + 1)\n    at = rows * N", "must stay inside tensor 'dy_ptr'")), ALL,
    ),
    Case(
        "softmax", "cross_entropy", _labelled, _cross_entropy, ((7, 70, 0), (4, 33, 2)),
        (
            Fault("if y == ignore_index:", "if y == ignore_index + 1:", "must stay inside tensor 'x_ptr'"),
            Fault("x_offsets != y, p - eps", "x_offsets + 1 != y, p - eps"),
            Fault("y = tl.load(y_ptr + program_id)", "y = tl.load(y_ptr + program_id + 1)", "must stay inside tensor 'y_ptr'"),
        ), ALL,
    ),
    Case(
        "softmax", "kl_div", _two, _kl_div, ((4, 100, 0), (3, 64, 1)),
        (Fault("tl.where(q > 0, q * (", "tl.where(q >= 0, 1e-3 + q * ("), Fault("row * n_cols + cols, mask=mask, other=0.0)\n        total", "row + cols, mask=mask, other=0.0)\n        total")),
    ),
)  # fmt: skip
