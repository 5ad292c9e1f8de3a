"""The bare engine: events in order, within limits, and faults as sentences.

It puts requests in at a node and waits for nothing: it walks no path, calls no `run` and decomposes nothing. It knows
no kernel, no memory and no host program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from kernbench_core.engine.faults import component_error
from kernbench_core.engine.hardware import ComponentClasses, Hardware
from kernbench_core.engine.watchdog import Limits, Progress, Watchdog
from kernbench_core.errors import KernbenchError
from kernbench_core.process.interrupt import INTERRUPTS

if TYPE_CHECKING:
    from kernbench_core.environment import Environment
    from kernbench_core.messages import HostRequest
    from kernbench_core.process.interrupt import WallTime

#: The node that requests of the host are put in at.
ENTRY = "host"


class RunObserver(Protocol):
    """Who looks on at a run, and changes nothing of it; several may at once.

    One whose `env` is not None brings the clock that the run is to use; of all that look on at a run one may.
    """

    env: Environment | None

    def begin(self, hardware: Hardware) -> None:
        """Put in what it wants built otherwise, as a class of wires; called once, before anything is built."""

    def attach(self, hardware: Hardware) -> None:
        """Look on from now; called once, when every component exists and nothing has happened yet."""

    def submitted(self, request: HostRequest) -> None:
        """Take note of a request of a host program, before it is sent."""


class Engine:
    """Build the components of `hardware` from their classes, and process its events.

    `limits` (default: none) and `wall`, the wall time that is left of more than this, end it; `on_progress` is told how
    far it is. `observers` look on, and change nothing.
    """

    def __init__(
        self,
        hardware: Hardware,
        classes: ComponentClasses,
        *,
        limits: Limits | None = None,
        on_progress: Callable[[Progress], None] | None = None,
        wall: WallTime | None = None,
        observers: Sequence[RunObserver] = (),
    ) -> None:
        self.hardware = hardware
        self.limits = limits or Limits()
        self._on_progress = on_progress
        self._wall = wall
        self._observers = tuple(observers)
        self._watchdog: Watchdog | None = None
        for observer in self._observers:
            observer.begin(hardware)
        hardware.build(classes)
        for observer in self._observers:
            observer.attach(hardware)

    @property
    def wall_s(self) -> float:
        """Real time spent on events, in s."""
        return 0.0 if self._watchdog is None else self._watchdog.wall_s

    def submit(self, request: HostRequest) -> None:
        """Put a request of the host in at its node, now."""
        for observer in self._observers:
            observer.submitted(request)
        self.hardware.env.inject(request, self.hardware.components[ENTRY].arrive)

    def advance(self) -> None:
        """Process events until nothing is left.

        Raises:
            LimitError: a limit was reached.
            ComponentError: a model raised; named with its node, class, line, distribution and the simulated time.
        """
        self._watchdog = Watchdog(self.hardware.env, self.limits, self._on_progress, self._wall)
        try:
            self._watchdog.run()
        except (KernbenchError, *INTERRUPTS):
            raise
        except BaseException as error:
            raise component_error(self.hardware, error) from error
