"""How far a run is: what it does at the moment, and how much of that is over, where anybody can know.

It looks at what is there anyhow: the requests of the host programs, the launches, where kernels stand. It looks four
times a second, and when a host program goes on or waits again, and costs a run nothing in between.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from kernbench_core.engine.watchdog import Progress
from kernbench_core.messages import HostRequest, KernelLaunchMsg, MemoryMsg, MemoryReadMsg

if TYPE_CHECKING:
    from kernbench_core.host.session import GraphEngine
    from kernbench_core.messages import Launch

_LOOK_S = 0.25
#: The phases of open requests; of several at once, a run is in the first.
_PHASES = ("kernel", "launch", "device_to_host", "host_to_device")


class RunProgress:
    """Calls `on_progress`, unless it is None, with a `Progress` for each step, and four times a second within one."""

    def __init__(self, on_progress: Callable[[Progress], None] | None) -> None:
        self._on_progress = on_progress
        self._engine: GraphEngine | None = None
        self._first_open = 0
        self._latest = self._step = Progress(0.0, 0, 0.0)
        #: What makes a step another one than one of the same phase.
        self._key: object = None
        self._uncounted = 0
        self._began = self._step_began = self._looked = time.perf_counter()

    @property
    def on_tick(self) -> Callable[[Progress], None] | None:
        """What the engine is to call while it simulates; None where nobody wants to know."""
        return None if self._on_progress is None else self._simulated

    def watch(self, engine: GraphEngine) -> None:
        """Look at this engine from now on."""
        self._engine = engine
        if self._on_progress is not None:
            engine.shared.on_host = self._host

    def begin(self, phase: str, of: int | None = None, unit: str = "") -> None:
        """Say that another step begins, `of` units long, if that is known."""
        self._uncounted = 0
        self._report(object(), phase, done=None if of is None else 0, of=of, unit=unit)

    def did(self, number: int) -> None:
        """Count so many units of the present step as over; it is told four times a second, and when all are."""
        step = self._step
        if self._on_progress is None or step.done is None or not step.of:
            return
        self._uncounted += number
        done = step.done + self._uncounted
        if done >= step.of or time.perf_counter() - self._looked >= _LOOK_S:
            self._uncounted = 0
            of = max(done, step.of)  # what was dropped and is read again is computed once more
            self._report(self._key, step.phase, step.what, done, of, step.unit, done / of)

    def _host(self, runs: bool) -> None:
        """Tell that a host program goes on, whatever it does now, or what it waits for."""
        if runs:
            self._report(None, "bench")
        elif self._engine is not None:
            self._look(self._engine)

    def _simulated(self, tick: Progress) -> None:
        """Take note of where the simulation is; look at what it does, if that was long ago."""
        self._latest = tick
        now = time.perf_counter()
        if now - self._looked >= _LOOK_S and self._engine is not None:
            self._look(self._engine)

    def _look(self, engine: GraphEngine) -> None:
        """Report what the oldest open request of the phase is, or else that the host program runs."""
        requests = engine.shared.requests
        while self._first_open < len(requests) and requests[self._first_open].response is not None:
            self._first_open += 1
        waiting = [request for request in requests[self._first_open :] if request.response is None]
        if not waiting:
            self._report(None, "bench")
            return
        request = min(waiting, key=lambda each: _PHASES.index(_phase(each)))
        self._report(request, _phase(request), *_part_over(request, engine))

    def _report(
        self, key: object, phase: str, what: str = "", done: int | None = None, of: int | None = None, unit: str = "",
        fraction: float | None = None,
    ) -> None:  # fmt: skip
        """Report a step, whose fraction does not go back."""
        now = self._looked = time.perf_counter()
        if (phase, key) != (self._step.phase, self._key):
            self._step_began = now
        elif self._step.fraction is not None:
            fraction = max(self._step.fraction, fraction or 0.0)
        latest, wall_s, step_s = self._latest, now - self._began, now - self._step_began
        self._key = key
        self._step = Progress(
            latest.sim_ns, latest.events, wall_s, fraction, phase, what, done, of, unit, step_s, latest.events_per_s
        )  # fmt: skip
        if self._on_progress is not None:
            self._on_progress(self._step)


def _phase(request: HostRequest) -> str:
    """Return the phase of an open request, as the result counts it."""
    if isinstance(request, KernelLaunchMsg):
        launch = request.launch
        return "kernel" if launch.started_ns and len(launch.ended_ns) < len(launch.programs) else "launch"
    return "device_to_host" if isinstance(request, MemoryReadMsg) else "host_to_device"


def _part_over(
    request: HostRequest, engine: GraphEngine
) -> tuple[str, int | None, int | None, str, float | None]:
    """Return the kernel of an open request, how many of how many units are over, and which part of it."""
    if isinstance(request, KernelLaunchMsg):
        kernel = request.launch.kernel
        done, of, fraction = programs_done(request.launch, engine)
        return str(getattr(kernel, "__name__", kernel)), done, of, "programs", fraction
    if isinstance(request, MemoryMsg) and request.nbytes and request.copied:
        return "", request.copied, request.nbytes, "bytes", request.copied / request.nbytes
    return "", None, None, "", None


def programs_done(launch: Launch, engine: GraphEngine) -> tuple[int, int, float | None]:
    """Return how many programs of a launch are over, of how many, and which part of all of them; None for unknown.

    A program under way counts with the part of it that is known to be over. Where that is unknown of any, nothing is
    known until as many programs are over as PEs run them. The first programs of all PEs end at about the same time:
    of 512 PEs with one each, the first to end would say 1/512, when nearly all is over.
    """
    of = sum(map(len, launch.programs.values()))
    done, running = 0, []
    for pe, programs in launch.programs.items():
        state = engine.device.kernels.states.get(pe)
        if pe in launch.ended_ns:
            done += len(programs)
        elif pe in launch.started_ns and state is not None and state.launch is launch and state.runner is not None:
            running.append(state.runner)
    done += sum(runner.turn for runner in running)
    known = [part for runner in running if (part := runner.part_done()) is not None]
    first_round = len(known) < len(running) and done < len(launch.programs)
    if not of or first_round or not (done or any(known)):
        return done, of, None
    part = (done + sum(known)) / of
    return done, of, part if done == of else min(0.99, part)
