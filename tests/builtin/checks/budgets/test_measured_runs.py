"""Budgets on the built-in machine: what changed of a suite's runs is told for what it is."""

from __future__ import annotations

import re
import sys

import pytest

from tests.builtin.checks.budgets.inner_pytest import REPO, Inner

pytest_plugins = ["pytester"]
TESTS = """
import pytest
from kernbench_core.plugins import load_plugins, own_plugins

ACME = {"components": {"router": {"impl": "acme.router"}}}

def test_wires(kernbench, pytestconfig):
    kernbench.golden(kernbench.run("vector-add", "tiny", {"n": 64}, set=SETS))

def test_model(kernbench):
    own = own_plugins("builtin", "builtin.machines", "builtin.benches")
    plugins = load_plugins([*own, "acme = acme"], installed=False)
    kernbench.golden(kernbench.run("vector-add", {"base": "tiny", **ACME}, {"n": 64}, plugins=plugins))
"""
ACME = """
from kernbench_builtin.components.forwarding import Forwarding
from kernbench_core import ComponentEntry

kernbench_api = 1
EXTRA_NS = 0.0

class Router(Forwarding):
    '''Pass messages on a little later.

    Models: what it extends, and more.
    Ignores: Nothing else.
    Timing: as what it extends, and EXTRA_NS.
    '''

    def overhead(self, msg):
        return super().overhead(msg) + EXTRA_NS

def kernbench_components():
    return [ComponentEntry("acme.router", "acme:Router", "router", "A router.")]
"""
#: Keys by which wires get longer, and the kinds of these.
KEYS = {
    "host.pcie.latency=301ns": {"pcie wire"},
    "cube.noc.latency=1.5ns": {"noc wire", "attach wire"},
    "pe.links.control.latency=2ns": {"pe wire"},
    "cube.sram.link.latency=1.5ns": {"attach wire"},
}


def failures(inner: Inner) -> str:
    """Return what pytest prints in a process of its own: this one goes by the files as it has read them."""
    return inner.run_apart(PYTHONPATH=f"{inner.folder}:{REPO}", PYTHONDONTWRITEBYTECODE="1").stdout.str()


@pytest.fixture(autouse=True)
def _modules_of_the_folder(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have runs in this process import them; without bytecode, for which a file of equal time and size is the same."""
    monkeypatch.syspath_prepend(inner.folder)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)


def test_each_wire_of_a_nanosecond_more_is_named(inner: Inner) -> None:
    """By configuration, used or not, and no wire of another kind, with the key that did it."""
    inner.write(ACME, name="acme.py")
    inner.write("SETS = []\n", TESTS)
    inner.run("--kernbench-update").assert_outcomes(passed=2)
    for setting, kinds in KEYS.items():
        inner.write(f"SETS = [{setting!r}]\n", TESTS)
        text = inner.run().stdout.str()
        key, _, value = setting.removesuffix("ns").partition("=")
        words = " ".join(text.split())
        assert re.search(rf" changed: configuration {re.escape(key)}: \S+ ?\S* → {re.escape(value)} ns ", words)
        alone = re.findall(r"^  \S+->\S+ \((.*)\)\n    latency .*, \+1 ns ", text, re.MULTILINE)
        together = re.findall(r"^  \d+ (.*)s, each latency .*, \+1 ns ", text, re.MULTILINE)
        assert {*alone, *together} == kinds
        assert "1 failed, 1 passed" in text


def test_a_model_that_changed_is_told_from_a_kernel(inner: Inner) -> None:
    """By the implementation's name; a comment in it moves no figure, and is no failure."""
    inner.write("SETS = []\n", TESTS)
    inner.write(ACME, name="acme.py")
    inner.run("--kernbench-update").assert_outcomes(passed=2)
    inner.write("# a comment\n", ACME, name="acme.py")
    assert "2 passed" in failures(inner)
    inner.write(ACME.replace("EXTRA_NS = 0.0", "EXTRA_NS = 1.0"), name="acme.py")
    text = failures(inner)
    assert "1 failed, 1 passed" in text
    assert re.search(r"^  model acme\.router: \w{12} → \w{12}$", text, re.MULTILINE)
