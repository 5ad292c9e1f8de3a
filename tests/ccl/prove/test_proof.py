"""What a kernel finds in a proof is what it finds in a timed run."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernbench_ccl.prove import network_of
from kernbench_ccl.prove.algorithm_check import prove_case
from kernbench_ccl.prove.proof_case import RAISED, ProofCase
from tests.ccl.prove.compass import SOURCE, by_directions


@pytest.mark.parametrize("network", ["ring", "mesh_2d", "torus_2d"])
@pytest.mark.parametrize("world", [2, 6, 9])
def test_directions_lead_to_the_neighbours_of_the_network(tmp_path: Path, network: str, world: int) -> None:
    """In a proof as in a timed run: every rank gets every part along rows, then columns."""
    case = ProofCase(network_of(network, world), 2, 5)
    proof, _ = prove_case(by_directions(tmp_path), case)
    assert [fault.sentence for fault in proof.faults] == []
    assert proof.messages > 0


def test_a_direction_without_a_neighbour_is_an_error_with_its_line(tmp_path: Path) -> None:
    """Networks without directions have none."""
    proof, _ = prove_case(by_directions(tmp_path), ProofCase(network_of("switch", 3), 1, 5))
    line = next(n for n, text in enumerate(SOURCE.splitlines(), 1) if text.endswith("# S"))
    fault = proof.faults[0]
    assert (fault.kind, fault.rank) == (RAISED, 0)
    assert fault.sentence == (
        f"rank 0 after step 0: tl.send at {tmp_path / 'compass.py'}:{line}: a peer must be in a direction in which "
        "this PE has a neighbour, not 'e'; name it by its number."
    )
