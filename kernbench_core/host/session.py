"""The session: a machine with its memory, kernels and queues, on which host programs run.

It composes what a run needs around the bare engine, starts host programs, and puts their requests in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from attrs import evolve, frozen

from kernbench_core.compute.ops.plugin_ops import OpsOfPlugins
from kernbench_core.engine.engine import Engine
from kernbench_core.engine.faults import host_error, models_blamed
from kernbench_core.engine.hardware import ComponentClasses, Hardware
from kernbench_core.engine.watchdog import Limits, Progress
from kernbench_core.environment import Environment, ProcessGenerator, Signal
from kernbench_core.errors import DeadlockError, LimitError, PluginError, UsageError
from kernbench_core.graph import Graph
from kernbench_core.host.device import Device, DeviceOptions
from kernbench_core.host.host_program import CURRENT, Shared
from kernbench_core.host.launch_names import running_in_words
from kernbench_core.host.residents import Residents
from kernbench_core.host.rows import Row
from kernbench_core.host.runtime import Expectation, Runtime
from kernbench_core.host.sanity import check, findings
from kernbench_core.host.timing import NotModelled, TimingResult, timing_result
from kernbench_core.kernel.bridge import Bridge, Finished, escaped
from kernbench_core.kernel.pe_state import MeasuresLaunches
from kernbench_core.messages import HostRequest, MmuMapMsg
from kernbench_core.oplog.log import OpLog
from kernbench_core.oplog.logger import OpLogger
from kernbench_core.oplog.writing import SPILL_ROWS
from kernbench_core.process.interrupt import WallTime
from kernbench_core.topology.design import machine_of
from kernbench_core.topology.resolver import AddressResolver
from kernbench_core.topology.routing import PathRouter
from kernbench_core.units import format_time
from kernbench_core.values.memory_store import MemoryStore
from kernbench_core.wording import brief

if TYPE_CHECKING:
    from kernbench_core.engine.engine import RunObserver
    from kernbench_core.graph import PeSite
    from kernbench_core.host.host_program import HostProgram, LaunchHandle
    from kernbench_core.host.inputs import Inputs
    from kernbench_core.plugins import LanguageEntry, Plugins, Registry


class MeasuresFigures(MeasuresLaunches, Protocol):
    """Who measures the launches of one run, and says what came of each."""

    def attach(self, hardware: Hardware) -> None:
        """Measure on this machine; called once, when every component exists and nothing has happened yet."""

    def warnings(self) -> tuple[str, ...]:
        """Return what is to be said of the machine."""

    def figures_of(self, handle: LaunchHandle) -> Any:
        """Return the figures of a launch that is over."""


@frozen(kw_only=True)
class EngineOptions(DeviceOptions):
    """How a `GraphEngine` simulates its run.

    `device` is "all" or "sip:N"; `log=False` attaches no op logger. `observers` look on, which may cost time, and
    change no result; one of them at most may bring a clock (`RunObserver`). `plugins` are what `rt.plugins` gives
    (default: the installed). Each `spill_rows` records of the op log go to temporary files. `wall` is the wall time
    that is left of more than the run (default: that of `limits`, for the run alone). `inputs` keep the files that the
    bench reads, `meter` measures launches. `resident` names tensors that are there before the run, by commas, or "all".
    """

    seed: int = 0
    device: str = "all"
    limits: Limits | None = None
    on_progress: Callable[[Progress], None] | None = None
    log: bool = True
    functions: Mapping[str, str] | None = None
    observers: Sequence[RunObserver] = ()
    spill_rows: int = SPILL_ROWS
    plugins: Plugins | None = None
    wall: WallTime | None = None
    inputs: Inputs | None = None
    meter: MeasuresFigures | None = None
    resident: str = ""


class GraphEngine:
    """Simulate one run on a compiled graph.

    `components` maps a node's `impl` to its class (default: the registry of all installed plug-ins); more may be given
    by name, as `EngineOptions` has it.

    Raise ConfigError when the graph cannot be built, UsageError for a device that is not there.

    >>> from kernbench_core.runs import configure
    >>> plugins = kb.load_plugins()
    >>> engine = kb.GraphEngine(kb.compile_topology(configure(plugins, "tiny"), plugins))
    >>> engine.run(plugins.benches.load("vector-add"), {"n": 64})
    >>> len(engine.op_log), engine.get_timing_result().ops
    (32, 32)
    """

    def __init__(self, graph: Graph, components: ComponentClasses | None = None, **given: Any) -> None:
        options = EngineOptions(**given)
        env = self.env = _clock_of(options.observers)
        self.graph = graph
        self.seed = options.seed
        self.op_log = OpLog(options.spill_rows, spill_values=not options.data)
        self.functions = dict(options.functions or {})
        self._finished = False
        self._horizon_ns = 0.0
        #: What the host programs of the run share, and the first of them, the bench.
        residents = Residents.of(options.resident)
        self.shared = Shared(plugins=options.plugins, inputs=options.inputs, residents=residents)
        self.runtime: Runtime | None = None
        self.meter = options.meter
        machine = self.machine = machine_of(graph)
        plugins = options.plugins
        self.pes = select_pes(machine.design.pes, options.device)
        self.device = Device.of(
            machine,
            lambda: env.now,
            self.op_log,
            self.functions,
            OpsOfPlugins(self.functions, *(() if plugins is None else (plugins.ops.load, plugins.ops.fault))),
            options,
            calls=partial(_calls_of, self.shared),
            launch_on=partial(running_in_words, self.shared),
            meter=self.meter,
            cut=lambda regions: self.hardware.cut(regions),
        )
        self.hardware = Hardware(
            env,
            machine,
            routes=PathRouter.of(machine),
            addresses=AddressResolver(machine),
            layout=machine.design,
            op_logger=OpLogger(self.op_log) if options.log else None,
            parts=self.device.parts,
        )
        self.engine = Engine(
            self.hardware,
            components if components is not None else _installed(),
            limits=options.limits,
            on_progress=options.on_progress,
            wall=options.wall,
            observers=options.observers,
        )
        self.op_log.store = self.device.store
        if self.meter is not None:
            self.meter.attach(self.hardware)
        self._wall = options.wall
        self._timed: tuple[tuple[float, int, int, float], TimingResult] | None = None

    @property
    def store(self) -> MemoryStore:
        """What the memory of the device holds."""
        return self.device.store

    # Running --------------------------------------------------------------------------------------

    def run(
        self, bench: Callable[..., Any], params: Mapping[str, object] | None = None, *, name: str | None = None
    ) -> None:
        """Run the host program `bench(rt, **params)` to its end, and every launch that it did not wait for.

        `name` is what messages call it; default the function's own name.
        Raise DeadlockError when nothing can happen any more, LimitError when a limit is reached,
        KernelError or ComponentError when a kernel, the program or a model raised, SanityError when
        a check at the end fails. UsageError for what is no function, as the name of a bench.
        """
        if not callable(bench):
            raise UsageError(
                f"GraphEngine.run must be given a function of `rt`, not {brief(bench)}; for a bench with a name, give "
                "`kb.load_plugins().benches.load(name)`, or call `kb.run(name, topology)` without an engine."
            )
        program = name or str(getattr(bench, "__name__", "the host program"))
        runtime = self.runtime = Runtime(self, self.shared, self.pes, f"bench {program!r}", self.seed)
        self.start(runtime, bench, (runtime,), params or {}, self._end)
        try:
            self.advance()
            if not self._finished:
                at = format_time(self.env.now)
                told = f"deadlock at simulated time {at}: nothing is left to happen, but something still waits."
                raise DeadlockError("\n".join([told, *self._diagnosed(over=True)]))
        except Exception:
            with suppress(Exception):  # of their `finally` blocks: what went wrong first is told
                self.close()
            raise
        for other in self.shared.programs[1:]:
            other.bridge.close()
        if resident := self.shared.residents.note():
            self.shared.notes[resident] = None
        if all(isinstance(request, MmuMapMsg) for request in self.shared.requests):
            raise UsageError(
                f"bench {program!r} must submit something to the device, but it returned without a copy or a "
                "launch; call rt.tensor or rt.launch in it."
            )
        with (self._wall or WallTime(self.engine.limits.timeout_s)).spent_on("checking the run"):
            check(self.hardware, self.get_timing_result(), self._horizon_ns)

    def close(self) -> None:
        """End what a run that was stopped has left suspended, kernels and host programs; their `finally` blocks run.

        Nobody may look at where they are after that. Without it they stay in memory, with all that they know: Python
        does not look for garbage in the frames of greenlets.
        """
        for state in self.device.kernels.states.values():
            if state.runner is not None:
                state.runner.close()
        for program in self.shared.programs:
            program.bridge.close()

    def advance(self) -> None:
        """Process events until nothing is left; where a limit is reached, say which kernels wait."""
        try:
            self.engine.advance()
        except LimitError as error:
            raise LimitError("\n".join([str(error), *self._diagnosed(over=False)])) from None

    def _diagnosed(self, *, over: bool) -> list[str]:
        """Return what plug-ins say of who waits: where nothing is left to happen, or at a limit."""
        from kernbench_core.plugins import DIAGNOSES

        found = self.shared.loaded_plugins().of(DIAGNOSES)
        lines: list[str] = []
        for name in found:
            try:
                lines += found.load(name)(self, over)
            except Exception as error:
                if found.provider(name).is_ours:
                    raise
                lines.append(f"  {error if isinstance(error, PluginError) else found.raised(name, error)}")
        return lines if lines or not over else ["  No plug-in is here that tells who waits for whom."]

    def start(
        self,
        program: HostProgram,
        fn: Callable[..., Any],
        args: Sequence[object],
        kwargs: Mapping[str, object],
        ended: Callable[[], None],
    ) -> None:
        """Start a host program, `fn(*args, **kwargs)`; `ended()` is called when it and its launches are over."""

        def body() -> Any:
            CURRENT.set(program)
            return fn(*args, **kwargs)

        program.bridge = Bridge(body)
        process = self.env.process(self._host_program(program))
        if process.callbacks is not None:
            process.callbacks.append(lambda event: ended() if event.ok else None)

    def _host_program(self, program: HostProgram) -> ProcessGenerator:
        bridge, tell = program.bridge, self.shared.tell_host
        try:
            tell(True)
            request = bridge.resume()
            while not isinstance(request, Finished):
                if isinstance(request, HostRequest):
                    program.waits_for, program.waits_since_ns = request, self.env.now
                    done = self.submit(request, program)
                    tell(False)
                    answer = yield done  # type: ignore[misc]  # a process waits on a Signal, though it is no Event
                    program.waits_for = None
                else:
                    tell(False)
                    answer = yield request
                tell(True)
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
                self.device.hazards.joined(handle.request.launch, program.number)
                program.learn(handle.request.launch)

    def _end(self) -> None:
        """End the run with the bench, even where a model keeps a process of its own going."""
        self._finished = True
        self._horizon_ns = self.env.horizon_ns()
        self.env.halt()

    def submit(self, request: HostRequest, program: HostProgram | None = None) -> Signal:
        """Put a host request of a program in; return what to wait on."""
        self.shared.requests.append(request)
        if program is not None:
            program.requests.append(request)
        self.engine.submit(request)
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

    def findings(self) -> Mapping[str, list[str]]:
        """Return what the checks at the end of a run say, by what each looks at; nothing where all is well."""
        return findings(self.hardware, self.get_timing_result(), self._horizon_ns)

    def figures_of(self, handle: LaunchHandle) -> Any:
        """Return the figures of a launch, None for one that is not over, or where nobody measures."""
        return None if self.meter is None or not handle.has_ended() else self.meter.figures_of(handle)

    def get_timing_result(self) -> TimingResult:
        """Return the timing of what has run so far."""
        with models_blamed(self.hardware):
            now = self.hardware.env.now, len(self.op_log), len(self.shared.requests), self.engine.wall_s
            if self._timed is None or self._timed[0] != now:
                self._timed = now, timing_result(self.hardware, self.shared.requests, now[1], now[3])
            timing = self._timed[1]
            ignored = [NotModelled(each, "the kernel", n) for each, n in self.device.kernels.ignored.items()]
            measured = () if self.meter is None else self.meter.warnings()
            placed, ahead = self.shared.places_arrays, self.device.kernels.pipelines or self.shared.runs_triton
            unused = [] if placed or self.device.array_placement == "near" else [_NOT_PLACED]
            unused += [] if placed or ahead else [_NOT_AHEAD]
            return evolve(
                timing,
                warnings=(*timing.warnings, *measured, *self.shared.notes, *self.device.kernels.notes, *unused),
                not_modelled=(*timing.not_modelled, *ignored),
            )


_NOT_PLACED: Final = (
    "--placement places the arrays of kernels in Triton, and changed nothing here: this run has none of them"
)
_NOT_AHEAD: Final = (
    "--no-pipeline-loops is of loops of kernels in Triton, and changed nothing here: this run has no such kernel"
)


def _clock_of(observers: Sequence[RunObserver]) -> Environment:
    """Return the clock that an observer brings, or a plain one; UsageError where two bring one."""
    brought = [observer.env for observer in observers if observer.env is not None]
    if len(brought) > 1:
        raise UsageError(f"observers of a run must bring one clock at most, not {len(brought)}; leave one out.")
    return brought[0] if brought else Environment()


def select_pes(pes: tuple[PeSite, ...], device: str) -> tuple[PeSite, ...]:
    """Return the PEs that `device` ("all" or "sip:N") names; raise UsageError when there are none."""
    if isinstance(device, str) and device == "all":
        return pes
    sips = sorted({site.sip for site in pes})
    kind, _, number = (device if isinstance(device, str) else "").partition(":")
    if kind == "sip" and number.isdecimal() and int(number) in sips:
        return tuple(site for site in pes if site.sip == int(number))
    raise UsageError(f"--device must be 'all' or 'sip:N' with N from {sips[0]} to {sips[-1]}, not {brief(device)}.")


def _installed() -> ComponentClasses:
    from kernbench_core.plugins import load_plugins

    return load_plugins().components


def _calls_of(shared: Shared) -> Registry[LanguageEntry]:
    from kernbench_core.plugins import LANGUAGE

    return shared.loaded_plugins().of(LANGUAGE)
