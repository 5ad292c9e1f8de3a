"""Why each event of a run happens: the chain of causes that explanations are read from.

Every event was put on the queue inside another one, its cause. Following causes back from the end of a launch gives
its critical path, resources and joins included: a worker goes on with the next message inside the event that ended
the last, and of several things waited for it is the last that resumes the waiter. A chain is kept only while an event
that it led to is still to come, or somebody keeps its end. A cause is an event in time, which may carry no data:
where data came from is asked of `provenance`, which needs no causes.

Nothing here is used by a run that is not to be explained.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

from kernbench_core.component import ComponentBase
from kernbench_core.environment import Environment
from kernbench_core.kernel.commands import KernelCommand
from kernbench_core.kernel.serving import Serving
from kernbench_core.messages import Command, FanOutMsg, HostRequest, LaunchMsg, MsgBase, Transaction
from kernbench_core.workers.worker import Worker

if TYPE_CHECKING:
    from kernbench_core.callsite import CallSite
    from kernbench_core.engine.hardware import Hardware

Owner = tuple[tuple[int, int], str, "CallSite | None"]
"""The op that something happens for: its id, the call that made it, and the kernel line."""


class Cause:
    """Say what filled the time between the event `parent` and the event at `time` (ns).

    `sort` is the kind of the segment (see `critical_path.Segment`), `source` where it began, `place` where it led
    (for a round trip the far end) and `node` where it ended.
    A message's way is one cause, however many nodes it crosses; the ledger of that way is in `propagation`,
    `serialisation`, `overhead` and `service` (ns, the rest is queueing), and `waited_at` is where it queued longest.
    """

    __slots__ = (
        "_base", "node", "overhead", "owner", "parent", "place", "propagation", "queued", "serialisation", "service",
        "sort", "source", "time", "wait_ns", "waited_at",
    )  # fmt: skip

    def __init__(
        self, parent: Cause | None, time: float, sort: str, source: str, place: str, owner: Owner | None
    ) -> None:
        self.parent = parent
        self.time = time
        self.sort = sort
        self.source = source
        self.place = self.node = place
        self.owner = owner
        self.propagation = self.serialisation = self.overhead = self.service = 0.0
        self.queued = self.wait_ns = 0.0
        self.waited_at = ""
        self._base: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)

    def follow(self, msg: MsgBase) -> None:
        """Begin a message's way: what its ledger gained before is not part of it."""
        before: Cause | None = getattr(msg, "cause", None)
        if before is not None:
            base = before._base
            self._base = (
                base[0] + before.propagation,
                base[1] + before.serialisation,
                base[2] + before.overhead,
                msg.service,
            )
            self.queued = msg.queueing
        self._read(msg, self.source)

    def go_on(self, before: Cause, msg: MsgBase) -> None:
        """Continue the way of a message that passed the node where `before` ended."""
        self._base = before._base
        self.queued, self.wait_ns, self.waited_at = before.queued, before.wait_ns, before.waited_at
        self._read(msg, before.node)

    def _read(self, msg: MsgBase, previous: str) -> None:
        base = self._base
        self.propagation = msg.propagation - base[0]
        self.serialisation = msg.serialisation - base[1]
        self.overhead = msg.overhead - base[2]
        self.service = msg.service - base[3]
        waited = msg.queueing - self.queued
        if waited > self.wait_ns:
            self.wait_ns = waited
            self.waited_at = self.node if previous == self.node else f"{previous}->{self.node}"
        self.queued = msg.queueing


class RecordingEnvironment(Environment):
    """Run the same events in the same order, and note what caused each.

    What is scheduled while an event happens lands on the usual queue, which is otherwise empty, and is taken from
    there with its cause: whoever schedules need not know.
    """

    def __init__(self) -> None:
        super().__init__()
        self._heap: list[tuple[float, int, int, Any, Cause]] = []
        self.cause_of: Callable[[Any, float, Cause], Cause] = lambda event, time, parent: parent
        self.current = Cause(None, 0.0, "start", "", "", None)
        self.on_sample: Callable[[float], float] | None = None
        self._next_sample = float("inf")

    def sample_with(self, sample: Callable[[float], float], first: float) -> None:
        """Have `sample(time)` called before the first event at or after `first` ns; it returns the next time."""
        self.on_sample, self._next_sample = sample, first

    @property
    def scheduled(self) -> int:
        """How many events are still to happen."""
        return len(self._heap) + len(self.clock)

    def schedule(self, event: Any, priority: Any = 1, delay: float = 0) -> None:
        """Put `event` on the queue; see `Environment.schedule`."""
        if not event._ok and not isinstance(event._value, Exception):
            self._heap.clear()
        super().schedule(event, priority, delay)

    def peek(self) -> float:
        """Return the time of the next event, infinity when there is none."""
        self._take_in(self.current)
        return self._heap[0][0] if self._heap else float("inf")

    def advance(self, most: int, until: float = float("inf")) -> bool:
        """Process up to `most` events, none of them later than `until` ns; return whether any are left."""
        heap = self._heap
        staged = self.clock
        self._take_in(self.current)
        done = 0
        while heap and done < most:
            entry = heappop(heap)
            if entry[0] > until:
                heappush(heap, entry)
                break
            if entry[0] >= self._next_sample and self.on_sample is not None:
                self._next_sample = self.on_sample(entry[0])
            self.current = entry[4]
            staged.push(*entry[:4])
            left = super().advance(1, until)
            if not left and self._halted:
                heap.clear()
            if staged:
                self._take_in(entry[4])
            done += 1
        return bool(heap)

    _halted = False

    def halt(self, _: object = None) -> None:
        """End the simulation inside this event, whatever is still scheduled; an event's callback."""
        self._halted = True
        super().halt()

    def _take_in(self, cause: Cause) -> None:
        cause_of, heap = self.cause_of, self._heap
        for time, priority, key, event in self.clock.drain():
            heappush(heap, (time, priority, key, event, cause_of(event, time, cause)))


