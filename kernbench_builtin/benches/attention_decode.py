"""Attention of one new token, against a cache of keys and values: the keys of a head are split over PEs.

The roof is memory's: keys and values once, 4 * head_dim bytes for each in f16, over what HBM sustains. On `default` a
context of 8192 of `llama3-8b` (32 MiB) takes 1.31 of it, 32768 take 1.07; 1024 take 4.5, as
putting the parts of the PEs together takes longer than reading them.

What it takes: every PE streams keys from its own slice, and then values, all in the queue of its DMA from the start.
It keeps the scores of its keys in the scratchpad, so one maximum serves all of them and values are summed up in the
matrix unit without rescaling. Meanwhile the PEs of a head tell each other their maxima. At the end each scales its
sum to the common one; the first PE adds up the norms while its last product runs, then sums go up a tree of queues.
"""

from __future__ import annotations

from typing import Final, Literal

from attrs import evolve, frozen

from kernbench_builtin.benches._grid import BlockSize
from kernbench_builtin.benches._layers import IN_EACH_CUBE
from kernbench_builtin.benches._models import MODELS, ModelName
from kernbench_builtin.benches._room import halvings, queue_bytes, that_fits
from kernbench_builtin.benches._shared import read_back, require_divisor, require_positive
from kernbench_builtin.benches._stream import asked_ahead, evenly
from kernbench_builtin.benches.attention import LOG2_E, attention
from kernbench_builtin.sizes.decorator import sizes_from
from kernbench_core.host import ArrayOrTensor, DeviceTensor, Runtime
from kernbench_core.memory import Interleave, Placement, Shard
from kernbench_core.values import Array
from kernbench_core.values.dtypes import itemsize

#: Below any score: the maximum of no keys.
LOWEST: Final = -1e30


