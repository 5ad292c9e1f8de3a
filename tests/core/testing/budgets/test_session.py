"""Tests that use the fixture: they fail when they are over, with all that is wrong, and write goldens when asked."""

from __future__ import annotations

import json
import re
import shutil

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
  test_k.py:9: 200 ns in 2 ops: tl.store(y + at, tl.load(x + at))
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
  test_k.py:9: 400 ns in 4 ops: tl.store(y + at, tl.load(x + at))
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

@pytest.mark.xfail(reason="it is wrong", strict=True, raises=AssertionError)
def test_wrong_and_slow(kernbench):
    ran(kernbench).budget(time_ns=1)
    assert not kernbench

def test_skipped(kernbench):
    ran(kernbench).budget(time_ns=1)
    pytest.skip("here")

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
    found.assert_outcomes(passed=4, failed=3, errors=1, xfailed=2, skipped=1)
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
        "test_k.py:66: UsageError",
    ]


GOLDENS = """
def test_one(kernbench):
    kernbench.golden(ran(kernbench))

def test_two(kernbench):
    kernbench.golden(ran(kernbench, n=4))
"""


def test_goldens_are_made_held_and_listed(inner: Inner) -> None:
    """Made when asked, held to from then on, and left where they are when their tests are gone."""
    inner.write(BENCH, GOLDENS)
    absent = inner.run("-k", "one")
    command = "pytest test_k.py::test_one --kernbench-update"
    said = f"bench on a mapping has no golden, as 'goldens/test_k/test_one.json' is not there. Write it: {command}\n"
    assert failure(absent, "test_one") == said
    inner.run("--kernbench-update").assert_outcomes(passed=2)
    made = goldens(inner)
    assert list(made) == ["test_one.json", "test_two.json"]
    same = inner.run("-W", "error")
    same.assert_outcomes(passed=2)
    assert section(same) == []
    again = inner.run("--kernbench-update")
    assert section(again) == ["goldens: 0 new, 0 rewritten, 2 as they were"]
    inner.write(BENCH, GOLDENS.replace("test_two", "test_three"))
    listed = ["goldens that no test asked for; remove those that nobody needs:", "  goldens/test_k/test_two.json"]
    assert section(inner.run("-k", "one")) == listed
    assert section(inner.run("test_k.py::test_one")) == []
    assert goldens(inner) == made


def test_goldens_of_tests_that_did_not_come_so_far_are_not_listed(inner: Inner) -> None:
    """Those that failed before, and those that --lf left out."""
    inner.write(BENCH, GOLDENS)
    inner.run("--kernbench-update").assert_outcomes(passed=2)
    inner.write(BENCH, GOLDENS.replace("    kernbench.golden(ran(kernbench))", "    assert not kernbench"))
    for arg in ("--ff", "--lf"):
        found = inner.run("-p", "cacheprovider", arg)
        found.assert_outcomes(passed=int(arg == "--ff"), failed=1)
        assert section(found) == []


def test_wherever_pytest_is_called_paths_lead_to_the_files(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    """From another folder, and with another root; goldens lie beside their tests."""
    inner.write(BENCH, GOLDENS, name="kernels/test_k.py")
    here = inner.folder / "some where"
    here.mkdir()
    monkeypatch.chdir(here)
    found = inner.run("../kernels", "-k", "one", "--rootdir", str(inner.folder / "kernels"))
    command = "pytest ../kernels/test_k.py::test_one --kernbench-update"
    golden = "../kernels/goldens/test_k/test_one.json"
    said = f"bench on a mapping has no golden, as {golden!r} is not there. Write it: {command}\n"
    assert failure(found, "test_one") == said
    found = inner.run("../kernels", "-k", "one", "--rootdir", str(here), "--kernbench-update")
    assert section(found) == ["goldens: 1 new, 0 rewritten, 0 as they were", f"  {golden}: new"]
    inner.run("../kernels", "-k", "one", "--rootdir", str(inner.folder)).assert_outcomes(passed=1, deselected=1)


def test_reports_are_printed_or_written(inner: Inner) -> None:
    """When all tests are over; one that cannot be written then is told, and fails the session."""
    inner.write(BENCH, BUDGETS)
    forms = ("--kernbench-json", "out/figures.json", "--kernbench-json", "pytest-benchmark=out/times.json")
    found = inner.run("--kernbench-report", "md", *forms)
    table = section(found)
    said = "Figures: 12, beyond their budgets: 4. Runs: 4, otherwise than their goldens: 0."
    assert table[:3] == ["### kernbench", "", said]
    assert "| `test_k.py::test_beyond (run 1)` | `ops` | 2 | from 3 to 4 **beyond** |  |  |" in table
    written = json.loads((inner.folder / "out" / "figures.json").read_text())
    assert {each["fullname"] for each in json.loads((inner.folder / "out" / "times.json").read_text())["benchmarks"]}
    assert written[0] == {
        "name": "test_k.py::test_beyond (run 1) time_ns", "unit": "ns", "value": 575.5334625244141,
        "extra": "bench on a mapping\nbudget: at most 100 ns",
    }  # fmt: skip
    inner.write(BENCH, "def test_a(kernbench):\n    __import__('pathlib').Path('late').write_text('')\n")
    found = inner.run("--kernbench-report", "md=late/report.md")
    file = inner.folder / "late" / "report.md"
    assert found.ret == pytest.ExitCode.TESTS_FAILED
    assert section(found) == [f"file {str(file)!r} must be in a folder that can be written: File exists."]


def test_options_that_are_wrong_are_told_before_any_test(inner: Inner) -> None:
    """And tests that are only listed leave a report as it is."""
    inner.write("def test_a():\n    pass\n")
    (inner.folder / "report.md").write_text("of before")
    inner.run("--collect-only", "--kernbench-report", "md=report.md")
    assert (inner.folder / "report.md").read_text() == "of before"
    found = inner.run("--kernbench-report", "html")
    assert found.ret == pytest.ExitCode.USAGE_ERROR
    assert found.stderr.lines[:1] == ["ERROR: --kernbench-report must be md or md=FILE, not 'html'. Known: md."]


def test_processes_and_hash_seeds_change_nothing(inner: Inner) -> None:
    """Goldens and reports are the same bytes, however many processes ran the tests, in whatever order."""
    inner.write(BENCH, KINDS, GOLDENS, BUDGETS)
    reports = ("--kernbench-report", "md=report.md", "--kernbench-json", "figures.json", "-W", "error")
    seen = []
    for seed, args in (("1", ()), ("2", ("-n", "2")), ("", ("-p", "no:xdist"))):
        shutil.rmtree(inner.folder / "goldens", ignore_errors=True)
        asked = ("--kernbench-update", *reports, *args)
        found = inner.run_apart(*asked, PYTHONHASHSEED=seed) if seed else inner.run(*asked)
        assert section(found)[0] == "goldens: 7 new, 0 rewritten, 0 as they were"
        texts = [(inner.folder / name).read_text() for name in ("report.md", "figures.json")]
        seen.append((section(found), goldens(inner), *texts))
    assert len(seen[0][1]) == 7
    assert seen[0] == seen[1] == seen[2]
