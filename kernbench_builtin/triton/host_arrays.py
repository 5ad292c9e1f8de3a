"""What the device holds of the host's arrays: each storage is a tensor, refreshed before a launch, read back after."""

from __future__ import annotations

import weakref
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import define, field, frozen

from kernbench_builtin.triton.placement import ArrayPlace, LaunchShape, place, placement
from kernbench_builtin.triton.storage import StorageView, typed
from kernbench_core.errors import UsageError
from kernbench_core.kernel.pointers import Pointer
from kernbench_core.values.arrays import Array
from kernbench_core.values.dtypes import itemsize

if TYPE_CHECKING:
    from kernbench_core.host.device_tensor import DeviceTensor
    from kernbench_core.host.runtime import Runtime


@define(eq=False)
class DeviceCopy:
    """A storage that the device holds; `alike` are the bytes that both sides held when they were last alike.

    `owner` gives the array that the storage is of, None once that is gone; `place` is where it lies.
    """

    address: int
    nbytes: int
    tensor: DeviceTensor
    place: ArrayPlace
    alike: Array | None
    owner: Any

    @property
    def end(self) -> int:
        """The first address behind it."""
        return self.address + self.nbytes


@frozen(eq=False)
class HeldArgument:
    """An array that a launch is given: a view, the storage that it is in, and the pointer to its first element."""

    name: str
    view: StorageView
    held: DeviceCopy
    pointer: Pointer


@define(eq=False)
class DeviceCopies:
    """The storages of the host that the device of `rt` holds. What the host changed is there when a launch begins.

    Triton's tensors are on the device when a kernel is launched, so moving them takes no simulated time. A storage that
    `beside` holds, of another run, lies as it does there.
    """

    rt: Runtime
    places: list[ArrayPlace] = field(factory=list)
    beside: DeviceCopies | None = None
    _held: list[DeviceCopy] = field(factory=list)

    def hold(
        self, views: Mapping[str, StorageView], shapes: Mapping[str, Sequence[int]], launch: LaunchShape, kernel: str
    ) -> dict[str, HeldArgument]:
        """Return the arguments of a launch with what the host has in them now; of storages that overlap the larger.

        A storage that is new here lies where this launch puts an array of its shape.
        Raise UsageError where two overlap, and neither holds the other.
        """
        found: dict[str, HeldArgument] = {}
        for name, view in sorted(views.items(), key=lambda each: -len(each[1].storage)):
            inside = next((each for each in found.values() if _holds(each.held, view)), None)
            if inside is None:
                crossing = next((each for each in found.values() if _meets(each.held, view)), None)
                if crossing is not None:
                    raise UsageError(
                        f"arguments {crossing.name!r} and {name!r} of kernel {kernel!r} must be apart in memory, or "
                        f"one inside the other, not overlap; give a copy of {name!r}."
                    )
            held = self._of(view, *self._where(view, name, shapes, launch)) if inside is None else inside.held
            found[name] = HeldArgument(name, view, held, _pointer(view, held, name, kernel))
        return found

    def holding(self, view: StorageView) -> DeviceCopy | None:
        """Return what holds a storage already, None where a launch that gets it would place it."""
        address, nbytes = view.address, len(view.storage)
        there = (each for each in self._held if (each.address, each.nbytes) == (address, nbytes))
        return next((each for each in there if each.owner() is not None and _fits(each, view)), None)

    def _where(
        self, view: StorageView, name: str, shapes: Mapping[str, Sequence[int]], launch: LaunchShape
    ) -> tuple[ArrayPlace, str]:
        """Choose where a storage that is new here is to lie, and of what dtype its tensor is."""
        known = self.beside and self.beside.holding(view)
        if known:
            return known.place, known.tensor.dtype
        whole = typed(view.storage, view.dtype)
        how = self.rt.use_placement()
        return place(how, launch, name, shapes.get(name, ()), len(whole), whole.itemsize), view.dtype

    def _of(self, view: StorageView, where: ArrayPlace, dtype: str) -> DeviceCopy:
        """Return what holds a storage, refreshed; a tensor whose storage is gone is taken for one like it.

        Another array may begin where one did that is gone: it lies where it is put now.
        """
        address, nbytes = view.address, len(view.storage)
        held = self.holding(view) or next((each for each in self._held if _free_for(each, view, where)), None)
        # whether one that is gone began here is a matter of the host's memory, which no time may depend on
        self._held = [each for each in self._held if each is held or each.owner() is None or not _meets(each, view)]
        if held is None:
            whole = typed(view.storage, dtype) if nbytes else np.zeros(1, typed(view.storage, dtype).dtype)
            tensor = self.rt.tensor(whole, dtype, name=where.name, resident=True, placement=placement(where))
            held = DeviceCopy(address, nbytes, tensor, where, view.storage.copy(), None)
            self._held.append(held)
            self.places.append(where)
        elif held.alike is None or not np.array_equal(held.alike, view.storage):
            self.rt.preload(held.tensor, typed(view.storage, held.tensor.dtype))
            held.alike = view.storage.copy()
        held.address = address
        held.owner = (lambda storage=view.storage: storage) if view.owner is None else weakref.ref(view.owner)
        return held

    def forget(self, used: Iterable[HeldArgument]) -> None:
        """Have the host not get what a launch left in some arrays: the next one finds there what the host has."""
        for each in used:
            each.held.alike = None

    def read_back(self, used: Collection[HeldArgument], kernel: str) -> None:
        """Give the host what a launch left in some arrays; UsageError, and nothing, where one of them is read-only.

        Without data they stay as they are.
        """
        changed: dict[DeviceCopy, tuple[StorageView, Array]] = {}
        for each in used if self.rt.data else ():
            held, view = each.held, each.view
            if not held.nbytes or held in changed or len(view.storage) < held.nbytes:
                continue
            now = np.ascontiguousarray(held.tensor.numpy()).reshape(-1).view(np.uint8)  # one number may be all of it
            if held.alike is not None and np.array_equal(now, held.alike[: len(now)]):
                continue
            if not view.storage.flags.writeable:
                self.forget(used)
                raise UsageError(
                    f"argument {each.name!r} of kernel {kernel!r} must be an array that can be written, as the kernel "
                    "writes it, not a read-only one; give a copy. All arrays are as they were."
                )
            changed[held] = view, now
        for held, (view, now) in changed.items():
            view.storage[: len(now)] = now
            held.alike = view.storage.copy()


