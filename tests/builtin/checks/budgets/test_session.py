"""Tests that use the fixture: they fail when they are over, with all that is wrong, and write goldens when asked."""

from __future__ import annotations

import json
import re
import shutil

import pytest

from tests.builtin.checks.budgets.inner_pytest import Inner

pytest_plugins = ["pytester"]
BENCH = """
import unittest
import pytest
from kernbench_core import run
from tests.builtin.working_machine import on_machine

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
    ran(kernbench, times=2).budget(launches=1)
    print("it went on")
"""
WENT = """\
no spread is known: a small difference may be chance; --shake measures it
Where the time went:
  kernel: 252 ns (43.8 %)
  host to device: 162.5 ns (28.2 %)
  launch: 161 ns (28.0 %)
  sip0.cube0.pe0.pe_dma: busy 200 ns, in use 34.8 %
  sip0.cube0.pe0.pe_cpu->sip0.cube0.pe0.pe_dma: busy 40 ns, in use 7.0 %
  host->sip0.io0.pcie_ep: busy 24 ns, in use 4.2 %
  test_k.py:9: 200 ns in 2 ops: tl.store(y + at, tl.load(x + at))
"""
BEYOND = f"""\
bench on a mapping: time_ns must be at most 100 ns, and is 575.5 ns: +475.5 ns (+475.53 %)
bench on a mapping: ops must be at least 3 and at most 4, and is 2: -1 (-33.33 %)
{WENT}
bench on a mapping (run 2): launches must be at most 1, and is 2: +1 (+100.00 %)
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
    assert failure(found, "test_beyond").startswith(BEYOND)
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
    beyond = "time_ns must be at most 1 ns, and is 575.5 ns: +574.5 ns (576 ×)"
    told = f"bench on a mapping: {beyond}\n{WENT}"
    assert failure(found, "TestUnit.test_unit") == told
    assert failure(found, "ERROR at teardown of test_late") == told
    whole = found.stdout.str()
    assert "E       assert not <kernbench of test_k.py::test_of_its_own>" in whole
    assert re.search(rf"^-+ Captured kernbench call -+\n{re.escape(told)}", whole, re.MULTILINE)
    assert failure(found, "test_wrongly_asked").splitlines()[-4:] == [
        ">       ran(kernbench).budget(tiem_ns=1)",
        "E       kernbench_core.errors.UsageError: a budget must be of a numeric figure of the run, not 'tiem_ns'. "
        "Did you mean 'time_ns'?",
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
    assert goldens(inner) == made


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


def test_the_report_is_printed_and_written(inner: Inner) -> None:
    """When all tests are over: the time of each run, and what has a budget; JSON has what is better when smaller."""
    inner.write(BENCH, BUDGETS, "def test_unmeasured(kernbench):\n    ran(kernbench).budget(max_abs_error=1)\n")
    found = inner.run("--kernbench-report", "--kernbench-json", "out/figures.json")
    table = [re.split(r"  +", line) for line in section(found)]
    run = "test_k.py::test_beyond bench on a mapping"
    assert table[:6] == [
        ["test", "figure", "measured", "budget", "golden"],
        [run, "time_ns", "575.5 ns", "at most 100 ns, beyond"],
        [run, "hazards", "0", "at most 0"],
        [run, "ops", "2", "at least 3 and at most 4, beyond"],
        [f"{run} (run 2)", "time_ns", "988.5 ns"],
        [f"{run} (run 2)", "launches", "2", "at most 1, beyond"],
    ]
    written = json.loads((inner.folder / "out" / "figures.json").read_text())
    assert written[0] == {
        "name": f"{run} time_ns", "unit": "ns", "value": 575.5334625244141, "extra": "budget: at most 100 ns",
    }  # fmt: skip
    named = [each["name"].rpartition(" ")[2] for each in written if "test_beyond" not in each["name"]]
    assert named == ["time_ns", "time_ns", "hazards", "time_ns", "utilisation.pe_dma", "ops"]


def test_a_report_that_cannot_be_written_fails_the_session(inner: Inner) -> None:
    """With a sentence; and tests that are only listed leave one as it is."""
    inner.write("def test_a():\n    pass\n")
    (inner.folder / "figures.json").write_text("of before")
    inner.run("--collect-only", "--kernbench-json", "figures.json")
    found = inner.run("--kernbench-json", "figures.json/a.json")
    file = str(inner.folder / "figures.json" / "a.json")
    assert found.ret == pytest.ExitCode.TESTS_FAILED
    assert found.stderr.lines[-1] == f"Exit: file {file!r} must be in a folder that can be written: File exists."
    assert (inner.folder / "figures.json").read_text() == "of before"


def test_processes_and_hash_seeds_change_nothing(inner: Inner) -> None:
    """Goldens and reports are the same bytes, however many processes ran the tests, in whatever order."""
    inner.write(BENCH, KINDS, GOLDENS, BUDGETS)
    asked = ("--kernbench-update", "--kernbench-report", "--kernbench-json", "figures.json", "-W", "error")
    seen = []
    for seed in ("2", ""):
        shutil.rmtree(inner.folder / "goldens", ignore_errors=True)
        found = inner.run_apart(*asked, "-n", "2", PYTHONHASHSEED=seed) if seed else inner.run(*asked, "-p", "no:xdist")
        seen.append((section(found), goldens(inner), (inner.folder / "figures.json").read_text()))
    assert "goldens: 7 new, 0 rewritten, 0 as they were" in seen[0][0] and len(seen[0][1]) == 7
    assert seen[0] == seen[1]
