"""The checks of standards of memories: those that come with kernbench pass, and each check finds what it is for."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from kernbench_builtin.checks import Conformance
from kernbench_builtin.components.banks.timing import BankTiming
from kernbench_builtin.memory_standards import STANDARDS
from kernbench_core.plugins import Plugins, load_plugins
from tests.conftest import SOURCE_TREE

PASSED = dict.fromkeys(("opens", "names_its_sources", "fits_the_controller", "takes_what_it_says"), "passed")
SKIPPED = "not applicable: fits_the_controller says why not: "
UNITLESS = "standard gives tRC, which must be a time, not 45. Did you mean '45 ns'?"
PLUGIN = """
from attrs import evolve
from kernbench_builtin.memory_standards import HBM3_6400, Figure
from kernbench_core import MemoryStandardEntry

kernbench_api = 1
RECORDS = dict(
    none={"tRC": 7},
    unsourced=evolve(HBM3_6400, tRC=Figure("45 ns", " ")),
    unitless=evolve(HBM3_6400, tRC=Figure(45, "chosen")),
    restless=evolve(HBM3_6400, tRFC=Figure("5 us", "chosen")),
    contrary=evolve(HBM3_6400, tRC=Figure("44 ns", "chosen")),
    between=evolve(HBM3_6400, tCL=Figure("12.6 ns", "chosen"), tRCDRD=Figure("19.4 ns", "chosen")),
)
globals().update(RECORDS)


def kernbench_memory_standards():
    return [MemoryStandardEntry(f"tried_memories.{name}", f"{__name__}:{name}", "Tried.") for name in RECORDS]
"""


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> Plugins:
    """Load the plug-ins of this tree, and a file with standards."""
    file = tmp_path_factory.mktemp("memories") / "tried_memories.py"
    file.write_text(PLUGIN)
    return load_plugins([*SOURCE_TREE, str(file)], installed=False)


def verdicts(plugins: Plugins, plugin: str, name: str) -> dict[str, str]:
    """Return by check how it ended, and why where it did not pass."""
    found = Conformance.of(plugin, plugins).results({name})
    return {each.check: f"{each.outcome}{': ' * bool(each.reason)}{each.reason}" for each in found}


@pytest.mark.parametrize("name", STANDARDS)
def test_ours_pass(tried: Plugins, name: str) -> None:
    """Every check, of each."""
    assert verdicts(tried, "builtin", name) == PASSED


def test_times_between_two_clocks_are_right(tried: Plugins) -> None:
    """They are rounded up."""
    assert verdicts(tried, "tried_memories", "tried_memories.between") == PASSED


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("unsourced", {"names_its_sources": "failed: tRC must have its source in words, or 'unverified', not ' '"}),
        ("unitless", {"fits_the_controller": f"failed: {UNITLESS}", "takes_what_it_says": SKIPPED + UNITLESS}),
        ("restless", {"fits_the_controller": "failed: tREFI must be longer than a refresh with what surrounds it, "
                                             "5102.5 ns, not 3900 ns; correct one, or give refresh: none"}),
        ("contrary", dict(zip(("fits_the_controller", "takes_what_it_says"), (
            f"{begin}tRC must be at least tRAS + tRP, 28.125 + 16.25 = 44.375 ns, not 44 ns; correct one of them"
            for begin in ("failed: ", SKIPPED)), strict=True))),
    ],
)  # fmt: skip
def test_a_wrong_figure_is_found(tried: Plugins, name: str, expected: dict[str, str]) -> None:
    """By the check that is for it."""
    assert verdicts(tried, "tried_memories", f"tried_memories.{name}") == PASSED | expected


def test_what_is_no_standard_does_not_open(tried: Plugins) -> None:
    """And nothing else is tried of it."""
    found = verdicts(tried, "tried_memories", "tried_memories.none")
    assert found["opens"] == (
        "failed: it must be a MemoryStandard of kernbench_builtin.memory_standards, not {'tRC': 7}"
    )


@pytest.mark.parametrize(
    ("late", "where"),
    [("tCL", "in a row that is open must take about 13.75 ns"),
     ("tRCDRD", "in another row than the one that is open must take about 49.375 ns")],
)  # fmt: skip
def test_a_controller_that_takes_other_times_is_found(
    tried: Plugins, monkeypatch: pytest.MonkeyPatch, late: str, where: str
) -> None:
    """Five clocks more of one time are."""
    right = BankTiming.of

    def wrong(p: Any) -> BankTiming:
        timing = right(p)
        return evolve(timing, **{late: getattr(timing, late) + 5 * timing.tCK})

    monkeypatch.setattr(BankTiming, "of", wrong)
    found = verdicts(tried, "builtin", "hbm3_6400")["takes_what_it_says"]
    assert found.startswith(f"failed: a burst {where}, not ")
