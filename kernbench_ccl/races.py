"""Uses of one tensor by two PEs of a rank that no message orders: then a proof for one order would prove nothing.

Each PE's clock holds, for every PE, how many of its ops are known to be over; a message carries the sender's.
"""

from __future__ import annotations

from attrs import define, field, frozen

from kernbench_core.callsite import CallSite
from kernbench_core.commands import KernelCommand
from kernbench_core.queue_commands import RecvCmd, SendCmd
from kernbench_core.regions import Region, overlaps
from kernbench_core.values import OpId

__tracebackhide__ = True  # errors name the kernel's line, not one of these

_MOST = 4
"""Races that are kept, each of other lines."""


@frozen(eq=False)
class Use:
    """A use of a range of a tensor, in virtual addresses."""

    op_id: OpId
    site: CallSite
    regions: tuple[Region, ...]
    writes: bool


@frozen
class Race:
    """Two uses of the same elements that nothing orders."""

    tensor: str
    first: Use
    second: Use


@define(eq=False)
class _Uses:
    """What one PE did with one tensor, and the lowest and highest address of it."""

    all: list[Use] = field(factory=list)
    low: int = 1 << 62
    high: int = 0


class Races:
    """Watch the uses of memory of one run."""

    def __init__(self) -> None:
        self.found: list[Race] = []
        self._clocks: dict[int, dict[int, int]] = {}
        self._carried: dict[OpId, dict[int, int]] = {}
        self._tensors: dict[str, dict[int, _Uses]] = {}
        self._seen: set[tuple[CallSite, CallSite]] = set()

    def sent(self, command: SendCmd) -> None:
        """Let a message carry what its sender knows."""
        pe, number = command.op_id
        self._carried[command.op_id] = {**self._clocks.get(pe, {}), pe: number}

    def received(self, command: RecvCmd) -> None:
        """Let a receiver know what its message carries."""
        assert command.sent is not None
        clock = self._clocks.setdefault(command.pe, {})
        for pe, number in self._carried[command.sent.op_id].items():
            clock[pe] = max(clock.get(pe, 0), number)

    def used(self, command: KernelCommand) -> None:
        """Look at what a command uses."""
        for tensor, virtual, _, writes in command.memory_uses():
            use = Use(command.op_id, command.site, virtual, writes)
            low, high = min(r.start for r in virtual), max(r.end for r in virtual)
            by_pe = self._tensors.setdefault(tensor.whole, {})
            clock = self._clocks.get(command.op_id[0], {})
            for pe, uses in by_pe.items():
                if pe != command.op_id[0] and low < uses.high and uses.low < high:
                    self._look(tensor.whole, use, uses, clock.get(pe, 0))
            own = by_pe.setdefault(command.op_id[0], _Uses())
            own.all.append(use)
            own.low, own.high = min(own.low, low), max(own.high, high)

    def _look(self, tensor: str, use: Use, others: _Uses, known: int) -> None:
        for other in others.all:
            if not (use.writes or other.writes) or other.op_id[1] < known or len(self.found) >= _MOST:
                continue
            if any(overlaps(a, b) for a in use.regions for b in other.regions):
                lines = (other.site, use.site)
                if lines not in self._seen:
                    self._seen.add(lines)
                    self.found.append(Race(tensor, other, use))
