"""Tile tokens: the way of one tile through the units, what it says to each, and how tiles keep their order."""

from __future__ import annotations

from itertools import pairwise

import pytest

from kernbench_builtin.components.tiles.plan import StageType, TilePlan, generate_gemm_plan
from kernbench_builtin.components.tiles.token import TileStream
from kernbench_core.values.region import Region
from tests.builtin.pe_rig import DMA, FETCH_STORE, GEMM, HOP, MATH, PREFIX, SCHEDULER, Composite, Pe, PlainDma, spec


def one_tile() -> TilePlan:
    """The plan of a GEMM of 8 x 4 x 6 with one epilogue op of each scope."""
    epilogue = [spec("dequant", "k_tile"), spec("relu", "output_tile")]
    (tile,) = generate_gemm_plan(8, 4, 6, 8, 4, 6, pe_prefix=PREFIX, epilogue_specs=epilogue).tiles
    return tile


def test_a_token_looks_like_the_command_of_its_stage() -> None:
    """DMA direction and physical ranges, GEMM sizes, math elements, bytes: each at its stage."""
    token = TileStream(Composite(m=8, k=4, n=6), SCHEDULER).feed(one_tile(), 0)
    assert (token.stage.stage_type, token.dma_op, token.operand_bytes) == (StageType.DMA_READ, "read", 8 * 4 * 2)
    assert token.regions == (Region(0, 8, 8, 8),)
    assert token.advance()
    assert (token.dma_op, token.regions, token.operand_bytes) == ("read", (Region(0, 12, 4, 12),), 4 * 6 * 2)
    assert token.advance()
    assert (token.stage.stage_type, token.dma_op, token.regions) == (StageType.FETCH, "", ())
    assert token.operand_bytes == (8 * 4 + 4 * 6) * 2
    assert token.advance()
    assert (token.m, token.k, token.n, token.dtype_in) == (8, 4, 6, "f16")
    for kind in ("dequant", "relu"):
        assert token.advance()
        assert (token.elements, token.op, token.dtype, token.beside_bytes) == (48, kind, "f32", 0)
    assert token.advance()
    assert (token.stage.stage_type, token.operand_bytes) == (StageType.STORE, 48 * 2)
    assert token.advance()
    assert (token.dma_op, token.regions) == ("write", (Region(0, 12, 8, 12),))
    assert not token.advance()


def test_a_token_describes_its_present_stage_without_data() -> None:
    token = TileStream(Composite(issue=7, m=8, k=4, n=6), SCHEDULER).feed(one_tile(), 0)
    for _ in range(3):
        token.advance()
    said = token.describe()
    assert (said.op_kind, said.op_name, said.stage_of, said.op_id) == ("gemm", "TileToken/GEMM", (0, 7), None)
    assert said.params == {"stage_type": "GEMM", "m": 8, "k": 4, "n": 6, "dtype_in": "f16"}
    assert (said.reads, said.writes) == ((), None)
    assert repr(token) == "<TileToken 0 of op (0, 7), GEMM at nowhere>"


def test_a_tile_visits_its_units_one_hop_apart() -> None:
    """Stages follow one another by one wire; two transfers of one DMA, and chained math, by none."""
    epilogue = [spec("dequant", "k_tile"), spec("relu", "output_tile")]
    pe = Pe()
    pe.issue(Composite(m=8, k=4, n=6, tile_m=8, tile_k=4, tile_n=6, epilogue=epilogue))
    pe.run()
    records = [record for record in pe.op_log if record.stage_of is not None]
    assert [(record.component_id, record.op_name) for record in records] == [
        (DMA, "TileToken/DMA_READ"),
        (DMA, "TileToken/DMA_READ"),
        (FETCH_STORE, "TileToken/FETCH"),
        (GEMM, "TileToken/GEMM"),
        (MATH, "TileToken/MATH"),
        (MATH, "TileToken/MATH"),
        (FETCH_STORE, "TileToken/STORE"),
        (DMA, "TileToken/DMA_WRITE"),
    ]
    gaps = [after.t_start - before.t_end for before, after in pairwise(records)]
    assert gaps == [0, HOP, HOP, HOP, 0, HOP, HOP]


class WideDma(PlainDma):
    """Be slow with the tiles 0 and 3."""

    slow = frozenset({0, 3})


def test_a_token_that_goes_round_keeps_its_ledger() -> None:
    """The five accumulators still sum to birth-to-arrival when the token is home."""
    pe = Pe()
    pe.issue(Composite(m=8, k=4, n=6, tile_m=8, tile_k=4, tile_n=6))
    scheduler = pe.component(SCHEDULER)
    while not (out := list(scheduler.awaiting())):
        assert pe.env.advance(1)
    pe.run()
    (token,) = out
    parts = token.propagation + token.serialisation + token.overhead + token.queueing + token.service
    assert parts == token.elapsed > 0


