"""Read-modify-writes in front of banks: bursts are fetched and written back as requests of the controller itself."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial

from kernbench_builtin.components.atomic_units import AtomicUnits, AtomicWork
from kernbench_core.component import ComponentBase
from kernbench_core.memory import AtomicTransaction
from kernbench_core.messages import MsgBase, Transaction
from kernbench_core.values import Region


class BurstTraffic(Transaction):
    """Move bursts between the banks and the atomic units for a request: a "read", or the "write" back after it."""

    __slots__ = ("work",)

    def __init__(self, op: str, regions: tuple[Region, ...], work: AtomicWork) -> None:
        super().__init__(op, regions, 0, (), _nothing)
        self.work = work

    @property
    def origin(self) -> MsgBase:
        """The request."""
        return self.work.msg


def _nothing(_: Transaction) -> None:
    """Nobody waits for an answer."""


class AtomicQueue:
    """Keep the read-modify-writes of a controller in order, from their arrival to their answers.

    `admit(traffic, at)` has the controller move bursts, from `at` ns on; it calls `moved` when they have been.
    """

    def __init__(
        self, memory: ComponentBase, units: AtomicUnits, admit: Callable[[BurstTraffic, float], None],
        respond: Callable[[AtomicTransaction, float], None],
    ) -> None:  # fmt: skip
        self._memory = memory
        self._units = units
        self._admit = admit
        self._respond = respond
        self._queue: deque[AtomicWork] = deque()
        #: From when on, in ns, the bursts of a request are in the units; it is waited for where it has no entry.
        self._ready: dict[AtomicWork, float] = {}

    def take(self, msg: AtomicTransaction, at: float) -> None:
        """Take a request in that is there at `at` ns, and have fetched what is in no unit."""
        work = self._units.take(msg, at)
        msg.shares = work.bytes_of(self._units.burst)
        self._queue.append(work)
        if work.fetched:
            self._admit(BurstTraffic("read", work.regions(self._units.burst), work), at)
        else:
            self._ready[work] = at
            self._advance()

    def moved(self, traffic: BurstTraffic) -> None:
        """Go on with a request whose bursts are there; nobody waits for those that are written back."""
        if traffic.op == "read":
            work, msg = traffic.work, traffic.work.msg
            msg.propagation += traffic.propagation
            msg.serialisation += traffic.serialisation
            msg.service += traffic.service
            msg.queueing += traffic.queueing
            self._ready[work] = traffic.tail
            self._advance()

    def _advance(self) -> None:
        """Have the units serve those in front whose bursts are there: one that is later waits for them."""
        env = self._memory.env
        while self._queue and self._queue[0] in self._ready:
            work = self._queue.popleft()
            ready = self._ready.pop(work)
            _, began = self._units.serve(work, {}, max(ready, env.now))
            self._units.charge(work, began, ready)
            work.msg.head = work.msg.tail = work.end
            env.call_at(work.end, work.msg, partial(self._changed, work))

    def _changed(self, work: AtomicWork, msg: AtomicTransaction) -> None:
        """Write back what was fetched, and answer beside it."""
        now = self._memory.env.now
        if work.fetched:
            self._admit(BurstTraffic("write", work.regions(self._units.burst), work), now)
        self._respond(msg, now)
