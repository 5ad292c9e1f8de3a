"""Whether simulated time stands still while events go on happening, and what they are of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kernbench_core.component import ComponentBase
from kernbench_core.environment import Environment, Process
from kernbench_core.workers.worker import Worker

#: Fewer events at one time are no sign of anything: a launch alone is as many as a machine has PEs.
_MANY: Final = 1000


class NoProgress:
    """Count the events since simulated time last moved; `look` is called between stretches of events.

    A stretch in which time moved counts as moving whole, so that no more events are told than there were.
    """

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._events, self._now = env.events, env.now

    def look(self) -> None:
        """Take note of the time that it is."""
        if self._env.now != self._now:
            self._events, self._now = self._env.events, self._env.now

    def in_words(self) -> str:
        """Say that most events took no time, and of what the next one is; "" where time moved."""
        env, still = self._env, self._env.events - self._events
        if still < _MANY or 2 * still < env.events:
            return ""
        next_one = _next_in_words(env)
        again = f": {next_one} again and again" if next_one else ""
        return f", and the last {still} of them took no time{again}; no higher limit would end it, correct the model."


def _next_in_words(env: Environment) -> str:
    """Say what the next event is: a message that a component is given, or a line that a process goes on from."""
    event: Any = env.clock[0][3] if env.clock else None
    callback: Callable[..., Any] | None = next(iter(getattr(event, "callbacks", None) or ()), None)
    owner = getattr(callback, "__self__", None)
    if isinstance(owner, ComponentBase):
        return f"{owner.id} ({owner.node.impl}) is given a {type(event).__name__}"
    if isinstance(owner, Process | Worker):
        return f"a process goes on at {_line(owner._generator if isinstance(owner, Process) else owner.steps)}"
    return ""


def _line(generator: Any) -> str:
    """Return where the innermost generator waits, as `file.py:LINE`."""
    while getattr(generator, "gi_yieldfrom", None) is not None and hasattr(generator.gi_yieldfrom, "gi_frame"):
        generator = generator.gi_yieldfrom
    return f"{generator.gi_code.co_filename}:{generator.gi_frame.f_lineno}"
