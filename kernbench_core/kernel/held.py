"""Commands that wait in the queues of their units for what another command of their kernel makes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from kernbench_core.kernel.commands import KernelCommand

if TYPE_CHECKING:
    from kernbench_core.environment import Environment, Process
    from kernbench_core.kernel.steps import PathStep
    from kernbench_core.messages import Command


class HeldCommands:
    """Keep back what a program has issued to its units until what it needs is complete; each unit's leave in order.

    Reads of a DMA have a queue of their own, in which nothing is kept back. `send` puts a command on its way. A queue
    has no end.
    """

    def __init__(self, env: Environment, send: Callable[[Command], None]) -> None:
        self._clock = env.clock
        self._process: Process | None = env.active_process
        self._send = send
        self._queues: dict[str, deque[KernelCommand]] = {}

    def keeps(self, command: KernelCommand) -> bool:
        """Say whether a command must wait, and keep it if so."""
        queue = self._queues.get(command.serves)
        if command.dma_op == "read" or (not queue and (command.needs is None or command.needs.complete)):
            command.needs = None
            return False
        if queue is None:
            queue = self._queues[command.serves] = deque()
        queue.append(command)
        if len(queue) == 1:
            self._await(queue, None)
        return True

    def _await(self, queue: deque[KernelCommand], step: PathStep | None) -> None:
        """Send what is first, as long as what it needs is there; `step` is what was waited for last."""
        while queue:
            command = queue[0]
            needs = command.needs
            if needs is not None:
                if not needs.complete:
                    assert needs.done.callbacks is not None
                    needs.done.callbacks.append(partial(self._made, queue, needs))
                    return
                step = needs.step
            queue.popleft()
            command.let_go(step, self._clock.now)
            self._send(command.message)

    def _made(self, queue: deque[KernelCommand], needs: KernelCommand, _: object) -> None:
        """Go on with a queue whose first command has what it needs; a callback of that."""
        clock = self._clock
        active, clock.active = clock.active, self._process
        self._await(queue, needs.step)
        clock.active = active
