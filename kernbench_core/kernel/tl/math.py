"""The arithmetic of the kernel language: names and meaning are Triton's; each call on a tensor is one timed command.

On index tensors and Python numbers alone (what `arange` and `program_id` lead to) everything is computed at once and
is free.
"""

from __future__ import annotations

import operator as py
from collections.abc import Callable
from enum import StrEnum
from functools import lru_cache
from typing import Any

from kernbench_core.callsite import call_site, describe_site
from kernbench_core.compute.ops import OPS, Form, MathOp, type_rules
from kernbench_core.errors import ShapeError, UnsupportedError
from kernbench_core.kernel.index import IndexTensor, broadcast_shapes
from kernbench_core.kernel.pointers import Pointer
from kernbench_core.kernel.tl.shapes import (
    ShapeLanguage,
    compute_now,
    free_of_memory,
    kind_of,
    met,
    shape_of,
    type_of_result,
)
from kernbench_core.kernel.tl.tensor import Tensor
from kernbench_core.values.dtypes import NAMES, dtype_of, is_float, itemsize
from kernbench_core.wording import brief


class NanRule(StrEnum):
    """What `maximum`, `minimum` and `clamp` do with NaN; Triton's names."""

    NONE = "none"
    """Give the number where the other operand is NaN."""
    ALL = "all"
    """Give NaN where any operand is."""


def _greater(x: Any, y: Any) -> Any:
    """Give the greater of two numbers, and of a number and NaN the number."""
    return y if x != x else x if y != y else max(x, y)


def _less(x: Any, y: Any) -> Any:
    """Give the less of two numbers, and of a number and NaN the number."""
    return y if x != x else x if y != y else min(x, y)


_SUMS = {False: ("int32",), True: tuple(name for name in NAMES if is_float(name) and itemsize(name) <= 4)}
"""To what products of integers, and of floats, may be added."""
_ON_NUMBERS: dict[str, Callable[[Any, Any], Any]] = {
    "add": py.add, "sub": py.sub, "mul": py.mul, "div": py.truediv, "maximum": _greater, "minimum": _less,
}  # fmt: skip

