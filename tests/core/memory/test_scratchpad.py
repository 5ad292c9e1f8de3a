"""Scratchpad space lives exactly as long as its last user, and overflow shows the whole table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernbench_core.errors import KernelError, TcmOverflowError
from tests.core.kernel_rig import Rig

TILE = 16 * 16 * 4


def rig(**options: Any) -> tuple[Rig, Any]:
    found = Rig(**options)
    return found, found.tensor(np.arange(4096, dtype=np.float32).reshape(64, 64), "x")


def used(tl: Any) -> int:
    """Give the reserved bytes, from inside a kernel."""
    return tl._state.tcm.fit.used


def test_space_goes_with_the_last_name() -> None:
    """Names, views and results each hold the space; nothing else does once their commands are complete."""
    found: list[int] = []

    def kernel(x: Any, tl: Any) -> None:
        a = tl.load(x, shape=(16, 16))
        found.append(used(tl))
        view = a[:, None]
        del a
        found.append(used(tl))
        del view
        found.append(used(tl))
        b = tl.load(x, shape=(16, 16), wait=False)
        tl.wait(b)
        c = b + b
        del b
        found.append(used(tl))
        del c
        found.append(used(tl))

    machine, x = rig()
    machine.run(kernel, x)
    assert found == [TILE, TILE, 0, TILE, 0]
    assert machine.used_tcm() == 0


def test_space_waits_for_the_last_timed_reader() -> None:
    """A tile that a load in flight uses stays, though no name is left."""
    found: list[int] = []

    def kernel(x: Any, tl: Any) -> None:
        tl.load(x, shape=(16, 16), wait=False)
        found.append(used(tl))
        tl.wait()
        found.append(used(tl))

    machine, x = rig()
    machine.run(kernel, x)
    assert found == [TILE, 0]


def test_a_load_in_a_loop_holds_two_tiles() -> None:
    """The old tile lives until the new one is there: two fit where the loop runs, one does not."""

    def kernel(x: Any, tl: Any) -> None:
        for _ in range(4):
            a = tl.load(x, shape=(16, 16))
        del a

    machine, x = rig(tcm=2 * TILE)
    machine.run(kernel, x)
    machine, x = rig(tcm=2 * TILE - 64)
    with pytest.raises(TcmOverflowError) as caught:
        machine.run(kernel, x)
    line = kernel.__code__.co_firstlineno + 2
    assert str(caught.value) == (
        f"{__file__}:{line}: tl.load must find 1 KiB of TCM on sip0.cube0.pe0 for f32 [16, 16], and 960 B of 1.938 KiB "
        "are free (largest hole 960 B); use smaller tiles or tl.free a handle first. A handle keeps its space until "
        "its last name is gone and its last reader has finished: `a = tl.load(…)` in a loop holds two tiles, because "
        "the old one lives until the new one is there. Allocated, by offset:\n"
        f"  0x00000000       1024 B  tl.load f32 [16, 16], born at {__file__}:{line}\n"
        "  in kernel 'kernel', program (0, 0, 0), on sip0.cube0.pe0 at 101 ns"
    )


def test_a_tile_larger_than_the_scratchpad_is_told_so() -> None:
    """No freeing helps, so no table of what is allocated is shown."""

    def kernel(x: Any, tl: Any) -> None:
        tl.load(x, shape=(16, 16))

    machine, x = rig(tcm=64)
    with pytest.raises(TcmOverflowError) as caught:
        machine.run(kernel, x)
    assert str(caught.value).splitlines() == [
        f"{__file__}:{kernel.__code__.co_firstlineno + 1}: tl.load must find 1 KiB of TCM on sip0.cube0.pe0 for f32 "
        "[16, 16], and the whole scratchpad has 64 B; use smaller tiles, or more pe.tcm.capacity.",
        "  in kernel 'kernel', program (0, 0, 0), on sip0.cube0.pe0 at 0 ns",
    ]


def test_freeing_makes_room_at_once() -> None:
    """With tl.free before the next load, one tile's space is enough."""

    def kernel(x: Any, tl: Any) -> None:
        for _ in range(4):
            a = tl.load(x, shape=(16, 16))
            tl.free(a)

    machine, x = rig(tcm=TILE)
    machine.run(kernel, x)
    assert machine.used_tcm() == 0


def test_use_after_free_is_an_error() -> None:
    """The sentence names what was freed, where it was born and where it was freed."""

    def kernel(x: Any, tl: Any) -> None:
        a = tl.load(x, shape=(4, 4))
        view = a.reshape(16)
        tl.free(a)
        view + 1.0

    def twice(x: Any, tl: Any) -> None:
        a = tl.load(x, shape=(4, 4))
        tl.free(a)
        tl.free(a)

    machine, x = rig()
    with pytest.raises(KernelError) as caught:
        machine.run(kernel, x)
    first = kernel.__code__.co_firstlineno
    assert str(caught.value) == (
        f"tl.add at {__file__}:{first + 4} must be given a live tensor, and f32 [4, 4] of tl.load, born at "
        f"{__file__}:{first + 1} was freed at {__file__}:{first + 3}; free it after its last use.\n"
        "  in kernel 'kernel', program (0, 0, 0), on sip0.cube0.pe0 at 101 ns"
    )
    machine, x = rig()
    with pytest.raises(KernelError) as caught:
        machine.run(twice, x)
    first = twice.__code__.co_firstlineno
    assert str(caught.value).startswith(
        f"tl.free at {__file__}:{first + 3} must be given a live tensor, and f32 [4, 4] of tl.load, born at "
        f"{__file__}:{first + 1} was freed at {__file__}:{first + 2}; free it once."
    )


def test_pes_have_scratchpads_of_their_own() -> None:
    """Physical addresses of two PEs' tiles differ."""
    addresses: list[int] = []

    def kernel(x: Any, tl: Any) -> None:
        addresses.append(tl.load(x, shape=(4, 4)).block.address)

    machine, x = rig(pes=2)
    machine.run(kernel, x)
    assert len(set(addresses)) == 2
