"""What a resource would gain is what a run on the machine with that resource faster takes."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pytest

from kernbench_builtin.native import timing
from kernbench_builtin.native.command import worked_out
from kernbench_builtin.native.gain_text import gain_lines
from kernbench_builtin.native.resources import FREE, RESOURCES
from kernbench_builtin.native.timing import NativeTimes, Retimer, library_file
from kernbench_builtin.native.what_if import what_if
from kernbench_core.errors import SanityError, UsageError
from kernbench_core.runs.bench_run import run
from kernbench_core.topology.design import Machine
from tests.builtin.native.native_rig import SMALL, machine, plugins, recorded, run_on
from tests.commands import Run

pytestmark = pytest.mark.skipif(library_file() is None, reason="the native engine was not compiled")
NAMED = {resource.name: resource for resource in RESOURCES}


def test_each_row_is_the_time_of_a_run_there() -> None:
    """Of a memory, a unit, a wire and a number of places, each twice as fast and free."""
    bench = "gemm-naive"
    _, recording = recorded(bench)
    chosen = [NAMED[name] for name in ("HBM", "matrix units", "PCIe", "places of the DMAs")]
    found = what_if(recording, machine(), plugins(), resources=chosen)
    assert [resource for resource, _, _ in found.rows] == chosen
    for resource, *outcomes in found.rows:
        for times, outcome in zip((2.0, FREE), outcomes, strict=True):
            other = run_on(resource.faster(machine(), plugins(), times), bench)
            assert outcome.total_ns == other.env.now
            (launch,) = (handle.launch for handle in other.shared.launches)
            assert outcome.kernel_ns == max(launch.ended_ns.values()) - min(launch.started_ns.values())
    assert found.now.total_ns > found.rows[2][1].total_ns > found.rows[2][2].total_ns > 0
    assert found.now.kernel_ns > found.rows[1][1].kernel_ns


def test_places_of_dmas_are_those_that_a_machine_has() -> None:
    """One channel has its own number, the other that of the unit; of more than are needed there are no fewer."""
    settings = ("components.pe_dma.params.read_outstanding=1", "components.pe_dma.params.servers=4096")
    _, recording = recorded("vector-add", machine("tiny", *settings))
    found = what_if(recording, machine("tiny", *settings), plugins(), resources=[NAMED["places of the DMAs"]])
    ((_, twice, free),) = found.rows
    for outcome, places in ((twice, 2), (free, 1024)):
        other = run_on(machine("tiny", settings[0][:-1] + str(places), settings[1]), "vector-add")
        assert outcome.total_ns == other.env.now < found.now.total_ns


def test_launches_side_by_side_take_the_time_of_both_once() -> None:
    """As the phase of kernels has it."""

    def busy(x, tl) -> None:  # type: ignore[no-untyped-def]
        a = tl.load(x + tl.program_id(0) * 64, shape=(64,))
        for _ in range(20):
            a = a + 1.0

    def bench(rt) -> None:  # type: ignore[no-untyped-def]
        x = rt.tensor(np.ones(256, np.float32))
        for pes in ([0, 1], [2, 3]):
            rt.launch(busy, x, pes=pes, wait=False)
        rt.wait_all()

    engine, recording = recorded(bench)
    found = what_if(recording, machine(), plugins(), resources=[])
    assert found.now.kernel_ns == engine.get_timing_result().phases["kernel"] < found.now.total_ns


def test_a_recording_that_does_not_hold_is_refused_with_its_cause() -> None:
    def bench(rt) -> None:  # type: ignore[no-untyped-def]
        rt.tensor(np.zeros(64, np.float16))
        assert rt.op_log is not None

    _, recording = recorded(bench)
    with pytest.raises(UsageError, match=r"this one does not, because of:\n  a program that asks for rt.op_log at "):
        what_if(recording, machine(), plugins())


def test_a_program_that_looked_at_the_time_is_taken_as_it_was_and_that_is_told() -> None:
    """It is the same on a faster machine as on this one: what it did after its look is not done otherwise."""

    def bench(rt) -> None:  # type: ignore[no-untyped-def]
        x = rt.tensor(np.zeros(64, np.float16))
        for _ in range(1 if rt.now > 10_000 else 2):
            x.numpy()

    _, recording = recorded(bench)
    found = what_if(recording, machine(), plugins(), resources=[NAMED["PCIe"]])
    ((_, twice, _),) = found.rows
    assert twice.total_ns == run_on(NAMED["PCIe"].faster(machine(), plugins(), 2.0), bench).env.now
    (looked,) = found.looked_at
    assert looked.startswith("rt.now at ") and found.to_json()["looked_at"] == [looked]
    last = " ".join(gain_lines(found)).rpartition("the program asked for ")[2]
    assert last.startswith("rt.now at ") and last.endswith(": what it did then stays as it was")


def test_without_the_engine_there_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    _, recording = recorded("vector-add")
    monkeypatch.setattr(timing, "library_file", lambda: None)
    timing._library.cache_clear()
    with pytest.raises(UsageError, match="the native engine must be compiled for this, and is not"):
        what_if(recording, machine(), plugins())


def test_machines_of_which_nothing_is_known_have_no_part_in_the_spread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor a place among what gains; the reason is told once."""
    _, recording = recorded("vector-add")
    times, tried = Retimer.times, list[int]()

    def some(self: Retimer, other: Machine) -> NativeTimes:
        tried.append(1)
        if len(tried) > 1 and len(tried) % 2:
            raise UsageError("what scratchpads have room for must be as in the recorded run.")
        return times(self, other)

    monkeypatch.setattr(Retimer, "times", some)
    found = what_if(recording, machine(), plugins(), resources=[NAMED["HBM"], NAMED["PCIe"]])
    assert found.total.width_ns < 0.01 * found.now.total_ns
    assert [free.refused != "" for _, _, free in found.ranked()] == [True, True]
    lines = gain_lines(found)
    assert lines.count("unknown: what scratchpads have room for must be as in the recorded run.") == 1


