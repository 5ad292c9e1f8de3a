"""`tl.load`, `tl.store` and `tl.free`: tiles between HBM and the scratchpad."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kernbench_core.callsite import CallSite, call_site, describe_site
from kernbench_core.errors import KernelError, PendingDataError, ShapeError
from kernbench_core.kernel.compute_commands import ComputeCommand
from kernbench_core.kernel.dma_commands import DmaReadCmd, DmaWriteCmd, MaskedStoreCmd
from kernbench_core.kernel.index import IndexTensor, broadcast_shapes
from kernbench_core.kernel.pointers import Pointer, Ref, make_ref
from kernbench_core.kernel.queue_commands import SlotBlock
from kernbench_core.kernel.tl.dispatch import Dispatcher
from kernbench_core.kernel.tl.math import MathLanguage
from kernbench_core.kernel.tl.tensor import CopiedHandle, Tensor, Tile
from kernbench_core.kernel.transfers import Transfer, direct_transfer, noted_transfer, pointer_transfer
from kernbench_core.memory.device_memory import TensorAllocation
from kernbench_core.memory.scratchpad import TcmBlock
from kernbench_core.values.dtypes import dtype_of, itemsize
from kernbench_core.values.views import FillValue, poison


class MemoryLanguage(MathLanguage):
    """Loads, stores, and giving space back."""

    # Load ---------------------------------------------------------------------------------------------

    def load(
        self,
        pointer: Pointer | Ref,
        mask: Any = None,
        other: Any = None,
        *,
        shape: Sequence[int] | None = None,
        strides: Sequence[int] | None = None,
        dtype: Any = None,
        wait: bool = True,
        cache_modifier: str = "",
        eviction_policy: str = "",
        volatile: bool = False,
    ) -> Tensor:
        """Bring a tile from HBM to the scratchpad: through a tensor of pointers, or `shape` from one pointer.

        `strides` count elements, row-major by default. Elements that `mask` turns off are neither checked nor
        transferred and hold `other` (default 0; poison in a run whose accesses may be outside). With `wait=False` the
        tile is on its way, and is waited for when it is used. Memory is sampled when the load completes. The cache
        hints are accepted and change nothing.
        """
        transfer = self._transfer(pointer, mask, shape, strides, dtype, "tl.load")
        source = pointer.pointer if isinstance(pointer, Ref) else pointer
        fill = None if transfer.inside is None else self._fill(other, transfer)
        loaded = self._bring(transfer, source.tensor, fill, call_site(), wait)
        if isinstance(other, Tensor | IndexTensor) and mask is not None:
            return self._as_tensor(self.where(mask, loaded, other), transfer.dtype)
        return loaded

    def _bring(
        self, transfer: Transfer, tensor: TensorAllocation, fill: FillValue | None, site: CallSite, wait: bool
    ) -> Tensor:
        """Load what a transfer moves, with `fill` elsewhere; with `wait`, come back when the tile is there."""
        return _brought(self, transfer, tensor, fill, site, wait)

    def _fill(self, other: Any, transfer: Transfer) -> FillValue:
        """Give what elements hold that are not transferred. A tensor is chosen from afterwards."""
        if other is None and self._state.kernels.outside is not None:
            return FillValue(poison(transfer.dtype))
        number = 0 if other is None or isinstance(other, Tensor | IndexTensor) else other
        return FillValue(self._immediate(number, transfer.dtype).array())

    def _transfer(
        self, pointer: Any, mask: Any, shape: Sequence[int] | None, strides: Sequence[int] | None, dtype: Any, op: str,
        *, merged: bool = False,
    ) -> Transfer:  # fmt: skip
        """Find out what an access moves; one that is `merged` later moves all, and must be inside its tensor."""
        if isinstance(pointer, Ref):
            ref = pointer
        elif not isinstance(pointer, Pointer):
            given = "index arithmetic" if isinstance(pointer, IndexTensor) else type(pointer).__name__
            raise ShapeError(
                f"{op} at {describe_site(call_site())} must be given a pointer, not {given}; pass a "
                "tensor to the launch and use the argument."
            )
        elif shape is None:
            if strides is not None or dtype is not None:
                raise ShapeError(
                    f"{op} at {describe_site(call_site())} must be given a shape when it is given strides or a dtype; "
                    "add shape=."
                )
            return self._through(pointer, self._known_mask(mask, op), op, merged)
        else:
            ref = make_ref(pointer, shape, strides, None if dtype is None else dtype_of(dtype), op)
        if mask is None and (merged or self._state.kernels.outside is None):
            return direct_transfer(ref, op)
        start = (ref.base - ref.pointer.tensor.va) // itemsize(ref.dtype)
        pointers = Pointer(ref.pointer.tensor, IndexTensor(ref.shape, start, ref.strides), ref.dtype)
        return self._through(pointers, self._known_mask(mask, op), op, merged)

    def _through(self, pointer: Pointer, mask: Any, op: str, merged: bool) -> Transfer:
        """Find out what an access through pointers moves, without what is outside where that is no error."""
        noted = self._state.kernels.outside
        if noted is None or merged:
            return pointer_transfer(pointer, mask, op)
        return noted_transfer(pointer, mask, op, self._state, noted)

    def _known_mask(self, mask: Any, op: str) -> Any:
        """Give a mask as a bool array, or None; PendingDataError when it is known only after phase 2."""
        if mask is None or mask is True:
            return None
        if isinstance(mask, Tensor):
            mask.settle()
            if not mask.known:
                raise PendingDataError(
                    f"the mask of {op} at {describe_site(call_site())} must be known while the kernel runs, and the "
                    f"result of {mask.op} made at {describe_site(mask.site)} exists only after it; load the whole tile "
                    "and choose with tl.where."
                )
            return mask._read(f"the mask of {op}").astype(bool)
        return np.asarray(mask.numpy() if isinstance(mask, IndexTensor) else mask, bool)

    # Store --------------------------------------------------------------------------------------------

    def store(
        self,
        pointer: Pointer | Ref,
        value: Any,
        mask: Any = None,
        *,
        shape: Sequence[int] | None = None,
        strides: Sequence[int] | None = None,
        cache_modifier: str = "",
        eviction_policy: str = "",
    ) -> None:
        """Bring a tile from the scratchpad to HBM, cast to the pointer's dtype; visible at once, timed after.

        Through a tensor of pointers, or from one pointer with the value's shape (or `shape`) and `strides` in
        elements. Elements that `mask` turns off are not written; a mask that only phase 2 knows makes the store read,
        merge and write the whole tile. Of a composite's handle the output is copied, once it is complete.

        The call comes back when the tile is in HBM. Of a product of tl.dot(…, wait=False) that was not waited for it
        comes back at once: the store waits for it in the DMA's queue, and later stores leave after it. Before a command
        that uses its bytes, or may tell others of them (tl.send, atomics), and at its end the kernel waits for it.
        """
        if isinstance(value, CopiedHandle):
            value.check_own(self, "tl.store")
            value.copy_to(pointer, mask, shape, strides)
            return
        self.check_operand(value, "store")
        single = isinstance(pointer, Pointer) and isinstance(pointer.offset, int)
        if single and shape is None and isinstance(value, Tensor | IndexTensor) and value.shape:
            shape = value.shape
        pending = self._pending_mask(mask)
        merged = pending is not None
        transfer = self._transfer(pointer, None if merged else mask, shape, strides, None, "tl.store", merged=merged)
        tile = self._as_tensor(value, transfer.dtype, transfer.shape, queues=not merged)
        site = call_site()
        tensor = (pointer.pointer if isinstance(pointer, Ref) else pointer).tensor
        if pending is None:
            _stored(self, transfer, tile, tensor, site)
            return
        self._merge(transfer, tile, pending, tensor)

    def _merge(self, transfer: Transfer, tile: Tensor, mask: Tensor, tensor: TensorAllocation) -> None:
        """Store under a mask that only phase 2 knows: read the old content, then merge and write in one command."""
        site, memory = call_site(), self._state.memory
        if broadcast_shapes(mask.shape, transfer.shape, "the mask and the tile of tl.store") != transfer.shape:
            raise ShapeError(
                f"the mask of tl.store at {describe_site(site)} must broadcast to the tile's shape {transfer.shape}, "
                f"not have shape {mask.shape}; reshape it."
            )
        old = self._reserve("tl.store", transfer.shape, transfer.dtype, transfer.nbytes, site)
        self.issue(DmaReadCmd(self.op_id(), "tl.store", site, transfer, tensor, memory, old))
        choice = self.operand(mask, "bool", "store")
        self.issue(
            MaskedStoreCmd(
                self.op_id(), "tl.store", site, transfer, tensor, memory, tile.block, tile.value, choice, mask.block
            )
        )

    def _pending_mask(self, mask: Any) -> Tensor | None:
        """Give the mask if only phase 2 knows it."""
        if not isinstance(mask, Tensor):
            return None
        mask.settle()
        return None if mask.known else mask

    def _as_tensor(
        self, value: Any, dtype: str, shape: tuple[int, ...] | None = None, *, queues: bool = False
    ) -> Tensor:
        """Bring a value into the scratchpad with this dtype and shape, by timed commands where it is not there.

        With `queues` what is computed may be on its way still, and commands that change it wait for it in their queue.
        """
        if isinstance(value, IndexTensor):
            value = self.math("copy", (value,), value.shape, dtype)
        elif not isinstance(value, Tensor):
            return self.full(shape or (), value, dtype)
        value.check_own(self, "tl.store")
        value.check_live("tl.store")
        if queues and isinstance(value.command, ComputeCommand):
            made = value if value.dtype == dtype else self._behind("cast", value, value.shape, dtype)
            return made if shape is None or made.shape == shape else self._behind_as(made, shape)
        value.settle()
        tile: Tensor = self.cast(value, dtype)
        return tile if shape is None or tile.shape == shape else self.broadcast_to(tile, shape)

    def _behind_as(self, tile: Tensor, shape: tuple[int, ...]) -> Tensor:
        """Repeat a tile that is on its way along dimensions up to `shape`."""
        if broadcast_shapes(tile.shape, shape, "tl.broadcast_to") != shape:
            tile.settle()
            return self._as_tensor(self.broadcast_to(tile, shape), tile.dtype)  # which says what is wrong
        return self._behind("broadcast_to", tile, shape, tile.dtype)

    # Free ---------------------------------------------------------------------------------------------

    def free(self, tensor: Tensor) -> None:
        """Give a tile's scratchpad space back now, or when its last timed reader is complete.

        Any later use of the tile, or of a view of it, is a KernelError. A slot of a queue (tl.recv with copy=False)
        goes back to its sender at once; a use that is under way or comes later is a hazard.
        """
        if not isinstance(tensor, Tensor):
            raise KernelError(
                f"tl.free at {describe_site(call_site())} must be given a tensor of the scratchpad, not "
                f"{type(tensor).__name__}; only those take space."
            )
        tensor.check_own(self, "tl.free")
        site = call_site()
        self._give_back(tensor.block, site)
        tensor.block.free(site)

    def _give_back(self, block: TcmBlock, site: CallSite) -> None:
        """Note the commands that still use a slot which `tl.free` at the line `site` gives back to its sender."""
        if isinstance(block, SlotBlock) and block.users:
            for command in self.in_flight:
                if not command.complete and any(used is block for used in command.blocks):
                    block.in_flight(command, site)


# Functions, and not methods, which have no types of C: each tile is brought and stored by one of them.


def _brought(
    tl: Dispatcher, transfer: Transfer, tensor: TensorAllocation, fill: FillValue | None, site: CallSite, wait: bool
) -> Tensor:
    state = tl._state
    shape, dtype = transfer.shape, transfer.dtype
    count = itemsize(dtype)
    state.kernels.loaded += transfer.nbytes // count
    for extent in shape:
        count *= extent
    block = tl._reserve("tl.load", shape, dtype, count, site)
    command = DmaReadCmd(tl.op_id(), "tl.load", site, transfer, tensor, state.memory, block, fill)
    loaded = Tensor(tl, command.value, block, "tl.load", site, None if wait else command)
    tl._issue(command, wait)
    return loaded


def _stored(tl: Dispatcher, transfer: Transfer, tile: Tile, tensor: TensorAllocation, site: CallSite) -> None:
    memory = tl._state.memory
    command = DmaWriteCmd(tl.op_id(), "tl.store", site, transfer, tensor, memory, tile.block, tile.value)
    command.needs = tile.command
    command.queued = tile.command is not None
    tl._issue(command, tile.command is None)
