"""Stores of products on their way: they wait in the queue, the kernel goes on, and what comes after still does."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernbench_core as kb
from kernbench_core.values.region import Region, overlaps

SIDE = 16
TILE = SIDE * SIDE


def row(count: int, k: int = 128, dtype: str = "f32", *given: str, late: bool = True) -> kb.RunResult:
    """Run a row of products and stores on one PE."""

    def kernel(a: Any, b: Any, c: Any, tl: Any) -> None:
        left, right = tl.load(a, shape=(128, k)), tl.load(b, shape=(k, 128))
        for number in range(count):
            tl.store(c + number * 128 * 128, tl.dot(left, right, wait=not late), shape=(128, 128))

    def bench(rt: Any) -> None:
        ones = [rt.tensor(np.ones(shape, np.float16)) for shape in ((128, k), (k, 128))]
        out = rt.empty((count * 128, 128), dtype)
        rt.launch(kernel, *ones, out, grid=(1,))
        rt.check(out, lambda: np.full((count * 128, 128), k, np.float32))

    alone = ("cube.pes=1", "components.pe_mmu.params.walk_time=0 ns")
    result = kb.run(bench, "tiny", set=[*alone, *given], verify_data=True)
    assert result.verified
    return result


def ends(result: kb.RunResult, name: str) -> list[float]:
    return [op.t_end for op in result.op_log if op.op_name.startswith(name)]


@pytest.mark.parametrize("dtype", ["f32", "f16"])
@pytest.mark.parametrize("count", [2, 7])
def test_behind_slower_products_a_row_of_stores_ends_with_the_last_product(count: int, dtype: str) -> None:
    """First product + (n - 1) products in a row + cast + store: all but the last are done beside the next products."""
    alone, several = row(1, dtype=dtype), row(count, dtype=dtype)
    after_product = ends(alone, "dma_write")[-1] - ends(alone, "gemm")[-1]
    streaming = 8 * 128  # cycles in which one product enters the array
    assert ends(several, "gemm")[-1] == ends(alone, "gemm")[0] + (count - 1) * streaming
    assert ends(several, "dma_write")[-1] == ends(several, "gemm")[-1] + after_product
    blocked = row(count, dtype=dtype, late=False)
    assert ends(blocked, "dma_write")[-1] > ends(several, "dma_write")[-1] + (count - 1) * after_product


def test_in_front_of_slower_stores_a_row_ends_with_the_bytes_of_all() -> None:
    """First product + first store + (n - 1) stores at the rate of the channels: products are made beside them."""
    alone, several = row(1, 16), row(9, 16)
    rate = 4 * 25.6 * 0.923
    expected = ends(alone, "dma_write")[0] + 8 * 128 * 128 * 4 / rate
    assert ends(several, "dma_write")[-1] == pytest.approx(expected, rel=0.02)
    assert ends(several, "dma_write")[-1] >= ends(alone, "gemm")[0] + 9 * 128 * 128 * 4 / rate


def test_a_store_in_the_queue_leaves_when_its_product_is_there_and_not_before() -> None:
    """One wire from the unit to the CPU, one to the DMA: as the command of a store that waits for nothing."""
    log = row(1).op_log
    product, store = (next(op for op in log if op.op_name.startswith(name)) for name in ("gemm", "dma_write"))
    late = row(3).op_log
    products, stores = ([op for op in late if op.op_name.startswith(name)] for name in ("gemm", "dma_write"))
    for made, stored in zip(products, stores, strict=True):
        assert stored.t_start - made.t_end == store.t_start - product.t_end > 0


def test_space_that_stores_in_the_queue_hold_is_waited_for() -> None:
    """Products and what they are cast to fill the scratchpad four times over; no overflow comes of it."""
    given = "pe.tcm.capacity=384 KiB"
    assert ends(row(16, 128, "f16", given), "dma_write")[-1] <= ends(row(16, 128, "f16", late=False), "dma_write")[-1]


def test_what_is_sent_after_a_store_comes_when_that_has_landed() -> None:
    """Who has received it may load what was stored: no hazard, and the load begins after the store's end."""

    def kernel(a: Any, c: Any, tl: Any) -> None:
        if tl.program_id(0) == 0:
            left = tl.load(a, shape=(64, 64))
            tl.store(c, tl.dot(left, left, wait=False), shape=(64, 64))
            tl.send(tl.full((1,), 1.0, "f32"), 1)
        elif tl.program_id(0) == 1:
            tl.recv((1,), "f32", 0)
            tl.load(c, shape=(64, 64))

    def bench(rt: Any) -> None:
        rt.launch(kernel, rt.tensor(np.ones((64, 64), np.float16)), rt.empty((64, 64), "f32"))

    result = kb.run(bench, "tiny")
    assert not result.hazards
    (stored,) = ends(result, "dma_write")
    assert [op.t_start > stored for op in result.op_log if op.op_name == "dma_read" and op.op_id[0] == 1] == [True]


