"""The unit between scratchpad and registers: each move by its closed form; fetches and stores overlap."""

from __future__ import annotations

import pytest

from kernbench_builtin.components.tiles.plan import Stage, StageType, TilePlan
from kernbench_builtin.components.tiles.token import TileStream, TileToken
from tests.builtin.pe_rig import CPU, FETCH_STORE, HOP, TCM, Composite, Pe

READ, WRITE, SET_UP, ACCESS = 50.0, 25.0, 3.0, 6.0
PARAMS: dict[str, dict[str, object]] = {
    "pe_fetch_store": {"overhead": "3 ns", "servers": 2},
    "pe_tcm": {"overhead": "0 ns", "latency": "6 ns", "read_bandwidth": "50 GB/s", "write_bandwidth": "25 GB/s"},
}


def move(pe: Pe, kind: StageType, nbytes: int, index: int = 0) -> TileToken:
    """Send a token that has just this stage into the unit at 0 ns; it returns to a scheduler that counts it."""
    stream = TileStream(Composite(), CPU)
    token = stream.feed(TilePlan((Stage(kind, FETCH_STORE, {"nbytes": nbytes}),)), index)
    pe.send((CPU, FETCH_STORE), 0, msg=token)
    return token


def span_of(kind: StageType, nbytes: int) -> float:
    """Set-up, request, access, bytes over the channel (the wires are faster), answer."""
    return SET_UP + HOP + ACCESS + nbytes / (READ if kind is StageType.FETCH else WRITE) + HOP


@pytest.mark.parametrize("kind", [StageType.FETCH, StageType.STORE])
def test_a_move_is_set_up_and_one_round_trip(kind: StageType) -> None:
    pe = Pe(PARAMS)
    move(pe, kind, 1000)
    pe.run()
    assert pe.stages == [(kind.name, HOP, HOP + span_of(kind, 1000))]


def test_fetches_serialise_on_the_read_channel() -> None:
    """A second fetch that comes at the same time ends one channel time after the first."""
    pe = Pe(PARAMS)
    for index in range(2):
        move(pe, StageType.FETCH, 1000, index)
    pe.run()
    end = HOP + span_of(StageType.FETCH, 1000)
    assert [stop for _, _, stop in pe.stages] == [end, end + 1000 / READ]


def test_a_fetch_and_a_store_overlap() -> None:
    """Each takes as long as alone: two servers, two channels, and the wires carry opposite ways."""
    pe = Pe(PARAMS)
    for index, kind in enumerate((StageType.FETCH, StageType.STORE)):
        move(pe, kind, 1000, index)
    pe.run()
    assert [stop - start for _, start, stop in pe.stages] == [
        span_of(StageType.FETCH, 1000),
        span_of(StageType.STORE, 1000),
    ]


def test_one_server_makes_moves_wait() -> None:
    pe = Pe({**PARAMS, "pe_fetch_store": {"overhead": "3 ns", "servers": 1}})
    for index, kind in enumerate((StageType.FETCH, StageType.STORE)):
        move(pe, kind, 1000, index)
    pe.run()
    (_, _, first), (_, second, _) = pe.stages
    assert second == first


def test_open_accesses_are_awaited() -> None:
    """While the scratchpad works, the deadlock report can say for what the unit waits."""
    pe = Pe(PARAMS)
    move(pe, StageType.FETCH, 1000)
    unit = pe.component(FETCH_STORE)
    pe.run(until_ns=HOP + SET_UP + HOP)
    assert [msg.path for msg in unit.awaiting()] == [(FETCH_STORE, TCM)]
    pe.run()
    assert list(unit.awaiting()) == []
    assert unit.min_service_ns(object()) == SET_UP  # type: ignore[arg-type]
