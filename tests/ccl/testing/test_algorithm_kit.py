"""The kit for algorithms: the templates pass it, and each planted fault is found by the check for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernbench_ccl.testing import ALGORITHMS, AlgorithmUnderTest
from kernbench_core.testing import CheckOutcome
from tests.ccl.testing.planted import PLANTS, plugins_with

CHECKS = [check.name for check in ALGORITHMS.checks]
#: Checks that simulate; the others prove.
TIMED = CHECKS[CHECKS.index("computes_right_data") :]
PROVED = CHECKS[: CHECKS.index("computes_right_data")]


@pytest.fixture(autouse=True)
def _importable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)


def verdicts(subject: AlgorithmUnderTest, names: list[str]) -> dict[str, tuple[CheckOutcome, str]]:
    """Try checks on an algorithm."""
    found = [
        check.result("algorithms", subject.algorithm.name, subject, {})
        for check in ALGORITHMS.checks
        if check.name in names
    ]
    return {each.check: (each.outcome, each.reason) for each in found}


def failed(subject: AlgorithmUnderTest, names: list[str]) -> dict[str, str]:
    return {name: why for name, (outcome, why) in verdicts(subject, names).items() if outcome is CheckOutcome.FAILED}


def test_each_check_has_a_fault_of_its_own() -> None:
    """Which it is named for."""
    assert [plant.check for plant in PLANTS.values()] == CHECKS


@pytest.mark.slow
@pytest.mark.parametrize("name", PLANTS)
def test_a_planted_fault_fails_its_check_and_those_that_must(tmp_path: Path, name: str) -> None:
    """And no other."""
    plant = PLANTS[name]
    subject = ALGORITHMS.subject(*plugins_with(tmp_path, plant))
    found = failed(subject, CHECKS)
    assert set(found) == {plant.check, *plant.also}, found
    assert found[plant.check].startswith(plant.told)


@pytest.mark.parametrize("name", [name for name, plant in PLANTS.items() if plant.check not in TIMED])
def test_a_fault_of_the_data_is_proved_in_few_ranks(tmp_path: Path, name: str) -> None:
    """By the check that is named for it alone: those that simulate are left to the slow tests."""
    plant = PLANTS[name]
    plugins, algorithm = plugins_with(tmp_path, plant)
    of_all = ALGORITHMS.subject(plugins, algorithm)
    found = failed(AlgorithmUnderTest(of_all.algorithm, plugins, plant.ranks), PROVED)
    assert set(found) == {plant.check} and found[plant.check].startswith(plant.told)


def test_a_group_of_other_ranks_is_found_out(tmp_path: Path) -> None:
    """Where a kernel takes a place in the group for a rank of the world."""
    plant = PLANTS["a rank of the group taken for one of the world"]
    subject = ALGORITHMS.subject(*plugins_with(tmp_path, plant))
    found = failed(subject, ["serves_groups_of_ranks"])
    assert found["serves_groups_of_ranks"].startswith("with the ranks [3, 2, 1] of 4: tl.load at ")
