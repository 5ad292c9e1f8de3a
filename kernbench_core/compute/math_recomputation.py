"""A second way to math ops: plain numpy in f64 (integers: 64 bits), apart from `functions`; see `recomputation`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernbench_core.compute.ops import MathOp, Operands, op_of, type_rules
from kernbench_core.compute.ops.record import Params
from kernbench_core.compute.ops.second_way import EPS, Anew, met
from kernbench_core.values.arrays import Array


def math_anew(op: str | MathOp, params: Params, operands: Sequence[Anew]) -> Anew:
    """Compute a math op; where an operand has slack, the result has what comes of it."""
    found = op_of(op)
    values = [x.value for x in operands]
    assert found.again is not None, f"{found} has no second way"
    if found.operands in (Operands.GIVEN, Operands.MET):
        assert found.again.floats is not None
        return Anew(np.asarray(found.again.floats(params, *values)), exact=True)
    if found.operands is Operands.CHOSEN:
        assert found.again.floats is not None
        chosen = met(values[1:], found.meet)
        return Anew(np.asarray(found.again.floats(params, values[0], *chosen)), exact=True)
    alike = met(values, found.meet, signed=found.keeps_sign)
    if found.again.integers is not None and alike[0].dtype.kind in "iub":
        whole = np.asarray(found.again.integers(params, *map(_in_64_bits, alike)))
        return Anew(whole & 1 if params.get("dtype") == "bool" and whole.dtype.kind == "i" else whole)
    made = _of_floats(found, params, operands, [x.astype(np.float64) for x in alike])
    bits = found.rule in (type_rules.same, type_rules.integers) and all(x.dtype.kind == "b" for x in alike)
    return Anew(np.mod(made.value, 2.0) != 0.0) if bits else made


def _of_floats(op: MathOp, params: Params, operands: Sequence[Anew], values: Sequence[Array]) -> Anew:
    """Compute in f64; what the operands may be wrong by moves the result by as much as it does at both of its ends."""
    assert op.again is not None
    function = op.again.floats
    assert function is not None, f"{op} is not for floats"
    made = function(params, *values)
    if isinstance(made, Anew):
        return made
    found = np.asarray(made)
    if found.dtype.kind != "f":
        return Anew(found)
    slack = 4 * EPS * np.abs(found)
    for number, operand in enumerate(operands):
        if np.any(operand.slack):
            ends = (
                np.abs(function(params, *values[:number], values[number] + way * operand.slack, *values[number + 1 :])
                       - found)
                for way in (-1.0, 1.0)
            )  # fmt: skip
            slack = slack + np.nan_to_num(np.fmax(*ends))
    return Anew(found, np.nan_to_num(slack))


def _in_64_bits(x: Array) -> Array:
    """Return integers as int64; those of uint64, whose upper half that does not hold, as they are."""
    return x if x.dtype == np.uint64 else x.astype(np.int64)
