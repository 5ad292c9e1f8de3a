"""The kit for collectives: each planted fault of a record, or of what does it, is found by the check for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from kernbench_ccl.collectives import COLLECTIVES as SHIPPED
from kernbench_ccl.collectives import CallShape, CollectiveKind, Piece, combined, moved
from kernbench_ccl.collectives.traffic import Traffic, at, every_pair
from kernbench_ccl.testing import COLLECTIVES, CollectiveUnderTest
from kernbench_core.plugins import Plugins, load_plugins
from kernbench_core.testing import CheckOutcome
from tests.conftest import SOURCE_TREE

CHECKS = [check.name for check in COLLECTIVES.checks]
SENTENCE = "Every rank gets the vector of the one before."
MODULE = '''
"""Every rank gets the vector of the one before."""
from kernbench_ccl.collectives import CollectiveKind, moved
from kernbench_ccl.contract import kernel_args
from kernbench_core import AlgorithmEntry, CollectiveEntry
kernbench_api = 1
COLLECTIVE = "turn"
TOPO_NAME_TO_KIND = {"*": 0}
def kernel(in_ptr, out_ptr, scratch_ptr, count, rank, world, pe, n_pe, topo_kind, tl):
    if pe == 0:
        tile = tl.collective.tile
        for at in range(0, count, tile):
            n = min(tile, count - at)
            tl.send(tl.load(in_ptr + at, shape=(n,)), (rank + 1) % world)
            came = tl.recv((n,), tl.collective.dtype, (rank - 1) % world)
            tl.store(out_ptr + at, tl.load(in_ptr + at, shape=(n,)) if WRONG else came)
TURN = CollectiveKind("turn", lambda call, rank: call.count, lambda call, rank: [moved((rank - 1) % call.world, 0, call.count)])
def kernbench_collectives():
    return [CollectiveEntry("turn", f"{__name__}:TURN", "Every rank gets the vector of the one before.")]
def kernbench_algorithms():
    return [AlgorithmEntry("acme.plain_turn", f"{__name__}:kernel", "To the next.")]
'''  # noqa: E501


@pytest.fixture(scope="module")
def plugins() -> Plugins:
    return load_plugins(SOURCE_TREE, installed=False)


def of_plugin(folder: Path, patch: pytest.MonkeyPatch, wrong: str) -> CollectiveUnderTest:
    """Register a collective with an algorithm that is wrong where an expression is true."""
    module = f"turning_{folder.name.replace('-', '_')}"
    (folder / f"{module}.py").write_text(MODULE.replace("WRONG", wrong))
    patch.syspath_prepend(folder)
    return COLLECTIVES.opens(load_plugins([*SOURCE_TREE, f"acme = {module}"], installed=False), "turn")


def failed(under_test: CollectiveUnderTest, *but: str) -> dict[str, str]:
    """Try the checks, or all but some."""
    found = [check.result("collectives", under_test.name, under_test, {}) for check in COLLECTIVES.checks
             if check.name not in but]  # fmt: skip
    return {each.check: each.reason for each in found if each.outcome is CheckOutcome.FAILED}


def test_one_of_a_plugin_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the faults below are planted in; it has no root."""
    under_test = of_plugin(tmp_path, monkeypatch, "False")
    outcomes = {check.name: check.result("collectives", "turn", under_test, {}).outcome for check in COLLECTIVES.checks}
    left_out = {name for name, outcome in outcomes.items() if outcome is CheckOutcome.NOT_APPLICABLE}
    assert left_out == {"treats_roots_alike", "bounds_what_must_move"}
    assert {outcomes[name] for name in CHECKS if name not in left_out} == {CheckOutcome.PASSED}


def shifted(call: CallShape, rank: int) -> list[Piece]:
    return [moved((other + 1) % call.world, 0, call.count) for other in range(call.world)]


