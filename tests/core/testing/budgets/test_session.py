"""Tests that use the fixture: they fail when they are over, with all that is wrong, and write goldens when asked."""

from __future__ import annotations

import re

import pytest

from tests.core.testing.budgets.inner_pytest import Inner

pytest_plugins = ["pytester"]
BENCH = """
import unittest
import pytest
from kernbench_core import run
from tests.core.working_machine import on_machine

def copy(x, y, n, tl):
    at = tl.arange(0, n)
    tl.store(y + at, tl.load(x + at))

def bench(rt, n: int = 8, times: int = 1):
    x, y = rt.zeros((n,), "f32"), rt.empty((n,), "f32")
    for _ in range(times):
        rt.launch(copy, x, y, n, grid=(1,))

def ran(kernbench, **params):
    return kernbench.run(bench, params=params, **on_machine())
"""
BUDGETS = """
def test_within(kernbench):
    result = ran(kernbench)
    result.budget(time_ns=(result.total_ns, result.total_ns), hazards=0, outside=(0, None))
    kernbench.budget(run(bench, **on_machine()), {"utilisation.pe_dma": (0.1, 0.5)}, ops=2)

def test_beyond(kernbench):
    result = ran(kernbench)
    result.budget(time_ns=100, hazards=0, ops=(3, 4))
    result.budget(launches=(2, None))
    ran(kernbench, times=2).budget(launches=1)
    print("it went on")
"""
WENT = """\
Where the time went:
  kernel: 252 ns (43.8 %)
  host to device: 162.533 ns (28.2 %)
  launch: 161 ns (28.0 %)
  sip0.cube0.pe0.pe_dma: busy 200 ns (34.8 %)
  sip0.cube0.pe0.pe_cpu->sip0.cube0.pe0.pe_dma: busy 40 ns (7.0 %, 2 alike)
  host->sip0.io0.pcie_ep: busy 24 ns (4.2 %, 2 alike)
  sip0.cube0.m_cpu->sip0.cube0.pe0.pe_cpu: busy 15 ns (2.6 %, 2 alike)
"""
BEYOND = f"""\
bench on a mapping is beyond 3 of 4 budgets:
  time_ns is 575.533 ns, must be at most 100 ns: 475.533 ns too much (476 %)
  ops is 2, must be from 3 to 4: 1 too little (33.33 %)
  launches is 1, must be at least 2: 1 too little (50.00 %)
{WENT}
bench on a mapping (run 2) is beyond its budget:
  launches is 2, must be at most 1: 1 too much (100 %)
Where the time went:
  kernel: 504 ns (51.0 %)
  launch: 322 ns (32.6 %)
  host to device: 162.533 ns (16.4 %)
  sip0.cube0.pe0.pe_dma: busy 400 ns (40.5 %)
  sip0.cube0.pe0.pe_cpu->sip0.cube0.pe0.pe_dma: busy 80 ns (8.1 %, 2 alike)
  host->sip0.io0.pcie_ep: busy 35.2 ns (3.6 %, 2 alike)
  sip0.cube0.m_cpu->sip0.cube0.pe0.pe_cpu: busy 30 ns (3.0 %, 2 alike)
"""


def failure(found: pytest.RunResult, test: str) -> str:
    """Return what a test failed with, without its heading and what it printed."""
    text = re.split(rf"^_+ {re.escape(test)} _+\n", found.stdout.str(), flags=re.MULTILINE)[1]
    return re.split(r"^(?:_+ .* _+|-+ .* -+|=+ .* =+)\n", text, flags=re.MULTILINE)[0]


def section(found: pytest.RunResult) -> list[str]:
    """Return what the end of the session says of simulated runs."""
    _, _, told = found.stdout.str().partition("= kernbench =")
    return re.split(r"^(?:=+ .* =+|\d+ \w+ed.*)$", told, flags=re.MULTILINE)[0].splitlines()[1:]


def goldens(inner: Inner) -> dict[str, bytes]:
    """Return the goldens that are there, by name."""
    return {file.name: file.read_bytes() for file in sorted(inner.folder.rglob("goldens/*/*"))}


def test_budgets_are_held(inner: Inner) -> None:
    """What is within passes; all that is not is one failure, when the test is over, with where the time went."""
    inner.write(BENCH, BUDGETS)
    found = inner.run("-W", "error")
    found.assert_outcomes(passed=1, failed=1)
    assert failure(found, "test_beyond") == BEYOND
    found.stdout.fnmatch_lines(["it went on"])
    assert section(found) == []


KINDS = """
class TestRows:
    @pytest.mark.parametrize("n", [8, pytest.param(4, id="A/b c|`x`")])
    def test_rows(self, kernbench, n):
        kernbench.golden(ran(kernbench, n=n))
        kernbench.golden(ran(kernbench, n=n + 1), "next")

class TestUnit(unittest.TestCase):
    @pytest.fixture(autouse=True)
    def _given(self, kernbench):
        self.kernbench = kernbench

    def test_unit(self):
        ran(self.kernbench).budget(time_ns=1)
        self.kernbench.golden(ran(self.kernbench))

def documented(kernbench):
    '''
    >>> kernbench = getfixture("kernbench")
    >>> kernbench.golden(ran(kernbench))
    '''

@pytest.mark.xfail(reason="it is slow", strict=True, raises=pytest.fail.Exception)
def test_slow(kernbench):
    ran(kernbench).budget(time_ns=1)

def test_of_its_own(kernbench):
    ran(kernbench).budget(time_ns=1)
    assert not kernbench

@pytest.fixture
def late(kernbench):
    yield
    ran(kernbench).budget(time_ns=1)

def test_late(late):
    pass

def test_wrongly_asked(kernbench):
    ran(kernbench).budget(tiem_ns=1)
"""


def test_all_kinds_of_tests(inner: Inner) -> None:
    """Methods, cases, unittest's, doctests, expected failures, what fails by itself, and what fixtures do."""
    inner.write(BENCH, KINDS)
    found = inner.run("--doctest-modules", "--import-mode=importlib", "--kernbench-update", "-W", "error")
    found.assert_outcomes(passed=4, failed=3, errors=1, xfailed=1)
    assert section(found) == [
        "goldens: 6 new, 0 rewritten, 0 as they were",
        "  goldens/test_k/TestRows.test_rows-8.json: new",
        "  goldens/test_k/TestRows.test_rows-8@next.json: new",
        "  goldens/test_k/TestRows.test_rows-A-b-c-x~0567e37fc156.json: new",
        "  goldens/test_k/TestRows.test_rows-A-b-c-x~0567e37fc156@next.json: new",
        "  goldens/test_k/TestUnit.test_unit.json: new",
        "  goldens/test_k/test_k.documented.json: new",
    ]
    beyond = "time_ns is 575.533 ns, must be at most 1 ns: 574.533 ns too much (57,453 %)"
    told = f"bench on a mapping is beyond its budget:\n  {beyond}\n{WENT}"
    assert failure(found, "TestUnit.test_unit") == told
    assert failure(found, "ERROR at teardown of test_late") == told
    whole = found.stdout.str()
    assert "E       assert not <kernbench of test_k.py::test_of_its_own>" in whole
    assert re.search(rf"^-+ kernbench -+\n{re.escape(told)}", whole, re.MULTILINE)
    assert failure(found, "test_wrongly_asked").splitlines()[-4:] == [
        ">       ran(kernbench).budget(tiem_ns=1)",
        "E       kernbench_core.errors.UsageError: a budget must be of a figure of the run, not 'tiem_ns'. Did you "
        "mean 'time_ns'?",
        "",
        "test_k.py:57: UsageError",
    ]