# Order and lifetimes, of made-up kernels ------------------------------------------------------------

#: What, with which of three tiles, and at which place of the tensor: neighbours share half of their bytes.
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["dot", "dot", "dot", "store", "store", "store", "load", "add", "double", "drop", "wait"]),
        st.integers(0, 2), st.integers(0, 4), st.sampled_from([False, False, True]),
    ),
    min_size=3, max_size=20,
)  # fmt: skip
Steps = list[tuple[str, int, int, bool]]


def on_numpy(steps: Steps) -> np.ndarray[Any, Any]:
    """Do one step after the other at once, and give the tensor."""
    memory, ones = np.zeros(8 * TILE, np.float32), np.ones((SIDE, SIDE), np.float32)
    tiles = [ones, 2 * ones, 3 * ones]
    for what, which, at, _ in steps:
        place = slice(at * TILE // 2, at * TILE // 2 + TILE)
        if what == "dot":
            tiles[which] = tiles[which] + 2 * SIDE
        elif what == "store":
            memory[place] = tiles[which].reshape(-1)
        elif what == "load":
            tiles[which] = memory[place].reshape(SIDE, SIDE).copy()
        elif what == "add":
            tiles[which] = tiles[which] + 1
        elif what == "double":
            memory[place] *= 2
        elif what == "drop":
            tiles[which] = ones
    return memory


def kernel_of(steps: Steps) -> Callable[..., None]:
    def kernel(y: Any, tl: Any) -> None:
        one, two = tl.full((SIDE, SIDE), 1.0, "f16"), tl.full((SIDE, SIDE), 2.0, "f16")
        tiles = [tl.full((SIDE, SIDE), n + 1.0, "f32") for n in range(3)]
        for what, which, at, waits in steps:
            place = y + at * (TILE // 2)
            if what == "dot":
                tiles[which] = tl.dot(one, two, tiles[which], wait=waits)
            elif what == "store":
                tl.store(place, tiles[which], shape=(SIDE, SIDE))
            elif what == "load":
                tiles[which] = tl.load(place, shape=(SIDE, SIDE), wait=waits)
            elif what == "add":
                tiles[which] = tiles[which] + 1
            elif what == "double":
                ref = tl.ref(place, shape=(SIDE, SIDE))
                tl.composite("math", ref, ref, ref, math_op="add", wait=True)
            elif what == "drop":
                tiles[which] = tl.full((SIDE, SIDE), 1.0, "f32")
            else:
                tl.wait()

    return kernel


def touched(accesses: Iterable[Any], space: str) -> list[Region]:
    return [region for access in accesses if access is not None and access.space == space for region in access.regions]


def meet(ones: list[Region], others: list[Region]) -> bool:
    return any(overlaps(one, other) for one in ones for other in others)


@settings(max_examples=60, deadline=None)
@given(STEPS, st.sampled_from(["f32", "f16"]), st.sampled_from(["1 GHz", "0.05 GHz"]))
def test_order_and_space_are_kept_whatever_waits_in_queues(steps: Steps, dtype: str, clock: str) -> None:
    """Data are those of one step after the other; what uses bytes of memory or of the scratchpad comes after their op.

    In time: no op begins to use bytes that an earlier one writes before its end, a later store in the same queue apart;
    and between the op that made a tile and one that reads it nobody writes its bytes.
    """

    def bench(rt: Any) -> None:
        out = rt.zeros((8 * TILE,), dtype, name="y")
        rt.launch(kernel_of(steps), out, grid=(1,))
        rt.check(out, lambda: on_numpy(steps))

    given = [f"components.pe_gemm.params.{each}" for each in (f"clock={clock}", "rows=4", "columns=4")]
    result = kb.run(bench, "tiny", set=["cube.pes=1", *given], verify_data=True)
    assert result.verified and not result.hazards
    log = sorted((op for op in result.op_log if op.op_id is not None and op.stage_of is None), key=lambda op: op.op_id)
    for number, later in enumerate(log):
        for earlier in log[:number]:
            written = touched([earlier.writes], "hbm")
            if meet(written, touched(later.reads, "hbm")):
                assert later.t_start >= earlier.t_end, (earlier, later)
            if meet(written, touched([later.writes], "hbm")):
                assert later.t_end >= earlier.t_end, (earlier, later)
    by_id = {op.op_id: op for op in log}
    for op in log:
        for read in op.reads:
            made = by_id.get(read.value.writer) if read.space == "tcm" and read.value is not None else None
            if made is not None and op.op_kind != "gemm":
                assert op.t_start >= made.t_end, (made, op)
            between = [] if made is None else [o for o in log if o.t_end > made.t_end and o.t_start < op.t_end]
            assert not any(meet(touched([o.writes], "tcm"), list(read.regions)) for o in between if o is not op)
