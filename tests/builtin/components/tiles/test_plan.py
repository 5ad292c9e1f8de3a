"""Tile plans against a loop written here, and against a count of every multiply and every byte."""

from __future__ import annotations

from collections import Counter
from enum import Enum
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_builtin.components.tiles.plan import (
    PipelinePlan,
    Stage,
    StageType,
    TilePlan,
    generate_gemm_plan,
    generate_math_plan,
)
from kernbench_core.errors import ShapeError
from tests.builtin.pe_rig import in_hbm

P = "sip0.cube0.pe3"
sizes = st.integers(1, 20)
tiles = st.integers(1, 9)


class Scope(Enum):
    K_TILE = "k_tile"
    OUTPUT_TILE = "output_tile"


def epilogue(*steps: tuple[str, object]) -> list[SimpleNamespace]:
    return [SimpleNamespace(kind=kind, scope=scope) for kind, scope in steps]


def names(tile: TilePlan) -> list[str]:
    return [stage.stage_type.name for stage in tile.stages]


def counts(plan: PipelinePlan) -> Counter[str]:
    return Counter(name for tile in plan.tiles for name in names(tile))


def of_type(tile: TilePlan, kind: StageType) -> list[dict[str, Any]]:
    return [dict(stage.params) for stage in tile.stages if stage.stage_type is kind]


def span(params: dict[str, Any]) -> tuple[slice, slice]:
    row, col = params["row0"], params["col0"]
    return slice(row, row + params["rows"]), slice(col, col + params["cols"])


def naive_gemm(
    shape: tuple[int, int, int], tile: tuple[int, int, int], a: bool, b: bool, k_ops: int, out_ops: int
) -> list[tuple[list[str], tuple[int, int, int]]]:
    """The stage names and the (m, k, n) sizes of each tile, by the record's text."""
    (m_all, k_all, n_all), (tm, tk, tn) = shape, tile
    result = []
    row = 0
    while row < m_all:
        col = 0
        while col < n_all:
            depth = 0
            while depth < k_all:
                stages = ["DMA_READ"] * ((not a) + (not b)) + ["FETCH", "GEMM"] + ["MATH"] * k_ops
                if depth + tk >= k_all:
                    stages += ["MATH"] * out_ops + ["STORE", "DMA_WRITE"]
                result.append((stages, (min(tm, m_all - row), min(tk, k_all - depth), min(tn, n_all - col))))
                depth += tk
            col += tn
        row += tm
    return result


@given(st.tuples(sizes, sizes, sizes), st.tuples(tiles, tiles, tiles), st.booleans(), st.booleans(),
       st.integers(0, 2), st.integers(0, 2))
def test_gemm_plan_is_the_records_loop(
    shape: tuple[int, int, int], tile: tuple[int, int, int], a: bool, b: bool, k_ops: int, out_ops: int
) -> None:
    """Order, stages and true sizes of every tile are those of a plain M -> N -> K loop."""
    specs = epilogue(*[("dequant", "k_tile")] * k_ops, *[("relu", "output_tile")] * out_ops)
    plan = generate_gemm_plan(*shape, *tile, pe_prefix=P, a_pinned=a, b_pinned=b, epilogue_specs=specs)
    found = []
    for each in plan.tiles:
        (gemm,) = of_type(each, StageType.GEMM)
        found.append((names(each), (gemm["m"], gemm["k"], gemm["n"])))
    assert found == naive_gemm(shape, tile, a, b, k_ops, out_ops)


