"""Prove one case of a collective: run its kernel without time on symbolic payloads, then look at what ranks hold."""

from __future__ import annotations

from kernbench_ccl.catalogue import Algorithm
from kernbench_ccl.contract import Collective
from kernbench_ccl.prove.proof_case import Proof, ProofCase
from kernbench_ccl.prove.proof_run import Run
from kernbench_ccl.prove.verdict import Verdict

__tracebackhide__ = True  # errors name the kernel's line, not one of these


def prove(algorithm: Algorithm, collective: Collective, case: ProofCase) -> Proof:
    """Run one case and look at its result."""
    run = Run(algorithm, collective, case)
    outcome = run.run()
    faults = Verdict(run, outcome).faults()
    trail = run.trail
    return Proof(case, faults, trail.messages, trail.most, outcome.used_any, not run.use.asked)
