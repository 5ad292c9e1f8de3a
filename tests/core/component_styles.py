"""Two models, each as a latency, as a process and as events, for tests that compare the styles."""

from __future__ import annotations

from kernbench_core.component import ComponentBase
from kernbench_core.environment import Environment, ProcessGenerator
from kernbench_core.messages import MsgBase
from kernbench_core.params import Param
from kernbench_core.units import grid_ceil


class Pipelined(ComponentBase):
    """Take 3.3 ns for each message, any number at a time."""

    ON_HEAD = False

    def overhead(self, msg: MsgBase) -> float:
        return 3.3


class Unbounded(ComponentBase):
    """Be `Pipelined`, written as a process with more workers than there are messages."""

    PARAMS = (Param("servers", "int", 64, "Messages at a time.", minimum=1),)

    def run(self, env: Environment, msg: MsgBase) -> ProcessGenerator:
        yield env.timeout(3.3)


class Serial(ComponentBase):
    """Take a time that depends on size, one message after another."""

    def overhead(self, msg: MsgBase) -> float:
        return 1.1 + msg.nbytes / 300

    def interval(self, msg: MsgBase) -> float:
        return self.overhead(msg)


class OneServer(ComponentBase):
    """Be `Serial`, written as a process."""

    def run(self, env: Environment, msg: MsgBase) -> ProcessGenerator:
        yield env.timeout(1.1 + msg.nbytes / 300)


class UnboundedEvents(ComponentBase):
    """Be `Pipelined`, written as events: every message begins when it comes."""

    def receive(self, msg: MsgBase) -> None:
        self.begin(msg)
        self.env.call_at(self.env.now + grid_ceil(3.3), msg, self.end)


class OneAfterAnother(ComponentBase):
    """Be `Serial`, written as events, with a queue of its own."""

    def receive(self, msg: MsgBase) -> None:
        if self.serving:
            self.queue.append(msg)
        else:
            self._next(msg)

    def _next(self, msg: MsgBase) -> None:
        self.begin(msg)
        self.env.call_at(self.env.now + grid_ceil(1.1 + msg.nbytes / 300), msg, self._done)

    def _done(self, msg: MsgBase) -> None:
        self.end(msg)
        if self.waiting:
            self._next(self.queue.popleft())
