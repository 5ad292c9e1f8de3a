"""gemm-sweep: one row for each combination, whose counts are the closed forms of a tiled product."""

from __future__ import annotations

from math import ceil

import pytest

from kernbench_core.errors import UsageError
from kernbench_core.runs.bench_run import run as run_bench
from kernbench_core.runs.result import RunResult

SWEEP = {"shapes": "32x48x20,33x18x20", "tiles": "8x16x9,20", "pin": "none,a,b,ab"}
#: The blocks of 2 x 2 PEs: (rows, columns) of each, for both shapes.
BLOCKS = {"32x48x20": [(16, 24)] * 4, "33x18x20": [(17, 9), (17, 9), (16, 9), (16, 9)]}


def closed_form(shape: str, tile: str, pin: str) -> dict[str, int]:
    """Count stages tile by tile from the extents alone; bytes are those of the operands of each tile, 2 B each."""
    depth = int(shape.split("x")[2])
    tm, tn, tk = (int(extent) for extent in (tile.split("x") if "x" in tile else [tile] * 3))
    found = dict.fromkeys(("DMA_READ", "FETCH", "GEMM", "STORE", "DMA_WRITE", "read_bytes"), 0)
    for rows, cols in BLOCKS[shape]:
        down, across, deep = ceil(rows / tm), ceil(cols / tn), ceil(depth / tk)
        found["DMA_READ"] += down * across * deep * (("a" not in pin) + ("b" not in pin))
        found["FETCH"] += down * across * deep
        found["GEMM"] += down * across * deep
        found["STORE"] += down * across
        found["DMA_WRITE"] += down * across
        found["read_bytes"] += 2 * rows * depth * (1 if "a" in pin else across)
        found["read_bytes"] += 2 * cols * depth * (1 if "b" in pin else down)
    return found


@pytest.fixture(scope="module")
def swept(plugins) -> RunResult:
    """Give the result of the sweep, verified."""
    return run_bench("gemm-sweep", "tiny", SWEEP, plugins=plugins, verify_data=True)


def test_counts_are_those_of_the_closed_form(swept) -> None:
    assert swept.verified
    combinations = [
        (shape, tile, pin)
        for shape in SWEEP["shapes"].split(",")
        for tile in SWEEP["tiles"].split(",")
        for pin in SWEEP["pin"].split(",")
    ]
    assert [(row["shape"], row["tile"], row["pin"]) for row in swept.rows] == combinations
    for row, combination in zip(swept.rows, combinations, strict=True):
        expected = closed_form(*combination)
        assert {name: row[name] for name in expected} == expected, combination


def test_times_are_those_of_single_launches(run, swept) -> None:
    """The first row is gemm-composite of its shape; all rows together are the kernel phase; a rate is 2 M N K over ns.

    Clocks of PEs that start late may lie between the phases, by less than a hop.
    """
    alone = run("gemm-composite", M=32, N=48, K=20, tile_m=8, tile_n=16, tile_k=9)
    first = swept.rows[0]
    assert first["kernel_ns"] == pytest.approx(alone.phases["kernel"], rel=1e-3)
    assert first["TFLOP/s"] * 1e3 * first["kernel_ns"] == pytest.approx(2 * 32 * 48 * 20)
    assert sum(row["kernel_ns"] for row in swept.rows) == pytest.approx(swept.phases["kernel"], rel=1e-3)


def test_rows_are_the_same_without_data(run, swept) -> None:
    without = run("gemm-sweep", **SWEEP, options={"verify_data": False, "data": False})
    assert without.verified is None
    assert swept.rows == without.rows


@pytest.mark.parametrize("dtype", ["bf16", "f32", "int8"])
def test_every_dtype_is_right(run, dtype) -> None:
    sweep = {**SWEEP, "tiles": "20", "pin": "none,ab"}
    assert run("gemm-sweep", **sweep, dtype=dtype).verification.checked == 4


@pytest.mark.parametrize("dtype", ["bf16", "f32", "int8"])
def test_every_combination_is_right_in_every_dtype(run, dtype) -> None:
    assert run("gemm-sweep", **SWEEP, dtype=dtype).verification.checked == 16


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (
            {"shapes": "64x64"},
            "parameter 'shapes' must list extents M, N, K as 512x512x512, not '64x64'; correct it.",
        ),
        (
            {"shapes": "64x0x64"},
            "parameter 'shapes' must list extents M, N, K as 512x512x512, not '64x0x64'; correct it.",
        ),
        (
            {"tiles": "16,8x8"},
            "parameter 'tiles' must list extents M, N, K as 128 or 128x64x128, not '8x8'; correct it.",
        ),
        ({"tiles": " ,"}, "parameter 'tiles' must list at least one item, not ' ,'; separate items by commas."),
        ({"pin": "none,c"}, "parameter 'pin' must list some of none, a, b, ab, not 'c'; correct it."),
    ],
)
def test_lists_that_cannot_be_read(run, wrong, told) -> None:
    with pytest.raises(UsageError) as caught:
        run("gemm-sweep", **{**SWEEP, **wrong})
    assert str(caught.value) == told
