"""A mixture of experts: tokens are sent to the ranks of the experts that their gates choose, and back."""

from __future__ import annotations

from typing import Literal

import numpy as np
from attrs import frozen

from kernbench_ccl import distributed as dist
from kernbench_ccl.benches._shared import Cut, cut_share, normal, product, require_multiple, require_positive, rounding
from kernbench_core.errors import UsageError
from kernbench_core.host import DeviceTensor, Runtime
from kernbench_core.values import Array
from kernbench_core.values.dtypes import numpy_dtype
from kernbench_core.wording import brief

STAGES = ("gate_ns", "route_ns", "dispatch_ns", "experts_ns", "combine_ns")
BLOCK = 32
"""Rows that a PE gathers at a time."""


def gate_kernel(x_ptr, gate_ptr, out_ptr, T, H, E, tl):
    """Compute one PE's rows of softmax(x @ gate), in f32."""
    first, rows = cut_share(T, tl.num_programs(0), tl.program_id(0))
    if rows > 0:
        x = tl.load(x_ptr + first * H, shape=(rows, H))
        logits = tl.dot(x, tl.load(gate_ptr, shape=(H, E)))
        tl.store(out_ptr + first * E, tl.softmax(logits, dim=1))


def pack_kernel(x_ptr, token_ptr, out_ptr, N, H, tl):
    """Put N rows into the order in which they are sent: row i is that of token `token[i]`."""
    first, rows = cut_share(N, tl.num_programs(0), tl.program_id(0))
    for row in range(first, first + rows, BLOCK):
        count = min(BLOCK, first + rows - row)
        token = tl.load(token_ptr + row, shape=(count,))
        tl.store(out_ptr + row * H, tl.load(x_ptr + token[:, None] * H + tl.arange(0, H)[None, :]))


def expert_kernel(x_ptr, w_ptr, y_ptr, expert, segments, H, grid, tl):
    """Compute one PE's part of y = x @ w for an expert's rows: (first row, rows) for each rank that they come from."""
    for start, count in segments:
        row, col, rows, cols = Cut(count, H, 1, grid).of(tl.program_id(0))
        if rows > 0 and cols > 0:
            x = tl.ref(x_ptr + (start + row) * H, shape=(rows, H))
            w = tl.ref(w_ptr + expert * H * H + col, shape=(H, cols), strides=(H, 1))
            y = tl.ref(y_ptr + (start + row) * H + col, shape=(rows, cols), strides=(H, 1))
            tl.composite(op="gemm", a=x, b=w, out=y)


def combine_kernel(back_ptr, place_ptr, weight_ptr, y_ptr, T, H, K, tl):
    """Add up, for each token of one PE, its K rows of what came back, weighted, in f32."""
    first, rows = cut_share(T, tl.num_programs(0), tl.program_id(0))
    for row in range(first, first + rows, BLOCK):
        count = min(BLOCK, first + rows - row)
        total = None
        for k in range(K):
            place = tl.load(place_ptr + k * T + row, shape=(count,))
            weight = tl.load(weight_ptr + k * T + row, shape=(count,))
            part = tl.load(back_ptr + place[:, None] * H + tl.arange(0, H)[None, :]) * weight[:, None]
            total = part if total is None else total + part
        tl.store(y_ptr + row * H, total)


@frozen(eq=False)
class MoeProblem:
    """The whole problem, before it is dealt: tokens of all ranks, the gate, and each expert's matrix.

    Expert e is on rank e // (experts / ranks).
    """

    hidden: int
    top_k: int
    dtype: str
    x: Array
    gate: Array
    experts: Array

    @property
    def count(self) -> int:
        """How many experts there are."""
        return len(self.experts)


