"""A second way to the result of one op: plain numpy in f64 (integers: int64), from the op's record and its inputs.

It shares no arithmetic with `functions`, with what `ops` have as `function`, and with `batches`, which made the first
result in f32 and in groups. What it gives comes with a slack: by how much sums and steps in f32 may differ from it. A
function of a plug-in is the only way to its op, unless that is a record with another: it is called by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from kernbench_builtin.verify import along, elementwise, moves
from kernbench_builtin.verify.operands import EPS, error_of_sum, met
from kernbench_core.compute import functions
from kernbench_core.compute.ops import OPS, Again, MathOp, Operands, op_of, type_rules
from kernbench_core.compute.ops.record import MathFunction, Params
from kernbench_core.compute.ops.second_way import Anew, comparable, rounded
from kernbench_core.compute.result_types import result_type
from kernbench_core.values import dtypes
from kernbench_core.values.arrays import Array


def anew(name: str, function: Any, params: Params, inputs: Sequence[Array]) -> Anew:
    """Compute an op whose function is `function`, named `name`, on `inputs`."""
    with np.errstate(all="ignore"):
        if name == functions.MATH:
            return math_anew(params["op"], params, [Anew(x) for x in inputs])
        if name == functions.COMPOSITE_MATH:
            steps = params.get("epilogue") or ()
            later = {number for _, _, numbers, *_ in steps for number in numbers}
            own = [Anew(x) for number, x in enumerate(inputs) if number not in later]
            return _stepped(_typed(params["math_op"], own), steps, inputs)
        if name in (functions.GEMM, functions.COMPOSITE_GEMM):
            return _gemm(params, inputs)
        if isinstance(function, functions.PluginFunction) and function.op is not None and function.op.again is not None:
            return math_anew(function.op, params, [Anew(x) for x in inputs])
    return Anew(comparable(np.asarray(function(params, inputs))))


# Products --------------------------------------------------------------------------------------------


def _gemm(params: Params, inputs: Sequence[Array]) -> Anew:
    a, b = (_matrix(params, which, x) for which, x in zip("ab", inputs, strict=False))
    steps = params.get("epilogue") or ()
    inner = [step for step in steps if step[1] == "k_tile"]
    size = int(params["tile_k"]) if inner else max(1, a.shape[1])
    total: Anew | None = None
    for number, k in enumerate(range(0, max(1, a.shape[1]), size)):
        part = _stepped(_product(a[:, k : k + size], b[k : k + size]), inner, inputs, tile=number)
        total = part if total is None else _typed("add", [total, part])
    assert total is not None
    if params.get("accumulate"):
        total = _typed("add", [total, Anew(inputs[2])])
    found = _stepped(total, [step for step in steps if step[1] != "k_tile"], inputs)
    if params.get("layout_out") == "col_major":
        shape = found.value.shape
        value, slack = (np.broadcast_to(x, shape).T.ravel().reshape(shape) for x in (found.value, found.slack))
        return Anew(value, slack)
    return found


def _matrix(params: Params, which: str, x: Array) -> Array:
    if params.get(f"layout_{which}") == "col_major":
        x = x.ravel().reshape(x.shape, order="F")
    return x.T if params.get(f"transpose_{which}") else x


def _product(a: Array, b: Array) -> Anew:
    """Multiply in f64, where f32 adds k products with an error each; integers exactly, cut to 32 bits."""
    k = a.shape[1]
    if a.dtype.kind in "iub" and b.dtype.kind in "iub":
        wide = [x.astype(np.int64) for x in (a, b)]
        most = [int(np.abs(x).max(initial=0)) for x in wide]
        if k * most[0] * most[1] < 2**53:
            return Anew(np.rint(wide[0].astype(float) @ wide[1].astype(float)).astype(np.int64).astype(np.int32))
        return Anew((wide[0] @ wide[1]).astype(np.int32))
    a, b = a.astype(np.float64), b.astype(np.float64)
    return Anew(a @ b, error_of_sum(k) * (np.abs(a) @ np.abs(b)))


def _stepped(x: Anew, steps: Sequence[Sequence[Any]], inputs: Sequence[Array], tile: int = 0) -> Anew:
    """Apply the steps of an epilogue; one with `per_tile` reads its own part of each operand."""
    for kind, _, numbers, *rest in steps:
        operands = [inputs[number][tile] if rest and rest[0] else inputs[number] for number in numbers]
        if kind == "dequant" or any(o.dtype.kind not in "iub" for o in operands):
            x = Anew(x.value.astype(np.float64), x.slack + EPS * np.abs(x.value))
        x = _typed(_STEPS.get(kind, kind), [x, *map(Anew, operands)])
    return x


_STEPS: Final = {"bias": "add", "scale": "mul", "dequant": "mul"}


def _typed(op: str, operands: Sequence[Anew]) -> Anew:
    """Compute a math op; integers are of the dtype that it gives, as the next step finds them, and wrap."""
    dtype = result_type(op, [dtypes.dtype_name(x.value.dtype) for x in operands])
    made = math_anew(op, {"dtype": dtype}, operands)
    return Anew(rounded(made.value, dtype)) if made.whole else made


# Math ops --------------------------------------------------------------------------------------------


WAYS: Final[Mapping[str, Again]] = {**elementwise.WAYS, **along.WAYS, **moves.WAYS}
"""Second ways to core's own ops, by their names."""


def way_of(op: MathOp) -> Again | None:
    """Return the second way to the result of an op, None where there is none."""
    return op.again or (WAYS[op.name] if OPS.get(op.name) is op else None)


def math_anew(op: str | MathOp, params: Params, operands: Sequence[Anew]) -> Anew:
    """Compute a math op; where an operand has slack, the result has what comes of it."""
    found = op_of(op)
    again = way_of(found)
    values = [x.value for x in operands]
    assert again is not None, f"{found} has no second way"
    if found.operands in (Operands.GIVEN, Operands.MET):
        assert again.floats is not None
        return Anew(np.asarray(again.floats(params, *values)), exact=True)
    if found.operands is Operands.CHOSEN:
        assert again.floats is not None
        chosen = met(values[1:], found.meet)
        return Anew(np.asarray(again.floats(params, values[0], *chosen)), exact=True)
    alike = met(values, found.meet, signed=found.keeps_sign)
    if again.integers is not None and alike[0].dtype.kind in "iub":
        whole = np.asarray(again.integers(params, *map(_in_64_bits, alike)))
        return Anew(whole & 1 if params.get("dtype") == "bool" and whole.dtype.kind == "i" else whole)
    assert again.floats is not None, f"{found} is not for floats"
    made = _of_floats(again.floats, params, operands, [x.astype(np.float64) for x in alike])
    bits = found.rule in (type_rules.same, type_rules.integers) and all(x.dtype.kind == "b" for x in alike)
    return Anew(np.mod(made.value, 2.0) != 0.0) if bits else made


def _of_floats(
    function: MathFunction, params: Params, operands: Sequence[Anew], values: Sequence[Array]
) -> Anew:
    """Compute in f64; what the operands may be wrong by moves the result by as much as it does at both of its ends."""
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
