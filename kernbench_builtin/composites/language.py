"""`tl.epilogue` and `tl.composite`: how a kernel hands a whole tiled pipeline to its PE's scheduler."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from attrs import evolve, frozen

from kernbench_builtin.composites.command import CompositeCmd, CompositeWork, EpilogueSpec, MatrixLayout
from kernbench_builtin.composites.handle import CompositeHandle
from kernbench_core.callsite import call_site, describe_site
from kernbench_core.compute.functions import Scope
from kernbench_core.compute.ops import OPS, Form, Operands, type_rules
from kernbench_core.compute.promotion import meet_all
from kernbench_core.compute.result_types import operand_type
from kernbench_core.errors import ShapeError, UnsupportedError
from kernbench_core.kernel.compute_commands import Operand
from kernbench_core.kernel.pointers import Pointer, Ref, make_ref
from kernbench_core.kernel.tl.dispatch import Dispatcher
from kernbench_core.kernel.tl.tensor import Tensor
from kernbench_core.kernel.transfers import direct_transfer
from kernbench_core.memory.scratchpad import TcmBlock
from kernbench_core.values.dtypes import is_float
from kernbench_core.wording import brief

WITH_OPERAND = ("bias", "add", "scale", "mul", "dequant", "sub", "div", "maximum", "minimum")
"""Kinds of epilogue steps that take one operand."""

ALONE = tuple(
    sorted(
        op.name
        for op in OPS.values()
        if op.form is Form.ELEMENTWISE and op.operands is Operands.COMPUTED and op.arity == 1 and op.name != "copy"
        and op.types is not type_rules.integers
    )
)  # fmt: skip
"""Kinds of epilogue steps that take none, and math ops of a math composite of one operand."""

OF_TWO = ("add", "sub", "mul", "div", "maximum", "minimum")
"""Math ops of a math composite of two operands."""

DEFAULT_TILE = 128
"""Extent of a composite's tiles along each dimension when none is given."""


@frozen(eq=False)
class Step:
    """One step of an epilogue as the kernel wrote it."""

    kind: str
    operand: Any = None
    scope: str = "output_tile"
    per_tile: bool = False


def epilogue(
    tl: Dispatcher, kind: str, operand: Any = None, scope: str = "output_tile", per_tile: bool = False
) -> Step:
    """Describe one step of a composite's epilogue.

    `kind` is `bias`, `add`, `scale`, `mul`, `dequant`, … with an operand (a number; a tile in the scratchpad, or a
    ref to one in HBM, that broadcasts to the output), or a unary op such as `relu`. With scope `k_tile` it runs on
    the product of each tile along k, with `output_tile` once per output tile. With `per_tile` (scope `k_tile`) the
    first dimension of the operand counts the k tiles: each takes its own part, and the part broadcasts. Of a ref,
    every tile reads its part when it comes to the step.
    """
    return Step(kind, operand, scope, bool(per_tile))