def to_the_first(call: CallShape, rank: int) -> list[Piece] | None:
    there = rank == call.root or (call.root, rank) == (5, 0)
    return [combined(range(call.world), 0, call.count)] if there else None


def of_one(call: CallShape, rank: int) -> list[Piece]:
    return [combined([(rank - 1) % call.world], 0, call.count)]


ALL_GATHER, ALL_REDUCE = SHIPPED["all_gather"], SHIPPED["all_reduce"]
FAULTS: dict[str, tuple[CollectiveKind, dict[str, Any], set[str], str]] = {
    "states_itself_completely": (
        ALL_GATHER, {"factor": lambda world: 0.0}, set(),
        "bus bandwidth of 2 ranks must be more than 0 times the algorithm's, not 0.0",
    ),
    "says_who_ends_with_what": (
        SHIPPED["send_recv"], {"ends": of_one}, set(),
        "its record must say reduces=True to give as ends a reduction, Piece(count=6, first=0, ranks=(1,), "
        "reduced=True), for rank 0 of 2 (count 6)",
    ),
    "treats_roots_alike": (
        SHIPPED["reduce"], {"ends": to_the_first}, set(),
        "rank 0 of 6 must bring and end with 1 and 0 elements where rank 5 is the root, as where rank 0 is, not 1 and "
        "1",
    ),
    "agrees_with_numpy": (
        ALL_GATHER, {"ends": shifted}, {"agrees_with_its_algorithms"},
        "rank 0 of 2 must end with 0.0 as element 0, not 1.0",
    ),
    "bounds_what_must_move": (
        ALL_REDUCE,
        {"traffic": lambda call, size: Traffic(every_pair(call.world), at(0.0), at(0.0), lambda inside: 0.0)}, set(),
        "with 2 ranks on ring 1 MiB must take at least 10985.8 ns (injection), as follows from who ends with what, not "
        "500 ns (distance)",
    ),
    "has_its_command": (
        ALL_REDUCE, {"spelling": "everything"}, set(),
        "kernbench ccl must have a command 'everything' that says what it does",
    ),
}  # fmt: skip


@pytest.mark.parametrize("check", FAULTS)
def test_a_fault_of_a_record_fails_its_check_and_those_that_must(plugins: Plugins, check: str) -> None:
    """Of those that simulate nothing."""
    kind, changes, also, told = FAULTS[check]
    sentence = plugins.registries["collectives"][kind.name].sentence
    found = failed(CollectiveUnderTest(evolve(kind, **changes), sentence, plugins), "is_called_by_ranks")
    assert set(found) == {check, *also}
    assert found[check].startswith(told)


@pytest.mark.parametrize("function", ["all_reduce", "monitored_barrier"])
def test_a_function_that_torch_has_is_never_reached(plugins: Plugins, function: str) -> None:
    """Whether dist has it, too, or refuses it."""
    kind = evolve(SHIPPED["send_recv"], function=function)
    found = failed(CollectiveUnderTest(kind, SENTENCE, plugins), "is_called_by_ranks", "has_its_command")
    told = f"its function must have a name that torch.distributed has not, not {function!r}"
    assert found == {"states_itself_completely": told}


@pytest.mark.parametrize(
    ("check", "wrong", "told"),
    [
        ("is_called_by_ranks", "tile > 4", "with 3 ranks: "),
        ("agrees_with_its_algorithms", "tile == 4", "acme.plain_turn with 2 ranks on ring, 1 PE each, 8 elements, "),
    ],
)
def test_an_algorithm_that_does_something_else_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, check: str, wrong: str, told: str
) -> None:
    """When ranks call it, or when it is proved; tiles of proofs are small."""
    found = failed(of_plugin(tmp_path, monkeypatch, wrong))
    assert list(found) == [check] and found[check].startswith(told), found


def test_each_check_has_a_fault_of_its_own() -> None:
    """Which it is named for."""
    assert [*FAULTS, "is_called_by_ranks", "agrees_with_its_algorithms"] == CHECKS
