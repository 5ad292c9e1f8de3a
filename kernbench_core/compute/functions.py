"""What core's ops compute. A computing function is `fn(params, inputs) -> ndarray`, named "module:attr" in the log.

Operands are brought to the dtype that they meet in (`promotion`). Low precision is then widened, computed in f32 and
rounded once, at the end: numpy's own f16 matmul is slow, and sums of bf16 accumulate in bf16. Integer products
accumulate in int32. bool is an integer of one bit, which wraps. Functions of plug-ins have the same signature.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from functools import partial
from typing import Any, Final

import numpy as np
from attrs import frozen

from kernbench_core.compute.ops import ALIASES, OPS, MathOp, Operands, op_of, type_rules
from kernbench_core.compute.ops.plugin_faults import Blame, blame_of, blaming, keywords_of, refuse_kind
from kernbench_core.compute.ops.plugin_ops import checked_function
from kernbench_core.compute.ops.record import Params
from kernbench_core.compute.ops.record_faults import PluginOp, with_rules_checked
from kernbench_core.compute.ops.shape_rules import broadcast
from kernbench_core.compute.result_types import result_shape, result_type
from kernbench_core.errors import ShapeError
from kernbench_core.values import dtypes
from kernbench_core.values.arrays import Array
from kernbench_core.values.halves import as_f32

__all__ = ["CORE_FUNCTIONS", "Scope", "evaluate", "function_of", "gemm", "result_shape", "result_type"]

GEMM: Final = "kernbench_core.compute.functions:gemm"
COMPOSITE_GEMM: Final = "kernbench_core.compute.functions:composite_gemm"
COMPOSITE_MATH: Final = "kernbench_core.compute.functions:composite_math"
MATH: Final = "kernbench_core.compute.functions:math_op"
CORE_FUNCTIONS: Final[Mapping[str, str]] = {
    "composite_gemm": COMPOSITE_GEMM,
    "composite_math": COMPOSITE_MATH,
    **dict.fromkeys((*OPS, *ALIASES), MATH),
}
CORE_NAMES: Final = frozenset((GEMM, *CORE_FUNCTIONS.values()))
# The largest K for which sums of int8 products are exact in f32 (2**24 / 2**14), and of bytes' (2**16) in f64.
_EXACT_K_F32: Final = 1 << 10
_EXACT_K_F64: Final = 1 << 37


Multiply = Callable[[Array, Array], Array]
"""Multiplies two matrices (or stacks) of one float dtype."""


class Scope(StrEnum):
    """When an epilogue step of a composite GEMM runs."""

    K_TILE = "k_tile"
    """After the GEMM of every tile along K, on that tile's product, before it joins the sum."""
    OUTPUT_TILE = "output_tile"
    """Once for each output tile, before it is stored."""


def function_of(op_name: str, functions: Mapping[str, str] | None = None) -> str | None:
    """Return the "module:attr" that computes an op: the one in `functions`, else core's; None if nobody has one."""
    if functions and op_name in functions:
        return functions[op_name]
    if op_name.startswith("gemm_"):
        return GEMM
    return CORE_FUNCTIONS.get(op_name)


def evaluate(op: str | MathOp, params: Params, inputs: Sequence[Array]) -> Array:
    """Compute one math op at once; the result has the dtype `params["dtype"]`, or the one the op gives by itself."""
    return compute(op_of(op), params, inputs)


def math_op(params: Params, inputs: Sequence[Array]) -> Array:
    """Compute the op that `params["op"]` names and round the result to `params["dtype"]`.

    Parameters: `axis`, `keepdims` (reductions), `shape` or `shape_out` (moves), `axes` (trans). Operands broadcast.
    """
    return compute(op_of(params["op"]), params, inputs)


def compute(op: MathOp, params: Params, inputs: Sequence[Array]) -> Array:
    """Compute a math op by its record and round the result to `params["dtype"]`, or else to the dtype that it gives."""
    found, dtype = _wide_math(op, params, inputs), out_dtype(op, params, inputs)
    if isinstance(op, PluginOp):
        refuse_kind(found, dtype, op.fault)
    return dtypes.cast(found, dtype)


@frozen
class PluginFunction:
    """The computing function of an op that is not core's; `op` is its record where it has one."""

    function: Callable[[Params, Sequence[Array]], Any]
    fault: Blame
    op: MathOp | None = None

    @classmethod
    def of(cls, name: str, target: str, made: object) -> PluginFunction:
        """Make it of what op `name` is registered as, at `target`; PluginError where that is no record nor function."""
        fault = blame_of(name, target)
        if isinstance(made, MathOp):
            op = with_rules_checked(made, fault)
            return cls(partial(compute, op), fault, op)
        function = checked_function(made, fault)
        named, _ = keywords_of(function)

        def call(params: Params, inputs: Sequence[Array]) -> object:
            return function(params, inputs, **{name: params[name] for name in named if name in params})

        return cls(blaming(fault, "a function that computes", call), fault)

    def __call__(self, params: Params, inputs: Sequence[Array]) -> Array:
        """Compute the op; PluginError for what its function raises, and for numbers of a kind that it did not promise.

        A function gets those of its keywords that the kernel gave.
        """
        found = np.asarray(self.function(params, inputs))
        dtype = params.get("dtype_out") or params.get("dtype")
        if self.op is None and dtype:
            refuse_kind(found, str(dtype), self.fault)
        return found


