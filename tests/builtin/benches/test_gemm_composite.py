"""gemm-composite: right for any size and dtype; a pinned operand takes one DMA read per tile out of the log."""

from __future__ import annotations

from collections import Counter

import pytest

from kernbench_core.errors import UsageError

DTYPES = ("f16", "bf16", "f32", "int8")
MACHINES = [
    ("packages", "f16", True),
    ("default", "f16", True),
    *(("tiny", name, pin) for name in DTYPES for pin in (True, False)),
]


@pytest.mark.parametrize(("topology", "dtype", "pin_a"), MACHINES)
def test_products_are_right_where_nothing_divides_anything(run, topology, dtype, pin_a) -> None:
    params = {"M": 50, "N": 36, "K": 30, "tile_m": 9, "tile_n": 8, "tile_k": 13, "dtype": dtype, "pin_a": pin_a}
    assert run("gemm-composite", topology, **params).verified


@pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 1), (3, 1, 5), (5, 129, 2)])
def test_fewer_rows_than_pes_and_thin_matrices(run, m, n, k) -> None:
    assert run("gemm-composite", M=m, N=n, K=k).verified


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_default_size_on_the_default_machine(run, dtype) -> None:
    assert run("gemm-composite", "default", dtype=dtype).verified


def test_one_package_of_two(run, small) -> None:
    result = run("gemm-composite", "packages", **small, options={"device": "sip:1"})
    assert result.verified
    assert {op.component_id.partition(".")[0] for op in result.op_log} == {"sip1"}


def test_pinning_takes_exactly_one_read_per_tile_out_of_the_log(run) -> None:
    """4 PEs hold 2 x 2 blocks of 32 x 48, as these have the least sides; 2 tiles along M, 2 along N, 3 along K.

    The last tiles along N and K are half tiles.
    """
    sizes = {"M": 64, "N": 96, "K": 80, "tile_m": 16, "tile_n": 32, "tile_k": 32}
    tiles = 4 * 2 * 2 * 3
    streamed, pinned = (run("gemm-composite", **sizes, pin_a=pin_a) for pin_a in (False, True))
    before, after = (Counter(op.op_name for op in result.op_log) for result in (streamed, pinned))
    assert before["TileToken/DMA_READ"] == 2 * tiles
    assert before["TileToken/DMA_WRITE"] == 4 * 2 * 2
    assert before["composite_gemm"] == after["composite_gemm"] == 4
    assert before - after == {"TileToken/DMA_READ": tiles}
    assert after - before == {"dma_read": 4}, "each PE loads its rows of A once"
    assert streamed.verified and pinned.verified


def test_operands_of_one_package_do_not_cross_to_the_other(run) -> None:
    """Rows are dealt to packages first, and each has a copy of B."""
    result = run("gemm-composite", "packages", M=64, N=64, K=64)
    assert result.verified
    assert not any("scale_up" in use.kind for use in result.busiest)


def test_sizes_must_be_positive(run) -> None:
    with pytest.raises(UsageError) as caught:
        run("gemm-composite", tile_k=-1)
    assert str(caught.value) == "parameter 'tile_k' must be a positive integer, not -1; give 1 or more."
