"""A run that stands still says so, with what plug-ins say of who waits."""

from __future__ import annotations

from typing import Any

import pytest

from kernbench_core.errors import DeadlockError, LimitError
from kernbench_core.plugins import load_plugins
from tests.core.plugin_site import Site
from tests.core.toy_machine import Classes, DeafPe, toy_engine

PLUGIN = """
from kernbench_core import DiagnosisEntry
def kernbench_diagnoses():
    return [DiagnosisEntry("mine", "acme:told", "All.")]
def told(session, over):
    return [f"  at {session.env.now:g} ns", f"  {over}"]
"""
STILL = "deadlock at simulated time 70 ns: nothing is left to happen, but something still waits."


def kernel(tl: Any) -> None:
    """Be launched."""


def stopped(site: Site, source: str = PLUGIN, **options: Any) -> str:
    """Return what a run says that cannot end."""
    site.module("acme", source)
    plugins = load_plugins(["acme = acme"] if source else [], installed=False)
    with pytest.raises((DeadlockError, LimitError)) as caught:
        toy_engine(2, None, Classes(pe_cpu=DeafPe), plugins=plugins, **options).run(lambda rt: rt.launch(kernel))
    return str(caught.value)


def test_plugins_say_who_waits(site: Site) -> None:
    assert stopped(site).splitlines() == [STILL, "  at 70 ns", "  True"]


def test_without_any_that_is_said(site: Site) -> None:
    assert stopped(site, "").splitlines() == [STILL, "  No plug-in is here that tells who waits for whom."]


def test_one_that_raises_is_blamed(site: Site) -> None:
    """And the deadlock is told all the same, with its own exit code."""
    lines = stopped(site, PLUGIN.replace("    return [f", "    1 / 0; return [f")).splitlines()
    assert lines[:2] == [
        STILL,
        "  diagnosis 'mine' of acme (source tree) raised ZeroDivisionError: division by zero; repair or reinstall acme "
        "(source tree).",
    ]


def test_one_that_cannot_be_imported_is_told_below(site: Site) -> None:
    lines = stopped(site, PLUGIN.replace("acme:told", "acme:lost")).splitlines()
    assert lines[0] == STILL
    assert lines[1].startswith("  diagnosis 'mine' of acme (source tree) must be importable from 'acme:lost', but ")
