"""Block pointers and tensor descriptors: a tile of a tensor by the tensor's shape and strides, and where it begins."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from attrs import define, evolve, frozen
from numpy.typing import NDArray

from kernbench_builtin.triton.language.pipeline import PipelineLanguage
from kernbench_builtin.triton.scalars import to_memory
from kernbench_core.callsite import call_site, describe_site
from kernbench_core.errors import KernelError, ShapeError, UnsupportedError
from kernbench_core.kernel.bridge import current_language
from kernbench_core.kernel.index import IndexTensor
from kernbench_core.kernel.placeholders import describe_given
from kernbench_core.kernel.pointers import Pointer, PointerType
from kernbench_core.kernel.tl.tensor import Tensor
from kernbench_core.values.dtypes import is_float, itemsize

_PADDINGS = {"": None, "zero": 0, "nan": float("nan")}

_LEAST_ROWS = 8
_INTEGERS = ("int32", "int64", "uint32", "uint64")
_ATOMIC = {
    "atomic_add": ("int32", "uint32", "uint64", "f16", "bf16", "f32"),
    **dict.fromkeys(("atomic_and", "atomic_max", "atomic_min", "atomic_or", "atomic_xor"), _INTEGERS),
}
"""What descriptors of Triton's do in memory, and to which dtypes, on the GPU that the front end stands for."""


def _whole(numbers: Any, rank: int, what: str, call: str) -> tuple[int, ...]:
    """Give integers, one for each dimension; those of loaded data are read."""
    found = tuple(int(each.as_offsets() if isinstance(each, Tensor) else each) for each in numbers)
    if len(found) != rank:
        raise ShapeError(
            f"{call} at {describe_site(call_site())} must be given {what} for each of {rank} dimensions, not "
            f"{len(found)}; name each once."
        )
    return found


@frozen(eq=False)
class BlockPointer:
    """A block of a tensor of `shape` and `strides` (elements) from `base` on, that begins at `offsets`."""

    base: Pointer
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offsets: tuple[int, ...]
    block: tuple[int, ...]

    @property
    def dtype(self) -> PointerType:
        """The type of a pointer to an element."""
        return self.base.dtype

    @property
    def type(self) -> PointerType:
        """The type of a pointer to an element."""
        return self.base.dtype

    def along(self, axis: int) -> NDArray[np.int64]:
        """Give the indices of the block along one axis of the tensor."""
        return self.offsets[axis] + np.arange(self.block[axis])

    def pointers(self) -> Pointer:
        """Give the pointer of each element of the block."""
        first = sum(at * stride for at, stride in zip(self.offsets, self.strides, strict=True))
        return self.base + IndexTensor(self.block, first, self.strides)

    def mask(self, axes: Sequence[int]) -> IndexTensor | None:
        """Tell of each element whether it is inside the tensor along some axes; None where all are."""
        rank, inside, whole = len(self.block), np.ones((), bool), True
        for axis in axes:
            at = self.along(axis)
            fits = (at >= 0) & (at < self.shape[axis])
            whole = whole and bool(fits.all())
            inside = inside & fits.reshape((-1,) + (1,) * (rank - axis - 1))
        return None if whole else IndexTensor.of(np.broadcast_to(inside, self.block))


@frozen(eq=False)
class _ScatteredRows(BlockPointer):
    """Columns of some `rows` of a matrix, in the order in which these are named."""

    rows: NDArray[np.int64]

    def along(self, axis: int) -> NDArray[np.int64]:
        """Give the indices along one axis: the rows, or the columns."""
        return super().along(axis) if axis else self.rows

    def pointers(self) -> Pointer:
        """Give the pointer of each element."""
        down, across = (self.along(axis) * stride for axis, stride in enumerate(self.strides))
        return self.base + IndexTensor.of(down[:, None] + across)


