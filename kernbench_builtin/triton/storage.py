"""Arrays of the host as kernels are given them: by their storage, of which an array is a view with strides.

numpy and ml_dtypes arrays, torch tensors, and what else has `__array_interface__` or `__dlpack__`.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from attrs import define, evolve, field, frozen

from kernbench_core.callsite import call_site, describe_site
from kernbench_core.errors import ShapeError, UsageError
from kernbench_core.kernel.index import IndexTensor
from kernbench_core.kernel.pointers import Pointer, PointerType
from kernbench_core.values.arrays import Array
from kernbench_core.values.dtypes import NAMES, dtype_name, dtype_of, is_known, itemsize, numpy_dtype
from kernbench_core.values.element_types import ElementType, as_dtype
from kernbench_core.values.masks import NO_MASK, has_mask
from kernbench_core.wording import brief

_TORCH = {
    "float64": "f64", "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float8_e4m3fn": "f8e4m3",
    "float8_e5m2": "f8e5m2",
}  # fmt: skip
"""Dtypes of torch that have other names here."""


@frozen(eq=False)
class StorageView:
    """An array: the bytes of its whole storage, of what dtype it is, and at which byte of that it begins."""

    storage: Array
    """The bytes of the storage, as uint8, shared with the host."""
    dtype: str
    first_byte: int
    owner: Array | None = None
    """The array that the storage is of, where it goes with that; None where it may outlive it."""

    @property
    def address(self) -> int:
        """Where the storage lies in the host's memory."""
        return int(self.storage.ctypes.data)


class ReinterpretedArray:
    """An array that a kernel gets as one of another dtype: the same bytes. What else it is asked, the array answers."""

    def __init__(self, base: Any, dtype: ElementType) -> None:
        self.base = base
        self.dtype = dtype

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.base, name)


def reinterpret(tensor: Any, dtype: Any) -> ReinterpretedArray:
    """Give an array to a kernel as one of another dtype, as `triton.reinterpret` does."""
    return ReinterpretedArray(tensor, as_dtype(dtype))


def view_of(value: Any, call: str) -> StorageView | None:
    """Return a view of an array's storage, None for what is no array; UsageError for one that cannot be given."""
    if isinstance(value, ReinterpretedArray):
        view = view_of(value.base, call)
        return None if view is None else evolve(view, dtype=dtype_of(value.dtype))
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return _of_torch(torch, value, call)
    if has_mask(value):
        raise UsageError(f"{call} must be {NO_MASK}.")
    if isinstance(value, np.ndarray):
        return _of_numpy(value, call)
    if hasattr(value, "__array_interface__"):
        return _of_numpy(np.asarray(value), call)
    if hasattr(value, "__dlpack__"):
        return _of_numpy(np.from_dlpack(value), call)
    return _of_holder(value, call) if hasattr(value, "data_ptr") and hasattr(value, "__dict__") else None


def _of_holder(holder: Any, call: str) -> StorageView | None:
    """Return a view of the storage that `holder.data_ptr()` points into: that of an array among its attributes."""
    address = int(holder.data_ptr())
    for held in vars(holder).values():
        view = None if isinstance(held, type(holder)) else view_of(held, call)
        if view is not None and view.address <= address < view.address + len(view.storage):
            own = str(getattr(holder, "dtype", view.dtype)).removeprefix("torch.")
            return evolve(view, dtype=_TORCH.get(own, own), first_byte=address - view.address)
    raise UsageError(
        f"{call} must be an array, or hold the one that its data_ptr() points into, as {brief(holder)} does not; give "
        "the array."
    )


def _of_numpy(array: Array, call: str) -> StorageView:
    if not is_known(array.dtype) or not array.dtype.isnative:
        raise UsageError(
            f"{call} must be an array of dtype {', '.join(NAMES)}, not {array.dtype}; cast it, as in "
            "x.astype(np.float32)."
        )
    base: Any = array
    while isinstance(base.base, np.ndarray):
        base = base.base
    if not base.flags.contiguous and not base.flags.f_contiguous:
        low, high = np.lib.array_utils.byte_bounds(array)
        start = int(array.ctypes.data)
        raise UsageError(
            f"{call} must lie in one piece of memory, not in bytes {low - start} to {high - start} with strides "
            f"{array.strides}; give a copy."
        )
    flat = base.reshape(-1, order="A").view(np.uint8) if base.size else np.zeros(0, np.uint8)
    offset = int(array.ctypes.data) - int(base.ctypes.data)
    return StorageView(flat, dtype_name(array.dtype), offset, base if base.base is None else None)