def _pointer(view: StorageView, held: DeviceCopy, name: str, kernel: str) -> Pointer:
    if not held.nbytes:
        return Pointer(held.tensor.allocation, 1, view.dtype)  # behind all that there is
    first, rest = divmod(view.first_byte + view.address - held.address, itemsize(view.dtype))
    if rest:
        raise UsageError(
            f"argument {name!r} of kernel {kernel!r} must begin at a whole element of its storage, not {rest} bytes "
            "behind one; give a copy."
        )
    return Pointer(held.tensor.allocation, first, view.dtype)


def _fits(held: DeviceCopy, view: StorageView) -> bool:
    """Whether each element of a view is in one piece, wherever the tensor's placement cuts it."""
    return itemsize(view.dtype) <= itemsize(held.tensor.dtype)


def _holds(held: DeviceCopy, view: StorageView) -> bool:
    end = view.address + len(view.storage)
    return bool(len(view.storage)) and held.address <= view.address and end <= held.end


def _meets(held: DeviceCopy, view: StorageView) -> bool:
    return held.address < view.address + len(view.storage) and view.address < held.end


def _free_for(held: DeviceCopy, view: StorageView, where: ArrayPlace) -> bool:
    """Whether the array is gone that a tensor was for, and another one of its name, size and place can be in it."""
    alike = held.nbytes == len(view.storage) and held.tensor.dtype == view.dtype and held.place == where
    return alike and held.owner() is None