@frozen
class Split:
    """How keys are dealt: `parts` PEs share those of a head, and each such team has heads one after another.

    `rows` queries of a head come together, with `context` keys in blocks of `tile_k`. No team is in two groups of
    `pes` PEs, which are the packages where heads divide over them.
    """

    heads: int
    rows: int
    context: int
    pes: int
    parts: int
    tile_k: int

    def of(self, pe: int, pes: int) -> tuple[int, range, list[tuple[int, int]]]:
        """Return which part a PE of `pes` has, its heads, and its blocks of keys in each of them."""
        (group, place), teams = divmod(pe, self.pes), self.pes // self.parts
        (team, part), share = divmod(place, self.parts), -(-self.context // self.parts)
        blocks = evenly(min(part * share, self.context), min(part * share + share, self.context), self.tile_k)
        if team >= teams:
            return part, range(0), blocks
        team, teams = group * teams + team, teams * (pes // self.pes)
        return part, range(self.heads * team // teams, self.heads * (team + 1) // teams), blocks


def decode_kernel(q_ptr, k_ptr, v_ptr, o_ptr, split, D, scale, AHEAD, LENT, tl):
    """Compute one PE's part of its heads; the first PE of a team stores them."""
    me, rows = tl.program_id(0), split.rows
    part, heads, blocks = split.of(me, tl.num_programs(0))
    base = me - part
    others = [base + (part + other) % split.parts for other in range(1, split.parts)]

    def load(block):
        ptr, row, count = block
        return tl.load(ptr + row * D, shape=(count, D), wait=False)

    stream = [(ptr, head * split.context + start, count)
              for head in heads for ptr in (k_ptr, v_ptr) for start, count in blocks]  # fmt: skip
    tiles = (tile for _, tile in asked_ahead(stream, load, AHEAD))
    for head in heads:
        q = tl.load(q_ptr + head * rows * D, shape=(rows, D), wait=False)
        keys = next(tiles, None)  # the first asks for AHEAD more behind it
        q, scores, top = q * (scale * LOG2_E), [], tl.full((rows, 1), LOWEST, tl.float32)
        for number in range(len(blocks)):
            scores.append(tl.dot(q, tl.trans(keys), wait=False))
            keys = next(tiles) if number + 1 < len(blocks) else None
            if number > 1:
                top = tl.maximum(top, tl.max(scores[number - 2], axis=1, keep_dims=True))
        for score in scores[-2:]:
            top = tl.maximum(top, tl.max(score, axis=1, keep_dims=True))
        for other in others:
            tl.send(top, other, wait=False)
        whole, norm, acc = top, tl.zeros((rows, 1), tl.float32), tl.zeros((rows, D), tl.float32)
        for number, score in enumerate(scores):
            weights = tl.exp2(score - top)
            norm = norm + tl.sum(weights, axis=1, keep_dims=True)
            acc = tl.dot(weights.to(q.dtype), next(tiles), acc, wait=False)
            for other in others[number :: len(blocks)]:  # some at each block, while its values are on their way
                whole = tl.maximum(whole, tl.recv((rows, 1), "f32", other, copy=not LENT))
        for other in [] if blocks else others:
            whole = tl.maximum(whole, tl.recv((rows, 1), "f32", other, copy=not LENT))
        fade = tl.exp2(top - whole)
        norm = norm * fade
        if part:
            tl.send(norm, base, wait=False)
        for other in [] if part else others:
            norm = norm + tl.recv((rows, 1), "f32", other, copy=not LENT)
        acc = add_up(acc * fade, part, split.parts, base, LENT, tl)
        if part == 0:
            tl.store(o_ptr + head * rows * D, acc * (1 / norm))


def add_up(x, part, parts, base, LENT, tl):
    """Add up the tiles of a team in a tree, in whose root, its first PE, they are all."""
    step = 1
    while step < parts:
        if part % (2 * step):
            tl.send(x, base + part - step, wait=False)
            break
        if part + step < parts:
            x = x + tl.recv(x.shape, "f32", base + part + step, copy=not LENT)
        step *= 2
    return x


@sizes_from(
    q=("batch", "heads", "head_dim"), k=("batch", "kv_heads", "context", "head_dim"),
    v=("batch", "kv_heads", "context", "head_dim"),
)  # fmt: skip
def bench(
    rt: Runtime,
    model: ModelName = "llama3-8b",
    context: int = 8192,
    batch: int = 1,
    heads: int | None = None,
    kv_heads: int | None = None,
    head_dim: int | None = None,
    tile_k: BlockSize = "auto",
    dtype: Literal["f16", "bf16"] = "f16",
    q: ArrayOrTensor | None = None,
    k: ArrayOrTensor | None = None,
    v: ArrayOrTensor | None = None,
) -> DeviceTensor:
    """Compute attention of one new token of each sequence over keys and values on the device.

    Args:
        model: Whose sizes are taken where they are not given.
        context: Keys of a sequence.
        batch: Sequences.
        heads: Heads of q; the model's by default.
        kv_heads: Heads of k and v, a divisor of heads; the model's by default.
        head_dim: Elements of a head; the model's by default.
        tile_k: Keys in a tile; auto takes twice the columns of the matrix unit, or what the scratchpad holds.
        dtype: Of the arrays.
    """
    shape = MODELS[model]
    heads = shape.heads if heads is None else heads
    kv_heads = shape.kv_heads if kv_heads is None else kv_heads
    d = shape.head_dim if head_dim is None else head_dim
    require_positive(context=context, batch=batch, heads=heads, kv_heads=kv_heads, head_dim=d, tile_k=tile_k)
    require_divisor("kv_heads", kv_heads, "heads", heads)
    teams, rows = batch * kv_heads, heads // kv_heads
    groups = 1 if teams % rt.mesh[0] else rt.mesh[0]
    pes = rt.n_pes // groups
    split, ahead = _split(rt, Split(teams, rows, context, pes, pes, 0), teams // groups, tile_k, d * itemsize(dtype))
    queries = rt.operand(_flat(q), (teams * rows, d), dtype, name="q", placement=IN_EACH_CUBE)
    cache = [rt.tensor((teams * context, d), dtype, name=name, resident=True) if given is None
             else rt.operand(_flat(given), (teams * context, d), dtype, name=name)
             for name, given in (("k", k), ("v", v))]  # fmt: skip
    o = rt.empty((teams * rows, d), dtype, name="o", placement=_beside(rt, teams * rows * d * itemsize(dtype), teams))
    queue = rt.unit("pe_ipcq")
    lent = queue.get("tier") == "tcm" and 4 * rows * d <= queue.get("slot_bytes", 0)
    rt.launch(decode_kernel, queries, *cache, o, split, d, d**-0.5, ahead, lent)
    read_back(rt, o, q, k, v)
    held = [tensor.snapshot() for tensor in (queries, *cache)]

    def expected() -> Array:
        left, keys, values = (each() for each in held)
        parted = (keys.reshape(teams, context, d), values.reshape(teams, context, d))
        return attention(left.reshape(teams * rows, 1, d), *parted, d**-0.5, False).reshape(-1, d)

    rt.check(o, expected)
    return o


def _split(rt: Runtime, whole: Split, heads: int, tile_k: BlockSize, row_bytes: int) -> tuple[Split, int]:
    """Choose blocks of keys, how many PEs share one of a group's heads, and how many blocks are asked for ahead.

    So many PEs share it as have room for their queues. Besides these there are two tiles ahead and those of the
    products in the unit's queue, with holes between them, the scores of all keys, two blocks of weights and four sums.
    Of what is left, more tiles ahead may take a quarter of the scratchpad.
    """
    most = 2 * int(rt.unit("pe_gemm").get("columns", 64)) if tile_k == "auto" else tile_k
    tiles = [tile for tile, _ in zip(halvings(most), range(4), strict=False)] if tile_k == "auto" else [most]

    def held(split: Split) -> int:
        keys = -(-split.context // split.parts) + 2 * split.tile_k
        queues = (split.parts - 1) * queue_bytes(rt)
        return queues + 9 * split.tile_k * row_bytes + 4 * split.rows * (keys + 2 * row_bytes)

    choices = (
        evolve(whole, parts=parts_of(whole.pes, heads, whole.context, tile, parts), tile_k=tile)
        for parts in halvings(whole.pes)
        for tile in tiles
    )
    split = that_fits(rt, choices, held, ", or a smaller -p context")
    most, left = rt.scratchpad_bytes // 4, rt.scratchpad_bytes - held(split)
    tile = split.tile_k * row_bytes
    return split, min(max(2, most // tile), 2 + left // tile)


def parts_of(pes: int, heads: int, context: int, tile_k: int, most: int) -> int:
    """Choose how many PEs share a head, so that the busiest has least to do; each has a block of its keys at least.

    That is `most` PEs at most. Putting a head together takes as long as some 4 blocks.
    """

    def work(parts: int) -> int:
        return -(-heads // (pes // parts)) * (-(-context // parts) + 4 * tile_k)

    return min(range(1, min(most, -(-context // tile_k)) + 1), key=work)


def _flat(given: ArrayOrTensor | None) -> ArrayOrTensor | None:
    """Return rows of all heads below each other; a tensor of the device must lie so already."""
    return given if given is None or isinstance(given, DeviceTensor) else given.reshape(-1, given.shape[-1])


def _beside(rt: Runtime, nbytes: int, heads: int) -> dict[str, Placement] | None:
    """Return the placement of results in the cubes that compute them, dealt to their slices; None where uneven."""
    packages, cubes, pes = rt.mesh
    if heads % (packages * cubes) or nbytes % (packages * cubes * pes * 4):
        return None
    return {"sip": Shard(0), "cube": Shard(0), "pe": Interleave(nbytes // (packages * cubes * pes))}
