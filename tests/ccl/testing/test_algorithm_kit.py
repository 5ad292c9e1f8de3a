"""The kit for algorithms: the templates pass it, and each planted fault is found by the check for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import evolve

from kernbench_ccl.collectives import COLLECTIVES as SHIPPED
from kernbench_ccl.contract import ELSEWHERE, SWITCH, TORUS_2D
from kernbench_ccl.testing import ALGORITHMS, AlgorithmUnderTest, algorithm_under_test
from kernbench_core.testing import CheckFailed, CheckOutcome
from tests.ccl.testing.planted import COMBINE, FINISH, KERNEL, PLANTS, SHARE, Plant, plugins_with

CHECKS = [check.name for check in ALGORITHMS.checks]
#: Checks that simulate; the others prove.
TIMED = CHECKS[CHECKS.index("computes_right_data") :]
PROVED = CHECKS[: CHECKS.index("computes_right_data")]


@pytest.fixture(autouse=True)
def _importable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)


def verdicts(under_test: AlgorithmUnderTest, names: list[str]) -> dict[str, tuple[CheckOutcome, str]]:
    """Try checks on an algorithm."""
    found = [
        check.result("algorithms", under_test.algorithm.name, under_test, {})
        for check in ALGORITHMS.checks
        if check.name in names
    ]
    return {each.check: (each.outcome, each.reason) for each in found}


def failed(under_test: AlgorithmUnderTest, names: list[str]) -> dict[str, str]:
    return {name: why for name, (outcome, why) in verdicts(under_test, names).items() if outcome is CheckOutcome.FAILED}


def test_each_check_has_a_fault_of_its_own() -> None:
    """Which it is named for."""
    assert [plant.check for plant in PLANTS.values()] == CHECKS


@pytest.mark.parametrize("collective", SHIPPED)
def test_what_is_begun_from_a_template_passes(tmp_path: Path, collective: str) -> None:
    """What faults are planted in, and what `kernbench ccl new` writes."""
    under_test = ALGORITHMS.opens(*plugins_with(tmp_path, Plant("", {}, collective=collective)))
    assert failed(under_test, CHECKS) == {}


@pytest.mark.parametrize("name", PLANTS)
def test_a_planted_fault_fails_its_check_and_those_that_must(tmp_path: Path, name: str) -> None:
    """And no other."""
    plant = PLANTS[name]
    under_test = ALGORITHMS.opens(*plugins_with(tmp_path, plant))
    found = failed(under_test, CHECKS)
    assert set(found) == {plant.check, *plant.also}, found
    assert found[plant.check].startswith(plant.told)


@pytest.mark.parametrize("name", [name for name, plant in PLANTS.items() if plant.check not in TIMED])
def test_a_fault_of_the_data_is_proved_in_few_ranks(tmp_path: Path, name: str) -> None:
    """By the check that is named for it alone."""
    plant = PLANTS[name]
    plugins, algorithm = plugins_with(tmp_path, plant)
    of_all = ALGORITHMS.opens(plugins, algorithm)
    found = failed(AlgorithmUnderTest(of_all.algorithm, plugins, plant.ranks), PROVED)
    assert set(found) == {plant.check} and found[plant.check].startswith(plant.told)


WAIT = "tl.recv((1,), c.dtype, (rank + 1) % world)"
AT_FEW = {
    "an odd count of six ranks": (
        (2, 6), {SHARE: f"{SHARE}\n    end -= world == 6 and count % 4 == 3 and pe == 1"},
        "takes_any_count", "with 6 ranks on ring, ",
    ),
    "the least of five ranks": (
        (2, 5), {FINISH: f"{FINISH}\n            total = total if world < 5 or c.redop != 'min' else total + total"},
        "does_every_reduction", "with 5 ranks on ring, ",
    ),
    "a wait cycle on one network of eight ranks": (
        (2, 8), {SHARE: f"{SHARE}\n    if world == 8 and topo_kind == {TORUS_2D}:\n        {WAIT}"},
        "runs_on_each_of_its_networks", "with 8 ranks on torus_2d, ",
    ),
    "the last of four PEs": (
        (2, 3), {FINISH: f"{FINISH}\n            total = total if pe < 3 else total + total"},
        "counts_nothing_twice", "with 3 ranks on ring, 4 PEs each, 48 elements, ",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", AT_FEW)
def test_a_fault_of_some_calls_alone_is_found(tmp_path: Path, name: str) -> None:
    """By the check for those calls and no other: of all others the kernel is right."""
    ranks, changes, check, told = AT_FEW[name]
    plugins, algorithm = plugins_with(tmp_path, Plant(check, changes))
    of_all = ALGORITHMS.opens(plugins, algorithm)
    found = failed(AlgorithmUnderTest(of_all.algorithm, plugins, ranks), PROVED)
    assert list(found) == [check], found
    assert found[check].startswith(told)


def test_a_kernel_without_an_end_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What else there is to try would take as long each time."""
    monkeypatch.setattr(algorithm_under_test, "TIMEOUT_S", 0.2)
    endless = Plant("never_waits_for_ever", {SHARE: f"{SHARE}\n    while world == 3:\n        pass"})
    found = verdicts(ALGORITHMS.opens(*plugins_with(tmp_path, endless)), CHECKS)
    outcome, why = found["never_waits_for_ever"]
    assert outcome is CheckOutcome.FAILED and why.startswith("with 3 ranks on ring, 1 PE each, 72 elements, ")
    assert "must end within the wall time" in why
    assert {found[name][0] for name in TIMED} == {CheckOutcome.NOT_APPLICABLE}
    assert found["computes_right_data"][1] == "its kernel has no end, as never_waits_for_ever tells"