@define(eq=False)
class TensorDescriptor:
    """A tensor of `shape` and `strides` (elements), of which blocks are loaded and stored; outside of it are zeros.

    The host may set `block_shape`: hooks of configurations do.
    """

    base: Any
    shape: Sequence[int]
    strides: Sequence[int]
    block_shape: Sequence[int]
    padding: str = "zero"

    @classmethod
    def from_tensor(cls, tensor: Any, block_shape: Sequence[int], padding: str = "zero") -> TensorDescriptor:
        """Describe an array of the host, by its own shape and strides."""
        steps = tensor.stride() if callable(getattr(tensor, "stride", None)) else _strides(tensor)
        return cls(tensor, tuple(tensor.shape), tuple(steps), list(block_shape), padding)

    @property
    def dtype(self) -> Any:
        """The element type."""
        own = self.base.dtype
        return own.element_ty if isinstance(own, PointerType) else own

    @property
    def type(self) -> Any:
        """The element type."""
        own = self.base.dtype
        return own.element_ty if isinstance(own, PointerType) else own

    def load(self, offsets: Sequence[Any], **hints: Any) -> Any:
        """Load the block that begins at `offsets`; hints of caches change nothing."""
        return self._load("load", self._block("load", offsets))

    def store(self, offsets: Sequence[Any], value: Any) -> None:
        """Store a block that begins at `offsets`; what is outside of the tensor is left out."""
        self._store("store", self._block("store", offsets), value)

    def gather(self, x_offsets: Any, y_offset: Any, **hints: Any) -> Any:
        """Load some rows of a matrix, from a column on; hints of caches change nothing."""
        return self._load("gather", self._rows("gather", x_offsets, y_offset))

    def scatter(self, value: Any, x_offsets: Any, y_offset: Any) -> None:
        """Store some rows of a matrix, from a column on; of rows at one place the last stays."""
        self._store("scatter", self._rows("scatter", x_offsets, y_offset), value)

    def __getattr__(self, name: str) -> Any:
        if name in _ATOMIC:
            return partial(self._atomic, name)
        if name.startswith("atomic_"):
            raise UnsupportedError(
                f"{_called(name)} must be done by pointers, as Triton's descriptors have only "
                f"{', '.join(sorted(_ATOMIC))}; use tl.{name}."
            )
        raise AttributeError(f"a tensor descriptor has no attribute {name!r}")

    def _atomic(self, name: str, offsets: Sequence[Any], value: Any) -> None:
        block = self._block(name, offsets)
        if block.base.element not in _ATOMIC[name]:
            raise ShapeError(
                f"{_called(name)} must be of {', '.join(_ATOMIC[name])}, not {block.base.element}; cast the tensor, or "
                f"use tl.{name}."
            )
        _check_tile(name, value, block)
        change = getattr(self._language(name), name)
        change(block.pointers(), value, block.mask(range(len(self.shape))))

    def _load(self, name: str, block: BlockPointer) -> Any:
        return self._language(name).load(block, None, None, range(len(self.shape)), self.padding)

    def _store(self, name: str, block: BlockPointer, value: Any) -> None:
        _check_tile(name, value, block)
        self._language(name).store(block, value, None, range(len(self.shape)))

    def _language(self, name: str) -> Any:
        found = current_language()
        if found is None or not isinstance(self.base, Pointer):
            raise KernelError(
                f"{_called(name)} must be called in a kernel that was given the descriptor; pass it to the launch."
            )
        return found

    def _block(self, name: str, offsets: Sequence[Any]) -> BlockPointer:
        self._language(name)
        _check_block(self, _called(name))
        at = _whole(offsets, len(self.shape), "an offset", "a tensor descriptor")
        return BlockPointer(self.base, tuple(self.shape), tuple(self.strides), at, tuple(self.block_shape))

    def _rows(self, name: str, x_offsets: Any, y_offset: Any) -> BlockPointer:
        """Give the block of some rows, which are known; ShapeError for what Triton refuses."""
        block = self._block(name, [0] * (len(self.shape) - 1) + [y_offset])
        if len(block.block) != 2 or block.block[0] != 1:
            raise ShapeError(
                f"{_called(name)} must be of a block of one row of a matrix, not of shape {block.block}; give "
                "block_shape=[1, columns]."
            )
        given = str(getattr(x_offsets, "dtype", type(x_offsets).__name__))
        if given not in ("int16", "int32"):
            raise ShapeError(f"{_called(name)} must be given rows of int16 or int32, not {given}; cast them.")
        if len(x_offsets.shape) != 1 or x_offsets.shape[0] < _LEAST_ROWS:
            raise ShapeError(
                f"{_called(name)} must be given a line of at least {_LEAST_ROWS} rows, not a tile of shape "
                f"{tuple(x_offsets.shape)}; give more."
            )
        element, columns = self.base.element, block.block[1]
        least = 4 // itemsize(element) * 8
        if columns < least:
            raise ShapeError(
                f"{_called(name)} must have at least {least} columns of {element}, not {columns}; widen the block."
            )
        found = x_offsets if isinstance(x_offsets, IndexTensor) else x_offsets.as_offsets()
        rows = found.numpy().astype(np.int64)
        return _ScatteredRows(block.base, block.shape, block.strides, block.offsets, (rows.size, columns), rows)


