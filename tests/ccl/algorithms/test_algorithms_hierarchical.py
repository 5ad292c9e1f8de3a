"""The hierarchical all-reduce: every PE brings a vector."""

from __future__ import annotations

import numpy as np
import pytest

from kernbench_ccl.algorithms.hierarchical_all_reduce import rings_of
from kernbench_ccl.collectives import COLLECTIVES, exact_inputs
from kernbench_ccl.contract import Collective, Network
from kernbench_ccl.reductions import reduced
from tests.ccl.algorithm_cases import algorithm_named
from tests.ccl.untimed_machine import run_collective


@pytest.mark.parametrize("pipeline", [True, False])
@pytest.mark.parametrize(
    ("world", "cubes", "n_pe"), [(1, (1, 1), 4), (2, (2, 2), 8), (3, (2, 1), 6), (3, (1, 1), 1), (2, (2, 2), 6)]
)
def test_every_pe_gets_the_sum_of_all(world: int, cubes: tuple[int, int], n_pe: int, pipeline: bool) -> None:
    """In and out have a row for each PE; six PEs on four cubes make one ring."""
    for count in (1, 7, 100):
        for redop in ("sum", "avg"):
            rows = [exact_inputs("f32", redop, count, world * n_pe, vector) for vector in range(world * n_pe)]
            ins = {r: np.concatenate(rows[r * n_pe : (r + 1) * n_pe]) for r in range(world)}
            outs = {r: np.zeros(n_pe * count, np.float32) for r in range(world)}
            call = Collective(
                COLLECTIVES["all_reduce"], "f32", Network("ring", world, world), tuple(range(world)), redop=redop,
                tile=3, contributors="pe", vectors=n_pe, cubes=cubes, held_bytes=48, pipeline=pipeline,
            )  # fmt: skip
            run_collective(algorithm_named("hierarchical_all_reduce"), call, count, n_pe, ins, outs)
            right = np.tile(reduced(rows, redop), n_pe)
            for r in range(world):
                np.testing.assert_array_equal(outs[r], right)


def test_rings_go_from_the_cube_to_the_sips() -> None:
    """PE 13 of 16 on 2 x 2 cubes is the second PE of the last cube."""
    call = Collective(
        COLLECTIVES["all_reduce"], "f32", Network("ring", 3, 3), (0, 1, 2), redop="sum", contributors="pe", vectors=16,
        cubes=(2, 2),
    )  # fmt: skip
    inner, columns, rows, sips = rings_of(call, 1, 13, 16)
    assert (inner.nxt, inner.prv, inner.size) == ((1, 14), (1, 12), 4)
    assert (columns.nxt, columns.place) == ((1, 9), 1) and (rows.nxt, rows.place) == ((1, 5), 1)
    assert (sips.nxt, sips.prv, sips.size) == (2, 0, 3)


def test_only_vectors_of_pes_are_taken() -> None:
    """A vector of each SIP is for the other algorithms."""
    assert algorithm_named("hierarchical_all_reduce").refusal(Network("ring", 4, 4)) == (
        "ccl.hierarchical_all_reduce must be given one vector per pe, not per sip; choose another."
    )