def test_a_run_is_recorded_compared_and_asked_what_if(tmp_path: Path) -> None:
    """As a user does it: a folder with the recording, both engines, then the table, and as JSON."""
    folder = tmp_path / "run"
    result = run("gemm", "tiny", SMALL["gemm"], plugins=plugins(), record=True, engine="both", out=folder)
    assert any(line.startswith("Both engines give the same times, bit for bit: of ") for line in result.timing.warnings)
    found = worked_out(folder, plugins())
    told = gain_lines(found)
    assert told[0].startswith("now: kernels ")
    assert any(line.startswith("PCIe  ") for line in told) and any("chose its blocks by" in line for line in told)
    plain = found.to_json()
    assert plain["schema"] == "kernbench.what-if/1" and json.loads(json.dumps(plain)) == plain
    assert {row["resource"] for row in plain["rows"]} <= set(NAMED)
    assert plain["now"]["total_ns"] == result.total_ns


def test_recording_changes_nothing_of_a_run_and_can_be_asked_at_once(tmp_path: Path) -> None:
    """In a notebook without a folder, which the command line needs; a pickled result has no machine to ask."""
    plain, kept = (
        run("softmax", "tiny", SMALL["softmax"], plugins=plugins(), record=record) for record in (False, True)
    )
    assert plain.op_log_sha256 == kept.op_log_sha256 and plain.native is None
    assert kept.native.what_if().now.total_ns == kept.total_ns
    ops = kept.native.recording.ops
    assert kept.to_json()["native"] == {"ops": ops, "causes": []} and repr(kept.native).endswith(f" {ops:,} ops>")
    sent = pickle.loads(pickle.dumps(kept)).native
    assert sent.recording.ops == ops
    with pytest.raises(UsageError, match="its machine was not pickled"):
        sent.what_if()


def test_the_command_line_needs_a_folder_for_a_recording(inside: Run) -> None:
    done = inside("run", "softmax", "--record")
    assert done.returncode == 2
    assert "--record must have a folder to keep the recording in; add --out DIR." in done.stderr


def test_times_that_differ_are_a_failed_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit code 7: the result is not to be used."""
    from kernbench_builtin.native import compared

    monkeypatch.setattr(compared, "differences", lambda *_: ["  op 0 of PE 0 at sip0.cube0.pe0.pe_dma: 1 and 2"])
    with pytest.raises(SanityError, match="both engines must give the same times, and do not:\n  op 0 of PE 0"):
        run("vector-add", "tiny", {"n": 64}, engine="both", plugins=plugins())
    assert SanityError.exit_code == 7


def test_a_run_is_asked_at_once(inside: Run) -> None:
    """At the terminal and as JSON: what the command says of a recorded run; a change within the spread is none."""
    asked = ["run", "softmax", "--topology", "tiny", "-p", "rows=32", "-p", "cols=128", "--what-if"]
    told = inside(*asked).stdout
    plain = json.loads(inside(*asked, "--json").stdout)["native"]["what_if"]
    result = run("softmax", "tiny", SMALL["softmax"], plugins=plugins(), what_if=True)
    assert plain == json.loads(json.dumps(result.native.gains.to_json()))
    assert "\n".join(gain_lines(result.native.gains)) in told
    assert plain["total"]["runs"] == 9 and plain["total"]["low_ns"] < plain["total"]["high_ns"]
    spread = result.native.gains.total.width_ns
    for resource, twice, _ in result.native.gains.rows:
        cells = [line.split() for line in told.splitlines() if line.startswith(f"{resource.name}  ")]
        assert all((row[-3] in "~=") == (abs(twice.total_ns - result.total_ns) <= spread) for row in cells)
