"""What a collective is: what ranks bring and end with, how nccl-tests rates it, and inputs whose results are exact.

In: a shape of a call. Out: sizes, right data, factors, traffic. Every other room calls it, and a plug-in that adds a
collective makes a `CollectiveKind`. Names are imported on first use: what needs numpy is none of the others' business.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernbench_ccl.collectives.inputs import exact_inputs as exact_inputs
    from kernbench_ccl.collectives.record import CallShape as CallShape
    from kernbench_ccl.collectives.record import CollectiveKind as CollectiveKind
    from kernbench_ccl.collectives.record import Piece as Piece
    from kernbench_ccl.collectives.record import combined as combined
    from kernbench_ccl.collectives.record import moved as moved
    from kernbench_ccl.collectives.results import right_outputs as right_outputs
    from kernbench_ccl.collectives.shipped import COLLECTIVES as COLLECTIVES

_EXPORTS = {
    "COLLECTIVES": "shipped",
    "CallShape": "record",
    "CollectiveKind": "record",
    "Piece": "record",
    "combined": "record",
    "exact_inputs": "inputs",
    "moved": "record",
    "right_outputs": "results",
}

__all__ = sorted(_EXPORTS)


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_EXPORTS[name]}"), name)