def gemm(params: Params, inputs: Sequence[Array]) -> Array:
    """Multiply (m, k) by (k, n); with `params["accumulate"]` the third input is added. Rounded to `dtype_out`."""
    acc = accumulate(params, inputs[0], inputs[1])
    return finish_gemm(params, acc, inputs)


def composite_gemm(params: Params, inputs: Sequence[Array]) -> Array:
    """Multiply as `gemm` does, then apply the steps of `params["epilogue"]` (see `epilogue_of`)."""
    steps = epilogue_of(params)
    if any(step.scope == Scope.K_TILE for step in steps):
        acc = _accumulate_k_tiles(params, inputs, steps)
    else:
        acc = accumulate(params, inputs[0], inputs[1])
    return finish_gemm(params, acc, inputs)


def composite_math(params: Params, inputs: Sequence[Array]) -> Array:
    """Compute `params["math_op"]`, then the epilogue, without rounding between the steps."""
    op = op_of(params["math_op"])
    steps = epilogue_of(params)
    later = {i for step in steps for i in step.inputs}
    own = [x for i, x in enumerate(inputs) if i not in later]
    wide = _wide_math(op, params, own)
    for step in steps:
        wide = _apply(step, wide, [inputs[i] for i in step.inputs])
    return dtypes.cast(wide, out_dtype(op, params, own))


@frozen
class EpilogueStep:
    """One step after a GEMM: a kind, the scope k_tile or output_tile, and which inputs of the op it reads.

    With `per_tile` (scope k_tile) each k tile reads its own part of the inputs, along their first dimension.
    """

    kind: str
    scope: str
    inputs: tuple[int, ...]
    per_tile: bool = False


def epilogue_of(params: Params) -> tuple[EpilogueStep, ...]:
    """Return the epilogue steps of a composite op.

    `params["epilogue"]` holds one (kind, scope, input numbers, per_tile) each; without `per_tile` it is false.

    Kinds: `bias` and `add` add, `scale`, `mul` and `dequant` multiply, `relu`, `gelu` and every other unary math op
    apply. Operands broadcast to the (m, n) tile. A step of scope output_tile applies once, to the finished sum. One of
    scope k_tile applies to the product of each k tile (`tile_k` wide) before that joins the sum; with `per_tile` its
    operand has one part for each k tile along its first dimension, and the part is what broadcasts.
    """
    return tuple(
        EpilogueStep(kind, scope, tuple(inputs), *per_tile)
        for kind, scope, inputs, *per_tile in params.get("epilogue") or ()
    )


def accumulate(params: Params, a: Array, b: Array, multiply: Multiply = np.matmul) -> Array:
    """Multiply into the accumulator's dtype: f32 for floats, int32 for integers; `multiply` does so on floats."""
    return product(oriented(params, "a", a), oriented(params, "b", b), multiply)


def product(a: Array, b: Array, multiply: Multiply = np.matmul) -> Array:
    """Multiply two matrices (or stacks) of any dtypes into f32, or int32 when both are integers."""
    if a.dtype.kind in "iub" and b.dtype.kind in "iub":
        return _integer_product(a, b)
    with np.errstate(all="ignore"):  # infinities and NaNs are results like any other
        return multiply(as_f32(a), as_f32(b))


def oriented(params: Params, which: str, array: Array) -> Array:
    """Return an operand as the matrix to multiply, after its layout and transposition."""
    if params.get(f"layout_{which}") == "col_major":
        array = array.reshape(array.shape[::-1]).T
    return array.swapaxes(-1, -2) if params.get(f"transpose_{which}") else array


def finish_gemm(params: Params, acc: Array, inputs: Sequence[Array]) -> Array:
    """Turn the accumulator into the result: third operand, epilogue steps on the whole tile, one rounding."""
    if params.get("accumulate"):
        with np.errstate(all="ignore"):
            acc = acc + (dtypes.to_compute(inputs[2]) if acc.dtype.kind == "f" else inputs[2])
    for step in epilogue_of(params):
        if step.scope != Scope.K_TILE:
            acc = _apply(step, acc, [inputs[i] for i in step.inputs])
    out = dtypes.cast(acc, params["dtype_out"])
    if params.get("layout_out") == "col_major":
        out = np.ascontiguousarray(out.T).reshape(out.shape)
    return out


