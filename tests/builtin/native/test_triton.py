"""Launches of Triton's kernels are timed on other machines as runs of them there: loops that load ahead, too."""

from __future__ import annotations

import random
from typing import Any

import attrs
import numpy as np
import pytest

import kernbench as kb
from kernbench_builtin.native.recording import ROOM, Recording
from kernbench_builtin.native.timing import hardware_of, library_file, refusals, time_recording
from kernbench_core.errors import UsageError
from tests.builtin.native.native_rig import machine, plugins
from tests.builtin.triton.families.case import DTYPES, Case, load
from tests.builtin.triton.families.every import CASES
from tests.builtin.triton.kernels import walking

pytestmark = pytest.mark.skipif(library_file() is None, reason="the native engine was not compiled")

#: What the recordings of some cases say for which they do not hold.
REFUSED = {
    "norms-layer_norm_backward_locked": "whose result is used", "matmul-matmul": "the figures of a launch",
    "products-mv": "the figures of a launch", "attention-attention": "the figures of a launch",
    "counting-histogram": "on demand", "counting-argmax": "on demand", "counting-work_queue": "whose result is used",
    "idioms-tuned_count": "the figures of a launch",
}  # fmt: skip


def run(case: Case, *sets: str, **options: Any) -> Any:
    """Run all trials of a case, and return the result."""
    with kb.triton("tiny", set=sets, **options) as sim:
        function = getattr(load(case, sim.data_ptr), case.call)
        for number, (shape, dtype) in enumerate(case.trials()):
            function(*case.inputs(np.random.default_rng(number), DTYPES[dtype], *shape))
    return sim.result


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_kernel_is_timed_on_another_machine_as_its_run_is_there(case: Case, tmp_path: Any) -> None:
    """Every op of it, and on its own machine every wire; or the recording says why it does not hold."""
    holds = case.name not in REFUSED
    first = run(case, record=True, out=tmp_path / "run", engine="both" if holds else "python")
    recording: Recording = first.native.recording
    if not holds:
        assert REFUSED[case.name] in " ".join(recording.causes)
        return
    assert recording.causes == ()
    drawn = random.Random(case.name)
    sets = (
        f"components.hbm_ctrl.params.overhead={drawn.uniform(2, 200):.1f}ns",
        f"components.hbm_ctrl.params.atomic_step={drawn.choice([0.5, 3, 17.3])}ns",
        f"components.pe_dma.params.overhead={drawn.uniform(0.5, 50):.2f}ns",
        f"cube.noc.bandwidth={drawn.choice([128, 256, 512])}GB/s",
    )
    there = machine("tiny", *sets)
    hardware = hardware_of(there, plugins())
    assert refusals(recording, there, hardware) == []
    times, result = time_recording(recording, hardware), run(case, *sets)
    assert times.total_ns == result.timing.total_ns
    for at, column in enumerate(("t_start", "t_end")):
        assert sorted(times.commands[:, at].tolist()) == sorted(result.ops[column].tolist())


def counting() -> Any:
    """Give a kernel that adds to elements that its lanes, and those of other programs, meet; some use the result."""
    import triton
    import triton.language as tl

    @triton.jit
    def kernel(at_ptr, out_ptr, BLOCK: tl.constexpr, HOW: tl.constexpr):  # noqa: N803
        at = tl.load(at_ptr + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))
        if HOW == "add":
            tl.atomic_add(out_ptr + at, 1)
        elif HOW == "look":
            tl.store(out_ptr + 512 + at, tl.atomic_add(out_ptr + at, 1))
        else:
            tl.atomic_xchg(out_ptr + at, at)

    return kernel


def counted(at: Any, *sets: str, **options: Any) -> Any:
    """Count in four programs how often each number stands there, and return the result."""
    out = np.zeros(1024, np.int32)
    with kb.triton("tiny", set=sets, **options) as sim:
        counting()[(4,)](at, out, BLOCK=64, HOW="add")
    assert out.tolist() == np.bincount(at, minlength=1024).tolist()
    return sim.result


@pytest.mark.parametrize("span", [1, 40, 512])
def test_elements_that_programs_meet_take_as_long_on_another_machine(span: int, tmp_path: Any) -> None:
    """One element of all, bursts of several, and elements that hardly ever meet."""
    at = np.random.default_rng(span).integers(0, span, 256).astype(np.int32)
    recording = counted(at, record=True, out=tmp_path / "run", engine="both").native.recording
    sets = "components.hbm_ctrl.params.atomic_step=9.5ns", "components.hbm_ctrl.params.overhead=31ns"
    there = time_recording(recording, hardware_of(machine("tiny", *sets), plugins()))
    assert there.total_ns == counted(at, *sets).timing.total_ns


@pytest.mark.parametrize(
    ("how", "cause"),
    [
        ("look", "tl.atomic_add, whose result is used, as times decide who is first at "),
        ("last", "tl.atomic_xchg, as times decide who is last at "),
    ],
)
def test_who_is_first_or_last_is_refused(how: str, cause: str, tmp_path: Any) -> None:
    with kb.triton("tiny", record=True, out=tmp_path / "run") as sim:
        counting()[(2,)](np.arange(32, dtype=np.int32), np.zeros(1024, np.int32), BLOCK=16, HOW=how)
    assert sim.result is not None
    assert any(each.startswith(cause) for each in sim.result.native.recording.causes)


@pytest.mark.parametrize("fields", [(1 << 40, -1), (0, 1)], ids=["more than there is", "less than there is"])
def test_other_room_for_what_is_loaded_ahead_is_refused(fields: tuple[int, int], tmp_path: Any) -> None:
    """A recording whose program found other room than there is in the scratchpad at these times."""
    x, out = np.arange(9 * 512, dtype=np.float32), np.zeros(512, np.float32)
    with kb.triton("tiny", record=True, out=tmp_path / "run") as sim:
        walking()[(1,)](x, out, 9, WORK=4, LOADS=True, BLOCK=512, num_stages=3)
    assert sim.result is not None
    recording: Recording = sim.result.native.recording
    hardware = hardware_of(machine(), plugins())
    assert time_recording(recording, hardware).total_ns == sim.result.timing.total_ns
    (launch, pe, asks), *more = recording.streams
    changed, at = list(asks), 0
    while changed[at] != ROOM:
        at += 3 + changed[at + 2]
    changed[at + 1], changed[at + 3] = fields
    other = attrs.evolve(recording, streams=[(launch, pe, changed), *more])
    with pytest.raises(UsageError, match="what scratchpads have room for must be as in the recorded run"):
        time_recording(other, hardware)
