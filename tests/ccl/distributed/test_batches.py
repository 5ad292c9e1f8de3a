"""batch_isend_irecv: messages of any sizes, in any order, make progress side by side."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import kernbench_ccl.distributed as dist
from kernbench_core.errors import UsageError
from tests.ccl.distributed.reports import host_lines, line, report
from tests.ccl.ranks import data, refused, run, started

LARGE = 20_000
"""Elements of f32: with two sending PEs and two slots of 512 B, forty times what the queues hold."""


SMALL = ["defaults.slots=2", "defaults.slot_bytes=512 B", "defaults.chunk=512 B"]


def test_a_batch_is_free_of_deadlocks_whatever_its_order() -> None:
    """All sends first, each rank in another order, far more than the queues hold; isend after isend would wait."""
    order = {0: [1, 2], 1: [2, 0], 2: [0, 1]}
    each = {(s, r): data(3 * s + r, 262_144) for s in range(3) for r in range(3)}

    @started
    def program(rank: int, rt: Any) -> None:
        out = {other: rt.empty((262_144,)) for other in order[rank]}
        ops = [dist.P2POp(dist.isend, rt.tensor(each[rank, other], resident=True), other) for other in order[rank]]
        ops += [dist.P2POp(dist.irecv, out[other], other) for other in order[rank]]
        works = dist.batch_isend_irecv(ops)
        assert len(works) == 4 and not works[0].is_completed()
        for work in reversed(works):
            work.wait()
        for other in order[rank]:
            rt.check(out[other], each[other, rank])

    run(program)


@st.composite
def batches(draw: st.DrawFn) -> tuple[int, list[tuple[int, int, int, str]], list[list[tuple[bool, int]]]]:
    """Draw ranks, messages (sender, receiver, elements, dtype), and each rank's ops: sends and receipts in any order.

    The ops of a rank are (whether it sends, number of the message); messages of two ranks are in order on both sides.
    """
    world = draw(st.integers(2, 4))
    pair = st.tuples(st.integers(0, world - 1), st.integers(1, world - 1))
    size = st.sampled_from([1, 7, 130, 3000, LARGE])
    drawn = draw(st.lists(st.tuples(pair, size, st.sampled_from(["f32", "f16", "int8"])), min_size=1, max_size=10))
    messages = [(sender, (sender + step) % world, count, dtype) for (sender, step), count, dtype in drawn]
    ops = []
    for rank in range(world):
        queues = {
            key: [n for n, m in enumerate(messages) if m[:2] == key]
            for key in dict.fromkeys(m[:2] for m in messages) if rank in key
        }  # fmt: skip
        own = []
        while queues:
            key = draw(st.sampled_from(sorted(queues)))
            own.append((key[0] == rank, queues[key].pop(0)))
            if not queues[key]:
                del queues[key]
        ops.append(own)
    return world, messages, ops


@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow])
@given(batches(), st.sampled_from([[0], [0, 1], [0, 1, 2], None]), st.integers(1, 3))
def test_any_legal_batches(
    drawn: tuple[int, list[tuple[int, int, int, str]], list[list[tuple[bool, int]]]], pes: list[int] | None, rounds: int
) -> None:
    """What is received is what was sent: one PE that does both, halves of PEs, batch after batch, ranks without one."""
    world, messages, ops = drawn
    arrays = [(np.arange(count) % 100 + number).astype({"f32": "f4", "f16": "f2", "int8": "i1"}[dtype])
              for number, (_, _, count, dtype) in enumerate(messages)]  # fmt: skip

    def program(rank: int, rt: Any) -> None:
        dist.init_process_group(set=SMALL, pes=pes)
        own: list[list[Any]] = [[] for _ in range(rounds)]
        outs: dict[int, Any] = {}
        for sends, number in ops[rank]:
            sender, receiver, count, dtype = messages[number]
            batch = own[number * rounds // len(messages)]
            if sends:
                batch.append(dist.P2POp(dist.isend, rt.tensor(arrays[number], resident=True), receiver))
            else:
                outs[number] = rt.empty((count,), dtype)
                batch.append(dist.P2POp(dist.irecv, outs[number], sender))
        works = [work for batch in own if batch for work in dist.batch_isend_irecv(batch)]
        for work in works:
            work.wait()
        for number, out in outs.items():
            rt.check(out, arrays[number])

    run(program, world)


def test_a_late_peer_of_a_batch_does_not_keep_another_waiting() -> None:
    """Rank 1 takes its message only after rank 2 has sent, which has to get its own first; with plain calls there."""
    each = [data(rank, LARGE) for rank in range(3)]

    def program(rank: int, rt: Any) -> None:
        dist.init_process_group(set=SMALL)
        x, y, z = rt.tensor(each[rank]), rt.empty((LARGE,)), rt.empty((LARGE,))
        if rank == 0:
            for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, x, 1), dist.P2POp(dist.isend, x, 2)]):
                work.wait()
        elif rank == 1:
            dist.recv(y, 2)
            dist.recv(z, 0)
            rt.check(y, each[2])
            rt.check(z, each[0])
        else:
            dist.recv(y, 0)
            dist.send(x, 1)
            rt.check(y, each[0])

    run(program)


def test_a_batch_that_nobody_answers_is_reported() -> None:
    """By what the batch is, and by what its kernels wait for."""

    @started
    def program(rank: int, rt: Any) -> None:
        x = rt.zeros((LARGE,))
        if rank == 0:
            dist.batch_isend_irecv([dist.P2POp(dist.irecv, x, 1), dist.P2POp(dist.isend, x, 2)])[0].wait()

    found = report(program)
    here = line(program, "dist.batch")
    assert host_lines(found)[:2] == [
        f"  rank 0 at {here} waits for batch of 1 send and 1 receive", "  ranks 1-2 have ended"
    ]  # fmt: skip
    assert f"    rank 0, batch of 1 send and 1 receive, called at {here}:" in found


@pytest.mark.parametrize(
    ("batch", "said"),
    [
        ("[]", "dist.batch_isend_irecv: p2p_op_list must be a list of at least one P2POp, not []."),
        ("3", "dist.batch_isend_irecv: p2p_op_list must be a list of at least one P2POp, not 3."),
        ("[3]", "dist.batch_isend_irecv: each op must be a P2POp of dist.isend or dist.irecv, not 3."),
        ("[dist.P2POp(dist.isend, rt.zeros((4,)), rank)]",
         "dist.isend: dst must be another rank than 0, which is the caller; copy in a kernel."),
        ("[dist.P2POp(dist.irecv, rt.zeros((4,)), 1, tag=3)]",
         "dist.irecv: tag must be left out, not 3: messages arrive in the order of their sends."),
        ("[dist.P2POp(dist.irecv, y, 1), dist.P2POp(dist.irecv, y, 1)]",
         "dist.batch_isend_irecv: each dist.irecv must have memory of its own, and two of them share elements of "
         "'y'; give one of them another tensor or part."),
        ("[dist.P2POp(dist.irecv, y[:4], 1), dist.P2POp(dist.irecv, y[4:], 1), dist.P2POp(dist.irecv, y[3:5], 1)]",
         "dist.batch_isend_irecv: each dist.irecv must have memory of its own, and two of them share elements of "
         "'y'; give one of them another tensor or part."),
    ],
)  # fmt: skip
def test_wrong_batches_are_refused(batch: str, said: str) -> None:
    """Before anything is sent."""

    @started
    def program(rank: int, rt: Any) -> None:
        y = rt.zeros((8,), name="y")
        if rank == 0:
            dist.batch_isend_irecv(eval(batch, {**globals(), "rt": rt, "rank": rank, "y": y}))

    assert refused(program) == said


@pytest.mark.parametrize(("op", "shown"), [(dist.send, "dist.send"), (dist.recv, "dist.recv"), (3, "3")])
def test_other_ops_are_refused_when_they_are_made(op: Any, shown: str) -> None:
    """As in torch, by the constructor."""
    with pytest.raises(UsageError) as caught:
        dist.P2POp(op, None, 1)  # type: ignore[arg-type]
    assert str(caught.value) == (
        f"dist.P2POp: op must be dist.isend or dist.irecv, not {shown}; these start and do not wait."
    )