class MathLanguage(ShapeLanguage):
    """Elementwise ops, reductions, scans and products."""

    PropagateNan = NanRule

    # Elementwise ------------------------------------------------------------------------------------

    def unary(self, op: str, x: Any) -> Any:
        """Run an op of one operand."""
        self.check_operand(x, op)
        if free_of_memory(x):
            whole = not isinstance(x, IndexTensor | float) and OPS[op].types is type_rules.floats
            return compute_now(op, (float(x) if whole else x,))
        return self.math(op, (x,), x.shape, type_of_result(op, (x.dtype,)))

    def binary(self, op: str, left: Any, right: Any, **extra: object) -> Any:
        """Run an op of two operands that broadcast; dtypes meet as in Triton."""
        a, b = _look(left), _look(right)
        if a is None or b is None:
            self.check_operand(left, op)
            self.check_operand(right, op)
            if free_of_memory(left, right):
                if isinstance(left, IndexTensor) or isinstance(right, IndexTensor):
                    return compute_now(op, (left, right), **extra)
                on_numbers = None if extra else _ON_NUMBERS.get(op)
                return compute_now(op, (left, right), **extra) if on_numbers is None else on_numbers(left, right)
            a, b = (shape_of(left), kind_of(left)), (shape_of(right), kind_of(right))
        shape, dtype, numbers = _meet(op, a, b)
        return self.math(op, (left, right), shape, dtype, operand_dtype=numbers, extra=extra)

    def operator(self, op: str, left: Any, right: Any) -> Any:
        """Run a Python operator on a tensor; a pointer on the other side does its own arithmetic."""
        if isinstance(left, Pointer) or isinstance(right, Pointer):
            return NotImplemented
        return self.binary(op, left, right)

    def where(self, condition: Any, x: Any, y: Any) -> Any:
        """Choose `x` where `condition` holds, else `y`."""
        for thing in (condition, x, y):
            self.check_operand(thing, "where")
        if free_of_memory(condition, x, y):
            return compute_now("where", (condition, x, y))
        shape = broadcast_shapes(shape_of(condition), shape_of(x), "tl.where")
        shape = broadcast_shapes(shape, shape_of(y), "tl.where")
        return self.math("where", (condition, x, y), shape, met("where", (kind_of(x), kind_of(y))))

    def clamp(self, x: Any, min: Any, max: Any, propagate_nan: NanRule = NanRule.NONE) -> Any:
        """Limit `x` to [min, max]; two commands."""
        return self.minimum(self.maximum(x, min, propagate_nan), max, propagate_nan)

    def fma(self, x: Any, y: Any, z: Any) -> Any:
        """Compute x * y + z; two commands."""
        return self.binary("add", self.binary("mul", x, y), z)

    def maximum(self, x: Any, y: Any, propagate_nan: NanRule = NanRule.NONE) -> Any:
        """Give the greater, elementwise; of a number and NaN the number, unless NaN is to be propagated."""
        return self.binary("maximum", x, y, **_nan(propagate_nan))

    def minimum(self, x: Any, y: Any, propagate_nan: NanRule = NanRule.NONE) -> Any:
        """Give the less, elementwise; of a number and NaN the number, unless NaN is to be propagated."""
        return self.binary("minimum", x, y, **_nan(propagate_nan))

    def fdiv(self, x: Any, y: Any, ieee_rounding: bool = False) -> Any:
        """Divide floats, elementwise, rounding to nearest."""
        return self._of_floats("fdiv", "div", x, y)

    def div_rn(self, x: Any, y: Any) -> Any:
        """Divide floats, elementwise, rounding to nearest."""
        return self._of_floats("div_rn", "div", x, y)

    def sqrt_rn(self, x: Any) -> Any:
        """Compute the square root, rounding to nearest."""
        return self.unary("sqrt", x)

    def _of_floats(self, name: str, op: str, x: Any, y: Any) -> Any:
        for thing in (x, y):
            self.check_operand(thing, name)
        found = met("div", (kind_of(x), kind_of(y)))
        if not is_float(found):
            here = f"tl.{name} at {describe_site(call_site())}"
            raise ShapeError(f"{here} must be given a float operand, not {found}; use / or //.")
        return self.binary(op, x, y)

    def cdiv(self, x: int, div: int) -> int:
        """Divide integers, rounding up; free."""
        return -(-int(x) // int(div))

    def softmax(self, x: Tensor, dim: int | None = None, keep_dims: bool = False) -> Any:
        """Compute the softmax along `dim` (default the first, as in Triton) in steps: max, sub, exp, sum, div."""
        axis = 0 if dim is None else dim
        e = self.unary("exp", self.binary("sub", x, self.reduction("max", x, axis, True)))
        return self.binary("div", e, self.reduction("sum", e, axis, True))

    def add(self, x: Any, y: Any, sanitize_overflow: bool = True) -> Any:
        """Add, elementwise; integers wrap."""
        return self.binary("add", x, y)

    def sub(self, x: Any, y: Any, sanitize_overflow: bool = True) -> Any:
        """Subtract, elementwise; integers wrap."""
        return self.binary("sub", x, y)

    def mul(self, x: Any, y: Any, sanitize_overflow: bool = True) -> Any:
        """Multiply, elementwise; integers wrap."""
        return self.binary("mul", x, y)

    # Reductions and scans -----------------------------------------------------------------------------

    def reduction(self, op: str, x: Any, axis: int | None, keep_dims: bool = False) -> Any:
        """Reduce along `axis`, or everything (None). Sums of small integers are int32; arg… give int32."""
        self.check_operand(x, op)
        shape = shape_of(x)
        if axis is not None:
            axis = self._axis(axis, shape, op)
        extra = {"axis": axis, "keepdims": bool(keep_dims)}
        if free_of_memory(x):
            return compute_now(op, (x,), **extra)
        kept = tuple(1 if axis is None or i == axis else extent for i, extent in enumerate(shape))
        out = kept if keep_dims else tuple(e for i, e in enumerate(shape) if axis is not None and i != axis)
        return self.math(op, (x,), out, type_of_result(op, (x.dtype,)), extra=extra, reduce=True)

    def sum(
        self, input: Any, axis: int | None = None, keep_dims: bool = False, dtype: Any = None, *, keepdims: bool = False
    ) -> Any:
        """Add up along `axis`, or everything; `dtype` is what is added in, and the result's."""
        return self.reduction("sum", self._added(input, dtype), axis, keep_dims or keepdims)

    def _added(self, x: Any, dtype: Any) -> Any:
        return x if dtype is None else self.cast(x, dtype)

    def max(
        self,
        input: Any,
        axis: int | None = None,
        return_indices: bool = False,
        return_indices_tie_break_left: bool = True,
        keep_dims: bool = False,
        *,
        keepdims: bool = False,
    ) -> Any:
        """Give the greatest along `axis`, or of everything; with `return_indices` also where the first of them is."""
        return self._extreme("max", input, axis, return_indices, keep_dims or keepdims)

    def min(
        self,
        input: Any,
        axis: int | None = None,
        return_indices: bool = False,
        return_indices_tie_break_left: bool = True,
        keep_dims: bool = False,
        *,
        keepdims: bool = False,
    ) -> Any:
        """Give the least along `axis`, or of everything; with `return_indices` also where the first of them is."""
        return self._extreme("min", input, axis, return_indices, keep_dims or keepdims)

    def _extreme(self, op: str, x: Any, axis: int | None, with_index: bool, keep_dims: bool) -> Any:
        found = self.reduction(op, x, axis, keep_dims)
        return (found, self.reduction(f"arg{op}", x, axis, keep_dims)) if with_index else found

    def argmax(
        self, input: Any, axis: int | None = None, tie_break_left: bool = True, keep_dims: bool = False, *,
        keepdims: bool = False,
    ) -> Any:  # fmt: skip
        """Give where the greatest is along `axis`, or in everything; the first of equals."""
        return self.reduction("argmax", input, axis, keep_dims or keepdims)

    def argmin(
        self, input: Any, axis: int | None = None, tie_break_left: bool = True, keep_dims: bool = False, *,
        keepdims: bool = False,
    ) -> Any:  # fmt: skip
        """Give where the least is along `axis`, or in everything; the first of equals."""
        return self.reduction("argmin", input, axis, keep_dims or keepdims)

    def histogram(self, input: Any, num_bins: int, mask: Any = None) -> Any:
        """Count how many integers equal 0, 1, … num_bins - 1; all must be among them, where `mask` is true."""
        things = (input,) if mask is None else (input, mask)
        for thing in things:
            self.check_operand(thing, "histogram")
            if is_float(type_of_result("copy", (kind_of(thing),))):
                here = f"tl.histogram at {describe_site(call_site())}"
                raise ShapeError(f"{here} must be given integers, not {kind_of(thing)}; cast first.")
        extra = {"num_bins": int(num_bins)}
        if free_of_memory(*things):
            return compute_now("histogram", things, **extra)
        return self.math("histogram", things, (int(num_bins),), "int32", extra=extra, reduce=True)

    def scan(self, op: str, x: Any, axis: int, reverse: bool = False) -> Any:
        """Accumulate along `axis` (from its end with `reverse`), keeping every partial result."""
        self.check_operand(x, op)
        extra = {"axis": self._axis(axis, shape_of(x), op), "reverse": bool(reverse)}
        if free_of_memory(x):
            return compute_now(op, (x,), **extra)
        return self.math(op, (x,), x.shape, type_of_result(op, (x.dtype,)), extra=extra, reduce=True)

    # Matrix product -----------------------------------------------------------------------------------

    def dot(
        self,
        input: Any,
        other: Any,
        acc: Any = None,
        input_precision: str | None = None,
        allow_tf32: bool | None = None,
        max_num_imprecise_acc: int | None = None,
        out_dtype: Any = "f32",
        *,
        wait: bool = True,
    ) -> Tensor:
        """Multiply (m, k) by (k, n), adding `acc` if given; floats give `out_dtype`, integers int32.

        With `wait=False` the result is on its way; its first use waits, but not its use as `acc` of another product.
        The precision hints change nothing: products are exact to f32. ShapeError when shapes or dtypes do not fit.
        """
        if not _fits(input, other, acc):
            self._refuse_dot(input, other, acc, f"tl.dot at {describe_site(call_site())}")
        dtype = acc.dtype if acc is not None else dtype_of(out_dtype) if is_float(input.dtype) else "int32"
        things = (input, other) if acc is None else (input, other, acc)
        return self.gemm(things, (input.shape[0], other.shape[1]), dtype, wait)

    def _refuse_dot(self, a: Any, b: Any, acc: Any, here: str) -> None:
        for thing in (a, b, a if acc is None else acc):
            if not isinstance(thing, Tensor):
                self.check_operand(thing, "dot")
                raise ShapeError(
                    f"{here} must be given tensors in the scratchpad, not {brief(thing)}; load or make them."
                )
        if len(a.shape) != 2 or len(b.shape) != 2:
            raise UnsupportedError(
                f"{here} must be given two matrices, not shapes {a.shape} and {b.shape}; loop over the batch."
            )
        if "f64" in (a.dtype, b.dtype):
            raise UnsupportedError(
                f"{here} must be given floats of 32 bits at most, not f64, as the matrix units have no wider ones; "
                "cast with .to."
            )
        if not _multiply(a, b):
            raise ShapeError(
                f"{here} must be given operands of one dtype, not {a.dtype} and {b.dtype}; cast one with .to."
            )
        if a.shape[1] != b.shape[0]:
            raise ShapeError(
                f"{here} must be given shapes (m, k) and (k, n), not {a.shape} and {b.shape}; "
                f"{a.shape[1]} and {b.shape[0]} must be equal."
            )
        raise ShapeError(
            f"{here} must be given an accumulator of shape {(a.shape[0], b.shape[1])} and of "
            f"{' or '.join(_SUMS[is_float(a.dtype)])}, not {acc.shape} of {acc.dtype}; make it so."
        )


def _look(thing: Any) -> tuple[tuple[int, ...], Any] | None:
    """Give the shape and kind of a tensor; None for what else may be an operand, or may not."""
    return (thing.value.shape, thing.value.dtype) if type(thing) is Tensor else None


@lru_cache(maxsize=4096)
def _meet(
    op: str, left: tuple[tuple[int, ...], Any], right: tuple[tuple[int, ...], Any]
) -> tuple[tuple[int, ...], str, str]:
    """Give shape and dtype of the result of two operands, each a shape and a kind, and the dtype that they meet in."""
    shape = broadcast_shapes(left[0], right[0], f"tl.{op}")
    kinds = left[1], right[1]
    return shape, type_of_result(op, kinds), met(op, kinds)


def _nan(propagate: Any) -> dict[str, object]:
    """Give the parameter of an op that lets NaN through; nothing for one that does not."""
    if propagate not in tuple(NanRule):
        raise ShapeError(
            f"propagate_nan at {describe_site(call_site())} must be tl.PropagateNan.NONE or tl.PropagateNan.ALL, not "
            f"{propagate!r}; use one of these."
        )
    return {"propagate_nan": True} if propagate == NanRule.ALL else {}


def _multiply(a: Tensor, b: Tensor) -> bool:
    """Tell whether the matrix unit multiplies the two dtypes: one dtype but f64, or two 8-bit floats."""
    return a.dtype == b.dtype != "f64" or all(is_float(x.dtype) and itemsize(x.dtype) == 1 for x in (a, b))


def _fits(a: Any, b: Any, acc: Any) -> bool:
    if type(a) is not Tensor or type(b) is not Tensor:
        return False
    x, y = a.shape, b.shape
    if len(x) != 2 or len(y) != 2 or x[1] != y[0] or not _multiply(a, b):
        return False
    return acc is None or (type(acc) is Tensor and acc.shape == (x[0], y[1]) and acc.dtype in _SUMS[is_float(a.dtype)])


def method_of(op: MathOp) -> Callable[..., Any]:
    """Make the method by which kernels call an op whose call says nothing more than its name."""

    def unary(self: MathLanguage, x: Any) -> Any:
        return self.unary(op.name, x)

    def binary(self: MathLanguage, x: Any, y: Any) -> Any:
        return self.binary(op.name, x, y)

    def reduction(
        self: MathLanguage, input: Any, axis: int | None = None, keep_dims: bool = False, *, keepdims: bool = False
    ) -> Any:
        return self.reduction(op.name, input, axis, keep_dims or keepdims)

    def scan(self: MathLanguage, input: Any, axis: int = 0, reverse: bool = False, dtype: Any = None) -> Any:
        return self.scan(op.name, self._added(input, dtype), axis, reverse)

    made: Callable[..., Any]
    if op.form is Form.REDUCTION:
        made, how = reduction, "along `axis`, or of everything"
    elif op.form is Form.SCAN:
        made, how = scan, "along `axis`"
    else:
        made, how = unary if op.arity == 1 else binary, "elementwise"
    made.__name__, made.__qualname__ = op.name, f"TLContext.{op.name}"
    made.__doc__ = f"Compute {op.name}, {how}."
    return made
