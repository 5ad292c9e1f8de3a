"""The scheduler: a composite's time in closed form, pipelining, its window, and completion exactly once."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any, ClassVar

import numpy as np
import pytest

from kernbench_builtin.components.pe_scheduler import plan_of
from kernbench_core.errors import ComponentError, ShapeError
from kernbench_core.runs.bench_run import run
from kernbench_core.testing import assert_ready_at
from kernbench_core.units import grid_ceil
from tests.builtin.pe_rig import FETCH_STORE, HOP, PREFIX, SCHEDULER, Composite, Pe, PlainDma, in_hbm, spec

DECODE, TRANSFER, SET_UP, ACCESS, CHANNEL, START = 2.0, 8.0, 3.0, 6.0, 64.0, 5.0
PARAMS: dict[str, dict[str, object]] = {
    "pe_scheduler": {"overhead": "2 ns", "tiles_in_flight": 1},
    "pe_dma": {"time": "8 ns"},
    "pe_fetch_store": {"overhead": "3 ns", "servers": 2},
    "pe_tcm": {"overhead": "0 ns", "latency": "6 ns", "read_bandwidth": "64 GB/s", "write_bandwidth": "64 GB/s"},
    "pe_gemm": {"overhead": "5 ns", "clock": "1 GHz", "rows": 8, "columns": 8},
    "pe_math": {"overhead": "5 ns", "clock": "1 GHz", "lanes": 16},
}


def params(**changes: dict[str, object]) -> dict[str, dict[str, object]]:
    """The parameters above with some units changed."""
    return {unit: {**values, **changes.get(unit, {})} for unit, values in PARAMS.items()}


def gemm(tiles: int, *, t: int = 16, pinned: bool = False, issue: int = 0, **fields: object) -> Composite:
    """A GEMM of `tiles` tiles of t x t x t along K."""
    size = {"m": t, "n": t, "k": t * tiles, "tile_m": t, "tile_n": t, "tile_k": t}
    return Composite(issue, **{**size, "a_pinned": pinned, "b_pinned": pinned, **fields})


def move_ns(nbytes: int) -> float:
    """A fetch or a store: set-up, round trip, access, bytes over the channel."""
    return SET_UP + HOP + ACCESS + nbytes / CHANNEL + HOP


def enter_ns(t: int) -> float:
    """The operands of whole blocks of 8 x 8 enter the array."""
    return math.ceil(t / 8) ** 2 * t


AROUND = (8 + 8 - 2) + 8
"""Cycles in which the array fills and drains, behind the last operand."""


def product_ns(t: int) -> float:
    """A product that nobody follows: started, streamed, filled and drained once."""
    return START + enter_ns(t) + AROUND


def read_ns(t: int = 16, last: bool = True) -> float:
    """From the scheduler to the end of a tile's GEMM: two transfers, fetch, product, and the hops between.

    A tile that is not the last of its sum is done when its operands are in.
    """
    product = product_ns(t) if last else START + enter_ns(t)
    return HOP + 2 * TRANSFER + HOP + move_ns(2 * t * t * 2) + HOP + product


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


# Room: registers and staging ----------------------------------------------------------------------------


OPERANDS, SUM = 2 * 16 * 16 * 2, 16 * 16 * 4
"""Bytes of a 16 x 16 x 16 tile's operands (f16) and of its sum (f32)."""


def more_tiles_ns(make: Any, **changes: dict[str, object]) -> float:
    """What 20 more tiles cost, in ns, each: a steady state."""
    ends = []
    for tiles in (20, 40):
        pe = Pe(params(**changes))
        pe.issue(make(tiles))
        pe.run()
        ends.append(pe.arrivals[0].time)
    return (ends[1] - ends[0]) / 20


def pinned_sum(tiles: int) -> Composite:
    """One output tile of many k tiles, operands in the scratchpad."""
    return gemm(tiles, pinned=True)


@pytest.mark.parametrize(
    ("room", "per_tile"),
    [
        (OPERANDS + SUM, move_ns(OPERANDS) + HOP + START + enter_ns(16)),
        (2 * OPERANDS + SUM - 1, move_ns(OPERANDS) + HOP + START + enter_ns(16)),
        (2 * OPERANDS + SUM, enter_ns(16)),
        (9 * OPERANDS + SUM, enter_ns(16)),
    ],
)
def test_double_buffering_takes_registers_for_two_tiles(room: int, per_tile: float) -> None:
    """With one byte less than two tiles need, each FETCH waits until the array has taken the tile before it in."""
    window: dict[str, object] = {"tiles_in_flight": 4}
    assert move_ns(OPERANDS) + HOP + START < enter_ns(16)
    assert more_tiles_ns(pinned_sum, pe_fetch_store={"register_file": f"{room} B"}, pe_scheduler=window) == per_tile


