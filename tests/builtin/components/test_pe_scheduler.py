"""The scheduler: a composite's time in closed form, pipelining, its window, and completion exactly once."""

from __future__ import annotations

from collections import Counter
from typing import Any, ClassVar

import pytest

from kernbench_builtin.components.pe_scheduler import plan_of
from kernbench_core.errors import ComponentError
from kernbench_core.testing import assert_ready_at
from tests.builtin.components.composite_times import (
    DECODE,
    PARAMS,
    START,
    TRANSFER,
    enter_ns,
    gemm,
    move_ns,
    params,
    read_ns,
)
from tests.builtin.pe_rig import HOP, PREFIX, SCHEDULER, Composite, Pe, PlainDma, in_hbm, spec


def write_ns(t: int = 16) -> float:
    """From the end of the last product to the end of its way home."""
    return HOP + move_ns(t * t * 2) + HOP + TRANSFER + HOP


def test_a_single_tile_takes_the_sum_of_its_stages() -> None:
    pe = Pe(PARAMS)
    pe.issue(gemm(1))
    assert_ready_at(pe, HOP + DECODE + read_ns() + write_ns() + HOP)


def test_an_output_epilogue_adds_its_ops_and_one_hop() -> None:
    """Two chained ops stay in pe_math: one hop in, one out instead of GEMM to STORE."""
    pe = Pe(PARAMS)
    pe.issue(gemm(1, epilogue=[spec("bias", "output_tile"), spec("relu", "output_tile")]))
    math_ns = 2 * (START + 16 * 16 / 16)
    assert_ready_at(pe, HOP + DECODE + read_ns() + HOP + math_ns + write_ns() + HOP)


@pytest.mark.parametrize("scope", ["k_tile", "output_tile"])
def test_an_operand_in_hbm_adds_its_read_and_a_hop(scope: str) -> None:
    """The tile goes back to pe_dma and from there to pe_math, instead of straight there."""
    pe = Pe(PARAMS)
    pe.issue(gemm(1, epilogue=[in_hbm("add", scope, (16, 16)), spec("relu", "output_tile")]))
    math_ns = 2 * (START + 16 * 16 / 16)
    assert_ready_at(pe, HOP + DECODE + read_ns() + HOP + TRANSFER + HOP + math_ns + write_ns() + HOP)


@pytest.mark.parametrize("scope", ["k_tile", "output_tile"])
@pytest.mark.parametrize("pinned", [True, False])
@pytest.mark.parametrize("slow", [(), (1,), (0, 3), (2, 5)])
def test_slow_reads_of_steps_block_nobody(scope: str, pinned: bool, slow: tuple[int, ...]) -> None:
    """With registers for two tiles and their sums only, and any tile's reads slow, each product is stored once."""

    class Dma(PlainDma):
        slow: ClassVar[frozenset[int]]

    Dma.slow = frozenset(slow)
    size = {"m": 48, "n": 16, "k": 32, "tile_m": 16, "tile_n": 16, "tile_k": 16}
    sums = 2 * 16 * 16 * 4
    room = 2 * (2 * 16 * 16 * 2 + (16 * 16 * 4 if scope == "k_tile" else 0)) + sums
    given = params(
        pe_scheduler={"tiles_in_flight": 6}, pe_dma={"servers": 4}, pe_fetch_store={"register_file": f"{room} B"}
    )
    pe = Pe(given, Dma)
    steps = [in_hbm("add", scope, (48, 16))]
    pe.issue(Composite(0, **size, a_pinned=pinned, b_pinned=pinned, epilogue=steps))
    pe.run()
    assert len(pe.arrivals) == 1
    counts = Counter(name for name, _, _ in pe.stages)
    reads = (0 if pinned else 12) + (6 if scope == "k_tile" else 3)
    steps_run = 6 if scope == "k_tile" else 3
    assert counts == {"DMA_READ": reads, "FETCH": 6, "GEMM": 6, "MATH": steps_run, "STORE": 3, "DMA_WRITE": 3}


