"""Data-parallel training: gradients are summed over the ranks, bucket by bucket, while the backward pass goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
from attrs import frozen

from kernbench_ccl import distributed as dist
from kernbench_ccl.benches._shared import Cut, by_cubes, normal, product, require_positive, rounding
from kernbench_core.errors import UsageError
from kernbench_core.host import DeviceTensor, Runtime
from kernbench_core.values import Array
from kernbench_core.values.dtypes import numpy_dtype

TILE = 256
"""Extent of the tiles along the dimension that a product sums over."""


def backward_kernel(x_ptr, w_ptr, dy_ptr, dw_ptr, dx_ptr, T, H, place, blocks, dw_cut, dx_cut, tl):
    """Compute blocks of dW = x^T @ dy and, where `dx_ptr` is given, of dx = dy @ W^T where x > 0.

    x and dy are T x H, W is H x H, dW is number `place` of its bucket. Of a PE and the next one, one computes a block
    of dW and the other one of dx.
    """
    for job in range(tl.program_id(0), 2 * blocks, tl.num_programs(0)):
        block, kind = divmod(job, 2)
        if kind == 0:
            weight_gradient(x_ptr, dy_ptr, dw_ptr + place * H * H, T, H, dw_cut.of(block), tl)
        elif dx_ptr is not None:
            input_gradient(x_ptr, w_ptr, dy_ptr, dx_ptr, H, dx_cut.of(block), tl)


def weight_gradient(x_ptr, dy_ptr, dw_ptr, T, H, block, tl):
    """Compute a block of dW = x^T @ dy; the next tiles are on their way while these are multiplied."""
    row, col, rows, cols = block
    if rows <= 0 or cols <= 0:
        return

    def ask(t):
        some = min(TILE, T - t)
        x = tl.load(x_ptr + t * H + row, shape=(some, rows), strides=(H, 1), wait=False)
        return x, tl.load(dy_ptr + t * H + col, shape=(some, cols), strides=(H, 1), wait=False)

    acc = None
    for x, dy in one_ahead(ask, range(0, T, TILE)):
        acc = tl.dot(tl.trans(x), dy, acc)
    tl.store(dw_ptr + row * H + col, acc, strides=(H, 1))


def input_gradient(x_ptr, w_ptr, dy_ptr, dx_ptr, H, block, tl):
    """Compute a block of dx = dy @ W^T, zero where x is; the next tiles are on their way while these are multiplied."""
    row, col, rows, cols = block
    if rows <= 0 or cols <= 0:
        return

    def ask(n):
        some = min(TILE, H - n)
        dy = tl.load(dy_ptr + row * H + n, shape=(rows, some), strides=(H, 1), wait=False)
        return dy, tl.load(w_ptr + col * H + n, shape=(cols, some), strides=(H, 1), wait=False)

    acc = None
    x = tl.load(x_ptr + row * H + col, shape=(rows, cols), strides=(H, 1), wait=False)
    for dy, w in one_ahead(ask, range(0, H, TILE)):
        acc = tl.dot(dy, tl.trans(w), acc)
    tl.store(dx_ptr + row * H + col, tl.where(x > 0, acc, 0.0), strides=(H, 1))


def one_ahead(ask: Callable[[int], Any], starts: Sequence[int]) -> Iterator[Any]:
    """Yield what `ask` gives for each start, which it is asked for before the one ahead of it is given out."""
    ahead = ask(starts[0])
    for start in starts[1:]:
        given, ahead = ahead, ask(start)
        yield given
    yield ahead


@frozen(eq=False)
class Layer:
    """One layer of the whole problem: what the forward pass put in (all tokens, hidden), weights (hidden, hidden).

    `expected` is numpy's gradient of the weights, over the whole batch. Without data the arrays are None.
    """

    x: Array | None = None
    weights: Array | None = None
    expected: Array | None = None


@frozen(eq=False)
class GradientProblem:
    """The whole problem, `tokens` for each rank: the layers, and the gradient that the backward pass starts from.

    `buckets` has the numbers of the layers of each bucket, in the order of the backward pass. `communicate` and
    `compute` are the PEs of each SIP that do this, and `atol` is how far off roundings may be.
    """

    tokens: int
    hidden: int
    dtype: str
    layers: tuple[Layer, ...]
    last: Array | None
    buckets: tuple[tuple[int, ...], ...]
    communicate: tuple[int, ...]
    compute: tuple[int, ...]
    atol: float | None


def bench(
    rt: Runtime,
    tokens: int = 512,
    hidden: int = 128,
    layers: int = 10,
    bucket: int = 1,
    communication_pes: int = 8,
    dtype: Literal["f32", "f16", "bf16"] = "f32",
) -> None:
    """Add up gradients over the ranks while the backward pass goes on, `bucket` layers at a time.

    Args:
        tokens: Rows of the activations of each rank.
        hidden: Rows and columns of a layer's weights.
        layers: How many layers.
        bucket: Layers whose gradients are added up at once.
        communication_pes: PEs of a SIP that add up, and compute nothing.
        dtype: Of the arrays.
    """
    require_positive(tokens=tokens, hidden=hidden, layers=layers, bucket=bucket, communication_pes=communication_pes)
    world, cubes, pes = rt.mesh
    if communication_pes >= cubes * pes:
        raise UsageError(
            f"parameter 'communication_pes' must be less than the {cubes * pes} PEs of a SIP, not "
            f"{communication_pes!r}; leave some to compute."
        )
    made, last = draw(rt, tokens * world, hidden, layers, dtype)
    atol = None
    if rt.data:
        atol = max(rounding(layer.expected, dtype, layers + world + 1) for layer in made if layer.expected is not None)
    backwards = tuple(reversed(range(layers)))
    buckets = tuple(backwards[start : start + bucket] for start in range(0, layers, bucket))
    parts = part_pes(cubes, pes, communication_pes)
    problem = GradientProblem(tokens, hidden, dtype, made, last, buckets, *parts, atol)
    spans = np.array(dist.spawn(rank_program, world, (problem,)))
    alone, reduce, both = (spans[:, :, 1].max(axis=0) - spans[:, :, 0].max(axis=0)).tolist()
    rt.report(what="backward alone", pes=len(problem.compute), time_ns=alone)
    rt.report(what="all_reduce alone", pes=len(problem.communicate), time_ns=reduce)
    ratios = {"of_longer": both / max(alone, reduce), "of_sum": both / (alone + reduce)}
    rt.report(what="overlapped", pes=cubes * pes, time_ns=both, **ratios)


def part_pes(cubes: int, pes: int, count: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Choose `count` PEs of a SIP to communicate, the last ones of each cube in turn; return them and the others."""
    chosen = sorted(cube * pes + pes - 1 - turn for turn, cube in (divmod(number, cubes) for number in range(count)))
    return tuple(chosen), tuple(place for place in range(cubes * pes) if place not in chosen)


