"""Formulas and faults of `kernels/attention.py`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.builtin.triton.families.case import Case, Fault
from tests.builtin.triton.families.elementwise import ALL, normal, wide


def _heads(rng: Any, dtype: Any, *shape: int) -> tuple[Any, ...]:
    *own, causal = shape
    return (*normal(3)(rng, dtype, *own), 0.35, bool(causal))


def probabilities(q: Any, k: Any, scale: float, causal: bool) -> tuple[Any, Any]:
    """Give what each query has of each key, and the logarithm of what they are divided by."""
    scores = np.einsum("...md,...nd->...mn", wide(q), wide(k)) * scale
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    top = scores.max(-1, keepdims=True)
    lse = top[..., 0] + np.log(np.exp(scores - top).sum(-1))
    return np.exp(scores - lse[..., None]), lse


def _attention(q: Any, k: Any, v: Any, scale: float, causal: bool) -> Any:
    p, lse = probabilities(q, k, scale, causal)
    return p @ wide(v), lse / np.log(2)


def _described(q: Any, k: Any, v: Any, scale: float, causal: bool = False) -> Any:
    return _attention(q, k, v, scale, causal)[0]


def _backward(rng: Any, dtype: Any, *shape: int) -> tuple[Any, ...]:
    *own, causal = shape
    q, k, v, do = normal(4)(rng, dtype, *own)
    p, lse = probabilities(q, k, 0.35, bool(causal))
    return q, k, v, do, (p @ wide(v)).astype(dtype), lse.astype(np.float32), 0.35, bool(causal)


def _slopes(q: Any, k: Any, v: Any, do: Any, out: Any, lse: Any, scale: float, causal: bool) -> Any:
    p, _ = probabilities(q, k, scale, causal)
    q, k, v, do = wide(q, k, v, do)
    dp = do @ v.swapaxes(1, 2)
    ds = np.stack([np.stack([(np.diag(row) - np.outer(row, row)) @ g for row, g in zip(*head, strict=True)])
                   for head in zip(p, dp, strict=True)])  # fmt: skip
    return ds @ k * scale, ds.swapaxes(1, 2) @ q * scale, p.swapaxes(1, 2) @ do


def _paged(rng: Any, dtype: Any, b: int, kv_heads: int, group: int, most: int) -> tuple[Any, ...]:
    page, d, pages = 8, 16, -(-most // 8)
    lens = rng.integers(1, most + 1, b).astype(np.int32)
    lens[0] = most
    table = rng.permutation(b * pages).reshape(b, pages).astype(np.int32)
    k, v = normal(2)(rng, dtype, b * pages, page, kv_heads, d)
    return *normal(1)(rng, dtype, b, kv_heads * group, d), k, v, table, lens, 0.25


def _decode(q: Any, k: Any, v: Any, table: Any, lens: Any, scale: float) -> Any:
    out = np.empty(q.shape)
    group = q.shape[1] // k.shape[2]
    for b, n in enumerate(lens):
        keys, values = (wide(x)[table[b]].reshape(-1, *x.shape[2:])[:n] for x in (k, v))
        for head in range(q.shape[1]):
            p, _ = probabilities(q[b, head][None], keys[:, head // group], scale, False)
            out[b, head] = p[0] @ values[:, head // group]
    return out


def _sequence(rng: Any, dtype: Any, heads: int, t: int, k: int, v: int) -> tuple[Any, ...]:
    return (*normal(2)(rng, dtype, heads, t, k), *normal(1)(rng, dtype, heads, t, v), 0.25)


def _linear(q: Any, k: Any, v: Any, scale: float) -> Any:
    q, k, v = wide(q, k, v)
    out = np.empty_like(v)
    for head in range(len(q)):
        state = np.zeros((q.shape[2], v.shape[2]))
        for t in range(q.shape[1]):
            state += np.outer(k[head, t], v[head, t])
            out[head, t] = q[head, t] * scale @ state
    return out


CASES = (
    Case(
        "attention", "attention", _heads, _attention, ((2, 2, 45, 16, 1), (1, 2, 45, 16, 0), (1, 1, 32, 32, 1)),
        (
            Fault("offs_m[:, None] >= (start_n", "offs_m[:, None] > (start_n"),
            Fault("acc = acc * alpha[:, None]\n", "acc = acc * alpha[0]\n"),
            Fault("K_block_ptr = tl.advance(K_block_ptr, (0, lo))", "K_block_ptr = tl.advance(K_block_ptr, (lo, 0))"),
            Fault('k = tl.load(K_block_ptr, boundary_check=(1,), padding_option="zero")', "k = tl.load(K_block_ptr)", "must stay inside tensor 'K'"),
        ), ALL, loose=2,
    ),
    Case(
        "attention", "attention_descriptor", lambda rng, dtype, *shape: _heads(rng, dtype, *shape, 0)[:4], _described,
        ((3, 32, 16), (1, 16, 32)),
        (Fault("v = desc_v.load([offset_y + start_n, 0])", "v = desc_v.load([start_n, 0])"), Fault("alpha = tl.exp(m_i - m_ij)\n        l_i = l_i * alpha + tl.sum(p, 1)\n        v = desc", "alpha = tl.exp(m_i - m_ij)\n        l_i = l_i + tl.sum(p, 1)\n        v = desc")), ALL, loose=2,
    ),
    Case(
        "attention", "attention_backward", _backward, _slopes, ((2, 37, 16, 1), (1, 32, 16, 0), (1, 5, 32, 1)),
        (
            Fault("dsT = pT * (dpT - delta[None, :])", "dsT = pT * dpT"),
            Fault("dk * sm_scale, mask=inside", "dk, mask=inside"),
            Fault("end = min(start + BLOCK, N_CTX) if CAUSAL else N_CTX", "end = min(start, N_CTX) if CAUSAL else N_CTX"),
            Fault("tl.store(DQ + rows", "tl.store(DQ + rows - off * D", "hazard"),
        ), ALL, loose=4,
    ),
    Case(
        "attention", "paged_decode", _paged, _decode, ((3, 2, 3, 45), (1, 1, 1, 5), (2, 1, 4, 16)),
        (
            Fault("number = tl.load(table_ptr + b * table_stride + page)", "number = tl.load(table_ptr + b + page)"),
            Fault("live = page * PAGE + slot < seq_len", "live = page * PAGE + slot <= seq_len"),
            Fault("number * PAGE + slot) * kv_heads", "number * PAGE + slot - 8) * kv_heads"),
            Fault("fade = tl.exp(top - new)", "fade = 1.0"),
        ), ALL, loose=2,
    ),
    Case(
        "attention", "linear_attention", _sequence, _linear, ((2, 37, 16, 20), (1, 16, 32, 16), (1, 50, 16, 40)),
        (Fault("causal = o_i[:, None] >= o_i[None, :]", "causal = o_i[:, None] > o_i[None, :]"), Fault("(K, T), (1, K), (0, i_t * BT)", "(K, T), (1, K), (0, 0)")), ALL, loose=4,
    ),
)  # fmt: skip
