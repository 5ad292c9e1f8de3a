"""What host, io_cpu and m_cpu share: send a launch on to each next node, and gather the answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kernbench_core.bound import one_way_latency
from kernbench_core.component import ComponentBase
from kernbench_core.context import RunContext
from kernbench_core.graph import Node, PeSite
from kernbench_core.messages import Launch, LaunchMsg, MsgBase


class LaunchFanOut(ComponentBase):
    """Fan a launch out along one level of host -> io_cpu -> m_cpu -> pe_cpu; overhead style.

    A subclass says by `next_node(site)` which node serves a PE below this level. The answer to a launch
    leaves when the last answer from below has been served here. Nothing is booked on a wire ahead of its
    time: what goes down and what goes up share wires, and are served at different times.
    """

    def __init__(self, node: Node, ctx: RunContext) -> None:
        super().__init__(node, ctx)
        self._overhead: float = self.params["overhead"]
        self._open: dict[LaunchMsg, None] = {}

    def next_node(self, site: PeSite) -> str:
        """Return the id of the node that a launch for `site` goes to from here."""
        raise NotImplementedError

    def overhead(self, msg: MsgBase) -> float:
        """Return the time in ns to take in a launch or an answer."""
        return self._overhead

    def emit(self, msg: MsgBase, head: float, tail: float) -> None:
        """Have `act` called when the service of `msg` has ended."""
        msg.head, msg.tail = head, tail
        if tail > self.env.now:
            self.env.call_at(tail, msg, self.act)
        else:
            self.act(msg)

    def act(self, msg: Any) -> None:
        """Fan out a launch that has been served here; pass everything else on. Called at its time."""
        if isinstance(msg, LaunchMsg) and not msg.reply and msg.hop == len(msg.path) - 1:
            self.fan_out(msg, msg.launch, msg.targets)
        else:
            self.send(msg)

    def send(self, msg: MsgBase) -> None:
        """Put `msg` on its next wire, now; take note of an answer that ends here."""
        now = self.env.now
        super().emit(msg, now, now)

    def fan_out(self, parent: Any, launch: Launch, targets: tuple[int, ...]) -> None:
        """Send the launch to every next node of `targets`; answers go to `gathered`."""
        groups = self.groups(targets)
        waiting = len(groups)

        def answered(child: LaunchMsg) -> None:
            nonlocal waiting
            del self._open[child]
            waiting -= 1
            if not waiting:
                self.gathered(parent)

        for destination, below in groups.items():
            child = LaunchMsg(launch, below, self.ctx.command_path(self.id, destination), answered)
            child.born = child.head = child.tail = self.env.now
            self._open[child] = None
            self.send(child)

    def gathered(self, parent: Any) -> None:
        """Answer `parent`, now that every node below has answered."""
        parent.service += self.env.now - parent.tail
        parent.turn_around()
        self.send(parent)

    def awaiting(self) -> tuple[MsgBase, ...]:
        """Return the launches that were sent on and are not answered."""
        return tuple(self._open)

    def groups(self, targets: tuple[int, ...]) -> Mapping[str, tuple[int, ...]]:
        """Return the next node -> PE indices below it, in PE order."""
        found: dict[str, list[int]] = {}
        for pe in targets:
            found.setdefault(self.next_node(self.ctx.design.pes[pe]), []).append(pe)
        return {node: tuple(below) for node, below in found.items()}

    def stamp(self, launch: Launch, targets: tuple[int, ...]) -> None:
        """Set the common start of a launch that has none: when its farthest PE can be reached from here."""
        if launch.start_ns is None:
            launch.start_ns = self.env.now + max(self._reach(launch, targets).values())

    def _reach(self, launch: Launch, targets: tuple[int, ...]) -> dict[str, float]:
        """Return the least time in ns for a launch to get from here to each pe_cpu of `targets`."""
        reached = {self.id: 0.0}
        for pe in targets:
            here: ComponentBase = self
            while isinstance(here, LaunchFanOut):
                following = here.next_node(self.ctx.design.pes[pe])
                if following not in reached:
                    step = LaunchMsg(launch, (), self.ctx.command_path(here.id, following), _ignore)
                    reached[following] = reached[here.id] + one_way_latency(
                        self.ctx.graph, self.ctx.components, step
                    )
                here = self.ctx.components[following]
        return reached


def _ignore(_: LaunchMsg) -> None:
    """Take an answer that never comes."""
