"""Look on at the machine in which a model is checked: what it was given, asked for, sent and served."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import suppress
from copy import copy
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import attrs

from kernbench_core.environment import Environment, GridTimeout
from kernbench_core.graph import Node
from kernbench_core.messages import HostRequest, MsgBase, Transaction
from kernbench_core.units import GRID_NS
from kernbench_core.values.region import Region
from kernbench_core.wire import Wire

if TYPE_CHECKING:
    from kernbench_core.component import ComponentBase
    from kernbench_core.engine.hardware import Hardware

#: What a message changes on its way: where it is, since when, and how its time was spent.
_OF_THE_WAY: Final = frozenset(
    (
        "callbacks", "cause", "changed_ns", "head", "hop", "mark", "nbytes", "on_done", "overhead", "path",
        "propagation", "queueing", "reply", "serialisation", "service", "shares", "tail", "waiter",
    )
)  # fmt: skip
_SCALARS: Final = (bool, int, float, str, bytes, type(None), Region)
_GROUPS: Final = (tuple, list, set, frozenset)
_TIMES: Final = ("overhead", "interval", "min_service_ns")
#: Those that bounds ask for, too, so that asking must change nothing.
_ASKED_AGAIN: Final = ("overhead", "min_service_ns")


@attrs.define
class Service:
    """One service that was logged: where, of what, from when to when (ns), and the least that it takes by its word."""

    component: str
    label: str
    start: float
    least_ns: float
    end: float | None = None


class Monitor:
    """Look on at a run or a rig (a `RunObserver`), at the components on nodes for which `stands(node)` is true.

    `no_times` are sentences on what was given as a time and is none, `twice` on messages that were sent while they were
    still on their way, `changed` on times that differ, or change what is counted, when they are asked for again.
    `overtaken` are on messages that went on before others that had come before them, from and to the same neighbours.
    `not_nought` are on statistics that are sums and begin with something.
    `lines` is the log: what passed on the wires of the components, and what they served. `accesses` is
    how many reads and writes ended at them, `in_no_time` those of which the answer left when the request had come.
    `ended` is the last service of a message there, `early` what went on, as a whole, before that ended.
    """

    def __init__(self, stands: Callable[[Node], bool]) -> None:
        self._stands = stands
        self.no_times: list[str] = []
        self.twice: list[str] = []
        self.changed: list[str] = []
        self.overtaken: list[str] = []
        self.not_nought: list[str] = []
        self.lines: list[str] = []
        self.services: list[Service] = []
        self.params: dict[str, NotingParams] = {}
        self.components: tuple[ComponentBase, ...] = ()
        self.accesses = 0
        self.in_no_time: list[str] = []
        self.early: list[str] = []
        self.ended: dict[tuple[str, MsgBase], Service] = {}
        self.env: Environment | None = NotingEnvironment(self)
        self._asked_at: dict[MsgBase, float] = {}
        self._came: dict[tuple[str, MsgBase], tuple[str, int]] = {}
        self._last: dict[tuple[str, str, str], tuple[int, MsgBase]] = {}
        self._labels: dict[MsgBase, str] = {}
        self._counts: dict[str, int] = {}

    # Of a run ---------------------------------------------------------------------------------------

    def begin(self, hardware: Hardware) -> None:
        """Have the machine built with wires and parameters that note what is done with them."""
        nodes = dict(hardware.graph.nodes)
        for node in hardware.graph.nodes.values():
            if self._stands(node):
                noting = self.params[node.id] = NotingParams(node.params)
                nodes[node.id] = attrs.evolve(node, params=noting)
        hardware.graph = attrs.evolve(hardware.graph, nodes=MappingProxyType(nodes))
        hardware.wire_type = _noting_wire(self)

    def attach(self, hardware: Hardware) -> None:
        """Look on from now at what the components answer, and at what they serve."""
        self.components = tuple(hardware.components[node] for node in self.params)
        for component in self.components:
            self._note_beginning(component)
            for name in _TIMES if hasattr(component, "__dict__") else ():  # a compiled model is watched as Python only
                setattr(component, name, self._wrapped(component, name, getattr(component, name)))
            logger: Any = NotingLogger(self, component, component._op_logger)
            component._op_logger = logger

    def _note_beginning(self, component: ComponentBase) -> None:
        """Note a statistic that is not 0 before anything is served, though it is a sum."""
        for stat in component.STATS:
            value = 0
            with suppress(Exception):  # one that is made of others may be none yet
                value = getattr(component, stat.name, 0)
            if stat.combine == "sum" and isinstance(value, int | float) and value != 0:
                told = f"{stat.name!r} of {component.id} must be 0 before anything is served, as a sum, not {value!r}"
                self.not_nought.append(told)

    def submitted(self, request: HostRequest) -> None:
        """Nothing is to be noted of requests."""

    # What is noted ----------------------------------------------------------------------------------

    def label(self, msg: object) -> str:
        """Return what the log calls a message: its class, and the how many-th of it this is."""
        if not isinstance(msg, MsgBase):
            return type(msg).__name__
        known = self._labels.get(msg)
        if known is None:
            name = type(msg).__name__
            self._counts[name] = self._counts.get(name, 0) + 1
            known = self._labels[msg] = f"{name}{self._counts[name]}"
        return known

    def check_time(self, time: object, what: str, least: float = 0.0, *, on_grid: bool = False) -> None:
        """Note a sentence where `time` is no finite number of ns, less than `least`, or off the grid of times."""
        if not isinstance(time, int | float) or not least <= time < math.inf:
            self.no_times.append(f"{what} must be a finite time in ns, at least {least:g}, not {time!r}")
        elif on_grid and time % GRID_NS:
            self.no_times.append(f"{what} must be a multiple of 2^-16 ns, not {time!r}; round it with units.grid_ceil")

    def enters(self, source: str, destination: str, msg: MsgBase, head: float, tail: float) -> None:
        """Take note of a message that is put on a wire, if one of the components is at its end."""
        if source in self.params:
            what = f"when {source} sent {self.label(msg)} on, the time of its {{}} byte"
            assert self.env is not None
            self.check_time(head, what.format("first"), self.env.now, on_grid=True)
            self.check_time(tail, what.format("last"), self.env.now, on_grid=True)
            if msg.callbacks is not None:
                self.twice.append(f"{source} sent {self.label(msg)} while it was still on its way; it must go on once")
            self._note_order(source, destination, msg)
            came = self._asked_at.pop(msg, None)
            self._note_early(source, msg, tail, came)
            if isinstance(msg, Transaction) and msg.reply and msg.path[0] == source:
                self.accesses += 1
                if msg.total and (came is None or tail <= came):
                    told = f"{source} answered {self.label(msg)}, a {msg.op} of {msg.total} B, in 0 ns"
                    self.in_no_time.append(f"{told}; memory must take time")

    def _note_early(self, component: str, msg: MsgBase, tail: float, came: float | None) -> None:
        """Note what went on before it was served; if it was for here, its last byte `came` then, and takes as long."""
        service = self.ended.pop((component, msg), None)
        if service is None or service.end is None:
            return
        served = service.end if came is None else max(service.end, came + service.end - service.start)
        if tail < served:
            told = f"{component} sent all of {self.label(msg)} on by {tail:g} ns"
            self.early.append(f"{told}, which it served until {served:g} ns")

    def passed(self, wire: Wire, msg: MsgBase) -> None:
        """Write down when a message will be at the other end of a wire."""
        source, _, destination = wire.name.partition("->")
        if destination in self.params and not msg.reply and msg.path[-1] == destination:
            self._asked_at[msg] = msg.tail
        if destination in self.params and msg.path[-1] != destination:
            self._came[destination, msg] = source, wire.deliveries
        if source in self.params or destination in self.params or source.partition("#")[0] in self.params:
            self.lines.append(f"{wire.name} {self.label(msg)} {msg.nbytes} B {msg.head!r} {msg.tail!r}")

    def _note_order(self, component: str, destination: str, msg: MsgBase) -> None:
        """Note a message that goes on after one that came later from the same neighbour, and went to the same."""
        source, number = self._came.pop((component, msg), ("", 0))
        if not source:
            return
        way = component, source, destination
        last, other = self._last.get(way, (0, msg))
        if last > number:
            told = f"{component} sent {self.label(other)} on to {destination} before {self.label(msg)}"
            self.overtaken.append(f"{told}, which had come from {source} before it")
        else:
            self._last[way] = number, msg

    def _wrapped(self, component: ComponentBase, name: str, method: Callable[[Any], object]) -> Callable[[Any], object]:
        def asked(msg: Any) -> object:
            answer = method(msg)
            self.check_time(answer, f"what {name} returns of {self.label(msg)}")
            if name in _ASKED_AGAIN and not self.no_times:
                counted = {stat.name: getattr(component, stat.name, None) for stat in component.STATS}
                self._compare(component, f"{name} of {self.label(msg)}", answer, method(msg), counted)
            return answer

        return asked

    def _compare(
        self, component: ComponentBase, asked: str, answer: object, again: object, counted: Mapping[str, object]
    ) -> None:
        """Note what differs when a time is asked for a second time: itself, or what is counted."""
        if repr(again) != repr(answer):
            self.changed.append(f"{asked} must be the same when it is asked for again, not {answer!r} and {again!r}")
        for name, before in counted.items():
            after = getattr(component, name, None)
            if repr(after) != repr(before):  # NaN is no other than it was
                told = f"which bounds ask for, too, must count nothing, and {name!r} goes from {before!r} to {after!r}"
                self.changed.append(f"{asked}, {told}; count it in emit, say")


class NotingEnvironment(Environment):
    """Be the clock, and note what is scheduled for no time."""

    def __init__(self, monitor: Monitor) -> None:
        super().__init__()
        self._monitor = monitor

    def call_at(self, time: float, msg: Any, callback: Callable[[Any], None]) -> None:
        """Schedule a call, noting a time that is none."""
        of = self._monitor.label(msg)
        self._monitor.check_time(time, f"the time that call_at is given for {of}", self.now, on_grid=True)
        super().call_at(time, msg, callback)

    def timeout(self, delay: float = 0, value: object = None) -> GridTimeout:
        """Return an event, noting a delay that is none."""
        self._monitor.check_time(delay, "what env.timeout is given")
        return super().timeout(delay, value)


class NotingParams(MutableMapping[str, Any]):
    """Be the parameters of a node: note which are read, `asked` for without being there, and what is `written`."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = dict(values)
        self.kept = {name: dict(value) if isinstance(value, dict) else value for name, value in values.items()}
        self.read: set[str] = set()
        self.asked: set[str] = set()
        self.written: list[str] = []

    @property
    def changed(self) -> list[str]:
        """The names of parameters that were written, or whose tables were."""
        return self.written or [name for name, value in self._values.items() if value != self.kept[name]]

    def __getitem__(self, name: str) -> Any:
        if name in self._values:
            self.read.add(name)
        elif name != "servers":  # the base itself asks every model for it
            self.asked.add(name)
        return self._values[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self.written.append(name)
        self._values[name] = value

    def __delitem__(self, name: str) -> None:
        self.written.append(name)
        del self._values[name]

    def __contains__(self, name: object) -> bool:
        return name in self._values  # to look whether it is there is not to read it

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return repr(self._values)


class NotingLogger:
    """Stand between a component and the op log; note each service."""

    def __init__(self, monitor: Monitor, component: ComponentBase, logger: Any) -> None:
        self._monitor = monitor
        self._component = component
        self._logger = logger
        self._open: dict[MsgBase, Service] = {}

    def record_start(self, t: float, component_id: str, msg: MsgBase) -> None:
        """Note that a service begins."""
        component = self._component
        least = float(component.min_service_ns(msg)) if component.run_style else 0.0
        service = Service(component_id, self._monitor.label(msg), t, least)
        self._open[msg] = service
        self._monitor.services.append(service)
        if self._logger is not None:
            self._logger.record_start(t, component_id, msg)

    def record_end(self, t: float, component_id: str, msg: MsgBase) -> None:
        """Note that it ends."""
        service = self._open.pop(msg)
        service.end = t
        self._monitor.ended[component_id, msg] = service
        self._monitor.lines.append(f"{component_id} served {service.label} {service.start!r} {t!r}")
        if self._logger is not None:
            self._logger.record_end(t, component_id, msg)


def contents(msg: MsgBase) -> dict[str, object]:
    """Return what a message carries besides its way, where that is plain: numbers, texts, regions, groups of those."""
    names = {name for cls in type(msg).__mro__ for name in vars(cls).get("__slots__", ())}
    names |= getattr(msg, "__dict__", {}).keys()
    values = {name: getattr(msg, name, None) for name in sorted(names - _OF_THE_WAY)}
    return {name: copy(value) for name, value in values.items() if _plain(value)}


def _plain(value: object) -> bool:
    return isinstance(value, _SCALARS) or (isinstance(value, _GROUPS) and all(map(_plain, value)))


def _noting_wire(monitor: Monitor) -> type[Wire]:
    """Return a class of wires that tell a monitor what passes, and are like any wire otherwise."""

    class NotingWire(Wire):
        __slots__ = ()

        def send(self, msg: MsgBase, head: float, tail: float) -> None:
            source, _, destination = self.name.partition("->")
            monitor.enters(source, destination, msg, head, tail)
            super().send(msg, head, tail)
            monitor.passed(self, msg)

        def deliver(self, msg: MsgBase, time: float) -> None:
            super().deliver(msg, time)
            monitor.passed(self, msg)

    return NotingWire
