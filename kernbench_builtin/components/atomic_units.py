"""The atomic units of a memory: one for each channel, which changes elements in order and keeps what is waited for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import attrs
import numpy as np

from kernbench_core.component import ComponentBase
from kernbench_core.memory import AtomicTransaction
from kernbench_core.params import Param
from kernbench_core.units import grid_ceil
from kernbench_core.values import Region

ATOMIC_STEP: Final = Param(
    "atomic_step", "time", "1 ns", "Time of a channel's atomic unit for a step on one burst.", positive=True
)

#: Bytes of the widest element: all of it is in one burst.
_WIDEST: Final = 8
#: Bursts that are kept track of before those that no unit keeps are looked for.
_FEW: Final = 64
#: Bursts (addresses) by channel.
Channels = Mapping[int, tuple[int, ...]]


@attrs.define(eq=False)
class AtomicWork:
    """One request at the units: its `steps` by channel, and the bursts (addresses) that have to be `fetched`.

    It is over at `end` ns; inf before that is known.
    """

    msg: AtomicTransaction
    steps: Mapping[int, int]
    fetched: Channels
    end: float = np.inf

    def regions(self, burst: int) -> tuple[Region, ...]:
        """Return the bursts to fetch, in order of address."""
        found = sorted(address for addresses in self.fetched.values() for address in addresses)
        return tuple(Region(address, burst) for address in found)

    def bytes_of(self, burst: int) -> tuple[tuple[int, int], ...]:
        """Return (channel, bytes) of what is fetched, ascending."""
        return tuple((channel, len(addresses) * burst) for channel, addresses in sorted(self.fetched.items()))


class AtomicUnits:
    """Serve read-modify-writes: a step on one burst changes each of its elements at most once.

    Lanes that meet in an element take a step each. A burst stays in the unit while a request for it is there, and is
    fetched by the first of them only. `channel_of(address)` says to which channel a burst belongs.
    """

    def __init__(self, memory: ComponentBase, burst: int, channel_of: Callable[[int], int]) -> None:
        self._memory = memory
        self.burst = burst * -(-_WIDEST // burst)
        self._channel_of = channel_of
        self._step = grid_ceil(memory.params[ATOMIC_STEP.name])
        #: By channel when its unit is free, in ns.
        self._free: dict[int, float] = {}
        #: By burst the last request for it, until many are over.
        self._holders: dict[int, AtomicWork] = {}
        self._most = _FEW

    def take(self, msg: AtomicTransaction, at: float) -> AtomicWork:
        """Take in a request that is there at `at` ns, in order: it has its turn now."""
        msg.change(self._memory.env.now)
        steps: dict[int, int] = {}
        fetched: dict[int, list[int]] = {}
        bursts = self._bursts(msg)
        for address, number in bursts.items():
            channel = self._channel_of(address)
            steps[channel] = steps.get(channel, 0) + number
            holder = self._holders.get(address)
            if holder is None or holder.end <= at:
                fetched.setdefault(channel, []).append(address)
        work = AtomicWork(msg, steps, {channel: tuple(found) for channel, found in fetched.items()})
        self._holders.update(dict.fromkeys(bursts, work))
        if len(self._holders) > self._most:
            self._holders = {burst: holder for burst, holder in self._holders.items() if holder.end > at}
            self._most = 2 * len(self._holders) + _FEW
        return work

    def _bursts(self, msg: AtomicTransaction) -> dict[int, int]:
        """Return the bursts that a request is of, in ascending order, and the most turns of an element of each."""
        if msg.addresses.size == 1:
            return {int(msg.addresses[0]) // self.burst * self.burst: int(msg.turns[0])}
        bursts, member = np.unique(msg.addresses // self.burst * self.burst, return_inverse=True)
        longest = np.zeros(bursts.size, np.int64)
        np.maximum.at(longest, member, msg.turns)
        return dict(zip(bursts.tolist(), longest.tolist(), strict=True))

    def serve(self, work: AtomicWork, ready: Mapping[int, float], at: float) -> tuple[int, float]:
        """Have each channel's unit do its steps, from when its bursts are `ready`, or else from `at` on (ns).

        Return the channel that is the last, and when it begins; the request is over at `work.end`. Called in the order
        of `take`.
        """
        last, began, work.end = 0, 0.0, -np.inf
        for channel, number in work.steps.items():
            start = max(ready.get(channel, at), self._free.get(channel, 0.0))
            end = self._free[channel] = start + number * self._step
            if end > work.end:
                last, began, work.end = channel, start, end
        return last, began

    def charge(self, work: AtomicWork, began: float, ready: float) -> None:
        """Split the time from `ready` ns to the end into waiting, until a unit `began`, and service."""
        msg = work.msg
        msg.service += work.end - began
        if began > ready:
            msg.queueing += began - ready
            self._memory.note_wait(began - ready, began)
