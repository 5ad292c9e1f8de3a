"""The products around attention: queries, keys and values, and the output projection."""

from __future__ import annotations

from typing import Literal

from kernbench_builtin.benches._grid import BlockSize
from kernbench_builtin.benches._layers import activations, by_columns, launch_columns, weights
from kernbench_builtin.benches._models import MODELS, ModelName
from kernbench_builtin.benches._shared import check_product, read_back, require_positive
from kernbench_builtin.sizes.decorator import sizes_from
from kernbench_core.host import ArrayOrTensor, DeviceTensor, Runtime


@sizes_from(x=("tokens", "K"), w=("K", "N"))
def bench(
    rt: Runtime,
    model: ModelName = "llama3-8b",
    layer: Literal["qkv", "q", "kv", "out"] = "qkv",
    tokens: int = 128,
    tile_m: BlockSize = "auto",
    tile_n: BlockSize = "auto",
    tile_k: BlockSize = "auto",
    dtype: Literal["f16", "bf16"] = "f16",
    x: ArrayOrTensor | None = None,
    w: ArrayOrTensor | None = None,
) -> DeviceTensor:
    """Multiply (tokens, K) activations by a layer's (K, N) weights, each PE its own columns.

    Args:
        model: Whose sizes are taken where they are not given.
        layer: Which weights: those of q, k and v, of q alone, of k and v, or of the output.
        tokens: Rows of the activations.
        tile_m: Rows of the output in a tile.
        tile_n: Columns of the output in a tile.
        tile_k: Terms of the sum in a tile.
        dtype: Of the arrays.
    """
    require_positive(tokens=tokens, tile_m=tile_m, tile_n=tile_n, tile_k=tile_k)
    k, n = MODELS[model].product(layer) if w is None else w.shape
    left = activations(rt, tokens, k, dtype, "x", x)
    right = weights(rt, k, n, dtype, "w", w)
    y = rt.empty((tokens, n), dtype, name="y", placement=by_columns(rt, n))
    launch_columns(rt, left, [right], y, (tile_m, tile_n, tile_k))
    read_back(rt, y, x, w)
    check_product(rt, y, left, right)
    return y
