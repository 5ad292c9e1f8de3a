"""Attention in the flash style: an online softmax over blocks of keys, so that no row of scores is ever whole.

The roof is the matrix unit's where heads have 128 elements: 4 * head_dim operations for each query and each key that
it sees, over its peak; the softmax of such a pair takes 8 cycles of a lane, two thirds of that time. On `default`
2048 tokens of `llama3-8b` take 1.09 of it: half of each block on the diagonal is computed and thrown away, 6 % of
all, and the first scores and the last softmax have nothing beside them. Few tokens (128: 64 rows for each PE) take
4.3 of what their products take.

What it takes: the products of one block are in the unit's queue while the softmax of another is computed. Blocks of
keys are on their way two ahead, the scores of the next block are asked for before the softmax of the present one, and
weights times values is not waited for, but added to by the next. exp(s * scale) is exp2(q * scale * log2(e) k), with
the factor in q once. A finished block of rows is normalised and stored one block late, as a composite, so that its
last product is over by then. K and V lie in the cube that reads them, dealt to all of its slices.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import e, log2
from typing import Final, Literal

import numpy as np
from attrs import frozen

from kernbench_builtin.benches._grid import BlockSize
from kernbench_builtin.benches._models import MODELS, ModelName
from kernbench_builtin.benches._room import halvings, that_fits
from kernbench_builtin.benches._shared import read_back, require_divisor, require_positive
from kernbench_builtin.benches._stream import asked_ahead, composite_tile, evenly
from kernbench_builtin.sizes.decorator import sizes_from
from kernbench_core.host import ArrayOrTensor, DeviceTensor, Runtime
from kernbench_core.memory import Interleave, Placement, Shard
from kernbench_core.values import Array
from kernbench_core.values.dtypes import itemsize

#: So many rows of scores are computed at a time for the reference.
_ROWS: Final = 128
LOG2_E: Final = log2(e)


@frozen
class KeyStep:
    """One block of keys for one block of queries: rows of q and of k, how many, and where it stands among the keys."""

    row: int
    rows: int
    key: int
    keys: int
    first: bool
    last: bool
    diagonal: bool


def attention_kernel(q_ptr, k_ptr, v_ptr, o_ptr, steps_of, D, scale, TILE, tl):
    """Compute one PE's rows of all (head, token) rows, a block at a time over the blocks of keys that it sees."""
    queries = peak = norm = acc = done = None

    def load(step):
        q = tl.load(q_ptr + step.row * D, shape=(step.rows, D), wait=False) if step.first else None
        return q, *(tl.load(ptr + step.key * D, shape=(step.keys, D), wait=False) for ptr in (k_ptr, v_ptr))

    def score(loaded):
        nonlocal queries
        _, (q, k, _) = loaded
        if q is not None:
            queries = q * (scale * LOG2_E)
        return tl.dot(queries, tl.trans(k), wait=False)

    def store(acc, norm, row):
        tl.composite("math", acc, 1 / norm, o_ptr + row * D, math_op="mul", tile_m=TILE[0], tile_n=TILE[1])

    for (step, (_, _, v)), scores in asked_ahead(asked_ahead(steps_of(tl.program_id(0)), load, 1), score, 1):
        if step.diagonal:
            at = tl.arange(0, step.rows)
            scores = tl.where(at[:, None] >= at[None, :], scores, float("-inf"))
        highest = tl.max(scores, axis=1, keep_dims=True)
        top = highest if step.first else tl.maximum(peak, highest)
        weights = tl.exp2(scores - top)
        total = tl.sum(weights, axis=1, keep_dims=True)
        weights = weights.to(v.dtype)
        if step.first:
            if done is not None:
                store(*done)
            norm, acc = total, tl.dot(weights, v, wait=False)
        else:
            fade = tl.exp2(peak - top)
            norm, acc = norm * fade + total, tl.dot(weights, v, acc * fade, wait=False)
        peak, done = top, (acc, norm, step.row)
    if done is not None:
        store(*done)