def draw(rt: Runtime, tokens: int, hidden: int, layers: int, dtype: str) -> tuple[tuple[Layer, ...], Array | None]:
    """Draw weights, run the forward pass with numpy, and return the layers and the gradient of what comes out."""
    if not rt.data:
        return (Layer(),) * layers, None
    weights = [normal(rt, (hidden, hidden), dtype, (2 / hidden) ** 0.5) for _ in range(layers)]
    inputs = [normal(rt, (tokens, hidden), dtype)]
    for weight in weights[:-1]:
        inputs.append(np.maximum(product(inputs[-1], weight, dtype), 0))
    last = normal(rt, (tokens, hidden), dtype, tokens**-0.5)
    return tuple(map(Layer, inputs, weights, gradients(inputs, weights, last, dtype))), last


def rank_program(rank: int, rt: Runtime, problem: GradientProblem) -> list[tuple[float, float]]:
    """Run one rank's share of the batch three times; return when each began and ended, in ns.

    First the backward pass alone, then the sums of its gradients alone, then both again, one inside the other. Had the
    third used what the second left behind, its sums would be too large.
    """
    dist.init_process_group(pes=problem.communicate, set=[f"defaults.pes={len(problem.communicate)}"])
    share = Share.place(rank, rt, problem)
    spans = []
    for compute, communicate in ((True, False), (False, True), (True, True)):
        dist.barrier()
        started, works = rt.now, list[Any]()
        for number, gradients in enumerate(share.buckets):
            if compute:
                share.backward(rt, number)
            if communicate:
                works.append(dist.all_reduce(gradients, async_op=True))
        for work in works:
            work.wait()
        spans.append((started, rt.now))
        if communicate:
            share.check(rt)
    return spans


