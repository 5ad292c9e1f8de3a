"""The part of the kernel language that moves, reshapes and casts, and what arithmetic needs to know of operands.

On index tensors and Python numbers alone (what `arange` and `program_id` lead to) everything is computed at once and
is free.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import prod
from operator import index
from typing import Any

from kernbench_core.callsite import call_site, describe_site
from kernbench_core.compute.ops import MathOp
from kernbench_core.compute.result_types import operand_type, result_type
from kernbench_core.errors import ShapeError, UnsupportedError
from kernbench_core.kernel.index import IndexTensor, broadcast_shapes, compute_index, extents, kind_of_number
from kernbench_core.kernel.tl.dispatch import Dispatcher
from kernbench_core.kernel.tl.tensor import Handle, Tensor
from kernbench_core.values.dtypes import dtype_of, is_float, is_int, itemsize, numpy_dtype
from kernbench_core.wording import brief

_result_type = cache(result_type)
_operand_type = cache(operand_type)


def _whole(number: Any) -> int | None:
    """Return a whole number as Python's; None for what is none, or has a shape."""
    if getattr(number, "shape", ()):
        return None
    try:
        return index(number)
    except TypeError:
        return None


def free_of_memory(*things: Any) -> bool:
    """Tell whether no operand is in memory, so that the result is computed at once."""
    return not any(isinstance(thing, Handle) for thing in things)


def compute_now(op: str | MathOp, things: Sequence[Any], **params: object) -> Any:
    """Compute an op on index tensors and numbers."""
    return compute_index(op, things, f"tl.{op}", **params)


def kind_of(thing: Any) -> Any:
    """Give what dtype promotion needs: a dtype, or the Python type of a number."""
    return thing.dtype if isinstance(thing, Tensor | IndexTensor) else kind_of_number(thing)


def type_of_result(op: str | MathOp, kinds: tuple[Any, ...]) -> str:
    """Give the dtype of an op's result; ShapeError with the kernel line where the op does not exist for the dtypes."""
    try:
        return _result_type(op, kinds)
    except ShapeError as error:
        raise ShapeError(f"tl.{op} at {describe_site(call_site())}: {error}") from None


def met(op: str | MathOp, kinds: tuple[Any, ...]) -> str:
    """Give the dtype that operands of an op meet in; ShapeError with the kernel line where there is none."""
    try:
        return _operand_type(op, kinds)
    except ShapeError as error:
        raise ShapeError(f"tl.{op} at {describe_site(call_site())}: {error}") from None


def shape_of(thing: Any) -> tuple[int, ...]:
    """Give the shape of a tensor; a number has none."""
    return thing.shape if isinstance(thing, Tensor | IndexTensor) else ()


