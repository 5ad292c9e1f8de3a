"""Atomic ops on elements in memory: the memory that owns them takes what is there and leaves the result.

A tile is one command for each memory that it touches, and for each chunk there; the kernel goes on when all are over.
Where it uses what was there before, that comes back with the answer.
"""

from __future__ import annotations

import dis
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from kernbench_builtin.triton.language.atomic_commands import (
    ONE_LANE,
    ORDERS,
    AtomicAnswer,
    AtomicCmd,
    Lanes,
    addresses_of,
    joined_answers,
)
from kernbench_builtin.triton.language.numbers import NumberLanguage
from kernbench_builtin.triton.scalars import scalar, to_memory
from kernbench_core.callsite import CallSite, call_site, describe_site
from kernbench_core.errors import KernelError, ShapeError
from kernbench_core.kernel.dma_commands import translated
from kernbench_core.kernel.index import IndexTensor
from kernbench_core.kernel.placeholders import describe_given
from kernbench_core.kernel.pointers import Pointer
from kernbench_core.kernel.tl.tensor import Tensor
from kernbench_core.kernel.transfers import Transfer, noted_mask, pointer_transfer
from kernbench_core.values.dtypes import itemsize
from kernbench_core.values.element_types import as_dtype
from kernbench_core.wording import brief

_Moved = tuple[Transfer, Lanes]


@lru_cache(maxsize=1024)
def _unused(site: CallSite) -> bool:
    """Tell whether the kernel's line drops what the call gives, by the instruction behind the call."""
    code, at = site
    rest = iter(dis.get_instructions(code))
    for each in rest:
        if each.offset == at:
            return next(rest).opname == "POP_TOP"
    return False


def _fault(op: str, pointer: Any, order: str, *, polls: bool) -> tuple[type[KernelError], str] | None:
    """Return the error, and what it says, for an op that Triton does not have either; None for one that is right."""
    if not isinstance(pointer, Pointer):
        return ShapeError, f"must be given pointers, not {describe_given(pointer)}; pass a tensor to the launch."
    element = as_dtype(pointer.element)
    bits, floats = element.primitive_bitwidth, element.is_floating()
    if floats and op in ("atomic_and", "atomic_or", "atomic_xor"):
        return ShapeError, f"must be given pointers to integers, not {pointer.element}; cast them."
    if op == "atomic_cas" and bits < 16:
        return ShapeError, f"only supports elements of 16, 32 and 64 bits, not {element}; use wider ones."
    if not polls and op != "atomic_cas" and (bits < 16 or (bits == 16 and not (floats and op == "atomic_add"))):
        return ShapeError, f"does not support {element.name}, as {op} in Triton; use elements of 32 bits."
    if order not in ORDERS:
        return KernelError, f"must be given a sem of {', '.join(ORDERS)}, not {brief(order)}; correct it."
    return None


