"""How far a run is: what it does at the moment, and how much of that is over, where anybody can know.

It looks at what is there anyhow: the requests of the host programs, the launches, where kernels stand. It looks four
times a second, and when a host program goes on or waits again, and costs a run nothing in between.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from attrs import evolve, frozen

from kernbench_core.engine.watchdog import Progress
from kernbench_core.messages import HostRequest, KernelLaunchMsg, MemoryMsg, MemoryReadMsg

if TYPE_CHECKING:
    from kernbench_core.host.session import GraphEngine
    from kernbench_core.messages import Launch

_LOOK_S = 0.25
#: What is looked at when a host program waits again is not counted more often than this.
_COUNT_S = 0.05
#: At how many PEs of a launch the kernels are looked at, evenly spread.
_MOST_LOOKED_AT = 64


@frozen
class RunStep:
    """What a run does at a moment: a phase of it, `done` `of` `unit`s, and the part of it that is over."""

    phase: str
    what: str = ""
    done: int | None = None
    of: int | None = None
    unit: str = ""
    fraction: float | None = None
    key: object = None
    """What makes it another step than one of the same phase."""


class RunProgress:
    """Calls `on_progress`, unless it is None, with a `Progress` for each step, and four times a second within one."""

    def __init__(self, on_progress: Callable[[Progress], None] | None) -> None:
        self._on_progress = on_progress
        self._engine: GraphEngine | None = None
        self._first_open = 0
        self._latest = Progress(0.0, 0, 0.0)
        self._step = RunStep("")
        self._uncounted = 0
        self._counted = 0.0
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
        self._report(RunStep(phase, done=None if of is None else 0, of=of, unit=unit, key=object()))

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
            self._report(evolve(step, done=done, of=of, fraction=done / of))

    def _host(self, runs: bool) -> None:
        """Tell that a host program goes on, whatever it does now, or what it waits for."""
        if runs:
            self._report(RunStep("bench"))
        elif self._engine is not None:
            self._report(self._seen(self._engine, count=time.perf_counter() - self._counted >= _COUNT_S))

    def _simulated(self, tick: Progress) -> None:
        """Take note of where the simulation is; look at what it does, if that was long ago."""
        self._latest = tick
        now = time.perf_counter()
        if now - self._looked >= _LOOK_S and self._engine is not None:
            self._report(self._seen(self._engine))

    def _seen(self, engine: GraphEngine, count: bool = True) -> RunStep:
        """Return what the oldest open request of the phase is, and how much of it is over, where that is to `count`.

        The host program runs where there is none.
        """
        requests = engine.shared.requests
        while self._first_open < len(requests) and requests[self._first_open].response is not None:
            self._first_open += 1
        waiting = [request for request in requests[self._first_open :] if request.response is None]
        for phase in ("kernel", "launch", "device_to_host", "host_to_device"):
            for request in waiting:
                if _phase(request) == phase:
                    if count:
                        self._counted = time.perf_counter()
                    return _step(phase, request, engine, count)
        return RunStep("bench")

    def _report(self, step: RunStep) -> None:
        """Report a step, whose fraction does not go back."""
        now = self._looked = time.perf_counter()
        if (step.phase, step.key) != (self._step.phase, self._step.key):
            self._step_began = now
        elif self._step.fraction is not None:
            step = evolve(step, fraction=max(self._step.fraction, step.fraction or 0.0))
        self._step = step
        if self._on_progress is not None:
            self._on_progress(
                Progress(
                    self._latest.sim_ns, self._latest.events, now - self._began, step.fraction, step.phase, step.what,
                    step.done, step.of, step.unit, now - self._step_began, self._latest.events_per_s,
                )
            )  # fmt: skip


def _name_of(launch: Launch) -> str:
    return str(getattr(launch.kernel, "__name__", launch.kernel))


def _phase(request: HostRequest) -> str:
    """Return the phase of an open request, as the result counts it."""
    if isinstance(request, KernelLaunchMsg):
        launch = request.launch
        return "kernel" if launch.started_ns and len(launch.ended_ns) < len(launch.programs) else "launch"
    return "device_to_host" if isinstance(request, MemoryReadMsg) else "host_to_device"


def _step(phase: str, request: HostRequest, engine: GraphEngine, count: bool) -> RunStep:
    if isinstance(request, KernelLaunchMsg):
        what = _name_of(request.launch)
        if not count:
            return RunStep(phase, what, key=request)
        done, of, fraction = programs_done(request.launch, engine)
        return RunStep(phase, what, done, of, "programs", fraction, request)
    if isinstance(request, MemoryMsg) and request.nbytes and request.copied:
        return RunStep(phase, "", request.copied, request.nbytes, "bytes", request.copied / request.nbytes, request)
    return RunStep(phase, key=request)


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
    looked_at = running[:: max(1, -(-len(running) // _MOST_LOOKED_AT))]
    parts = [runner.part_done() for runner in looked_at]
    known = [part for part in parts if part is not None]
    first_round = len(known) < len(parts) and done < len(launch.programs)
    if not of or first_round or not (done or any(known)):
        return done, of, None
    part = (done + sum(known) * len(running) / max(1, len(parts))) / of
    return done, of, part if done == of else min(0.99, part)