class CauseRecorder:
    """Make the cause of every event of one run: `cause_of` is what the environment calls."""

    def __init__(self, hardware: Hardware) -> None:
        self._components = hardware.components

    def cause_of(self, event: object, time: float, parent: Cause) -> Cause:
        """Return the cause of `event`, scheduled for `time` ns inside the event that `parent` caused."""
        if isinstance(event, MsgBase):
            return self._way(event, time, parent)
        if time == parent.time:
            return parent
        return self._timer(event, time, parent)

    def _way(self, msg: MsgBase, time: float, parent: Cause) -> Cause:
        before: Cause | None = getattr(msg, "cause", None)
        path, hop = msg.path, msg.hop
        if not path:
            return self._appointment(msg, time, parent)
        place = path[hop]
        round_trip = isinstance(msg, Transaction)
        if before is not None and (before is parent or round_trip):
            cause = Cause(before.parent, time, sort_of(msg), before.source, place, before.owner)
            if round_trip:
                cause.place = before.place
            cause.go_on(before, msg)
        else:
            source = path[hop - 1] if hop else place
            cause = Cause(parent, time, sort_of(msg), source, place, self._owner_of_way(msg, source, parent))
            cause.follow(msg)
            if round_trip:
                cause.place = path[-1]
        msg.cause = cause
        return cause

    def _appointment(self, msg: MsgBase, time: float, parent: Cause) -> Cause:
        """Return the cause of a message that goes nowhere: a component asked to be called with it later."""
        component = getattr(msg.callbacks[0], "__self__", None) if msg.callbacks else None
        place = component.id if isinstance(component, ComponentBase) else parent.place
        sort = "request" if isinstance(msg, HostRequest) else "service"
        msg.cause = cause = Cause(parent, time, sort, place, place, owner_of(msg))
        return cause

    def _owner_of_way(self, msg: MsgBase, source: str, parent: Cause) -> Owner | None:
        """Find the op that a message travels for: its own, or that of the service which sent it."""
        own = owner_of(msg)
        if own is not None or not isinstance(msg, Transaction):
            return own
        sender = self._components.get(source)
        if sender is not None:
            for served, since in sender.serving:
                if since == parent.time:
                    own = owner_of(served) or own
        return own or parent.owner

    def _timer(self, event: Any, time: float, parent: Cause) -> Cause:
        for callback in event.callbacks or ():
            process = getattr(callback, "__self__", None)
            if isinstance(process, Serving):
                return Cause(parent, time, "issue", process.place, process.place, None)
            if isinstance(process, Worker):
                component, msg = process.component, process.msg
                if isinstance(msg, LaunchMsg):
                    running = any(pe in msg.launch.started_ns for pe in msg.targets)
                    return Cause(parent, time, "issue" if running else "start", component.id, component.id, None)
                owner = None if msg is None else owner_of(msg)
                return Cause(parent, time, "service", component.id, component.id, owner)
        return Cause(parent, time, "timer", parent.place, parent.place, parent.owner)


def owner_of(msg: MsgBase) -> Owner | None:
    """Return the op that `msg` is, or is a part of; None when it is neither."""
    found = msg
    while found.origin is not None:
        found = found.origin
    if isinstance(found, KernelCommand):
        return found.op_id, found.call, found.site
    return (found.op_id, found.call or type(found).__name__, found.site) if isinstance(found, Command) else None


def sort_of(msg: MsgBase) -> str:
    """Return what a message's present way is called, a key of `critical_path.SORTS`."""
    if msg.sort:
        return msg.sort
    if isinstance(msg, Transaction):
        return msg.op
    if isinstance(msg, LaunchMsg):
        return "response" if msg.reply else "launch"
    if isinstance(msg, FanOutMsg):
        return "acknowledgement" if msg.reply else "order"
    if isinstance(msg, HostRequest):
        return "request"
    if msg.origin is not None:
        return "tile"
    return "answer" if msg.reply else "command"
