"""What a notebook shows of machines, launches, hazards and tensors: the pictures of the report, in a cell."""

from __future__ import annotations

from functools import singledispatch

from kernbench_core.drawing import draw_machine
from kernbench_core.graph import Graph


@singledispatch
def picture(thing: object) -> str | None:
    """Return what a notebook shows of a thing as HTML, None for what has no picture."""
    return None


@picture.register
def _(graph: Graph) -> str:
    return draw_machine(graph).svg()
