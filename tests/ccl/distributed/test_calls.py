"""The collectives that take one tensor, and those that take lists, against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import kernbench_ccl.distributed as dist
from kernbench_core.memory.placement import Shard
from kernbench_core.plugins import Plugins, load_plugins
from kernbench_core.values.dtypes import NAMES, numpy_dtype
from tests.ccl.ranks import PLUGINS, Array, data, run, started

SHIPPED = load_plugins()


@pytest.mark.parametrize(
    ("world", "count", "plugins"),
    [(2, 1, PLUGINS), (4, 37, PLUGINS), (3, 4100, PLUGINS), (5, 37, SHIPPED)]
    + [(world, 1, PLUGINS) for world in (3, 4, 5)]
    + [(world, 37, PLUGINS) for world in (2, 3, 5)]
    + [(4, 9000, SHIPPED)],
)
def test_every_collective_gives_what_numpy_gives(world: int, count: int, plugins: Plugins) -> None:
    """Also for counts that no number of PEs or ranks divides, and with the algorithms that are shipped."""
    root, each = world - 1, [data(rank, count * world) for rank in range(world)]
    mine = [x[:count] for x in each]
    total = np.sum(mine, axis=0)

    @started
    def program(rank: int, rt: Any) -> None:
        def tensor(array: Array) -> Any:
            return rt.tensor(array)

        x = tensor(mine[rank])
        dist.all_reduce(x)
        rt.check(x, total)
        x = tensor(mine[rank])
        dist.reduce(x, root)
        rt.check(x, total if rank == root else mine[rank])
        x = tensor(mine[rank])
        dist.broadcast(x, src=root)
        rt.check(x, mine[root])
        gathered, part = rt.empty((world, count)), rt.empty((count,))
        dist.all_gather_into_tensor(gathered, tensor(mine[rank]))
        rt.check(gathered, np.stack(mine))
        dist.reduce_scatter_tensor(part, tensor(each[rank]))
        rt.check(part, np.sum(each, axis=0).reshape(world, count)[rank])
        exchanged = rt.empty((world * count,))
        dist.all_to_all_single(exchanged, tensor(each[rank]))
        rt.check(exchanged, np.concatenate([x.reshape(world, count)[rank] for x in each]))
        dist.barrier()

    run(program, world, plugins=plugins)


@pytest.mark.parametrize(
    ("world", "plugins"),
    [
        (2, PLUGINS), (3, SHIPPED),
        *[(2, SHIPPED), (3, PLUGINS)],
    ],
)  # fmt: skip
def test_the_list_forms_give_what_numpy_gives(world: int, plugins: Plugins) -> None:
    """gather, scatter, all_gather, reduce_scatter and all_to_all with a tensor for each rank."""
    count, root = 37, 1
    each = [data(rank, count * world).reshape(world, count) for rank in range(world)]

    @started
    def program(rank: int, rt: Any) -> None:
        own, listed = rt.tensor(each[rank][0]), [rt.tensor(x) for x in each[rank]]
        gathered = [rt.empty((count,)) for _ in range(world)]
        dist.all_gather(gathered, own)
        for other, got in enumerate(gathered):
            rt.check(got, each[other][0])
        got = [rt.empty((count,)) for _ in range(world)] if rank == root else None
        dist.gather(own, got, dst=root)
        for other, one in enumerate(got or ()):
            rt.check(one, each[other][0])
        out = rt.empty((count,))
        dist.scatter(out, listed if rank == root else None, src=root)
        rt.check(out, each[root][rank])
        dist.reduce_scatter(out, listed)
        rt.check(out, np.sum(each, axis=0)[rank])
        dist.all_to_all(gathered, listed)
        for other, one in enumerate(gathered):
            rt.check(one, each[other][rank])

    run(program, world, plugins=plugins)


@pytest.mark.parametrize("dtype", NAMES)
def test_every_dtype_of_the_core_is_summed(dtype: str) -> None:
    """A sum of bools is "any", as in torch."""
    each = [data(rank, 50, dtype) for rank in range(3)]
    wide = np.sum([x.astype(np.float64) for x in each], axis=0)
    total = (wide > 0) if dtype == "bool" else wide.astype(numpy_dtype(dtype))

    @started
    def program(rank: int, rt: Any) -> None:
        x = rt.tensor(each[rank], dtype)
        dist.all_reduce(x)
        rt.check(x, total)

    run(program)


@pytest.mark.parametrize(
    ("op", "numpy"),
    [
        (dist.ReduceOp.SUM, np.add), (dist.ReduceOp.PRODUCT, np.multiply), (dist.ReduceOp.MIN, np.minimum),
        (dist.ReduceOp.MAX, np.maximum), (dist.ReduceOp.AVG, None),
    ],
)  # fmt: skip
def test_every_reduction(op: str, numpy: Any) -> None:
    """Small integers in f32, so that the result does not depend on the order; four ranks, so that AVG is exact."""
    each = [np.arange(33, dtype=np.float32) % (rank + 2) - rank for rank in range(4)]
    right = np.mean(each, axis=0, dtype=np.float32) if numpy is None else numpy.reduce(each)

    @started
    def program(rank: int, rt: Any) -> None:
        x = rt.tensor(each[rank])
        dist.all_reduce(x, op)
        rt.check(x, right, rtol=0, atol=0)

    run(program, 4)


@settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(2, 4).flatmap(lambda n: st.lists(st.lists(st.integers(0, 5), min_size=n, max_size=n),
                                                    min_size=n, max_size=n)), st.integers(1, 3))  # fmt: skip
def test_uneven_splits(sizes: list[list[int]], row: int) -> None:
    """`sizes[i][j]` rows go from rank i to rank j; none at all is allowed, and so is room to spare."""
    world = len(sizes)
    sent = [data(rank, max(1, sum(sizes[rank])) * row).reshape(-1, row) for rank in range(world)]
    starts = [np.cumsum([0, *line]) for line in sizes]

    @started
    def program(rank: int, rt: Any) -> None:
        received = [line[rank] for line in sizes]
        rows = max(1, sum(received)) + 1
        y = rt.tensor(np.full((rows, row), 7, np.float32))
        dist.all_to_all_single(y, rt.tensor(sent[rank]), received, sizes[rank])
        got = [sent[i][starts[i][rank] : starts[i][rank + 1]] for i in range(world)]
        rest = np.full((rows - sum(received), row), 7)
        rt.check(y, np.concatenate([*got, rest]))

    run(program, world)


def test_a_tensor_of_rows_is_summed_where_it_lies() -> None:
    """Shapes and placements do not matter: a tensor is its elements in row-major order."""
    each = [data(rank, 64).reshape(4, 16) for rank in range(2)]

    @started
    def program(rank: int, rt: Any) -> None:
        x = rt.tensor(each[rank], placement=Shard(1))
        dist.all_reduce(x)
        rt.check(x, each[0] + each[1])

    run(program, 2)
