"""How products are cut: every element of C belongs to one PE, packages split rows, and no other grid reads less."""

from __future__ import annotations

from itertools import product
from math import prod
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_builtin.benches._blocks import Blocks, columns_by_cube, rows_by_cube
from kernbench_core.memory.placement import Interleave
from kernbench_core.runs.bench_run import run as run_bench

MESHES = st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(1, 4), st.sampled_from([1, 2, 3, 4, 8]))
FULL = (4, 4, 4, 8)


def machine(mesh: tuple[int, int, int, int]) -> SimpleNamespace:
    """Return what `Blocks` looks at of a runtime, for (SIPs, width and height in cubes, PEs of a cube)."""
    sips, width, height, pes = mesh
    return SimpleNamespace(mesh=(sips, width * height, pes), cube_mesh=(width, height))


@given(MESHES, st.integers(1, 70), st.integers(1, 70))
def test_every_element_belongs_to_one_pe(mesh, m, n) -> None:
    blocks = Blocks.over(machine(mesh), m, n)
    covered = np.zeros((m, n), int)
    for pe in range(prod(mesh)):
        row, col, rows, cols = blocks.of(pe)
        if rows > 0 and cols > 0:
            covered[row : row + rows, col : col + cols] += 1
    assert (covered == 1).all()


@given(MESHES, st.integers(1, 70), st.integers(1, 70))
def test_no_grid_that_fills_the_packages_reads_less(mesh, m, n) -> None:
    """All grids of as many blocks as there are PEs in a package, found by trying."""
    blocks = Blocks.over(machine(mesh), m, n)
    each = prod(mesh[1:])
    for down, across in product(range(1, each + 1), repeat=2):
        if down * across == each:
            assert blocks.rows + blocks.cols <= -(-m // (mesh[0] * down)) + -(-n // across)


@pytest.mark.parametrize(
    ("mesh", "m", "n", "expected"),
    [
        ((1, 1, 1, 4), 64, 64, (32, 32, (2, 2))),
        ((2, 2, 2, 8), 512, 512, (64, 64, (4, 8))),
        (FULL, 4096, 4096, (256, 128, (4, 32))),
        ((1, 1, 1, 4), 1000, 8, (250, 8, (4, 1))),
    ],
)
def test_grids_by_hand(mesh, m, n, expected) -> None:
    blocks = Blocks.over(machine(mesh), m, n)
    assert (blocks.rows, blocks.cols, blocks.grid) == expected


@pytest.mark.parametrize(("m", "n"), [(4096, 4096), (8192, 2048), (2048, 8192)])
def test_operands_lie_in_the_row_and_the_column_of_cubes(m, n) -> None:
    """A's rows are cut over packages and cubes, B's columns over the cubes of each package: 4 x 4, along rows."""
    blocks = Blocks.over(machine(FULL), m, n)
    for pe in range(prod(FULL)):
        package, left = divmod(pe, 128)
        y, x = divmod(left // 8, 4)
        row, col, rows, cols = blocks.of(pe)
        a_cubes = {divmod(at * 64 // m, 16) for at in (row, row + rows - 1)}
        b_cubes = {at * 16 // n for at in (col, col + cols - 1)}
        assert {(sip, cube // 4) for sip, cube in a_cubes} == {(package, y)}
        assert {cube % 4 for cube in b_cubes} == {x}


SIZES = {
    "packages": [(4, 4, 8), (16, 16, 10), (16, 18, 16), (8, 6, 12), (1, 1, 1), (36, 4, 9)],
    "default": [(8, 8, 8), (64, 64, 50), (64, 66, 64), (16, 12, 24), (1, 1, 1), (72, 4, 9)],
}


@pytest.mark.parametrize(
    ("topology", "m", "n", "k"),
    [
        *(("packages", *size) for size in SIZES["packages"]),
        *(("default", *size) for size in SIZES["default"]),
    ],
)
@pytest.mark.parametrize("bench", ["gemm", "gemm-composite"])
def test_sizes_of_which_some_divide_and_some_do_not(run, bench, topology, m, n, k) -> None:
    """Two packages of four cubes: every product has a placement, and B has a copy in each package."""
    result = run(bench, topology, M=m, N=n, K=k)
    assert result.verified
    pes = {"packages": 16, "default": 64}[topology]
    if m % pes == 0 and (bench == "gemm-composite" or n % pes == 0):
        assert not any("scale_up" in use.kind for use in result.busiest)


def test_placements_where_nothing_divides() -> None:
    assert rows_by_cube(machine((2, 2, 2, 8)), 96, 64, "f16") is None
    dealt = Interleave(140)
    assert columns_by_cube(machine((2, 2, 2, 8)), 64, 70, "f16") == {"cube": dealt, "pe": dealt}


def mesh_of_cubes(plugins, preset, *sets) -> tuple[int, int]:
    """Return what a bench is told of the mesh."""
    found = []

    def bench(rt) -> None:
        rt.zeros((1,))
        found.append(rt.cube_mesh)

    run_bench(bench, preset, set=sets, plugins=plugins)
    (mesh,) = found
    return mesh


@pytest.mark.parametrize(("width", "height"), [(1, 1), (3, 2)])
def test_the_runtime_tells_the_mesh_of_cubes(plugins, width, height) -> None:
    sets = (f"sip.mesh.width={width}", f"sip.mesh.height={height}")
    assert mesh_of_cubes(plugins, "tiny", *sets) == (width, height)


@pytest.mark.parametrize(("preset", "expected"), [("tiny", (1, 1)), ("default", (2, 2)), ("full", (4, 4))])
def test_the_runtime_tells_the_mesh_of_every_preset(plugins, preset, expected) -> None:
    assert mesh_of_cubes(plugins, preset) == expected


def test_the_runtime_tells_the_figures_of_a_pe(plugins) -> None:
    """In the units of parameters, as the machine at hand has them; of a unit that no PE has there are none."""
    found = []

    def bench(rt) -> None:
        rt.zeros((1,))
        found.append((rt.scratchpad_bytes, rt.unit("pe_math")["lanes"], rt.unit("pe_math")["clock"], rt.unit("sfu")))

    sets = ("pe.tcm.capacity=3 MiB", "components.pe_math.params.lanes=17", "components.pe_math.params.clock=2 GHz")
    run_bench(bench, "tiny", set=sets, plugins=plugins)
    assert found == [(3 << 20, 17, 2.0, {})]
