"""The kit for hardware models, tried on our own: all of them keep their word."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from kernbench_builtin.checks.components.component_under_test import ComponentUnderTest
from kernbench_builtin.checks.components.kit import KIT
from kernbench_builtin.checks.components.testbench import WatchedTestbench
from kernbench_core.plugins import load_plugins, own_plugins
from kernbench_core.testing import CheckOutcome, Placed

pytest_plugins = ["pytester"]
PAGE = Path(__file__).parents[2] / "docs/plugins.md"
ENTRY_POINTS = own_plugins("builtin")
PLUGINS = load_plugins(ENTRY_POINTS, installed=False)
#: The check that starts processes, and the one that drives a model with parameters at their ends.
LONG = {"logs_the_same_in_another_process", "refuses_wrong_parameters"}
#: What neither answers reads and writes nor serves what is logged.
UNTIMED = {
    f"builtin.{name}"
    for name in ("forwarding", "host", "io_cpu", "m_cpu", "pcie_ep", "pe_cpu", "pe_mmu", "router_vc")
}
#: What counts something of its own.
COUNTING = {"builtin.hbm_ctrl_bank", "builtin.router_vc"}
#: The lying models of the run's own checks, by the checks that must find each; no others may.
_CONSERVES, _BOUND, _PEAK, _TIME = (
    "conserves_messages_and_bytes", "never_undercuts_its_bound", "never_exceeds_its_peak", "takes_time",
)  # fmt: skip
LIES = {
    "atpeak": set(), "atpeakmath": set(), "busy": {_PEAK}, "busyscratchpad": {_PEAK}, "deaf": {"drains"},
    "halves": {_CONSERVES, _BOUND},  # half of the bytes are there sooner
    # What answers at once is above any bandwidth, too, and has no time to change elements.
    "hasty": {_BOUND, _PEAK, _CONSERVES}, "hastybanks": {_BOUND, _PEAK, _CONSERVES},
    "hurried": {"serves_without_errors"}, "impatient": {"serves_without_errors"},
    "instant": {_TIME}, "lossy": {_CONSERVES}, "lossyanswers": {_CONSERVES}, "lossycredits": {_CONSERVES},
    "lossypayload": {_CONSERVES}, **{each: {_BOUND, _PEAK, _TIME, _CONSERVES} for each in ("nought", "noughtsram")},
    "prophet": {"counts_what_it_served"}, "racing": {_PEAK}, "racingmath": {_PEAK}, "swallow": {_CONSERVES},
    "twicememory": {_CONSERVES}, "twicemmu": {_CONSERVES},
}  # fmt: skip


def outcomes(under_test: ComponentUnderTest, checks: set[str]) -> dict[str, str]:
    """Return the outcomes of checks of a model that are not a pass, with their reasons."""
    chosen = [check for check in KIT.checks if check.name in checks]
    found = [check.result("components", under_test.name, under_test, {}) for check in chosen]
    return {each.check: f"{each.outcome}: {each.reason}" for each in found if each.outcome is not CheckOutcome.PASSED}


def expected(name: str) -> set[str]:
    """Return the checks that have nothing to look at."""
    untimed = {"takes_time"} if name in UNTIMED else set()
    return {"agrees_with_its_other_style"} | untimed | (set() if name in COUNTING else {"sums_what_it_counts"})


@pytest.mark.parametrize("name", list(PLUGINS.components))
def test_a_model_keeps_its_word(name: str) -> None:
    """One of each driver is quick: messages, a memory, kernels."""
    found = outcomes(KIT.opens(PLUGINS, name), {check.name for check in KIT.checks} - LONG)
    assert found.keys() == expected(name), found
    assert all(told.startswith("not applicable") for told in found.values())


@pytest.fixture(scope="module")
def opens(request: pytest.FixtureRequest) -> Callable[[str], ComponentUnderTest]:
    """Open models of which other processes are asked together: those whose test runs."""
    functions = [item for item in request.session.items if isinstance(item, pytest.Function)]
    asked = [item for item in functions if item.function is test_a_model_keeps_its_word_in_every_process]
    return KIT.opener(PLUGINS, [item.callspec.params["name"] for item in asked])


@pytest.mark.parametrize("name", PLUGINS.components)
def test_a_model_keeps_its_word_in_every_process(name: str, opens: Callable[[str], ComponentUnderTest]) -> None:
    """Under every hash seed, built anew; and at the ends of what its parameters allow."""
    assert outcomes(opens(name), LONG) == {}


@pytest.mark.parametrize(
    ("bench", "topology", "added"),
    [
        ("example-silu", "tiny", {"pe.units.pe_sfu.attach": "pe_tcm"}),
        ("example-tables", "example-pair", {}),
    ],
    ids=["added", "of the preset"],
)
def test_a_kind_of_ones_own_stands_in_a_whole_machine(
    monkeypatch: pytest.MonkeyPatch, bench: str, topology: str, added: dict[str, object]
) -> None:
    """Where a preset has such units, with other parameters than those, and where the driver adds them."""
    monkeypatch.syspath_prepend(PAGE.parents[1] / "plugins_example")
    plugins = load_plugins([*ENTRY_POINTS, "example = kernbench_example.plugin"], installed=False)
    testbench = WatchedTestbench(Placed("example.sfu", {"lanes": 7}, "pe_sfu"), plugins)
    run = partial(WatchedTestbench.run, bench=plugins.benches.load(bench), topology=topology, set=added)
    drive = testbench.drive(run)
    assert drive.error is None
    assert {each["lanes"] for each in drive.params} == {7}
    assert all(component.served for component in drive.monitor.components)


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_is_found(lie: str) -> None:
    """On a machine that runs kernels, by the check that is named for it."""
    plugins = load_plugins([*ENTRY_POINTS, "lying = tests.bad_input.lying_models"], installed=False)
    checks = {check.name for check in KIT.checks} - LONG - {"documents_itself"}
    found = outcomes(KIT.opens(plugins, f"lying.{lie}"), checks)
    assert {check for check, told in found.items() if told.startswith("failed")} == LIES[lie], found


def test_the_page_has_an_example_that_runs(pytester: pytest.Pytester) -> None:
    """Of pytest; here with one quick check."""
    blocks = PAGE.read_text(encoding="utf-8").split("```python\n")
    (example,) = [block for block in blocks if "parametrize_checks" in block]
    pytester.makepyfile(example.partition("```")[0].replace('only=["builtin.sram"]', 'only=["documents_itself"]'))
    ran = pytester.runpytest_inprocess("-q", "-p", "no:cacheprovider")
    assert ran.ret == 0
