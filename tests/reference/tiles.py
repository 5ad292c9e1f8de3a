"""Tiles and pointers of the reference interpreter: eager arrays that meet by the rule of types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.reference import numerics as num
from tests.reference.numerics import BOOL, F32, F64, I32, I64, Array, Slack


class UndeterminedError(Exception):
    """A branch, an address or an integer depends on floats that are not exact: nothing can be said of the program."""


class WrongProgramError(Exception):
    """A program does what the language forbids; its subclasses have the names that kernbench gives them."""


class PendingDataError(WrongProgramError):
    """A number is read that is known after phase 2 only."""


class OutOfBoundsError(WrongProgramError):
    """An access reaches outside its tensor."""


class UninitializedReadError(WrongProgramError):
    """An element is read that nobody has written."""


class ShapeError(WrongProgramError):
    """An access does not start at a multiple of its dtype's size."""


class Tile:
    """Numbers of one dtype, with the slack of those that are not exact; `free` are indices, which take any dtype.

    `pending` ones may not be read by the program: they are floats that an op made, or come of such.
    """

    __slots__ = ("data", "free", "pending", "slack")

    def __init__(self, data: Array, slack: Slack = None, free: bool = False, pending: bool = False) -> None:
        self.data, self.free, self.pending = data, free, pending
        self.slack = None if slack is None else np.broadcast_to(slack, data.shape)

    shape = property(lambda self: self.data.shape)
    dtype = property(lambda self: as_operand(self).data.dtype)

    def exact(self) -> Array:
        """Give the numbers, which must be exact."""
        if self.slack is not None and self.slack.any():
            raise UndeterminedError
        return self.data

    def known(self) -> Tile:
        """Give the tile, which must not be pending."""
        if self.pending:
            raise PendingDataError
        return self

    def item(self) -> Any:
        """Give the only element as a Python number."""
        self.known()
        return self.exact().astype(np.float64).item() if num.is_float(self.data.dtype) else self.exact().item()

    def numpy(self) -> Array:
        """Give the numbers."""
        return self.known().exact()

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __bool__(self) -> bool:
        return bool(self.item())

    def view(self, function: Callable[[Array], Array]) -> Tile:
        """Move elements about."""
        return Tile(function(self.data), None if self.slack is None else function(self.slack), self.free, self.pending)

    def __getitem__(self, index: Any) -> Any:
        index = index if isinstance(index, tuple) else (index,)
        if any(part is None or isinstance(part, slice) for part in index):
            return self.view(lambda array: array[index])
        return self.view(lambda array: np.asarray(array[tuple(int(part) for part in index)])).item()

    def to(self, dtype: Any, bitcast: bool = False) -> Tile:
        """Convert to a dtype, or take the bits as it."""
        wanted, source = num.dtype_of(dtype), as_operand(self)
        if bitcast:
            return computed(Tile(source.exact().view(wanted)), self)
        if wanted == source.data.dtype:
            return source
        return computed(Tile(*num.apply(lambda array: num.cast(array, wanted), [(source.data, source.slack)])), self)

    def __invert__(self) -> Tile:
        return computed(Tile(np.invert(self.data), self.slack, self.free), self)

    def __neg__(self) -> Tile:
        negative = Tile(np.negative(self.data), self.slack, self.free) if self.data.dtype != BOOL else self
        return computed(negative, self)


Operand = Tile | int | float | bool


def computed(made: Tile, *given: Any) -> Tile:
    """Give what an op made of its operands: pending, unless they are ready integers and so is the result."""
    tiles = [each for each in given if isinstance(each, Tile)]
    made.pending = any(each.pending or num.is_float(each.data.dtype) for each in tiles) or num.is_float(made.data.dtype)
    return made


def as_operand(tile: Tile) -> Tile:
    """Give indices the dtype that they have among tiles: int32 where they fit."""
    if not tile.free or tile.data.dtype != I64:
        return tile
    fits = not tile.data.size or (tile.data.min() >= -(2**31) and tile.data.max() < 2**31)
    return Tile(tile.data.astype(I32 if fits else I64), pending=tile.pending)


def as_tile(value: Operand, like: np.dtype[Any]) -> Tile:
    """Make a number a tile of the dtype that it has beside one of dtype `like`."""
    if isinstance(value, Tile):
        return as_operand(value)
    kind = dtype_beside(value, like)
    if kind.kind in "iu" and not np.iinfo(kind).min <= value <= np.iinfo(kind).max:
        raise TypeError(f"{value} is not of {kind}")
    return Tile(num.cast(np.asarray(value, num.wide(kind) if num.is_float(kind) else None), kind))


def dtype_beside(value: Operand, like: np.dtype[Any]) -> np.dtype[Any]:
    """Give the dtype of an operand; a number takes that of the other, unless it is of a higher kind."""
    if isinstance(value, Tile):
        return as_operand(value).data.dtype
    if isinstance(value, float) and not num.is_float(like):
        return F32 if num.is_normal(value) else F64
    return I32 if like == BOOL and not isinstance(value, bool | np.bool_) else like


def binary(name: str, x: Operand, y: Operand) -> Tile:
    """Apply an operator to two operands of which at least one is a tile."""
    return computed(_binary(name, x, y), x, y)


