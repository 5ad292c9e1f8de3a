"""Loads and stores: what a masked load holds, and what a load that nobody waited for finds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernbench_core.compute.executor import DataExecutor
from kernbench_core.errors import ShapeError
from tests.core.kernel.program_order import actions, follow
from tests.core.kernel_rig import Rig

VIEWS: dict[str, Any] = {
    "column": lambda b: b[:, None],
    "row": lambda b: b[None, :],
    "reshape": lambda b: b.reshape(4, 4),
    "twice": lambda b: b.reshape(2, 8)[None, :].reshape(16, 1),
    "ravel": lambda b: b[:, None].ravel(),
    "expand_dims": lambda b: b.expand_dims(0),
}


@pytest.mark.parametrize("wait", [True, False])
@pytest.mark.parametrize("view", VIEWS)
@given(st.lists(st.booleans(), min_size=16, max_size=16), st.sampled_from([None, 0, 5, -3]), st.booleans())
@settings(max_examples=25)
def test_a_masked_load_keeps_its_other_in_every_view(
    view: str, wait: bool, bits: list[bool], other: int | None, twisted: bool
) -> None:
    """Read in the kernel, and stored: elements that are off hold `other`, or 0, as with np.where."""
    rig = Rig()
    data = np.arange(100, 116, dtype=np.int32)
    order = np.array([5, 2, 9, 0, 15, 1, 7, 3, 4, 6, 8, 10, 14, 12, 13, 11], np.int32)
    x, at, on = rig.tensor(data), rig.tensor(order), rig.tensor(np.array(bits))
    y, z = rig.tensor(np.zeros(16, np.int32)), rig.tensor(np.zeros(16, np.int32))
    seen: list[Any] = []

    def kernel(x: Any, at: Any, on: Any, y: Any, z: Any, tl: Any) -> None:
        offsets = tl.load(at + tl.arange(0, 16)).as_offsets() if twisted else tl.arange(0, 16)
        mask = tl.load(on + tl.arange(0, 16))
        tile = tl.load(x + offsets, mask=mask, other=other, wait=wait)
        viewed = VIEWS[view](tile)
        seen.append(viewed.numpy())
        tl.store(y, viewed)
        tl.store(z, viewed * 1)

    rig.run(kernel, x, at, on, y, z)
    want = np.where(bits, data[order] if twisted else data, 0 if other is None else other)
    np.testing.assert_array_equal(seen[0].reshape(-1), want)
    np.testing.assert_array_equal(rig.numpy(y), want)
    np.testing.assert_array_equal(rig.numpy(z), want)


def test_an_other_that_the_dtype_does_not_hold_is_refused() -> None:
    """It is a number as every other: it must fit where it stands, and is not wrapped in silence."""
    rig = Rig()
    x = rig.tensor(np.zeros(4, np.int8))

    def kernel(x: Any, tl: Any) -> None:
        tl.load(x + tl.arange(0, 4), mask=tl.arange(0, 4) < 2, other=300)

    with pytest.raises(ShapeError) as caught:
        rig.run(kernel, x)
    line = kernel.__code__.co_firstlineno + 1
    assert str(caught.value).splitlines()[0] == (
        f"a number at {__file__}:{line} must be one that int8 holds, from -128 to 127, and 300 is out of range; cast "
        "the tensor first."
    )


@given(actions(), st.integers(1, 2))
@settings(max_examples=60)
def test_loads_beside_stores_find_what_program_order_says(
    actions: list[tuple[str, str, int, int]], launches: int
) -> None:
    """Runs, steps, masks and gathers, overlapping at will, are numpy's copies at their place in the program."""
    follow(actions, launches)


def test_writes_of_others_are_found_beside_later_own_ones() -> None:
    """What its own PE stores later waits for a load that is under way; what others store is found until its end."""
    rig = Rig(pes=2)
    x = rig.tensor(np.arange(4, dtype=np.float32))
    found: list[Any] = []

    def kernel(x: Any, tl: Any) -> None:
        if tl.program_id(0) == 0:
            early = tl.load(x + tl.arange(0, 4), wait=False)  # from 1 to 101 ns
            found.append(early)
            tl.store(x, 5.0)  # goes out at 101 ns, when that is complete
            tl.store(x + 3, 5.0)
            found.append(tl.load(x + tl.arange(0, 4)))
        else:
            tl.store(x, 7.0)  # goes out at 12 ns
            tl.store(x + 1, 9.0)  # after the load has completed

    rig.run(kernel, x)
    executor = DataExecutor(rig.log, rig.store)
    assert [executor.materialize(tile.value).tolist() for tile in found] == [[7, 1, 2, 3], [5, 9, 2, 5]]
