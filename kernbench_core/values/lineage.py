"""Where bytes came from, as far as values alone say: the ops behind what an op read, and the element that one copies.

Whoever follows data back goes by these two: the op log's dependencies, the origins of wrong elements, proofs of
collectives.
"""

from __future__ import annotations

import numpy as np
from attrs import frozen

from kernbench_core.values import dtypes
from kernbench_core.values.region import Region, intersect, linear_at
from kernbench_core.values.value import LoadedValue, OpId, Value


def made_for(value: Value, reader: OpId | None) -> tuple[OpId, ...]:
    """Return the ops that made what the op `reader` read: its own load found what `sources` wrote."""
    if isinstance(value, LoadedValue) and value.op_id == reader:
        return value.sources
    return value.makers()


@frozen
class Element:
    """One element of a value, by its first byte among the row-major bytes of that value."""

    value: Value
    byte: int

    @property
    def size(self) -> int:
        """Bytes of the element."""
        return dtypes.itemsize(self.value.dtype)

    def source(self) -> Element | None:
        """Return the element of a value made of no other that this one is a copy of; None where no part reaches it."""
        found = None
        own = Region(self.byte, self.size)
        for part in self.value.content().parts():
            for _, inside in intersect(own, part.dst):
                found = Element(part.source, linear_at([part.src], inside.base))
        return found


def element_of(value: Value, index: tuple[int, ...]) -> Element:
    """Return the element at an index, which has as many coordinates as the value."""
    number = int(np.ravel_multi_index(index, value.shape)) if index else 0
    return Element(value, number * dtypes.itemsize(value.dtype))
