"""send, recv and their like: data, order, both directions at once."""

from __future__ import annotations

from typing import Any

import kernbench_ccl.distributed as dist
from tests.ccl.ranks import data, run, started


def test_messages_arrive_in_the_order_of_their_sends() -> None:
    """recv gives the rank that sent; a rank may send and receive at once."""
    big = [data(rank, 30_000) for rank in range(2)]

    @started
    def program(rank: int, rt: Any) -> int:
        other = 1 - rank
        works = [dist.isend(rt.tensor(big[rank]), other), dist.isend(rt.tensor(big[rank][:5]), other)]
        x, y = rt.empty((30_000,)), rt.empty((5,))
        got = dist.recv(x, other)
        dist.irecv(y, other).wait()
        assert all(work.wait() for work in works)
        rt.check(x, big[other])
        rt.check(y, big[other][:5])
        return got

    assert run(program, 2)[1] == [1, 0]


def test_a_batch_of_messages() -> None:
    """Every rank gives its tensor to the next, at once."""
    each = [data(rank, 100) for rank in range(4)]

    @started
    def program(rank: int, rt: Any) -> None:
        out = rt.empty((100,))
        batch = [
            dist.P2POp(dist.isend, rt.tensor(each[rank]), (rank + 1) % 4), dist.P2POp(dist.irecv, out, (rank - 1) % 4)
        ]  # fmt: skip
        for work in dist.batch_isend_irecv(batch):
            work.wait()
        rt.check(out, each[(rank - 1) % 4])

    run(program, 4)
