"""Runs with atomic ops: locks, tickets, when a value is there, what a log keeps, where the time goes, and refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kernbench as kb
from kernbench_builtin.saved import load_run
from kernbench_builtin.triton.kernel import JitFunction, JitKernel
from kernbench_builtin.triton.names import language_module
from kernbench_core.errors import ComponentError, LimitError, UninitializedReadError
from kernbench_core.plugins import own_plugins

# mypy: disable-error-code="import-not-found"


def locked(topology: str, take: str | None, give: str = "release", **options: Any) -> tuple[Any, np.ndarray]:
    """Have sixteen programs add 1 to a number by load and store, one after the other or not; return run and number.

    `take` and `give` are the orders of a lock; without `take` there is none.
    """
    word, total = np.zeros(1, np.int32), np.zeros(1, np.float32)
    with kb.triton(topology, **options) as sim:
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(word: Any, total: Any, TAKE: tl.constexpr, GIVE: tl.constexpr) -> None:  # noqa: N803
            if TAKE is not None:
                while tl.atomic_cas(word, 0, 1, sem=TAKE) == 1:
                    pass
            tl.store(total, tl.load(total) + 1)
            if TAKE is not None:
                tl.atomic_xchg(word, 0, sem=GIVE)

        kernel[(16,)](word, total, take, give)
    return sim, total


@pytest.fixture(scope="module")
def with_lock() -> tuple[Any, np.ndarray]:
    return locked("tiny", "acquire", explain=True, verify_ops=True)


def test_a_spin_lock_guards_what_is_between(with_lock: tuple[Any, np.ndarray]) -> None:
    """Nothing is lost, and nothing is a hazard: what a program did is before its release, and before the next one's."""
    sim, total = with_lock
    assert total.tolist() == [16]
    assert (sim.result.hazards, sim.verified) == ((), True)
    assert sim.result.branch_values.read == 0, "integers are there with their answers"
    sim, total = locked("tiny", None)
    assert total[0] < 16
    assert len(sim.result.hazards) > 0


@pytest.mark.parametrize(("take", "give"), [("relaxed", "release"), ("acquire", "relaxed"), ("release", "acquire")])
def test_a_lock_that_orders_one_side_only_is_a_hazard(take: str, give: str) -> None:
    """Though nothing is lost here: nothing says that what is between is seen by the next one."""
    sim, total = locked("tiny", take, give)
    assert total.tolist() == [16]
    assert len(sim.result.hazards) > 0


@pytest.mark.parametrize(
    ("between", "last", "used", "hazards"),
    [("relaxed", "acquire", True, 0), ("acq_rel", "acq_rel", True, 0), ("acq_rel", "acq_rel", False, 1),
     ("relaxed", "relaxed", True, 1)],
)  # fmt: skip
def test_what_was_before_an_op_is_known_through_others(between: str, last: str, used: bool, hazards: int) -> None:
    """A program stores and sets a flag, a second one changes the flag, a third finds that, and loads."""
    x, flag = np.zeros(1, np.float32), np.zeros(1, np.int32)
    with kb.triton("tiny") as sim:
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(x: Any, flag: Any, BETWEEN: tl.constexpr, LAST: tl.constexpr, USED: tl.constexpr) -> None:  # noqa: N803
            if tl.program_id(0) == 0:
                tl.store(x, 1.0)
                tl.atomic_xchg(flag, 1, sem="release")
            elif tl.program_id(0) == 1:
                for _ in range(8):
                    tl.atomic_add(flag, 2, sem=BETWEEN)
            else:
                for _ in range(16):
                    if USED:
                        _ = tl.atomic_add(flag, 4, sem=LAST)
                    else:
                        tl.atomic_add(flag, 4, sem=LAST)
                tl.load(x)

        kernel[(3,)](x, flag, between, last, used)
    assert sim.result is not None
    assert len(sim.result.hazards) == hazards


def test_two_runs_have_one_log(with_lock: tuple[Any, np.ndarray]) -> None:
    again, _ = locked("tiny", "acquire")
    assert again.result.op_log_sha256 == with_lock[0].result.op_log_sha256
    turns = [record.params["turn"] for record in again.result.op_log if record.op_name.startswith("atomic_c")]
    assert len(turns) > 16, "who found it locked asked again"
    assert len(set(turns)) == len(turns)