@pytest.mark.parametrize(
    ("room", "per_tile"),
    [
        (2 * SUM + OPERANDS - 1, move_ns(OPERANDS) + HOP + product_ns(16) + HOP + move_ns(16 * 16 * 2)),
        (2 * SUM + OPERANDS, move_ns(OPERANDS) + HOP + START + enter_ns(16)),
        (2 * SUM + 2 * OPERANDS - 1, move_ns(OPERANDS) + HOP + START + enter_ns(16)),
        (2 * SUM + 2 * OPERANDS, (move_ns(OPERANDS) + HOP + product_ns(16) + HOP + move_ns(16 * 16 * 2)) / 2),
        (3 * SUM + 2 * OPERANDS, enter_ns(16)),
    ],
)
def test_a_sum_keeps_its_registers_until_it_is_stored(room: int, per_tile: float) -> None:
    """Output tiles of one k tile each: with room for one sum a FETCH waits for the STORE before it, with room for two
    for the array, or for the STORE before that; with room for a third, products stream.
    """

    def outputs(tiles: int) -> Composite:
        return gemm(1, pinned=True, m=16 * tiles)

    window: dict[str, object] = {"tiles_in_flight": 4}
    assert more_tiles_ns(outputs, pe_fetch_store={"register_file": f"{room} B"}, pe_scheduler=window) == per_tile


@pytest.mark.parametrize(("room", "window"), [(OPERANDS + 512, 1), (2 * OPERANDS - 1, 1), (2 * OPERANDS, 2)])
def test_a_tile_is_fed_when_its_buffers_fit(room: int, window: int) -> None:
    """Staging room for one tile (the last one also writes 512 B) is no overlap at all; for two, a window of two."""
    by_room = more_tiles_ns(gemm, pe_scheduler={"tiles_in_flight": 8, "staging": f"{room} B"})
    assert by_room == more_tiles_ns(gemm, pe_scheduler={"tiles_in_flight": window})
    if window == 1:
        assert by_room == read_ns(last=False) + HOP


def test_pinned_operands_take_no_staging() -> None:
    """Only the result of the last k tile is staged."""
    by_room = more_tiles_ns(pinned_sum, pe_scheduler={"tiles_in_flight": 4, "staging": "512 B"})
    assert by_room == enter_ns(16)


def test_commands_share_the_staging_room_evenly() -> None:
    """Half of the room is too little for a tile that would fit into all of it."""
    pe = Pe(params(pe_scheduler={"servers": 2, "staging": f"{2 * OPERANDS} B"}))
    pe.issue(gemm(1))
    with pytest.raises(ShapeError) as raised:
        pe.run()
    assert str(raised.value) == (
        f"composite (0, 0): the buffers of a tile must fit into the staging room of a command on {SCHEDULER}, 1 KiB, "
        "and those of this one take 1.5 KiB; choose a smaller tile_m, tile_n or tile_k, or raise staging."
    )


def test_a_tile_that_never_fits_the_registers_is_refused() -> None:
    pe = Pe(params(pe_fetch_store={"register_file": f"{OPERANDS + SUM - 1} B"}))
    pe.issue(gemm(1))
    with pytest.raises(ShapeError) as raised:
        pe.run()
    assert str(raised.value) == (
        f"composite (0, 0): a tile must fit into the register file of {FETCH_STORE}, 1.999 KiB, and this one takes "
        "1 KiB for its operands and 1 KiB for its result; choose a smaller tile_m, tile_n or tile_k."
    )


def test_tiles_that_wait_for_registers_are_seen_to_wait() -> None:
    """The deadlock report finds them at pe_fetch_store, and their wait counts as queueing."""
    pe = Pe(params(pe_scheduler={"tiles_in_flight": 4}, pe_fetch_store={"register_file": f"{OPERANDS + SUM} B"}))
    pe.issue(gemm(4, pinned=True))
    pe.run(until_ns=HOP + DECODE + HOP + 10)
    assert [repr(token) for token in pe.component(FETCH_STORE).waiting] == [
        f"<TileToken {index} of op (0, 0), FETCH at {FETCH_STORE}>" for index in (1, 2, 3)
    ]
    token = pe.component(FETCH_STORE).waiting[0]
    pe.run()
    assert token.queueing == move_ns(OPERANDS) + HOP + START + enter_ns(16)
    assert token.propagation + token.serialisation + token.overhead + token.queueing + token.service == token.elapsed


# Epilogues, math and several at once, from kernels -------------------------------------------------------


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
