"""A run is held to its golden: any figure counts, and what changed is told, kernel from model from configuration."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernbench_core import run
from kernbench_core.compute.verification import Verification
from kernbench_core.engine.hardware import Hardware
from kernbench_core.runs.result import RunResult
from kernbench_core.testing.budgets.golden_check import checked_golden, updated_golden
from kernbench_core.testing.budgets.records import ABSENT, DAMAGED, DIFFERS, NEW, REWRITTEN, SAME, GoldenRecord
from kernbench_core.wire import Wire
from tests.core.testing.budgets.inner_pytest import ran
from tests.core.working_machine import on_machine

COMMAND = "pytest test_k.py::test_a --kernbench-update"


@pytest.fixture
def file(result: RunResult, tmp_path: Path) -> Path:
    """Return the golden of a run."""
    record, failure = updated(result, tmp_path / "g.json")
    assert (record, failure) == (GoldenRecord("g.json", NEW), "")
    return tmp_path / "g.json"


def checked(result: RunResult, file: Path) -> tuple[GoldenRecord, str]:
    return checked_golden(result, file, "g.json", "test_a", COMMAND)


def updated(result: RunResult, file: Path) -> tuple[GoldenRecord, str]:
    return updated_golden(result, file, "g.json", "test_a", COMMAND)


def changed(file: Path, **causes: Mapping[str, Any]) -> None:
    """Have a golden say that other things were run: values by sort of cause."""
    found = json.loads(file.read_text())
    for sort, values in causes.items():
        found["figures"]["causes"][sort].update(values)
    file.write_text(json.dumps(found))


def told(failure: str) -> list[str]:
    """Return what a failure says between what differs and what moved."""
    first, *lines, last = failure.splitlines()
    assert first == "differs from its golden, g.json."
    assert last == f"If it is to be so: {COMMAND}"
    return lines[: lines.index("From the golden (A) to this run (B):")]


def test_the_same_run_is_the_same(result: RunResult, file: Path) -> None:
    """Whatever else was made of it, and with any libraries; and its golden is not written anew."""
    changed(file, versions={"numpy": "1.0", "python": "3.0"})
    before = file.read_bytes()
    for again in (result, ran(explain=True, verify_data=True)):
        record, failure = checked(again, file)
        assert (record.state, record.file, failure) == (SAME, "g.json", "")
        assert record.before is not None and record.before["time_ns"] == result.total_ns
    assert updated(result, file)[0].state == SAME
    assert file.read_bytes() == before


def test_what_is_the_simulators_own_does_not_count(result: RunResult, file: Path) -> None:
    """Nor what a BLAS rounds otherwise."""
    faster = attrs.evolve(result.timing, events=result.events - 1)
    other = attrs.evolve(result, timing=faster, verification=Verification(True, 1, 0.5, ()))
    assert checked(other, file)[0].state == SAME


LONGER = f"""\
differs from its golden, g.json.
The configuration changed: host.pcie.latency is '51 ns', was '50 ns'.
From the golden (A) to this run (B):
total time 575.5 ns → 579.5 ns, +4 ns (+0.70 %)

phases, 2 moved
  162.5 ns → 164.5 ns  +2 ns  +1.23 %  host to device
    161 ns → 163 ns    +2 ns  +1.24 %  launch

links, 2 moved
  host->sip0.io0.pcie_ep (pcie wire)
    latency 50 ns → 51 ns, +1 ns (+2.00 %)
  sip0.io0.pcie_ep->host (pcie wire)
    latency 50 ns → 51 ns, +1 ns (+2.00 %)
