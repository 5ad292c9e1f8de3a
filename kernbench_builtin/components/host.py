"""The host: where a run's requests enter the machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from kernbench_builtin.components.launch_fan_out import LaunchFanOut, Order
from kernbench_core.fabric import Fabric
from kernbench_core.graph import Node, PeSite
from kernbench_core.messages import HostRequest, KernelLaunchMsg, MemoryMsg, MmuMapMsg, MsgBase, Transaction
from kernbench_core.params import Param
from kernbench_core.values import chunks


class Host(LaunchFanOut):
    """Turn host requests into chunk transactions, launches and map updates on the PCIe links.

    Models: one driver latency per request; copies cut into chunks that share the PCIe links first come first served; \
a chunk takes the link of the IO chiplet nearest to its memory, an order that of the SIP's first IO chiplet.
    Ignores: Host memory is infinitely fast, and the number of outstanding PCIe requests is unbounded. \
Driver software beyond one fixed latency per request is not modelled.
    Timing: a request's chunks leave overhead after the request, each as soon as the link takes it.
    Source: Neuron DMA guide (about 1.3 us from start to data); the default is the root complex's share alone, \
an estimate, unverified.
    """

    PARAMS: ClassVar[tuple[Param, ...]] = (
        Param("overhead", "time", "50 ns", "Time from a host request to its first message on the link."),
    )

    def __init__(self, node: Node, fabric: Fabric) -> None:
        super().__init__(node, fabric)

    def next_node(self, site: PeSite, order: Order) -> str:
        """Return the io_cpu that serves `site`."""
        return site.io_cpu

    def overhead(self, msg: MsgBase) -> float:
        """Return the driver's latency in ns for a request; answers are taken at once."""
        return 0.0 if msg.reply else self._overhead

    def act(self, msg: Any) -> None:
        """Begin a host request that the driver has taken in."""
        begin: Mapping[str, Callable[[Any], None]] = {
            "launch": self._launch, "map": self._map, "read": self._transfer, "write": self._transfer,
        }  # fmt: skip
        begin[msg.op](msg)

    def gathered(self, parent: HostRequest) -> None:
        """Complete an order when every SIP has answered."""
        parent.complete(self.env.now)

    def receive(self, msg: MsgBase) -> None:
        """Take an answer at once: it does not wait behind the driver's work on later requests."""
        if msg.reply:
            self.take_answer(msg)
        else:
            self.serve(msg)

    def _launch(self, request: KernelLaunchMsg) -> None:
        targets = tuple(sorted(request.launch.programs))
        if len(self.groups(targets, request.launch)) > 1:
            self.stamp(request.launch, targets)
        self.fan_out(request, request.launch, targets)

    def _map(self, request: MmuMapMsg) -> None:
        self.fan_out(request, request.update, request.targets)

    def _transfer(self, request: MemoryMsg) -> None:
        pieces = list(chunks(request.regions, self.fabric.chunk_bytes, self.fabric.addresses.resolve))
        waiting = len(pieces)
        if not pieces:
            request.complete(self.env.now)

        def answered(transaction: Transaction) -> None:
            nonlocal waiting
            self.fabric.note_round_trip(transaction)
            request.copied += transaction.total
            waiting -= 1
            if not waiting:
                request.complete(transaction.tail)

        for piece in pieces:
            path = self._path(request, piece.node)
            transaction = Transaction(request.op, piece.regions, piece.nbytes, path, answered)
            transaction.born = self.env.now
            self.fabric.issued += 1
            self.send(transaction)

    def _path(self, request: MemoryMsg, memory: str) -> tuple[str, ...]:
        """Return the way to a memory node, or to the m_cpu whose DMA is to move its bytes."""
        if not request.through_m_cpu:
            return self.fabric.memory_path(self.id, memory)
        place = self.fabric.graph.nodes[memory]
        assert place.sip is not None and place.cube is not None
        return self.fabric.command_path(self.id, self.fabric.addresses.find_m_cpu(place.sip, place.cube))
