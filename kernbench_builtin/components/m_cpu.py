"""The management processor of a cube, with its internal DMA."""

from __future__ import annotations

from collections import deque
from typing import Any, ClassVar

from kernbench_builtin.components.launch_fan_out import LaunchFanOut, Order
from kernbench_core.fabric import Fabric
from kernbench_core.graph import Node, PeSite
from kernbench_core.messages import MsgBase, Transaction
from kernbench_core.params import Param
from kernbench_core.topology import naming


class MCpu(LaunchFanOut):
    """Pass launches and map updates to its PEs, gather their answers, and move memory by an internal DMA.

    Models: a processing latency per order and per answer, one command wire to each pe_cpu and each pe_mmu; a DMA with \
one read and one write in flight, which serves memory transactions addressed to this processor (host requests with \
`through_m_cpu`).
    Ignores: Launches, map updates, answers and DMA requests do not contend for the processor of a cube.
    Timing: out = arrival + overhead; the answer leaves when the last PE's answer has been served; a DMA request goes \
to the memory when the one before it, of its direction, has been answered.
    Source: an estimate of the order of a few hundred cycles at 1 to 2 GHz, unverified.
    """

    PARAMS: ClassVar[tuple[Param, ...]] = (
        Param("overhead", "time", "5 ns", "Processing time of an order, an answer or a DMA request."),
    )

    def __init__(self, node: Node, fabric: Fabric) -> None:
        super().__init__(node, fabric)
        self._dma = {"read": _DmaQueue(self), "write": _DmaQueue(self)}

    def next_node(self, site: PeSite, order: Order) -> str:
        """Return the unit of `site` that serves the order: its pe_cpu or its pe_mmu."""
        return naming.pe_unit(site.prefix, order.serves)

    def act(self, msg: Any) -> None:
        """Queue a memory transaction that ends here for the DMA; treat everything else as an order or an answer."""
        if isinstance(msg, Transaction) and not msg.reply and msg.hop == len(msg.path) - 1:
            self._dma[msg.op].push(msg)
        else:
            super().act(msg)

    def awaiting(self) -> tuple[MsgBase, ...]:
        """Return what the orders and the DMA wait for."""
        return (*super().awaiting(), *(q.in_flight for q in self._dma.values() if q.in_flight is not None))


class _DmaQueue:
    """Serve the memory transactions of one direction, one at a time."""

    def __init__(self, owner: MCpu) -> None:
        self._owner = owner
        self._queue: deque[Transaction] = deque()
        self._serving: Transaction | None = None
        self.in_flight: Transaction | None = None

    def push(self, request: Transaction) -> None:
        self._queue.append(request)
        if self._serving is None:
            self._next()

    def _next(self) -> None:
        request = self._serving = self._queue.popleft()
        fabric = self._owner.fabric
        node = fabric.addresses.resolve(request.regions[0].base)
        path = fabric.memory_path(self._owner.id, node)
        now = self._owner.env.now
        if now > request.tail:
            request.queueing += now - request.tail
            self._owner.note_wait(now - request.tail)
        request.tail = now
        sent = self.in_flight = Transaction(request.op, request.regions, request.total, path, self._answered)
        sent.born = now
        fabric.issued += 1
        self._owner.send(sent)

    def _answered(self, sent: Transaction) -> None:
        request = self._serving
        self._serving = self.in_flight = None
        self._owner.fabric.note_round_trip(sent)
        if request is not None:
            request.service += sent.tail - request.tail
            request.turn_around()
            self._owner.send(request)
        if self._queue:
            self._next()
