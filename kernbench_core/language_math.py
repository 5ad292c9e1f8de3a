"""The arithmetic of the kernel language: names and meaning are Triton's; each call on a tensor is one timed command.

On index tensors and Python numbers alone (what `arange` and `program_id` lead to) everything is computed at once and
is free.
"""

from __future__ import annotations

import operator as py
from collections.abc import Callable, Sequence
from functools import cache
from math import prod
from typing import Any

import numpy as np

from kernbench_core.callsite import call_site, describe_site
from kernbench_core.compute import evaluate
from kernbench_core.compute_math import ACTIVATIONS, FLOAT_UNARY
from kernbench_core.compute_types import result_type
from kernbench_core.dispatch import Dispatcher
from kernbench_core.dtypes import cast, is_float, promote
from kernbench_core.errors import ShapeError, UnsupportedError
from kernbench_core.index import IndexTensor, broadcast_shapes
from kernbench_core.pointers import Pointer
from kernbench_core.tensor import Handle, Tensor
from kernbench_core.typenames import dtype_of

_ON_NUMBERS: dict[str, Callable[[Any, Any], Any]] = {
    "add": py.add, "sub": py.sub, "mul": py.mul, "div": py.truediv, "maximum": max, "minimum": min,
}  # fmt: skip

result_type_of = cache(result_type)
promoted = cache(promote)


def _free(*things: Any) -> bool:
    """Tell whether no operand is in memory, so that the result is computed at once."""
    return not any(isinstance(thing, Handle) for thing in things)


def _array(thing: Any) -> Any:
    """Give an index tensor or number as an array of one of kernbench's dtypes; integers are int64."""
    array = thing.numpy() if isinstance(thing, IndexTensor) else np.asarray(thing)
    return cast(array, "f32") if array.dtype.kind == "f" else array


def _now(op: str, things: Sequence[Any], **params: object) -> Any:
    """Compute an op on index tensors and numbers."""
    array = np.asarray(evaluate(op, params, [_array(thing) for thing in things]))
    return array.item() if not array.ndim else IndexTensor.of(array)


def _kind(thing: Any) -> Any:
    """Give what dtype promotion needs: a dtype, or the Python type of a number."""
    if isinstance(thing, Tensor | IndexTensor):
        return thing.dtype
    return bool if isinstance(thing, bool | np.bool_) else int if isinstance(thing, int | np.integer) else float


def _type(op: str, kinds: tuple[Any, ...]) -> str:
    """Give the dtype of an op's result; ShapeError with the kernel line where the op does not exist for the dtypes."""
    try:
        return result_type_of(op, kinds)
    except ShapeError as error:
        raise ShapeError(f"tl.{op} at {describe_site(call_site())}: {error}") from None


def _shape(thing: Any) -> tuple[int, ...]:
    return thing.shape if isinstance(thing, Tensor | IndexTensor) else ()


