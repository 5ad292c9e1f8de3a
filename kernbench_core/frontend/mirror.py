"""What the device holds of the host's arrays: each storage is a tensor, refreshed before a launch, read back after."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from attrs import define, field

from kernbench_core.frontend.storage import StorageView, typed
from kernbench_core.values.arrays import Array

if TYPE_CHECKING:
    from kernbench_core.host.device_tensor import DeviceTensor
    from kernbench_core.host.runtime import Runtime


@define(eq=False)
class MirroredStorage:
    """A storage that the device holds; `alike` are the bytes that both sides held when they were last alike."""

    view: StorageView
    tensor: DeviceTensor
    alike: Array


@define(eq=False)
class Mirror:
    """The storages of the host that the device of `rt` holds. What the host changed is there when a launch begins.

    Triton's tensors are on the device when a kernel is launched, so moving them takes no simulated time.
    """

    rt: Runtime
    _held: dict[tuple[int, int], MirroredStorage] = field(factory=dict)

    def hold(self, view: StorageView, name: str) -> MirroredStorage:
        """Return a storage with what the host has in it now; `name` is what a new one is called."""
        key = (view.address, len(view.storage))
        held = self._held.get(key)
        if held is None:
            tensor = self.rt.tensor(typed(view.storage, view.dtype), name=name, preloaded=True)
            held = self._held[key] = MirroredStorage(view, tensor, view.storage.copy())
        elif not np.array_equal(held.alike, view.storage):
            self.rt.preload(held.tensor, typed(view.storage, held.tensor.dtype))
            held.alike = view.storage.copy()
        held.view = view
        return held

    def read_back(self, used: Iterable[MirroredStorage]) -> None:
        """Give the host what a launch left in some storages."""
        for held in dict.fromkeys(used):
            now = held.tensor.numpy().reshape(-1).view(np.uint8)
            if not np.array_equal(now, held.alike[: len(now)]):
                held.view.storage[: len(now)] = now
                held.alike[: len(now)] = now
