"""sparse-gemm: right at any density; zero blocks cost neither bytes nor time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_builtin.benches.sparse_gemm import block_mask
from kernbench_core.errors import UsageError

DENSITIES = (1.0, 0.5, 0.25, 0.0)


@pytest.mark.parametrize(
    ("topology", "dtype"),
    [
        ("packages", "f16"),
        *(("tiny", dtype) for dtype in ("f16", "bf16", "f32")),
        ("default", "f16"),
    ],
)
def test_products_are_right_where_nothing_divides_anything(run, topology, dtype) -> None:
    sizes = {"M": 50, "N": 36, "K": 50, "tile_n": 8, "tile_k": 7}
    assert run("sparse-gemm", topology, **sizes, density=0.3, dtype=dtype).verified


@pytest.mark.parametrize("density", DENSITIES)
def test_every_density_is_right_on_one_package_of_two(run, density) -> None:
    result = run("sparse-gemm", "packages", M=32, N=32, K=64, tile_k=16, density=density, options={"device": "sip:1"})
    assert result.verified
    assert {op.component_id.partition(".")[0] for op in result.op_log} == {"sip1"}


def time_and_bytes(run, topology, **sizes):
    """Return, for each density, the time of the kernel and the bytes of operands, which the mask is not."""
    found = []
    for density in DENSITIES:
        result = run("sparse-gemm", topology, **sizes, density=density, options={"verify_data": False})
        reads = [op.params for op in result.op_log if op.op_name == "dma_read"]
        assert {params["dtype"] for params in reads} <= {"f16", "int8"}
        found.append((result.phases["kernel"], sum(p["nbytes"] for p in reads if p["dtype"] == "f16")))
    return zip(*found, strict=True)


def check(times, nbytes) -> None:
    assert times[0] > times[1] > times[2] > times[3]
    assert times[2] <= 0.4 * times[0]
    assert nbytes == tuple(density * nbytes[0] for density in DENSITIES)


def test_time_and_bytes_fall_with_density(run) -> None:
    times, nbytes = time_and_bytes(run, "tiny", M=64, N=64, K=512, tile_n=32, tile_k=32)
    check(times, nbytes)
    assert nbytes[0] == 4 * 2 * 16 * (16 * 32 + 32 * 32) * 2, "PEs x columns x blocks x (A and B) x 2 B"


def test_time_and_bytes_fall_with_density_at_1024_cubed(run) -> None:
    check(*time_and_bytes(run, "default"))


@given(st.integers(1, 20), st.integers(1, 20), st.floats(0, 1))
def test_blocks_are_dealt_evenly(pes, blocks, density) -> None:
    mask = block_mask(np.random.default_rng(0), pes, blocks, density)
    each = mask.sum(axis=1)
    assert mask.shape == (pes, blocks)
    assert mask.sum() == round(density * pes * blocks)
    assert each.max() - each.min() <= 1


def test_density_is_a_share(run) -> None:
    with pytest.raises(UsageError) as caught:
        run("sparse-gemm", density=1.5)
    assert str(caught.value) == "parameter 'density' must be from 0 to 1, not 1.5; it is a share of blocks."
