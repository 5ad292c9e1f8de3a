"""Feed-forward layers, tensor parallel: W1 cut by columns, W2 by rows, the partial products added up over the ranks."""

from __future__ import annotations

from functools import partial
from typing import Literal

import numpy as np
from attrs import frozen

from kernbench_ccl import distributed as dist
from kernbench_ccl.benches._shared import (
    Cut,
    by_cubes,
    drawn,
    product,
    product_kernel,
    require_multiple,
    require_positive,
    rounding,
)
from kernbench_core.host import DeviceTensor, Runtime
from kernbench_core.values import Array
from kernbench_core.values.dtypes import numpy_dtype


@frozen(eq=False)
class MlpProblem:
    """The whole problem, before it is cut: activations (tokens, hidden) and a pair of weights for each layer.

    `expected` is numpy's result and `atol` how far off roundings may be. Without data the arrays are None.
    """

    tokens: int
    hidden: int
    ffn: int
    layers: int
    activation: str
    dtype: str
    x: Array | None
    pairs: tuple[tuple[Array | None, Array | None], ...]
    expected: Array | None
    atol: float | None


def bench(
    rt: Runtime,
    tokens: int = 128,
    hidden: int = 256,
    ffn: int = 1024,
    layers: int = 2,
    activation: Literal["gelu", "relu"] = "gelu",
    dtype: Literal["f16", "bf16", "f32"] = "f16",
) -> None:
    """Run feed-forward layers tensor parallel; partial products are all-reduced where the GEMM wrote them.

    Args:
        tokens: Rows of the activations.
        hidden: Columns of the activations.
        ffn: Width between the layers, dealt over the ranks.
        layers: How many layers.
        activation: What is between the two products of a layer.
        dtype: Of the arrays.
    """
    require_positive(tokens=tokens, hidden=hidden, ffn=ffn, layers=layers)
    world = rt.mesh[0]
    require_multiple("ffn", ffn, world, "the number of ranks")
    x = drawn(rt, (tokens, hidden), dtype)
    pairs = tuple(
        (drawn(rt, (hidden, ffn), dtype, hidden**-0.5), drawn(rt, (ffn, hidden), dtype, ffn**-0.5))
        for _ in range(layers)
    )
    expected = None if x is None else feed_forward(x, pairs, activation, dtype)
    atol = None if expected is None else rounding(expected, dtype, layers * (world + 1))
    problem = MlpProblem(tokens, hidden, ffn, layers, activation, dtype, x, pairs, expected, atol)
    times = np.max(dist.spawn(rank_program, world, (problem,)), axis=0)
    for layer, (up, down, reduce) in enumerate(times):
        rt.report(layer=layer, up_ns=up, down_ns=down, all_reduce_ns=reduce)


def rank_program(rank: int, rt: Runtime, problem: MlpProblem) -> list[list[float]]:
    """Run one rank's share of all layers; return, for each, how long it took to go up, down, and to add up, in ns.

    Only one tensor has the activations of a layer, then this rank's part of the product, then the sum of all parts,
    which the next layer reads: whoever used a stale copy of it would get something else.
    """
    dist.init_process_group()
    tokens, hidden, dtype = problem.tokens, problem.hidden, problem.dtype
    share = problem.ffn // dist.get_world_size()
    own = slice(rank * share, (rank + 1) * share)
    _, cubes, pes = rt.mesh
    pairs = [_place(rt, problem, layer, own) for layer in range(problem.layers)]
    scratch = rt.tensor((tokens, hidden) if problem.x is None else problem.x, dtype, name=f"scratch of rank {rank}")
    h = rt.empty((tokens, share), dtype, name=f"h of rank {rank}")
    times = []
    for up, down in pairs:
        started = rt.now
        rt.launch(product_kernel, scratch, up, h, hidden, Cut.over(tokens, share, cubes, pes), problem.activation)
        went_up = rt.now
        rt.launch(product_kernel, h, down, scratch, share, Cut.over(tokens, hidden, cubes, pes), "")
        went_down = rt.now
        dist.all_reduce(scratch)
        times.append([went_up - started, went_down - went_up, rt.now - went_down])
    rt.check(scratch, partial(np.asarray, problem.expected), atol=problem.atol)
    return times


def _place(rt: Runtime, problem: MlpProblem, layer: int, own: slice) -> tuple[DeviceTensor, DeviceTensor]:
    """Place this rank's columns of W1 and rows of W2."""
    first, second = problem.pairs[layer]
    share = own.stop - own.start

    def place(source: Array | None, shape: tuple[int, int], name: str) -> DeviceTensor:
        given = shape if source is None else source
        return rt.tensor(given, problem.dtype, name=f"{name} of layer {layer}", placement=by_cubes(rt, shape))

    up = place(None if first is None else first[:, own], (problem.hidden, share), "W1")
    return up, place(None if second is None else second[own], (share, problem.hidden), "W2")


def feed_forward(
    x: Array, pairs: tuple[tuple[Array | None, Array | None], ...], activation: str, dtype: str
) -> Array:
    """Compute all layers with numpy on the whole problem: sums in f32, each product rounded once."""
    for up, down in pairs:
        assert up is not None and down is not None
        wide = x.astype(np.float32) @ up.astype(np.float32)
        x = product(activate(wide, activation).astype(numpy_dtype(dtype)), down, dtype)
    return x


def activate(x: Array, activation: str) -> Array:
    """Compute the tanh form of GELU, or ReLU, with numpy in f32."""
    if activation == "relu":
        y: Array = np.maximum(x, 0)
    else:
        y = 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi, dtype=np.float32) * (x + np.float32(0.044715) * x**3)))
    return y