@given(st.tuples(sizes, sizes, sizes), st.tuples(tiles, tiles, tiles))
def test_every_product_is_made_once_and_every_result_written_once(
    shape: tuple[int, int, int], tile: tuple[int, int, int]
) -> None:
    """The ranges of the DMA stages cover the iteration space and the output exactly, with their bytes."""
    m, k, n = shape
    products, written = np.zeros(shape, int), np.zeros((m, n), int)
    for each in generate_gemm_plan(*shape, *tile, pe_prefix=P, dtype="f32", dtype_b="int8", dtype_out="bf16").tiles:
        a, b = of_type(each, StageType.DMA_READ)
        assert (a["operand"], b["operand"]) == ("a", "b")
        (rows, depth), (depth_b, cols) = span(a), span(b)
        assert depth == depth_b
        products[rows, depth, cols] += 1
        a_bytes, b_bytes = np.zeros((m, k), "f4")[span(a)].nbytes, np.zeros((k, n), "i1")[span(b)].nbytes
        assert (a["nbytes"], b["nbytes"]) == (a_bytes, b_bytes)
        assert of_type(each, StageType.FETCH) == [{"nbytes": a_bytes + b_bytes}]
        for out in of_type(each, StageType.DMA_WRITE):
            written[span(out)] += 1
            assert out["operand"] == "out"
            assert out["nbytes"] == np.zeros((m, n), "f2")[span(out)].nbytes
            assert of_type(each, StageType.STORE) == [{"nbytes": out["nbytes"]}]
    assert (products == 1).all()
    assert (written == 1).all()


@given(st.tuples(sizes, sizes, sizes), st.tuples(tiles, tiles, tiles))
def test_a_pinned_operand_saves_exactly_one_read_per_tile(
    shape: tuple[int, int, int], tile: tuple[int, int, int]
) -> None:
    plain = generate_gemm_plan(*shape, *tile, pe_prefix=P)
    for pinned, operand in (("a_pinned", "a"), ("b_pinned", "b")):
        plan = generate_gemm_plan(*shape, *tile, pe_prefix=P, **{pinned: True})  # type: ignore[arg-type]
        assert counts(plan) == counts(plain) - Counter(DMA_READ=len(plain.tiles))
        assert operand not in {p["operand"] for each in plan.tiles for p in of_type(each, StageType.DMA_READ)}
    both = generate_gemm_plan(*shape, *tile, pe_prefix=P, a_pinned=True, b_pinned=True)
    assert counts(both)["DMA_READ"] == 0


def test_stage_counts_of_a_known_case() -> None:
    """128 x 256 x 64 in tiles of 64 x 128 x 32: 2 x 2 x 2 tiles, one output per (m, n)."""
    specs = epilogue(("dequant", Scope.K_TILE), ("bias", Scope.OUTPUT_TILE), ("relu", Scope.OUTPUT_TILE))
    plan = generate_gemm_plan(128, 256, 64, 64, 128, 32, pe_prefix=P, epilogue_specs=specs)
    assert counts(plan) == Counter(DMA_READ=16, FETCH=8, GEMM=8, MATH=8 + 2 * 4, STORE=4, DMA_WRITE=4)
    assert [(t.m_tile, t.n_tile, t.k_tile) for t in plan.tiles] == list(np.ndindex(2, 2, 2))


def test_epilogues_keep_their_order_and_their_names() -> None:
    """k_tile ops follow the GEMM, then output_tile ops come before the STORE, all of the output tile's size."""
    specs = epilogue(("relu", "output_tile"), ("dequant", "k_tile"), ("scale", "output_tile"))
    (tile,) = generate_gemm_plan(5, 6, 7, 8, 8, 8, pe_prefix=P, epilogue_specs=specs).tiles
    math = of_type(tile, StageType.MATH)
    assert math == [{"op_kind": kind, "elements": 35, "dtype": "f32"} for kind in ("dequant", "relu", "scale")]
    assert names(tile) == ["DMA_READ", "DMA_READ", "FETCH", "GEMM", "MATH", "MATH", "MATH", "STORE", "DMA_WRITE"]


@pytest.mark.parametrize("op", [SimpleNamespace(kind="relu"), SimpleNamespace(kind="relu", scope="row")])
def test_an_epilogue_without_a_known_scope_takes_no_part(op: SimpleNamespace) -> None:
    plan = generate_gemm_plan(4, 4, 4, 4, 4, 4, pe_prefix=P, epilogue_specs=[op])
    assert counts(plan)["MATH"] == 0


