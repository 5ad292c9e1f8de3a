"""A machine of toys, for tests of the engine: one host, one memory, some PEs, a design made by hand.

host <-> sip0.io0.pcie_ep <-> sip0.cube0.r0c0 <-> sip0.cube0.hbm_ctrl<i>, sip0.cube0.pe<i>.pe_cpu
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kernbench_core.component import ComponentBase
from kernbench_core.engine.hardware import Hardware
from kernbench_core.environment import Environment, ProcessGenerator
from kernbench_core.graph import EdgeKind, Graph, Node, PeSite
from kernbench_core.host.session import GraphEngine
from kernbench_core.messages import (
    HostRequest,
    KernelLaunchMsg,
    LaunchMsg,
    MemoryReadMsg,
    MmuMapMsg,
    MsgBase,
    Transaction,
)
from kernbench_core.params import Param
from kernbench_core.reporting import Waiting
from kernbench_core.testing import line
from kernbench_core.topology import naming
from kernbench_core.topology.address import AddressMap
from kernbench_core.topology.design import Design, Machine


class ToyForward(ComponentBase):
    """Pass on.

    Models: a latency.
    Ignores: Everything else.
    """

    ON_HEAD = True
    PARAMS = (Param("overhead", "time", "1 ns", "Latency."),)

    def overhead(self, msg: MsgBase) -> float:
        return float(self.params["overhead"])


class ToyMemory(ComponentBase):
    """Answer after an overhead and channels that interleave every 256 B.

    Models: channels.
    Ignores: Refresh is left out. Rows too.
    """

    PARAMS = (
        Param("overhead", "time", "3 ns", "Latency."),
        Param("channels", "int", 4, "Channels.", minimum=1),
        Param("bandwidth", "bandwidth", "8 GB/s", "Of each channel."),
        Param("latency", "time", "10 ns", "Of each channel."),
    )

    def __init__(self, node: Node, hardware: Hardware) -> None:
        super().__init__(node, hardware)
        self.wires = [
            self.internal_wire(f"pc{i}", self.params["bandwidth"], self.params["latency"])
            for i in range(self.params["channels"])
        ]

    def overhead(self, msg: MsgBase) -> float:
        return float(self.params["overhead"])

    def acts_on_head(self, msg: Any) -> bool:
        return msg.op == "write" and not msg.reply

    def shares(self, msg: Any) -> dict[int, int]:
        found: dict[int, int] = {}
        for region in msg.regions:
            for address in range(region.base, region.base + region.nbytes):
                channel = address // 256 % len(self.wires)
                found[channel] = found.get(channel, 0) + 1
        return found

    def channels(self, msg: MsgBase) -> Iterable[tuple[int, float, float]]:
        for channel, nbytes in self.shares(msg).items():
            yield nbytes, self.wires[channel].bandwidth, self.wires[channel].latency

    def emit(self, msg: Any, head: float, tail: float) -> None:
        booked = [(self.wires[c].book(n, head, tail), self.wires[c]) for c, n in self.shares(msg).items()]
        first = min(out[0] for out, _ in booked)
        last, wire = max(((out[1], w) for out, w in booked), key=lambda pair: pair[0])
        msg.service += last - tail
        msg.head, msg.tail = first, last
        wire.deliver(msg, last if msg.op == "write" else first)

    def on_internal(self, msg: Any) -> None:
        head, tail = (msg.tail, msg.tail) if msg.op == "write" else (msg.head, msg.tail)
        msg.turn_around()
        super().emit(msg, head, tail)


class ToyHost(ComponentBase):
    """Turn a copy into one transaction for each region, and a launch into one message for each PE."""

    PARAMS = (Param("overhead", "time", "2 ns", "Latency of a request."),)

    def overhead(self, msg: MsgBase) -> float:
        return 0.0 if msg.reply else float(self.params["overhead"])

    def emit(self, msg: MsgBase, head: float, tail: float) -> None:
        if not isinstance(msg, HostRequest):
            super().emit(msg, head, tail)
        elif isinstance(msg, KernelLaunchMsg):
            msg.launch.target_start_ns = tail + 20.0
            self._fan_out(msg, [self._launch(msg, pe) for pe in sorted(msg.launch.programs)], tail)
        elif isinstance(msg, MmuMapMsg):
            msg.complete(self.env.now)
        else:
            op = "read" if isinstance(msg, MemoryReadMsg) else "write"
            regions: Any = msg.regions  # type: ignore[attr-defined]
            self._fan_out(msg, [self._copy(op, region) for region in regions], tail)

    def _launch(self, msg: KernelLaunchMsg, pe: int) -> LaunchMsg:
        path = self.fabric.command_path(self.id, self.fabric.layout.pes[pe].pe_cpu)
        return LaunchMsg(msg.launch, (pe,), path, lambda answer: None)

    def _copy(self, op: str, region: Any) -> Transaction:
        path = self.fabric.memory_path(self.id, self.fabric.addresses.resolve(region.base))
        return Transaction(op, (region,), region.nbytes, path, self.fabric.note_round_trip)

    def _fan_out(self, request: HostRequest, messages: list[Any], time: float) -> None:
        waiting = len(messages)

        def answered(inner: Any, answer: Any) -> None:
            nonlocal waiting
            inner(answer)
            waiting -= 1
            if not waiting:
                request.complete(self.env.now)

        for msg in messages:
            msg.on_done = lambda answer, inner=msg.on_done: answered(inner, answer)
            msg.born = msg.head = msg.tail = time
            self.fabric.issued += isinstance(msg, Transaction)
            super().emit(msg, time, time)


class ToyPe(ComponentBase):
    """Call the kernel as `kernel(component, env)`: a generator that is the whole program."""

    def run(self, env: Environment, msg: Any) -> ProcessGenerator:
        launch, (pe,) = msg.launch, msg.targets
        launch.started_ns[pe] = env.now
        yield from launch.kernel(self, env)
        launch.ended_ns[pe] = env.now


class StuckPe(ToyPe):
    """Wait for ever for a PE given by `waits_for`, in words."""

    PARAMS = (Param("waits_for", "str", "", "Node that the wait-for graph shows."),)

    def run(self, env: Environment, msg: Any) -> ProcessGenerator:
        msg.launch.started_ns[msg.targets[0]] = env.now
        yield env.event()

    def awaiting(self) -> Iterable[MsgBase]:
        return [MsgBase(0, (self.params["waits_for"],))] if self.params["waits_for"] and self.serving else []

    def waits_in_words(self) -> Waiting | None:
        return Waiting("waits at kernel.py:12 for a message", self.serving[0][1]) if self.serving else None


class DeafPe(ComponentBase):
    """Swallow a launch and never start."""

    def emit(self, msg: MsgBase, head: float, tail: float) -> None:
        """Do nothing."""


CLASSES: dict[str, type[ComponentBase]] = {
    "host": ToyHost,
    "forward": ToyForward,
    "memory": ToyMemory,
    "pe_cpu": ToyPe,
}


class Classes:
    """Look classes up by the names that the toy graph gives."""

    def __init__(self, **changed: type[ComponentBase]) -> None:
        self.classes = {**CLASSES, **changed}

    def load(self, name: str) -> type[ComponentBase]:
        """Return a class."""
        return self.classes[name]


def toy_graph(pes: int = 2, params: Mapping[str, Mapping[str, object]] | None = None, classes: Any = None) -> Graph:
    """Return the graph; `params` maps a node id to parameters that replace its defaults."""
    classes = classes or Classes()
    given = params or {}

    def node(node_id: str, kind: str, impl: str, pe: int | None = None) -> Node:
        values = {param.name: param.default_value for param in classes.load(impl).PARAMS}
        return Node(node_id, kind, impl, {**values, **given.get(node_id, {})}, 0, 0, pe)

    port, router = "sip0.io0.pcie_ep", "sip0.cube0.r0c0"
    nodes = [node("host", "host", "host"), node(port, "pcie_ep", "forward"), node(router, "router", "forward")]
    edges = [
        *line("host", port, bandwidth=16.0, latency=50.0, header_bytes=16, payload_bytes=256, kind=EdgeKind.PCIE),
        *line(port, router, bandwidth=64.0, latency=2.0, kind=EdgeKind.IO_NOC),
    ]
    sites = []
    for pe in range(pes):
        memory, cpu = naming.hbm_ctrl(0, 0, pe), naming.pe_unit(naming.pe(0, 0, pe), "pe_cpu")
        nodes += [node(memory, "hbm_ctrl", "memory"), node(cpu, "pe_cpu", "pe_cpu", pe)]
        edges += line(router, memory, bandwidth=64.0, latency=1.0, kind=EdgeKind.HBM)
        edges += line(router, cpu, bandwidth=8.0, latency=1.0, kind=EdgeKind.COMMAND)
        sites.append(PeSite(pe, 0, 0, pe, naming.pe(0, 0, pe), cpu, memory, router, port))
    design = Design(1, 1, pes, 4096, 4096, tuple(sites), AddressMap(1, 1, pes, 1 << 20, 1 << 16, 1 << 16))
    return Machine.of_graph(Graph.of(nodes, edges), design)


def toy_engine(
    pes: int = 2, params: Mapping[str, Mapping[str, object]] | None = None, classes: Any = None, **engine: Any
) -> GraphEngine:
    """Return an engine on the toy graph, without data."""
    classes = classes or Classes()
    return GraphEngine(toy_graph(pes, params, classes), classes, data=False, **engine)
