"""What a hazard is, and how it reads: two uses of the same memory that nothing orders."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Final

from attrs import evolve, frozen

from kernbench_core.memory.elements import spell_index
from kernbench_core.process.notebook import Pictured
from kernbench_core.units import format_bytes, format_time
from kernbench_core.values.value import OpId

UNORDERED_READ: Final = "unordered_read"
"""One PE reads bytes that another writes, and nothing says who is first."""

UNORDERED_WRITES: Final = "unordered_writes"
"""Two PEs write the same bytes, and nothing says who is last."""

RECYCLED_TCM: Final = "recycled_tcm"
"""A range of a scratchpad is handed out again while a command that does not hold it still uses it."""

RECYCLED_SLOT: Final = "recycled_slot"
"""A slot of a queue is used although it was given back: the next message may have overwritten it."""


@frozen
class HazardUse:
    """One side of a hazard: the op (None for what is no op), the call, the PE, the kernel line, and its times in ns.

    `landed_ns` is None where the run ended before, and for what is no op: an allocation, a tl.free. `writes` says
    whether it writes a tensor or reads it; None in a scratchpad or slot.
    """

    op_id: OpId | None
    call: str
    pe: str
    line: str
    issued_ns: float
    landed_ns: float | None
    writes: bool | None = None

    def __str__(self) -> str:
        until = "" if self.landed_ns is None else f" to {format_time(self.landed_ns)}"
        return f"{self.call} at {self.line} on {self.pe}, {format_time(self.issued_ns)}{until}"


@frozen(repr=False)
class Hazard(Pictured):
    """Two uses of the same memory that nothing orders; `count` such pairs of these two lines were found.

    `name` is the tensor, the scratchpad or the slot. `index` is the first element that both use (None in a scratchpad),
    `byte` its offset in the tensor or scratchpad, `nbytes` how much both use. They and the uses are those of the first
    pair.
    """

    kind: str
    name: str
    index: tuple[int, ...] | None
    byte: int
    nbytes: int
    first: HazardUse
    second: HazardUse
    count: int

    @property
    def place(self) -> str:
        """What both use: the first element, or the offset in a scratchpad."""
        if self.index is None:
            return f"{self.name} at offset {self.byte:#x}"
        return spell_index(self.name, self.index)

    def __str__(self) -> str:
        times = "" if self.count == 1 else f", {self.count} such pairs"
        return f"{_WORDS[self.kind]}: {self.place}, {format_bytes(self.nbytes)}{times}"

    def __repr__(self) -> str:
        return f"<Hazard {self}: {self.first}; {self.second}>"

    @property
    def has_order(self) -> bool:
        """Whether anything in a program can order the two uses."""
        return self.kind in _ORDERED

    def lines(self, *, folders: bool = True, orders: str = "") -> tuple[str, ...]:
        """Say what it is, then each side on a line of its own, and what would order them, where anything does.

        Without `folders`, files are told by their names alone; `orders` is that of another language than `ORDERS`.
        """
        first, second = (
            side if folders else evolve(side, line=PurePath(side.line).name) for side in (self.first, self.second)
        )
        return str(self), f"  {first}", f"  {second}", *([f"  {orders or ORDERS}"] if self.has_order else [])


ORDERS: Final = "a message (tl.send, tl.recv) or a launch that the host waits for in between orders them"
"""What to do about uses of a tensor that nothing orders, in kernels of kernbench's own language."""

_ORDERED: Final = (UNORDERED_READ, UNORDERED_WRITES)

_WORDS: Final[Mapping[str, str]] = {
    UNORDERED_READ: "a read and a write that nothing orders",
    UNORDERED_WRITES: "unordered writes",
    RECYCLED_TCM: "TCM range used after it was handed out again",
    RECYCLED_SLOT: "slot used after it was given back, so that the next message may overwrite it",
}
