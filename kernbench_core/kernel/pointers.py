"""Pointers into tensors, tensors of pointers, and references to tiles that stay where they are.

Pointer arithmetic counts elements, as in Triton. What an access through them moves is in `transfers`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np
from attrs import define
from numpy.typing import NDArray

from kernbench_core.callsite import call_site, describe_site
from kernbench_core.errors import ShapeError, UnsupportedError
from kernbench_core.kernel.index import IndexTensor, broadcast_shapes, inserts_only
from kernbench_core.kernel.placeholders import Placeholder, describe_given
from kernbench_core.memory.device_memory import TensorAllocation
from kernbench_core.values.arrays import in_words
from kernbench_core.values.dtypes import NAMES, is_float, is_int, itemsize
from kernbench_core.values.element_types import TYPES, ElementType
from kernbench_core.wording import brief


class PointerType(ElementType):
    """The type of a pointer: equal to its element dtype's name, and, as in Triton, with an `element_ty`."""

    __slots__ = ()

    def is_ptr(self) -> bool:
        """Tell whether it is a pointer: yes."""
        return True

    @property
    def element_ty(self) -> ElementType:
        """The dtype of what the pointer points to."""
        return TYPES[self]


class Pointer:
    """Point to one element of a tensor, or (with a tensor of offsets) to many. Offsets count elements.

    What is no sum, difference or comparison of pointers is a TypeError of Python's own.
    """

    __slots__ = ("element", "offset", "tensor")
    __hash__ = None  # type: ignore[assignment]
    __array_ufunc__ = None

    def __init__(self, tensor: TensorAllocation, offset: int | IndexTensor, element: str) -> None:
        self.tensor = tensor
        self.offset = offset
        self.element = element

    @property
    def dtype(self) -> PointerType:
        """The pointer's type: the element dtype, and its `element_ty`."""
        return PointerType(self.element)

    @property
    def type(self) -> PointerType:
        """The pointer's type, as Triton's tensors call it too."""
        return PointerType(self.element)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the tensor of addresses; () for a single pointer."""
        return () if isinstance(self.offset, int) else self.offset.shape

    def to(self, dtype: Any, bitcast: bool = False) -> Pointer:
        """Point to elements of another dtype at the same address: `dtype` is a pointer's; ShapeError for any other."""
        here = f"a cast of a pointer at {describe_site(call_site())}"
        if not isinstance(dtype, PointerType):
            raise ShapeError(
                f"{here} must be to a pointer's type, as tl.pointer_type(tl.int8), not {brief(str(dtype))}; an "
                "address is no number here."
            )
        old, new = itemsize(self.element), itemsize(dtype)
        if old % new == 0:
            return Pointer(self.tensor, self.offset * (old // new), str(dtype))
        if not isinstance(self.offset, int) or self.offset * old % new:
            raise ShapeError(f"{here} must be of one pointer, to a multiple of {new} B in its tensor; cast it earlier.")
        return Pointer(self.tensor, self.offset * old // new, str(dtype))

    def __add__(self, other: Any) -> Pointer:
        if type(other) is int:
            return Pointer(self.tensor, self.offset + other, self.element)
        return Pointer(self.tensor, self.offset + _as_offset(other), self.element)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Pointer:
        return Pointer(self.tensor, self.offset - _as_offset(other), self.element)

    def __eq__(self, other: Any) -> Any:
        """Compare addresses: a bool for single pointers, else a bool index tensor; ShapeError unless of pointers."""
        return self._compare(other, np.equal)

    def __ne__(self, other: Any) -> Any:
        """Compare addresses, as `==` does."""
        return self._compare(other, np.not_equal)

    def _compare(self, other: Any, how: Callable[..., Any]) -> Any:
        if not isinstance(other, Pointer):
            raise ShapeError(
                f"a comparison with a pointer at {describe_site(call_site())} must be of another pointer, not "
                f"{describe_given(other)}; tl.load what it points to, or ask for None by 'is None'."
            )
        broadcast_shapes(self.shape, other.shape, "a comparison of pointers")
        found = how(self._addresses(), other._addresses())
        return IndexTensor.of(found) if found.ndim else bool(found)

    def _addresses(self) -> NDArray[np.int64]:
        """Give the virtual address of each element that it points to."""
        offsets = self.offset if isinstance(self.offset, int) else self.offset.numpy()
        return self.tensor.va + np.asarray(offsets, np.int64) * itemsize(self.element)

    def __bool__(self) -> bool:
        if self.shape:
            raise ShapeError(
                f"a condition at {describe_site(call_site())} must be a single bool, not {self.shape} pointers; ask "
                "for None by 'is None'."
            )
        return True

    def __getitem__(self, key: Any) -> Pointer:
        """Insert dimensions (`[:, None]`); a pointer is read by tl.load, never by indexing."""
        parts = key if isinstance(key, tuple) else (key,)
        if isinstance(self.offset, int) and None in parts and inserts_only(parts):
            # `:` of a dimension that it lacks is nothing
            ones = np.full((1,) * parts.count(None), self.offset, np.int64)
            return Pointer(self.tensor, IndexTensor.of(ones), self.element)
        if isinstance(self.offset, int) or not inserts_only(parts):
            raise UnsupportedError(
                f"a pointer at {describe_site(call_site())} must be read with tl.load(ptr + index), not by an "
                "unsupported tensor index; an index may only insert dimensions, as in ptrs[:, None]."
            )
        return Pointer(self.tensor, self.offset[key], self.element)

    def __repr__(self) -> str:
        before = f"Pointer({self.tensor.name} {self.element}{list(self.tensor.shape)} + "
        if isinstance(self.offset, int):
            return f"{before}{self.offset}, at 0x{self.tensor.va + self.offset * itemsize(self.element):x})"
        return f"{before}{in_words(self.offset.numpy(), before)})"


def _as_offset(other: Any) -> int | IndexTensor:
    """Give pointer arithmetic's right side as an int or index tensor: loaded integers are read; others a ShapeError."""
    if isinstance(other, IndexTensor):
        return (other if is_int(other.kind) else _integers(other)).offsets()
    if isinstance(other, int | np.integer):
        return int(other)
    read = None if isinstance(other, Placeholder) else getattr(other, "as_offsets", None)
    if read is None:
        given = "another pointer" if isinstance(other, Pointer) else describe_given(other)
        raise ShapeError(
            f"pointer arithmetic at {describe_site(call_site())} must use integers, not {given}; offsets count "
            "elements."
        )
    found: IndexTensor = read()
    return found


def _integers(offset: IndexTensor) -> IndexTensor:
    """Give bools as 0 and 1; ShapeError for fractions."""
    if is_float(offset.kind):
        raise ShapeError(
            f"pointer arithmetic at {describe_site(call_site())} must use integers, not {offset.kind}; cast first."
        )
    found: IndexTensor = offset.to("int32")
    return found


ITEM_BYTES: Final = {name: itemsize(name) for name in NAMES}
"""Bytes of an element, by dtype: every access looks, and a table is faster than a call."""


def contiguous_strides(shape: Sequence[int], unit: int = 1) -> tuple[int, ...]:
    """Give the row-major strides of `shape`, where neighbours lie `unit` apart."""
    strides = []
    for extent in reversed(shape):
        strides.append(unit)
        unit *= extent
    return tuple(reversed(strides))


@define(eq=False)  # not frozen, though nobody changes it: a call makes one, three times as fast
class Ref(Placeholder):
    """A tensor, or a tile of one, that stays where it is in HBM: a pointer, a shape, strides in elements, a dtype."""

    pointer: Pointer
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str

    @property
    def words(self) -> str:
        """What it is, as a sentence calls it."""
        return f"a ref to a tile of shape {self.shape} of tensor {self.pointer.tensor.name!r}, which is in HBM"

    @property
    def advice(self) -> str:
        """What to do for its data."""
        return "tl.load it first"

    @property
    def base(self) -> int:
        """Virtual address of the first element."""
        return _base(self.pointer)

    def rows(self, first: int, count: int) -> Ref:
        """Give `count` rows from number `first` on, as a tile of its own with the same strides."""
        tensor = self.pointer.tensor
        start = (self.base - tensor.va) // ITEM_BYTES[self.dtype] + first * self.strides[0]
        return Ref(Pointer(tensor, start, self.dtype), (count, *self.shape[1:]), self.strides, self.dtype)


def _base(pointer: Pointer) -> int:
    assert isinstance(pointer.offset, int)
    return pointer.tensor.va + pointer.offset * ITEM_BYTES[pointer.element]


def make_ref(
    pointer: Pointer, shape: Sequence[int], strides: Sequence[int] | None, dtype: str | None, op: str
) -> Ref:
    """Describe a tile that starts at a single pointer; strides default to row-major. Bounds are checked."""
    if not isinstance(pointer, Pointer) or not isinstance(pointer.offset, int):
        given = f"a tensor of {pointer.shape} pointers" if isinstance(pointer, Pointer) else repr(pointer)
        raise ShapeError(
            f"{op} at {describe_site(call_site())} must start at one pointer when a shape is given, not at {given}; "
            "pass the pointer of the first element."
        )
    extents = tuple(shape)
    steps = contiguous_strides(extents) if strides is None else tuple(strides)
    if (tile := _whole(extents, steps)) is None:
        raise ShapeError(
            f"{op} at {describe_site(call_site())} must have positive extents and one stride for each, not shape "
            f"{extents} with strides {steps}; correct them."
        )
    found = Ref(pointer, tile[0], tile[1], dtype or pointer.element)
    if dtype is not None and found.base % ITEM_BYTES[dtype]:
        item = ITEM_BYTES[dtype]
        raise ShapeError(
            f"{op} at {describe_site(call_site())} must start at a multiple of {item} B in tensor "
            f"{pointer.tensor.name!r} to read {dtype}, not {found.base % item} B after one; align the pointer."
        )
    return found


@lru_cache(maxsize=4096)  # where numpy's integers find what was kept for Python's, and the other way round
def _whole(extents: tuple[int, ...], strides: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Give a tile's extents and strides as Python's ints; None where an extent is none, or they are not as many."""
    found = tuple(map(int, extents)), tuple(map(int, strides))
    return found if len(extents) == len(strides) and all(extent > 0 for extent in found[0]) else None