def test_one_tile_in_flight_adds_the_tiles_up() -> None:
    """Without overlap every further k tile costs its whole way there and back."""
    tiles = 5
    pe = Pe(PARAMS)
    pe.issue(gemm(tiles))
    assert_ready_at(pe, HOP + DECODE + (tiles - 1) * (read_ns(last=False) + HOP) + read_ns() + write_ns() + HOP)


def twenty_more_tiles(window: int, changes: dict[str, dict[str, object]], pinned: bool) -> float:
    """What 40 k tiles take longer than 20, in ns: a steady state, without its fill and drain."""
    ends = []
    for tiles in (20, 40):
        pe = Pe(params(**{**changes, "pe_scheduler": {"tiles_in_flight": window}}))
        pe.issue(gemm(tiles, pinned=pinned))
        pe.run()
        ends.append(pe.arrivals[0].time)
    return ends[1] - ends[0]


@pytest.mark.parametrize(
    ("changes", "pinned", "per_tile"),
    [
        pytest.param({}, True, enter_ns(16), id="pe_gemm"),
        pytest.param({"pe_dma": {"time": "60 ns"}}, False, 2 * 60.0, id="pe_dma"),
        pytest.param({"pe_tcm": {"read_bandwidth": "8 GB/s"}}, True, 2 * 16 * 16 * 2 / 8, id="pe_tcm"),
    ],
)
def test_a_long_stream_runs_at_the_pace_of_its_slowest_stage(
    changes: dict[str, dict[str, object]], pinned: bool, per_tile: float
) -> None:
    """Twenty more tiles cost twenty times the slowest stage, exactly; without overlap they cost the sum."""
    assert twenty_more_tiles(4, changes, pinned) == 20 * per_tile
    assert twenty_more_tiles(1, changes, pinned) > 20 * (per_tile + 4 * HOP)


@pytest.mark.parametrize("window", [1, 2, 3, 6])
def test_no_more_tiles_are_out_than_the_window_allows(window: int) -> None:
    pe = Pe(params(pe_scheduler={"tiles_in_flight": window}))
    pe.issue(gemm(12))
    scheduler = pe.component(SCHEDULER)
    most = 0
    while pe.env.advance(1):
        most = max(most, len(list(scheduler.awaiting())))
    assert most == window
    assert list(scheduler.awaiting()) == []


def test_every_window_above_one_overlaps_and_none_beats_the_busiest_unit() -> None:
    ends = {}
    for window in (1, 2, 3, 4, 8):
        pe = Pe(params(pe_scheduler={"tiles_in_flight": window}))
        pe.issue(gemm(16))
        pe.run()
        ends[window] = pe.arrivals[0].time
    assert all(16 * enter_ns(16) < ends[window] < ends[1] for window in (2, 3, 4, 8))


def test_a_command_is_one_record_over_all_of_its_stages_and_answers_once() -> None:
    """From the start of service to the last tile home; stage records point at it and lie inside."""
    pe = Pe(params(pe_scheduler={"tiles_in_flight": 4}))
    command = pe.issue(gemm(6, issue=3, epilogue=[spec("relu", "output_tile")]))
    pe.run()
    whole = [record for record in pe.op_log if record.op_id is not None]
    stages = [record for record in pe.op_log if record.stage_of is not None]
    assert [(record.op_name, record.op_id, record.component_id) for record in whole] == [
        ("composite_gemm", (0, 3), SCHEDULER)
    ]
    assert len(whole) + len(stages) == len(pe.op_log)
    assert {record.stage_of for record in stages} == {(0, 3)}
    assert whole[0].t_start == HOP
    assert whole[0].t_end == max(record.t_end for record in stages) + HOP
    assert Counter(record.op_name for record in stages) == Counter(
        {
            "TileToken/DMA_READ": 12,
            "TileToken/FETCH": 6,
            "TileToken/GEMM": 6,
            "TileToken/MATH": 1,
            "TileToken/STORE": 1,
            "TileToken/DMA_WRITE": 1,
        }
    )
    assert [arrival.message for arrival in pe.arrivals] == [command]
    assert command.done.fired


def test_a_pinned_operand_leaves_one_read_out_of_the_log_per_tile() -> None:
    reads = []
    for pinned in (False, True):
        pe = Pe(PARAMS)
        pe.issue(gemm(7, a_pinned=pinned, b_pinned=False))
        pe.run()
        reads.append(sum(name == "DMA_READ" for name, _, _ in pe.stages))
    assert reads == [14, 7]