def test_the_time_is_explained(with_lock: tuple[Any, np.ndarray]) -> None:
    """Rows of the critical path sum to the total, and each class of messages to its own parts."""
    explanation = with_lock[0].result.explain
    assert sum(went.ns for went in explanation.went) == explanation.total_ns
    (row,) = [row for row in explanation.ledger if row.what == "pe_dma changes hbm_ctrl"]
    assert (row.unaccounted_ns, row.service >= row.messages) == (0, True), "a step of 1 ns each"
    assert any(segment.sort == "atomic" for launch in explanation.launches for segment in launch.path)


def test_a_saved_log_is_computed_the_same(tmp_path: Path) -> None:
    """Floats too, whose sum depends on the order: in a run that did not compute them."""
    x = np.random.default_rng(3).standard_normal(256).astype(np.float32)
    sums = np.zeros(3, np.float32)
    with kb.triton("tiny", out=tmp_path / "run") as sim:
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(x: Any, sums: Any, B: tl.constexpr) -> None:  # noqa: N803
            i = tl.program_id(0) * B + tl.arange(0, B)
            tl.atomic_add(sums + i % 3, tl.load(x + i))

        kernel[(8,)](x, sums, B=32)
    assert sim.result is not None
    executor = load_run(tmp_path / "run" / "oplog").executor()
    last: dict[tuple[Any, ...], Any] = {}
    for record, value in sorted(executor.results(), key=lambda each: each[0].params.get("turn", -1)):
        if record.op_name == "atomic_add":
            assert record.writes is not None
            last[record.writes.regions] = value
    found = np.concatenate([executor.materialize(value) for value in last.values()])
    assert sorted(found.tolist()) == sorted(sums.tolist())
    assert sums.sum() == pytest.approx(x.sum(), abs=1e-4)


def test_a_branch_waits_for_the_op_that_made_what_it_found() -> None:
    """Of floats, which phase 2 computes: the op before it may be another PE's, and on its way back there."""
    total, seen = np.zeros(1, np.float32), np.full(32, -1, np.float32)
    with kb.triton("tiny", verify_ops=True, verify_data=True) as sim:
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(total: Any, seen: Any) -> None:
            found = tl.atomic_add(total, 1.5)
            if found >= 6.0:
                tl.store(seen + tl.program_id(0), found)

        kernel[(32,)](total, seen)
    assert total.tolist() == [48]
    assert sorted(seen.tolist()) == [-1] * 4 + [6 + 1.5 * n for n in range(28)]
    assert sim.result is not None
    assert (sim.result.branch_values.read, sim.result.branch_values.confirmed) == (32, 32)


def test_programs_draw_their_work_from_a_counter() -> None:
    """A persistent kernel: every piece is done once, by whoever is free, and the counter ends at what was drawn."""
    counter, done, by = np.zeros(1, np.int32), np.zeros(20, np.int32), np.full(20, -1, np.int32)
    with kb.triton("tiny") as sim:
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(counter: Any, done: Any, by: Any, n: Any) -> None:
            at = tl.atomic_add(counter, 1)
            while at < n:
                tl.store(done + at, tl.load(done + at) + 1)
                tl.store(by + at, tl.program_id(0))
                at = tl.atomic_add(counter, 1)

        kernel[(4,)](counter, done, by, 20)
    assert done.tolist() == [1] * 20
    assert counter.tolist() == [24]
    assert set(by.tolist()) == {0, 1, 2, 3}
    assert sim.result is not None
    assert sim.result.hazards == ()


