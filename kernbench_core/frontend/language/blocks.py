"""Block pointers and tensor descriptors: a tile of a tensor by the tensor's shape and strides, and where it begins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import define, evolve, frozen

from kernbench_core.callsite import call_site, describe_site
from kernbench_core.errors import KernelError, ShapeError, UnsupportedError
from kernbench_core.frontend.language.pipeline import PipelineLanguage
from kernbench_core.frontend.scalars import to_memory
from kernbench_core.kernel.bridge import current_language
from kernbench_core.kernel.index import IndexTensor
from kernbench_core.kernel.pointers import Pointer, PointerType

_PADDINGS = {"": None, "zero": 0, "nan": float("nan")}


def _whole(numbers: Any, rank: int, what: str, call: str) -> tuple[int, ...]:
    """Give integers, one for each dimension; those of loaded data are read."""
    found = tuple(int(number) for number in numbers)
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

    def pointers(self) -> Pointer:
        """Give the pointer of each element of the block."""
        first = sum(at * stride for at, stride in zip(self.offsets, self.strides, strict=True))
        return self.base + IndexTensor(self.block, first, self.strides)

    def mask(self, axes: Sequence[int]) -> IndexTensor | None:
        """Tell of each element whether it is inside the tensor along some axes; None where all are."""
        rank, inside, whole = len(self.block), np.ones((), bool), True
        for axis in axes:
            at = self.offsets[axis] + np.arange(self.block[axis])
            fits = (at >= 0) & (at < self.shape[axis])
            whole = whole and bool(fits.all())
            inside = inside & fits.reshape((-1,) + (1,) * (rank - axis - 1))
        return None if whole else IndexTensor.of(np.broadcast_to(inside, self.block))


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
        return cls(tensor, tuple(tensor.shape), tuple(steps), tuple(block_shape), padding)

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
        return self._language("load").load(self._block(offsets), None, None, range(len(self.shape)), self.padding)

    def store(self, offsets: Sequence[Any], value: Any) -> None:
        """Store a block that begins at `offsets`; what is outside of the tensor is left out."""
        self._language("store").store(self._block(offsets), value, None, range(len(self.shape)))

    def __getattr__(self, name: str) -> Any:
        if name in ("gather", "scatter") or name.startswith("atomic_"):
            raise UnsupportedError(
                f"{name} of a tensor descriptor at {describe_site(call_site())} must be done by pointers, as "
                "kernbench's descriptors load and store whole blocks only; use tl.load and tl.store."
            )
        raise AttributeError(f"a tensor descriptor has no attribute {name!r}")

    def _language(self, name: str) -> Any:
        found = current_language()
        if found is None or not isinstance(self.base, Pointer):
            raise KernelError(
                f"{name} of a tensor descriptor at {describe_site(call_site())} must be called in a kernel that was "
                "given the descriptor; pass it to the launch."
            )
        return found

    def _block(self, offsets: Sequence[Any]) -> BlockPointer:
        at = _whole(offsets, len(self.shape), "an offset", "a tensor descriptor")
        return BlockPointer(self.base, tuple(self.shape), tuple(self.strides), at, tuple(self.block_shape))


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
        return TensorDescriptor(base, whole, steps, block, padding_option)

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
                f"{call} at {describe_site(call_site())} must be given one pointer, not {type(base).__name__}; pass "
                "the pointer of the tensor's first element."
            )


_HINTS = ("cache_modifier", "eviction_policy", "volatile")


def _padding(option: str) -> float | None:
    if option not in _PADDINGS:
        raise ShapeError(
            f"padding_option at {describe_site(call_site())} must be 'zero' or 'nan', not {option!r}; use one of these."
        )
    return _PADDINGS[option]


def _block_mask(
    pointer: BlockPointer, mask: Any, other: Any, axes: Sequence[int], call: str
) -> IndexTensor | None:
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
