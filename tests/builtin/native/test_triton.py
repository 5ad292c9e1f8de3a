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
from kernbench_builtin.triton.modules import torch_cuda
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
        assert REFUSED[case.name] in " ".join(recording.why_not)
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
    assert refusals(recording, there, hardware, as_it_was=True) == []
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
        elif HOW == "both":
            tl.atomic_add(out_ptr + at, 5)
            tl.atomic_max(out_ptr + at, 3)
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


def test_each_element_that_lies_apart_has_its_address_on_the_wire() -> None:
    """Also two that one strided range would hold, as a load has them."""
    with kb.triton("tiny", engine="both") as sim:
        counting()[(16,)](np.array([0, 1000, 2000, 3000] * 16, np.int32), np.zeros(8192, np.int32), BLOCK=4, HOW="add")
    assert sim.result is not None


@pytest.mark.parametrize(
    ("dtype", "how", "looked_at"),
    [
        (np.float32, "add", "a sum of floats, by the order of atomic ops at "),
        (np.int32, "both", "what atomic ops of several kinds leave, by their order at "),
        (np.int32, "add", None),
    ],
)
def test_what_follows_from_the_order_of_atomic_ops_is_known(
    dtype: Any, how: str, looked_at: str | None, tmp_path: Any
) -> None:
    """The host may go on by it: no other times are those of a run; what-if takes the program as it was."""
    with kb.triton("tiny", record=True, out=tmp_path / "run") as sim:
        counting()[(2,)](np.arange(32, dtype=np.int32), np.zeros(64, dtype), BLOCK=16, HOW=how)
    assert sim.result is not None
    recording = sim.result.native.recording
    assert recording.causes == ()
    assert [each.startswith(looked_at) for each in recording.looked_at] == ([True] if looked_at else [])


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


@pytest.mark.parametrize("how", ["autotune", "do_bench", "launches", "event"])
@pytest.mark.parametrize("error", [False, True])
def test_a_script_that_looks_at_times_is_known_by_it(how: str, error: bool, tmp_path: Any) -> None:
    """Before its first launch, and where an error ended the run in which it looked, too."""
    x, out = np.ones(2048, np.float32), np.zeros(512, np.float32)
    given: dict[str, Any] = {"WORK": 1, "LOADS": True, "BLOCK": 512}
    with kb.triton("tiny", record=True, out=tmp_path / "run") as sim:
        import triton

        kernel = walking()
        if how == "autotune":
            config = [triton.Config({"WORK": work}) for work in (1, 2)]
            triton.autotune(configs=config, key=["n"])(kernel)[(1,)](x, out, 3, LOADS=True, BLOCK=512)
        elif how == "do_bench":
            triton.testing.do_bench(lambda: kernel[(1,)](x, out, 3, **given))
        elif how == "launches":
            kernel[(1,)](x, out, 3, **given)
            assert sim.launches[0].time_ns > 0
        else:
            kernel[(1,)](x, out, 3, **given)
            torch_cuda.TimeMark().record()
        if error:
            with pytest.raises(kb.KernbenchError):
                kernel[(1,)](x, out, 99, **given)
        kernel[(1,)](x, out, 3, **given)
    assert sim.result is not None
    recording: Recording = sim.result.native.recording
    assert recording.causes == () and recording.looked_at[0].startswith("the figures of a launch at ")


def waiting() -> Any:
    """Give a kernel that waits for all that it began, of which much is over before: some loads, or some products."""
    import triton
    import triton.language as tl

    @triton.jit
    def kernel(x_ptr, y_ptr, out_ptr):
        at = tl.arange(0, 64)
        a = tl.load(y_ptr + at[:, None] * 64 + at[None, :])
        for k in range(60):
            tl.load(x_ptr + k * 64 + at, wait=False)
        for _ in range(4):
            tl.exp(a)
        for _ in range(10):
            tl.dot(a, a, wait=False)
        tl.wait()
        tl.store(out_ptr + at, tl.sum(tl.exp(a), 0))

    return kernel


def test_what_is_over_is_waited_for_where_it_is_not() -> None:
    """Of more commands than a program keeps in mind that are over: on another machine these are the last."""

    def made(*sets: str, **options: Any) -> Any:
        x, y, out = np.zeros(60 * 64, np.float32), np.zeros(64 * 64, np.float32), np.zeros(64, np.float32)
        with kb.triton("tiny", set=sets, **options) as sim:
            waiting()[(1,)](x, y, out)
        return sim.result

    sets = "components.pe_gemm.params.overhead=10ns", "components.hbm_ctrl.params.overhead=1000ns"
    recording = made("components.pe_gemm.params.overhead=5000ns", what_if=True).native.recording
    there = time_recording(recording, hardware_of(machine("tiny", *sets), plugins()))
    assert there.total_ns == made(*sets).timing.total_ns


EARLY = """
import triton
import triton.language as tl

@triton.jit
def k(o, x, B: tl.constexpr):
    i = tl.arange(0, B)
    if tl.program_id(0) == 0:
        tl.store(o + 4 * B + i, tl.load(x + i))
        tl.store(o + 5 * B + i, tl.load(x + i))
    else:
        for j in tl.static_range(0, 4):
            tl.store(o + j * B + i, tl.load(x + j * B + i))
        for j in range(0, 6):
            if j < 4:
                s = tl.load(o + j * B + i)
        tl.store(o + 6 * B + i, s)
"""


def test_a_load_ahead_of_what_another_pe_may_not_have_written_is_refused(tmp_path: Any) -> None:
    """It is of no use to anybody, so that no access races; whether it is made is a matter of time."""
    (tmp_path / "early.py").write_text(EARLY)
    given = {"o": "empty:f32:7,256", "x": "zeros:f32:8,256", "B": "256"}
    result = kb.run(f"{tmp_path / 'early.py'}:k", "tiny", given, grid="2,1,1", what_if=True)
    assert not result.hazards
    assert result.native.recording.causes[0].startswith("a program that asks for whether memory is written yet at ")


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
