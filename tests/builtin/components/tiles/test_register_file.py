"""The register file: who gets room, when, and that nobody waits for ever."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernbench_builtin.components.tiles.plan import StageType, TilePlan, generate_gemm_plan, generate_math_plan
from kernbench_builtin.components.tiles.register_file import RegisterFile
from kernbench_builtin.components.tiles.token import TileStream, TileToken
from tests.builtin.pe_rig import CPU, FETCH_STORE, PREFIX, Composite, Pe, spec

OPERANDS, SUM = 2 * 8 * 8 * 2, 8 * 8 * 4
"""Bytes of a tile of 8 x 8 x 8 in f16, and of its sum in f32."""


def tokens(k_tiles: int, outputs: int = 1) -> list[TileToken]:
    """The tiles of one command, each at its FETCH."""
    plan = generate_gemm_plan(8 * outputs, 8 * k_tiles, 8, 8, 8, 8, pe_prefix=PREFIX, a_pinned=True, b_pinned=True)
    stream = TileStream(Composite(), CPU)
    return [stream.feed(tile, index) for index, tile in enumerate(plan.tiles)]


def ended(registers: RegisterFile, token: TileToken, kind: StageType) -> None:
    """Have a tile end its stage of this kind."""
    while token.stage.stage_type is not kind:
        assert token.advance()
    registers.stage_ended(token)


def test_a_tile_takes_its_operands_and_the_first_one_also_the_sum() -> None:
    registers = RegisterFile(10_000)
    first, second = tokens(2)
    registers.ask(first)
    assert registers.admit() == [first]
    assert registers.used == OPERANDS + SUM
    registers.ask(second)
    assert registers.admit() == [second]
    assert registers.used == 2 * OPERANDS + SUM
    ended(registers, first, StageType.GEMM)
    ended(registers, second, StageType.GEMM)
    assert registers.used == SUM
    ended(registers, second, StageType.STORE)
    assert registers.used == 0


def test_operands_give_their_room_back_once_when_they_are_taken_in() -> None:
    """At their last use only; that the stage ends, too, gives nothing back a second time."""
    registers = RegisterFile(10_000)
    first, _ = tokens(2)
    registers.ask(first)
    registers.admit()
    assert not registers.taken_in(first)  # at its FETCH
    assert first.advance()
    assert registers.taken_in(first)
    assert registers.used == SUM
    assert not registers.taken_in(first)
    assert not registers.stage_ended(first)
    assert registers.used == SUM


@pytest.mark.parametrize(("capacity", "let_in"), [(2 * OPERANDS + SUM, 2), (2 * OPERANDS + SUM - 1, 1)])
def test_room_is_counted_to_the_byte(capacity: int, let_in: int) -> None:
    registers = RegisterFile(capacity)
    for token in tokens(3):
        registers.ask(token)
    assert len(registers.admit()) == let_in


def test_a_tile_that_goes_on_passes_one_that_begins() -> None:
    """With room for no second sum, the tile that waits to begin one must not block the tile that ends the first."""
    registers = RegisterFile(2 * SUM + OPERANDS - 1)
    (first, last), (other, _) = tokens(2), tokens(2)
    for token in (first, other):
        registers.ask(token)
    assert registers.admit() == [first]
    ended(registers, first, StageType.GEMM)
    registers.ask(last)
    assert registers.admit() == [last]
    ended(registers, last, StageType.GEMM)
    assert registers.admit() == []
    ended(registers, last, StageType.STORE)
    assert registers.admit() == [other]


def test_tiles_of_a_command_keep_their_order() -> None:
    """A small tile does not pass a large one of its own command."""
    registers = RegisterFile(OPERANDS + SUM)
    plan = generate_gemm_plan(8, 18, 8, 8, 8, 8, pe_prefix=PREFIX, a_pinned=True, b_pinned=True)
    stream = TileStream(Composite(), CPU)
    waiting = [stream.feed(tile, index) for index, tile in enumerate(plan.tiles)]
    for token in waiting:
        registers.ask(token)
    assert waiting[2].plan.operand_bytes < OPERANDS
    assert registers.admit() == waiting[:1]


def test_a_product_that_an_op_changes_is_kept_apart_from_the_sum() -> None:
    """A k_tile step works on the product alone; it and the operands go when the step has ended."""
    (tile,) = generate_gemm_plan(8, 8, 8, 8, 8, 8, pe_prefix=PREFIX, epilogue_specs=[spec("relu", "k_tile")]).tiles
    assert (tile.operand_bytes, tile.sum_bytes) == (OPERANDS + SUM, SUM)
    assert tile.stages[tile.last_use].stage_type is StageType.MATH
    assert tile.staged_bytes == OPERANDS + 8 * 8 * 2


def test_a_math_tile_takes_operand_and_result() -> None:
    (tile,) = generate_math_plan(8, 8, 8, 8, math_op="exp", pe_prefix=PREFIX, dtype="f32", dtype_out="f16").tiles
    assert (tile.operand_bytes, tile.sum_bytes, tile.staged_bytes) == (8 * 8 * 4, 8 * 8 * 2, 8 * 8 * 6)
    assert tile.stages[tile.last_use].stage_type is StageType.MATH


def need(tile: TilePlan) -> int:
    return tile.operand_bytes + tile.sum_bytes


sizes = st.tuples(*[st.integers(1, 40)] * 3, *[st.integers(1, 16)] * 3)


@settings(max_examples=25)
@given(st.lists(sizes, min_size=1, max_size=4), st.integers(1, 3), st.integers(1, 5), st.integers(0, 600))
def test_whatever_shares_the_registers_ends(
    works: list[tuple[int, ...]], servers: int, window: int, more: int
) -> None:
    """With room for the largest tile and little more, any commands that overlap all end, and room is never exceeded."""
    plans = [generate_gemm_plan(*work, pe_prefix=PREFIX).tiles for work in works]
    capacity = max(need(tile) for plan in plans for tile in plan) + more
    pe = Pe(
        {
            "pe_scheduler": {"servers": servers, "tiles_in_flight": window},
            "pe_fetch_store": {"register_file": f"{capacity} B"},
            "pe_dma": {"servers": 2},
            "pe_gemm": {"rows": 4, "columns": 4},
        }
    )
    for issue, (m, k, n, tile_m, tile_k, tile_n) in enumerate(works):
        pe.issue(Composite(issue, m=m, k=k, n=n, tile_m=tile_m, tile_k=tile_k, tile_n=tile_n))
    registers = pe.component(FETCH_STORE)._registers  # type: ignore[attr-defined]
    while pe.env.advance(1):
        assert registers.used <= capacity
    assert len(pe.arrivals) == len(works)
    assert registers.used == 0