class MathLanguage(Dispatcher):
    """Elementwise ops, reductions, scans and shape changes."""

    # Elementwise ------------------------------------------------------------------------------------

    def unary(self, op: str, x: Any) -> Any:
        """Run an op of one operand."""
        self.check_operand(x, op)
        if _free(x):
            return _now(op, (x if isinstance(x, IndexTensor) or op not in FLOAT_UNARY else float(x),))
        return self.math(op, (x,), x.shape, _type(op, (x.dtype,)))

    def binary(self, op: str, left: Any, right: Any) -> Any:
        """Run an op of two operands that broadcast; dtypes meet as in Triton."""
        self.check_operand(left, op)
        self.check_operand(right, op)
        if _free(left, right):
            if isinstance(left, IndexTensor) or isinstance(right, IndexTensor):
                return _now(op, (left, right))
            return _ON_NUMBERS[op](left, right)
        a, b = _shape(left), _shape(right)
        shape = a if a == b else broadcast_shapes(a, b, f"tl.{op}")
        kinds = (_kind(left), _kind(right))
        return self.math(op, (left, right), shape, _type(op, kinds), operand_dtype=promoted(kinds))

    def operator(self, op: str, left: Any, right: Any) -> Any:
        """Run a Python operator on a tensor; a pointer on the other side does its own arithmetic."""
        if isinstance(left, Pointer) or isinstance(right, Pointer):
            return NotImplemented
        return self.binary(op, left, right)

    def where(self, condition: Any, x: Any, y: Any) -> Any:
        """Choose `x` where `condition` holds, else `y`."""
        for thing in (condition, x, y):
            self.check_operand(thing, "where")
        if _free(condition, x, y):
            return _now("where", (condition, x, y))
        shape = broadcast_shapes(broadcast_shapes(_shape(condition), _shape(x), "tl.where"), _shape(y), "tl.where")
        return self.math("where", (condition, x, y), shape, promoted((_kind(x), _kind(y))))

    def clamp(self, x: Any, min: Any, max: Any) -> Any:
        """Limit `x` to [min, max]; two commands."""
        return self.binary("minimum", self.binary("maximum", x, min), max)

    def fma(self, x: Any, y: Any, z: Any) -> Any:
        """Compute x * y + z; two commands."""
        return self.binary("add", self.binary("mul", x, y), z)

    def maximum(self, x: Any, y: Any) -> Any:
        """Give the greater, elementwise."""
        return self.binary("maximum", x, y)

    def minimum(self, x: Any, y: Any) -> Any:
        """Give the less, elementwise."""
        return self.binary("minimum", x, y)

    def cdiv(self, x: int, div: int) -> int:
        """Divide integers, rounding up; free."""
        return -(-int(x) // int(div))

    def softmax(self, x: Tensor, dim: int | None = None, keep_dims: bool = False) -> Any:
        """Compute the softmax along `dim` (default the first, as in Triton) in steps: max, sub, exp, sum, div."""
        axis = 0 if dim is None else dim
        e = self.unary("exp", self.binary("sub", x, self.reduction("max", x, axis, True)))
        return self.binary("div", e, self.reduction("sum", e, axis, True))

    # Reductions and scans -----------------------------------------------------------------------------

    def reduction(self, op: str, x: Any, axis: int | None, keep_dims: bool = False) -> Any:
        """Reduce along `axis`, or everything (None). Sums of small integers are int32; arg… give int32."""
        self.check_operand(x, op)
        shape = _shape(x)
        if axis is not None:
            axis = self._axis(axis, shape, op)
        extra = {"axis": axis, "keepdims": bool(keep_dims)}
        if _free(x):
            return _now(op, (x,), **extra)
        kept = tuple(1 if axis is None or i == axis else extent for i, extent in enumerate(shape))
        out = kept if keep_dims else tuple(e for i, e in enumerate(shape) if axis is not None and i != axis)
        return self.math(op, (x,), out, _type(op, (x.dtype,)), extra=extra, reduce=True)

    def scan(self, op: str, x: Any, axis: int, reverse: bool = False) -> Any:
        """Accumulate along `axis` (from its end with `reverse`), keeping every partial result."""
        self.check_operand(x, op)
        extra = {"axis": self._axis(axis, _shape(x), op), "reverse": bool(reverse)}
        if _free(x):
            return _now(op, (x,), **extra)
        return self.math(op, (x,), x.shape, _type(op, (x.dtype,)), extra=extra, reduce=True)

    def _axis(self, axis: int, shape: tuple[int, ...], op: str) -> int:
        if not -len(shape) <= axis < len(shape):
            raise ShapeError(
                f"tl.{op} at {describe_site(call_site())} must have an axis of shape {shape}, not {axis}; "
                f"use one from {-len(shape)} to {len(shape) - 1}."
            )
        return axis % len(shape)

    # Moving and casting -------------------------------------------------------------------------------

    def cast(self, x: Any, dtype: Any) -> Any:
        """Convert to `dtype`, rounding once; free when it has that dtype already."""
        name = dtype_of(dtype)
        if isinstance(x, Tensor):
            return x if x.dtype == name else self.math("cast", (x,), x.shape, name)
        self.check_operand(x, "cast")
        return _now("cast", (x,), dtype=name)

    def full(self, shape: Sequence[int], value: Any, dtype: Any) -> Tensor:
        """Make a tensor of one repeated number; a timed math command that takes scratchpad space."""
        self.check_operand(value, "full")
        extents = tuple(int(extent) for extent in shape)
        return self.math("full", (value,), extents, dtype_of(dtype))

    def zeros(self, shape: Sequence[int], dtype: Any) -> Tensor:
        """Make a tensor of zeros; a timed math command that takes scratchpad space."""
        return self.full(shape, 0, dtype)

    def zeros_like(self, x: Tensor) -> Tensor:
        """Make zeros of the shape and dtype of `x`."""
        return self.full(x.shape, 0, x.dtype)

    def reshape(self, x: Any, *shape: Any) -> Any:
        """Give the elements in row-major order under another shape; free."""
        wanted = _extents(shape)
        size = prod(_shape(x))
        if -1 in wanted:
            known = -prod(wanted)
            wanted = tuple(size // known if extent == -1 and known else extent for extent in wanted)
        if prod(wanted) != size:
            raise ShapeError(
                f"tl.reshape at {describe_site(call_site())} must keep the {size} elements of shape {_shape(x)}, and "
                f"{wanted} holds {prod(wanted)}; choose a shape of the same size."
            )
        return x.view(wanted) if isinstance(x, Tensor) else x.reshape(wanted)

    def expand_dims(self, x: Any, axis: int) -> Any:
        """Insert a dimension of extent 1 at `axis`; free."""
        shape = list(_shape(x))
        shape.insert(axis if axis >= 0 else axis + len(shape) + 1, 1)
        return self.reshape(x, tuple(shape))

    def broadcast_to(self, x: Any, *shape: Any) -> Any:
        """Repeat along dimensions of extent 1 up to `shape`; a timed math command (arithmetic broadcasts by itself)."""
        wanted = _extents(shape)
        if isinstance(x, IndexTensor):
            return x.broadcast_to(wanted)
        if broadcast_shapes(_shape(x), wanted, "tl.broadcast_to") != wanted:
            here = f"tl.broadcast_to at {describe_site(call_site())}"
            raise ShapeError(f"{here} must be given a shape that {_shape(x)} broadcasts to, not {wanted}; correct it.")
        if not isinstance(x, Tensor):
            return self.full(wanted, x, promoted((_kind(x),)))
        return x if x.shape == wanted else self.math("broadcast_to", (x,), wanted, x.dtype)

    def broadcast(self, x: Any, y: Any) -> tuple[Any, Any]:
        """Broadcast two tensors to their common shape."""
        shape = broadcast_shapes(_shape(x), _shape(y), "tl.broadcast")
        return self.broadcast_to(x, shape), self.broadcast_to(y, shape)

    def trans(self, x: Any, *order: Any) -> Any:
        """Reorder dimensions (the last two swap by default); a timed math command."""
        rank = len(_shape(x))
        wanted = _extents(order) if order else (*range(rank - 2), rank - 1, rank - 2)
        if sorted(wanted) != list(range(rank)):
            raise ShapeError(
                f"tl.trans at {describe_site(call_site())} must be given an order of the {rank} dimensions of shape "
                f"{_shape(x)}, not {wanted}; name each once."
            )
        if isinstance(x, IndexTensor):
            return x.permute(wanted)
        shape = tuple(x.shape[i] for i in wanted)
        return self.math("trans", (x,), shape, x.dtype, extra={"axes": wanted})

    def permute(self, x: Any, *order: Any) -> Any:
        """Reorder dimensions; a timed math command."""
        return self.trans(x, *order)

    def ravel(self, x: Any) -> Any:
        """Give the elements as one dimension; free."""
        return self.reshape(x, (prod(_shape(x)),))

    def view(self, x: Any, *shape: Any) -> Any:
        """Give the elements under another shape; free."""
        return self.reshape(x, *shape)

    def cat(self, left: Any, right: Any, can_reorder: bool = False, dim: int = 0) -> Any:
        """Join two tensors along `dim`; a timed math command. The order is always kept."""
        if _free(left, right):
            return _now("cat", (left, right), axis=dim)
        a, b = _shape(left), _shape(right)
        axis = self._axis(dim, a, "cat")
        if len(a) != len(b) or any(x != y for i, (x, y) in enumerate(zip(a, b, strict=True)) if i != axis):
            raise ShapeError(
                f"tl.cat at {describe_site(call_site())} must be given shapes that differ along dimension {axis} only, "
                f"not {a} and {b}; reshape one of them."
            )
        shape = (*a[:axis], a[axis] + b[axis], *a[axis + 1 :])
        return self.math("cat", (left, right), shape, promoted((_kind(left), _kind(right))), extra={"axis": axis})

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
    ) -> Tensor:
        """Multiply (m, k) by (k, n), adding `acc` if given; floats give `out_dtype`, integers int32.

        The precision hints are accepted and change nothing: products are exact to f32. ShapeError when shapes or
        dtypes do not fit.
        """
        here = f"tl.dot at {describe_site(call_site())}" if not _fits(input, other, acc) else ""
        if here:
            self._refuse_dot(input, other, acc, here)
        dtype = acc.dtype if acc is not None else dtype_of(out_dtype) if is_float(input.dtype) else "int32"
        things = (input, other) if acc is None else (input, other, acc)
        return self.gemm(things, (input.shape[0], other.shape[1]), dtype)

    def _refuse_dot(self, a: Any, b: Any, acc: Any, here: str) -> None:
        for thing in (a, b, a if acc is None else acc):
            if not isinstance(thing, Tensor):
                self.check_operand(thing, "dot")
                raise ShapeError(f"{here} must be given tensors in the scratchpad, not {thing!r}; load or make them.")
        if len(a.shape) != 2 or len(b.shape) != 2:
            raise UnsupportedError(
                f"{here} must be given two matrices, not shapes {a.shape} and {b.shape}; loop over the batch."
            )
        if a.dtype != b.dtype:
            raise ShapeError(
                f"{here} must be given operands of one dtype, not {a.dtype} and {b.dtype}; cast one with .to."
            )
        if a.shape[1] != b.shape[0]:
            raise ShapeError(
                f"{here} must be given shapes (m, k) and (k, n), not {a.shape} and {b.shape}; "
                f"{a.shape[1]} and {b.shape[0]} must be equal."
            )
        raise ShapeError(
            f"{here} must be given an accumulator of shape {(a.shape[0], b.shape[1])}, not {acc.shape}; make it that "
            "size."
        )


def _fits(a: Any, b: Any, acc: Any) -> bool:
    if type(a) is not Tensor or type(b) is not Tensor:
        return False
    x, y = a.shape, b.shape
    good = len(x) == 2 and len(y) == 2 and x[1] == y[0] and a.dtype == b.dtype
    return good and (acc is None or (type(acc) is Tensor and acc.shape == (x[0], y[1])))


def _extents(shape: Sequence[Any]) -> tuple[int, ...]:
    """Read a shape given as one sequence or as several numbers."""
    given = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
    return tuple(int(extent) for extent in given)


def _add_named(name: str, method: Callable[..., Any], doc: str) -> None:
    method.__name__ = name
    method.__qualname__ = f"MathLanguage.{name}"
    method.__doc__ = doc
    setattr(MathLanguage, name, method)


def _install() -> None:
    """Give the language one method for each op whose call says nothing more than its name."""

    def unary(op: str) -> Callable[..., Any]:
        return lambda self, x: self.unary(op, x)

    def reduction(op: str) -> Callable[..., Any]:
        return lambda self, input, axis=None, keep_dims=False: self.reduction(op, input, axis, keep_dims)

    def scan(op: str) -> Callable[..., Any]:
        return lambda self, input, axis=0, reverse=False: self.scan(op, input, axis, reverse)

    for op in (*(op for op in FLOAT_UNARY if op not in ACTIVATIONS), "abs", "floor", "ceil"):
        _add_named(op, unary(op), f"Compute {op}, elementwise.")
    for op in ("sum", "max", "min", "argmax", "argmin"):
        _add_named(op, reduction(op), f"Compute {op} along `axis`, or of everything.")
    for op in ("cumsum", "cumprod"):
        _add_named(op, scan(op), f"Compute {op} along `axis`.")


_install()
