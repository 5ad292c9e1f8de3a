"""Uses of one tensor by two PEs of a rank that no message orders: then a proof for one order would prove nothing.

Each PE's clock holds, for every PE, how many of its ops are known to be over; a message carries the sender's.
"""

from __future__ import annotations

from bisect import bisect_left

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
    """A use of a range of a tensor, in virtual addresses: `regions`, all of them from `low` to `high`."""

    op_id: OpId
    site: CallSite
    regions: tuple[Region, ...]
    writes: bool
    low: int
    high: int


@frozen
class Race:
    """Two uses of the same elements that nothing orders."""

    tensor: str
    first: Use
    second: Use


@define(eq=False)
class _Uses:
    """What one PE did with one tensor, in its order, and the lowest and highest address of it."""

    all: list[Use] = field(factory=list)
    numbers: list[int] = field(factory=list)
    low: int = 1 << 62
    high: int = 0


class Races:
    """Watch the uses of memory of one run of `pes` PEs."""

    def __init__(self, pes: int) -> None:
        self.found: list[Race] = []
        self._clocks = [[0] * pes for _ in range(pes)]
        self._carried: dict[OpId, tuple[int, ...]] = {}
        self._tensors: dict[str, dict[int, _Uses]] = {}
        self._seen: set[tuple[CallSite, CallSite]] = set()

    def sent(self, command: SendCmd) -> None:
        """Let a message carry what its sender knows."""
        pe, number = command.op_id
        clock = self._clocks[pe]
        clock[pe] = number
        self._carried[command.op_id] = tuple(clock)

    def received(self, command: RecvCmd) -> None:
        """Let a receiver know what its message carries."""
        assert command.sent is not None
        clock = self._clocks[command.pe]
        clock[:] = map(max, clock, self._carried.pop(command.sent.op_id))

    def used(self, command: KernelCommand) -> None:
        """Look at what a command uses."""
        pe, number = command.op_id
        for tensor, virtual, _, writes in command.memory_uses():
            low, high = virtual[0].start, virtual[0].end
            for region in virtual[1:]:
                low, high = min(low, region.start), max(high, region.end)
            use = Use(command.op_id, command.site, virtual, writes, low, high)
            by_pe = self._tensors.setdefault(tensor.whole, {})
            clock = self._clocks[pe]
            for other, uses in by_pe.items():
                if other != pe and low < uses.high and uses.low < high:
                    self._look(tensor.whole, use, uses, clock[other])
            own = by_pe.get(pe)
            if own is None:
                own = by_pe[pe] = _Uses()
            own.all.append(use)
            own.numbers.append(number)
            own.low, own.high = min(own.low, low), max(own.high, high)

    def _look(self, tensor: str, use: Use, others: _Uses, known: int) -> None:
        """Look at those uses of another PE that are not known to be over, which are its last ones."""
        for at in range(bisect_left(others.numbers, known), len(others.all)):
            other = others.all[at]
            if use.low >= other.high or other.low >= use.high or not (use.writes or other.writes):
                continue
            if any(overlaps(a, b) for a in use.regions for b in other.regions):
                lines = (other.site, use.site)
                if lines not in self._seen and len(self.found) < _MOST:
                    self._seen.add(lines)
                    self.found.append(Race(tensor, other, use))
