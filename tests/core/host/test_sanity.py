"""The checks at the end of a run: one test that trips each, and a run that passes all."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from kernbench_core.errors import ComponentError, SanityError
from kernbench_core.host.sanity import check
from kernbench_core.host.session import GraphEngine
from kernbench_core.messages import Command, Launch, LaunchMsg, MemoryReadMsg, MsgBase, Transaction
from kernbench_core.oplog.description import Access, OpDescription
from kernbench_core.values.region import Region
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
        check(engine.hardware, attrs.evolve(engine.get_timing_result(), **changed))
    assert caught.value.exit_code == 7
    return str(caught.value)


def test_good_run_passes() -> None:
    """A run as it is passes every check."""
    engine = finished()
    check(engine.hardware, engine.get_timing_result())


def test_every_transaction_must_be_answered_once() -> None:
    """A transaction that is lost, or answered twice, is told with both counts."""
    engine = finished()
    engine.hardware.issued += 1
    assert refusal(engine) == (
        "do not use this result: 2 memory transactions were sent but 1 answered; each must be answered once."
    )


def test_bytes_must_not_be_lost() -> None:
    """What passed a controller's wires must be what its transactions were to move."""
    engine = finished()
    engine.hardware.components["sip0.cube0.r0c0"].out_ports["sip0.cube0.hbm_ctrl0"].bytes_carried -= 1
    assert refusal(engine) == (
        "do not use this result: 16383 B passed the wires of sip0.cube0.hbm_ctrl0, but its transactions move 16384 B."
    )


class Copying(Command):
    """Be a command that reads 64 B."""

    def describe(self) -> OpDescription:
        return OpDescription("memory", "dma_read", {}, reads=(Access("hbm", (Region(0, 64),), None),), op_id=(0, 7))


def test_op_that_began_must_end() -> None:
    """An op that never ended is told."""
    engine = finished()
    assert engine.hardware.op_logger is not None
    engine.hardware.op_logger.record_start(3.0, "unit", Copying((0, 7)))
    assert refusal(engine) == "do not use this result: 1 ops began but never ended; each must end once."


def test_work_must_take_time() -> None:
    """An op that touches bytes and takes no time is told by name; one without bytes may be instant."""
    engine = finished()
    logger, copying, nothing = engine.hardware.op_logger, Copying((0, 7)), Command((0, 8))
    assert logger is not None
    logger.record_start(3.0, "unit", nothing)
    logger.record_end(3.0, "unit", nothing)
    check(engine.hardware, engine.get_timing_result())
    logger.record_start(3.0, "unit", copying)
    logger.record_end(3.0, "unit", copying)
    assert refusal(engine) == (
        "do not use this result: dma_read (op 7 of PE 0, unit, 3.000 ns) touches 64 B in no time; work must take time."
    )


def test_no_resource_may_pass_its_capacity() -> None:
    """A wire that was busy for longer than the run is told by name."""
    engine = finished()
    total = engine.get_timing_result().total_ns
    engine.hardware.components["host"].out_ports["sip0.io0.pcie_ep"].busy_ns = 1.25 * total
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
    engine.hardware.issued += 1
    text = refusal(engine, phases={"kernel": 0.0})
    assert "each must be answered once.\n  the phases sum to 0.0 ns" in text


def test_nothing_may_be_left_in_a_component() -> None:
    """A component that still waits for an answer, or still serves or queues something, is told."""

    class Forgetful(ToyMemory):
        def awaiting(self) -> list[MsgBase]:
            return [MsgBase(), MsgBase()]

    with pytest.raises(SanityError) as caught:
        toy_engine(pes=1, classes=Classes(memory=Forgetful)).run(bench)
    assert str(caught.value) == (
        "do not use this result: sip0.cube0.hbm_ctrl0 has 2 messages in service, in its queue or unanswered at the end "
        "of the run; all must be done."
    )