def _called(name: str) -> str:
    return f"{name} of a tensor descriptor at {describe_site(call_site())}"


def _check_block(descriptor: TensorDescriptor, called: str) -> None:
    """Raise ShapeError for blocks that TMA does not move."""
    block, rank = tuple(descriptor.block_shape), len(descriptor.shape)
    if not 1 <= rank <= 5:
        raise ShapeError(f"{called} must describe 1 to 5 dimensions, not {rank}; join some of them.")
    item = itemsize(descriptor.base.element)
    if int(block[-1]) * item < 16:
        # In Triton's words, as tests of a kernel ask for them.
        raise ShapeError(
            f"{called}: Descriptor block shape must have at least 16 bytes in the last dimension, not {block[-1]} "
            f"elements of {item} B; widen it."
        )
    if descriptor.padding == "nan" and not is_float(descriptor.base.element):
        raise ShapeError(
            f"padding_option at {describe_site(call_site())} must be 'zero' for integers, not 'nan'; use that."
        )


def _check_tile(name: str, value: Any, block: BlockPointer) -> None:
    """Raise ShapeError for a tile to write that has not the block's shape."""
    shape = tuple(getattr(value, "shape", ()))
    if shape != block.block:
        raise ShapeError(f"{_called(name)} must be given a tile of shape {block.block}, not {shape}; reshape it.")


