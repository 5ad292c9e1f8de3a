"""Attention in the flash style: an online softmax over blocks of keys, so that no row of scores is ever whole."""

from __future__ import annotations

from functools import partial
from typing import Final, Literal

import numpy as np

from kernbench_builtin.benches._models import MODELS, ModelName
from kernbench_builtin.benches._shared import read_back, require_divisor, require_positive
from kernbench_core.compute import in_threads
from kernbench_core.host import ArrayOrTensor, DeviceTensor, Runtime, sizes_from
from kernbench_core.values import Array

#: So many rows of scores are computed at a time for the reference.
_ROWS: Final = 128


def attention_kernel(q_ptr, k_ptr, v_ptr, o_ptr, tokens, total, share, group, D, scale, causal, paired, BQ, BK, tl):
    """Compute one PE's rows of all (head, token) rows, BQ at a time; blocks of K and V are asked for one ahead."""
    at = tl.program_id(0) * share
    last = min(at + share, total)
    while at < last:
        head, token = divmod(at, tokens)
        bq = min(BQ, last - at, tokens - token)
        if paired:
            token = fold(token, BQ, tokens)
            bq = min(BQ - token % BQ, last - at, tokens - token)
        row = head * tokens + token
        keys = head // group * tokens
        end = token + bq if causal else tokens
        q = tl.load(q_ptr + row * D, shape=(bq, D))
        peak = tl.full((bq, 1), float("-inf"), tl.float32)
        norm = tl.zeros((bq, 1), tl.float32)
        acc = tl.zeros((bq, D), tl.float32)
        k, v = load_block(k_ptr, v_ptr, keys, 0, end, D, BK, tl)
        for start in range(0, end, BK):
            next_k, next_v = load_block(k_ptr, v_ptr, keys, start + BK, end, D, BK, tl)
            scores = tl.dot(q, tl.trans(k)) * scale
            if causal and start + k.shape[0] > token:
                seen = token + tl.arange(0, bq)[:, None] >= start + tl.arange(0, k.shape[0])[None, :]
                scores = tl.where(seen, scores, float("-inf"))
            new_peak = tl.maximum(peak, tl.max(scores, axis=1, keep_dims=True))
            weights = tl.exp(scores - new_peak)
            fade = tl.exp(peak - new_peak)
            norm = norm * fade + tl.sum(weights, axis=1, keep_dims=True)
            acc = tl.dot(weights.to(v.dtype), v, acc * fade)
            peak, k, v = new_peak, next_k, next_v
        tl.store(o_ptr + row * D, acc / norm)
        at += bq


def fold(token, BQ, tokens):
    """Exchange whole blocks of BQ tokens: the first, the last, the second, the last but one, …; short ones stay.

    A token has as many keys as tokens before it, so neighbouring blocks then have as much work as any others.
    """
    block, inside = divmod(token, BQ)
    blocks = tokens // BQ
    if block < blocks:
        block = blocks - 1 - block // 2 if block % 2 else block // 2
    return block * BQ + inside


def load_block(k_ptr, v_ptr, keys, start, end, D, BK, tl):
    """Ask for the keys and values of tokens `start` to `start` + BK, without waiting; None beyond the end."""
    rows = min(BK, end - start)
    if rows <= 0:
        return None, None
    at = (keys + start) * D
    return tl.load(k_ptr + at, shape=(rows, D), wait=False), tl.load(v_ptr + at, shape=(rows, D), wait=False)


