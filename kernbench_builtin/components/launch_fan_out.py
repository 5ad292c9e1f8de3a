"""What host, io_cpu and m_cpu share: send an order on to each next node, and gather the answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kernbench_builtin.components.rehearsal import Rehearsal
from kernbench_core.component import ComponentBase
from kernbench_core.fabric import Fabric
from kernbench_core.graph import Node, PeSite
from kernbench_core.messages import FanOutMsg, Launch, LaunchMsg, MapUpdate, MapUpdateMsg, MsgBase

Order = Launch | MapUpdate
"""What is fanned out."""


class LaunchFanOut(ComponentBase):
    """Fan launches and page-table updates out along host -> io_cpu -> m_cpu -> a unit of each PE; overhead style.

    A subclass says by `next_node(site, order)` which node serves a PE below this level. The answer to an
    order leaves when the last answer from below has been served here. Nothing is booked on a wire ahead of
    its time: what goes down and what goes up share wires, and are served at different times.
    """

    def __init__(self, node: Node, fabric: Fabric) -> None:
        super().__init__(node, fabric)
        self._overhead: float = self.params["overhead"]
        self._open: dict[FanOutMsg, None] = {}
        self._reaches: dict[tuple[tuple[int, ...], int], float] = {}

    def next_node(self, site: PeSite, order: Order) -> str:
        """Return the id of the node that an order for `site` goes to from here."""
        raise NotImplementedError

    def overhead(self, msg: MsgBase) -> float:
        """Return the time in ns to take in an order or an answer."""
        return self._overhead

    def emit(self, msg: MsgBase, head: float, tail: float) -> None:
        """Have `act` called when the service of `msg` has ended."""
        msg.head, msg.tail = head, tail
        if tail > self.env.now:
            self.env.call_at(tail, msg, self.act)
        else:
            self.act(msg)

    def act(self, msg: Any) -> None:
        """Fan out an order that has been served here; pass everything else on. Called at its time."""
        if isinstance(msg, FanOutMsg) and not msg.reply and msg.hop == len(msg.path) - 1:
            self.fan_out(msg, msg.order, msg.targets)
        else:
            self.send(msg)

    def send(self, msg: MsgBase) -> None:
        """Put `msg` on its next wire, now; take note of an answer that ends here."""
        now = self.env.now
        super().emit(msg, now, now)

    def fan_out(self, parent: Any, order: Order, targets: tuple[int, ...]) -> None:
        """Send the order to every next node of `targets`; answers go to `gathered`."""
        groups = self.groups(targets, order)
        waiting = len(groups)

        def answered(child: FanOutMsg) -> None:
            nonlocal waiting
            del self._open[child]
            waiting -= 1
            if not waiting:
                self.gathered(parent)

        kind = LaunchMsg if isinstance(order, Launch) else MapUpdateMsg
        for destination, below in groups.items():
            child = kind(order, below, self.fabric.command_path(self.id, destination), answered)
            child.born = child.head = child.tail = self.env.now
            self._open[child] = None
            self.send(child)

    def gathered(self, parent: Any) -> None:
        """Answer `parent`, now that every node below has answered."""
        parent.service += self.env.now - parent.tail
        parent.turn_around()
        self.send(parent)

    def awaiting(self) -> tuple[MsgBase, ...]:
        """Return the orders that were sent on and are not answered."""
        return tuple(self._open)

    def groups(self, targets: tuple[int, ...], order: Order) -> Mapping[str, tuple[int, ...]]:
        """Return the next node -> PE indices below it, in PE order."""
        found: dict[str, list[int]] = {}
        for pe in targets:
            found.setdefault(self.next_node(self.fabric.layout.pes[pe], order), []).append(pe)
        return {node: tuple(below) for node, below in found.items()}

    def stamp(self, launch: Launch, targets: tuple[int, ...]) -> None:
        """Set the common start of a launch that has none: when all its PEs have it, if nothing else is under way."""
        if launch.target_start_ns is None:
            key = (targets, launch.nbytes)
            if key not in self._reaches:
                self._reaches[key] = self._reach(launch, targets)
            launch.target_start_ns = self.env.now + self._reaches[key]

    def _reach(self, launch: Launch, targets: tuple[int, ...]) -> float:
        """Return the time in ns for a launch to get from here to the last pe_cpu of `targets`."""

        def messages(node: str, below: tuple[int, ...]) -> Iterator[LaunchMsg]:
            here = self.fabric.components[node]
            if isinstance(here, LaunchFanOut):
                for following, pes in here.groups(below, launch).items():
                    yield LaunchMsg(launch, pes, self.fabric.command_path(node, following), _ignore)

        return Rehearsal(self.fabric.components, messages).reach(self.id, targets)


def _ignore(_: LaunchMsg) -> None:
    """Take an answer that never comes."""