@frozen(eq=False)
class Route:
    """Where a rank's tokens go, as its host read it from the gate.

    `token` has the token of each row sent, experts in order; `counts` the rows for each expert. `place` (K, T) has the
    row that comes back for each choice of each token, `weight` (K, T) what it counts.
    """

    token: Array
    place: Array
    weight: Array
    counts: Array

    @classmethod
    def of(cls, gates: Array, top_k: int) -> Route:
        """Choose for each token the `top_k` experts with the largest gates, whose weights add up to 1."""
        tokens, experts = gates.shape
        chosen = np.argsort(-gates, axis=1, kind="stable")[:, :top_k]
        weight = np.take_along_axis(gates, chosen, axis=1)
        weight /= weight.sum(axis=1, keepdims=True)
        order = np.argsort(chosen.reshape(-1), kind="stable")
        place = np.empty(tokens * top_k, np.int32)
        place[order] = np.arange(tokens * top_k)
        return cls(
            (order // top_k).astype(np.int32),
            np.ascontiguousarray(place.reshape(tokens, top_k).T),
            np.ascontiguousarray(weight.T.astype(np.float32)),
            np.bincount(chosen.reshape(-1), minlength=experts).astype(np.int32),
        )


def bench(
    rt: Runtime,
    tokens: int = 256,
    hidden: int = 256,
    experts: int = 8,
    top_k: int = 2,
    skew: float = 0.0,
    dtype: Literal["f16", "bf16", "f32"] = "f16",
) -> None:
    """Send each token to the experts that its gate chooses, on whichever rank, and add up what comes back.

    Args:
        tokens: Tokens of all ranks, a multiple of their number.
        hidden: Elements of a token.
        experts: Experts, dealt over the ranks.
        top_k: Experts that a token is sent to.
        skew: How much the gate prefers the first experts.
        dtype: Of the arrays.
    """
    require_positive(tokens=tokens, hidden=hidden, experts=experts, top_k=top_k)
    world = rt.mesh[0]
    require_multiple("tokens", tokens, world, "the number of ranks")
    require_multiple("experts", experts, world, "the number of ranks")
    if top_k > experts:
        raise UsageError(f"parameter 'top_k' must be at most 'experts', {experts}, not {brief(top_k)}; give less.")
    problem = draw(rt, tokens, hidden, experts, top_k, skew, dtype)
    for rank, (rows, times) in enumerate(dist.spawn(rank_program, world, (problem,))):
        stages = dict(zip(STAGES, times, strict=True))
        rt.report(rank=rank, rows=int(rows.sum()), largest_expert=int(rows.max()), **stages)


def draw(rt: Runtime, tokens: int, hidden: int, experts: int, top_k: int, skew: float, dtype: str) -> MoeProblem:
    """Draw the problem. Each token's first feature is 1, and the gate's first row prefers low experts by `skew`."""
    x = normal(rt, (tokens, hidden), dtype)
    gate = normal(rt, (hidden, experts), dtype, hidden**-0.5)
    matrices = normal(rt, (experts, hidden, hidden), dtype, hidden**-0.5)
    x[:, 0] = 1
    gate[0] = -skew * np.arange(experts) / experts
    return MoeProblem(hidden, top_k, dtype, x, gate, matrices)


def rank_program(rank: int, rt: Runtime, problem: MoeProblem) -> tuple[Array, list[float]]:
    """Run one rank's tokens and experts; return the rows that each expert got, and the time of each stage, in ns."""
    dist.init_process_group()
    world, hidden, dtype = dist.get_world_size(), problem.hidden, problem.dtype
    tokens, local = len(problem.x) // world, problem.count // world
    own = problem.x[rank * tokens : (rank + 1) * tokens]
    mine = problem.experts[rank * local : (rank + 1) * local].reshape(-1, hidden)
    x, gate = rt.tensor(own, name="x"), rt.tensor(problem.gate, name="gate")
    experts = rt.tensor(mine, name="experts")
    gates = rt.empty((tokens, problem.count), "f32", name=f"gates of rank {rank}")
    coming = rt.empty((world, local), "int32", name="rows for each expert")
    packed, back = (rt.empty((tokens * problem.top_k, hidden), dtype, name=name) for name in ("packed", "back"))
    y = rt.empty((tokens, hidden), dtype, name=f"y of rank {rank}")
    stamps = [rt.now]

    rt.launch(gate_kernel, x, gate, gates, tokens, hidden, problem.count)
    stamps.append(rt.now)

    rt.copy_to_host(gates)
    route = Route.of(gates.numpy(), problem.top_k)
    token, place = rt.tensor(route.token, name="token"), rt.tensor(route.place, name="place")
    weight, counts = rt.tensor(route.weight, name="weight"), rt.tensor(route.counts, name="counts")
    stamps.append(rt.now)

    dist.all_to_all_single(coming, counts)
    rt.copy_to_host(coming)
    rows = coming.numpy()
    sent, received = route.counts.reshape(world, local).sum(axis=1).tolist(), rows.sum(axis=1).tolist()
    # A rank whose experts nobody chose still has tensors, of a row that nobody looks at.
    inside, outside = (rt.empty((max(1, sum(received)), hidden), dtype, name=name) for name in ("inside", "outside"))
    rt.launch(pack_kernel, x, token, packed, tokens * problem.top_k, hidden)
    dist.all_to_all_single(inside, packed, received, sent)
    stamps.append(rt.now)

    run_experts(rt, inside, experts, outside, rows)
    stamps.append(rt.now)

    dist.all_to_all_single(back, outside, sent, received)
    rt.launch(combine_kernel, back, place, weight, y, tokens, hidden, problem.top_k)
    stamps.append(rt.now)
    _check(rt, problem, own, gates, y)
    return rows.sum(axis=0), np.diff(stamps).tolist()


def run_experts(rt: Runtime, x: DeviceTensor, experts: DeviceTensor, y: DeviceTensor, rows: Array) -> None:
    """Launch a product for each expert that got rows, side by side, each on PEs of its own, and wait for all.

    `rows[i, e]` is how many rows rank i sent to expert e of this rank; they lie in this order.
    """
    hidden, local = x.shape[1], rows.shape[1]
    size = max(1, rt.n_pes // local)
    starts = (np.cumsum(rows) - rows.reshape(-1)).reshape(rows.shape)
    handles = []
    for expert in np.flatnonzero(rows.sum(axis=0)).tolist():
        pairs = zip(starts[:, expert].tolist(), rows[:, expert].tolist(), strict=True)
        segments = [(start, count) for start, count in pairs if count]
        grid = Cut.over(max(count for _, count in segments), hidden, 1, size).grid
        pes = [(expert * size + place) % rt.n_pes for place in range(size)]
        handles.append(
            rt.launch(expert_kernel, x, experts, y, expert, segments, hidden, grid, pes=pes, wait=False)
        )
    for handle in handles:
        rt.wait(handle)


def _check(rt: Runtime, problem: MoeProblem, x: Array, gates: DeviceTensor, y: DeviceTensor) -> None:
    """Have the gates compared with numpy's, and y with what numpy makes of the whole problem and the gates' choice.

    The choice is the device's, so that two experts whose gates are equal but for a rounding are no error.
    """
    rt.check(gates, lambda: softmax(product(x, problem.gate, "f32")))
    expected = mixture(problem, x, gates.numpy())
    rt.check(y, expected, atol=rounding(expected, problem.dtype, 2))


def mixture(problem: MoeProblem, x: Array, gates: Array) -> Array:
    """Compute with numpy, for each token, the weighted sum of what the experts that `gates` prefers make of it."""
    chosen = np.argsort(-gates, axis=1, kind="stable")[:, : problem.top_k]
    weight = np.take_along_axis(gates, chosen, axis=1)
    weight /= weight.sum(axis=1, keepdims=True)
    y = np.zeros(x.shape, np.float32)
    for expert, matrix in enumerate(problem.experts):
        token, choice = np.nonzero(chosen == expert)
        y[token] += weight[token, choice, None] * product(x[token], matrix, problem.dtype).astype(np.float32)
    return y.astype(numpy_dtype(problem.dtype))


def softmax(x: Array) -> Array:
    """Compute the softmax of each row."""
    powers: Array = np.exp(x - x.max(axis=1, keepdims=True))
    powers /= powers.sum(axis=1, keepdims=True)
    return powers