@pytest.mark.parametrize(
    ("params", "work"),
    [
        ({"m": 2, "k": 3, "n": 4, "dtype_in": "f16"}, "makes 24 products"),
        ({"elements": 5, "dtype": "f16"}, "computes 5 elements"),
        ({"nbytes": 6}, "moves 6 B"),
        ({"nbytes": 0, "elements": 0, "m": 0, "k": 3, "n": 4}, ""),
    ],
)
def test_stages_know_their_work_by_their_sizes(params: dict[str, object], work: str) -> None:
    """A stage that multiplies, computes or moves something in no time is told; one of nothing may be instant."""

    class Stage(Command):
        def describe(self) -> OpDescription:
            return OpDescription("gemm", "TileToken/STAGE", params, stage_of=(0, 7))

    engine, stage = finished(), Stage((0, 8))
    logger = engine.hardware.op_logger
    assert logger is not None
    logger.record_start(3.0, "unit", stage)
    logger.record_end(3.0, "unit", stage)
    if not work:
        check(engine.hardware, engine.get_timing_result())
        return
    told = f"do not use this result: TileToken/STAGE (unit, 3.000 ns) {work} in no time; work must take time."
    assert refusal(engine) == told


def test_no_phase_may_be_shorter_than_nothing() -> None:
    """Phases that sum to the total because one of them makes up for another are told."""
    engine = finished()
    result = engine.get_timing_result()
    changed = {**result.phases, "kernel": 9.0, "launch": -9.0}
    assert refusal(engine, phases=changed) == (
        "do not use this result: the phase launch lasts -9.0 ns; every instant of the run must belong to one phase."
    )


def test_one_check_tells_its_first_faults_and_counts_the_rest() -> None:
    """A model that is wrong everywhere does not fill the screen."""
    engine = toy_engine(pes=4)
    engine.run(bench)
    for pe in range(4):
        engine.hardware.components["sip0.cube0.r0c0"].out_ports[f"sip0.cube0.hbm_ctrl{pe}"].bytes_carried += 1
    assert refusal(engine) == (
        "do not use this result: 4097 B passed the wires of sip0.cube0.hbm_ctrl0, but its transactions move 4096 B.\n"
        "  4097 B passed the wires of sip0.cube0.hbm_ctrl1, but its transactions move 4096 B.\n  (2 more like this.)"
    )


def test_an_answer_comes_once() -> None:
    """A second answer to one transaction, or one order, is refused when it comes."""
    told: list[object] = []
    for msg in (
        Transaction("read", (), 0, ("memory", "asker"), told.append),
        LaunchMsg(Launch(bench, {}, (1, 1, 1), {}), (), ("unit", "asker"), told.append),
    ):
        msg.answered()
        with pytest.raises(ComponentError) as caught:
            msg.answered()
        name = type(msg).__name__
        assert str(caught.value) == (
            f"{msg.path[0]} must answer each {name} once, not twice; call emit once for a message."
        )
    assert len(told) == 2


def test_a_host_request_is_completed_once() -> None:
    """A second completion would move the time of the first: it is refused."""
    request = MemoryReadMsg(())
    request.complete(5.0)
    with pytest.raises(ComponentError) as caught:
        request.complete(6.0)
    assert str(caught.value) == "host must complete each MemoryReadMsg once, not twice; count the answers to it."
    assert request.response is not None
    assert request.response.completed_ns == 5.0


def test_no_memory_may_move_more_than_its_peak_allows() -> None:
    """Whatever its model says of the time; addresses are not what it moves."""

    class Weak(ToyMemory):
        peak_bandwidth = 4.0

    with pytest.raises(SanityError) as caught:
        toy_engine(pes=1, classes=Classes(memory=Weak)).run(bench)
    engine = finished()
    took = engine.get_timing_result().total_ns
    assert 4.0 * took < 16384
    told = (
        f"do not use this result: sip0.cube0.hbm_ctrl0 moved 16384 B in {took / 1000:.4g} us, more than its "
        "peak_bandwidth of 4 GB/s allows; have what it moves take the time, or declare another peak."
    )
    assert str(caught.value) == told
    memory = engine.hardware.components["sip0.cube0.hbm_ctrl0"]
    (wire,), engine.hardware.moved_bytes[memory.id] = memory.out_ports.values(), int(memory.peak_bandwidth * took)
    wire.bytes_carried += engine.hardware.moved_bytes[memory.id] - 16384
    check(engine.hardware, engine.get_timing_result())
    engine.hardware.moved_bytes[memory.id] += 1
    wire.bytes_carried += 1
    assert "more than its peak_bandwidth of 32 GB/s allows" in refusal(engine)
    for trip in engine.hardware.round_trips.values():
        trip.total -= 8
    check(engine.hardware, engine.get_timing_result())
