"""The kit for hardware models, tried on our own: all of them keep their word."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernbench_core.plugins import load_plugins
from kernbench_core.testing import CheckOutcome
from kernbench_core.testing.components.kit import KIT

pytest_plugins = ["pytester"]
PAGE = Path(__file__).parents[2] / "docs/plugins.md"
PLUGINS = load_plugins(["builtin = kernbench_builtin.plugin"], installed=False)
#: The checks that start processes, and the one that drives a model with parameters at their ends.
LONG = {"logs_the_same_under_every_hash_seed", "logs_the_same_in_another_process", "refuses_wrong_parameters"}
#: What passes messages on.
HOPS = {"builtin.forwarding", "builtin.pcie_ep", "builtin.router_vc"}
QUICK = {"builtin.hbm_ctrl_bank", "builtin.pe_dma", "builtin.router_vc"}


def outcomes(name: str, checks: set[str]) -> dict[str, str]:
    """Return the outcomes of checks of a model that are not a pass, with their reasons."""
    subject = KIT.subject(PLUGINS, name)
    found = [check.result("components", name, subject, {}) for check in KIT.checks if check.name in checks]
    return {each.check: f"{each.outcome}: {each.reason}" for each in found if each.outcome is not CheckOutcome.PASSED}


def expected(name: str) -> set[str]:
    """Return the checks that have nothing to look at."""
    return {"agrees_with_its_other_style", *(("takes_time",) if name in HOPS else ())}


@pytest.mark.parametrize("name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow)
                                  for name in PLUGINS.components])  # fmt: skip
def test_a_model_keeps_its_word(name: str) -> None:
    """One of each driver is quick: messages, a memory, kernels."""
    found = outcomes(name, {check.name for check in KIT.checks} - LONG)
    assert found.keys() == expected(name), found
    assert all(told.startswith("not applicable") for told in found.values())


@pytest.mark.slow
@pytest.mark.parametrize("name", PLUGINS.components)
def test_a_model_keeps_its_word_in_every_process(name: str) -> None:
    """Under every hash seed, built anew; and at the ends of what its parameters allow."""
    assert outcomes(name, LONG) == {}


def test_the_page_has_an_example_that_runs(pytester: pytest.Pytester) -> None:
    """Of pytest; here with one quick check."""
    blocks = PAGE.read_text(encoding="utf-8").split("```python\n")
    (example,) = [block for block in blocks if "parametrize_checks" in block]
    pytester.makepyfile(example.partition("```")[0].replace('only=["builtin.sram"]', 'only=["documents_itself"]'))
    ran = pytester.runpytest_inprocess("-q", "-p", "no:cacheprovider")
    assert ran.ret == 0