@frozen
class KeySteps:
    """What each PE does: its `share` of the rows of all heads, in blocks of `tile_q`, over keys in blocks of `tile_k`.

    `paired` exchanges the blocks of a head by `fold`.
    """

    tokens: int
    total: int
    share: int
    group: int
    causal: bool
    paired: bool
    tile_q: int
    tile_k: int

    def __call__(self, pe: int) -> Iterator[KeyStep]:
        """Yield the steps of a PE in order."""
        at, last = pe * self.share, min(pe * self.share + self.share, self.total)
        while at < last:
            head, token = divmod(at, self.tokens)
            if self.paired:
                token = fold(token, self.tile_q, self.tokens)
                rows = min(self.tile_q - token % self.tile_q, last - at, self.tokens - token)
            else:
                rows = min(self.tile_q, last - at, self.tokens - token)
            blocks = evenly(0, token if self.causal else self.tokens, self.tile_k)
            if self.causal:
                blocks.append((token, rows))
            for number, (start, keys) in enumerate(blocks):
                key, last_one = head // self.group * self.tokens + start, number + 1 == len(blocks)
                yield KeyStep(
                    head * self.tokens + token, rows, key, keys, number == 0, last_one, self.causal and last_one
                )
            at += rows


def fold(token, BQ, tokens):
    """Exchange whole blocks of BQ tokens: the first, the last, the second, the last but one, …; short ones stay.

    A token has as many keys as tokens before it, so neighbouring blocks then have as much work as any others.
    """
    block, inside = divmod(token, BQ)
    blocks = tokens // BQ
    if block < blocks:
        block = blocks - 1 - block // 2 if block % 2 else block // 2
    return block * BQ + inside


def attention(q: Array, k: Array, v: Array, scale: float, causal: bool) -> Array:
    """Compute softmax(q kᵀ scale) v with numpy in f32, head by head, rounded once to the dtype of `q`.

    q has shape (heads, tokens, d), k and v have (kv_heads, tokens, d), with as many heads or a divisor of them.
    """
    out = np.empty(q.shape, q.dtype)
    group = len(q) // len(k)
    for at in range(len(q)):
        _attend(q[at], k[at // group], v[at // group], scale, causal, out[at])
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
    tile_q: BlockSize = "auto",
    tile_k: BlockSize = "auto",
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
        tile_q: Rows of q in a tile; auto takes twice the longer side of the matrix unit, or what the scratchpad holds.
        tile_k: Rows of k and v in a tile; auto likewise.
        dtype: Of the arrays.
    """
    shape = MODELS[model]
    heads = shape.heads if heads is None else heads
    kv_heads = shape.kv_heads if kv_heads is None else kv_heads
    d = shape.head_dim if head_dim is None else head_dim
    require_positive(tokens=tokens, heads=heads, kv_heads=kv_heads, head_dim=d)
    tile_q, tile_k = (_tile(rt, d) if tile == "auto" else tile for tile in (tile_q, tile_k))
    require_positive(tile_q=tile_q, tile_k=tile_k)
    require_divisor("kv_heads", kv_heads, "heads", heads)
    operands = [_rows(rt, name, given, (n, tokens, d), dtype) for name, given, n in
                (("q", q, heads), ("k", k, kv_heads), ("v", v, kv_heads))]  # fmt: skip
    o = rt.empty((heads * tokens, d), dtype, name="o")
    share, scale = -(-heads * tokens // rt.n_pes), d**-0.5
    paired = causal and share >= 2 * tile_q
    if paired:
        # an even number of blocks for each PE: light and heavy ones come in pairs
        tile_q = -(-share // (2 * -(-share // (2 * tile_q))))
    steps = KeySteps(tokens, heads * tokens, share, heads // kv_heads, causal, paired, tile_q, tile_k)
    rt.launch(attention_kernel, *operands, o, steps, d, scale, composite_tile(rt, d))
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
    return rt.operand(given, (heads * tokens, d), dtype, name=name, placement=by_cube(rt, heads * tokens, d, dtype))


def by_cube(rt: Runtime, rows: int, columns: int, dtype: str) -> dict[str, Placement] | None:
    """Return the placement that cuts rows over the cubes and deals them one by one to the slices of a cube.

    None where they do not divide: then each PE has its equal share.
    """
    packages, cubes, pes = rt.mesh
    dealt = Interleave(columns * itemsize(dtype))
    return None if rows % (packages * cubes * pes) else {"sip": Shard(0), "cube": Shard(0), "pe": dealt}


def _tile(rt: Runtime, d: int) -> int:
    """Choose the rows of a tile: twice the longer side of the matrix unit, halved until everything fits.

    There are scores of two blocks and two copies of one in f32, weights in f16, three blocks of k and v, k turned, q,
    and four sums.
    """
    unit = rt.unit("pe_gemm")
    most = 2 * max(int(unit.get("rows", 64)), int(unit.get("columns", 64)))

    def held(tile: int) -> int:
        return 18 * tile * tile + (7 * 2 + 2 * 2 + 4 * 4) * tile * d

    return that_fits(rt, halvings(most), held, ", or a smaller -p head_dim")