def _strides(array: Any) -> tuple[int, ...]:
    return tuple(step // array.itemsize for step in array.strides)


class BlockLanguage(PipelineLanguage):
    """Block pointers, tensor descriptors, and accesses through them."""

    def make_block_ptr(
        self, base: Pointer, shape: Any, strides: Any, offsets: Any, block_shape: Any, order: Any = None
    ) -> BlockPointer:
        """Point to a block of a tensor; the order of dimensions in memory is a hint."""
        self._check_base(base, "tl.make_block_ptr")
        extents = tuple(shape)
        sizes = [
            _whole(numbers, len(extents), what, "tl.make_block_ptr")
            for numbers, what in (
                (extents, "an extent"), (strides, "a stride"), (offsets, "an offset"), (block_shape, "a block's extent")
            )
        ]  # fmt: skip
        return BlockPointer(base, *sizes)

    def advance(self, base: BlockPointer, offsets: Any) -> BlockPointer:
        """Give the block that begins `offsets` further on."""
        if not isinstance(base, BlockPointer):
            raise ShapeError(
                f"tl.advance at {describe_site(call_site())} must be given a block pointer, not {type(base).__name__}; "
                "add to other pointers."
            )
        steps = _whole(offsets, len(base.shape), "an offset", "tl.advance")
        return evolve(base, offsets=tuple(at + step for at, step in zip(base.offsets, steps, strict=True)))

    def make_tensor_descriptor(
        self, base: Pointer, shape: Any, strides: Any, block_shape: Any, padding_option: str = "zero"
    ) -> TensorDescriptor:
        """Describe a tensor in memory."""
        self._check_base(base, "tl.make_tensor_descriptor")
        extents = tuple(shape)
        whole, steps, block = (
            _whole(numbers, len(extents), what, "tl.make_tensor_descriptor")
            for numbers, what in ((extents, "an extent"), (strides, "a stride"), (block_shape, "a block's extent"))
        )
        made = TensorDescriptor(base, whole, steps, list(block), padding_option)
        _check_block(made, f"tl.make_tensor_descriptor at {describe_site(call_site())}")
        return made

    def load_tensor_descriptor(self, desc: TensorDescriptor, offsets: Any) -> Any:
        """Load a block of a described tensor."""
        return desc.load(offsets)

    def store_tensor_descriptor(self, desc: TensorDescriptor, offsets: Any, value: Any) -> None:
        """Store a block of a described tensor."""
        desc.store(offsets, value)

    def load(
        self, pointer: Any, mask: Any = None, other: Any = None, boundary_check: Sequence[int] = (),
        padding_option: str = "", *args: Any, **named: Any,
    ) -> Any:  # fmt: skip
        """Load through pointers or a block pointer; hints of caches change nothing."""
        if isinstance(pointer, BlockPointer):
            padding = _padding(padding_option)
            mask = _block_mask(pointer, mask, other, boundary_check, "tl.load")
            return super().load(pointer.pointers(), mask, padding)
        named = {name: value for name, value in named.items() if name not in _HINTS}
        return super().load(pointer, mask, to_memory(other), **named)

    def store(
        self, pointer: Any, value: Any, mask: Any = None, boundary_check: Sequence[int] = (), *args: Any, **named: Any
    ) -> None:
        """Store through pointers or a block pointer; hints of caches change nothing."""
        if isinstance(pointer, BlockPointer):
            mask = _block_mask(pointer, mask, None, boundary_check, "tl.store")
            super().store(pointer.pointers(), to_memory(value), mask)
            return
        named = {name: kept for name, kept in named.items() if name not in _HINTS}
        super().store(pointer, to_memory(value), mask, **named)

    def _check_base(self, base: Any, call: str) -> None:
        if not isinstance(base, Pointer) or base.shape:
            raise ShapeError(
                f"{call} at {describe_site(call_site())} must be given one pointer, not {describe_given(base)}; pass "
                "the pointer of the tensor's first element."
            )


_HINTS = ("cache_modifier", "eviction_policy", "volatile")


def _padding(option: str) -> float | None:
    if option not in _PADDINGS:
        raise ShapeError(
            f"padding_option at {describe_site(call_site())} must be 'zero' or 'nan', not {option!r}; use one of these."
        )
    return _PADDINGS[option]


def _block_mask(pointer: BlockPointer, mask: Any, other: Any, axes: Sequence[int], call: str) -> IndexTensor | None:
    """Give the mask of an access to a block; ShapeError for one that the kernel gives beside it."""
    if mask is not None or other is not None:
        raise ShapeError(
            f"{call} at {describe_site(call_site())} must be given no mask and no other with a block pointer; name the "
            "dimensions to check in boundary_check."
        )
    chosen = [axes] if isinstance(axes, int) else [int(axis) for axis in axes]
    rank = len(pointer.block)
    if any(not 0 <= axis < rank for axis in chosen):
        raise ShapeError(
            f"boundary_check of {call} at {describe_site(call_site())} must name dimensions from 0 to {rank - 1}, not "
            f"{tuple(chosen)}; correct it."
        )
    return pointer.mask(chosen)
