"""Tiles wait for room: registers, and the staging of the operands."""

from __future__ import annotations

from typing import Any

import pytest

from kernbench_core.errors import ShapeError
from tests.builtin.components.composite_times import (
    DECODE,
    START,
    enter_ns,
    gemm,
    move_ns,
    params,
    product_ns,
    read_ns,
)
from tests.builtin.pe_rig import FETCH_STORE, HOP, SCHEDULER, Composite, Pe

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
