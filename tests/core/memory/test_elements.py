"""Bytes in physical memory are traced back to the element that a message names."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_core.memory.elements import first_common, index_at, missing_element, spell_index
from kernbench_core.values.region import Region, linear_at, runs
from tests.core.kernel_rig import Rig


@given(st.lists(st.integers(1, 5), min_size=1, max_size=3), st.data())
def test_an_address_gives_its_index(shape: list[int], draw: st.DataObject) -> None:
    """As numpy unravels it, at any byte of the element."""
    tensor = Rig().empty(tuple(shape), "f32", "a")
    element = draw.draw(st.integers(0, tensor.size - 1))
    index = index_at(tensor, tensor.va + 4 * element + draw.draw(st.integers(0, 3)))
    assert index == tuple(int(i) for i in np.unravel_index(element, shape))
    assert spell_index("a", index) == f"a[{', '.join(map(str, index))}]"


regions = st.builds(
    lambda base, width, rows, gap: Region(base, width, rows, width + gap if rows > 1 else 0),
    st.integers(0, 60), st.integers(1, 9), st.integers(1, 4), st.integers(1, 9),
)  # fmt: skip


@given(st.lists(regions, min_size=1, max_size=3), regions)
def test_the_first_common_byte(mine: list[Region], other: Region) -> None:
    """Against a list of every byte in order."""
    linear = [byte for region in mine for start, size in runs(region) for byte in range(start, start + size)]
    theirs = {byte for start, size in runs(other) for byte in range(start, start + size)}
    hits = [at for at, byte in enumerate(linear) if byte in theirs]
    assert first_common(mine, [other]) == ((hits[0], len(hits)) if hits else None)
    assert [linear_at(mine, at) for at in range(len(linear))] == linear
    with pytest.raises(ValueError, match="must be inside the regions, not 0 bytes past their end"):
        linear_at(mine, len(linear))


def test_the_first_missing_element_in_the_order_of_the_access() -> None:
    """Physical pieces in another order than the virtual ones: the first in the tensor's order is named."""
    tensor = Rig().empty((4, 4), "f32", "a")
    virtual = (Region(tensor.va, 64),)
    physical = (Region(5000, 32), Region(1000, 32))
    assert missing_element(tensor, virtual, physical, [(1016, 8, 1, 0), (5020, 4, 1, 0)]) == (
        "element [1, 1] of tensor 'a'"
    )