def test_stages_name_the_units_of_their_pe() -> None:
    specs = epilogue(("relu", "output_tile"))
    (tile,) = generate_gemm_plan(4, 4, 4, 4, 4, 4, pe_prefix=P, epilogue_specs=specs).tiles
    assert [stage.component for stage in tile.stages] == [
        f"{P}.{unit}"
        for unit in (
            "pe_dma", "pe_dma", "pe_fetch_store", "pe_gemm", "pe_math", "pe_fetch_store", "pe_dma",
        )
    ]
    assert [stage.stage_type.op_kind for stage in tile.stages] == [
        "memory", "memory", "memory", "gemm", "math", "memory", "memory",
    ]


@given(sizes, sizes, tiles, tiles)
def test_math_plan_covers_the_output_once(m: int, n: int, tile_m: int, tile_n: int) -> None:
    """DMA_READ FETCH MATH STORE DMA_WRITE per tile, in M -> N order, in true sizes."""
    plan = generate_math_plan(m, n, tile_m, tile_n, math_op="exp", pe_prefix=P)
    seen = np.zeros((m, n), int)
    corners = []
    for tile in plan.tiles:
        assert names(tile) == ["DMA_READ", "FETCH", "MATH", "STORE", "DMA_WRITE"]
        (read,), (write,) = of_type(tile, StageType.DMA_READ), of_type(tile, StageType.DMA_WRITE)
        assert span(read) == span(write)
        seen[span(write)] += 1
        assert of_type(tile, StageType.MATH) == [
            {"op_kind": "exp", "elements": seen[span(write)].size, "dtype": "f16"}
        ]
        assert read["nbytes"] == 2 * seen[span(write)].size
        corners.append((write["row0"], write["col0"]))
    assert (seen == 1).all()
    assert corners == [(row, col) for row in range(0, m, tile_m) for col in range(0, n, tile_n)]


def test_math_plan_reads_every_operand_that_is_not_pinned() -> None:
    (tile,) = generate_math_plan(
        4, 4, 8, 8, math_op="add", pe_prefix=P, operands=("a", "b"), pinned=("a",), dtype="f32", dtype_out="f16"
    ).tiles
    assert [read["operand"] for read in of_type(tile, StageType.DMA_READ)] == ["b"]
    assert of_type(tile, StageType.FETCH) == [{"nbytes": 2 * 4 * 4 * 4}]
    assert of_type(tile, StageType.STORE) == [{"nbytes": 4 * 4 * 2}]


@given(sizes, sizes, tiles, tiles, st.sampled_from(["matrix", "row", "column"]))
def test_math_plan_reads_what_broadcasts_to_each_tile(m: int, n: int, tile_m: int, tile_n: int, part: str) -> None:
    """Of a row or column, every tile reads the elements of its own columns or rows, in their own width."""
    shape = {"matrix": (m, n), "row": (1, n), "column": (m, 1)}[part]
    plan = generate_math_plan(
        m, n, tile_m, tile_n, math_op="add", pe_prefix=P, dtype="f32", operands=("a", "b"), shapes={"b": shape},
        dtypes={"b": "int8"},
    )  # fmt: skip
    whole = np.arange(np.prod(shape)).reshape(shape)
    for tile in plan.tiles:
        a, b = of_type(tile, StageType.DMA_READ)
        wanted = np.broadcast_to(whole, (m, n))[span(a)]
        np.testing.assert_array_equal(np.broadcast_to(whole[span(b)], wanted.shape), wanted)
        assert b["nbytes"] == np.unique(wanted).size
        assert of_type(tile, StageType.FETCH) == [{"nbytes": a["nbytes"] + b["nbytes"]}]
        assert tile.operand_bytes == a["nbytes"] + b["nbytes"]
        assert tile.staged_bytes == a["nbytes"] + b["nbytes"] + of_type(tile, StageType.DMA_WRITE)[0]["nbytes"]


