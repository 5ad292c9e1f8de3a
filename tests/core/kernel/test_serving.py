"""What serves a kernel's requests: who is active meanwhile, what takes no event, what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernbench_core.errors import KernelError
from tests.core.kernel_rig import UNIT_NS, Rig

X = np.ones((4, 4), np.float32)


def test_the_process_of_its_pe_is_active_while_a_kernel_runs() -> None:
    """Components ask for it: an answer that comes in a delivery is not put off, one in a process is."""
    rig = Rig(pes=2, overhead=1.0)
    active: dict[int, set[object]] = {0: set(), 1: set()}

    def kernel(x: Any, tl: Any) -> None:
        for _ in range(3):
            active[tl.program_id(0)].add(rig.env.active_process)
            tl.load(x, shape=(4, 4))
        tl.wait(tl.load(x, shape=(4, 4), wait=False))
        active[tl.program_id(0)].add(rig.env.active_process)

    rig.run(kernel, rig.tensor(X))
    assert [len(found) for found in active.values()] == [1, 1]
    assert not active[0] & active[1]
    assert None not in active[0] | active[1]
    assert rig.env.active_process is None


def test_a_command_takes_the_event_of_its_dispatch_and_that_of_its_answer() -> None:
    """And waiting for what is complete takes none."""

    def kernel(x: Any, count: int, tl: Any) -> None:
        for _ in range(count):
            loaded = tl.load(x, shape=(4, 4))
            tl.wait(loaded)

    def events(count: int) -> int:
        rig = Rig(overhead=1.0)
        rig.run(kernel, rig.tensor(X), count)
        return rig.env.events

    assert events(7) - events(2) == 5 * 2


@pytest.mark.parametrize("overhead", [-1.0, float("inf"), float("nan")])
def test_a_dispatch_takes_a_finite_time(overhead: float) -> None:
    """A control processor of a plug-in may say anything."""
    told = f"dispatch_overhead_ns must be a finite time in ns, at least 0, not {overhead!r}"
    with pytest.raises(KernelError, match=told):
        Rig(overhead=overhead).run(lambda tl: None)


def test_several_commands_are_waited_for_in_any_order_of_their_ends() -> None:
    """The last of them has the kernel go on, whichever it is, at its own time."""
    times: list[float] = []

    def kernel(x: Any, tl: Any) -> None:
        slow = tl.load(x, shape=(4, 4))
        first, second = tl.load(x, shape=(4, 4), wait=False), tl.dot(slow, slow, wait=False)
        tl.wait(second, first)
        times.append(rig.env.now)

    rig = Rig(overhead=0.0)
    rig.run(kernel, rig.tensor(X))
    assert times == [2 * UNIT_NS["pe_dma"]]