@frozen(eq=False)
class Share:
    """A rank's tensors; those `between` have the gradients of the layers in turn, the last one is kept."""

    problem: GradientProblem
    inputs: tuple[DeviceTensor, ...]
    weights: tuple[DeviceTensor, ...]
    last: DeviceTensor
    between: tuple[DeviceTensor, DeviceTensor]
    buckets: tuple[DeviceTensor, ...]

    @classmethod
    def place(cls, rank: int, rt: Runtime, problem: GradientProblem) -> Share:
        """Place what the forward pass left of a rank's share of the batch, and all weights; copies are not timed."""
        hidden, dtype = problem.hidden, problem.dtype
        shape = (problem.tokens, hidden)
        own, near = slice(rank * shape[0], (rank + 1) * shape[0]), by_cubes(rt, shape)

        def rows(source: Array | None, name: str) -> DeviceTensor:
            given = shape if source is None else source[own]
            return rt.tensor(given, dtype, name=name, placement=near, resident=True)

        def square(source: Array | None, name: str) -> DeviceTensor:
            return rt.tensor((hidden, hidden) if source is None else source, dtype, name=name, resident=True)

        return cls(
            problem,
            tuple(rows(layer.x, f"input of layer {number}") for number, layer in enumerate(problem.layers)),
            tuple(square(layer.weights, f"weights of layer {number}") for number, layer in enumerate(problem.layers)),
            rows(problem.last, "last gradient"),
            (rt.empty(shape, dtype, name="even", placement=near), rt.empty(shape, dtype, name="odd", placement=near)),
            tuple(
                rt.empty((len(bucket) * hidden, hidden), dtype, name=f"gradients of layers {bucket[-1]} to {bucket[0]}")
                for bucket in problem.buckets
            ),
        )

    def backward(self, rt: Runtime, number: int) -> None:
        """Run the backward pass of a bucket's layers, one launch for each, on the PEs that compute."""
        rows, hidden, pes = self.last.shape[0], self.problem.hidden, self.problem.compute
        blocks = -(-len(pes) // 2)
        cubes = rt.mesh[1] if blocks % rt.mesh[1] == 0 else 1
        cuts = Cut.over(hidden, hidden, cubes, blocks // cubes), Cut.over(rows, hidden, cubes, blocks // cubes)
        for place, layer in enumerate(self.problem.buckets[number]):
            dy = self.last if layer == len(self.weights) - 1 else self.between[(layer + 1) % 2]
            dx = self.between[layer % 2] if layer else None
            rt.launch(
                backward_kernel, self.inputs[layer], self.weights[layer], dy, self.buckets[number], dx, rows, hidden,
                place, blocks, *cuts, pes=pes,
            )  # fmt: skip

    def check(self, rt: Runtime) -> None:
        """Have all gradients, as they are now, compared with numpy's of the whole batch."""
        for tensor, bucket in zip(self.buckets, self.problem.buckets, strict=True):
            wanted = [self.problem.layers[number].expected for number in bucket]
            rt.check(tensor, partial(np.concatenate, wanted), atol=self.problem.atol)


def gradients(inputs: Sequence[Array], weights: Sequence[Array], last: Array, dtype: str) -> list[Array]:
    """Compute the gradients of all weights with numpy on the whole batch: sums in f32, each product rounded once."""
    found, dy = [], last
    for x, weight in zip(reversed(inputs), reversed(weights), strict=True):
        found.append(product(x.T, dy, dtype))
        dy = np.where(x > 0, product(dy, weight.T, dtype), 0).astype(numpy_dtype(dtype))
    return found[::-1]