def _of_torch(torch: Any, tensor: Any, call: str) -> StorageView:
    if hasattr(tensor, "get_mask"):
        raise UsageError(
            f"{call} must be a tensor without a mask; give its .to_tensor(value), and the mask as a tensor of its own."
        )
    own = str(tensor.dtype).removeprefix("torch.")
    dtype = _TORCH.get(own, own)
    if dtype not in NAMES:
        raise UsageError(f"{call} must be a tensor of dtype {', '.join(NAMES)}, not {own}; cast it.")
    place = tensor.untyped_storage().device  # what the tensor itself says may be the simulated device
    if place.type != "cpu":
        raise UsageError(
            f"{call} must be in the host's memory, not on {place}; kernbench simulates the device, give "
            "x.cpu()."
        )
    with torch.no_grad():
        whole = torch.empty(0, dtype=torch.uint8).set_(tensor.untyped_storage())
        flat = whole.numpy()
    return StorageView(flat, dtype, int(tensor.storage_offset() * tensor.element_size()))


def typed(storage: Array, dtype: str) -> Array:
    """Return the bytes of a storage as elements of a dtype; what is left at the end is cut."""
    item = numpy_dtype(dtype).itemsize
    return storage[: len(storage) // item * item].view(numpy_dtype(dtype))


@contextmanager
def restored(values: Iterable[object]) -> Iterator[None]:
    """Leave the arrays among some values, at the end of a block, as they were."""
    views = [view_of(value, "an argument") for value in values]
    before = [(view.storage, view.storage.copy()) for view in views if view is not None]
    try:
        yield
    finally:
        for storage, copy in before:
            if storage.flags.writeable:
                storage[:] = copy


#: Elements up to which an array of integers is looked through for addresses.
_MOST = 1 << 20


@define
class AskedAddresses:
    """The arrays whose addresses a script asked for, as far as they live."""

    _known: dict[int, Any] = field(factory=dict)

    def of(self, array: Any) -> int:
        """Return the address of an array's first element, and keep the array in mind; UsageError for what is none."""
        view = view_of(array, "an array whose address is asked for")
        address = int(np.asarray(array).ctypes.data) if view is None else view.address + view.first_byte
        self.note(address, array)
        return address

    def note(self, address: int, array: Any) -> None:
        """Keep in mind which array begins at an address, as the last, whatever has begun there before."""
        self._known.pop(address, None)
        self._known[address] = weakref.ref(array)

    def arrays(self) -> list[Any]:
        """Return the arrays that live."""
        found = {address: reference() for address, reference in self._known.items()}
        self._known = {address: self._known[address] for address, array in found.items() if array is not None}
        return [array for array in found.values() if array is not None]


def reached(
    views: Mapping[str, StorageView], arrays: Sequence[Any], call: str
) -> Iterator[tuple[str, StorageView]]:
    """Yield the storages that integers among a launch's arguments are addresses in, each with a name for messages."""
    if not arrays:
        return
    numbers = {
        name: typed(view.storage, view.dtype)
        for name, view in views.items()
        if view.dtype in ("int64", "uint64") and len(view.storage) <= _MOST * itemsize(view.dtype)
    }
    for array in arrays:
        view = view_of(array, call)
        if view is None:
            continue
        for name, found in numbers.items():
            inside = np.flatnonzero((found >= view.address) & (found < view.address + len(view.storage)))
            if inside.size:
                yield f"{name}[{inside[0]}]", view
                break


@frozen(eq=False)
class HostAddresses:
    """Where the host's arrays of a launch lie: the first byte, that behind the last, and the pointer to the first."""

    places: tuple[tuple[int, int, Pointer], ...] = ()

    def pointer(self, addresses: Any, dtype: PointerType) -> Pointer:
        """Give the pointers to elements at some addresses of the host, all in one array; ShapeError for others."""
        numbers = np.asarray(addresses)
        first = int(numbers.reshape(-1)[0])
        here = f"a cast of integers to pointers at {describe_site(call_site())}"
        base = next((each for each in self.places if each[0] <= first < each[1]), None)
        if base is None:
            raise ShapeError(
                f"{here} must be of addresses of the host's arrays, not of {first:#x}; take them by data_ptr() of "
                "torch's tensors, or by data_ptr(array) of what kb.triton gives."
            )
        low, high, pointer = base
        item = itemsize(dtype)
        behind = np.asarray(numbers.astype(object) - low, object)
        if any(not 0 <= at < high - low or at % item for at in behind.reshape(-1)):
            raise ShapeError(
                f"{here} must be of whole elements of one array, not of several or of parts; cast one after the other."
            )
        offsets = np.asarray(behind // item, np.int64)
        return Pointer(pointer.tensor, int(offsets) if not offsets.shape else IndexTensor.of(offsets), str(dtype))


def addresses_of(held: Iterable[Any]) -> HostAddresses:
    """Return where the arrays of a launch lie, of what the device holds for its arguments."""
    places = {
        each.held.address: (each.held.address, each.held.end, Pointer(each.held.tensor.allocation, 0, each.view.dtype))
        for each in held
    }
    return HostAddresses(tuple(places.values()))