class ShapeLanguage(Dispatcher):
    """Casts, shapes, and moves of elements."""

    def _axis(self, axis: int, shape: tuple[int, ...], op: str) -> int:
        if not shape:
            raise ShapeError(
                f"tl.{op} at {describe_site(call_site())} must be given a tensor of at least one dimension, not a "
                "scalar; reshape it."
            )
        place = _whole(axis)
        if place is None or not -len(shape) <= place < len(shape):
            given = f"a tensor of shape {of}" if (of := getattr(axis, "shape", ())) else brief(axis)
            given = given if place is None else f"the invalid axis {place}"
            other = f", or tl.{op}imum of two operands" if op in ("max", "min") and place is None else ""
            raise ShapeError(
                f"tl.{op} at {describe_site(call_site())} must have an axis of shape {shape}, not {given}; "
                f"use one from {-len(shape)} to {len(shape) - 1}{other}."
            )
        return place % len(shape)

    def _tensor(self, x: Any, op: str) -> Any:
        """Return `x`, a tensor of data or of indices; raise a sentence for anything else."""
        self.check_operand(x, op)
        if isinstance(x, Tensor | IndexTensor):
            return x
        raise ShapeError(
            f"tl.{op} at {describe_site(call_site())} must be given a tensor, not the number {x}; make one with "
            "tl.full."
        )

    def cast(self, x: Any, dtype: Any, fp_downcast_rounding: str | None = None, bitcast: bool = False) -> Any:
        """Convert to `dtype`, rounding to nearest once; free when it has that dtype already.

        With `bitcast` the bytes are kept; the element sizes must agree. Rounding "rtz" is refused.
        """
        name = dtype_of(dtype)
        if fp_downcast_rounding not in (None, "rtne"):
            raise UnsupportedError(
                f"tl.cast at {describe_site(call_site())} must have fp_downcast_rounding 'rtne', not "
                f"{fp_downcast_rounding!r}; the units round to nearest."
            )
        if bitcast:
            return self._bitcast(x, name)
        if isinstance(x, Tensor):
            return x if x.dtype == name else self.math("cast", (x,), x.shape, name)
        self.check_operand(x, "cast")
        return x.to(name) if isinstance(x, IndexTensor) else compute_now("cast", (x,), dtype=name)

    def _bitcast(self, x: Any, name: str) -> Any:
        self.check_operand(x, "cast")
        here = f"tl.cast at {describe_site(call_site())}"
        if not isinstance(x, Tensor | IndexTensor):
            raise UnsupportedError(f"{here} must be given a tile to keep the bits of, not {brief(x)}; load or make it.")
        if itemsize(name) != itemsize(x.dtype):
            raise ShapeError(f"{here} must keep the element size with bitcast=True, not go from {x.dtype} to {name}.")
        if x.dtype == name:
            return x
        if isinstance(x, IndexTensor) and is_int(x.dtype) and is_int(name):
            return x.of(x.numpy().astype(numpy_dtype(x.dtype)).view(numpy_dtype(name)), name)
        return self.math("bitcast", (x,), x.shape, name)

    def full(self, shape: Sequence[int], value: Any, dtype: Any) -> Tensor:
        """Make a tensor of one repeated number; a timed math command that takes scratchpad space."""
        self.check_operand(value, "full")
        extents = tuple(int(extent) for extent in shape)
        return self.math("full", (value,), extents, dtype_of(dtype))

    def zeros(self, shape: Sequence[int], dtype: Any) -> Tensor:
        """Make a tensor of zeros; a timed math command that takes scratchpad space."""
        return self.full(shape, 0, dtype)

    def zeros_like(self, input: Any) -> Tensor:
        """Make zeros of the shape and dtype of `input`."""
        like = self._tensor(input, "zeros_like")
        return self.full(like.shape, 0, like.dtype)

    def reshape(self, x: Any, *shape: Any, can_reorder: bool = False) -> Any:
        """Give the elements in row-major order under another shape; free. The order is always kept."""
        self._tensor(x, "reshape")
        wanted = extents(shape)
        size = prod(shape_of(x))
        if wanted.count(-1) == 1:
            known = -prod(wanted)
            wanted = tuple(size // known if extent == -1 and known else extent for extent in wanted)
        if prod(wanted) != size or min(wanted, default=0) < 0:
            raise ShapeError(
                f"tl.reshape at {describe_site(call_site())} must keep the {size} elements of shape {shape_of(x)}, and "
                f"{wanted} holds {prod(wanted)}; choose a shape of the same size."
            )
        return x.view(wanted) if isinstance(x, Tensor) else x.reshape(wanted)

    def expand_dims(self, x: Any, axis: int | Sequence[int]) -> Any:
        """Insert a dimension of extent 1 at `axis`, or at each of several of the result; free."""
        shape = list(shape_of(x))
        for at in self._inserted(axis, len(shape)):
            shape.insert(at, 1)
        return self.reshape(x, tuple(shape))

    def _inserted(self, axis: int | Sequence[int], rank: int) -> list[int]:
        """Return the places of new dimensions among those of the result, ascending; ShapeError for two at one."""
        axes = [axis] if isinstance(axis, int) else list(axis)
        room = (1,) * (rank + len(axes))
        places = sorted(self._axis(each, room, "expand_dims") for each in axes)
        if len(set(places)) < len(places):
            here = f"tl.expand_dims at {describe_site(call_site())}"
            raise ShapeError(f"{here} must be given each axis once, not duplicate axes, normalized axes = {places}.")
        return places

    def broadcast_to(self, x: Any, *shape: Any) -> Any:
        """Repeat along dimensions of extent 1 up to `shape`; a timed math command (arithmetic broadcasts by itself)."""
        wanted = extents(shape)
        if isinstance(x, IndexTensor):
            return x.broadcast_to(wanted)
        if broadcast_shapes(shape_of(x), wanted, "tl.broadcast_to") != wanted:
            here = f"tl.broadcast_to at {describe_site(call_site())}"
            given = shape_of(x)
            raise ShapeError(f"{here} must be given a shape that {given} broadcasts to, not {wanted}; correct it.")
        if not isinstance(x, Tensor):
            return self.full(wanted, x, met("full", (kind_of(x),)))
        return x if x.shape == wanted else self.math("broadcast_to", (x,), wanted, x.dtype)

    def broadcast(self, x: Any, y: Any) -> tuple[Any, Any]:
        """Broadcast two tensors to their common shape."""
        shape = broadcast_shapes(shape_of(x), shape_of(y), "tl.broadcast")
        return self.broadcast_to(x, shape), self.broadcast_to(y, shape)

    def trans(self, x: Any, *order: Any) -> Any:
        """Reorder dimensions (the last two swap by default); a timed math command."""
        rank = len(self._tensor(x, "trans").shape)
        if rank < 2 and not order:
            raise ShapeError(
                f"tl.trans at {describe_site(call_site())} must be given an order of the dimensions of shape "
                f"{x.shape}, as there are no two to swap; use tl.reshape for a column."
            )
        wanted = extents(order) if order else (*range(rank - 2), rank - 1, rank - 2)
        if sorted(wanted) != list(range(rank)):
            raise ShapeError(
                f"tl.trans at {describe_site(call_site())} must be given an order of the {rank} dimensions of shape "
                f"{shape_of(x)}, not {wanted}; name each once."
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
        return self.reshape(x, (prod(shape_of(x)),))

    def view(self, x: Any, *shape: Any) -> Any:
        """Give the elements under another shape; free."""
        return self.reshape(x, *shape)

    def cat(self, left: Any, right: Any, can_reorder: bool = False, dim: int = 0) -> Any:
        """Join two tensors along `dim`; a timed math command. The order is always kept."""
        a, b = (self._tensor(x, "cat").shape for x in (left, right))
        if free_of_memory(left, right):
            return compute_now("cat", (left, right), axis=dim)
        axis = self._axis(dim, a, "cat")
        if len(a) != len(b) or any(x != y for i, (x, y) in enumerate(zip(a, b, strict=True)) if i != axis):
            raise ShapeError(
                f"tl.cat at {describe_site(call_site())} must be given shapes that differ along dimension {axis} only, "
                f"not {a} and {b}; reshape one of them."
            )
        shape = (*a[:axis], a[axis] + b[axis], *a[axis + 1 :])
        return self.math("cat", (left, right), shape, met("cat", (kind_of(left), kind_of(right))), extra={"axis": axis})

    def flip(self, x: Any, dim: int | None = None) -> Any:
        """Reverse the order along `dim`, the last by default; a timed math command."""
        self.check_operand(x, "flip")
        extra = {"axis": self._axis(-1 if dim is None else dim, shape_of(x), "flip")}
        if free_of_memory(x):
            return compute_now("flip", (x,), **extra)
        return self.math("flip", (x,), x.shape, x.dtype, extra=extra)

    def join(self, a: Any, b: Any) -> Any:
        """Join two tensors, broadcast, in a new last dimension of extent 2; a timed math command."""
        for thing in (a, b):
            self.check_operand(thing, "join")
        shape = broadcast_shapes(shape_of(a), shape_of(b), "tl.join")
        left, right = (x if shape_of(x) == shape else self.broadcast_to(x, shape) for x in (a, b))
        if free_of_memory(a, b):
            return compute_now("join", (left, right))
        return self.math("join", (left, right), (*shape, 2), met("join", (kind_of(a), kind_of(b))))

    def interleave(self, a: Any, b: Any) -> Any:
        """Take elements of two tensors, broadcast, in turns along the last dimension; a timed math command."""
        joined = self.join(a, b)
        shape = shape_of(joined)
        return self.reshape(joined, (*shape[:-2], 2 * shape[-2])) if len(shape) > 1 else joined

    def split(self, a: Any) -> tuple[Any, Any]:
        """Split in two along the last dimension, whose extent must be 2; two timed math commands."""
        self.check_operand(a, "split")
        shape = shape_of(a)
        if shape[-1:] != (2,):
            here = f"tl.split at {describe_site(call_site())}"
            raise ShapeError(f"{here} must be given a last dimension of extent 2, not shape {shape}; reshape it.")
        if free_of_memory(a):
            return compute_now("split", (a,), part=0), compute_now("split", (a,), part=1)
        left, right = (self.math("split", (a,), shape[:-1], a.dtype, extra={"part": part}) for part in (0, 1))
        return left, right

    def gather(self, src: Any, index: Any, axis: int) -> Any:
        """Give src[…, index[…, i, …], …] along `axis`: as many elements as `index` has, of its shape; timed."""
        self.check_operand(src, "gather")
        self.check_operand(index, "gather")
        axis = self._axis(axis, shape_of(src), "gather")
        from_, to = list(shape_of(src)), list(shape_of(index))
        fits = len(from_) == len(to) and from_[:axis] + from_[axis + 1 :] == to[:axis] + to[axis + 1 :]
        if not fits or is_float(met("gather", (kind_of(index),))):
            raise ShapeError(
                f"tl.gather at {describe_site(call_site())} must be given integers whose shape differs from "
                f"{shape_of(src)} along dimension {axis} only, not {kind_of(index)} of shape {shape_of(index)}; "
                "reshape or cast them."
            )
        if free_of_memory(src, index):
            return compute_now("gather", (src, index), axis=axis)
        return self.math("gather", (src, index), shape_of(index), kind_of(src), extra={"axis": axis})

    def squeeze(self, x: Any, dim: int) -> Any:
        """Leave out dimension `dim`, whose extent must be 1; free."""
        shape = list(shape_of(x))
        at = self._axis(dim, tuple(shape), "squeeze")
        if shape[at] != 1:
            here = f"tl.squeeze at {describe_site(call_site())}"
            raise ShapeError(f"{here} must leave out a dimension of extent 1, not {dim} of {shape_of(x)}; correct it.")
        return self.reshape(x, (*shape[:at], *shape[at + 1 :]))

    def unsqueeze(self, x: Any, dim: int) -> Any:
        """Insert a dimension of extent 1 at `dim`; free."""
        return self.expand_dims(x, dim)
