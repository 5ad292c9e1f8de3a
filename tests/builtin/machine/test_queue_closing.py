"""Queues whose channel is closed while a kernel still uses them: they go when their last use is over, not before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import kernbench_core as kb
from tests.open_queues import open_queues


def closed_during(kernel: Callable[..., Any]) -> list[int]:
    """Have a PE close the queues in the middle of a launch; return how many there are then, and after the launch."""
    left: list[int] = []

    def bench(rt: Any) -> None:
        def closing(x: Any, tl: Any) -> None:
            kernel(x, tl)
            if tl.program_id(0) == 3:
                work(tl.full((4096,), 1.0, "f32"), 20)
                rt.close_channel("")
                left.append(len(open_queues(rt)))

        x = rt.zeros((4, 64))
        rt.launch(closing, x)
        left.append(len(open_queues(rt)))
        rt.launch(after, x)
        rt.check(x, np.repeat([[0.0], [5.0], [0.0], [0.0]], 64, 1))

    result = kb.run(bench, "tiny", verify_data=True)
    assert result.verified and not result.hazards
    return left


def after(x: Any, tl: Any) -> None:
    """Use the same channel again."""
    if tl.program_id(0) == 0:
        tl.send(tl.full((64,), 5.0, "f32"), 1)
    if tl.program_id(0) == 1:
        tl.store(x + 64, tl.recv((64,), "f32", 0))


def work(tile: Any, count: int) -> Any:
    """Pass time."""
    for _ in range(count):
        tile = tile + 1.0
    return tile


def late_receiver(x: Any, tl: Any) -> None:
    """Leave messages in the queue for long, and receive them."""
    if tl.program_id(0) == 0:
        for _ in range(6):
            tl.send(tl.full((64,), 5.0, "f32"), 1)
    if tl.program_id(0) == 1:
        work(tl.full((4096,), 1.0, "f32"), 40)
        for _ in range(6):
            tl.recv((64,), "f32", 0)


def late_sender(x: Any, tl: Any) -> None:
    """Let a receipt from several wait for long."""
    if tl.program_id(0) == 0:
        work(tl.full((4096,), 1.0, "f32"), 40)
        tl.send(tl.full((64,), 5.0, "f32"), 1)
    if tl.program_id(0) == 1:
        tl.recv_any((64,), "f32", [0, 2, 3])


def keeper(x: Any, tl: Any) -> None:
    """Hold the slot itself for long."""
    if tl.program_id(0) == 0:
        tl.send(tl.full((64,), 5.0, "f32"), 1)
    if tl.program_id(0) == 1:
        tile = tl.recv((64,), "f32", 0, copy=False)
        work(tl.full((4096,), 1.0, "f32"), 40)
        tl.store(x + 64, tile)


@pytest.mark.parametrize(("kernel", "before"), [(late_receiver, 1), (late_sender, 3), (keeper, 1)])
def test_a_queue_in_use_goes_when_its_last_use_is_over(kernel: Callable[..., Any], before: int) -> None:
    """Messages in it, a receipt that waits, a slot that the kernel holds."""
    assert closed_during(kernel) == [before, 0]
