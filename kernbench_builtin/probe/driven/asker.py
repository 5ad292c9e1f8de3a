"""What asks a DRAM controller that is driven alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from kernbench_core.component import ComponentBase
from kernbench_core.engine import Hardware
from kernbench_core.graph import Node
from kernbench_core.messages import MsgBase, Transaction


class Asker(ComponentBase):
    """Send requests to the controller, a new one for each answer or each at its time."""

    def __init__(self, node: Node, hardware: Hardware) -> None:
        super().__init__(node, hardware)
        self._left: Iterator[Transaction] = iter(())
        self._make: Callable[[], Transaction] | None = None
        self._beside: Any = None
        #: How many of its requests have no answer yet; counted for a chain beside them.
        self.unanswered = 0
        #: The answered requests of its chain.
        self.chained: list[Transaction] = []

    def keep(self, sent: list[Transaction], outstanding: int) -> None:
        """Keep `outstanding` requests under way."""
        self._left = iter(sent[outstanding:])
        for each in sent[:outstanding]:
            self.env.inject(each, self._go)

    def schedule(self, sent: list[Transaction], times: list[float]) -> None:
        """Send each request at its own time (ns)."""
        for each, time in zip(sent, times, strict=True):
            self.env.inject(each, self._go, time)

    def follow(self, beside: Any, make: Callable[[], Transaction]) -> None:
        """Send a request of a chain whenever the one before is answered, while any of another driver is out."""
        self._make, self._beside = make, beside
        self.env.inject(make(), self._go)

    def receive(self, msg: MsgBase) -> None:
        """Take an answer; nothing else comes."""
        self.take_answer(msg)

    def go_on(self, answered: Transaction) -> None:
        """Take an answer, and send the next request."""
        self.unanswered -= 1
        if self._make is not None:
            self.chained.append(answered)
            following = self._make() if self._beside.unanswered > 0 else None
        else:
            following = next(self._left, None)
        if following is not None:  # inlined from _go for speed (tools/bench_engine.py: random reads -1 %)
            following.born = now = self._time.now
            following.hop = 1
            self.out_ports[following.path[1]].send(following, now, now)

    def _go(self, msg: MsgBase) -> None:
        msg.born = now = self._time.now
        msg.hop = 1
        self.out_ports[msg.path[1]].send(msg, now, now)
