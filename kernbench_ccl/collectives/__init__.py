"""What a collective is: what ranks bring and end with, how nccl-tests rates it, and inputs whose results are exact.

In: the shape of a call. Out: sizes, right data, factors, traffic. Every other room calls it, and a plug-in that adds a
collective makes a `CollectiveKind`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernbench_core.package import door

if TYPE_CHECKING:
    from kernbench_ccl.collectives.inputs import exact_inputs as exact_inputs
    from kernbench_ccl.collectives.record import CallShape as CallShape
    from kernbench_ccl.collectives.record import CollectiveKind as CollectiveKind
    from kernbench_ccl.collectives.record import Piece as Piece
    from kernbench_ccl.collectives.record import combined as combined
    from kernbench_ccl.collectives.record import moved as moved
    from kernbench_ccl.collectives.results import right_outputs as right_outputs
    from kernbench_ccl.collectives.shipped import COLLECTIVES as COLLECTIVES

__getattr__ = door(__name__)
