"""Composites of kernels: epilogues, several of them at once, operands in HBM, timed and with the right data."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from kernbench_core.runs.bench_run import run
from kernbench_core.units import grid_ceil


def stage_spans(result: Any, stage: str) -> list[tuple[float, float]]:
    return [(r.t_start, r.t_end) for r in result.op_log if r.op_name == f"TileToken/{stage}"]


def test_every_epilogue_step_is_run_and_costs_what_the_table_says(plugins) -> None:
    """One tile with bias, relu, gelu, scale and dequant in both scopes: each takes its own cycles, and numpy agrees."""

    def kernel(a_ptr, b_ptr, c_ptr, bias_ptr, scales_ptr, tl):
        bias = tl.load(bias_ptr, shape=(1, 64))
        scales = tl.load(scales_ptr, shape=(2, 1))
        steps = [
            tl.epilogue("dequant", scales, scope="k_tile", per_tile=True),
            tl.epilogue("bias", bias),
            "relu",
            "gelu",
            ("scale", 0.5),
        ]
        a, b = tl.ref(a_ptr, shape=(64, 64)), tl.ref(b_ptr, shape=(64, 64))
        tl.composite("gemm", a, b, c_ptr, epilogue=steps, tile_m=64, tile_k=32, tile_n=64, wait=True)

    def bench(rt: Any) -> None:
        a, b = (rt.tensor((64, 64), "f32", name=name) for name in "ab")
        bias, scales = rt.tensor((1, 64), "f32", name="bias"), rt.tensor((2, 1), "f32", name="scales")
        c = rt.empty((64, 64), "f32", name="c")
        rt.launch(kernel, a, b, c, bias, scales, grid=(1,))

        def expected() -> Any:
            x, y, s = a.numpy(), b.numpy(), scales.numpy()
            total = x[:, :32] @ y[:32] * s[0, 0] + x[:, 32:] @ y[32:] * s[1, 0] + bias.numpy()
            total = np.maximum(total, 0)
            return 0.25 * total * (1 + np.tanh(np.sqrt(2 / np.pi) * (total + 0.044715 * total**3)))

        rt.check(c, expected, rtol=1e-4, atol=1e-4)

    result = run(bench, "tiny", {}, plugins=plugins, verify_data=True)
    assert result.verified
    passes = 64 * 64 // 128
    costs = {"dequant": 1, "bias": 1, "relu": 1, "gelu": 18, "scale": 1}
    spans = [(r.params["op_kind"], r.t_end - r.t_start) for r in result.op_log if r.op_name == "TileToken/MATH"]
    assert spans == [
        (kind, grid_ceil(10 + costs[kind] * passes / 0.96))
        for kind in ("dequant", "dequant", "bias", "relu", "gelu", "scale")
    ]


def test_a_step_reads_the_part_of_its_operand_that_its_tile_needs(plugins) -> None:
    """A matrix that is added has the tile's size, a row the tile's width, and a number comes with the command."""

    def kernel(x_ptr, y_ptr, tl):
        whole, row = tl.load(x_ptr, shape=(64, 64)), tl.load(x_ptr, shape=(1, 64))
        steps = [("add", whole), ("mul", row), ("add", 1.0)]
        x = tl.ref(x_ptr, shape=(64, 64))
        tl.composite("math", x, out=y_ptr, math_op="exp", epilogue=steps, tile_m=32, tile_n=48)

    def bench(rt: Any) -> None:
        x, y = rt.tensor((64, 64), "f32", name="x"), rt.empty((64, 64), "f32", name="y")
        rt.launch(kernel, x, y, grid=(1,))
        rt.check(y, lambda: (np.exp(x.numpy()) + x.numpy()) * x.numpy()[:1] + 1, rtol=1e-4, atol=1e-4)

    result = run(bench, "tiny", {}, plugins=plugins, verify_data=True)
    assert result.verified
    beside = [r.params.get("beside_bytes", 0) for r in result.op_log if r.op_name == "TileToken/MATH"]
    assert sorted(beside) == sorted(
        each for rows in (32, 32) for cols in (48, 16) for each in (0, rows * cols * 4, cols * 4, 0)
    )


def two_products(wait_for: str) -> Any:
    """A bench whose kernel issues two composites and waits for the first, or for all."""

    def kernel(a_ptr, b_ptr, c_ptr, d_ptr, tl):
        a, b = tl.ref(a_ptr, shape=(64, 128)), tl.ref(b_ptr, shape=(128, 64))
        how = {"tile_m": 32, "tile_k": 32, "tile_n": 32}
        first = tl.composite("gemm", a, b, c_ptr, **how)
        tl.composite("gemm", a, b, d_ptr, epilogue=["relu"], **how)
        tl.wait(first) if wait_for == "first" else tl.wait()
        tl.full((1,), 1.0, "f32")  # a mark in the log: when the wait was over

    def bench(rt: Any) -> None:
        a, b = rt.tensor((64, 128), "f16", name="a"), rt.tensor((128, 64), "f16", name="b")
        c, d = (rt.empty((64, 64), "f16", name=name) for name in "cd")
        rt.launch(kernel, a, b, c, d, grid=(1,))

        def product() -> Any:
            return a.numpy().astype("f4") @ b.numpy().astype("f4")

        rt.check(c, product, rtol=1e-2, atol=1e-2)
        rt.check(d, lambda: np.maximum(product(), 0), rtol=1e-2, atol=1e-2)

    return bench


@pytest.mark.parametrize("wait_for", ["first", "all"])
@pytest.mark.parametrize("servers", [1, 2])
def test_a_kernel_waits_for_one_composite_or_for_all(plugins, wait_for: str, servers: int) -> None:
    """Two are in flight; the wait ends with the one that is asked for, or with the last."""
    sets = [f"components.pe_scheduler.params.servers={servers}"]
    result = run(two_products(wait_for), "tiny", {}, plugins=plugins, verify_data=True, set=sets)
    assert result.verified
    first, second = [r for r in result.op_log if r.op_name == "composite_gemm"]
    (mark,) = [r for r in result.op_log if r.op_name == "full"]
    assert first.t_end < second.t_end
    assert (second.t_start < first.t_end) == (servers == 2)
    assert (first.t_end if wait_for == "first" else second.t_end) < mark.t_start
    assert (mark.t_start < second.t_end) == (wait_for == "first")
    assert Counter(r.stage_of for r in result.op_log if r.op_name == "TileToken/GEMM") == {
        first.op_id: 16, second.op_id: 16
    }  # fmt: skip


def test_overlapping_commands_are_quicker_than_queued_ones(plugins) -> None:
    ends = []
    for servers in (1, 2):
        sets = [f"components.pe_scheduler.params.servers={servers}"]
        ends.append(run(two_products("all"), "tiny", {}, plugins=plugins, set=sets).phases["kernel"])
    assert ends[1] < ends[0]


def test_steps_with_operands_in_hbm_are_timed_and_right(plugins) -> None:
    """Many tiles, sums over k, both scopes: the tiles stay in order, and each step has its own reads in the log."""

    def kernel(a_ptr, b_ptr, g_ptr, r_ptr, v_ptr, c_ptr, d_ptr, tl):
        a, b = tl.ref(a_ptr, shape=(72, 100)), tl.ref(b_ptr, shape=(100, 56))
        steps = [
            tl.epilogue("dequant", tl.ref(g_ptr, (4, 56)), "k_tile", per_tile=True),
            tl.epilogue("add", tl.ref(r_ptr, (72, 56))),
            tl.epilogue("mul", tl.ref(v_ptr, (56,))),
            ("scale", 0.01),
            "silu",
        ]
        tiles = {"tile_m": 32, "tile_n": 32, "tile_k": 32}
        first = tl.composite("gemm", a, b, c_ptr, epilogue=steps, **tiles)
        second = tl.composite("math", tl.ref(r_ptr, (72, 56)), tl.ref(v_ptr, (56,)), d_ptr, math_op="sub", **tiles)
        tl.wait(first, second)
        tl.full((1,), 1.0, "f32")  # a mark in the log: when the wait was over

    def bench(rt: Any) -> None:
        a, b = rt.tensor((72, 100), "int8", name="a"), rt.tensor((100, 56), "int8", name="b")
        shapes = {"groups": (4, 56), "residual": (72, 56), "row": (56,)}
        groups, residual, row = (rt.tensor(shape, "f32", name=name) for name, shape in shapes.items())
        c, d = rt.empty((72, 56), "f16", name="c"), rt.empty((72, 56), "f32", name="d")
        rt.launch(kernel, a, b, groups, residual, row, c, d, grid=(1,))

        def expected() -> Any:
            x, y = a.numpy().astype("f8"), b.numpy().astype("f8")
            cuts = [slice(k, k + 32) for k in range(0, 100, 32)]
            total = sum(x[:, cut] @ y[cut] * groups.numpy()[i] for i, cut in enumerate(cuts))
            total = (total + residual.numpy()) * row.numpy() / 100
            return total / (1 + np.exp(-total))

        rt.check(c, expected, rtol=2e-3, atol=2e-3)
        rt.check(d, lambda: residual.numpy() - row.numpy())

    times = []
    for servers in (1, 2):
        sets = [f"components.pe_scheduler.params.servers={servers}", "components.pe_gemm.params.servers=2"]
        result = run(bench, "tiny", {}, plugins=plugins, verify_data=True, set=sets)
        assert result.verified
        first, second = [r for r in result.op_log if r.op_name.startswith("composite_")]
        (mark,) = [r for r in result.op_log if r.op_name == "full"]
        assert mark.t_start > max(first.t_end, second.t_end)
        reads = Counter(
            (r.stage_of, r.params["operand"]) for r in result.op_log if r.op_name == "TileToken/DMA_READ"
        )
        outs, k_tiles = 3 * 2, 4
        assert reads == {
            (first.op_id, "a"): outs * k_tiles, (first.op_id, "b"): outs * k_tiles,
            (first.op_id, "epilogue0"): outs * k_tiles, (first.op_id, "epilogue1"): outs,
            (first.op_id, "epilogue2"): outs, (second.op_id, "a"): outs, (second.op_id, "b"): outs,
        }  # fmt: skip
        times.append(max(first.t_end, second.t_end) - first.t_start)
    assert times[1] < times[0]
