"""The engine: builds components and wires from a graph, runs a host program, observes completion.

It injects requests at `host` and waits for their answers. It walks no path, calls no `run` and
decomposes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from kernbench_core.compute.on_demand import OnDemand
from kernbench_core.context import RunContext
from kernbench_core.engine.faults import component_error, host_error, models_blamed
from kernbench_core.engine.machine import ComponentClasses, build_machine
from kernbench_core.engine.watchdog import Limits, Progress, Watchdog
from kernbench_core.environment import Environment, ProcessGenerator
from kernbench_core.errors import DeadlockError, KernbenchError, LimitError, UsageError
from kernbench_core.graph import Graph
from kernbench_core.host.deadlock import deadlock_report, kernels_that_wait
from kernbench_core.host.host_program import CURRENT, Shared
from kernbench_core.host.launch_names import running_in_words
from kernbench_core.host.rows import Row
from kernbench_core.host.runtime import Expectation, Runtime
from kernbench_core.host.sanity import check
from kernbench_core.host.timing import TimingResult, timing_result
from kernbench_core.kernel.bridge import Bridge, Finished, escaped
from kernbench_core.kernel.queues import Queues
from kernbench_core.memory.device_memory import DeviceMemory
from kernbench_core.memory.hazards import Hazards
from kernbench_core.memory.scratchpad_map import TcmRecorder
from kernbench_core.messages import HostRequest, MmuMapMsg
from kernbench_core.oplog.columns import SPILL_ROWS
from kernbench_core.oplog.log import OpLog, OpLogger
from kernbench_core.process.interrupt import INTERRUPTS
from kernbench_core.topology.design import Machine
from kernbench_core.topology.resolver import AddressResolver
from kernbench_core.topology.routing import PathRouter
from kernbench_core.values.memory_store import MemoryStore

if TYPE_CHECKING:
    from kernbench_core.explain.explanation import Explanation, Recorder
    from kernbench_core.graph import PeSite
    from kernbench_core.host.host_program import HostProgram
    from kernbench_core.host.inputs import Inputs
    from kernbench_core.plugins import Plugins
    from kernbench_core.process.interrupt import WallTime

#: The node that the engine injects host requests at.
ENTRY = "host"


class GraphEngine:
    """Simulate one run on a compiled graph.

    `components` maps a node's `impl` to its class (default: the registry of all installed plug-ins).
    `data=False` keeps shapes only; `log=False` attaches no op logger. `device` is "all" or "sip:N". `explain` notes
    what `explanation` needs; it costs time, and changes no result. `tcm_map` has
    `ctx.tcm_recorder` note what the scratchpads hold. `plugins` are what `rt.plugins` gives (default: the installed).
    Each `spill_rows` records of the op log go to temporary files. `wall` is the wall time that is left of more than
    the run (default: that of `limits`, for the run alone). `inputs` keep the files that the bench reads.
    """

    def __init__(
        self,
        graph: Graph,
        components: ComponentClasses | None = None,
        *,
        data: bool = True,
        seed: int = 0,
        device: str = "all",
        limits: Limits | None = None,
        on_progress: Callable[[Progress], None] | None = None,
        log: bool = True,
        functions: Mapping[str, str] | None = None,
        explain: bool = False,
        tcm_map: bool = False,
        race_by: str = "pe",
        spill_rows: int = SPILL_ROWS,
        plugins: Plugins | None = None,
        wall: WallTime | None = None,
        inputs: Inputs | None = None,
    ) -> None:
        self.env = _recording_environment() if explain else Environment()
        self.graph = graph
        self.limits = limits or Limits()
        self.op_log = OpLog(spill_rows, spill_values=not data)
        self.functions = dict(functions or {})
        self.ctx = RunContext(
            self.env, graph, op_logger=OpLogger(self.op_log) if log else None, data=data, seed=seed
        )
        self._on_progress = on_progress
        self._wall = wall
        self._watchdog: Watchdog | None = None
        self._finished = False
        #: What the host programs of the run share, and the first of them, the bench.
        self.shared = Shared(plugins=plugins, inputs=inputs)
        self.runtime: Runtime | None = None
        if isinstance(graph, Machine):
            self.ctx.store = self.store = MemoryStore(data=data)
            self.ctx.on_demand = OnDemand(self.op_log, self.store, self.functions)
            self.ctx.hazards = self.store.hazards = Hazards(
                [p.prefix for p in graph.design.pes], lambda: self.env.now, race_by
            )
            if tcm_map:
                self.ctx.tcm_recorder = TcmRecorder(lambda: self.env.now)
            self.ctx.memory = DeviceMemory(graph.design)
            self.ctx.queues = Queues(self.ctx, partial(running_in_words, self.shared))
            self.ctx.resolver = AddressResolver(graph)
            self.pes = select_pes(graph.design.pes, device)
        self.ctx.router = PathRouter(graph)
        build_machine(self.ctx, components if components is not None else _installed())
        self._recorder = _recorder(self.ctx) if explain else None

    # Running --------------------------------------------------------------------------------------

    def run(
        self, bench: Callable[..., Any], params: Mapping[str, object] | None = None, *, name: str | None = None
    ) -> None:
        """Run the host program `bench(rt, **params)` to its end, and every launch that it did not wait for.

        `name` is what messages call it; default the function's own name.
        Raise DeadlockError when nothing can happen any more, LimitError when a limit is reached,
        KernelError or ComponentError when a kernel, the program or a model raised, SanityError when
        a check at the end fails.
        """
        program = name or str(getattr(bench, "__name__", "the host program"))
        runtime = self.runtime = Runtime(self, self.shared, self.pes, f"bench {program!r}", self.ctx.seed)
        self.start(runtime, bench, (runtime,), params or {}, self._end)
        try:
            self.advance()
            if not self._finished:
                raise DeadlockError(deadlock_report(self.ctx, self.shared))
        finally:
            for other in self.shared.programs[1:]:
                other.bridge.close()
        if all(isinstance(request, MmuMapMsg) for request in self.shared.requests):
            raise UsageError(
                f"bench {program!r} must submit something to the device, but it returned without a copy or a "
                "launch; call rt.tensor or rt.launch in it."
            )
        check(self.ctx, self.get_timing_result())

    def advance(self) -> None:
        """Process events until nothing is left; translate what components raise."""
        self._watchdog = Watchdog(self.env, self.limits, self._on_progress, self._wall)
        try:
            self._watchdog.run(lambda: False)
        except LimitError as error:
            raise LimitError("\n".join([str(error), *kernels_that_wait(self.ctx, self.shared)])) from None
        except (KernbenchError, *INTERRUPTS):
            raise
        except BaseException as error:
            raise component_error(self.ctx, error) from error

    def start(
        self,
        program: Runtime,
        fn: Callable[..., Any],
        args: Sequence[object],
        kwargs: Mapping[str, object],
        ended: Callable[[Runtime], None],
    ) -> None:
        """Start a host program, `fn(*args, **kwargs)`; `ended(program)` is called when it and its launches are over."""

        def body() -> Any:
            CURRENT.set(program)
            return fn(*args, **kwargs)

        program.bridge = Bridge(body)
        process = self.env.process(self._host_program(program))
        if process.callbacks is not None:
            process.callbacks.append(lambda event: ended(program) if event.ok else None)

    def _host_program(self, program: Runtime) -> ProcessGenerator:
        bridge = program.bridge
        try:
            request = bridge.resume()
            while not isinstance(request, Finished):
                if isinstance(request, HostRequest):
                    program.waits_for, program.waits_since_ns = request, self.env.now
                    answer = yield self.submit(request, program)
                    program.waits_for = None
                else:
                    answer = yield request
                request = bridge.resume(answer)
        except Exception as raised:
            error = escaped(raised)
            raise host_error(error, program.name, self.env.now) from error
        program.value = request.value
        for launched in program.requests:
            if launched.response is None:
                program.waits_for, program.waits_since_ns = launched, self.env.now
                yield launched.done  # type: ignore[misc]  # a process waits on a Signal, though it is no Event
        program.waits_for = None
        for handle in self.shared.launches:
            if handle.program is program:
                self.ctx.hazards.joined(handle.launch, program.number)
                program.learn(handle.launch)

    def _end(self, _: Runtime) -> None:
        """End the run with the bench, even where a model keeps a process of its own going."""
        self._finished = True
        self.ctx.horizon_ns = self.env.horizon_ns()
        self.env.halt()

    def submit(self, request: HostRequest, program: HostProgram | None = None) -> Any:
        """Put a host request of a program in at the entry component; return what to wait on."""
        entry = self.ctx.components[ENTRY]
        self.shared.requests.append(request)
        if program is not None:
            program.requests.append(request)
        if self._recorder is not None:
            self._recorder.submitted(request)
        self.env.inject(request, entry.arrive)
        return request.done

    # Results --------------------------------------------------------------------------------------

    @property
    def expectations(self) -> list[Expectation]:
        """What the host program asked to be checked, in its order."""
        return self.shared.expectations

    @property
    def rows(self) -> tuple[Row, ...]:
        """What the host program reported."""
        return tuple(self.shared.rows)

    def get_timing_result(self) -> TimingResult:
        """Return the timing of what has run so far."""
        wall_s = 0.0 if self._watchdog is None else self._watchdog.wall_s
        with models_blamed(self.ctx):
            return timing_result(self.ctx, self.shared.requests, len(self.op_log), wall_s)

    def explanation(self) -> Explanation | None:
        """Return why what has run so far took as long as it did; None unless the engine was made to explain it."""
        if self._recorder is None:
            return None
        with models_blamed(self.ctx):
            return self._recorder.explanation(self.shared.requests)


def select_pes(pes: tuple[PeSite, ...], device: str) -> tuple[PeSite, ...]:
    """Return the PEs that `device` ("all" or "sip:N") names; raise UsageError when there are none."""
    if device == "all":
        return pes
    sips = sorted({site.sip for site in pes})
    kind, _, number = str(device).partition(":")
    if kind == "sip" and number.isdecimal() and int(number) in sips:
        return tuple(site for site in pes if site.sip == int(number))
    raise UsageError(f"--device must be 'all' or 'sip:N' with N from {sips[0]} to {sips[-1]}, not {device!r}.")


def _installed() -> ComponentClasses:
    from kernbench_core.plugins import load_plugins

    return load_plugins().components


def _recording_environment() -> Environment:
    from kernbench_core.explain.causes import RecordingEnvironment

    return RecordingEnvironment()


def _recorder(ctx: RunContext) -> Recorder:
    from kernbench_core.explain.explanation import Recorder

    return Recorder(ctx)
