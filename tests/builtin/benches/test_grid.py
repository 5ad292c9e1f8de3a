"""Grids of PEs: what each computes and hands over, followed without a clock, and products against numpy."""

from __future__ import annotations

from collections import deque
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernbench_builtin.benches._grid import PeGrid, Span, cut, halved, part


def machine(mesh: tuple[int, int, int], width: int, scratchpad: int = 1 << 21, slot: int = 16 << 10) -> Any:
    units = {"pe_gemm": {"rows": 32, "columns": 64}, "pe_ipcq": {"slot_bytes": slot, "tier": "tcm"}}
    return SimpleNamespace(
        mesh=mesh, n_pes=mesh[0] * mesh[1] * mesh[2], cube_mesh=(width, mesh[1] // width), unit=units.__getitem__,
        scratchpad_bytes=scratchpad,
    )  # fmt: skip


meshes = st.sampled_from(
    [((1, 1, 1), 1), ((1, 1, 4), 1), ((2, 1, 3), 1), ((2, 4, 8), 2), ((1, 2, 6), 2), ((1, 16, 8), 4)]
)
sizes = st.integers(1, 150)


@given(meshes, sizes, sizes, st.integers(1, 2000), st.sampled_from([1 << 21, 1 << 18]))
@settings(max_examples=60, deadline=None)
def test_every_product_is_made_once_of_tiles_that_are_there(
    mesh: tuple[tuple[int, int, int], int], m: int, n: int, k: int, scratchpad: int
) -> None:
    """Every PE's steps in order: what it takes from a neighbour is what that passed on next, and nothing is left."""
    rt = machine(*mesh, scratchpad)
    grid = PeGrid.over(rt, m, n, k, "f16", ("auto", "auto", "auto"))
    queues: dict[tuple[str, int, int], deque[Any]] = {}
    sites = [grid.site(pe) for pe in range(rt.n_pes)]
    made: dict[tuple[int, Span], int] = {}
    for pe, site in enumerate(sites):
        for name, tile, sink in (
            (name, tile, sink)
            for step in grid.steps(site)
            for name, tile, sink in (("a", step.a, site.west), ("b", step.b, site.north))
        ):
            if tile.passed and tile.size:
                queues.setdefault((name, pe, sink), deque()).append((tile.rows, tile.cols))
    loaded = 0
    for pe, site in enumerate(sites):
        kept: set[Any] = set()
        for step in grid.steps(site):
            for name, tile, source in (("a", step.a, site.east), ("b", step.b, site.south)):
                what = (name, tile.rows, tile.cols)
                if tile.load:
                    loaded += tile.size
                elif tile.size and grid.hands_over:
                    assert queues[name, source, pe].popleft() == what[1:]
                elif tile.size:
                    assert what in kept
                kept.add(what)
            assert step.a.cols == step.b.rows
            for row in range(step.a.row, step.a.row + step.a.shape[0]) if step.b.shape[1] else ():
                made[row, step.b.cols] = made.get((row, step.b.cols), 0) + step.a.shape[1]
    assert not any(queues.values())
    assert set(made.values()) == {k}
    assert sorted((row, col) for row, (first, count) in made for col in range(first, first + count)) == [
        (row, col) for row in range(m) for col in range(n)
    ]
    if grid.hands_over and grid.tile[0] >= m and grid.tile[1] >= n:
        assert loaded == m * k + grid.packages * k * n, "A once, B once in each package"


@pytest.mark.parametrize("pes", [8, 12, 32])
def test_neighbours_are_each_others(pes: int) -> None:
    grid = PeGrid.over(machine((2, 4, pes), 2), 512, 512, 512, "f16", ("auto", "auto", "auto"))
    sites = [grid.site(pe) for pe in range(8 * pes)]
    for pe, site in enumerate(sites):
        assert sites[site.east].west == sites[site.west].east == pe
        assert sites[site.north].south == sites[site.south].north == pe
    assert len({(site.rows, site.cols) for site in sites}) == 8 * pes


@given(st.integers(0, 9), st.integers(0, 40), st.integers(1, 9))
def test_parts_and_cuts_cover_a_span(first: int, count: int, pieces: int) -> None:
    for spans in (
        [part((first, count), pieces, at) for at in range(pieces)],
        [cut((first, count), pieces, at) for at in range(count)],
    ):
        assert [at for start, size in spans for at in range(start, start + size)] == list(range(first, first + count))
    assert max(size for _, size in [part((first, count), pieces, at) for at in range(pieces)]) == -(-count // pieces)


@pytest.mark.parametrize(
    ("block", "most", "tile"),
    [((256, 256), 65536, (256, 256)), ((256, 256), 65535, (128, 256)), ((64, 448), 20000, (64, 256)),
     ((33, 64), 1000, (32, 64)), ((1, 1), 0, (1, 1))],
)  # fmt: skip
def test_blocks_are_halved_in_whole_arrays(block: tuple[int, int], most: int, tile: tuple[int, int]) -> None:
    assert halved(*block, (32, 64), most) == tile


@pytest.mark.parametrize(
    ("size", "tile", "hands_over", "stays"),
    [
        ((512, 512, 512), (64, 64, 64), True, False),  # 2 passes: 128 terms, of which each PE has 64
        ((1024, 1024, 1024), (128, 128, 32), True, False),  # 8 passes of 32 cycles
        ((4096, 4096, 4096), (256, 256, 32), True, False),  # four sums of 512 x 512 do not fit, a slot holds 256 x 32
        ((64, 64, 64), (8, 8, 64), False, True),  # little: each loads its own
    ],
)
def test_the_rule_for_tiles(
    size: tuple[int, int, int], tile: tuple[int, int, int], hands_over: bool, stays: bool
) -> None:
    grid = PeGrid.over(machine((2, 4, 8), 2), *size, "f16", ("auto", "auto", "auto"))
    assert (grid.tile, grid.hands_over, grid.stays) == (tile, hands_over, stays)


@pytest.mark.parametrize("seed", range(4))
def test_products_of_random_shapes(run, seed: int) -> None:
    """Handed over on 2 x 2 PEs, and where their operands are few, loaded: with tiles that divide nothing."""
    import numpy as np

    rng = np.random.default_rng(seed)
    m, n, k = (int(size) for size in rng.integers(33, 150, 3))
    tiles = {name: int(rng.integers(7, 90)) for name in ("tile_m", "tile_n", "tile_k")}
    assert run("gemm", "tiny", M=m, N=n, K=k * 4, **(tiles if seed % 2 else {})).verified