def _binary(name: str, x: Operand, y: Operand) -> Tile:
    known = next(value for value in (x, y) if isinstance(value, Tile))
    if all(not isinstance(v, Tile) or v.free for v in (x, y)) and all(
        not isinstance(v, Tile) or v.data.dtype in (I64, BOOL) for v in (x, y)
    ):  # nothing but indices
        a, b = (v.data if isinstance(v, Tile) else np.asarray(v) for v in (x, y))
        return Tile(num.BINARY[name](a, b), None, True)
    a_type, b_type = dtype_beside(x, as_operand(known).data.dtype), dtype_beside(y, as_operand(known).data.dtype)
    common = num.meet(a_type, b_type, name in num.DIVISIONS)
    if name == "floordiv" and num.is_float(common):
        raise TypeError(f"unexpected type {common}")
    if name == "truediv" and not num.is_float(common):
        common = F32
    a, b = (as_tile(value, kind).to(common) for value, kind in ((x, a_type), (y, b_type)))
    work = num.wide(common)
    pairs = [(tile.data.astype(work), tile.slack) for tile in (a, b)]
    function = num.BINARY[name]
    if common == BOOL and name in ("add", "sub", "mul"):
        function = num.bool_arithmetic(name)
    result, slack = num.apply(function, pairs)
    if name in num.COMPARISONS:
        return Tile(result, slack)
    return Tile(*num.apply(lambda array: num.cast(array, common), [(result, slack)]))


def _operator(name: str, swapped: bool = False) -> Callable[[Tile, Operand], Tile]:
    return (
        (lambda self, other: binary(name, other, self)) if swapped else (lambda self, other: binary(name, self, other))
    )


for _name in num.BINARY:
    if _name not in ("maximum", "minimum"):
        setattr(Tile, f"__{_name}__", _operator(_name))
        setattr(Tile, f"__r{_name}__", _operator(_name, True))
Tile.__hash__ = None  # type: ignore[method-assign,assignment]


class Buffer:
    """A tensor in memory: elements in a row, what of them was written, and the slack of each."""

    def __init__(self, shape: Sequence[int], dtype: np.dtype[Any], data: Array | None) -> None:
        self.shape, self.dtype = tuple(shape), dtype
        n = int(np.prod(self.shape))
        self.data = np.zeros(n, dtype) if data is None else np.array(data, dtype).reshape(-1)
        self.written = np.full(n, data is not None)
        self.slack, self.pending = np.zeros(n), np.zeros(n, bool)

    def part(self, index: int, parts: int) -> Buffer:
        """Give one of equal parts, as a tensor of its own in the same memory."""
        n, made = len(self.data) // parts, Buffer((len(self.data) // parts,), self.dtype, None)
        for name in ("data", "written", "slack", "pending"):
            setattr(made, name, getattr(self, name)[index * n : (index + 1) * n])
        return made

    def to_local(self) -> Local:
        """Stand for the part that each PE holds of a tensor which is cut along its first dimension."""
        return Local(self)

    def checked(self, places: Array) -> Array:
        """Give the element numbers, all of which lie inside."""
        if places.size and (places.min() < 0 or places.max() >= len(self.data)):
            raise OutOfBoundsError(f"elements {places.min()} to {places.max()} of {len(self.data)}")
        return places

    def read(self, places: Array) -> Tile:
        """Give elements, all of which must have been written."""
        if not self.written[self.checked(places)].all():
            raise UninitializedReadError
        return Tile(self.data[places], self.slack[places], pending=bool(self.pending[places].any()))

    def read_bits(self, places: Array, dtype: np.dtype[Any]) -> Tile:
        """Give the bits at some places, which count elements of `dtype`, as such elements."""
        places = (np.asarray(places) * dtype.itemsize)[..., None] + np.arange(dtype.itemsize)
        under = self.read(places // self.data.itemsize)
        under.exact()
        if places.size == 0:
            return Tile(np.zeros(places.shape[:-1], dtype))
        return Tile(self.data.view(np.uint8)[places].view(dtype)[..., 0], pending=under.pending)

    def write(self, places: Array, tile: Tile) -> None:
        """Replace elements."""
        self.data[self.checked(places)] = tile.data
        self.pending[places] = tile.pending
        self.slack[places] = 0.0 if tile.slack is None else tile.slack
        self.written[places] = True

    def numpy(self) -> Array:
        """Give the tensor."""
        return self.data.reshape(self.shape).copy()


class Local:
    """A tensor of which each program gets the part of its own PE."""

    def __init__(self, whole: Buffer) -> None:
        self.whole = whole


class Pointer:
    """One or more places of a buffer."""

    def __init__(self, tensor: Buffer, places: Array) -> None:
        self.tensor, self.places = tensor, places

    shape = property(lambda self: self.places.shape)
    dtype = property(lambda self: self.tensor.dtype)

    def __add__(self, other: Operand) -> Pointer:
        offset = other.known().exact().astype(np.int64) if isinstance(other, Tile) else np.asarray(other)
        return Pointer(self.tensor, self.places + offset)

    __radd__ = __add__

    def __sub__(self, other: Operand) -> Pointer:
        return self + (-other)

    def _same(self, other: Pointer) -> Array:
        return np.asarray((self.places == other.places) & (self.tensor is other.tensor))

    def __eq__(self, other: Any) -> Any:
        same = self._same(other)
        return Tile(same) if same.ndim else bool(same)

    def __ne__(self, other: Any) -> Any:
        other_place = ~self._same(other)
        return Tile(other_place) if other_place.ndim else bool(other_place)

    __hash__ = None  # type: ignore[assignment]

    def tile_of(self, shape: Sequence[int], strides: Sequence[int] | None) -> Array:
        """Give the places of a tile that starts here; contiguous unless strides say otherwise."""
        steps = strides if strides is not None else [int(np.prod(shape[i + 1 :])) for i in range(len(shape))]
        if not shape:
            return self.places
        grid = np.indices(tuple(shape)).reshape(len(shape), -1)
        return int(self.places) + (np.asarray(steps, np.int64) @ grid).reshape(tuple(shape))
