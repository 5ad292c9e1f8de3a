"""Atomic ops on elements in memory: one command takes what is there and leaves the result, with nothing between.

Its time is that of a store; where the kernel uses what was there before, also that of a load, which brings it back.
"""

from __future__ import annotations

import dis
from functools import lru_cache
from typing import Any

import numpy as np

from kernbench_core.callsite import CallSite, call_site, describe_site
from kernbench_core.errors import ShapeError
from kernbench_core.frontend.language.numbers import NumberLanguage
from kernbench_core.kernel.atomic_commands import AtomicCmd, BeforeCmd
from kernbench_core.kernel.commands import Operand
from kernbench_core.kernel.index import IndexTensor
from kernbench_core.kernel.pointers import Pointer, pointer_transfer
from kernbench_core.kernel.tl.tensor import Tensor
from kernbench_core.values.dtypes import is_float
from kernbench_core.values.value import ArrayValue


@lru_cache(maxsize=1024)
def _unused(site: CallSite) -> bool:
    """Tell whether the kernel's line drops what the call gives, by the instruction behind the call."""
    code, at = site
    rest = iter(dis.get_instructions(code))
    for each in rest:
        if each.offset == at:
            return next(rest).opname == "POP_TOP"
    return False


class AtomicLanguage(NumberLanguage):
    """`atomic_add` and its like."""

    def atomic_add(self, pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> Any:
        """Add to elements in memory; give what they held before."""
        return self._atomic("atomic_add", pointer, (val,), mask)

    def atomic_max(self, pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> Any:
        """Leave the greater in memory; give what was there before."""
        return self._atomic("atomic_max", pointer, (val,), mask)

    def atomic_min(self, pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> Any:
        """Leave the less in memory; give what was there before."""
        return self._atomic("atomic_min", pointer, (val,), mask)

    def atomic_and(self, pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> Any:
        """Leave the bits of both in memory; give what was there before."""
        return self._atomic("atomic_and", pointer, (val,), mask)

    def atomic_or(self, pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> Any:
        """Leave the bits of either in memory; give what was there before."""
        return self._atomic("atomic_or", pointer, (val,), mask)

    def atomic_xor(self, pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> Any:
        """Leave the bits that differ in memory; give what was there before."""
        return self._atomic("atomic_xor", pointer, (val,), mask)

    def atomic_xchg(self, pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> Any:
        """Leave `val` in memory; give what was there before."""
        return self._atomic("atomic_xchg", pointer, (val,), mask)

    def atomic_cas(self, pointer: Any, cmp: Any, val: Any, sem: Any = None, scope: Any = None) -> Any:
        """Leave `val` in memory where `cmp` is there; give what was there before."""
        return self._atomic("atomic_cas", pointer, (val, cmp), None)

    def _atomic(self, op: str, pointer: Any, operands: tuple[Any, ...], mask: Any) -> Any:
        here = f"tl.{op} at {describe_site(call_site())}"
        if not isinstance(pointer, Pointer):
            given = type(pointer).__name__
            raise ShapeError(f"{here} must be given pointers, not {given}; pass a tensor to the launch.")
        if is_float(pointer.element) and op in ("atomic_and", "atomic_or", "atomic_xor"):
            raise ShapeError(f"{here} must be given pointers to integers, not {pointer.element}; cast them.")
        shape = pointer.shape
        tiles = [self._as_tensor(each, pointer.element, shape) for each in operands]
        known = self._known_mask(mask, f"tl.{op}")
        offsets = np.asarray(pointer.offset if isinstance(pointer.offset, int) else pointer.offset.numpy(), np.int64)
        offsets, kept = np.broadcast_to(offsets, shape), np.broadcast_to(True if known is None else known, shape)
        places, met = np.unique(offsets[kept], return_inverse=True)
        if not places.size:
            return None if _unused(call_site()) else self.full(shape, 0, pointer.element)
        lanes = np.full(shape, -1, np.int64)
        lanes[kept] = met.reshape(-1)
        there = Pointer(pointer.tensor, IndexTensor.of(places), pointer.element)
        return self._changed(op, there, tiles, Operand(ArrayValue(lanes), None), shape)

    def _changed(
        self, op: str, there: Pointer, tiles: list[Tensor], lanes: Operand, shape: tuple[int, ...]
    ) -> Tensor | None:
        """Issue the command; give what was there before where the kernel's line uses it."""
        transfer, memory, site = pointer_transfer(there, None, f"tl.{op}"), self._state.memory, call_site()
        new, *compared = [self.operand(tile, tile.dtype, op) for tile in tiles]
        blocks = tuple(tile.block for tile in tiles)
        command = AtomicCmd(self.op_id(), op, site, transfer, there.tensor, memory, blocks, (new, lanes, *compared))
        self.issue(command)
        if _unused(site):
            return None
        block = self._state.tcm.allocate(f"tl.{op}", transfer.shape, transfer.dtype, transfer.nbytes, site)
        answer = BeforeCmd(self.op_id(), command, transfer, memory, block)
        old = Tensor(self, answer.value, block, f"tl.{op}", site)
        self.issue(answer)
        if np.array_equal(lanes.value.array().reshape(-1), np.arange(transfer.shape[0])):
            return old.view(shape)
        found = IndexTensor.of(lanes.value.array(), "int64")
        extra = {"how": op.removeprefix("atomic_")}
        return self.math("atomic_before", (old, tiles[0], found, *tiles[1:]), shape, transfer.dtype, extra=extra)
