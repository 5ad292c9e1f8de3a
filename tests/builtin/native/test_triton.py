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
    "norms-layer_norm_backward_locked": "atomic", "matmul-matmul": "the figures of a launch",
    "products-split_k": "atomic", "products-mv": "the figures of a launch",
    "attention-attention": "the figures of a launch", "moves-embedding_backward": "atomic",
    "counting-histogram": "atomic", "counting-extremes": "atomic", "counting-argmax": "on demand",
    "counting-fused_moe": "atomic", "counting-work_queue": "atomic", "idioms-tuned_count": "atomic",
}  # fmt: skip


def run(case: Case, *sets: str, **options: Any) -> Any:
    """Run all trials of a case, and return the result."""
    with kb.triton("tiny", set=sets, **options) as sim:
        function = getattr(load(case, sim.data_ptr), case.call)
        for number, (shape, dtype) in enumerate(case.trials()):
            function(*case.inputs(np.random.default_rng(number), DTYPES[dtype], *shape))
    return sim.result


def recorded(case: Case, folder: Any) -> Recording:
    found: Recording = run(case, record=True, out=folder / "run").native.recording
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_kernel_is_timed_on_another_machine_as_its_run_is_there(case: Case, tmp_path: Any) -> None:
    """Every op of it; or the recording says why it does not hold."""
    recording = recorded(case, tmp_path)
    if case.name in REFUSED:
        assert REFUSED[case.name] in " ".join(recording.causes)
        return
    assert recording.causes == ()
    drawn = random.Random(case.name)
    sets = (
        f"components.hbm_ctrl.params.overhead={drawn.uniform(2, 200):.1f}ns",
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
