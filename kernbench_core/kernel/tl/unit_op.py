"""Ops of plug-ins: math ops by their names, and ops of any unit of the PE, also of one that configuration added.

What kernels give them by name must be data: phase 2 computes from the log, perhaps in another process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from kernbench_core.callsite import call_site, describe_site
from kernbench_core.compute.ops import Form, MathOp, Operands
from kernbench_core.errors import KernelError, ShapeError
from kernbench_core.kernel.compute_commands import MathCmd
from kernbench_core.kernel.index import IndexTensor
from kernbench_core.kernel.placeholders import Placeholder, describe_given
from kernbench_core.kernel.pointers import Pointer
from kernbench_core.kernel.tl.shapes import ShapeLanguage, compute_now, free_of_memory, kind_of, shape_of
from kernbench_core.kernel.tl.tensor import Tensor
from kernbench_core.params import did_you_mean
from kernbench_core.values.dtypes import dtype_of, is_known
from kernbench_core.values.value import ResultValue
from kernbench_core.wording import brief

_PLAIN: Final = (type(None), bool, int, float, str)
_MAY: Final = "a number, a text, a bool, None, a dtype, or a tuple or list of such"


class UnitCmd(MathCmd):
    """Compute a plug-in's op on the unit of the PE whose kind is `serves`."""

    __slots__ = ("serves",)

    serves: str  # type: ignore[misc]  # of each command its own


class UnitOpLanguage(ShapeLanguage):
    """Ops of plug-ins on the vector unit, and on any other."""

    def _math_op(self, op: MathOp, *operands: Any, **params: object) -> Any:
        """Run a plug-in's math op, which kernels call by its name; `params` go to its rules and its function.

        A timed, logged command of the PE's vector unit; free on index tensors and numbers. ShapeError where the op does
        not exist for the operands, KernelError for a keyword that it does not take or the log could not keep.
        """
        here = f"tl.{op} at {describe_site(call_site())}"
        for thing in operands:
            self.check_operand(thing, op)
        if op.arity not in (0, len(operands)):
            raise ShapeError(f"{here} must be given {op.arity} operand{'s' * (op.arity != 1)}, not {len(operands)}.")
        params = checked_keywords(here, params, self._state.kernels.ops.keywords(op.name))
        shapes, kinds = [shape_of(thing) for thing in operands], tuple(kind_of(thing) for thing in operands)
        if op.form is not Form.ELEMENTWISE and isinstance(params.get("axis"), int) and operands:
            params["axis"] = self._axis(params["axis"], shapes[0], op.name)  # type: ignore[arg-type]
        if free_of_memory(*operands):
            return compute_now(op, operands, **params)
        try:
            shape, dtype = op.shapes(op, shapes, params), op.types(op, kinds, params)
            numbers = None if op.operands is Operands.GIVEN else op.meet(kinds[op.operands is Operands.CHOSEN :])
        except ShapeError as error:
            raise ShapeError(f"{here}: {error}") from None
        reduce = op.form in (Form.REDUCTION, Form.SCAN, Form.NORMALISING)
        return self.math(op, operands, shape, dtype, operand_dtype=numbers, extra=params, reduce=reduce)

    def unit_op(
        self,
        unit: str,
        op: str,
        *inputs: Any,
        shape: Sequence[int] | None = None,
        dtype: Any = None,
        wait: bool = True,
        **params: object,
    ) -> Tensor:
        """Have the PE's unit of kind `unit` compute `op` on `inputs`; a timed, logged command, its result pending.

        `op` is the name that a plug-in registers a function for: fn(params, inputs) -> array of `shape` and `dtype`,
        both by default those of the first input. `params` go into the op record and to the arguments that the function
        has by keyword only; KernelError for others, and for what the log could not keep. The unit sees `op`,
        `elements`, `dtype` and `reads` of the command.
        """
        for thing in inputs:
            self.check_operand(thing, "unit_op")
        like = next((thing for thing in inputs if isinstance(thing, Tensor)), None)
        here = f"tl.unit_op at {describe_site(call_site())}"
        if like is None:
            raise ShapeError(f"{here} must be given at least one tensor; load it, or make it with tl.full.")
        params = checked_keywords(here, params, self._state.kernels.ops.keywords(op))
        extents = like.shape if shape is None else tuple(shape)
        name = str(like.dtype) if dtype is None else dtype_of(dtype)
        reads = tuple(self.operand(thing, like.dtype, "unit_op") for thing in inputs)
        site = call_site()
        block = self._allocate("unit_op", extents, name, site)
        op_id = self.op_id()
        value = ResultValue(op_id, extents, name)
        blocks = (*[thing.block for thing in inputs if isinstance(thing, Tensor)], block)
        command = UnitCmd(op_id, op, site, blocks, reads, value, params, reduce=False)
        command.serves = unit
        self.issue(command, wait)
        return Tensor(self, value, block, f"tl.unit_op({op!r})", site, None if wait else command)


def checked_keywords(
    call: str, given: Mapping[str, object], takes: tuple[frozenset[str], frozenset[str]] | None
) -> dict[str, object]:
    """Return the keywords of a call as the log keeps them; KernelError for a name or a value that will not do.

    `takes` are the names that a call may give and those that it must; None where they are not known. Numbers and dtypes
    of numpy become Python's numbers and kernbench's names.
    """
    if takes is not None:
        may, must = takes
        for name in given:
            if name not in may:
                those = "a keyword that the op takes" if may else "no keywords"
                raise KernelError(
                    f"{call} must be given {those}, not {brief(name)}.{did_you_mean(name, may)} An op takes what the "
                    "`keywords` of its record name, or its function's keyword-only arguments."
                )
        missing = sorted(must - given.keys())
        if missing:
            raise KernelError(f"{call} must be given {missing[0]!r} by name, which the op's function needs; add it.")
    return {name: _kept(call, name, value) for name, value in given.items()}


def _kept(call: str, name: str, value: Any) -> object:
    """Return what the log keeps of a value, the same before and after it is saved."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is tuple or kind is list:
        return kind(_kept(call, name, each) for each in value)
    if isinstance(value, np.generic) and type(value.item()) in _PLAIN:
        return value.item()
    if isinstance(value, np.dtype | type) and is_known(value):
        return dtype_of(value)
    raise KernelError(f"{call} must be given {_MAY} as {name!r}, not {_described(value)}.")


def _described(value: Any) -> str:
    """Call what was given, and say what to do."""
    if isinstance(value, Tensor | IndexTensor | np.ndarray | Placeholder):
        return f"{_shown(value)}; tensors are operands: give it before the keywords"
    if isinstance(value, Pointer):
        return "a pointer; load it, and give the tensor as an operand, before the keywords"
    return f"{describe_given(value)}; give the op data, which its function makes such a thing of"


def _shown(value: Any) -> str:
    return describe_given(value) if isinstance(value, Placeholder) else f"a tensor of shape {tuple(value.shape)}"
