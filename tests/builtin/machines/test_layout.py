"""The automatic layout of a cube: places for everything, nothing under HBM, ports as wide as they must be."""

from __future__ import annotations

import math

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from kernbench_builtin.machines.layout import CubeLayout, LayoutFault, lay_out_cube, spread
from kernbench_builtin.machines.specification import CubeSpec, RouterMeshSpec, Spec, ZoneSpec
from kernbench_core.topology.section_reader import read_whole
from tests.core.small_machine import TEXT
from tests.core.topology.text_config import parse_config

CUBE = read_whole(parse_config(TEXT), Spec).cube


def cube(pes: int, rows: int | None = None, columns: int | None = None, zone: ZoneSpec | None = None) -> CubeSpec:
    return evolve(CUBE, pes=pes, mesh=RouterMeshSpec(rows, columns, zone or ZoneSpec()))


def connected(layout: CubeLayout) -> bool:
    """Tell whether every router is reached from any other, by flooding."""
    start = next(iter(layout.routers))
    seen, queue = {start}, [start]
    while queue:
        row, column = queue.pop()
        for cell in ((row + 1, column), (row - 1, column), (row, column + 1), (row, column - 1)):
            if cell in layout.routers and cell not in seen:
                seen.add(cell)
                queue.append(cell)
    return len(seen) == len(layout.routers)


@given(st.integers(1, 64), st.floats(1, 2000))
def test_an_automatic_mesh_has_room_for_everything(pes: int, ucie_bandwidth: float) -> None:
    layout = lay_out_cube(cube(pes), ucie_bandwidth)
    first_row, zone_rows, first_column, zone_columns = layout.zone
    covered = {
        (first_row + r, first_column + c) for r in range(zone_rows) for c in range(zone_columns)
    }
    assert covered
    assert covered | layout.routers.keys() == {(r, c) for r in range(layout.rows) for c in range(layout.columns)}
    assert not covered & layout.routers.keys()
    assert connected(layout)
    assert len(set(layout.pes)) == pes
    assert set(layout.pes) <= layout.routers.keys()
    assert list(layout.pes) == sorted(layout.pes)
    assert not {layout.m_cpu[1], layout.sram[1]} & set(layout.pes)
    needed = math.ceil(ucie_bandwidth / CUBE.noc.bandwidth)
    for side, (_, cells) in layout.ucie.items():
        edge = {"n": layout.columns, "s": layout.columns, "w": layout.rows, "e": layout.rows}[side]
        assert len(set(cells)) == len(cells) == min(needed, edge)
        on_edge = {"n": lambda r, c: r == 0, "s": lambda r, c: r == layout.rows - 1,
                   "w": lambda r, c: c == 0, "e": lambda r, c: c == layout.columns - 1}[side]  # fmt: skip
        assert all(on_edge(*cell) for cell in cells)


@given(st.integers(1, 64))
def test_units_hang_on_the_nearest_router(pes: int) -> None:
    layout = lay_out_cube(cube(pes), 100.0)
    for point, cell in (layout.m_cpu, layout.sram):
        least = min(math.dist(point, at) for at in layout.routers.values())
        assert math.dist(point, layout.routers[cell]) == pytest.approx(least)


def test_eight_pes_take_the_two_outer_rows() -> None:
    layout = lay_out_cube(cube(8), 100.0)
    assert (layout.rows, layout.columns, layout.zone) == (3, 4, (1, 1, 1, 2))
    assert layout.pes == tuple((row, column) for row in (0, 2) for column in range(4))
    assert (layout.m_cpu[1], layout.sram[1]) == ((1, 0), (1, 3))
    assert {side: cells for side, (_, cells) in layout.ucie.items()} == {
        "n": ((0, 0), (0, 3)), "s": ((2, 0), (2, 3)), "w": ((0, 0), (2, 0)), "e": ((0, 3), (2, 3)),
    }  # fmt: skip


def test_a_given_mesh_is_kept_and_shared_when_it_is_tight() -> None:
    layout = lay_out_cube(cube(8, 2, 4), 100.0)
    assert (layout.rows, layout.columns, layout.zone) == (2, 4, (0, 0, 0, 0))
    assert len(set(layout.pes)) == 8
    assert lay_out_cube(cube(8, rows=4), 100.0).rows == 4


@pytest.mark.parametrize(
    ("spec", "key", "sentence"),
    [
        (
            cube(8, 2, 2),
            "",
            "must have a router for each of 8 PEs, but 2 x 2 with 0 under HBM leaves 4; "
            "give more rows or columns, or a smaller hbm_zone.",
        ),
        (
            cube(9, 3, 3),
            "",
            "must have a router for each of 9 PEs, but 3 x 3 with 1 under HBM leaves 8; "
            "give more rows or columns, or a smaller hbm_zone.",
        ),
        (cube(4, 0, 3), "rows", "must be an integer from 1 to 256 or auto, not 0."),
        (cube(4, 3, 10**9), "columns", "must be an integer from 1 to 256 or auto, not 1000000000."),
        (
            cube(4, 4, 4, ZoneSpec(3, 2)),
            "hbm_zone",
            "must leave a border of routers, not cover 3 x 2 of 4 x 4; shrink it.",
        ),
    ],
)
def test_a_mesh_that_does_not_fit_is_refused(spec: CubeSpec, key: str, sentence: str) -> None:
    with pytest.raises(LayoutFault) as caught:
        lay_out_cube(spec, 100.0)
    assert (caught.value.key, str(caught.value)) == (key, sentence)


@given(st.integers(1, 50), st.data())
def test_a_spread_is_symmetric_and_without_repetition(available: int, data: st.DataObject) -> None:
    wanted = data.draw(st.integers(1, available))
    chosen = spread(available, wanted)
    assert len(set(chosen)) == wanted
    assert chosen == sorted(chosen)
    assert chosen[0] >= 0
    assert chosen[-1] < available
    if wanted > 1:
        assert (chosen[0], chosen[-1]) == (0, available - 1)
