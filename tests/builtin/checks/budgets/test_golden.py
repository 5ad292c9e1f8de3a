"""A run is held to its golden: any figure counts, what moved is told, and no file is half written or half read."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernbench_builtin.checks.budgets.golden import (
    GoldenOutcome,
    case_of,
    checked_golden,
    golden_file,
    updated_golden,
)
from kernbench_core import run
from kernbench_core.compute.verification import Verification
from kernbench_core.engine.hardware import Hardware
from kernbench_core.errors import UsageError
from kernbench_core.runs.answers import Correctness
from kernbench_core.runs.result import RunResult
from kernbench_core.wire import Wire
from tests.builtin.checks.budgets.inner_pytest import ran
from tests.builtin.working_machine import on_machine

COMMAND = "pytest test_k.py::test_a --kernbench-update"


@pytest.fixture
def file(result: RunResult, tmp_path: Path) -> Path:
    """Return the golden of a run."""
    assert updated(result, tmp_path / "g.json") == GoldenOutcome("new")
    return tmp_path / "g.json"


def checked(result: RunResult, file: Path) -> GoldenOutcome:
    return checked_golden(result, file, "g.json", COMMAND)


def updated(result: RunResult, file: Path) -> GoldenOutcome:
    return updated_golden(result, file, "g.json", "test_a")


def changed(file: Path, **causes: Any) -> None:
    """Have a golden say that other things were run: values by sort of cause."""
    found = json.loads(file.read_text())
    for sort, values in causes.items():
        found["figures"]["causes"][sort].update(values)
    file.write_text(json.dumps(found))


def test_the_same_run_is_the_same(result: RunResult, file: Path) -> None:
    """Whatever else was made of it, with any libraries and code; what is the simulator's own does not count."""
    changed(file, versions={"numpy": "1.0", "python": "3.0"})
    before = file.read_bytes()
    faster = attrs.evolve(result.timing, events=result.events - 1)
    correctness = attrs.evolve(result.correctness, verification=Verification(True, 1, 0.5, ()))
    other = attrs.evolve(result, timing=faster, correctness=correctness)
    for again in (result, other, ran(verify_data=True)):
        assert checked(again, file) == GoldenOutcome("same")
    assert updated(result, file) == GoldenOutcome("same")
    assert file.read_bytes() == before
    changed(file, models={"test.host": "0" * 64})
    assert checked(result, file) == GoldenOutcome("same")
    assert updated(result, file) == GoldenOutcome("rewritten", "total time 575.5 ns, the same")


LONGER = f"""\
differs from its golden, g.json. From the golden (A) to this run (B):
total time 575.5 ns → 579.5 ns, +4 ns (+0.70 %)
changed: configuration host.pcie.latency: 50 ns → 51 ns
moved: host to device 162.5 ns → 164.5 ns (+1.23 %); launch 161 ns → 163 ns
  (+1.24 %)
after: LIMITER

phases, 2 moved
  162.5 ns → 164.5 ns  +2 ns  +1.23 %  host to device
    161 ns → 163 ns    +2 ns  +1.24 %  launch

links, 2 moved
  2 pcie wires, each latency 50 ns → 51 ns, +1 ns (+2.00 %)
    host->sip0.io0.pcie_ep, sip0.io0.pcie_ep->host
If it is to be so: {COMMAND}"""


def test_a_nanosecond_on_a_wire_is_told_with_its_name(file: Path) -> None:
    """All of what is said, in the words of `kernbench diff`; and in short where the golden is written anew."""
    longer = ran(set={"host.pcie.latency": "51 ns"})
    limiter = longer.to_json()["verdict"]["limiter"]["sentence"]
    assert "waiting for tl.load (inner_pytest.py:" in limiter
    found = checked(longer, file)
    assert found.state == "differs"
    assert found.failure.split() == LONGER.replace("LIMITER", limiter).split()  # which wraps where it is long
    assert updated(longer, file) == GoldenOutcome("rewritten", "total time 575.5 ns → 579.5 ns, +4 ns (+0.70 %)")
    assert checked(longer, file) == GoldenOutcome("same")


