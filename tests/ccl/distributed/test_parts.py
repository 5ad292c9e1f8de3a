"""Rows of a tensor in the calls of dist: in place, as messages, in lists."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import kernbench_ccl.distributed as dist
from kernbench_core.plugins import Plugins, load_plugins
from tests.ccl.ranks import PLUGINS, data, refused, run, started

SHIPPED = load_plugins()
WORLD = 3


@pytest.mark.parametrize("plugins", [PLUGINS, SHIPPED])
@pytest.mark.parametrize("rows", [1, 37, 700])
def test_in_place_on_parts(rows: int, plugins: Plugins) -> None:
    """all_gather_into_tensor and reduce_scatter_tensor with a rank's own part, as torch's users write them."""
    each = [data(rank, WORLD * rows * 4).reshape(-1, 4) for rank in range(WORLD)]
    mine = [slice(rank * rows, (rank + 1) * rows) for rank in range(WORLD)]
    total = np.sum(each, axis=0)

    @started
    def program(rank: int, rt: Any) -> None:
        x = rt.tensor(each[rank])
        dist.all_gather_into_tensor(x, x[mine[rank]])
        rt.check(x, np.concatenate([each[other][mine[other]] for other in range(WORLD)]))
        y = rt.tensor(each[rank])
        dist.reduce_scatter_tensor(y[mine[rank]], y)
        np.testing.assert_array_equal(y[mine[rank]].numpy(), total[mine[rank]])

    run(program, WORLD, plugins=plugins)


def test_every_call_takes_parts_and_leaves_the_rest_alone() -> None:
    """The rows around the parts are what they were."""
    each = [data(rank, 24 * 5).reshape(24, 5) for rank in range(WORLD)]

    @started
    def program(rank: int, rt: Any) -> None:
        x, right, here = rt.tensor(each[rank]), each[rank].copy(), slice(2, 8)
        dist.all_reduce(x[here])
        right[here] = np.sum([one[here] for one in each], axis=0)
        rt.check(x, right)
        dist.broadcast(x[10:11], 1)
        right[10] = each[1][10]
        rt.check(x, right)
        dist.reduce(x[11:12], 2)
        if rank == 2:
            right[11] = np.sum([one[11] for one in each], axis=0)
        rt.check(x, right)
        dist.all_gather([x[12 + i : 13 + i] for i in range(WORLD)], x[20:21])
        right[12:15] = [one[20] for one in each]
        rt.check(x, right)
        dist.scatter(x[15:16], [x[12 + i : 13 + i] for i in range(WORLD)] if rank == 0 else None, src=0)
        right[15] = each[rank][20]
        rt.check(x, right)
        dist.all_to_all_single(x[16:19], x[21:24])
        right[16:19] = [one[21 + rank] for one in each]
        rt.check(x, right)
        work = dist.isend(x[20:21], (rank + 1) % WORLD)
        assert dist.recv(x[19:20], (rank - 1) % WORLD) == (rank - 1) % WORLD
        assert work.wait()
        right[19] = each[(rank - 1) % WORLD][20]
        rt.check(x, right)
        ops = [dist.P2POp(dist.isend, x[22:24], (rank + 1) % WORLD), dist.P2POp(dist.irecv, x[0:2], (rank - 1) % WORLD)]
        for one in dist.batch_isend_irecv(ops):
            one.wait()
        right[:2] = each[(rank - 1) % WORLD][22:24]
        rt.check(x, right)

    run(program, WORLD)


@pytest.mark.parametrize(("output", "source"), [(slice(0, 4), slice(4, 8)), (slice(4, 8), slice(0, 4))])
def test_parts_next_to_each_other_are_apart(output: slice, source: slice) -> None:
    """Where one ends the other begins, whichever is the input."""
    each = [data(rank, 8) for rank in range(2)]

    @started
    def program(rank: int, rt: Any) -> None:
        x, right = rt.tensor(each[rank]), each[rank].copy()
        dist.all_to_all_single(x[output], x[source])
        right[output] = np.concatenate([one[source][2 * rank : 2 * rank + 2] for one in each])
        rt.check(x, right)

    run(program, 2)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("dist.all_gather_into_tensor(x, x[0:4])",
         "dist.all_gather_into_tensor: input_tensor 'x[0:4]' must not share memory with output_tensor 'x', or be this "
         "rank's own part of it, the 4 elements from number 4 on; give that part, or another tensor."),
        ("dist.all_gather_into_tensor(x[0:4], x[3:5])",
         "dist.all_gather_into_tensor: input_tensor 'x[3:5]' must not share memory with output_tensor 'x[0:4]', or be "
         "this rank's own part of it, the 2 elements from number 2 on; give that part, or another tensor."),
        ("dist.reduce_scatter_tensor(x[2:4], x[2:6])",
         "dist.reduce_scatter_tensor: output 'x[2:4]' must not share memory with input 'x[2:6]', or be this rank's own "
         "part of it, the 2 elements from number 2 on; give that part, or another tensor."),
        ("dist.all_to_all_single(x[0:4], x[2:6])",
         "dist.all_to_all_single: output must be another tensor than input 'x[2:6]', whose parts would be overwritten "
         "before they are sent; make one with rt.empty."),
    ],
)  # fmt: skip
def test_parts_that_overlap_otherwise_are_refused(call: str, said: str) -> None:
    """They would be overwritten before they are read."""

    @started
    def program(rank: int, rt: Any) -> None:
        x = rt.zeros((8,), name="x")
        if rank == 1:
            eval(call, {"dist": dist, "x": x})
        dist.barrier()

    assert refused(program) == said