def test_one_that_takes_a_single_number_of_ranks_is_tried_with_it(tmp_path: Path) -> None:
    """It is looked for above those that are tried as a rule."""
    refuses = "\n\n\ndef refuses(world, network):\n    return None if world == 11 else 'ranks must be eleven.'"
    plugins, name = plugins_with(tmp_path, Plant("", {KERNEL: KERNEL + refuses}))
    under_test = ALGORITHMS.opens(plugins, name)
    assert list(under_test.homes) == [11] and under_test.chosen(3, 5) == (11,)
    assert failed(under_test, ["refuses_in_words", "loses_no_contribution"]) == {}


def test_one_that_takes_no_ranks_cannot_be_opened(tmp_path: Path) -> None:
    """Which says so."""
    refuses = "\n\n\ndef refuses(world, network):\n    return 'ranks must be others.'"
    plugins, name = plugins_with(tmp_path, Plant("", {KERNEL: KERNEL + refuses}))
    with pytest.raises(CheckFailed) as caught:
        ALGORITHMS.opens(plugins, name)
    assert str(caught.value) == (
        "it must take some number of ranks, as one of 2, 3, 4, 5, 6, 7, 8, 9, and takes none up to 64"
    )


def test_networks_of_plugins_are_tried_where_any_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And found out where the kernel does something else on them."""
    monkeypatch.syspath_prepend(Path(__file__).parents[3] / "plugins_example")
    mistaken = PLANTS["one network mistaken"]
    plant = evolve(mistaken, changes={COMBINE: mistaken.changes[COMBINE].replace(f"!= {SWITCH}:", f"!= {ELSEWHERE}:")})
    plugins, name = plugins_with(tmp_path, plant, "example = kernbench_example.plugin")
    under_test = AlgorithmUnderTest(ALGORITHMS.opens(plugins, name).algorithm, plugins, (4,))
    found = failed(under_test, ["loses_no_contribution", plant.check])
    assert list(found) == [plant.check]
    assert found[plant.check].startswith("with 4 ranks on example.hypercube, 1 PE each, 96 elements, ")


def test_a_group_of_other_ranks_is_found_out(tmp_path: Path) -> None:
    """Where a kernel takes a place in the group for a rank of the world."""
    plant = PLANTS["a rank of the group taken for one of the world"]
    under_test = ALGORITHMS.opens(*plugins_with(tmp_path, plant))
    found = failed(under_test, ["serves_groups_of_ranks"])
    assert found["serves_groups_of_ranks"].startswith("with the ranks [3, 2, 1] of 4: tl.load at ")


def test_wrong_data_of_a_group_is_told_in_a_sentence(tmp_path: Path) -> None:
    """The first there is of it, and not the verdict as Python shows that."""
    plant = Plant("", {COMBINE: f"{COMBINE}\n                total = c.combine(tl, total, total)"})
    under_test = ALGORITHMS.opens(*plugins_with(tmp_path, plant))
    told = failed(under_test, ["serves_groups_of_ranks"])["serves_groups_of_ranks"]
    assert told.startswith("with the ranks [3, 2, 1] of 4: tensor ")
    assert "Verification" not in told
