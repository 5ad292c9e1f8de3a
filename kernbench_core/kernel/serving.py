"""How a kernel's requests are answered while it runs: commands are issued, and waited for, inside events of its PE.

A process of SimPy starts a program and ends it. In between each event that the kernel waits for calls it on, as the
process itself would cost two resumptions, through all of its generators, for every command.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Final

from kernbench_core.environment import NORMAL, Signal
from kernbench_core.errors import KernelError
from kernbench_core.events.queue import Scheduled
from kernbench_core.kernel.bridge import Bridge, Finished
from kernbench_core.kernel.commands import KernelCommand, Results
from kernbench_core.kernel.held import HeldCommands
from kernbench_core.units import grid_ceil

if TYPE_CHECKING:
    from kernbench_core.environment import Environment, Process
    from kernbench_core.kernel.pe_state import PeState
    from kernbench_core.messages import Command

#: What is to be done for a request: take it up, issue the command that it is, or wait for more of those it names.
_TAKE_UP: Final = 0
_ISSUE: Final = 1
_WAIT: Final = 2


class Tick(Scheduled):
    """The end of a command's dispatch: one event for all of a program, which dispatches one command at a time."""

    __slots__ = ()

    _ok: ClassVar[bool] = True
    _value: ClassVar[None] = None


class Serving:
    """Answer the requests of a program: a command is issued, a tuple of commands is waited for.

    `send` puts a command on its way, `overhead` ns after it was asked for, and later by what reading takes that is
    unpaid. `over` fires when the program has returned, or has `raised` what it should not. `waiting_for` are the
    commands that it waits for, `since` a time in ns; `place` is the name of its processor.
    """

    __slots__ = (
        "_at", "_bridge", "_env", "_hazards", "_held", "_overhead", "_process", "_queue", "_request", "_send", "_state",
        "_tick", "over", "place", "raised", "since", "waiting_for",
    )  # fmt: skip

    def __init__(
        self, place: str, env: Environment, state: PeState, bridge: Bridge, send: Callable[[Command], None],
        overhead: float,
    ) -> None:  # fmt: skip
        if not 0.0 <= overhead < math.inf:
            raise ValueError(f"dispatch_overhead_ns must be a finite time in ns, at least 0, not {overhead!r}")
        self.place = place
        self._env, self._queue = env, env.clock
        self._state, self._hazards = state, state.hazards
        self._bridge, self._send, self._overhead = bridge, send, grid_ceil(overhead)
        self._process: Process | None = env.active_process
        self._tick = Tick()
        #: What waits in queues for what it needs, once anything has.
        self._held: HeldCommands | None = None
        self._request: Any = None
        #: How many of those that are waited for have been seen to.
        self._at = 0
        self.waiting_for: tuple[KernelCommand, ...] = ()
        self.since = env.now
        self.over = Signal()
        self.raised: BaseException | None = None

    def start(self) -> Signal:
        """Have the kernel run until it first waits for anything; return what fires when it is over."""
        self._serve(None, _TAKE_UP)
        return self.over

    def note_wait(self, commands: tuple[KernelCommand, ...]) -> None:
        """Take note that commands are waited for from now on."""
        self.waiting_for, self.since, self._at = commands, self._queue.now, 0

    def issue_now(self, _: object) -> None:
        """Issue the command that the kernel asked for: its dispatch is over; an event's callback."""
        self._resume(_ISSUE)

    def go_on(self, _: object) -> None:
        """Go on where the kernel waits for a command, which is complete now; a callback of its signal."""
        self._state.step = self.waiting_for[self._at - 1].step
        self._resume(_WAIT)

    def _resume(self, stage: int) -> None:
        """Go on as the process that waits until the program is over: components ask which process is active."""
        queue = self._queue
        queue.active = self._process
        self._serve(self._request, stage)
        queue.active = None

    def _serve(self, request: Any, stage: int) -> None:
        """Answer the kernel's requests, from one on whose stage is known, until it waits or is over."""
        bridge = self._bridge
        try:
            while True:
                try:
                    if request is not None and not self._answer(request, stage):
                        return
                except KernelError as error:
                    request = bridge.throw(error)
                else:
                    request = bridge.resume()
                if type(request) is Finished:
                    break
                self._request, stage = request, _TAKE_UP
        except BaseException as error:  # the process that waits for `over` raises it
            self.raised = error
        self._request = None
        self.over.fire()

    def _answer(self, request: Any, stage: int) -> bool:
        """Go on with a request; return whether the kernel may go on. Raise what went wrong with what it waits for.

        Waiting for results, of other PEs too, orders nothing: it is the data that is not there before.
        """
        kind = type(request)
        if kind is tuple or kind is Results:
            if stage == _TAKE_UP:
                self.note_wait(tuple(request))
        elif stage == _TAKE_UP and (self._overhead or self._state.unpaid):
            queue = self._queue
            self._tick.callbacks = (self.issue_now,)
            queue.push(queue.now + self._overhead + self._state.pay(), NORMAL, next(self._env._eid), self._tick)
            return False
        elif stage != _WAIT:
            issued: KernelCommand = request
            issued.at_issue(self._state, self._queue.now)
            if not self._is_held(issued):
                self._send(issued.message)
            if not issued.blocking:
                return True
            self.note_wait((issued,))
        if not self._complete():
            return False
        if kind is Results:
            return True
        if kind is tuple and self._hazards is not None:
            self._hazards.waited(request)
        for command in self.waiting_for:
            if command.error is not None:
                raise command.error
        return True

    def _is_held(self, command: KernelCommand) -> bool:
        """Say whether a command is kept back until what it needs is there, or what is before it in a queue is sent."""
        if self._held is None:
            if command.needs is None:
                return False
            self._held = HeldCommands(self._env, self._send)
        return self._held.keeps(command)

    def _complete(self) -> bool:
        """Tell whether all that is waited for is complete; the first that is not has this go on when it is."""
        commands = self.waiting_for
        while self._at < len(commands):
            signal: Signal = commands[self._at].done
            self._at += 1
            if signal.callbacks is not None:
                signal.callbacks.append(self.go_on)
                return False
        return True
