"""How products are cut: every element of C belongs to one PE, packages split rows, and no other grid reads less."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_builtin.benches._blocks import Blocks, columns_by_cube, rows_by_cube

MESHES = st.tuples(st.integers(1, 4), st.integers(1, 6), st.integers(1, 8))


def machine(mesh: tuple[int, int, int]) -> SimpleNamespace:
    """Return what `Blocks` looks at of a runtime."""
    return SimpleNamespace(mesh=mesh, n_pes=mesh[0] * mesh[1] * mesh[2])


@given(MESHES, st.integers(1, 70), st.integers(1, 70))
def test_every_element_belongs_to_one_pe(mesh, m, n) -> None:
    blocks = Blocks.over(machine(mesh), m, n)
    covered = np.zeros((m, n), int)
    for pe in range(machine(mesh).n_pes):
        down, along = divmod(pe, blocks.across)
        covered[down * blocks.rows :, along * blocks.cols :][: blocks.rows, : blocks.cols] += 1
    assert (covered == 1).all()


@given(MESHES, st.integers(1, 70), st.integers(1, 70))
def test_no_grid_that_fills_the_packages_reads_less(mesh, m, n) -> None:
    """All grids of as many blocks as there are PEs in a package, found by trying."""
    blocks = Blocks.over(machine(mesh), m, n)
    each = mesh[1] * mesh[2]
    for down, across in product(range(1, each + 1), repeat=2):
        if down * across == each:
            assert blocks.rows + blocks.cols <= -(-m // (mesh[0] * down)) + -(-n // across)


@pytest.mark.parametrize(
    ("mesh", "m", "n", "expected"),
    [
        ((1, 1, 4), 64, 64, (32, 32, 2)),
        ((2, 4, 8), 512, 512, (64, 64, 8)),
        ((4, 16, 8), 4096, 4096, (256, 128, 32)),
        ((1, 1, 4), 1000, 8, (250, 8, 1)),
    ],
)
def test_grids_by_hand(mesh, m, n, expected) -> None:
    blocks = Blocks.over(machine(mesh), m, n)
    assert (blocks.rows, blocks.cols, blocks.across) == expected


def test_placements_are_left_out_where_nothing_divides() -> None:
    assert rows_by_cube(machine((2, 4, 8)), 100, 64, "f16") is None
    assert columns_by_cube(machine((2, 4, 8)), 70, "f16") is None