def test_commands_are_served_in_order_one_at_a_time() -> None:
    pe = Pe(PARAMS)
    for issue in range(3):
        pe.issue(gemm(2, issue=issue))
    pe.run()
    spans = [(record.op_id, record.t_start, record.t_end) for record in pe.op_log if record.op_id is not None]
    assert [op_id for op_id, _, _ in spans] == [(0, 0), (0, 1), (0, 2)]
    assert spans[1][1] == spans[0][2]
    assert spans[2][1] == spans[1][2]


def test_waiting_for_tiles_is_not_work() -> None:
    """Only taking commands apart keeps the scheduler busy, so that it never looks like the bottleneck."""
    pe = Pe(PARAMS)
    for issue in range(3):
        pe.issue(gemm(2, issue=issue))
    pe.run()
    assert pe.component(SCHEDULER).busy_ns == 3 * DECODE


def test_several_commands_are_in_flight_with_several_servers() -> None:
    """Two commands overlap, both end, and each has its own stages."""
    pe = Pe(params(pe_scheduler={"servers": 2, "tiles_in_flight": 2}))
    for issue in range(2):
        pe.issue(gemm(4, issue=issue))
    pe.run()
    spans = [(record.t_start, record.t_end) for record in pe.op_log if record.op_id is not None]
    assert spans[0][0] == spans[1][0] == HOP
    stages = Counter(record.stage_of for record in pe.op_log if record.stage_of is not None)
    assert stages == Counter({(0, 0): 4 * 4 + 2, (0, 1): 4 * 4 + 2})
    assert len(pe.arrivals) == 2


def test_a_math_composite_goes_read_fetch_math_store_write() -> None:
    pe = Pe(PARAMS)
    pe.issue(Composite(op="math", m=8, n=16, tile_m=8, tile_n=16))
    pe.run()
    assert [name for name, _, _ in pe.stages] == ["DMA_READ", "FETCH", "MATH", "STORE", "DMA_WRITE"]


def test_a_math_composite_chains_its_epilogue_and_skips_a_pinned_read() -> None:
    pe = Pe(PARAMS)
    relu = spec("relu", "output_tile")
    pe.issue(Composite(op="math", m=8, n=16, tile_m=8, tile_n=16, a_pinned=True, epilogue=[relu]))
    pe.run()
    assert [name for name, _, _ in pe.stages] == ["FETCH", "MATH", "MATH", "STORE", "DMA_WRITE"]


def test_each_operand_moves_in_its_own_dtype() -> None:
    """Bytes of a plan follow the dtypes of the three layouts."""
    command = gemm(1)
    for operand, dtype in (("a", "f32"), ("b", "int8"), ("out", "bf16")):
        command.layouts[operand].dtype = dtype
    (tile,) = plan_of(command, PREFIX).tiles
    assert [stage.params.get("nbytes") for stage in tile.stages] == [1024, 256, 1280, None, 512, 512]


def test_an_op_that_is_no_composite_is_refused() -> None:
    with pytest.raises(ComponentError) as raised:
        plan_of(Composite(op="sort"), PREFIX)
    assert str(raised.value) == (
        "op of a composite command must be 'gemm' or 'math', not 'sort'; use one of these, or another "
        "implementation of pe_scheduler."
    )


class LosingDma(PlainDma):
    """Lose every write: it never ends."""

    def run(self, env: Any, msg: Any) -> Any:
        yield env.event() if msg.dma_op == "write" else env.timeout(8)


def test_a_tile_that_is_lost_stays_awaited() -> None:
    """The deadlock report finds the tile, and the unit that holds it, through the scheduler."""
    pe = Pe(PARAMS, dma=LosingDma)
    pe.issue(gemm(2))
    pe.run()
    assert pe.arrivals == ()
    (token,) = pe.component(SCHEDULER).awaiting()
    assert token.path[token.hop] == f"{PREFIX}.pe_dma"
    assert repr(token) == f"<TileToken 1 of op (0, 0), DMA_WRITE at {PREFIX}.pe_dma>"