def attention(q: Array, k: Array, v: Array, scale: float, causal: bool) -> Array:
    """Compute softmax(q kᵀ scale) v with numpy in f32, head by head, rounded once to the dtype of `q`.

    q has shape (heads, tokens, d), k and v have (kv_heads, tokens, d), with as many heads or a divisor of them.
    """
    out = np.empty(q.shape, q.dtype)
    group = len(q) // len(k)
    heads = [partial(_attend, q[at], k[at // group], v[at // group], scale, causal, out[at]) for at in range(len(q))]
    for _ in in_threads(heads):
        pass
    return out


def _attend(q: Array, k: Array, v: Array, scale: float, causal: bool, out: Array) -> None:
    """Compute one head of `attention` into `out`, some rows at a time: as few as stay in a core's cache."""
    queries, keys, values = q.astype(np.float32), k.astype(np.float32), v.astype(np.float32)
    later = np.triu(np.ones((_ROWS, _ROWS), bool), 1)
    for first in range(0, len(queries), _ROWS):
        last = min(first + _ROWS, len(queries))
        seen = last if causal else len(keys)
        scores = queries[first:last] @ keys[:seen].T
        scores *= np.float32(scale)
        if causal:
            own = scores[:, first:]
            np.copyto(own, -np.inf, where=later[: own.shape[0], : own.shape[1]])
        scores -= scores.max(axis=1, keepdims=True)
        weights = np.exp(scores, out=scores)
        out[first:last] = (weights @ values[:seen]) / weights.sum(axis=1, keepdims=True)


@sizes_from(
    q=[("heads", "tokens", "head_dim"), ("heads*tokens", "head_dim")],
    k=[("kv_heads", "tokens", "head_dim"), ("kv_heads*tokens", "head_dim")],
    v=[("kv_heads", "tokens", "head_dim"), ("kv_heads*tokens", "head_dim")],
)
def bench(
    rt: Runtime,
    model: ModelName = "llama3-8b",
    tokens: int = 128,
    heads: int | None = None,
    kv_heads: int | None = None,
    head_dim: int | None = None,
    causal: bool = True,
    tile_q: int = 128,
    tile_k: int = 128,
    dtype: Literal["f16", "bf16"] = "f16",
    q: ArrayOrTensor | None = None,
    k: ArrayOrTensor | None = None,
    v: ArrayOrTensor | None = None,
) -> DeviceTensor:
    """Compute grouped-query attention with the model's heads, the rows of all heads dealt over the PEs.

    Args:
        model: Whose sizes are taken where they are not given.
        tokens: Length of the sequence.
        heads: Heads of q; the model's by default.
        kv_heads: Heads of k and v, a divisor of heads; the model's by default.
        head_dim: Elements of a head; the model's by default.
        causal: A token attends to itself and those before it only.
        tile_q: Rows of q in a tile.
        tile_k: Rows of k and v in a tile.
        dtype: Of the arrays.
    """
    shape = MODELS[model]
    heads = shape.heads if heads is None else heads
    kv_heads = shape.kv_heads if kv_heads is None else kv_heads
    d = shape.head_dim if head_dim is None else head_dim
    require_positive(tokens=tokens, heads=heads, kv_heads=kv_heads, head_dim=d, tile_q=tile_q, tile_k=tile_k)
    require_divisor("kv_heads", kv_heads, "heads", heads)
    operands = [_rows(rt, name, given, (n, tokens, d), dtype) for name, given, n in
                (("q", q, heads), ("k", k, kv_heads), ("v", v, kv_heads))]  # fmt: skip
    o = rt.empty((heads * tokens, d), dtype, name="o")
    share, scale = -(-heads * tokens // rt.n_pes), d**-0.5
    paired = causal and share >= 2 * tile_q
    if paired:
        # an even number of blocks for each PE: light and heavy ones come in pairs
        tile_q = -(-share // (2 * -(-share // (2 * tile_q))))
    group = heads // kv_heads
    sizes = (tokens, heads * tokens, share, group, d)
    rt.launch(attention_kernel, *operands, o, *sizes, scale, causal, paired, tile_q, tile_k)
    read_back(rt, o, q, k, v)
    held = [operand.snapshot() for operand in operands]

    def expected() -> Array:
        queries, keys, values = (rows().reshape(-1, tokens, d) for rows in held)
        return attention(queries, keys, values, scale, causal).reshape(-1, d)

    rt.check(o, expected)
    return o


def _rows(rt: Runtime, name: str, given: ArrayOrTensor | None, shape: tuple[int, int, int], dtype: str) -> DeviceTensor:
    """Place the rows of all heads one below the other; a tensor of the device holds them so already."""
    heads, tokens, d = shape
    if given is not None and len(given.shape) == 3:
        if isinstance(given, DeviceTensor):
            return rt.operand(given, shape, dtype, name=name)
        given = given.reshape(-1, d)
    return rt.operand(given, (heads * tokens, d), dtype, name=name)