def test_lanes_at_one_element_take_the_stated_time_each() -> None:
    """Nine ns more a step are nine ns more for each of 8 lanes, 9 for a lane of a whole burst; the rest is the same."""
    took = {}
    for same in (True, False):
        for step in (1, 10):
            out = np.zeros(8, np.int32)
            with kb.triton("tiny", set=[f"components.hbm_ctrl.params.atomic_step={step} ns"]) as sim:
                import triton
                import triton.language as tl

                @triton.jit
                def kernel(out: Any, SAME: tl.constexpr) -> None:  # noqa: N803
                    tl.atomic_add(out + (tl.arange(0, 8) // 8 if SAME else tl.arange(0, 8)), 1)

                kernel[(1,)](out, same)
            took[same, step] = sim.launches[0].time_ns
            assert out.tolist() == ([8] + [0] * 7 if same else [1] * 8)
    assert took[True, 10] - took[True, 1] == 8 * 9
    assert took[False, 10] - took[False, 1] == 9


@pytest.mark.parametrize("used", [False, True])
def test_operands_of_all_lanes_travel_and_what_they_found_where_it_is_used(used: bool) -> None:
    """Eight lanes of two operands of 4 B there, eight elements back; through the scratchpad, too."""
    x = np.zeros(4, np.int32)
    with kb.triton("tiny", links="all") as sim:
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(x: Any, USED: tl.constexpr) -> None:  # noqa: N803
            at, old, new = x + tl.arange(0, 8) // 2, tl.zeros((8,), tl.int32), tl.full((8,), 1, tl.int32)
            if USED:
                _ = tl.atomic_cas(at, old, new)
            else:
                tl.atomic_cas(at, old, new)

        kernel[(1,)](x, used)
    assert x.tolist() == [1] * 4
    assert sim.result is not None
    carried = {row["name"].replace("sip0.cube0.", ""): row["bytes"] for row in sim.result.links}
    assert carried["pe0.pe_tcm->pe0.pe_dma"] == carried["pe0.pe_dma->r0c0"] == 64
    assert carried["pe0.pe_dma->pe0.pe_tcm"] == carried["r0c0->pe0.pe_dma"] == 32 * used


@pytest.mark.parametrize("topology", ["tiny", "default"])
def test_locks_and_tickets_on_other_machines(topology: str) -> None:
    """Over packages, and with banks."""
    banks = ["components.hbm_ctrl.impl=builtin.hbm_ctrl_bank"]
    sim, total = locked(topology, "acquire", set=banks, verify_ops=True)
    assert (total.tolist(), sim.result.hazards, sim.verified) == ([16], (), True)


def test_a_lock_that_is_never_released_ends_by_a_limit() -> None:
    with kb.triton("tiny", max_events=5000):
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(word: Any) -> None:
            while tl.atomic_cas(word, 0, 1) == 1:
                pass

        with pytest.raises(LimitError) as error:
            kernel[(4,)](np.zeros(1, np.int32))
    told = str(error.value)
    assert told.startswith("the run reached its limit of 5000 events at simulated time ")
    assert "waits for tl.atomic_cas from its pe_dma" in told


def test_memory_that_nobody_wrote_is_refused() -> None:
    tl: Any = language_module()

    def change(x: Any) -> None:
        tl.atomic_add(x + 2, 1)

    def bench(rt: Any) -> None:
        rt.launch(JitKernel(JitFunction(change)), x=rt.empty((4,), "int32"), grid=(1,))

    with pytest.raises(UninitializedReadError) as error:
        kb.run(bench, "tiny")
    assert (
        str(error.value).splitlines()[0].endswith(
            "must change memory that was written, and element [2] of tensor 'tensor1' was not; store to it first, or "
            "make the tensor with rt.zeros."
        )
    )  # fmt: skip


@pytest.mark.parametrize(
    ("model", "told"),
    [
        (
            "Plain",
            "sip0.cube0.hbm_ctrl0: Plain must be a memory that takes atomic ops for tl.atomic_add at HERE (op 1 of PE "
            "0), and is not; choose one that does, as builtin.hbm_ctrl, or make it an AtomicMemory.",
        ),
        (
            "Forgets",
            "sip0.cube0.hbm_ctrl0 must change elements for an AtomicTransaction before it answers; call its change "
            "where it is served.",
        ),
    ],
)
def test_a_memory_that_does_not_is_said(model: str, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parent)
    plugins = kb.load_plugins([*own_plugins("builtin"), "strange = strange_memories"], installed=False)
    with kb.triton("tiny", set=[f"components.hbm_ctrl.impl=strange.{model.lower()}"], plugins=plugins):
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(x: Any) -> None:
            tl.atomic_add(x, 1)

        with pytest.raises(ComponentError) as error:
            kernel[(1,)](np.zeros(1, np.int32))
    here = f"{__file__}:{kernel.fn.__code__.co_firstlineno + 2}"
    assert str(error.value).splitlines()[0] == told.replace("HERE", here)


def test_an_unknown_order_is_said() -> None:
    with kb.triton("tiny"):
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(x: Any) -> None:
            tl.atomic_add(x, 1, sem="strong")

        with pytest.raises(kb.KernbenchError) as error:
            kernel[(1,)](np.zeros(1, np.int32))
    here = f"{__file__}:{kernel.fn.__code__.co_firstlineno + 2}"
    assert str(error.value).splitlines()[0] == (
        f"tl.atomic_add at {here} must be given a sem of acq_rel, acquire, release, relaxed, not 'strong'; correct it."
    )