def test_a_wire_that_is_not_used_counts_too(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No time moves with it, and nothing that a golden names changed."""

    class LongerWire(Wire):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            if self.name == "sip0.cube0.pe1.pe_dma->sip0.cube0.pe1.pe_tcm":
                self.latency += 1

    monkeypatch.setattr(Hardware, "wire_type", LongerWire)
    failure = checked(ran(), file).failure
    assert "Nothing that both runs name is otherwise" in failure
    assert re.findall(r"^  (\S+) .*\n    latency .* \+1 ns ", failure, re.MULTILINE) == [
        "sip0.cube0.pe1.pe_dma->sip0.cube0.pe1.pe_tcm"
    ]


KERNEL = """
def copy(x, y, n, tl):
    at = tl.arange(0, n)
    tl.store(y + at, tl.load(x + at))

def bench(rt, n: int = 8):
    x, y = rt.zeros((n,), "f32"), rt.empty((n,), "f32")
    rt.launch(copy, x, y, n, grid=(1,))
"""


def test_a_kernel_that_changed_is_told_with_its_lines(tmp_path: Path) -> None:
    """One that stands elsewhere, or on more lines, is the same; a figure of no row is told, too."""
    bench, golden = tmp_path / "k.py", tmp_path / "g.json"
    bench.write_text(KERNEL)
    updated(run(bench, **on_machine()), golden)
    split = KERNEL.replace("tl.store(y + at, tl.load(x + at))", "z = tl.load(x + at)\n    tl.store(y + at, z)")
    for same in (f"# new\n\n{KERNEL}", split):
        bench.write_text(same)
        assert checked(run(bench, **on_machine()), golden).state == "same"
    bench.write_text(KERNEL.replace("tl.load(x + at)", "tl.load(x + at) * 2"))
    failure = checked(run(bench, **on_machine()), golden).failure
    assert "\nthe source of k.py:copy\n" in failure
    assert "\n  -    tl.store(y + at, tl.load(x + at))\n  +    tl.store(y + at, tl.load(x + at) * 2)\n" in failure
    assert re.search(r"\nother figures\n  hops: \d+ → \d+\nIf it is to be so", failure)


def test_figures_that_only_budgets_know_are_told(result: RunResult, file: Path) -> None:
    """A golden of before a figure was there holds; a figure that is gone since is told."""
    found = json.loads(file.read_text())
    del found["measured"]["reported_rows"], found["figures"]["totals"]["hazards"]
    found["measured"]["statistics.acme.misses"] = 7
    found["measured"]["hops"] = 3
    file.write_text(json.dumps(found))
    lines = checked(result, file).failure.splitlines()
    told = [f"  hops: 3 → {result.timing.hops}", "  statistics.acme.misses: 7 → None"]
    assert lines[-4] == "other figures" and sorted(lines[-3:-1]) == told
    del found["measured"]["statistics.acme.misses"], found["measured"]["hops"]
    file.write_text(json.dumps(found))
    assert checked(result, file).state == "same"


UNREADABLE = [
    ("", "must be as it was written, and is cut off, merged or changed."),
    ("[1]", "must be as it was written, and is cut off, merged or changed."),
    ('{"schema": "kernbench.golden/1"}', "must be as it was written, and is cut off, merged or changed."),
    (
        '{"schema": "kernbench.golden/2"}',
        "must have schema 'kernbench.golden/1', not 'kernbench.golden/2'; a later kernbench wrote it; "
        "use a newer kernbench.",
    ),
    (
        '{"schema": "kernbench.golden/0"}',
        "must have schema 'kernbench.golden/1', not 'kernbench.golden/0'; nothing reads it any more.",
    ),
    (
        '{"schema": "kernbench.golden/1", "measured": {}, "figures": {"schema": "kernbench.figures/0", "totals": {}}}',
        "must have schema 'kernbench.figures/1', not 'kernbench.figures/0'; make it again.",
    ),
]


@pytest.mark.parametrize(("text", "sentence"), UNREADABLE)
def test_what_is_no_golden_is_told_and_replaced(result: RunResult, file: Path, text: str, sentence: str) -> None:
    right = file.read_bytes()
    file.write_text(text)
    failure = f"has no golden to be held to: golden 'g.json' {sentence}\nWrite it again: {COMMAND}"
    assert checked(result, file) == GoldenOutcome("damaged", failure=failure)
    assert updated(result, file) == GoldenOutcome("rewritten", "what was there could not be read")
    assert file.read_bytes() == right


PARTS = st.one_of(st.text('01.e-{}[],:"nul', max_size=5), st.sampled_from(["null", "true", "{}", "[]", "1e999"]))


@settings(max_examples=25)
@given(where=st.floats(0, 1), length=st.integers(0, 40), put=PARTS)
def test_whatever_befalls_a_golden_is_told(
    result: RunResult, tmp_path_factory: pytest.TempPathFactory, where: float, length: int, put: str
) -> None:
    """A part of its text that is gone, or is another one, is found and told, or changes nothing that counts."""
    file = tmp_path_factory.getbasetemp() / "befallen.json"
    updated(result, file)
    text = file.read_text()
    at = int(where * len(text))
    file.write_text(text[:at] + put + text[at + length :])
    found = checked(result, file)
    assert found.state in ("same", "differs", "damaged") and (found.failure == "") is (found.state == "same")
    updated(result, file)
    assert checked(result, file).state == "same"


def test_no_golden_is_written_of_wrong_data_or_in_part(
    result: RunResult, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is a failure of the test, and leaves what was there."""
    before, other = file.read_bytes(), ran(params={"n": 16})
    wrong = attrs.evolve(other, correctness=Correctness(Verification(False, 1, 2.0, ("x",))))
    assert updated(wrong, file).failure == "gave wrong data, of which no golden is written: 'g.json'"

    def full(self: Path, target: Path) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(Path, "replace", full)
    assert updated(other, file).failure.startswith("has no place for its golden: ")
    assert [each.name for each in file.parent.iterdir()] == ["g.json"] and file.read_bytes() == before


def test_a_figure_has_a_line(file: Path) -> None:
    """So that a change reads well; the numbers of a row share one."""
    lines = file.read_text().splitlines()
    assert lines[:4] == ["{", ' "schema": "kernbench.golden/1",', ' "test": "test_a",', ' "measured": {']
    assert '  "time_ns": 575.5334625244141,' in lines
    assert any(re.fullmatch(r'     "copy": \[1, 252\.0, [^][]*\],?', line) for line in lines)


@pytest.mark.parametrize(
    ("case", "name", "file"),
    [
        ("test_rows", None, "test_rows.json"),
        ("TestRows::test_rows", None, "TestRows.test_rows.json"),
        ("test_rows[64-f16]", "second", "test_rows-64-f16@second.json"),
        ("test_rows[F16]", None, "test_rows-F16~1f120261ca5a.json"),
        ("test_rows[64-]", None, "test_rows-64~9630061c42c6.json"),
        ("test_rows[../../etc/passwd]", None, "test_rows-..-..-etc-passwd~031307722270.json"),
        (f"test_rows[{'x' * 300}]", None, f"test_rows-{'x' * 97}~15ce7c9618e4.json"),
    ],
)
def test_where_goldens_lie(case: str, name: str | None, file: str) -> None:
    """As the test is called, where that makes a file name; else as it begins, and a digest of all of it."""
    assert golden_file(Path("/a/tests/test_b.py"), case, name) == Path("/a/tests/goldens/test_b") / file
    assert case_of(f"tests/test_b.py::{case}") == case


FUNCTIONS = st.sampled_from(["test_a", "test_ab", "TestA::test_a", "TestA::TestB::test_a", "pkg.mod.function"])
IDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=200) | st.text("a.-[]", max_size=3)
CASES = st.one_of(FUNCTIONS, st.builds("{}[{}]".format, FUNCTIONS, IDS))


@given(CASES, CASES, st.sampled_from([None, "a", "b"]), st.sampled_from([None, "a", "b"]))
def test_no_two_tests_share_a_file(one: str, other: str, first: str | None, second: str | None) -> None:
    """Not even where capitals are small letters; all are of safe letters and fit into a folder."""
    names = [golden_file(Path("test_b.py"), *each).name for each in ((one, first), (other, second))]
    assert (names[0].lower() == names[1].lower()) is ((one, first) == (other, second))
    for name in names:
        assert re.fullmatch(r"[\w.@~-]{1,200}\.json", name, re.ASCII) and name[0] not in ".-"


@pytest.mark.parametrize("name", ["", "A", "a b", "../a", "a@b", "x" * 61, 3])
def test_names_that_are_none(name: str) -> None:
    with pytest.raises(UsageError) as caught:
        golden_file(Path("test_b.py"), "test_rows", name)
    assert str(caught.value) == (
        f"the name of a golden must be small letters, digits, '_', '.' and '-', 60 at most, not {name!r}."
    )
