"""rmsnorm and layernorm: right for any size and dtype, against torch's definition written out in f64."""

from __future__ import annotations

import numpy as np
import pytest

from kernbench_builtin.benches._models import MODELS
from kernbench_builtin.benches.layernorm import layernorm
from kernbench_builtin.benches.rmsnorm import rmsnorm
from kernbench_core.errors import UsageError


@pytest.mark.parametrize("bench", ["rmsnorm", "layernorm"])
@pytest.mark.parametrize(
    ("topology", "dtype"),
    [
        *(("tiny", dtype) for dtype in ("f32", "f16", "bf16")),
        ("packages", "f32"),
        *(("default", dtype) for dtype in ("f32", "f16", "bf16")),
    ],
)
def test_rows_are_right(run, bench, topology, dtype) -> None:
    assert run(bench, topology, tokens=37, cols=33, dtype=dtype).verified


@pytest.mark.parametrize("bench", ["rmsnorm", "layernorm"])
@pytest.mark.parametrize(("tokens", "cols", "block"), [(1, 1, 1), (3, 5, 8), (9, 257, 2)])
def test_sizes_that_no_pe_and_no_block_divides(run, bench, tokens, cols, block) -> None:
    assert run(bench, tokens=tokens, cols=cols, block=block).verified


@pytest.mark.parametrize("bench", ["rmsnorm", "layernorm"])
@pytest.mark.parametrize("model", MODELS)
def test_the_model_gives_the_columns(run, bench, model) -> None:
    result = run(bench, model=model, tokens=4)
    assert result.verified
    shapes = {op.params["shape"] for op in result.op_log if op.op_name == "dma_read"}
    assert shapes == {(1, MODELS[model].hidden)}


def test_the_references() -> None:
    x = np.array([[3.0, 4.0], [0.0, 2.0]])
    w, b = np.array([1.0, 2.0]), np.array([0.5, 0.0])
    root = np.sqrt(12.5)
    np.testing.assert_allclose(rmsnorm(x, w, 0.0), [[3 / root, 8 / root], [0, 2 * np.sqrt(2)]])
    np.testing.assert_allclose(layernorm(x, w, b, 0.0), [[-0.5, 2.0], [-0.5, 2.0]])


@pytest.mark.parametrize("bench", ["rmsnorm", "layernorm"])
def test_sizes_must_be_positive(run, bench) -> None:
    with pytest.raises(UsageError) as caught:
        run(bench, tokens=0)
    assert str(caught.value) == "parameter 'tokens' must be a positive integer, not 0; give 1 or more."
