"""Formulas and faults of `kernels/elementwise.py`."""

from __future__ import annotations

from math import erf
from typing import Any

import numpy as np

from tests.builtin.triton.families.case import Case, Fault

_ERF = np.vectorize(erf, otypes=[float])


def normal(count: int) -> Any:
    """Give what makes `count` arrays of normal numbers."""

    def make(rng: Any, dtype: Any, *shape: int) -> tuple[Any, ...]:
        return tuple(rng.standard_normal(shape).astype(dtype) for _ in range(count))

    return make


def wide(*arrays: Any) -> Any:
    """Give arrays in float64."""
    found = [np.asarray(each).astype(np.float64) for each in arrays]
    return found if len(found) > 1 else found[0]


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _gelu(x: Any, tanh: bool) -> Any:
    x = wide(x)
    if tanh:
        return x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    return x / 2 * (1 + _ERF(x / np.sqrt(2)))


def _gelu_slope(dy: Any, x: Any) -> Any:
    dy, x = wide(dy, x)
    return dy * ((1 + _ERF(x / np.sqrt(2))) / 2 + x * np.exp(-x * x / 2) / np.sqrt(2 * np.pi))


def _biased(rng: Any, dtype: Any, m: int, n: int, turned: int, act: str, residual: bool) -> tuple[Any, ...]:
    x = rng.standard_normal((n, m)).T if turned else rng.standard_normal((m, n))
    x = x.astype(dtype, order="K")
    more = rng.standard_normal((m, n)).astype(dtype) if residual else None
    return x, rng.standard_normal(n).astype(dtype), more, act


def _bias_act(x: Any, bias: Any, residual: Any, act: str) -> Any:
    y = wide(x) + wide(bias)
    y = {"relu": np.maximum(y, 0), "silu": y * _sigmoid(y), "leaky": np.where(y < 0, y / 100, y), "none": y}[act]
    return y if residual is None else y + wide(residual)


def _swiglu_slopes(dc: Any, a: Any, b: Any) -> Any:
    dc, a, b = wide(dc, a, b)
    s = _sigmoid(a)
    return dc * b * s * (1 + a * (1 - s)), dc * a * s


def _clamped(x: Any, low: float, high: float) -> Any:
    x, low, high = wide(x), float(np.float32(low)), float(np.float32(high))
    return np.where(x <= low, 2 * low, np.where(x >= high, 2 * high, x))


def _adamw(p: Any, g: Any, m: Any, v: Any, lr: float, b1: float, b2: float, eps: float, decay: float, t: int) -> Any:
    p, g, m, v = wide(p, g, m, v)
    m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g**2
    return p - lr * decay * p - lr * m / (1 - b1**t) / (np.sqrt(v / (1 - b2**t)) + eps), m, v


def _moments(rng: Any, dtype: Any, n: int) -> tuple[Any, ...]:
    p, g = normal(2)(rng, dtype, n)
    m, v = rng.standard_normal(n).astype(np.float32), rng.random(n, np.float32)
    return p, g, m, v, 0.1, 0.9, 0.99, 1e-6, 0.05, 3


ALL = ("f32", "f16", "bf16")
CASES = (
    Case(
        "elementwise", "add", normal(2), lambda x, y: wide(x) + wide(y), ((1000,), (1,), (7, 37)),
        (
            Fault("y = tl.load(y_ptr + offsets, mask=mask)\n    tl.store", "y = tl.load(y_ptr + offsets)\n    tl.store", "must stay inside tensor 'y_ptr'"),
            Fault("block_start = pid * BLOCK_SIZE", "block_start = pid * (BLOCK_SIZE // 2)", "hazard"),
            Fault("x_ptr + offsets, mask=mask)\n    y =", "x_ptr + offsets + 1, mask=mask)\n    y =", "must stay inside tensor 'x_ptr'"),
        ), ALL,
    ),
    Case(
        "elementwise", "gelu", lambda rng, dtype, n, tanh: (*normal(1)(rng, dtype, n), bool(tanh)), _gelu,
        ((300, 0), (300, 1), (128, 0)),
        (Fault("0.7071067811865476))\n\n\n@triton.jit\ndef _gelu_tanh", "0.7978845608028654))\n\n\n@triton.jit\ndef _gelu_tanh"),
         Fault("% args[\"BLOCK_SIZE\"] == 0", "% args[\"BLOCK_SIZE\"] != 0", "must stay inside tensor 'x_ptr'")), ALL,
    ),
    Case(
        "elementwise", "gelu_backward", normal(2), _gelu_slope, ((300,), (5,)),
        (Fault("tl.math.exp(-0.5 * x * x)", "tl.math.exp(-0.5 * x)"),), ALL,
    ),
    Case(
        "elementwise", "bias_act", _biased, _bias_act,
        ((33, 50, 0, "relu", True), (33, 50, 1, "silu", False), (16, 32, 0, "leaky", True), (5, 70, 1, "none", True)),
        (
            Fault("other=0.0).to(tl.float32)\n    y = x + bias", "other=0.0).to(tl.float32)\n    y = x + 2 * bias"),
            Fault("stride_om + rn[None, :] * stride_on, y,", "stride_on + rn[None, :] * stride_om, y,", "must stay inside"),
            Fault("mask = (rm[:, None] < M) & (rn[None, :] < N)", "mask = rm[:, None] < M", "must stay inside tensor"),
        ), ALL,
    ),
    Case(
        "elementwise", "swiglu", normal(2), lambda a, b: wide(a) * _sigmoid(wide(a)) * wide(b), ((6, 100), (3, 64)),
        (Fault("b_ptr += program_id * stride\n", "b_ptr += program_id\n"),), ALL,
    ),
    Case(
        "elementwise", "swiglu_backward", normal(3), _swiglu_slopes, ((6, 100), (3, 64)),
        (Fault("(silu * (1 - sig) + sig)", "(silu * (1 - sig) + silu)"),), ALL,
    ),
    Case(
        "elementwise", "clamp_band", lambda rng, dtype, n: (*normal(1)(rng, dtype, n), -0.75, 0.6), _clamped,
        ((100,), (64,)), (Fault("(low < x) & (x < high)", "(low < x) | (x < high)"),
                          Fault("offs >= 0, \"off", "offs > 0, \"off", "offsets begin at 0")),
    ),
    Case(
        "elementwise", "adamw", _moments, _adamw, ((150,), (64,)),
        (Fault("p = p * (1 - lr * decay)", "p = p - lr * decay"), Fault("beta2, step", "beta1, step")), ("f32", "bf16"),
    ),
)  # fmt: skip
