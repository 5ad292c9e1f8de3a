"""Where bytes came from: the ops behind a value for whoever reads it, and the element that an element is a copy of."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kernbench_core.values.lineage import Element, element_of, made_for
from kernbench_core.values.region import Region
from kernbench_core.values.value import ArrayValue, AssemblyValue, LoadedValue, Part, ResultValue
from kernbench_core.values.views import FillValue


def test_a_load_found_what_others_wrote_and_gives_it_as_its_own() -> None:
    """To the load itself its value was made by who wrote the memory, to everybody else by the load."""
    content = ResultValue((0, 1), (4,), "f32")
    load = LoadedValue((4,), "f32", content, (2, 7), ((0, 1), (1, 3)))
    assert made_for(load, (2, 7)) == ((0, 1), (1, 3))
    assert made_for(load, (2, 8)) == made_for(load, None) == ((2, 7),)
    assert made_for(content, (0, 1)) == ((0, 1),)
    assert made_for(ArrayValue(np.zeros(4, np.float32)), (2, 7)) == ()


@given(st.lists(st.integers(0, 11), min_size=6, max_size=6), st.integers(0, 5))
def test_the_source_of_an_element_is_the_one_last_painted(places: list[int], asked: int) -> None:
    """Six elements, each copied from one of twelve, over a ground of zeros."""
    origin = ArrayValue(np.arange(12, dtype=np.int32))
    ground = FillValue(np.zeros(6, np.int32))
    whole = Region(0, 24)
    copies = [Part(Region(4 * to, 4), origin, Region(4 * come, 4)) for to, come in enumerate(places)]
    made = AssemblyValue((2, 3), "int32", (Part(whole, ground, whole), *copies))
    element = element_of(made, (asked // 3, asked % 3))
    assert element == Element(made, 4 * asked)
    source = element.source()
    assert source is not None
    assert source.value is origin
    assert origin.array()[source.byte // 4] == made.array()[asked // 3, asked % 3]
    bare = element_of(ground, (asked,)).source()
    assert bare is not None
    assert bare.value is ground
