"""Record what a PE's programs do with blocks of the scratchpad: when one is handed out, and when it is dropped.

A block is given back when no handle of the program refers to it and no command in flight uses it. When commands end is
a matter of time; when a program drops its last handle is not, and is known by CPython's count of references.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import attrs

from kernbench_builtin.native.recording import BORN, DROPPED, FREED, LENT, ROOM

if TYPE_CHECKING:
    from kernbench_core.kernel.commands import KernelCommand
    from kernbench_core.memory.scratchpad import TcmBlock, TcmTable


@attrs.define(eq=False)
class _Held:
    """A block that is not given back: its number, and its object (by address, as a reference would keep it)."""

    number: int
    place: int
    slot: bool = False
    dropped: bool = False
    _count: ctypes.c_ssize_t = attrs.field(init=False)
    _block: Any = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._count = ctypes.c_ssize_t.from_address(self.place)
        self._block = ctypes.cast(self.place, ctypes.py_object)

    @property
    def block(self) -> Any:
        """The block, which lives as long as it is not given back."""
        return self._block.value

    def is_dropped(self) -> bool:
        """Whether commands in flight use it, which refer to it, and nobody else does, or the program has freed it."""
        count, block = self._count.value, self._block.value
        return block.users and (count == block.users or block.freed_at is not None)


class BlockLog:
    """Note the blocks of one scratchpad; `told(what, argument, number)` is called in the order of the program.

    What is told is BORN with bytes, LENT with the receipt that gave a slot, DROPPED, with 1 for one of several slots at
    once, of which nobody knows which went first, FREED of a slot, and ROOM with the bytes that the largest hole has at
    least, and fewer than so many, or -1.
    """

    def __init__(self, table: TcmTable, told: Callable[[int, int, int], None]) -> None:
        self._told = told
        self._live: dict[int, _Held] = {}
        self._addresses: dict[int, int] = {}
        self._number = 0
        #: Slots of queues among them: who sends waits for when each goes back, and not only for how much room there is.
        self.slots = 0
        table.watch(self._born, self._gone, self._asked)

    def uses(self, command: KernelCommand) -> list[int]:
        """Return the numbers of the blocks that a command holds until it is complete."""
        found = []
        for block in command.blocks:
            held = self._live.get(id(block))
            if held is not None:
                found.append(held.number)
        return found

    def lend(self, slot: Any, receipt: int) -> None:
        """Note a slot that a program has got, which is given back as a block is."""
        place, back = id(slot), slot._back
        self.slots += 1
        self._add(place, LENT, receipt, slot=True)

        def given_back() -> None:
            self._release(place)
            back()

        slot._back = given_back

    def look(self) -> None:
        """Note the blocks that the program has dropped since it was looked at last, and that commands still use."""
        gone = [held for held in self._live.values() if not held.dropped and held.is_dropped()]
        together = sum(held.slot for held in gone) > 1
        for held in gone:
            held.dropped = True
            self._told(DROPPED, int(held.slot and together), held.number)

    def _add(self, place: int, what: int, argument: int, *, slot: bool = False) -> None:
        self._live[place] = _Held(self._number, place, slot)
        self._told(what, argument, self._number)
        self._number += 1

    def _born(self, block: TcmBlock) -> None:
        birth: Any = block.birth
        if str(birth.op).startswith("queue from "):
            return
        self.look()
        self._addresses[block.address] = id(block)
        self._add(id(block), BORN, block.region.row_bytes)

    def _asked(self, least: int, below: int | None) -> None:
        self.look()
        self._told(ROOM, least, -1 if below is None else below)

    def _gone(self, address: int) -> None:
        place = self._addresses.pop(address, None)
        if place is not None:
            self._release(place)

    def _release(self, place: int) -> None:
        held = self._live.pop(place)
        self.slots -= held.slot
        if held.slot or self.slots:
            self.look()  # what was dropped before it, and commands still use
        if not held.dropped:
            freed = held.slot and held.block.freed_at is not None
            self._told(FREED if freed else DROPPED, 0, held.number)
