"""How far runs of the shipped benches are, looked at every 64 events: it is true, and looking changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernbench_core.engine import Progress
from kernbench_core.plugins import Plugins
from kernbench_core.runs.bench_run import run

PHASES = ("host_to_device", "kernel", "device_to_host", "verifying", "computing")
RUNS = {
    "gemm": {"M": 96, "N": 64, "K": 200, "tile_m": 32, "tile_n": 32, "tile_k": 32},
    "gemm-composite": {"M": 96, "N": 64, "K": 200, "tile_m": 32, "tile_n": 32, "tile_k": 32},
    "softmax": {"rows": 40, "cols": 64, "block": 1},
    "vector-add": {"n": 5000, "block": 64},
    "mlp": {"tokens": 16, "hidden": 64, "ffn": 96, "tile_m": 16, "tile_n": 16, "tile_k": 16},
}


FILE = '''
def one_by_one(tl):
    tl.dot(tl.zeros((16, 16), "f32"), tl.zeros((16, 16), "f32"))

def bench(rt, programs: int = 40):
    x = rt.zeros((4,))
    rt.launch(one_by_one, grid=(programs,))
'''


@pytest.fixture
def one_by_one(tmp_path: Path) -> Path:
    """Give the file of a bench whose kernel is a single product, in ten programs on each PE of `tiny`."""
    path = tmp_path / "bench.py"
    path.write_text(FILE)
    return path


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch, plugins: Plugins) -> Callable[..., tuple[list[Progress], Any]]:
    """Give a function that runs a bench on `tiny` and returns all that `on_progress` was told, and the result."""
    monkeypatch.setattr("kernbench_core.engine.watchdog._MOST_EVENTS", 64)
    monkeypatch.setattr("kernbench_core.runs.run_progress._LOOK_S", 0.0)

    def look(bench: Any, params: dict[str, Any], **more: Any) -> tuple[list[Progress], Any]:
        seen: list[Progress] = []
        return seen, run(bench, "tiny", params, on_progress=seen.append, plugins=plugins, **more)

    return look


def steps(seen: list[Progress]) -> list[list[Progress]]:
    """Return what was told of each step: one begins where another phase or kernel does, or its clock begins anew."""
    found: list[list[Progress]] = []
    for one in seen:
        last = found[-1][-1] if found else None
        if last is None or (last.phase, last.what) != (one.phase, one.what) or one.step_s < last.step_s:
            found.append([])
        found[-1].append(one)
    return found


@pytest.mark.parametrize("bench", RUNS)
def test_every_step_goes_forward_to_its_end(watched: Any, bench: str, plugins: Plugins) -> None:
    """Counts and parts do not go back, and are as large as what is counted; the run is the same as unwatched."""
    seen, result = watched(bench, RUNS[bench], verify_data=True)
    assert result.op_log_sha256 == run(bench, "tiny", RUNS[bench], plugins=plugins).op_log_sha256
    assert result.verified
    assert seen[0].phase == "building"
    assert [step[0].phase for step in steps(seen)][-3:] == ["verifying", "computing", "summing"]
    assert {one.phase for one in seen} >= set(PHASES)
    for step in steps(seen):
        fractions = [one.fraction for one in step if one.fraction is not None]
        assert fractions == sorted(fractions)
        assert all(0 <= fraction <= 1 for fraction in fractions)
        counts = [one.done for one in step if one.done is not None]
        assert counts == sorted(counts)
        assert all(one.of is None or (one.done or 0) <= one.of for one in step)
    assert [one.sim_ns for one in seen] == sorted(one.sim_ns for one in seen)
    assert [one.wall_s for one in seen] == sorted(one.wall_s for one in seen)
    last = [one for one in seen if one.phase == "computing"][-1]
    assert last.fraction == 1.0
    assert last.done == last.of
    assert 0 < (last.of or 0) <= result.timing.ops


@pytest.mark.parametrize(("bench", "programs"), [("gemm-composite", 4), ("one-by-one", 40)])
def test_the_kernel_is_seen_on_its_way(watched: Any, one_by_one: Path, bench: str, programs: int) -> None:
    """By the tiles of composites, with one program on each PE; by the programs that are over, with ten."""
    seen, _ = watched(one_by_one if bench == "one-by-one" else bench, RUNS.get(bench, {}))
    kernel = [one for one in seen if one.phase == "kernel"]
    parts = {round(one.fraction, 2) for one in kernel if one.fraction is not None}
    assert len(parts) >= 5
    assert min(parts) < 0.3
    assert max(parts) > 0.7
    assert {(one.of, one.unit) for one in kernel} == {(programs, "programs")}
    assert all(one.fraction is None or one.fraction <= 0.99 or one.done == one.of for one in kernel)
    simulated = [(one.sim_ns - kernel[0].sim_ns) / (kernel[-1].sim_ns - kernel[0].sim_ns) for one in kernel]
    # programs that are alike take about as much simulated time for each turn as for any other
    assert all(
        abs(part - (one.fraction or 0.0)) < 0.4 for part, one in zip(simulated, kernel, strict=True) if one.fraction
    )


@pytest.mark.parametrize("bench", ["gemm", "softmax", "vector-add"])
def test_of_one_program_on_each_pe_no_part_is_told(watched: Any, bench: str) -> None:
    """None is over till nearly the end, and the first says nothing of the others: bytes are shown, and no share."""
    seen, _ = watched(bench, RUNS[bench])
    kernel = [one for one in seen if one.phase == "kernel"]
    assert len(kernel) >= 20
    assert {one.of for one in kernel if one.unit == "programs"} == {4}
    assert {one.unit for one in kernel} <= {"programs", "bytes stored"}
    assert all((one.fraction, one.left_s) == (None, None) for one in kernel if one.done != one.of)


def test_a_copy_is_told_in_its_bytes(watched: Any) -> None:
    """What is counted is what the bench copies: 100,000 numbers of 4 bytes, to the device twice, and back once."""
    seen, _ = watched("vector-add", {"n": 100_000})
    for phase, copies in (("host_to_device", 2), ("device_to_host", 1)):
        found = [step for step in steps(seen) if step[0].phase == phase and any(one.done for one in step)]
        assert {one.of for step in found for one in step if one.done} == {400_000}
        assert len(found) <= copies
        assert all(one.fraction == (one.done or 0) / 400_000 for step in found for one in step if one.done)


def test_programs_that_are_over_are_counted(watched: Any, one_by_one: Path) -> None:
    """Once each PE has as many behind it as one, on average; before, nothing is said to be over."""
    seen, _ = watched(one_by_one, {})
    kernel = [one for one in seen if one.phase == "kernel"]
    assert {one.of for one in kernel} == {40}
    assert all(one.fraction is None for one in kernel if (one.done or 0) < 4)
    told = [(one.done, one.fraction) for one in kernel if one.done and one.done >= 4]
    assert len(told) >= 3
    assert all(fraction == pytest.approx(done / 40) for done, fraction in told if done < 40)
    assert kernel[0].what == "one_by_one"


def test_what_the_host_program_does_between_is_not_taken_for_a_copy(watched: Any) -> None:
    """It is told of when the copy is over."""
    def bench(rt: Any) -> None:
        for _ in range(2):
            rt.tensor(np.zeros(20_000, np.float32))

    seen, _ = watched(bench, {})
    phases = [phase for phase, _ in groupby(seen, lambda one: one.phase)]
    mapped_and_copied = 2 * ["bench", "host_to_device"]
    assert phases == ["building", *mapped_and_copied, *mapped_and_copied, "bench", "summing"]


def test_what_is_expected_is_counted_by_tensors(watched: Any) -> None:
    """Then what checked tensors need is computed."""

    def bench(rt: Any) -> None:
        for _ in range(3):
            rt.check(rt.tensor(np.ones(4, np.float32)), lambda: np.ones(4, np.float32))

    seen, _ = watched(bench, {}, verify_data=True)
    assert [(one.done, one.of, one.unit) for one in seen if one.phase == "verifying"][1:] == [
        (0, 3, "tensors"), (1, 3, "tensors"), (2, 3, "tensors"), (3, 3, "tensors"),
    ]  # fmt: skip


def test_files_are_a_step(watched: Any, tmp_path: Path) -> None:
    seen, _ = watched("vector-add", RUNS["vector-add"], out=tmp_path / "out")
    assert seen[-1].phase == "writing"


def test_single_ops_are_counted(watched: Any) -> None:
    """With verify_ops every op of the log is computed, the copies too."""
    seen, result = watched("vector-add", RUNS["vector-add"], verify_ops=True)
    last = [one for one in seen if one.phase == "computing"][-1]
    assert (last.of, last.done) == (result.timing.ops, result.timing.ops)


def test_outputs_are_computed_in_a_step(watched: Any) -> None:
    """Nobody counts beforehand what they need, so no part is told."""
    seen, _ = watched("softmax", RUNS["softmax"], outputs=True)
    found = [one for one in seen if one.phase == "computing"]
    assert found
    assert all((one.done, one.of, one.fraction) == (None, None, None) for one in found)
