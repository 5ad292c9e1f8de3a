"""How far a run is: what it does at the moment, and how much of that is over, where anybody can know.

It looks at what is there anyhow: the requests of the host programs, the launches, where kernels stand; of a launch of
which that says nothing, at how long the launch before of its kernel took, or else at what it has stored of its outputs.
It looks four times a second, and when a host program goes on or waits again, and costs a run nothing in between.
"""

from __future__ import annotations

import bisect
import time
from collections.abc import Callable
from operator import itemgetter
from typing import TYPE_CHECKING

from attrs import evolve, frozen

from kernbench_core.engine.watchdog import Progress
from kernbench_core.messages import HostRequest, KernelLaunchMsg, MemoryMsg, MemoryReadMsg
from kernbench_core.oplog.batch import RecordBatch

if TYPE_CHECKING:
    from kernbench_core.host.session import GraphEngine
    from kernbench_core.memory.device_memory import TensorAllocation
    from kernbench_core.messages import Launch
    from kernbench_core.values.region import Region

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
        self._took: dict[tuple[str, int], float] = {}
        """How long, in ns, the last launch took of a kernel of this name with as many programs."""
        self._stored: tuple[object, StoredBytes | None] = None, None
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
            over = requests[self._first_open]
            if isinstance(over, KernelLaunchMsg) and over.launch.ended_ns:
                self._took[_alike(over.launch)] = max(over.launch.ended_ns.values()) - _start_ns(over.launch)
            self._first_open += 1
        waiting = [request for request in requests[self._first_open :] if request.response is None]
        for phase in ("kernel", "launch", "device_to_host", "host_to_device"):
            for request in waiting:
                if _phase(request) == phase:
                    if count:
                        self._counted = time.perf_counter()
                    step = _step(phase, request, engine, count)
                    return self._known(step, request, engine) if step.of and step.fraction is None else step
        return RunStep("bench")

    def _known(self, step: RunStep, request: HostRequest, engine: GraphEngine) -> RunStep:
        """Return the step of a launch whose programs tell nothing with the part of the launch before that is over.

        Without one before it, with the bytes that its kernel has stored of the tensors that it stores to, and no part:
        nobody knows how much of each it is to store.
        """
        if not isinstance(request, KernelLaunchMsg) or step.phase != "kernel":
            return step
        took = self._took.get(_alike(request.launch))
        if took:
            return evolve(step, fraction=min(0.99, (self._latest.sim_ns - _start_ns(request.launch)) / took))
        of_request, stored = self._stored
        if stored is None or of_request is not request:
            stored = StoredBytes(engine)
            self._stored = request, stored
        done, of = stored.counted()
        return evolve(step, done=done, of=of, unit="bytes stored") if done else step

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


class StoredBytes:
    """Counts the bytes of tensors that kernels have stored since it was made, each byte once, as the op log has them.

    Places of which a part is stored twice, in pieces of other sizes, count twice, but never for more than there is.
    """

    def __init__(self, engine: GraphEngine) -> None:
        self._columns = engine.op_log.columns
        self._row = len(self._columns)
        held = ((part.pa, part.pa + part.nbytes, each) for each in engine.shared.tensors for part in each.segments)
        self._held = sorted(held, key=itemgetter(0))
        self._stored: dict[TensorAllocation, set[Region]] = {}

    def counted(self) -> tuple[int, int]:
        """Return how many bytes are stored, and how many the tensors have that any was stored of."""
        batch = RecordBatch(self._columns, range(self._row, len(self._columns)))
        self._row += len(batch)
        for form, at in batch.by_form():
            if form.writes and form.spaces[-1] == "hbm":
                for row in batch.rows[at].tolist():
                    _, regions, _ = self._columns.row(row)[-1][-1]
                    self._note(regions)
        of = sum(segment.nbytes for tensor in self._stored for segment in tensor.segments)
        return min(of, sum(region.nbytes for regions in self._stored.values() for region in regions)), of

    def _note(self, regions: tuple[Region, ...]) -> None:
        for region in regions:
            at = bisect.bisect_right(self._held, region.base, key=itemgetter(0)) - 1
            if at >= 0 and region.base < self._held[at][1]:
                self._stored.setdefault(self._held[at][2], set()).add(region)


def _alike(launch: Launch) -> tuple[str, int]:
    """Return what two launches have in common of which one is expected to take as long as the other."""
    return _name_of(launch), sum(map(len, launch.programs.values()))


def _start_ns(launch: Launch) -> float:
    return min(launch.started_ns.values())


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
