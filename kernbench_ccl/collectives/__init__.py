"""What a collective is: what ranks bring and end with, how nccl-tests rates it, and inputs whose results are exact.

In: the name of a collective, ranks and sizes. Out: expected data and factors. Every other room calls it, and a plug-in
that adds a collective makes a `CollectiveKind`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernbench_ccl.collectives.record import CallShape as CallShape
from kernbench_ccl.collectives.record import CollectiveKind as CollectiveKind
from kernbench_ccl.collectives.record import Piece as Piece
from kernbench_ccl.collectives.record import combined as combined
from kernbench_ccl.collectives.record import moved as moved
from kernbench_ccl.collectives.shipped import COLLECTIVES as COLLECTIVES

if TYPE_CHECKING:
    from kernbench_ccl.collectives.inputs import exact_inputs as exact_inputs
    from kernbench_ccl.collectives.results import right_outputs as right_outputs

__all__ = [
    "COLLECTIVES", "CallShape", "CollectiveKind", "Piece", "combined", "exact_inputs", "moved", "right_outputs",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import what needs numpy on first use."""
    if name == "exact_inputs":
        from kernbench_ccl.collectives.inputs import exact_inputs

        return exact_inputs
    if name == "right_outputs":
        from kernbench_ccl.collectives.results import right_outputs

        return right_outputs
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
