"""The feed-forward layers: gate, up and down with SwiGLU, or up and down with GELU.

The roof of 128 tokens of `llama3-8b` on the preset `default` is its multiplications, 172 us; the kernels take 1.24
times that, part of which is bringing what the first layer gives to all cubes. The kernel is that of `gemv`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from kernbench_builtin.benches._grid import BlockSize
from kernbench_builtin.benches._layers import activations, by_columns, gather, launch_columns, weights
from kernbench_builtin.benches._models import MODELS, ModelName
from kernbench_builtin.benches._shared import product, read_back, require_positive
from kernbench_builtin.sizes.decorator import sizes_from
from kernbench_core.errors import UsageError
from kernbench_core.host import ArrayOrTensor, DeviceTensor, Runtime
from kernbench_core.values import Array
from kernbench_core.values.dtypes import numpy_dtype


def gated(tl, gate, up):
    """Finish the first layer of a gated model: silu(x @ gate) * (x @ up)."""
    return gate * tl.sigmoid(gate) * up


def rounded(tl, up):
    """Finish the first layer of the others: gelu(x @ up), in its tanh form."""
    return 0.5 * up * (1.0 + tl.tanh(0.7978845608 * (up + 0.044715 * up * up * up)))


def swiglu(x: Array, gate: Array, up: Array, dtype: str) -> Array:
    """Compute silu(x @ gate) * (x @ up) with numpy in f32, rounded once."""
    wide = x.astype(np.float32)
    g = wide @ gate.astype(np.float32)
    u = wide @ up.astype(np.float32)
    out: Array = (g / (1 + np.exp(-g)) * u).astype(numpy_dtype(dtype))
    return out


def gelu(x: Array) -> Array:
    """Compute the tanh form of GELU with numpy in f32."""
    out: Array = 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi, dtype=np.float32) * (x + np.float32(0.044715) * x**3)))
    return out


@sizes_from(x=("tokens", "hidden"), gate=("hidden", "ffn"), up=("hidden", "ffn"), down=("ffn", "hidden"))
def bench(
    rt: Runtime,
    model: ModelName = "llama3-8b",
    tokens: int = 128,
    hidden: int | None = None,
    ffn: int | None = None,
    tile_m: BlockSize = "auto",
    tile_n: BlockSize = "auto",
    tile_k: BlockSize = "auto",
    dtype: Literal["f16", "bf16"] = "f16",
    x: ArrayOrTensor | None = None,
    gate: ArrayOrTensor | None = None,
    up: ArrayOrTensor | None = None,
    down: ArrayOrTensor | None = None,
) -> DeviceTensor:
    """Run a model's feed-forward layers on (tokens, hidden) activations; of a mixture, one expert's.

    Args:
        model: Whose sizes are taken where they are not given.
        tokens: Rows of the activations.
        hidden: Columns of the activations; the model's by default.
        ffn: Width between the layers; the model's by default.
        tile_m: Rows of the output in a tile.
        tile_n: Columns of the output in a tile.
        tile_k: Terms of the sum in a tile.
        dtype: Of the arrays.
    """
    shape = MODELS[model]
    hidden = shape.hidden if hidden is None else hidden
    ffn = shape.ffn if ffn is None else ffn
    require_positive(tokens=tokens, hidden=hidden, ffn=ffn, tile_m=tile_m, tile_n=tile_n, tile_k=tile_k)
    if gate is not None and not shape.gated:
        raise UsageError(f"parameter 'gate' must be left out, as model {model!r} has no gate; choose another model.")
    tiles = (tile_m, tile_n, tile_k)
    given = activations(rt, tokens, hidden, dtype, "x", x)
    first = weights(rt, hidden, ffn, dtype, "up", up)
    h = rt.empty((tokens, ffn), dtype, name="h", placement=by_columns(rt, ffn))
    gates = weights(rt, hidden, ffn, dtype, "gate", gate) if shape.gated else None
    if gates is not None:
        launch_columns(rt, given, [gates, first], h, tiles, gated)
    else:
        launch_columns(rt, given, [first], h, tiles, rounded)
    last = weights(rt, ffn, hidden, dtype, "down", down)
    y = rt.empty((tokens, hidden), dtype, name="y", placement=by_columns(rt, hidden))
    launch_columns(rt, gather(rt, h, "h in each cube"), [last], y, tiles)
    read_back(rt, y, x, gate, up, down)
    rt.check(y, _expected(given, gates, first, last))
    return y


def _expected(x: DeviceTensor, gate: DeviceTensor | None, up: DeviceTensor, down: DeviceTensor) -> Callable[[], Array]:
    """Return what computes the layers with numpy, from what the tensors hold now."""
    rows, first, last, dtype = x.snapshot(), up.snapshot(), down.snapshot(), x.dtype
    gates = None if gate is None else gate.snapshot()

    def layers() -> Array:
        if gates is not None:
            middle = swiglu(rows(), gates(), first(), dtype)
        else:
            middle = gelu(rows().astype(np.float32) @ first().astype(np.float32)).astype(numpy_dtype(dtype))
        return product(middle, last(), dtype)

    return layers
