"""vector-add: right for any size, and limited by memory bandwidth where nothing else costs time."""

from __future__ import annotations

import pytest

from kernbench_core.errors import UsageError


@pytest.mark.parametrize(
    ("topology", "dtype"),
    [
        *(("tiny", dtype) for dtype in ("f32", "f16", "bf16")),
        ("packages", "f32"),
        *(("default", dtype) for dtype in ("f32", "f16", "bf16")),
    ],
)
def test_sums_are_right(run, topology, dtype) -> None:
    assert run("vector-add", topology, n=10000, block=256, dtype=dtype).verified


@pytest.mark.parametrize(("n", "block"), [(1, 1), (3, 4096), (257, 16), (1021, 100)])
def test_sizes_that_no_pe_and_no_block_divides(run, n, block) -> None:
    result = run("vector-add", n=n, block=block)
    assert result.verified
    assert sum(op.params["nbytes"] for op in result.op_log if op.op_name == "dma_write") == 4 * n


def test_one_package_of_two(run) -> None:
    result = run("vector-add", "packages", n=1200, options={"device": "sip:1"})
    assert result.verified
    assert {op.component_id.partition(".")[0] for op in result.op_log} == {"sip1"}


@pytest.mark.parametrize(("name", "value"), [("n", 0), ("block", -3)])
def test_sizes_must_be_positive(run, name, value) -> None:
    with pytest.raises(UsageError) as caught:
        run("vector-add", **{name: value})
    assert str(caught.value) == f"parameter {name!r} must be a positive integer, not {value}; give 1 or more."


def test_time_approaches_bytes_over_the_bandwidth_of_a_slice(run) -> None:
    """Each of 4 PEs moves 3 x 256 KiB through its slice of 4 channels of 25.6 GB/s; all else is nearly free here."""
    free = (
        "components.pe_cpu.params.dispatch_overhead=0 ns",
        "components.pe_dma.params.descriptor_overhead=0 ns",
        "components.pe_dma.params.overhead=0 ns",
        "components.pe_mmu.params.tlb_overhead=0 ns",
        "components.pe_mmu.params.walk_time=0 ns",
        "components.hbm_ctrl.params.efficiency=1",
        "components.router.params.overhead=0 ns",
        "components.hbm_ctrl.params.overhead=0 ns",
        "components.hbm_ctrl.params.channel_latency=0.1 ns",
        "components.pe_math.params.lanes=1000000",
        "components.pe_math.params.overhead=0 ns",
        "components.pe_math.params.operand_bandwidth=1000 TB/s",
        "system.flit_bytes=1 B",
    )
    result = run("vector-add", n=4 * 65536, block=65536, options={"set": free, "verify_data": False})
    least = 3 * 4 * 65536 / (4 * 25.6)
    assert least <= result.phases["kernel"] <= 1.005 * least


@pytest.mark.parametrize(("n", "block", "dtype"), [(1, 1, "f32"), (1021, 100, "f16"), (5000, "auto", "bf16")])
def test_a_copy_is_right(run, n, block, dtype) -> None:
    assert run("copy", "packages", n=n, block=block, dtype=dtype).verified


def test_a_large_copy_is_near_the_roof(run) -> None:
    """8 MiB in and out of 4 slices that sustain 0.923 of 102.4 B per ns each."""
    result = run("copy", n=1 << 21, options={"verify_data": False, "data": False})
    roof = 2 * 4 * (1 << 21) / (4 * 102.4 * 0.923)
    assert roof < result.phases["kernel"] < 1.05 * roof