If it is to be so: {COMMAND}"""


def test_a_nanosecond_on_a_wire_is_told_with_its_name(file: Path) -> None:
    """All of what is said; the same of a model that makes one wire longer, of which nothing else is known."""
    record, failure = checked(ran(set={"host.pcie.latency": "51 ns"}), file)
    assert (record.state, failure) == (DIFFERS, LONGER)


def test_a_model_that_makes_one_wire_longer_is_told_with_its_name(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the wire is not used, too, so that no time moves; nothing that a golden names changed then."""
    class LongerWire(Wire):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            if self.name == wire:
                self.latency += 1

    monkeypatch.setattr(Hardware, "wire_type", LongerWire)
    for wire in ("sip0.io0.pcie_ep->host", "sip0.cube0.pe1.pe_dma->sip0.cube0.pe1.pe_tcm"):
        failure = checked(ran(), file)[1]
        nothing, *_ = told(failure)
        assert nothing.startswith("Nothing that a golden names changed: the same kernel, models, configuration")
        assert re.findall(r"^  (\S+) .*\n    latency .* \+1 ns ", failure, re.MULTILINE) == [wire]


def test_what_was_run_otherwise_is_told(result: RunResult, file: Path) -> None:
    """Model, parameters, options, plug-ins and libraries, all of them; not where no figure moved."""
    changed(
        file,
        models={"test.host": "0" * 64, "acme.gone": "1" * 64},
        params={"n": 4},
        options={"seed": 7, "gone": 1},
        plugins={"test": "tests 0.9"},
        versions={"numpy": "1.0"},
    )
    assert checked(result, file)[0].state == SAME
    *lines, libraries = told(checked(ran(params={"n": 16}), file)[1])
    version = metadata.version("numpy")
    assert libraries == f"The libraries changed: numpy is '{version}', was '1.0'."
    assert lines == [
        "The model changed: acme.gone is not there any more; test.host (tests (source tree), was tests 0.9).",
        "The parameters changed: n is 16, was 4.",
        "The options changed: gone is gone, was 1; seed is 0, was 7.",
        "The plug-ins changed: test is 'tests (source tree) ', was 'tests 0.9'.",
    ]


KERNEL = """
def copy(x, y, n, tl):
    at = tl.arange(0, n)
    tl.store(y + at, tl.load(x + at))

def bench(rt, n: int = 8):
    x, y = rt.zeros((n,), "f32"), rt.empty((n,), "f32")
    rt.launch(copy, x, y, n, grid=(1,))
"""
WHOLE = "tl.store(y + at, tl.load(x + at))"
DOUBLED = KERNEL.replace("tl.load(x + at)", "tl.load(x + at) * 2")


def test_a_kernel_that_changed_is_told_with_its_lines(tmp_path: Path) -> None:
    """One that stands elsewhere, or on more lines, is the same; host code that changed is told as such."""
    bench, golden = tmp_path / "k.py", tmp_path / "g.json"
    bench.write_text(KERNEL)
    updated(run(bench, **on_machine()), golden)
    bench.write_text(f"# new\n\n{KERNEL}")
    assert checked(run(bench, **on_machine()), golden)[0].state == SAME
    bench.write_text(KERNEL.replace(
        "tl.store(y + at, tl.load(x + at))", "z = tl.load(x + at)\n    tl.store(y + at, z)"
    ))  # fmt: skip
    assert checked(run(bench, **on_machine()), golden)[0].state == SAME
    bench.write_text(DOUBLED)
    failure = checked(run(bench, **on_machine()), golden)[1]
    assert told(failure) == [
        "The kernel changed, k.py:copy:",
        "    @@ -1,3 +1,3 @@",
        "     def copy(x, y, n, tl):",
        "         at = tl.arange(0, n)",
        "    -    tl.store(y + at, tl.load(x + at))",
        "    +    tl.store(y + at, tl.load(x + at) * 2)",
    ]
    assert "  k.py:4  tl.store(y + at, tl.load(x + at) * 2)" in failure.splitlines()
    bench.write_text(KERNEL.replace("n: int = 8", "n: int = 16"))
    assert told(checked(run(bench, **on_machine()), golden)[1]) == [
        "The bench changed: k.py.", "The parameters changed: n is 16, was 8.",
    ]  # fmt: skip


