"""The checks at the end of a run: one test that trips each, and a run that passes all."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from kernbench_core.engine import GraphEngine
from kernbench_core.errors import SanityError
from kernbench_core.messages import MsgBase
from kernbench_core.sanity import check
from tests.core.toy_machine import Classes, ToyForward, ToyMemory, toy_engine


def bench(rt: Any) -> None:
    """Copy 16 KiB."""
    rt.tensor((64, 64), "f32")


def finished() -> GraphEngine:
    """Return an engine that has run."""
    engine = toy_engine(pes=1)
    engine.run(bench)
    return engine


def refusal(engine: GraphEngine, **changed: Any) -> str:
    """Return what `check` says of the run, its result changed."""
    with pytest.raises(SanityError) as caught:
        check(engine.ctx, attrs.evolve(engine.get_timing_result(), **changed))
    assert caught.value.exit_code == 7
    return str(caught.value)


def test_good_run_passes() -> None:
    """A run as it is passes every check."""
    engine = finished()
    check(engine.ctx, engine.get_timing_result())


def test_every_transaction_must_be_answered_once() -> None:
    """A transaction that is lost, or answered twice, is told with both counts."""
    engine = finished()
    engine.ctx.issued += 1
    assert refusal(engine) == (
        "do not use this result: 2 memory transactions were sent but 1 answered; each must be answered once."
    )


def test_no_resource_may_pass_its_capacity() -> None:
    """A wire that was busy for longer than the run is told by name."""
    engine = finished()
    total = engine.get_timing_result().total_ns
    engine.ctx.components["host"].out_ports["sip0.io0.pcie_ep"].busy_ns = 1.25 * total
    assert refusal(engine) == (
        "do not use this result: host->sip0.io0.pcie_ep was busy for 125.0% of the time; no resource can pass 100 %."
    )


def test_phases_must_sum_to_the_total() -> None:
    """Phases that miss or double an instant are told with both sums."""
    engine = finished()
    result = engine.get_timing_result()
    changed = {**result.phases, "kernel": 2.0}
    assert refusal(engine, phases=changed) == (
        f"do not use this result: the phases sum to {result.total_ns + 2.0!r} ns, "
        f"but the run took {result.total_ns!r} ns."
    )


def test_no_round_trip_may_undercut_its_bound() -> None:
    """A model that answers sooner than its wires, channels and overheads allow is told with both times."""

    class Hasty(ToyMemory):
        def emit(self, msg: MsgBase, head: float, tail: float) -> None:
            msg.turn_around()
            ToyForward.emit(self, msg, head, tail)  # type: ignore[arg-type]

    with pytest.raises(SanityError) as caught:
        toy_engine(pes=1, classes=Classes(memory=Hasty)).run(bench)
    # the copy without the channel's 10 ns; its acknowledgement leaves at the head and hides behind the data
    took = (16384 + 64 * 16) / 16 + (50 + 1 + 2 + 1 + 1 + 3) + (1 + 1 + 2 + 1 + 50)
    assert str(caught.value) == (
        f"do not use this result: a write of 16384 B from host to sip0.cube0.hbm_ctrl0 took {took / 1000:.4g} us, "
        f"below its lower bound of {(took + 11) / 1000:.4g} us."
    )


def test_all_faults_are_told_together() -> None:
    """Several failed checks make one error."""
    engine = finished()
    engine.ctx.issued += 1
    text = refusal(engine, phases={"kernel": 0.0})
    assert "each must be answered once. the phases sum to 0.0 ns" in text
