"""`tl` of the reference interpreter: every call does its work at once. There is no time and nothing is pending."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.reference import numerics as num
from tests.reference.messages import Messages
from tests.reference.numerics import BOOL, F32, I32, I64, U32, Array
from tests.reference.tiles import Operand, Pointer, ShapeError, Tile, as_operand, as_tile, binary, computed

if TYPE_CHECKING:
    from tests.reference.posts import Post

F32_MAX = float(np.finfo(F32).max)
MATH_OPS = {"add": "add", "sub": "sub", "mul": "mul", "div": "truediv", "maximum": "maximum", "minimum": "minimum"}
STEPS = {**MATH_OPS, "bias": "add", "scale": "mul", "dequant": "mul"}


class Tl(Messages):
    """`tl` of one program."""

    def __init__(self, program: tuple[int, ...], grid: tuple[int, ...], post: Post) -> None:
        super().__init__(post, program[0], grid[0])
        self._program, self._grid = program, grid

    def __getattr__(self, name: str) -> Any:
        if name in num.NAMES:
            return num.NAMES[name]
        if name in num.UNARY:
            return lambda x: self._unary(name, x)
        raise AttributeError(name)

    def program_id(self, axis: int) -> int:
        return self._program[axis]

    def num_programs(self, axis: int) -> int:
        return self._grid[axis]

    @staticmethod
    def arange(start: int, end: int) -> Tile:
        return Tile(np.arange(start, end, dtype=I64), None, True)

    @staticmethod
    def cdiv(a: int, b: int) -> int:
        return -(-a // b)

    static_range = range = staticmethod(range)

    # memory

    def load(
        self,
        pointer: Pointer,
        mask: Tile | None = None,
        other: Any = None,
        shape: Sequence[int] | None = None,
        strides: Sequence[int] | None = None,
        dtype: Any = None,
        **hints: Any,
    ) -> Tile:
        if dtype is not None and shape is not None:
            return self._bits(pointer, shape, strides, num.dtype_of(dtype))
        places = pointer.places if shape is None else pointer.tile_of(shape, strides)
        if mask is None:
            return pointer.tensor.read(places)
        places, on = np.broadcast_arrays(places, mask.known().exact())
        filler = as_tile(0 if other is None else other, pointer.dtype).to(pointer.dtype)
        data = np.broadcast_to(filler.data, places.shape).copy()
        slack = np.broadcast_to(0.0 if filler.slack is None else filler.slack, places.shape).copy()
        read = pointer.tensor.read(places[on])
        data[on], slack[on] = read.data, read.slack
        return Tile(data, slack if slack.any() else None, pending=read.pending or filler.pending)

    @staticmethod
    def _bits(pointer: Pointer, shape: Sequence[int], strides: Sequence[int] | None, dtype: np.dtype[Any]) -> Tile:
        start = int(pointer.places) * pointer.dtype.itemsize
        if start % dtype.itemsize:
            raise ShapeError
        first = Pointer(pointer.tensor, np.asarray(start // dtype.itemsize))
        return pointer.tensor.read_bits(first.tile_of(shape, strides), dtype)

    def store(
        self,
        pointer: Pointer,
        value: Any,
        mask: Tile | None = None,
        shape: Sequence[int] | None = None,
        strides: Sequence[int] | None = None,
        **hints: Any,
    ) -> None:
        tile = as_tile(value, pointer.dtype).to(pointer.dtype)
        whole = shape if shape is not None else tile.shape if strides is not None or not pointer.shape else None
        places = pointer.places if whole is None else pointer.tile_of(whole, strides)
        tile = tile.view(lambda array: np.broadcast_to(array, places.shape))
        if mask is None:
            pointer.tensor.write(places, tile)
            return
        if mask.slack is not None and mask.slack.any():  # either the old or the new content
            on = np.broadcast_to(mask.data, places.shape)
            old = pointer.tensor.read(places)
            far = np.where(np.broadcast_to(mask.slack > 0, places.shape), num.distance(old.data, tile.data), 0.0)
            new = self.where(Tile(on), tile, old)
            pointer.tensor.write(places, Tile(new.data, num.both(new.slack, far)))
            return
        on = np.broadcast_to(mask.data, places.shape)
        pointer.tensor.write(places[on], tile.view(lambda array: array[on]))

    # making and moving

    def full(self, shape: Sequence[int], value: Operand, dtype: Any) -> Tile:
        return self.broadcast_to(as_tile(value, num.dtype_of(dtype)).to(dtype), shape)

    def zeros(self, shape: Sequence[int], dtype: Any) -> Tile:
        return self.full(shape, 0, dtype)

    def zeros_like(self, x: Tile) -> Tile:
        return self.full(x.shape, 0, x.dtype)

    @staticmethod
    def _flat(extents: tuple[Any, ...]) -> tuple[int, ...]:
        return tuple(extents[0]) if len(extents) == 1 and not isinstance(extents[0], int) else extents

    def reshape(self, x: Tile, *shape: Any) -> Tile:
        return x.view(lambda array: array.reshape(self._flat(shape)))

    view = reshape

    def ravel(self, x: Tile) -> Tile:
        return x.view(np.ravel)

    def expand_dims(self, x: Tile, axis: int) -> Tile:
        return x.view(lambda array: np.expand_dims(array, axis))

    unsqueeze = expand_dims

    def trans(self, x: Tile, *dims: Any) -> Tile:
        return x.view(lambda array: np.transpose(array, self._flat(dims) if dims else None))

    permute = trans

    def broadcast_to(self, x: Tile, *shape: Any) -> Tile:
        return x.view(lambda array: np.broadcast_to(array, self._flat(shape)))

    def broadcast(self, x: Tile, y: Tile) -> tuple[Tile, Tile]:
        shape = np.broadcast_shapes(x.shape, y.shape)
        return self.broadcast_to(x, shape), self.broadcast_to(y, shape)

    def flip(self, x: Tile, dim: int | None = None) -> Tile:
        return x.view(lambda array: np.flip(array, -1 if dim is None else dim))

    @staticmethod
    def _together(function: Callable[[list[Array]], Array], *tiles: Tile) -> Tile:
        slack = [np.zeros(x.shape) if x.slack is None else x.slack for x in tiles]
        return Tile(function([x.data for x in tiles]), function(slack) if any(s.any() for s in slack) else None)

    def cat(self, x: Tile, y: Tile, can_reorder: bool = False, dim: int = 0) -> Tile:
        return self._together(lambda arrays: np.concatenate(arrays, dim), x, y)

    def join(self, x: Tile, y: Tile) -> Tile:
        return self._together(lambda arrays: np.stack(arrays, -1), *self.broadcast(x, y))

    def split(self, x: Tile) -> tuple[Tile, Tile]:
        return x.view(lambda array: array[..., 0]), x.view(lambda array: array[..., 1])

    def interleave(self, x: Tile, y: Tile) -> Tile:
        joined = self.join(x, y)
        return joined.view(lambda array: array.reshape(*array.shape[:-2], 2 * array.shape[-2]))

    def gather(self, x: Tile, index: Tile, axis: int) -> Tile:
        return x.view(lambda array: np.take_along_axis(array, index.exact().astype(np.int64), axis))

    def histogram(self, x: Tile, num_bins: int) -> Tile:
        return Tile(np.bincount(x.exact().reshape(-1), minlength=num_bins).astype(I32))

    # arithmetic

    def where(self, condition: Tile, x: Operand, y: Operand) -> Tile:
        condition = condition if condition.data.dtype == BOOL else condition != 0
        known = next(value for value in (x, y) if isinstance(value, Tile))
        a, b = (as_tile(value, as_operand(known).data.dtype) for value in (x, y))
        common = num.meet(a.data.dtype, b.data.dtype)
        pairs = [(tile.data, tile.slack) for tile in (condition, a.to(common), b.to(common))]
        return Tile(*num.apply(lambda c, p, q: np.where(c, p, q).astype(common), pairs))

    def maximum(self, x: Operand, y: Operand) -> Tile:
        return binary("maximum", x, y)

    def minimum(self, x: Operand, y: Operand) -> Tile:
        return binary("minimum", x, y)

    def clamp(self, x: Tile, low: Operand, high: Operand) -> Tile:
        return self.minimum(self.maximum(x, low), high)

    def fma(self, x: Tile, y: Tile, z: Tile) -> Tile:
        return x * y + z  # type: ignore[operator,no-any-return]

    def fdiv(self, x: Operand, y: Operand) -> Tile:
        return binary("truediv", x, y)

    def cast(self, x: Tile, dtype: Any, bitcast: bool = False) -> Tile:
        return x.to(dtype, bitcast)

    def _unary(self, name: str, x: Tile) -> Tile:
        x = as_operand(x)
        if not num.is_float(x.data.dtype):
            return Tile(np.abs(x.data) if name == "abs" else x.data, x.slack)
        result = Tile(*num.unary(name, x.data.astype(num.wide(x.data.dtype)), x.slack))
        return result.to(x.data.dtype)

    def softmax(self, x: Tile) -> Tile:
        z = self.exp(x - self.max(x, 0))  # type: ignore[operator]
        return self.fdiv(z, self.sum(z, 0))

    # reductions and scans

    @staticmethod
    def _sum_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
        if num.is_float(dtype) or dtype in (I32, U32, I64):
            return dtype
        return I32 if num.is_signed(dtype) else U32

    def _reduced(self, x: Tile, axis: int | None, keep_dims: bool, function: Callable[..., Array], kind: Any) -> Tile:
        """Apply a reduction of integers, or of anything that only picks elements."""
        x = as_operand(x)
        slack = None if x.slack is None else np.asarray(np.max(x.slack, axis=axis, keepdims=keep_dims))
        work = x.data.astype(num.wide(x.data.dtype))
        return Tile(np.asarray(function(work, axis=axis, keepdims=keep_dims)).astype(kind or x.data.dtype), slack)

    def sum(self, x: Tile, axis: int | None = None, keep_dims: bool = False) -> Tile:
        x = as_operand(x)
        kind, how = self._sum_type(x.data.dtype), {"axis": axis, "keepdims": keep_dims}
        if not num.is_float(kind):
            total = Tile(np.asarray(np.sum(x.data, dtype=kind, **how)))
            return total if x.slack is None else Tile(total.data, np.asarray(np.sum(x.slack, **how)))
        with np.errstate(all="ignore"):
            terms = x.data.astype(np.float64)
            total = np.asarray(np.sum(terms, **how)).astype(num.wide(kind))
            magnitudes = np.asarray(np.sum(np.abs(terms), **how))
        slack = num.round_off(magnitudes, terms.size // max(total.size, 1), x.data)
        given = None if x.slack is None else np.asarray(np.sum(x.slack, **how))
        return Tile(total, num.both(slack, given)).to(kind)

    def max(self, x: Tile, axis: int | None = None, keep_dims: bool = False) -> Tile:
        return self._reduced(x, axis, keep_dims, np.fmax.reduce, None)

    def min(self, x: Tile, axis: int | None = None, keep_dims: bool = False) -> Tile:
        return self._reduced(x, axis, keep_dims, np.fmin.reduce, None)

    def argmax(self, x: Tile, axis: int | None = None, keep_dims: bool = False) -> Tile:
        return self._place(x, axis, keep_dims, operator.gt)

    def argmin(self, x: Tile, axis: int | None = None, keep_dims: bool = False) -> Tile:
        return self._place(x, axis, keep_dims, operator.lt)

    @staticmethod
    def _place(x: Tile, axis: int | None, keep_dims: bool, better: Callable[[Any, Any], Any]) -> Tile:
        """Go along the axis for the first of the best, which NaN is never; 0 where all are NaN."""
        lines = x.exact().astype(num.wide(x.data.dtype))
        lines = lines.reshape(1, -1) if axis is None else np.moveaxis(lines, axis, -1)
        held, at = lines[..., 0], np.zeros(lines.shape[:-1], I32)
        for i in range(1, lines.shape[-1]):
            taken = better(lines[..., i], held) | (np.isnan(held) & ~np.isnan(lines[..., i]))
            held, at = np.where(taken, lines[..., i], held), np.where(taken, I32.type(i), at)
        if axis is None:
            return Tile(at.reshape((1,) * x.data.ndim if keep_dims else ()))
        return Tile(np.expand_dims(at, axis) if keep_dims else at)

    def xor_sum(self, x: Tile, axis: int | None = None, keep_dims: bool = False) -> Tile:
        x.exact()
        return self._reduced(x, axis, keep_dims, np.bitwise_xor.reduce, None)

    def reduce_or(self, x: Tile, axis: int | None = None, keep_dims: bool = False) -> Tile:
        x.exact()
        return self._reduced(x, axis, keep_dims, np.bitwise_or.reduce, None)

    def _scan(self, x: Tile, axis: int, reverse: bool, function: Callable[..., Array], kind: np.dtype[Any]) -> Tile:
        x = as_operand(x)
        terms = x.data if not reverse else np.flip(x.data, axis)
        slack = x.slack if x.slack is None or not reverse else np.flip(x.slack, axis)
        if num.is_float(kind):
            with np.errstate(all="ignore"):
                exact = function(terms.astype(np.float64), axis=axis)
                total = exact.astype(num.wide(kind))
                if function is np.cumsum:
                    size = np.cumsum(np.abs(terms.astype(np.float64)), axis=axis)
                    off = num.both(
                        num.round_off(size, terms.shape[axis], terms), None if slack is None else np.cumsum(slack, axis)
                    )
                else:
                    size = np.abs(terms.astype(np.float64))
                    most = np.abs(exact) if slack is None else np.cumprod(size + slack, axis=axis)
                    whole = (exact == np.rint(exact)) & (most < 2**24) & (most == np.abs(exact))
                    off = np.where(whole, 0.0, np.nan_to_num(most - np.abs(exact) + most * 2.0**-18, posinf=0.0))
                    beyond = np.maximum.accumulate(np.cumprod(np.where(size == 0, 1, size), axis), axis) > F32_MAX
                    off = np.where(beyond & (np.abs(exact) <= F32_MAX), np.inf, off)  # inf * 0 in f32, or not yet
            result = Tile(total, off).to(kind)
        else:
            result = Tile(function(terms, axis=axis, dtype=kind), None if slack is None else np.cumsum(slack, axis))
        return result if not reverse else self.flip(result, axis)

    def cumsum(self, x: Tile, axis: int = 0, reverse: bool = False) -> Tile:
        return self._scan(x, axis, reverse, np.cumsum, self._sum_type(as_operand(x).data.dtype))

    def cumprod(self, x: Tile, axis: int = 0, reverse: bool = False) -> Tile:
        return self._scan(x, axis, reverse, np.cumprod, as_operand(x).data.dtype)

    def dot(self, a: Tile, b: Tile, acc: Tile | None = None, *, wait: bool = True) -> Tile:
        product = self._product(a, b)
        return product if acc is None else binary("add", acc, product)

    @staticmethod
    def _product(a: Tile, b: Tile) -> Tile:
        if not num.is_float(a.data.dtype):
            return Tile((a.exact().astype(I64) @ b.exact().astype(I64)).astype(I32))
        with np.errstate(all="ignore"):
            left, right = a.data.astype(np.float64), b.data.astype(np.float64)
            size = np.abs(left) @ np.abs(right)
            fine = all(np.all(x * 32 == np.rint(x * 32)) for x in (left, right))
            off = num.round_off(size, left.shape[1], np.full(1, 0.0 if fine else 2.0**-20, num.wide(a.data.dtype)))
            if a.slack is not None or b.slack is not None:
                s, t = (np.zeros(x.shape) if x.slack is None else x.slack for x in (a, b))
                off = num.both(off, s @ np.abs(right) + np.abs(left) @ t + s @ t)
            return Tile((left @ right).astype(num.wide(a.data.dtype)), off)

    # composites

    def ref(self, pointer: Pointer, shape: Sequence[int], strides: Sequence[int] | None = None) -> Tile:
        return pointer.tensor.read(pointer.tile_of(shape, strides))

    @staticmethod
    def epilogue(kind: str, operand: Any = None, scope: str = "output_tile", per_tile: bool = False) -> tuple[Any, ...]:
        return kind, operand, scope, per_tile

    def composite(self, op: str, a: Tile, b: Tile | None, out: Pointer, **how: Any) -> None:
        steps = [(step,) if isinstance(step, str) else tuple(step) for step in how.get("epilogue", ())]
        steps = [(*step, *(None, "output_tile", False)[len(step) - 1 :]) for step in steps]
        if op == "gemm":
            assert b is not None
            value = self._tiled(a, b, how.get("tile_k") or a.shape[1], [step for step in steps if step[2] == "k_tile"])
        elif b is None:
            value = self._step(a, how["math_op"], None)
        else:
            other = b if b.shape != a.shape[:1] or b.shape == a.shape[1:] else b[:, None]
            value = self._step(a, how["math_op"], other)
        for kind, operand, scope, _ in steps:
            value = value if scope == "k_tile" else self._step(value, kind, operand)
        value.pending = True
        self.store(Pointer(out.tensor, out.tile_of(value.shape, None)), value)

    def _tiled(self, a: Tile, b: Tile, tile_k: int, steps: list[tuple[Any, ...]]) -> Tile:
        total: Tile | None = None
        for index, k in enumerate(range(0, a.shape[1], tile_k)):
            part = self._product(a[:, k : k + tile_k], b[k : k + tile_k, :])
            for kind, operand, _, per_tile in steps:
                part = self._step(part, kind, operand.view(lambda x, i=index: x[i]) if per_tile else operand)
            total = part if total is None else self._step(total, "add", part)
        assert total is not None
        return total

    def _step(self, value: Tile, kind: str, operand: Any) -> Tile:
        """Compute one step in f32; integers stay integers until a float comes."""
        if operand is None:
            return self._unary(kind, value.to(F32))
        whole = isinstance(operand, int) or (isinstance(operand, Tile) and not num.is_float(operand.data.dtype))
        kept = whole and kind not in ("div",) and not num.is_float(value.data.dtype)
        work = value.to(I32 if kept else F32)
        return binary(STEPS[kind], work, as_tile(operand, work.data.dtype).to(work.data.dtype))

    # messages

    def wait(self, *handles: Any) -> None:
        pass

    free = device_print = static_assert = debug_barrier = wait


def _computing(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a call of `tl` that is an op of a unit: what it makes is pending unless all are ready integers."""

    def call(self: Tl, *given: Any, **how: Any) -> Any:
        made = function(self, *given, **how)
        for each in made if isinstance(made, tuple) else (made,):
            computed(each, *given)
            each.pending = each.pending or function.__name__ == "dot"
        return made

    return call


for _name in (
    "full", "trans", "permute", "broadcast_to", "flip", "cat", "join", "split", "interleave", "gather", "histogram",
    "where", "sum", "max", "min", "argmax", "argmin", "xor_sum", "reduce_or", "cumsum", "cumprod", "dot", "_unary",
):  # fmt: skip
    setattr(Tl, _name, _computing(getattr(Tl, _name)))