def test_updates_write_what_changed_and_say_so(result: RunResult, file: Path) -> None:
    """Figures, or the same figures of other code."""
    before = json.loads(file.read_text())["measured"]
    record, failure = updated(ran(params={"n": 16}), file)
    said = "time_ns is 578.733 ns, was 575.533 ns: 3.2 ns more (+0.56 %); changed: parameter n"
    assert (record, failure) == (GoldenRecord("g.json", REWRITTEN, before, said), "")
    updated(result, file)
    changed(file, models={"test.host": "0" * 64}, versions={"numpy": "1.0"})
    assert updated(result, file)[0].said == "the same figures; changed: model test.host"
    assert checked(result, file)[0].state == SAME


def test_what_is_no_golden_is_replaced_only_where_it_was_one(result: RunResult, file: Path) -> None:
    """As after a merge; else it is left as it is."""
    text = file.read_text()
    file.write_text(text.replace('"test"', '<<<<<<< HEAD\n"test"').replace("\n <", "\n<"))
    said = "golden 'g.json' must hold one side of a merge, and line 3 is '<<<<<<< HEAD'."
    hint = f"Restore it, or write it anew: {COMMAND}"
    damaged = GoldenRecord("g.json", DAMAGED)
    assert checked(result, file) == (damaged, f"has no golden to be held to: {said}\n{hint}")
    assert updated(result, file) == (GoldenRecord("g.json", REWRITTEN, None, f"it was damaged: {said}"), "")
    assert file.read_text() == text
    file.write_text(text.replace('"kernbench.figures/1"', '"kernbench.figures/0"'))
    said = "golden 'g.json' must have schema 'kernbench.figures/1', not 'kernbench.figures/0'; make it again."
    assert checked(result, file) == (damaged, f"has no golden to be held to: {said}\n{hint}")
    file.write_text("{}")
    said = "golden 'g.json' must have schema 'kernbench.golden/1', not None; it is no golden, so move it away."
    assert checked(result, file) == (damaged, f"has no golden to be held to: {said}")
    assert updated(result, file) == (damaged, f"has no place for its golden: {said}")
    assert file.read_text() == "{}"


def test_no_golden_is_written_of_wrong_data_or_where_nothing_can_be(result: RunResult, tmp_path: Path) -> None:
    """Each is a failure of the test."""
    wrong = attrs.evolve(result, verification=Verification(False, 1, 2.0, ("x",)))
    said = "gave wrong data, of which no golden is written; 'g.json' is as it was."
    assert updated(wrong, tmp_path / "g.json") == (GoldenRecord("g.json", ABSENT), said)
    assert not (tmp_path / "g.json").exists()
    (tmp_path / "goldens").symlink_to(tmp_path / "gone")
    file = tmp_path / "goldens" / "g.json"
    said = f"has no place for its golden: file {str(file)!r} must be in a folder that can be written: File exists."
    assert updated(result, file) == (GoldenRecord("g.json", DAMAGED), said)


def test_a_golden_of_before_a_figure_was_there_holds(result: RunResult, file: Path) -> None:
    """One that is gone since is told."""
    found = json.loads(file.read_text())
    del found["measured"]["hops"], found["figures"]["totals"]["hazards"]
    file.write_text(json.dumps(found))
    assert checked(result, file)[0].state == SAME
    found["measured"]["statistics.acme.misses"] = 7
    file.write_text(json.dumps(found))
    lines = checked(result, file)[1].splitlines()
    assert lines[-4:-1] == ["", "other figures", "  statistics.acme.misses is none, was 7"]


PARTS = st.one_of(st.text('01.e-{}[],:"nul', max_size=5), st.sampled_from(["null", "true", "{}", "[]", "1e999"]))


@settings(max_examples=60)
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
    record, failure = checked(result, file)
    assert record.state in (SAME, DIFFERS, DAMAGED) and (failure == "") is (record.state == SAME)
    updated(result, file)
    assert checked(result, file)[0].state in (SAME, DAMAGED)
