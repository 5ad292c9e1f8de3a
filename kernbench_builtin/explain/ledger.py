"""Where the time of all messages went, by class, and where they queued."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import attrs

from kernbench_core.host.timing import wire_kind
from kernbench_core.kernel.commands import KernelCommand
from kernbench_core.kernel.compute_commands import GemmCmd, MathCmd
from kernbench_core.messages import FanOutMsg, LaunchMsg, MsgBase, Transaction

if TYPE_CHECKING:
    from kernbench_core.component import ComponentBase
    from kernbench_core.engine.hardware import Hardware
    from kernbench_core.wire import Wire

#: The parts of a message's time, in the order in which a reader expects them; they sum to its time exactly.
PARTS = ("propagation", "serialisation", "overhead", "queueing", "service")


@attrs.define
class LedgerRow:
    """Sum up the answered messages of one class, in ns; the parts sum to `total_ns` exactly.

    `phase` is the phase that such messages belong to. `unaccounted_ns` is what a model added to the time of a message
    without saying to which part: 0 for every built-in model.
    """

    phase: str
    what: str
    messages: int = 0
    total_ns: float = 0.0
    propagation: float = 0.0
    serialisation: float = 0.0
    overhead: float = 0.0
    queueing: float = 0.0
    service: float = 0.0

    @property
    def unaccounted_ns(self) -> float:
        """What no part accounts for, in ns."""
        parts = self.propagation + self.serialisation + self.overhead + self.queueing + self.service
        return self.total_ns - parts

    def add(self, msg: MsgBase) -> None:
        """Add a message that is back where it came from."""
        self.messages += 1
        self.total_ns += msg.tail - msg.born
        self.propagation += msg.propagation
        self.serialisation += msg.serialisation
        self.overhead += msg.overhead
        self.queueing += msg.queueing
        self.service += msg.service


class Ledger:
    """Sum up every message that is answered, by phase and class."""

    def __init__(self, hardware: Hardware) -> None:
        self._nodes = hardware.graph.nodes
        self._rows: dict[tuple[str, str], LedgerRow] = {}

    def add(self, msg: MsgBase) -> None:
        """Add a message whose answer arrives; called once for each, with its ledger complete."""
        key = self._class_of(msg)
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = LedgerRow(*key)
        row.add(msg)

    def rows(self, phases: Iterable[str]) -> tuple[LedgerRow, ...]:
        """Return the rows in the order of `phases`, the greatest sum of a phase first."""
        order = {phase: number for number, phase in enumerate(phases)}
        found = sorted(self._rows.values(), key=lambda row: (order[row.phase], -row.total_ns, row.what))
        return tuple(attrs.evolve(row) for row in found)

    def _class_of(self, msg: MsgBase) -> tuple[str, str]:
        asker, answerer = self._kind(msg.path[-1]), self._kind(msg.path[0])
        if isinstance(msg, Transaction):
            if asker == "host":
                return ("device_to_host" if msg.op == "read" else "host_to_device"), f"host {msg.op}s {answerer}"
            return "kernel", f"{asker} {'changes' if msg.op == 'atomic' else msg.op + 's'} {answerer}"
        if isinstance(msg, LaunchMsg):
            return "launch", f"{asker} launches on {answerer}"
        if isinstance(msg, FanOutMsg):
            return "host_to_device", f"{asker} updates {answerer}"
        return "kernel", self._command(msg)

    def _command(self, msg: MsgBase) -> str:
        if isinstance(msg, GemmCmd):
            return "command gemm"
        if isinstance(msg, MathCmd):
            return "command math"
        if isinstance(msg, KernelCommand):
            return f"command {msg.call.removeprefix('tl.')}"
        origin = msg.origin
        if isinstance(origin, KernelCommand):
            return f"tile of {origin.call.removeprefix('tl.')}"
        return type(msg).__name__

    def _kind(self, node: str) -> str:
        found = self._nodes.get(node)
        return node if found is None else found.kind


@attrs.frozen
class QueueingPlace:
    """Say how long messages queued at a wire, channel or component: how many, and ns together, on average, at most."""

    place: str
    kind: str
    waits: int
    total_ns: float
    mean_ns: float
    longest_ns: float


def queueing_places(hardware: Hardware) -> tuple[QueueingPlace, ...]:
    """Return every place where a message queued, the one with most time together first."""
    return tuple(sorted(_places(hardware), key=lambda place: (-place.total_ns, place.place)))


def _places(hardware: Hardware) -> Iterator[QueueingPlace]:
    for wire in hardware.wires:
        if wire.waits:
            yield _place(wire.name, wire_kind(hardware, wire), wire)
    for component in hardware.components.values():
        if component.waits:
            yield _place(component.id, component.node.kind, component)


def _place(name: str, kind: str, at: Wire | ComponentBase) -> QueueingPlace:
    return QueueingPlace(name, kind, at.waits, at.waited_ns, at.waited_ns / at.waits, at.longest_wait_ns)
