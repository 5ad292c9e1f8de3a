"""What looks on inside a run: wires that note what passes, and bridges that note where a kernel waits."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from kernbench_builtin.pages.timeline.call_stacks import CallStack, call_stack
from kernbench_builtin.pages.timeline.notes import Notes
from kernbench_builtin.pages.timeline.timeline import op_number
from kernbench_core.environment import Environment
from kernbench_core.kernel.bridge import Bridge, Finished
from kernbench_core.kernel.commands import KernelCommand
from kernbench_core.messages import MsgBase
from kernbench_core.wire import Wire


def noting_wire(notes: Notes, *, channels_only: bool = False) -> type[Wire]:
    """Return a class of wires that note what they carry, and are like any wire otherwise.

    With `channels_only` those inside a component do.
    """
    extend, pack, number = notes.passages.extend, notes.passages.pack, notes.number
    since, waits = notes.since, notes.waits
    # the methods themselves, as `super()` would take time with each message
    carry, book, count = Wire.send, Wire.book, Wire.note_wait

    class NotingChannel(Wire):
        """Note each passage that a component books, inside it."""

        __slots__ = ()

        def book(self, nbytes: int, head: float, tail: float, msg: MsgBase | None = None) -> tuple[float, float]:
            start = self.available_at
            if start < head:
                start = head
            out = book(self, nbytes, head, tail, msg)
            self._note(start, self.available_at, nbytes, msg)
            return out

        def hold(self, nbytes: int, start: float, took: float, msg: MsgBase | None = None) -> None:
            super().hold(nbytes, start, took, msg)
            self._note(start, start + took, nbytes, msg, -1)

        def note_wait(self, waited: float, until: float | None = None) -> None:
            count(self, waited)
            end = self.available_at if until is None else until
            if end > since and end - waited < notes.until:
                waits.extend(waits.pack(self.number, waited, end))

        def _note(self, start: float, end: float, nbytes: int, msg: MsgBase | None, sign: int = 1) -> None:
            if end > since and start < notes.until and (not channels_only or "#" in self.name):
                extend(pack(sign * self.number, start, end, nbytes, -1 if msg is None else number(msg)))

    class NotingWire(NotingChannel):
        """Note each passage, what is sent along too."""

        __slots__ = ()

        def send(self, msg: MsgBase, head: float, tail: float) -> None:
            start, nbytes = self.available_at, msg.nbytes
            if start < head:
                start = head
            carry(self, msg, head, tail)
            end = self.available_at
            if end > since and start < notes.until:
                extend(pack(self.number, start, end, nbytes, number(msg)))

    return NotingChannel if channels_only else NotingWire


class NotingBridge(Bridge):
    """Run a program; note the lines and time of all that it is suspended with, until it goes on."""

    __slots__ = ("_env", "_left", "_notes", "_op", "_program", "_since", "_stack")

    def __init__(self, notes: Notes, env: Environment, program: int, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._notes = notes
        self._env = env
        self._program = program
        self._stack: CallStack = ()
        self._op = -1
        self._since = env.now
        #: What the function left in flight when it returned, by its op, in order: when it was there.
        self._left: dict[int, float] = {}

    def suspend(self, request: Any) -> Any:
        """Note, on the kernel's own stack, who asks."""
        self._stack = call_stack()
        return super().suspend(request)

    def resume(self, value: Any = None) -> Any:
        """Note what ends here, and go on."""
        self._note()
        return self._begin(super().resume(value))

    def throw(self, error: BaseException) -> Any:
        """Note what ends here, and go on with an error."""
        self._note()
        return self._begin(super().throw(error))

    def close(self) -> None:
        """Note the end of the program, after all that it left in flight, which it waits for one after another."""
        now = self._env.now
        for op, landed in self._left.items():
            self._op = op
            self._note(min(landed, now))
        self._op = -1
        self._note()
        self._notes.ended(self._program, self._env.now)
        super().close()

    def _begin(self, request: Any) -> Any:
        self._since = self._env.now
        self._op = op_number(*request.op_id) if isinstance(request, KernelCommand) else -1
        if type(request) is Finished:
            self._stack = ()
            for command in self._greenlet.language.in_flight:
                if command.done.callbacks is not None:
                    op = op_number(*command.op_id)
                    self._left[op] = math.inf
                    command.done.callbacks.append(partial(self._landed, op))
        return request

    def _landed(self, op: int, done: object) -> None:
        self._left[op] = self._env.now

    def _note(self, until: float | None = None) -> None:
        now = self._env.now if until is None else until
        if now > self._since or (self._op >= 0 and self._stack):  # an op has its line where asking for it took no time
            self._notes.suspended(self._program, self._since, now, self._stack, self._op)
            self._since = now
