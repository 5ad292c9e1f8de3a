"""qkv-gemm and mlp: the shapes of public models, right in every dtype, weights read from the PEs' own slices."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from kernbench_builtin.benches._grid import SUMS
from kernbench_builtin.benches._layers import AHEAD, ColumnBlocks, by_columns, gather
from kernbench_builtin.benches._models import MODELS
from kernbench_builtin.benches.mlp import gelu, swiglu
from kernbench_core.errors import UsageError

SMALL = {"hidden": 40, "ffn": 56, "tokens": 10, "tile_m": 8, "tile_n": 16, "tile_k": 16}


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize("layer", ["qkv", "out"])
def test_products_are_right(run, layer, dtype) -> None:
    assert run("qkv-gemm", model="gpt2", layer=layer, tokens=5, dtype=dtype).verified


@pytest.mark.parametrize(
    ("topology", "dtype"),
    [("tiny", "f16"), ("tiny", "bf16"), ("packages", "f16"), ("default", "f16")],
)
@pytest.mark.parametrize("model", ["llama3-8b", "gpt2"])
def test_feed_forward_layers_are_right(run, topology, model, dtype) -> None:
    assert run("mlp", topology, model=model, **SMALL, dtype=dtype).verified


@pytest.mark.parametrize("model", ["llama3-8b", "gpt2"])
def test_sizes_that_divide_nothing(run, model) -> None:
    assert run("mlp", model=model, **{**SMALL, "tokens": 3, "hidden": 37, "ffn": 29}).verified


def test_shapes_of_layers() -> None:
    """The products of the published configurations, multiplied out by hand."""
    assert MODELS["llama3-8b"].product("qkv") == (4096, 6144)
    assert MODELS["llama3-70b"].product("qkv") == (8192, 10240)
    assert MODELS["gpt2"].product("qkv") == (768, 2304)
    assert MODELS["mixtral-8x7b"].product("kv") == (4096, 2048)
    assert MODELS["llama3-8b"].product("up") == (4096, 14336)
    assert MODELS["llama3-70b"].product("down") == (28672, 8192)
    assert MODELS["gpt2"].product("out") == (768, 768)


def test_weights_are_local(run) -> None:
    """Each PE multiplies its own columns: of the weights nothing crosses to another package."""
    result = run("qkv-gemm", "packages", model="gpt2", layer="out", tokens=4)
    assert result.verified
    assert not any("scale_up" in use.kind for use in result.busiest)


def test_the_references() -> None:
    x, g, u = np.array([[1.0, 2.0]]), np.array([[1.0], [0.0]]), np.array([[0.0], [1.0]])
    np.testing.assert_allclose(swiglu(x, g, u, "f32"), [[1 / (1 + np.exp(-1)) * 2]], rtol=1e-6)
    np.testing.assert_allclose(gelu(np.array([-1.0, 0.0, 1.0, 3.0])), [-0.1588, 0, 0.8412, 2.9964], atol=1e-4)


def test_sizes_must_be_positive(run) -> None:
    for bench in ("qkv-gemm", "mlp"):
        with pytest.raises(UsageError) as caught:
            run(bench, tile_n=0)
        assert str(caught.value) == "parameter 'tile_n' must be a positive integer, not 0; give 1 or more."


@pytest.mark.parametrize("model", ["llama3-8b", "mixtral-8x7b"])
def test_models(run, model) -> None:
    assert run("qkv-gemm", "default", model=model, tokens=16).verified


@pytest.mark.parametrize(
    ("topology", "rows", "columns"),
    [
        ("packages", 10, 16),
        ("packages", 3, 32),
        ("packages", 1, 18),
        *(("default", *size) for size in ((10, 64), (3, 128), (1, 70))),
    ],
)
def test_every_cube_gets_a_copy_of_what_is_gathered(run, topology, rows, columns) -> None:
    """All eight copies are compared."""

    def bench(rt) -> None:
        x = rt.tensor((rows, columns), "f16", name="x", placement=by_columns(rt, columns))
        y = gather(rt, x, "y")
        assert y.replicas == 8
        rt.check(y, x.numpy())

    result = run(bench, topology)
    assert result.verified and result.max_abs_error == 0


@pytest.mark.parametrize(
    ("m", "n", "k", "weights"), [(128, 14336, 4096, 2), (128, 4096, 14336, 1), (2048, 6144, 4096, 1)]
)
def test_sums_and_what_is_loaded_ahead_fit_into_the_scratchpad(m, n, k, weights) -> None:
    units = {"pe_gemm": {"rows": 32, "columns": 64}}
    rt = SimpleNamespace(mesh=(2, 4, 8), n_pes=64, unit=units.__getitem__, scratchpad_bytes=2 << 20)
    rows, cols, terms = ColumnBlocks.over(rt, m, n, k, "f16", ("auto", "auto", "auto"), weights).tile
    sums, loads = 4 * rows * cols * weights * SUMS, 2 * terms * (rows + cols * weights) * (AHEAD + 2)
    assert sums + loads <= 2 << 20
