"""The host: where a run's requests enter the machine."""

from __future__ import annotations

from typing import ClassVar

from kernbench_builtin.launch_fan_out import LaunchFanOut
from kernbench_core.chunking import chunks
from kernbench_core.graph import PeSite
from kernbench_core.messages import HostRequest, KernelLaunchMsg, MemoryReadMsg, MemoryWriteMsg, MsgBase, Transaction
from kernbench_core.params import Param


class Host(LaunchFanOut):
    """Turn host requests into chunk transactions and launches on the PCIe link of each SIP.

    Models: one driver latency per request; copies cut into chunks that share the PCIe link first come first served.
    Ignores: Host memory is infinitely fast, and the number of outstanding PCIe requests is unbounded. \
Driver software beyond one fixed latency per request is not modelled.
    Timing: a request's chunks leave overhead after the request, each as soon as the link takes it.
    Source: Neuron DMA guide (about 1.3 us from start to data); the default of 300 ns is an estimate, unverified.
    """

    PARAMS: ClassVar[tuple[Param, ...]] = (
        Param("overhead", "time", "300 ns", "Time from a host request to its first message on the link."),
    )

    def next_node(self, site: PeSite) -> str:
        """Return the io_cpu that serves `site`."""
        return site.io_cpu

    def overhead(self, msg: MsgBase) -> float:
        """Return the driver's latency in ns for a request; answers are taken at once."""
        return 0.0 if msg.reply else self._overhead

    def emit(self, msg: MsgBase, head: float, tail: float) -> None:
        """Begin a host request; take note of an answer."""
        if isinstance(msg, KernelLaunchMsg):
            self._launch(msg, tail)
        elif isinstance(msg, MemoryWriteMsg):
            self._transfer(msg, "read" if isinstance(msg, MemoryReadMsg) else "write", tail)
        else:
            super().emit(msg, head, tail)

    def gathered(self, parent: HostRequest, time: float) -> None:
        """Complete a launch when every SIP has answered."""
        parent.complete(time)

    def _launch(self, request: KernelLaunchMsg, time: float) -> None:
        targets = tuple(sorted(request.launch.programs))
        if len(self.groups(targets)) > 1:
            self.stamp(request.launch, targets, time)
        self.fan_out(request, request.launch, targets, time)

    def _transfer(self, request: MemoryWriteMsg, op: str, time: float) -> None:
        pieces = list(chunks(request.regions, self.ctx.chunk_bytes, self.ctx.resolver.resolve))
        waiting = len(pieces)
        if not pieces:
            self.env.inject(MsgBase(), lambda _: request.complete(time), time)

        def answered(transaction: Transaction) -> None:
            nonlocal waiting
            self.ctx.note_round_trip(transaction)
            waiting -= 1
            if not waiting:
                request.complete(transaction.tail)

        for piece in pieces:
            path = self.ctx.memory_path(self.id, piece.node)
            transaction = Transaction(op, piece.regions, piece.nbytes, path, answered)
            transaction.born = transaction.head = transaction.tail = time
            self.ctx.issued += 1
            super().emit(transaction, time, time)
