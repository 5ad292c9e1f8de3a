"""Addresses of the host's arrays as integers in memory: which arrays a launch reaches by them, and their pointers."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import define, field, frozen

from kernbench_builtin.triton.storage import StorageView, typed, view_of
from kernbench_core.callsite import call_site, describe_site
from kernbench_core.errors import ShapeError
from kernbench_core.kernel.index import IndexTensor
from kernbench_core.kernel.pointers import Pointer, PointerType
from kernbench_core.values.dtypes import itemsize

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
        """Keep in mind which array begins at an address."""
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