def test_tiles_leave_the_dma_in_plan_order() -> None:
    """A tile whose operands come early waits for the tiles before it, so sums are complete when they are stored."""
    pe = Pe({"pe_dma": {"servers": 4}, "pe_scheduler": {"tiles_in_flight": 4}}, dma=WideDma)
    pe.issue(Composite(m=16, k=32, n=16, tile_m=8, tile_k=8, tile_n=16))
    pe.run()
    reads = [(start, end) for name, start, end in pe.stages if name == "DMA_READ"]
    fetches = [(start, end) for name, start, end in pe.stages if name == "FETCH"]
    gemms = [(start, end) for name, start, end in pe.stages if name == "GEMM"]
    stores = [start for name, start, _ in pe.stages if name == "STORE"]
    assert len(fetches) == len(gemms) == 8
    assert len(stores) == 2
    slowest_first = max(end for start, end in reads if start < 20)
    assert min(start for start, _ in fetches) >= slowest_first, "tile 0 is slow, and tile 1 must not overtake it"
    for number, start in enumerate(stores, 1):
        assert sum(end <= start for _, end in gemms) >= 4 * number


@pytest.mark.parametrize("scope", [None, "k_tile"])
def test_a_sum_is_complete_before_its_tile_goes_on(scope: str | None) -> None:
    """With two arrays and two math units, a small last k tile waits for the large one before it."""
    epilogue = [] if scope is None else [spec("dequant", scope), spec("relu", "output_tile")]
    pe = Pe(
        {
            "pe_dma": {"servers": 4},
            "pe_scheduler": {"tiles_in_flight": 4},
            "pe_gemm": {"servers": 2, "rows": 2, "columns": 2},
            "pe_math": {"servers": 2, "lanes": 1},
        }
    )
    pe.issue(Composite(m=8, k=20, n=16, tile_m=8, tile_k=16, tile_n=16, epilogue=epilogue))
    pe.run()
    gemms = sorted((start, end) for name, start, end in pe.stages if name == "GEMM")
    assert gemms[1][0] < gemms[0][1] and gemms[1][1] < gemms[0][1], "the second product runs beside and ends first"
    ends = [end for name, _, end in pe.stages if name == "GEMM"]
    if scope is not None:
        maths = sorted((start, end) for name, start, end in pe.stages if name == "MATH")
        assert maths[2][0] >= max(end for _, end in maths[:2]), "the step on the sum comes after both on the products"
        ends.append(maths[2][1])
    (store,) = [start for name, start, _ in pe.stages if name == "STORE"]
    assert store >= max(ends)


def test_a_tile_is_counted_once() -> None:
    """The same tile cannot be complete a second time."""
    stream = TileStream(Composite(m=8, k=4, n=6), SCHEDULER)
    token = stream.feed(one_tile(), 0)
    token.answered()
    assert (stream.completed, stream.in_flight, stream.returned.fired) == (1, {}, True)
    with pytest.raises(KeyError):
        token.answered()


def test_tiles_tell_whose_sum_they_go_on_with_and_what_they_multiply() -> None:
    """Two k tiles of two output tiles: the first begins a sum, the second ends it; a step on each product breaks it."""
    plan = generate_gemm_plan(16, 16, 8, 8, 8, 8, pe_prefix=PREFIX, a_pinned=True, b_pinned=True)
    stream = TileStream(Composite(), SCHEDULER)
    begins, ends, other, _ = tiles = [stream.feed(tile, index) for index, tile in enumerate(plan.tiles)]
    for token in tiles:
        assert token.advance()
    assert begins.sum_before is None
    assert begins.sum_after == ends.sum_before == ends.sum_after != other.sum_after
    assert (begins.part_of_sum, ends.part_of_sum) == (True, False)
    assert begins.operand_key("b") == other.operand_key("b") != ends.operand_key("b")
    assert begins.operand_key("a") != other.operand_key("a")
    steps = generate_gemm_plan(
        16, 16, 8, 8, 8, 8, pe_prefix=PREFIX, a_pinned=True, b_pinned=True, epilogue_specs=[spec("relu", "k_tile")]
    )
    for index, tile in enumerate(steps.tiles[:2]):
        token = stream.feed(tile, 4 + index)
        assert token.advance()
        assert (token.sum_before, token.sum_after, token.part_of_sum) == (None, None, False)