def composite(
    tl: Dispatcher,
    op: str,
    a: Ref | Tensor,
    b: Ref | Tensor | None = None,
    out: Ref | Pointer | None = None,
    *,
    math_op: str | None = None,
    epilogue: Sequence[Any] = (),
    tile_m: int = DEFAULT_TILE,
    tile_k: int = DEFAULT_TILE,
    tile_n: int = DEFAULT_TILE,
    wait: bool = False,
) -> CompositeHandle:
    """Run a tiled pipeline on the PE's scheduler: `gemm` of a (m, k) and b (k, n), or `math` with a `math_op`.

    A math op takes a alone, or a and b: a matrix of the shape of a, a row (n,) or (1, n), or a column (m, 1).
    Operands are refs, left in HBM and read tile by tile, or tiles in the scratchpad, which are not read again. The
    output goes to HBM and is visible at once; its data exists after phase 2. Returns at once unless `wait`.
    """
    if op not in ("gemm", "math") or out is None:
        here = f"tl.composite at {describe_site(call_site())}"
        raise UnsupportedError(f"{here} must be given op 'gemm' or 'math' and out=, not op {op!r} and out={out!r}.")
    given: dict[str, Any] = {"a": a} if op == "math" and b is None else {"a": a, "b": _as_row(b, op)}
    sources = {name: _matrix(name, thing) for name, thing in given.items()}
    shape = _shape_of(op, sources, math_op)
    target = _target(out, shape)
    tensors = [thing for thing in sources.values() if isinstance(thing, Tensor)]
    pinned = {name: tl.operand(t, t.dtype, "composite") for name, t in sources.items() if isinstance(t, Tensor)}
    layouts = {name: _layout(tl, thing, pinned.get(name)) for name, thing in sources.items()}
    layouts["out"] = _layout(tl, target, None)
    k = 0 if op == "math" else sources["a"].shape[1]
    _check_tiles(tile_m=tile_m, tile_k=tile_k, tile_n=tile_n)
    whole = _dtype_of_integers(thing.dtype for thing in sources.values())
    specs, blocks = _epilogue(tl, epilogue, shape, max(1, -(-k // tile_k)), whole)
    layouts |= {spec.source: spec.layout for spec in specs if spec.layout is not None}
    work = CompositeWork(op, shape[0], k, shape[1], tile_m, tile_k, tile_n, math_op or "", specs)
    held = (*(tensor.block for tensor in tensors), *blocks)
    site = call_site()
    command = CompositeCmd(tl.op_id(), site, held, work, layouts, pinned)
    tl.issue(command, wait)
    return CompositeHandle(tl, command.out, site, None if wait else command, target)


def _check_tiles(**tiles: Any) -> None:
    for name, extent in tiles.items():
        if not isinstance(extent, int) or extent < 1:
            where = describe_site(call_site())
            raise ShapeError(f"tl.composite at {where}: {name} must be a positive integer, not {brief(extent)}.")


def _matrix(name: str, thing: Any) -> Ref | Tensor:
    """Check one input: a matrix in HBM or in the scratchpad."""
    if not isinstance(thing, Ref | Tensor) or len(thing.shape) != 2:
        shown = f"shape {thing.shape}" if isinstance(thing, Ref | Tensor) else repr(thing)
        raise ShapeError(
            f"tl.composite at {describe_site(call_site())}: operand {name} must be a matrix, given as "
            f"tl.ref(ptr, shape=…) or a loaded tile, not {shown}; give it two dimensions."
        )
    if isinstance(thing, Ref):
        _check_rows(name, thing)
    return thing


def _check_rows(name: str, ref: Ref) -> None:
    if ref.strides[1] != 1 and ref.shape[1] > 1:
        raise UnsupportedError(
            f"tl.composite at {describe_site(call_site())}: operand {name} must have contiguous rows (last stride "
            f"1), not strides {ref.strides}; transpose it on the host."
        )
    if ref.strides[0] < ref.shape[1] and ref.shape[0] > 1:
        raise UnsupportedError(
            f"tl.composite at {describe_site(call_site())}: the rows of operand {name} must not overlap, and "
            f"strides {ref.strides} make rows of {ref.shape[1]} elements do so; correct the strides."
        )


def _shape_of(op: str, sources: dict[str, Ref | Tensor], math_op: str | None) -> tuple[int, int]:
    """Give the shape of the output; ShapeError when the inputs do not fit each other."""
    here = f"tl.composite at {describe_site(call_site())}"
    a = sources["a"]
    if op == "math":
        return _shape_of_math(a, sources.get("b"), math_op, here)
    b = sources["b"]
    if a.shape[1] != b.shape[0]:
        raise ShapeError(
            f"{here} must be given shapes (m, k) and (k, n), not {a.shape} and {b.shape}; "
            f"{a.shape[1]} and {b.shape[0]} must be equal."
        )
    if "f64" in (a.dtype, b.dtype):
        raise UnsupportedError(
            f"{here} must be given floats of 32 bits at most, not f64, as the matrix units have no wider ones; "
            "cast them first."
        )
    if a.dtype != b.dtype:
        raise ShapeError(
            f"{here} must be given operands of one dtype, not {a.dtype} and {b.dtype}; cast one first."
        )
    return a.shape[0], b.shape[1]


def _shape_of_math(
    a: Ref | Tensor, b: Ref | Tensor | None, math_op: str | None, here: str
) -> tuple[int, int]:
    known, many = (ALONE, "one operand") if b is None else (OF_TWO, "two operands")
    if math_op not in known:
        raise UnsupportedError(
            f"{here}: math_op of {many} must be one of {', '.join(known)}, not {brief(math_op)}."
        )
    rows, cols = a.shape
    if b is not None:
        try:
            operand_type(math_op or "", (a.dtype, b.dtype))
        except ShapeError as error:
            raise ShapeError(f"{here}: {error}") from None
    if b is not None and b.shape not in ((rows, cols), (1, cols), (rows, 1)):
        raise ShapeError(
            f"{here}: operand b must be a matrix of shape {a.shape}, a row {(1, cols)} or a column {(rows, 1)}, "
            f"not of shape {b.shape}; reshape it, or give a number as an epilogue step."
        )
    return rows, cols


def _target(out: Any, shape: tuple[int, int]) -> Ref:
    """Give where the output goes; a plain pointer means a row-major matrix there."""
    target = out if isinstance(out, Ref) else make_ref(out, shape, None, None, "tl.composite")
    if target.shape != shape:
        raise ShapeError(
            f"tl.composite at {describe_site(call_site())} must be given an output of shape {shape}, not "
            f"{target.shape}; correct the shape of out."
        )
    direct_transfer(target, "tl.composite")
    _check_rows("out", target)
    return target


def _layout(tl: Dispatcher, thing: Ref | Tensor, pinned: Operand | None) -> MatrixLayout:
    if isinstance(thing, Ref):
        return MatrixLayout.of_ref(thing, tl._state.memory, tl._state.pe)
    assert pinned is not None
    return MatrixLayout.of_operand(pinned)


def _epilogue(
    tl: Dispatcher, steps: Sequence[Any], shape: tuple[int, int], k_tiles: int, integers: str
) -> tuple[tuple[EpilogueSpec, ...], tuple[TcmBlock, ...]]:
    """Check the steps of an epilogue; give them, and the scratchpad blocks that they read.

    Whole numbers among their operands become `integers`, others f32.
    """
    found, blocks = [], []
    for number, given in enumerate(steps):
        step = given if isinstance(given, Step) else Step(*((given,) if isinstance(given, str) else given))
        _check_step(step, shape, k_tiles)
        operands: tuple[Operand, ...] = ()
        if isinstance(step.operand, Ref):
            layout = _layout(tl, _as_matrix(step.operand), None)
            name = f"epilogue{number}"
            found.append(EpilogueSpec(step.kind, Scope(step.scope), (), step.per_tile, name, layout))
            continue
        if step.operand is not None:
            plain = integers if isinstance(step.operand, int) else "f32"
            kind = step.operand.dtype if isinstance(step.operand, Tensor) else plain
            operands = (tl.operand(step.operand, kind, "composite"),)
        if isinstance(step.operand, Tensor):
            blocks.append(step.operand.block)
        found.append(EpilogueSpec(step.kind, Scope(step.scope), operands, step.per_tile))
    return tuple(found), tuple(blocks)


def _check_step(step: Step, shape: tuple[int, int], k_tiles: int) -> None:
    here = f"tl.composite at {describe_site(call_site())}: epilogue step {step.kind!r}"
    if step.kind not in (*WITH_OPERAND, *ALONE):
        raise UnsupportedError(f"{here} must be one of {', '.join((*WITH_OPERAND, *ALONE))}; use one of these.")
    if step.scope not in tuple(Scope):
        raise UnsupportedError(f"{here} must have scope 'k_tile' or 'output_tile', not {brief(step.scope)}.")
    if (step.operand is not None) != (step.kind in WITH_OPERAND):
        needs = "an operand" if step.kind in WITH_OPERAND else "no operand"
        raise ShapeError(f"{here} must be given {needs}, not {brief(step.operand)}; correct the step.")
    if isinstance(step.operand, Pointer):
        raise UnsupportedError(
            f"{here} must have a number, a tile or a ref as its operand, not a pointer; tl.load it, or give "
            "tl.ref(ptr, shape=…)."
        )
    if step.per_tile:
        _check_per_tile(step, k_tiles, here)
    if isinstance(step.operand, Tensor | Ref):
        _check_broadcast(step, shape, here)
    elif step.operand is not None and not isinstance(step.operand, int | float):
        raise ShapeError(f"{here} must have a number or a tile as its operand, not {brief(step.operand)}; load it.")
    if isinstance(step.operand, Ref):
        _check_ref(step, here)


def _check_per_tile(step: Step, k_tiles: int, here: str) -> None:
    if step.scope != Scope.K_TILE or not isinstance(step.operand, Tensor | Ref):
        raise ShapeError(
            f"{here} must have scope 'k_tile' and a tile or a ref as its operand with per_tile=True, not "
            f"scope {step.scope!r} and {step.operand!r}; leave per_tile out."
        )
    if step.operand.shape[:1] != (k_tiles,):
        raise ShapeError(
            f"{here} must have an operand whose first extent is the number of k tiles, {k_tiles}, with "
            f"per_tile=True, not shape {step.operand.shape}; reshape it, or leave per_tile out."
        )


def _check_ref(step: Step, here: str) -> None:
    shape = step.operand.shape
    if len(shape) > 2 or (step.per_tile and len(shape) < 2):
        what = "two dimensions with per_tile=True" if step.per_tile else "one or two dimensions"
        raise UnsupportedError(f"{here} must have a ref of {what}, not of shape {shape}; tl.load it first.")
    _check_rows(f"of epilogue step {step.kind!r}", _as_matrix(step.operand))


def _check_broadcast(step: Step, shape: tuple[int, int], here: str) -> None:
    given = step.operand.shape[1:] if step.per_tile else step.operand.shape
    tail = (1,) * max(0, len(shape) - len(given)) + given
    if len(tail) > len(shape) or any(e not in (1, whole) for e, whole in zip(tail, shape, strict=True)):
        what = "an operand whose part for each k tile" if step.per_tile else "an operand that"
        raise ShapeError(f"{here} must have {what} broadcasts to {shape}, not {given}; reshape it.")


def _dtype_of_integers(inputs: Iterable[str]) -> str:
    """Give the dtype of a whole number in an epilogue: that of the sums where inputs are integers, which stay exact."""
    dtypes = [*inputs, "int32"]
    return "f32" if any(map(is_float, dtypes)) else meet_all(dtypes)


def _as_row(thing: Any, op: str) -> Any:
    """Give a vector as a matrix of one row, where a second operand of a math op may be one; all else as it is."""
    if op != "math" or not isinstance(thing, Ref | Tensor) or len(thing.shape) != 1:
        return thing
    return thing.view((1, *thing.shape)) if isinstance(thing, Tensor) else _as_matrix(thing)


def _as_matrix(ref: Ref) -> Ref:
    """Give a ref to a vector as one to a matrix of one row."""
    if len(ref.shape) != 1:
        return ref
    (extent,), (stride,) = ref.shape, ref.strides
    return evolve(ref, shape=(1, extent), strides=(extent * stride, stride))
