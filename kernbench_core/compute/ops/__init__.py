"""The math ops, one record each: what it computes and a second way to it, types, shapes, cost, its name in kernels.

In go names of ops, from kernels and from logs; out come records, which `functions` computes by, the language takes its
names from, and models of vector units their costs. A plug-in's op is a record of the same kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kernbench_core.compute.ops import (
    arithmetic,
    atomics,
    bits,
    elementary,
    logic,
    moves,
    random_bits,
    reductions,
    scans,
    special,
)
from kernbench_core.compute.ops.record import Again, Form, LaneCost, MathOp, Operands
from kernbench_core.errors import ShapeError

__all__ = ["ALIASES", "OPS", "Again", "Form", "LaneCost", "MathOp", "Operands", "op_of"]

OPS: Final[Mapping[str, MathOp]] = {
    op.name: op
    for family in (special, elementary, arithmetic, bits, logic, reductions, scans, moves, random_bits, atomics)
    for op in family.OPS
}
ALIASES: Final[Mapping[str, str]] = {alias: op.name for op in OPS.values() for alias in op.aliases}


def op_of(name: str | MathOp) -> MathOp:
    """Return the record of a math op by its name or an alias (`truediv` is `div`); ShapeError when there is no such op.

    A record is returned as it is.
    """
    if isinstance(name, MathOp):
        return name
    found = OPS.get(name) or OPS.get(ALIASES.get(name, name))
    if found is None:
        raise ShapeError(f"A math op must be one of {', '.join(sorted(OPS))}, not {name!r}.")
    return found
