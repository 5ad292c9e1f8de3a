"""Where a driver puts a model: a machine made by hand, or a whole one, that is run and looked at."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import attrs

from kernbench_builtin.checks.components.monitor import Monitor, NotingParams, contents
from kernbench_core.engine.watchdog import Limits
from kernbench_core.errors import ComponentError, DeadlockError, KernbenchWarning, LimitError, SanityError, in_words
from kernbench_core.graph import Edge
from kernbench_core.host.lost_messages import lost_messages
from kernbench_core.host.statistics import statistics
from kernbench_core.messages import MsgBase
from kernbench_core.process.interrupt import INTERRUPTS
from kernbench_core.testing.kit import CheckFailed
from kernbench_core.testing.rig import Harness, Model, Placed, Probe
from kernbench_core.testing.testbench import ModelTestbench

if TYPE_CHECKING:
    from kernbench_core.engine.hardware import Hardware
    from kernbench_core.host.session import GraphEngine
    from kernbench_core.plugins import Plugins

_SEED: Final = 20
#: When a drive is stopped: each takes some hundreds of events, so a model that goes on for ever is found soon.
_LIMITS: Final = Limits(max_events=200_000, timeout_s=60.0)


@attrs.frozen
class Sent:
    """A message that a driver sent: itself, and a copy of what it was then."""

    msg: MsgBase
    before: MsgBase
    carried: Mapping[str, object]
    at_end: str
    probed: bool


class WatchedMachine(Harness):
    """Be a machine made by hand that keeps what is sent."""

    def __init__(self, nodes: Mapping[str, Model], edges: Iterable[Edge], **options: Any) -> None:
        super().__init__(nodes, edges, **options)
        self.sent: list[Sent] = []

    def send(
        self, path: Sequence[str], at_ns: float | None = None, nbytes: int = 0, *, msg: MsgBase | None = None
    ) -> MsgBase:
        """Put a message in, as ever, and keep what it was."""
        sent = super().send(path, at_ns, nbytes, msg=msg)
        before = copy.copy(sent)
        before.callbacks = None
        probed = isinstance(self.component(path[-1]), Probe)
        self.sent.append(Sent(sent, before, contents(sent), path[-1] if probed else path[0], probed))
        return sent


@attrs.frozen
class DriveResult:
    """What came of driving a model: what was seen, what was `sent`, and the `error` that ended it, if one did.

    `said` is what the checks at the end of a whole run say; `sent` is empty for one. `counted` are its statistics, a
    line each, as they were then. There is no hardware where building it failed.
    """

    monitor: Monitor
    hardware: Hardware | None
    error: BaseException | None = None
    sent: tuple[Sent, ...] = ()
    came: tuple[tuple[MsgBase, str], ...] = ()
    said: Mapping[str, Sequence[str]] = attrs.field(factory=dict)
    counted: tuple[str, ...] = ()

    @property
    def params(self) -> tuple[NotingParams, ...]:
        """The parameters of the components, and what was done with them."""
        return tuple(self.monitor.params.values())

    @property
    def log(self) -> list[str]:
        """All that was seen, a line each: passages and services in their order, then what was counted."""
        return [*self.monitor.lines, *self.counted]

    @property
    def held(self) -> list[str]:
        """What the components still hold, in words."""
        return [
            f"{component.id} holds {self.monitor.label(msg)} {how}"
            for component in self.monitor.components
            for how, messages in (
                ("in service", [msg for msg, _ in component.serving]),
                ("in its queue", component.waiting),
                ("until it is answered", component.awaiting()),
            )
            for msg in messages
        ]

    @property
    def blame(self) -> tuple[str, str] | None:
        """The check that tells why the drive did not come to its end, and its sentence; None where it did."""
        monitor, error = self.monitor, self.error
        if monitor.no_times:
            return "takes_finite_times", monitor.no_times[0]
        if monitor.twice:
            return "conserves_messages_and_bytes", monitor.twice[0]
        if error is None or isinstance(error, SanityError):
            return None
        if undeclared := sorted(name for params in self.params for name in params.asked):
            return "uses_declared_parameters_only", f"it reads {undeclared[0]!r}, which its PARAMS do not declare"
        if isinstance(error, LimitError):
            told = str(error).partition(";")[0]  # what follows is for who runs a bench
            return "drains", f"it must come to rest when all is served, and goes on: {told}"
        if isinstance(error, DeadlockError):
            if held := self.held:
                return "drains", f"nothing can happen any more, and {held[0]}"
            lost = lost_messages(self.hardware) if self.hardware is not None else []
            return "conserves_messages_and_bytes", " ".join(lost[:1]) or first_line(error)
        return "serves_without_errors", f"it raised {first_line(error)}"


class WatchedTestbench(ModelTestbench):
    """Where a driver puts the `model` that is checked; what it makes here is run to its end, and looked at.

    `random` gives the same numbers each time. A driver makes one machine: by hand, and sends messages over it, or a
    whole one with what runs on it.
    """

    def __init__(self, model: Placed, plugins: Plugins) -> None:
        self.model = model
        self.plugins = plugins
        self.random = Random(_SEED)
        self._machine: WatchedMachine | None = None
        self._engine: GraphEngine | None = None
        self._monitor: Monitor | None = None

    def machine(self, nodes: Mapping[str, Model], edges: Iterable[Edge]) -> WatchedMachine:
        """Make a machine by hand, as `Harness` does, in which `testbench.model` is at one node or several."""
        here = {node for node, model in nodes.items() if model is self.model}
        self._monitor = Monitor(lambda node: node.id in here)
        self._machine = WatchedMachine(
            nodes,
            edges,
            limits=_LIMITS,
            catalogue=self.plugins.components,
            observers=(self._monitor,),
        )
        return self._machine

    def run(self, bench: Callable[..., Any], topology: Any, set: Mapping[str, object] | None = None) -> None:
        """Run a host program on a whole machine, in which the model serves all nodes of its kind.

        A kind that the topology does not have is added to its PEs where `set` says what to, as
        `{"pe.units.pe_sfu.attach": "pe_tcm"}`.
        """
        from kernbench_core.host.session import GraphEngine
        from kernbench_core.runs.bench_run import configure
        from kernbench_core.topology.compilation import compile_topology

        plugins = self.plugins
        kind, more = self.model.kind, set or {}
        units = configure(plugins, topology).data.get("pe", {}).get("units", {})
        added = kind in units or any(key.startswith(f"pe.units.{kind}.") for key in more)
        place = f"pe.units.{kind}" if added else f"components.{kind}"
        chosen: dict[str, object] = {f"{place}.impl": self.model.model}
        if self.model.params:
            chosen[f"{place}.params"] = dict(self.model.params)
        config = configure(plugins, topology, None, {**chosen, **more})
        graph = compile_topology(config, plugins)
        impl = self.model.model
        self._monitor = Monitor(lambda node: node.impl == impl)
        self._engine = GraphEngine(
            graph,
            plugins.components,
            limits=_LIMITS,
            observers=(self._monitor,),
            plugins=plugins,
        )
        self._engine.run(bench)

    def drive(self, driver: Driver) -> DriveResult:
        """Let a driver make its machine, run that, and return what came of it; raise what building it raises."""
        error: BaseException | None = None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", KernbenchWarning)  # of what is odd in the machine, not in the model
                driver(self)
                if self._machine is not None:
                    self._machine.run()
        except (*INTERRUPTS, MemoryError):
            raise
        except BaseException as raised:
            if self._monitor is None:
                raise
            error = raised
        if self._monitor is None:
            raise CheckFailed("its driver must make a machine, by testbench.machine or testbench.run, and made none")
        return self._drive_result(self._monitor, error)

    def _drive_result(self, monitor: Monitor, error: BaseException | None) -> DriveResult:
        machine, engine = self._machine, self._engine
        if machine is not None:
            came = tuple((each.message, each.node) for each in machine.arrivals)
            counted = _counted(machine.hardware) if error is None else ()
            return DriveResult(monitor, machine.hardware, error, tuple(machine.sent), came, counted=counted)
        if engine is None:
            return DriveResult(monitor, None, error)
        said = engine.findings() if error is None or isinstance(error, SanityError) else {}
        counted = _counted(engine.hardware) if error is None or isinstance(error, SanityError) else ()
        return DriveResult(monitor, engine.hardware, error, said=said, counted=counted)


def _counted(hardware: Hardware) -> tuple[str, ...]:
    """Return what was counted, a line each, or the sentence that says why that cannot be told."""
    try:
        return tuple(f"{each.name} of {each.component} is {each.value!r}" for each in statistics(hardware))
    except ComponentError as error:
        return (first_line(error),)


#: What puts a model into a machine and gives it work.
Driver: TypeAlias = Callable[[ModelTestbench], None]


def first_line(error: BaseException) -> str:
    """Return the first line of what an exception says, without its full stop."""
    return in_words(error).partition("\n")[0].rstrip(".")
