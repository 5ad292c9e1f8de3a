"""Kernels of many families in Triton's style, held against formulas in float64, on two machines, and with faults."""

from __future__ import annotations

import pytest

from tests.builtin.triton.families.case import Case, Fault, outcome
from tests.builtin.triton.families.every import CASES

FAULTS = [(case, fault) for case in CASES for fault in case.faults]


@pytest.mark.parametrize(
    ("case", "topology"),
    [(case, name) for case in CASES for name in ("tiny", "default")],
    ids=lambda value: value.name if isinstance(value, Case) else value,
)
def test_kernels_give_what_the_formula_gives(case: Case, topology: str) -> None:
    """Of all shapes and dtypes; what kernels branched on is confirmed, and no two accesses race."""
    found = outcome(case, topology)
    assert found.error is None, found.error
    assert found.wrong == []
    assert found.hazards == ()
    assert found.sim.verified


@pytest.mark.parametrize(
    ("case", "fault"),
    FAULTS,
    ids=lambda value: value.name if isinstance(value, Case) else value.new.split("\n")[0].replace(" ", "")[:40],
)
def test_planted_faults_are_found(case: Case, fault: Fault) -> None:
    """By the numbers, by an error that names the tensor, or by a hazard."""
    found = outcome(case, "tiny", fault, [next(case.trials())])
    if fault.found not in ("numbers", "hazard"):
        assert found.error is not None, found.wrong
        assert fault.found in str(found.error)
        return
    assert found.error is None, found.error
    assert found.wrong if fault.found == "numbers" else found.hazards
