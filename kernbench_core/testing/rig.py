"""The test kit for component authors: feed a model over small wires, and look at what comes out and when.

    rig = Rig(MyModel, {"overhead": "5 ns"})
    rig.feed(at_ns=0, nbytes=100).feed(at_ns=3, nbytes=100)
    assert_ready_at(rig, 12.0)          # nothing had come one grid step before 12 ns; it is there at 12 ns
    rig.run()
    rig.arrivals, rig.log

`Rig` puts one component between inputs and outputs. `Harness` is any graph made by hand, from models
and from edges (`edge`, `line`). `assert_same_log` says whether two models, for example the same one in
both authoring styles, behave alike, bit for bit. The machinery is the engine's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar, Self, TypeAlias, cast

import attrs

from kernbench_core.component import ComponentBase
from kernbench_core.engine.engine import RunObserver
from kernbench_core.engine.faults import component_error
from kernbench_core.engine.hardware import ComponentClasses, Hardware
from kernbench_core.engine.watchdog import Limits, Watchdog
from kernbench_core.environment import Environment
from kernbench_core.errors import ConfigError, KernbenchError, LimitError, UsageError
from kernbench_core.graph import Edge, EdgeKind, Graph, Node
from kernbench_core.messages import MsgBase
from kernbench_core.params import resolve_params
from kernbench_core.process.interrupt import INTERRUPTS
from kernbench_core.units import GRID_NS


@attrs.frozen
class Placed:
    """Say what stands at a node: a component class or a registered name, its parameters, the node's kind.

    `params` are written as in YAML, with units ("5 ns"); what is left out has its default.
    """

    model: type[ComponentBase] | str
    params: Mapping[str, object] = attrs.field(factory=dict)
    kind: str = "under_test"


#: What `Harness` and `Rig` take for a component.
Model: TypeAlias = type[ComponentBase] | str | Placed


@attrs.frozen
class LogLine:
    """Say that a component served a logged message from `t_start` to `t_end` (ns)."""

    t_start: float
    t_end: float | None
    component: str
    label: str


class ServiceRecorder:
    """Keep what components log, as an OpLogger would be told."""

    def __init__(self) -> None:
        self.lines: list[tuple[float, float | None, str, MsgBase]] = []
        self._open: dict[tuple[str, int], int] = {}

    def record_start(self, t: float, component_id: str, msg: MsgBase) -> None:
        self._open[component_id, id(msg)] = len(self.lines)
        self.lines.append((t, None, component_id, msg))

    def record_end(self, t: float, component_id: str, msg: MsgBase) -> None:
        index = self._open.pop((component_id, id(msg)))
        self.lines[index] = (self.lines[index][0], t, component_id, msg)


class ModelClasses:
    """Name the classes of a hand-made graph, so that nodes can refer to them as they do to registered ones."""

    def __init__(self, catalogue: ComponentClasses | None) -> None:
        self._catalogue = catalogue
        self._classes: dict[str, type[ComponentBase]] = {}

    def nodes(self, models: Mapping[str, Model]) -> list[Node]:
        """Return a node for each model; raise ConfigError with every wrong parameter."""
        nodes, problems = [], []
        for node_id, model in models.items():
            placed = placed_of(model)
            impl = self._name(placed.model)
            ask = getattr(self._catalogue, "declared", None) if isinstance(placed.model, str) else None
            declared = self._classes[impl].PARAMS if ask is None else ask(impl)  # with what plug-ins add
            params, wrong = resolve_params(declared, placed.params, _where(node_id))
            problems += wrong
            nodes.append(Node(node_id, placed.kind, impl, params))
        if problems:
            raise ConfigError(*problems)
        return nodes

    def load(self, name: str) -> type[ComponentBase]:
        """Return the class that `nodes` gave this name."""
        return self._classes[name]

    def _name(self, model: type[ComponentBase] | str) -> str:
        if isinstance(model, str):
            if self._catalogue is None:
                from kernbench_core.plugins import load_plugins

                self._catalogue = load_plugins().components
            self._classes[model] = self._catalogue.load(model)
            return model
        name = base = f"{model.__module__}.{model.__qualname__}"
        number = 1
        while self._classes.setdefault(name, model) is not model:
            number += 1
            name = f"{base}#{number}"
        return name


def placed_of(model: Model) -> Placed:
    return model if isinstance(model, Placed) else Placed(model)


def _where(node_id: str) -> Any:
    return lambda *names: ".".join((node_id, *names))


#: Events after which a machine of the kit gives up, so that a model that never ends fails its test.
MOST_EVENTS = 10_000_000


def place(model: type[ComponentBase] | str, kind: str = "under_test", **params: object) -> Placed:
    """Return `model` with its parameters: `place(MyModel, overhead="5 ns")`."""
    return Placed(model, params, kind)


def edge(
    src: str,
    dst: str,
    *,
    bandwidth: float = 100.0,
    latency: float = 1.0,
    payload_bytes: int = 4096,
    header_bytes: int = 0,
    kind: EdgeKind = EdgeKind.PE,
) -> Edge:
    """Return a directed edge: bandwidth in bytes/ns, latency in ns, framing in bytes."""
    return Edge(src, dst, kind, bandwidth, latency, payload_bytes, header_bytes)


def line(*ids: str, both_ways: bool = True, **wire: Any) -> tuple[Edge, ...]:
    """Return the edges that join `ids` one after another, back as well; `wire` is what `edge` takes."""
    there = [edge(a, b, **wire) for a, b in pairwise(ids)]
    back = [edge(b, a, **wire) for a, b in pairwise(ids)] if both_ways else []
    return (*there, *back)


class Ping(MsgBase):
    """Be a message without meaning that is logged, so that the kit sees when its service began and ended."""

    __slots__ = ()
    data_op: ClassVar[bool] = True


class Probe(ComponentBase):
    """Send what is fed to it and keep what arrives; costs no time.

    Models: a place where a test puts messages in and takes them out.
    """

    def __init__(self, node: Node, hardware: Hardware) -> None:
        super().__init__(node, hardware)
        #: What has arrived, when and where; probes of one machine share it.
        self.arrived: list[tuple[float, str, MsgBase]] = []

    def emit(self, msg: MsgBase, head: float, tail: float) -> None:
        """Send `msg` on, or keep it where its path ends; a request that ends here gets no answer."""
        if msg.hop + 1 < len(msg.path):
            super().emit(msg, head, tail)
            return
        msg.head, msg.tail = head, tail
        self.arrived.append((self.env.now, self.id, msg))
        if msg.reply:
            msg.answered()


@attrs.frozen
class Arrival:
    """Say that a message came to a probe: at `time` ns, its first byte at `head`, its last at `tail`."""

    label: str
    node: str
    time: float
    head: float
    tail: float
    nbytes: int
    message: MsgBase = attrs.field(eq=False, repr=False)


class Harness:
    """Simulate a graph made by hand: `nodes` maps ids to models, `edges` come from `edge` and `line`.

    `Probe` nodes are where messages are fed and collected. Registered names are looked up in
    `catalogue` (default: the installed plug-ins). `observers` look on, as they would at a run. Raise ConfigError when
    the graph or a parameter is wrong.
    """

    def __init__(
        self,
        nodes: Mapping[str, Model],
        edges: Iterable[Edge],
        *,
        limits: Limits | None = None,
        catalogue: ComponentClasses | None = None,
        observers: Sequence[RunObserver] = (),
    ) -> None:
        self.env = next((each.env for each in observers if each.env is not None), None) or Environment()
        self._sent: list[MsgBase] = []
        self._labels: dict[int, str] = {}
        self._recorder = ServiceRecorder()
        self._arrived: list[tuple[float, str, MsgBase]] = []
        self._limits = limits or Limits(max_events=MOST_EVENTS)
        classes = ModelClasses(catalogue)
        graph = Graph.of(classes.nodes(nodes), edges)
        # the recorder has the two methods of an OpLogger that components call
        self.hardware = Hardware(self.env, graph, op_logger=cast(Any, self._recorder))
        for observer in observers:
            observer.begin(self.hardware)
        self.hardware.build(classes)
        for observer in observers:
            observer.attach(self.hardware)
        for component in self.hardware.components.values():
            if isinstance(component, Probe):
                component.arrived = self._arrived

    def component(self, node_id: str) -> ComponentBase:
        """Return the component at a node."""
        return self.hardware.components[node_id]

    def send(
        self, path: Sequence[str], at_ns: float | None = None, nbytes: int = 0, *, msg: MsgBase | None = None
    ) -> MsgBase:
        """Put a message into the first node of `path` at `at_ns` (default now); return it.

        The message is a `Ping` of `nbytes` unless `msg` is given, whose own size stays. Messages that
        are put in at one time are delivered in the order of the calls.
        """
        at_ns = self.env.now if at_ns is None else at_ns
        pairs = list(pairwise(path))
        missing = [f"{a} -> {b}" for a, b in pairs if (a, b) not in self.hardware.graph.edges]
        if not path or path[0] not in self.hardware.components or missing:
            raise UsageError(f"path must follow edges of the machine, not {list(path)!r}; add {missing or 'a node'}.")
        if at_ns < self.env.now:
            raise UsageError(f"at_ns must be at least the present time {self.env.now!r} ns, not {at_ns!r}.")
        sent = Ping(nbytes) if msg is None else msg
        sent.path = tuple(path)
        self._sent.append(sent)
        self._labels[id(sent)] = f"{type(sent).__name__}{len(self._sent)}"
        self.env.inject(sent, self.hardware.components[path[0]].arrive, at_ns)
        return sent

    def run(self, until_ns: float | None = None) -> Self:
        """Process every event, or those up to and at `until_ns`; raise what the engine would raise."""
        try:
            if until_ns is None:
                self._run_to_the_end()
            else:
                self._step_to(until_ns)
        except (KernbenchError, *INTERRUPTS):
            raise
        except BaseException as error:
            raise component_error(self.hardware, error) from error
        return self

    def _run_to_the_end(self) -> None:
        try:
            Watchdog(self.env, self._limits, None).run()
        except LimitError as error:
            told = str(error).partition(";")[0]  # what follows is for who runs a bench
            raise LimitError(f"{told}; correct the model, or give the machine other limits.") from None

    def _step_to(self, until_ns: float) -> None:
        most = self._limits.max_events or MOST_EVENTS
        while self.env.peek() <= until_ns:
            self.env.advance(max(1, most - self.env.events), until_ns)
            if self.env.events >= most:
                raise LimitError(f"the machine must reach {until_ns!r} ns within {most} events; correct the model.")

    @property
    def arrivals(self) -> tuple[Arrival, ...]:
        """What has come to the probes, in the order in which it came."""
        return tuple(
            Arrival(self._label(msg), node, time, msg.head, msg.tail, msg.nbytes, msg)
            for time, node, msg in self._arrived
        )

    @property
    def log(self) -> tuple[LogLine, ...]:
        """What components logged, probes left out, in the order of the op log: start, component, first logged first."""
        lines = [
            LogLine(start, end, where, self._label(msg))
            for start, end, where, msg in self._recorder.lines
            if not isinstance(self.component(where), Probe)
        ]
        return tuple(sorted(lines, key=lambda entry: (entry.t_start, entry.component)))

    def _label(self, msg: MsgBase) -> str:
        return self._labels.get(id(msg), type(msg).__name__)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self.hardware.components)} nodes at {self.env.now!r} ns>"


class Rig(Harness):
    """Simulate one component between `inputs` probes in0, in1, … and `outputs` probes out0, out1, ….

    All wires are alike: `wire` is what `edge` takes, by default 100 bytes/ns and 1 ns, without headers.
    `node_id` matters to models that read their place from it.
    """

    def __init__(
        self,
        model: Model,
        params: Mapping[str, object] | None = None,
        *,
        inputs: int = 1,
        outputs: int = 1,
        node_id: str = "under_test",
        limits: Limits | None = None,
        catalogue: ComponentClasses | None = None,
        **wire: Any,
    ) -> None:
        placed = placed_of(model)
        placed = attrs.evolve(placed, params={**placed.params, **(params or {})})
        sides = [f"in{i}" for i in range(inputs)] + [f"out{i}" for i in range(outputs)]
        edges = [each for side in sides for each in line(side, node_id, **wire)]
        self._id = node_id
        super().__init__({node_id: placed, **dict.fromkeys(sides, Probe)}, edges, limits=limits, catalogue=catalogue)

    @property
    def under_test(self) -> ComponentBase:
        """The component."""
        return self.component(self._id)

    def feed(
        self, at_ns: float, nbytes: int = 0, *, port: int = 0, output: int = 0, msg: MsgBase | None = None
    ) -> Self:
        """Send a message through the component: onto the wire of input `port` at `at_ns`, then to `output`."""
        self.send((f"in{port}", self._id, f"out{output}"), at_ns, nbytes, msg=msg)
        return self

    def ask(self, at_ns: float, nbytes: int = 0, *, port: int = 0, msg: MsgBase | None = None) -> Self:
        """Send a message that ends at the component; its answer arrives at the same input probe."""
        self.send((f"in{port}", self._id), at_ns, nbytes, msg=msg)
        return self


@attrs.frozen
class Feed:
    """Describe one message of a workload: fed at `at_ns` with `nbytes` into input `port`."""

    at_ns: float
    nbytes: int = 0
    port: int = 0


def assert_ready_at(machine: Harness, at_ns: float, arrival: int = 1) -> None:
    """Assert that the given arrival (1 is the first) is there at `at_ns` and was not one grid step before.

    The machine is run up to `at_ns`; it must not have passed it yet. Raise AssertionError, or UsageError.
    """
    if machine.env.now >= at_ns:
        raise UsageError(
            f"at_ns must be later than the machine's time {machine.env.now!r} ns, not {at_ns!r}; "
            "check arrivals in the order of time."
        )
    machine.run(until_ns=at_ns - GRID_NS)
    if len(machine.arrivals) >= arrival:
        came = machine.arrivals[arrival - 1].time
        raise AssertionError(f"arrival {arrival} must come at {at_ns!r} ns, not as early as {came!r} ns.")
    machine.run(until_ns=at_ns)
    if len(machine.arrivals) < arrival:
        machine.run()
        later = machine.arrivals[arrival - 1 : arrival]
        came_at = f"only at {later[0].time!r} ns" if later else "never"
        raise AssertionError(f"arrival {arrival} must come at {at_ns!r} ns, but it came {came_at}.")


def assert_same_log(first: Model, second: Model, workload: Iterable[Feed], **rig: Any) -> None:
    """Assert that two models serve `workload` alike: equal logs and equal arrivals, bit for bit.

    `rig` is what `Rig` takes. Raise AssertionError naming the first difference.
    """
    feeds = list(workload)
    inputs = 1 + max((feed.port for feed in feeds), default=0)
    rigs = [Rig(model, inputs=inputs, **rig) for model in (first, second)]
    for each in rigs:
        for feed in feeds:
            each.feed(feed.at_ns, feed.nbytes, port=feed.port)
        each.run()
    one, other = rigs
    for what, left, right in (("log", one.log, other.log), ("arrivals", one.arrivals, other.arrivals)):
        for number, (a, b) in enumerate(zip(left, right, strict=False), 1):
            if a != b:
                raise AssertionError(f"line {number} of the {what} differs: {a} of the first, {b} of the second model.")
        if len(left) != len(right):
            raise AssertionError(f"the {what} must have the same length, not {len(left)} and {len(right)} lines.")
