"""Read-modify-writes on their way: what a DMA sends to the memory that owns the elements, and what that memory owes it.

A memory that takes them says so by being an `AtomicMemory`. It has `change` called for each, once, in the order in
which it serves them: that is the order of the data. It answers when its service is over.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernbench_core.errors import ComponentError
from kernbench_core.messages import MsgBase, Transaction
from kernbench_core.values.region import Region

Int64s = NDArray[np.int64]


class AtomicMemory:
    """Be, beside a component, a memory that serves `AtomicTransaction`s; others are never sent one."""

    __slots__ = ()


class AtomicTransaction(Transaction):
    """Have a memory change elements where they lie, and bring back what they held where somebody uses that.

    `addresses` are the physical ones of the elements of `regions`, in order, `turns` how many lanes meet in each. Out
    go `sent` bytes of operands, back come `returned`. `answer` is what is logged when those are there.
    """

    __slots__ = ("_turn", "addresses", "answer", "changed_ns", "returned", "turns")

    def __init__(
        self, regions: tuple[Region, ...], path: tuple[str, ...], on_done: Callable[[Any], None], *,
        addresses: Int64s, turns: Int64s, sent: int, returned: int, turn: Callable[[float], None],
        answer: MsgBase | None = None,
    ) -> None:  # fmt: skip
        super().__init__("atomic", regions, sum(region.nbytes for region in regions), path, on_done)
        self.nbytes += sent
        self.moved_bytes = self.nbytes + returned
        self.addresses, self.turns = addresses, turns
        self.returned, self.answer = returned, answer
        #: When it had its turn at the memory, in ns.
        self.changed_ns: float | None = None
        self._turn = turn

    def change(self, now: float) -> None:
        """Let the elements hold the results from `now` ns on; ComponentError when it was called before."""
        if self.changed_ns is not None:
            raise ComponentError(
                f"{self.path[-1]} must change elements for each AtomicTransaction once, not twice; call change once."
            )
        if not self.born <= now < math.inf:
            raise ComponentError(
                f"{self.path[-1]} must change elements for an AtomicTransaction when it serves it, not at {now!r} ns; "
                "give change the present time."
            )
        self.changed_ns = now
        self._turn(now)

    def turn_around(self, nbytes: int = 0) -> None:
        """Become the reply: what the elements held, or an acknowledgement."""
        super().turn_around()
        self.nbytes = self.returned

    def check_changed(self) -> None:
        """Raise ComponentError where a memory has answered without its turn."""
        if self.changed_ns is None:
            raise ComponentError(
                f"{self.path[0]} must change elements for an AtomicTransaction before it answers; call its change "
                "where it is served."
            )