class AtomicLanguage(NumberLanguage):
    """`atomic_add` and its like."""

    def atomic_add(self, pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> Any:
        """Add to elements in memory; give what they held before."""
        return self._atomic("atomic_add", pointer, (val,), mask, sem)

    def atomic_max(self, pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> Any:
        """Leave the greater in memory; give what was there before."""
        return self._atomic("atomic_max", pointer, (val,), mask, sem)

    def atomic_min(self, pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> Any:
        """Leave the less in memory; give what was there before."""
        return self._atomic("atomic_min", pointer, (val,), mask, sem)

    def atomic_and(self, pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> Any:
        """Leave the bits of both in memory; give what was there before."""
        return self._atomic("atomic_and", pointer, (val,), mask, sem)

    def atomic_or(self, pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> Any:
        """Leave the bits of either in memory; give what was there before."""
        return self._atomic("atomic_or", pointer, (val,), mask, sem)

    def atomic_xor(self, pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> Any:
        """Leave the bits that differ in memory; give what was there before."""
        return self._atomic("atomic_xor", pointer, (val,), mask, sem)

    def atomic_xchg(self, pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> Any:
        """Leave `val` in memory; give what was there before."""
        return self._atomic("atomic_xchg", pointer, (val,), mask, sem)

    def atomic_cas(self, pointer: Any, cmp: Any, val: Any, sem: Any = None, scope: Any = None) -> Any:
        """Leave `val` in memory where `cmp` is there; give what was there before."""
        return self._atomic("atomic_cas", pointer, (val, cmp), None, sem)

    def atomic_poll(
        self, pointer: Any, expected_value: Any, sem: Any = None, scope: Any = None, timeout_ns: Any = None
    ) -> Any:
        """Look again and again until an element is `expected_value`, and give True; with a timeout of 0 look once."""
        if timeout_ns is not None and int(timeout_ns) != 0:
            here = f"tl.atomic_poll at {describe_site(call_site())}"
            given = brief(timeout_ns)
            raise KernelError(f"{here} must be given no timeout, or one of 0, not {given}; count the looks.")
        while True:
            there = self._atomic("atomic_or", pointer, (0,), None, sem or "acquire", polls=True)
            same = there == expected_value
            found = bool(same._read("tl.atomic_poll") if isinstance(same, Tensor) else same)
            if found or timeout_ns is not None:
                return scalar(found, "bool")

    def _atomic(
        self, op: str, pointer: Any, operands: tuple[Any, ...], mask: Any, sem: Any, *, polls: bool = False
    ) -> Any:
        site, order = call_site(), getattr(sem, "value", sem) or "acq_rel"
        fault = _fault(op, pointer, order, polls=polls)
        if fault is not None:
            kind, words = fault
            raise kind(f"tl.{op} at {describe_site(site)} {words}")
        shape = pointer.shape
        tiles = [self._as_tensor(to_memory(each), pointer.element, shape) for each in operands]
        known, noted = self._known_mask(mask, f"tl.{op}"), self._state.kernels.outside
        if noted is not None:
            known, _ = noted_mask(pointer, known, f"tl.{op}", self._state, noted)
        parts = self._parts(op, pointer, known, site)
        used = polls or not _unused(site)
        if not parts:
            return self.full(shape, 0, pointer.element) if used else None
        return self._changed(op, pointer, tiles, parts, shape, order, site, used=used)

    def _parts(self, op: str, pointer: Pointer, mask: Any, site: CallSite) -> list[_Moved]:
        """Give what is moved for the lanes that a mask leaves, each a chunk of one memory, and the lanes of it."""
        if mask is None and isinstance(pointer.offset, int):  # a lock, a flag or a counter
            return [(self._moved(op, pointer, IndexTensor((1,), pointer.offset, (0,))), ONE_LANE)]
        item, state, shape = itemsize(pointer.element), self._state, pointer.shape
        offsets = np.asarray(pointer.offset if isinstance(pointer.offset, int) else pointer.offset.numpy(), np.int64)
        offsets = np.broadcast_to(offsets, shape).reshape(-1)
        positions = np.flatnonzero(np.broadcast_to(True if mask is None else mask, shape))
        if not positions.size:
            return []
        places, met = np.unique(offsets[positions], return_inverse=True)
        whole = self._moved(op, pointer, IndexTensor.of(places))
        physical = translated(state.memory, whole, state.pe, pointer.tensor, f"tl.{op}", site)
        chunks = state.kernels.cut(physical)
        if len(chunks) == 1:
            return [(whole, Lanes(shape, positions, met))]
        addresses = addresses_of(physical, item)
        order = np.argsort(addresses)
        parts = []
        for chunk in chunks:
            of_chunk = order[np.searchsorted(addresses, addresses_of(chunk.regions, item), sorter=order)]
            number = np.full(places.size, -1, np.int64)
            number[of_chunk] = np.arange(of_chunk.size)
            own = np.flatnonzero(number[met] >= 0)
            lanes = Lanes(shape, positions[own], number[met[own]])
            parts.append((self._moved(op, pointer, IndexTensor.of(places[of_chunk])), lanes))
        return parts

    def _moved(self, op: str, pointer: Pointer, places: IndexTensor) -> Transfer:
        return pointer_transfer(Pointer(pointer.tensor, places, pointer.element), None, f"tl.{op}")

    def _changed(
        self, op: str, pointer: Pointer, tiles: list[Tensor], parts: list[_Moved], shape: tuple[int, ...], order: str,
        site: CallSite, *, used: bool,
    ) -> Tensor | None:  # fmt: skip
        """Issue a command for each memory; give what was there before where the kernel's line uses it."""
        memory, tensor = self._state.memory, pointer.tensor
        operands, blocks = [self.operand(tile, tile.dtype, op) for tile in tiles], tuple(tile.block for tile in tiles)
        if used:
            nbytes = prod(shape) * itemsize(pointer.element)
            answer = self._reserve(f"tl.{op}", shape, pointer.element, nbytes, site)
            blocks = (*blocks, answer)
        commands = []
        for transfer, lanes in parts:
            command = AtomicCmd(self.op_id(), op, site, transfer, tensor, memory, blocks, lanes, operands, order)
            if used:
                command.answer = AtomicAnswer(self.op_id(), command, answer)
            commands.append(command)
            self.issue(command, wait=False)
        self.wait_for(commands)
        if not used:
            return None
        found = [(each.lanes, each.answer.value) for each in commands if each.answer is not None]
        return Tensor(self, joined_answers(found, shape, pointer.element), answer, f"tl.{op}", site)
