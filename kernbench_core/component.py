"""The contract of every hardware model, and the machinery that queues, serves, logs and emits for it.

A model says in one of three ways how long service takes:

- *pipelined*, `overhead(msg)`: a latency known on arrival. `out = max(arrival + overhead, previous_out + interval)`;
  departures keep the order of arrivals; the base merges the departure with the outgoing wire, so a
  hop is one event.
- *served*, `run(env, msg)`: a SimPy generator. The base has `servers` workers on one queue; results leave at its end.
- *reactive*, `receive(msg)`: what arrives is the model's own affair, event by event. It may hand a message on to one of
  the other two ways (`serve`), at once or later.

A model has three beats: `__init__` reads its own parameters, `connect` resolves neighbours, the rest
is behaviour. A model never looks at another component in `__init__`.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from kernbench_core.environment import Environment, ProcessGenerator
from kernbench_core.errors import ComponentError
from kernbench_core.events.queue import COMPILED, place_of
from kernbench_core.messages import MsgBase
from kernbench_core.reporting import Rates, Stat, checked_ns
from kernbench_core.units import as_float, grid_ceil
from kernbench_core.wire import Port, Wire
from kernbench_core.workers.worker import Worker, Works

if TYPE_CHECKING:
    from kernbench_core.fabric import Fabric
    from kernbench_core.graph import Node
    from kernbench_core.params import Param

_Part = TypeVar("_Part")


class ComponentBase(Works):
    """Be one node of the machine. Subclass it, declare `PARAMS`, and define `overhead`, `run` or `receive`.

    `params` holds the node's resolved parameters: times in ns, bandwidths in bytes/ns, sizes in
    bytes. `in_ports` is keyed by source id, `out_ports` by destination id.

    >>> from kernbench_core.testing import Rig
    >>> class Bridge(kb.ComponentBase):
    ...     PARAMS = (kb.Param("overhead", "time", "4 ns", "From one clock domain to the other."),)
    ...     def overhead(self, msg):
    ...         return self.params["overhead"]
    >>> Rig(Bridge, {"overhead": "6 ns"}, bandwidth=50.0, latency=1.0).feed(0, nbytes=100).run().arrivals[0].time
    12.0
    """

    #: The parameters that configuration may set, each declared once.
    PARAMS: ClassVar[tuple[Param, ...]] = ()
    #: What it counts, for the end of a run.
    STATS: ClassVar[tuple[Stat, ...]] = ()
    #: The parts of the session that the model uses, by class (`part` gives them); a machine without one is refused
    #: before anything is built.
    needs: ClassVar[tuple[type, ...]] = ()
    #: Whether the model acts on a message's first byte (cut-through) or on its last.
    ON_HEAD: ClassVar[bool] = False
    #: Whether a lone message takes just what `overhead` and `channels` say; False where it depends on what came before.
    bound_is_exact: ClassVar[bool] = True
    #: Whether buffers have an end, so that what is full holds up what is behind it.
    back_pressure: ClassVar[bool] = False
    #: What this one ignores beside what its docstring says, as sentences: what depends on its parameters.
    ignores: tuple[str, ...] = ()
    #: How many messages a `run` model serves at once, where no parameter of that name says otherwise.
    servers: int = 1
    __slots__ = (
        "_floor", "_forwards", "_near", "_raw", "_rounded", "_service", "arrive", "fabric", "in_ports",
        "internal_wires", "node", "out_ports", "params",
    )  # fmt: skip
    _begun: dict[MsgBase, float]

    def __init__(self, node: Node, fabric: Fabric) -> None:
        super().__init__()
        self.node, self.id = node, node.id
        self.fabric, self.env = fabric, fabric.env
        self._time = self.env.clock
        self.params: Mapping[str, Any] = node.params
        self.in_ports: dict[str, Port] = {}
        self.out_ports: dict[str, Wire] = {}
        self.internal_wires: list[Wire] = []
        servers = int(node.params.get("servers", type(self).servers))
        if servers != type(self).servers:
            self.servers = servers
        self._near: tuple[Any, ...] = ()
        self._op_logger = fabric.op_logger
        self._raw, self._rounded = math.nan, 0.0
        cls = type(self)
        reactive, served = defines(cls, "receive"), defines(cls, "run")
        if reactive:
            self._begun = {}
        #: Whether its service may wait for anything, so that it takes up capacity and has no bound known on arrival.
        self.run_style = served or (reactive and not defines(cls, "overhead"))
        self._computes = defines(cls, "flops")
        self.rates = Rates()
        self._splits, self._picks = defines(cls, "split"), defines(cls, "pick")
        self._paced = defines(cls, "interval")
        #: No message leaves before, without a look at its interval where there is one.
        self._floor = math.inf if self._paced else -math.inf
        self._forwards = not defines(cls, "emit")
        self._service: Callable[[Any], None] = self._arrive_overhead
        if served:
            self._service = self._arrive_run
        self.arrive: Callable[[Any], None] = self.receive if reactive else self._service

    # Beat two -------------------------------------------------------------------------------------

    def connect(self) -> None:
        """Resolve neighbours; called once by the engine, when every component and wire exists."""

    # Beat three: what a model defines ---------------------------------------------------------------

    def overhead(self, msg: MsgBase) -> float:
        """Return the latency of `msg` in ns, at least 0; called when it arrives, and for lower bounds.

        It must depend on the parameters and on `msg` only, so that asking twice changes nothing.
        """
        return 0.0

    def interval(self, msg: MsgBase) -> float:
        """Return the least time in ns between the previous departure and that of `msg`; default 0."""
        return 0.0

    def run(self, env: Environment, msg: MsgBase) -> ProcessGenerator:
        """Serve `msg`; called by a free worker. Yield SimPy events only; return when served."""
        raise NotImplementedError
        yield

    def receive(self, msg: MsgBase) -> None:
        """Take a message; called in its delivery, for a class that defines it. What it does not pass on it must answer.

        `serve` has it served as by `overhead` or `run`, `take_answer` takes the answer to what was sent from here. A
        model with neither of the two says when service begins and ends by `begin` and `end`.
        """
        raise NotImplementedError

    def split(self, msg: MsgBase) -> Iterable[MsgBase]:
        """Return the pieces that workers serve one by one; called on arrival, run style only."""
        return (msg,)

    def pick(self, queue: deque[MsgBase]) -> MsgBase:
        """Remove and return the message to serve next; called by a free worker, never on an empty queue."""
        return queue.popleft()

    def acts_on_head(self, msg: MsgBase) -> bool:
        """Say whether `msg` is acted on when its first byte is there; called when it enters the wire."""
        return self.ON_HEAD

    def emit(self, msg: MsgBase, head: float, tail: float) -> None:
        """Send on what follows `msg`, leaving at (`head`, `tail`) ns; called once per served message.

        The base forwards along the path; at its end a request answers, by `emit` again with `msg.reply` set and
        `msg.hop` 0, and an answer is taken note of. Numbers of any class are times, as numpy's; TypeError for others.
        """
        if not COMPILED and not type(head) is type(tail) is float:  # as calling what is compiled does
            head, tail = as_float(head), as_float(tail)
        path = msg.path
        hop = msg.hop + 1
        if hop < len(path):
            msg.hop = hop
            wire = self._way_to(path, hop) if COMPILED else self.out_ports[path[hop]]
            wire.send(msg, head, tail)
        else:
            msg.head, msg.tail = head, tail
            if msg.reply:
                self.take_answer(msg)
            else:
                msg.at_end(self, head, tail)

    def _way_to(self, path: tuple[str, ...], hop: int) -> Wire:
        """Return the wire to a hop of a path; names are mostly the same objects, and then nothing is hashed."""
        near = self._near
        at = place_of(near, path, hop)
        if at > 0:
            return near[at]  # type: ignore[no-any-return]
        wire = self.out_ports[path[hop]]
        if len(near) < 12:
            self._near = (*near, path[hop], wire)
        return wire

    def min_service_ns(self, msg: MsgBase) -> float:
        """Return a time in ns that service of `msg` never undercuts; feeds the lower bound."""
        return 0.0 if self.run_style else grid_ceil(self.overhead(msg))

    def flops(self, msg: MsgBase) -> float:
        """Return the floating-point operations that serving `msg` takes; for explanations, asked at its end.

        A model that does no arithmetic leaves this alone, and is not compared with a peak.
        """
        return 0.0

    def peak_flops(self, msg: MsgBase) -> float:
        """Return the most operations per ns (= GFLOP/s) of all servers together on work of the dtype of `msg`."""
        return 0.0

    @property
    def peak_bandwidth(self) -> float:
        """The most bytes/ns (= GB/s) that a memory moves; default: what its internal wires carry together."""
        return sum(wire.bandwidth for wire in self.internal_wires)

    def channels(self, msg: MsgBase) -> Iterable[tuple[int, float, float]]:
        """Return (bytes, bytes/ns, latency in ns) of each internal channel that `msg` uses; for the lower bound."""
        return ()

    def sending_ns(self, nbytes: int, destination: str) -> float:
        """Return for how long, in ns, a message takes the wire to a neighbour; for bounds of throughput."""
        return self.out_ports[destination].duration(nbytes)

    def taking_ns(self, nbytes: int, source: str) -> float:
        """Return the least time in ns between messages from a neighbour, where its wire is faster than what is here."""
        return 0.0

    def take_answer(self, msg: MsgBase) -> None:
        """Have `answered` called inside a delivery at the time of the last byte: this one, or one of its own."""
        for observer in self._observers:
            observer.answered(self, msg)
        if msg.tail > self._time.now or self._time.active is not None:
            self.env.call_at(msg.tail, msg, _answered)
        else:
            msg.answered()

    # What a model may call --------------------------------------------------------------------------

    def part(self, kind: type[_Part]) -> _Part:
        """Return the part of the session of this class, one of those that the class `needs`; for `__init__`, too."""
        if kind not in self.needs:
            raise ComponentError(
                f"{self.id}: {type(self).__name__} must say that it needs {kind.__name__}; add it to its needs."
            )
        found = self.fabric.find(kind)
        assert found is not None, "who builds components sees to it that they have what they need"
        return found

    def internal_wire(self, name: str, bandwidth: float, latency: float) -> Wire:
        """Create a wire inside the component (bytes/ns, ns); its deliveries come to `on_internal`."""
        wire = self.fabric.new_wire(
            f"{self.id}#{name}", bandwidth, latency, arrive=self.on_internal, on_head=self.head_rule()
        )
        self.internal_wires.append(wire)
        return wire

    def head_rule(self) -> bool | Callable[[Any], bool]:
        """Return `ON_HEAD` where it holds for every message, else the method to ask."""
        return self.acts_on_head if defines(type(self), "acts_on_head") else self.ON_HEAD

    def on_internal(self, msg: MsgBase) -> None:
        """Go on with `msg` when an internal wire delivers it."""
        raise ComponentError(f"{self.id}: {type(self).__name__} has an internal wire, so it must define on_internal.")

    # Overhead style ---------------------------------------------------------------------------------

    def _arrive_overhead(self, msg: MsgBase) -> None:
        raw = self.overhead(msg)
        overhead = self._rounded if raw == self._raw else self._round(raw)
        out = self._time.now + overhead
        if out >= self._floor:
            self._floor = out
        else:
            out = self._pace(msg, out) if self._paced else self._floor
        self.served += 1
        tail = msg.tail + overhead
        msg.overhead += overhead
        if tail < out:
            msg.queueing += out - tail
            self.note_wait(out - tail, out - overhead)
            tail = out
        if self._op_logger is not None and msg.data_op:
            self._on_process_start(msg, out - overhead)
            self._on_process_end(msg, out)
            if self._computes:
                self.rates.note(self, msg, overhead)
        if self._forwards:  # inlined from emit for speed (tools/bench_engine.py: a forwarding hop -6 %)
            path = msg.path
            hop = msg.hop + 1
            if hop < len(path):
                msg.hop = hop
                wire = self._way_to(path, hop) if COMPILED else self.out_ports[path[hop]]
                wire.send(msg, out, tail)
                return
        self.emit(msg, out, tail)

    def _round(self, raw: float) -> float:
        """Round a new overhead up to the grid and keep it: most models return the same one again."""
        self._rounded = checked_ns(self, raw, "overhead")
        self._raw = raw
        return self._rounded

    def _pace(self, msg: MsgBase, out: float) -> float:
        """Return when a message leaves that may at `out` ns: its interval after the one before it, which keeps busy."""
        interval = checked_ns(self, self.interval(msg), "interval")
        out = max(out, self._previous_out + interval)
        self.note_busy(min(interval, out), out)
        self._previous_out = out
        return out

    # Reactive style ---------------------------------------------------------------------------------

    def serve(self, msg: MsgBase) -> None:
        """Have a message served by `run`, where the class defines it, or else by `overhead`, as if it came now."""
        self._service(msg)

    def begin(self, msg: MsgBase) -> None:
        """Begin to serve a message now, for a class that defines `receive`; it has waited since its last byte came."""
        now = self._time.now
        if now > msg.tail:
            msg.queueing += now - msg.tail
            self.note_wait(now - msg.tail)
        self._begun[msg] = now
        self._on_process_start(msg, now)

    def end(self, msg: MsgBase, busy: float | None = None) -> None:
        """End the service of a message that `begin` began, and send it on; `busy` ns of it count, or else all of it."""
        now = self._time.now
        if msg not in self._begun:
            raise ValueError(f"end must be called once for what `begin` began, not for {msg!r}; call begin before")
        service = now - self._begun.pop(msg)
        self.served += 1
        if busy is not None and type(busy) is not float:
            busy = as_float(busy)
        self.note_busy(service if busy is None else busy, now)
        msg.service += service
        self._on_process_end(msg, now)
        if self._computes:
            self.rates.note(self, msg, service)
        tail = msg.tail + service if msg.tail > now - service else now
        self.emit(msg, now, tail)

    def start(self) -> None:
        """Start the workers; called once by the engine, after every `connect`."""
        if defines(type(self), "run"):
            self._workers = [Worker(self, self.env) for _ in range(self.servers)]

    def __repr__(self) -> str:
        style = f"run, {self.servers} servers, {len(self.queue)} waiting" if self.run_style else "overhead"
        return f"<{type(self).__name__} {self.id} ({style}), {self.served} served>"


def defines(cls: type[ComponentBase], method: str) -> bool:
    """Say whether a model has a method of its own instead of the base's."""
    return getattr(cls, method) is not getattr(ComponentBase, method)


def _answered(msg: MsgBase) -> None:
    msg.answered()
