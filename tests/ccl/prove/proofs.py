"""Proofs of changed rings, and the command that checks, for tests of what is found."""

from __future__ import annotations

from pathlib import Path

from kernbench_ccl.prove import Fault, network_of
from kernbench_ccl.prove.algorithm_check import prove_case
from kernbench_ccl.prove.proof_case import ProofCase
from kernbench_core.plugins import Plugins
from tests.ccl.ring_source import ring


def only(folder: Path, *changes: tuple[str, str], case: ProofCase) -> tuple[list[Fault], dict[str, str]]:
    """Prove one case of a changed ring, and return its faults and the lines of its marks."""
    algorithm, lines = ring(folder, *changes)
    proof, _ = prove_case(algorithm, case)
    return list(proof.faults), lines


def on_ring(world: int, count: int, n_pe: int = 1, **more: object) -> ProofCase:
    """Return a case on a ring."""
    return ProofCase(network_of("ring", world), n_pe, count, "sum", **more)  # type: ignore[arg-type]


def run_command(plugins: Plugins, *args: str) -> int:
    """Run `kernbench ccl check` as the command line does, and return its exit code."""
    from kernbench_ccl.cli.check import check as command
    from kernbench_core.cli.shell import Shell

    code = command.main(list(args), standalone_mode=False, obj=Shell(plugins))
    assert isinstance(code, int)
    return code