def _accumulate_k_tiles(params: Params, inputs: Sequence[Array], steps: tuple[EpilogueStep, ...]) -> Array:
    a, b = oriented(params, "a", inputs[0]), oriented(params, "b", inputs[1])
    size = int(params["tile_k"])
    k = a.shape[-1]
    tiles = max(1, -(-k // size))
    acc: Array | None = None
    for tile in range(tiles):
        cut = slice(tile * size, min(k, (tile + 1) * size))
        part = product(a[..., cut], b[..., cut, :])
        for step in steps:
            if step.scope == Scope.K_TILE:
                part = _apply(step, part, [inputs[i][tile] if step.per_tile else inputs[i] for i in step.inputs])
        with np.errstate(all="ignore"):
            acc = part if acc is None else acc + part
    assert acc is not None
    return acc


def _apply(step: EpilogueStep, x: Array, operands: Sequence[Array]) -> Array:
    op = op_of({"bias": "add", "scale": "mul", "dequant": "mul"}.get(step.kind, step.kind))
    floats = x.dtype.kind == "f" or step.kind == "dequant" or any(o.dtype.kind not in "iub" for o in operands)
    if op.rule is type_rules.floats or floats:
        x = _wide(x)
    out = _wide_math(op, {}, [x, *operands])
    if out.shape != x.shape:
        raise ShapeError(f"The operands of epilogue {step.kind} must broadcast to {x.shape}, not to {out.shape}.")
    return out


def _wide_math(op: MathOp, params: Params, inputs: Sequence[Array]) -> Array:
    """Compute a math op without rounding its result."""
    if op.operands is Operands.GIVEN:
        return np.asarray(op.function(params, *inputs))
    if op.operands is Operands.MET:
        return np.asarray(op.function(params, *_met(inputs, op)))
    if len(inputs) > 1:
        broadcast(op.name, [x.shape for x in inputs])
    with np.errstate(all="ignore"):
        if op.operands is Operands.CHOSEN:
            return np.asarray(op.function(params, inputs[0], *_alike(inputs[1:], op)))
        found = np.asarray(op.function(params, *_alike(inputs, op)))
        return (found & 1).astype(bool) if found.dtype.kind in "iu" and _of_bits(inputs, op) else found


def _met(inputs: Sequence[Array], op: MathOp) -> list[Array]:
    """Bring operands to the dtype that they meet in."""
    if len({x.dtype for x in inputs}) == 1:
        return list(inputs)
    common = op.meet([dtypes.dtype_name(x.dtype) for x in inputs])
    if op.keeps_sign and inputs[0].dtype.kind == "i":
        common = common.removeprefix("u")
    return [dtypes.cast(x, common) for x in inputs]


def _alike(inputs: Sequence[Array], op: MathOp) -> list[Array]:
    """Bring operands to the dtype that they are computed in."""
    met = _met(inputs, op)
    first = met[0].dtype
    if first.kind not in "iub" or op.rule in (type_rules.floats, type_rules.quotient):
        return [_wide(x) for x in met]
    if _of_bits(inputs, op):
        return [x.astype(np.uint8) for x in met]
    if op.rule is type_rules.widened and first.itemsize < 4:
        return [met[0].astype(np.int32 if first.kind == "i" else np.uint32)]
    return met


def _of_bits(inputs: Sequence[Array], op: MathOp) -> bool:
    """Whether an op is arithmetic on bool, which wraps: done on bytes, of which the last bit is kept."""
    return op.rule in (type_rules.same, type_rules.integers) and all(x.dtype.kind == "b" for x in inputs)


def out_dtype(op: MathOp, params: Params, inputs: Sequence[Array]) -> str:
    """Return the dtype that the result of a math op is rounded to."""
    given = params.get("dtype_out") or params.get("dtype")
    return str(given) if given else result_type(op, [dtypes.dtype_name(x.dtype) for x in inputs], params)


def _wide(array: Array) -> Array:
    """Return floats as what they are computed in: f32, of f64 themselves."""
    return array if array.dtype == np.float64 else as_f32(array)


def _integer_product(a: Array, b: Array) -> Array:
    """Multiply integers exactly, through BLAS where its floats hold every sum, and wrap to int32."""
    k = a.shape[-1]
    small = a.dtype.itemsize == 1 and b.dtype.itemsize == 1
    if small and k <= _EXACT_K_F32 and "u" not in (a.dtype.kind, b.dtype.kind):
        return np.matmul(a.astype(np.float32), b.astype(np.float32)).astype(np.int32)  # type: ignore[no-any-return]
    if small and k <= _EXACT_K_F64:
        return np.matmul(a.astype(np.float64), b.astype(np.float64)).astype(np.int64).astype(np.int32)  # type: ignore[no-any-return]
    return np.matmul(a.astype(np.int64), b.astype(np.int64)).astype(np.int32)  # type: ignore[no-any-return]
