"""Loads, stores and composites of one kernel: numpy's copies at their places in the program, and when each was done."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from typing import Any

import numpy as np
from hypothesis import strategies as st

from kernbench_core.compute.executor import DataExecutor
from tests.core.kernel_rig import Rig

SIZE = 24


def actions(*more: str) -> st.SearchStrategy[list[tuple[str, str, int, int]]]:
    """Draw loads, stores, waits, and more."""
    spans = st.sampled_from(["run", "steps", "masked", "gathered"])
    kinds = st.sampled_from(["load", "load", "store", *more, "wait"])
    return st.lists(st.tuples(kinds, spans, st.integers(0, 12), st.integers(1, 6)), min_size=2, max_size=14)


def _elements(span: str, first: int, count: int) -> list[int]:
    """Which elements of 24 an access reaches."""
    if span == "steps":
        return [first + 2 * i for i in range(count)]
    return [(5 * (first + i)) % SIZE for i in range(count)] if span == "gathered" else [first + i for i in range(count)]


def _bytes_of(accesses: Iterable[Any]) -> set[int]:
    regions = [region for access in accesses if access.space == "hbm" for region in access.regions]
    rows = [(r.base + row * r.pitch, r.row_bytes) for r in regions for row in range(r.rows)]
    return {byte for start, width in rows for byte in range(start, start + width)}


def check_times(log: Iterable[Any]) -> None:
    """Hold that of two ops that use one byte, and one of which writes it, the first issued was over first."""
    ops = sorted(
        (each.op_id[1], each.t_start, each.t_end, _bytes_of(each.reads), _bytes_of([each.writes])) for each in log
    )
    pairs = [
        (first, second)
        for first, second in combinations(ops, 2)
        if first[4] & (second[3] | second[4]) or first[3] & second[4]
    ]
    assert [pair for pair in pairs if pair[0][2] > pair[1][1]] == []


def follow(actions: list[tuple[str, str, int, int]], launches: int) -> None:
    """Run them, and compare what each load found, and what memory holds at the end."""
    rig = Rig()
    start = np.arange(SIZE, dtype=np.float32)
    x, orders = rig.tensor(start), rig.tensor((5 * np.arange(2 * SIZE) % SIZE).astype(np.int32))
    memory = start.copy()
    want: list[Any] = []
    got: list[Any] = []
    number = 100.0

    def access(x: Any, orders: Any, span: str, first: int, count: int, tl: Any) -> tuple[Any, Any]:
        if span == "gathered":
            return x + tl.load(orders + first + tl.arange(0, count)).as_offsets(), None
        if span == "steps":
            return x + first + 2 * tl.arange(0, count), None
        if span == "run":
            return x + first + tl.arange(0, count), None
        return x + tl.arange(0, SIZE), (tl.arange(0, SIZE) >= first) & (tl.arange(0, SIZE) < first + count)

    def kernel(x: Any, orders: Any, tl: Any) -> None:
        nonlocal number
        kept = []
        for what, span, first, count in actions:
            pointers, mask = access(x, orders, span, first, count, tl)
            reached = _elements(span, first, count)
            if what == "load":
                kept.append(tl.load(pointers, mask=mask, other=-1.0, wait=False))
                whole = np.full(SIZE, -1.0, np.float32)
                whole[reached] = memory[reached]
                want.append(whole if span == "masked" else memory[reached].copy())
            elif what == "wait" and kept:
                tl.wait(kept[first % len(kept)])
            elif what == "composite":
                tl.composite("math", tl.ref(orders, (1, 4), dtype="f32"), out=tl.ref(x + first, (1, 4)), math_op="relu")
                memory[first : first + 4] = np.maximum((5 * np.arange(4)).astype(np.int32).view(np.float32), 0)
            else:
                number += 1
                tl.store(pointers, number, mask=mask)
                memory[reached] = number
        got.extend(tile[None, :] if number % 2 else tile for tile in kept)
        for tile in kept:
            tl.wait(tile)

    for _ in range(launches):
        rig.run(kernel, x, orders)
    executor = DataExecutor(rig.log, rig.store)
    assert len(got) == len(want)
    for tile, right in zip(got, want, strict=True):
        np.testing.assert_array_equal(executor.materialize(tile.value).reshape(-1), right)
    np.testing.assert_array_equal(rig.numpy(x), memory)
    check_times(rig.log)