def test_an_operand_of_a_step_in_hbm_is_read_right_before_it() -> None:
    """Once for each output tile, or for each k tile; a row of scales for each k tile is the one of that tile."""
    specs = [in_hbm("dequant", "k_tile", (3, 5), per_tile=True), in_hbm("add", "output_tile", (6, 5)),
             in_hbm("mul", "output_tile", (6, 1))]  # fmt: skip
    plan = generate_gemm_plan(6, 9, 5, 4, 3, 4, pe_prefix=P, a_pinned=True, epilogue_specs=specs)
    sums, last = ["DMA_READ", "FETCH", "GEMM", "DMA_READ", "MATH"], ["DMA_READ", "MATH"] * 2 + ["STORE", "DMA_WRITE"]
    for tile in plan.tiles:
        ends = tile.k_tile == 2
        assert names(tile) == sums + (last if ends else [])
        reads = of_type(tile, StageType.DMA_READ)[1:]
        (out,) = of_type(tile, StageType.DMA_WRITE) or ({"rows": 0, "cols": 0},)
        scales = reads[0]
        assert (scales["row0"], scales["rows"], scales["col0"]) == (tile.k_tile, 1, 4 * tile.n_tile)
        if ends:
            assert span(reads[1]) == span(out)
            assert (span(reads[2])[0], span(reads[2])[1]) == (span(out)[0], slice(0, 1))
        maths = of_type(tile, StageType.MATH)
        assert [step["beside_bytes"] for step in maths] == [read["nbytes"] for read in reads]
        assert tile.staged_bytes == sum(
            stage.params["nbytes"] for stage in tile.stages if stage.component.endswith("pe_dma")
        )


def test_math_plan_chains_its_epilogue_after_the_op() -> None:
    """Every tile is an output tile and its only k tile, so specs of both scopes apply to each."""
    specs = epilogue(("relu", "output_tile"), ("scale", "k_tile"))
    plan = generate_math_plan(4, 4, 2, 4, math_op="exp", pe_prefix=P, epilogue_specs=specs)
    chains = [[params["op_kind"] for params in of_type(tile, StageType.MATH)] for tile in plan.tiles]
    assert chains == [["exp", "scale", "relu"]] * 2


def test_addresses_of_a_math_plan_travel_with_its_transfers() -> None:
    plan = generate_math_plan(4, 4, 2, 4, math_op="exp", pe_prefix=P, src_addr=64, dst_addr=4096)
    assert [of_type(tile, StageType.DMA_READ)[0]["src_addr"] for tile in plan.tiles] == [64, 64]
    assert [of_type(tile, StageType.DMA_WRITE)[0]["dst_addr"] for tile in plan.tiles] == [4096, 4096]


def test_equal_arguments_give_equal_plans() -> None:
    plans = [generate_gemm_plan(100, 70, 30, 32, 32, 32, pe_prefix=P, a_pinned=True) for _ in range(2)]
    assert plans[0] == plans[1]


@pytest.mark.parametrize(
    ("shape", "sentence"),
    [
        ((0, 4, 4, 4, 4, 4), "M of a tile plan must be at least 1, not 0; give a larger one."),
        ((4, 4, 4, 4, 0, 4), "tile_k of a tile plan must be at least 1, not 0; give a larger one."),
        ((4, 4, -2, 4, 4, 4), "N of a tile plan must be at least 1, not -2; give a larger one."),
    ],
)
def test_a_size_below_one_is_refused(shape: tuple[int, ...], sentence: str) -> None:
    with pytest.raises(ShapeError) as raised:
        generate_gemm_plan(*shape, pe_prefix=P)  # type: ignore[misc]
    assert str(raised.value) == sentence


def test_parameters_of_a_stage_are_read_only() -> None:
    """Equal stages of a plan are one object: what one tile wrote, all would read."""
    (first, *_) = generate_gemm_plan(4, 4, 4, 2, 2, 2, pe_prefix=P).tiles
    given = {"nbytes": 8}
    made = Stage(StageType.FETCH, P, given)
    given["nbytes"] = 9
    for stage in (*first.stages, made):
        with pytest.raises(TypeError, match="does not support item assignment"):
            stage.params["nbytes"] = 1  # type: ignore[index]
    assert made.params == {"nbytes": 8}
