"""Models that keep their word, one in each style, and models that break it, each in one way. Not a test."""

from __future__ import annotations

import copy
import itertools
import math
from typing import Any

from kernbench_core.component import ComponentBase
from kernbench_core.memory.atomic_access import AtomicMemory
from kernbench_core.params import Param
from kernbench_core.plugins import ComponentEntry
from kernbench_core.reporting import Stat
from kernbench_core.units import grid_ceil

MADE = itertools.count()
TIMES: dict[int, float] = {}


class Hop(ComponentBase):
    """Pass messages on.

    Models: a latency.
    Ignores: Buffers have no end.
    Timing: out = in + overhead.
    Source: none, a test.
    """

    ON_HEAD = True
    PARAMS = (Param("overhead", "time", "4 ns", "Latency."),)
    STATS = (Stat("empty", "", "sum", "Messages without payload."),)

    def __init__(self, node: Any, fabric: Any) -> None:
        super().__init__(node, fabric)
        self.empty = self.seen = 0

    def overhead(self, msg: Any) -> float:
        return float(self.params["overhead"])

    def emit(self, msg: Any, head: float, tail: float) -> None:
        self.seen += 1
        self.empty += not msg.nbytes
        super().emit(msg, head, tail)


class Serial(Hop):
    """Serve one message after another.

    Models: one server.
    Ignores: Start-up is free.
    Timing: overhead each.
    Source: none, a test.
    """

    ON_HEAD = False

    def interval(self, msg: Any) -> float:
        return self.overhead(msg)


class SerialProcess(ComponentBase):
    """Be `Serial`, as a process.

    Models: one server.
    Ignores: Start-up is free.
    Timing: overhead each.
    Source: none, a test.
    """

    PARAMS = Hop.PARAMS

    def run(self, env: Any, msg: Any) -> Any:
        yield env.timeout(self.params["overhead"])


class SerialEvents(ComponentBase):
    """Be `Serial`, event by event.

    Models: one server.
    Ignores: Start-up is free.
    Timing: overhead each.
    Source: none, a test.
    """

    PARAMS = Hop.PARAMS

    def receive(self, msg: Any) -> None:
        if self.serving:
            self.queue.append(msg)
        else:
            self.next(msg)

    def next(self, msg: Any) -> None:
        self.begin(msg)
        self.env.call_at(self.env.now + grid_ceil(self.params["overhead"]), msg, self.done)

    def done(self, msg: Any) -> None:
        self.end(msg)
        if self.waiting:
            self.next(self.queue.popleft())


class Memory(ComponentBase):
    """Answer over one channel.

    Models: the bandwidth of a channel.
    Ignores: Banks.
    Timing: overhead, then bytes / bandwidth and a latency.
    Source: none, a test.
    """

    PARAMS = (
        Param("overhead", "time", "2 ns", "Decoding."),
        Param("bandwidth", "bandwidth", "50 GB/s", "Of the channel.", positive=True),
    )

    def __init__(self, node: Any, fabric: Any) -> None:
        super().__init__(node, fabric)
        self.port = self.internal_wire("port", self.params["bandwidth"], 1.0)

    def overhead(self, msg: Any) -> float:
        return float(self.params["overhead"])

    def channels(self, msg: Any) -> Any:
        return [(msg.total, self.port.bandwidth, self.port.latency)]

    def emit(self, msg: Any, head: float, tail: float) -> None:
        nbytes, msg.nbytes = msg.nbytes, msg.total
        self.port.send(msg, head, tail)
        msg.nbytes = nbytes

    def on_internal(self, msg: Any) -> None:
        tail = msg.tail
        msg.turn_around()
        super().emit(msg, tail, tail)


class AtomicPort(AtomicMemory, Memory):
    __doc__ = Memory.__doc__

    def emit(self, msg: Any, head: float, tail: float) -> None:
        if msg.op == "atomic":
            msg.change(self.env.now)
        super().emit(msg, head, tail)


# What must fail, each with the check that must find it ---------------------------------------------------------------


class Undocumented(Hop):
    """Pass messages on.

    Models: a latency.
    Timing: out = in + overhead.
    """


class DividesByZero(Hop):
    __doc__ = Hop.__doc__
    PARAMS = (*Hop.PARAMS, Param("lanes", "int", 4, "Lanes.", minimum=0))

    def __init__(self, node: Any, fabric: Any) -> None:
        super().__init__(node, fabric)
        self.share = 1 / self.params["lanes"]


class Raises(Hop):
    __doc__ = Hop.__doc__

    def emit(self, msg: Any, head: float, tail: float) -> None:
        assert msg.nbytes < 4096, "it is too long"
        super().emit(msg, head, tail)


class Undeclared(Hop):
    __doc__ = Hop.__doc__

    def overhead(self, msg: Any) -> float:
        return float(self.params["overhead"] + self.params.get("penalty", 0.0))


class UndeclaredAtOnce(Hop):
    __doc__ = Hop.__doc__

    def __init__(self, node: Any, fabric: Any) -> None:
        super().__init__(node, fabric)
        self.speed = self.params["speed"]


class Unused(Hop):
    __doc__ = Hop.__doc__
    PARAMS = (*Hop.PARAMS, Param("width", "size", "32 B", "Width."))


class Negative(Hop):
    __doc__ = Hop.__doc__

    def overhead(self, msg: Any) -> float:
        return super().overhead(msg) if msg.nbytes else -1.0


class NotANumber(Hop):
    __doc__ = Hop.__doc__

    def interval(self, msg: Any) -> float:
        return math.nan


class Infinite(SerialEvents):
    __doc__ = SerialEvents.__doc__

    def next(self, msg: Any) -> None:
        self.begin(msg)
        self.env.call_at(math.inf if msg.nbytes == 1 else self.env.now + self.params["overhead"], msg, self.done)


class NegativeDelay(SerialProcess):
    __doc__ = SerialProcess.__doc__

    def run(self, env: Any, msg: Any) -> Any:
        yield env.timeout(self.params["overhead"] - msg.nbytes)


class IntoThePast(Hop):
    __doc__ = Hop.__doc__

    def emit(self, msg: Any, head: float, tail: float) -> None:
        super().emit(msg, head - 100.0, tail)


class OffTheGrid(Hop):
    __doc__ = Hop.__doc__

    def emit(self, msg: Any, head: float, tail: float) -> None:
        super().emit(msg, head + 0.1, tail + 0.1)


class CalledOffTheGrid(SerialEvents):
    __doc__ = SerialEvents.__doc__

    def next(self, msg: Any) -> None:
        self.begin(msg)
        self.env.call_at(self.env.now + self.params["overhead"] + 0.1, msg, self.done)


class NeverThere(Hop):
    __doc__ = Hop.__doc__

    def emit(self, msg: Any, head: float, tail: float) -> None:
        super().emit(msg, head, math.inf)


class LeavesElementsAsTheyWere(AtomicMemory, Memory):
    __doc__ = Memory.__doc__


class Loses(Hop):
    __doc__ = Hop.__doc__

    def emit(self, msg: Any, head: float, tail: float) -> None:
        if self.seen == 4:
            self.seen += 1
        else:
            super().emit(msg, head, tail)


class Doubles(Hop):
    __doc__ = Hop.__doc__

    def emit(self, msg: Any, head: float, tail: float) -> None:
        again = copy.copy(msg)
        super().emit(msg, head, tail)
        if self.seen == 4:
            super().emit(again, tail, tail)


class SendsTwice(Hop):
    __doc__ = Hop.__doc__

    def emit(self, msg: Any, head: float, tail: float) -> None:
        super().emit(msg, head, tail)
        if self.seen == 4 and len(msg.path) > 2:
            msg.hop -= 1
            super().emit(msg, tail, tail)


class SendsAgain(Hop):
    __doc__ = Hop.__doc__

    def emit(self, msg: Any, head: float, tail: float) -> None:
        super().emit(msg, head, tail)
        if self.seen == 4:
            self.env.process(self.again(msg, msg.hop))

    def again(self, msg: Any, hop: int) -> Any:
        yield self.env.timeout(10_000.0)
        msg.service += self.env.now - msg.tail
        msg.hop = hop - 1
        super().emit(msg, self.env.now, self.env.now)


class Shortens(Hop):
    __doc__ = Hop.__doc__

    def emit(self, msg: Any, head: float, tail: float) -> None:
        msg.nbytes //= 2
        super().emit(msg, head, tail)


class KeepsTheLast(SerialEvents):
    __doc__ = SerialEvents.__doc__

    def receive(self, msg: Any) -> None:
        waiting, self.queue = list(self.queue), type(self.queue)([msg])
        for earlier in waiting:
            super().receive(earlier)

    def done(self, msg: Any) -> None:
        self.end(msg)


class NeverRests(Hop):
    __doc__ = Hop.__doc__

    def start(self) -> None:
        super().start()
        self.env.process(self.refresh())

    def refresh(self) -> Any:
        while True:
            yield self.env.timeout(1.0)


class Early(Hop):
    __doc__ = Hop.__doc__

    def emit(self, msg: Any, head: float, tail: float) -> None:
        gain = 0.0 if msg.reply and not msg.hop else min(1.0, self.params["overhead"])
        msg.overhead -= gain
        super().emit(msg, head - gain, tail - gain)


class CountsWhoAsks(Hop):
    __doc__ = Hop.__doc__

    STATS = (Stat("asked", "", "sum", "Messages that were timed."),)
    asked = 0

    def overhead(self, msg: Any) -> float:
        self.asked += 1
        return super().overhead(msg)


class SlowerEachTime(Hop):
    __doc__ = Hop.__doc__

    def overhead(self, msg: Any) -> float:
        self.seen += 1
        return super().overhead(msg) + self.seen


class EarlyProcess(SerialProcess):
    __doc__ = SerialProcess.__doc__

    def min_service_ns(self, msg: Any) -> float:
        return float(self.params["overhead"]) + msg.nbytes / 64


class LosesLongOnes(Memory):
    __doc__ = Memory.__doc__

    def emit(self, msg: Any, head: float, tail: float) -> None:
        if msg.total <= 8192:
            super().emit(msg, head, tail)


class LosesTheSixtyFifth(Memory):
    __doc__ = Memory.__doc__
    seen = 0

    def emit(self, msg: Any, head: float, tail: float) -> None:
        self.seen += 1
        if self.seen != 65:
            super().emit(msg, head, tail)


class LosesReadsOfWhatWasWritten(Memory):
    __doc__ = Memory.__doc__

    def __init__(self, node: Any, fabric: Any) -> None:
        super().__init__(node, fabric)
        self.written: set[Any] = set()

    def emit(self, msg: Any, head: float, tail: float) -> None:
        if msg.op == "write":
            self.written.add(msg.regions)
        if msg.op == "write" or msg.regions not in self.written:
            super().emit(msg, head, tail)


class CutsOffWhatIsNoPowerOfTwo(Memory):
    __doc__ = Memory.__doc__

    def on_internal(self, msg: Any) -> None:
        msg.turn_around()
        if msg.nbytes & (msg.nbytes - 1) and msg.regions[0].rows == 1:
            msg.nbytes -= 32
        ComponentBase.emit(self, msg, msg.tail, msg.tail)


class FasterThanItsPeak(Memory):
    __doc__ = Memory.__doc__

    @property
    def peak_bandwidth(self) -> float:
        return self.port.bandwidth / 2


class FasterThanItsLanes(SerialProcess):
    __doc__ = SerialProcess.__doc__

    def flops(self, msg: Any) -> float:
        return float(msg.nbytes)

    def peak_flops(self, msg: Any) -> float:
        return 100.0


class MoreWorkersThanServers(SerialProcess):
    __doc__ = SerialProcess.__doc__

    def start(self) -> None:
        self.servers = 4
        super().start()
        self.servers = 1


class SaysThatItIsBusy(SerialProcess):
    __doc__ = SerialProcess.__doc__

    def emit(self, msg: Any, head: float, tail: float) -> None:
        self.note_busy(1000.0, head)
        super().emit(msg, head, tail)


class HoldsItsWire(Hop):
    __doc__ = Hop.__doc__

    def emit(self, msg: Any, head: float, tail: float) -> None:
        wire = next(iter(self.out_ports.values()))
        wire.busy_ns += 1000.0
        super().emit(msg, head, tail)


class NoTime(Memory):
    __doc__ = Memory.__doc__
    peak_bandwidth = 0.0  # it declares none

    def overhead(self, msg: Any) -> float:
        return 0.0 * (self.params["overhead"] + self.params["bandwidth"])

    def channels(self, msg: Any) -> Any:
        return ()

    def emit(self, msg: Any, head: float, tail: float) -> None:
        msg.turn_around()
        ComponentBase.emit(self, msg, tail, tail)


class MiscountsTime(Hop):
    __doc__ = Hop.__doc__

    def emit(self, msg: Any, head: float, tail: float) -> None:
        super().emit(msg, head + 1.0, tail + 1.0)


class MiscountsWaits(SerialEvents):
    __doc__ = SerialEvents.__doc__

    def note_wait(self, waited: float, until: float | None = None) -> None:
        """Forget it."""


class CountsNothing(Hop):
    __doc__ = Hop.__doc__
    STATS = (Stat("ratio", "", "mean", "Messages without payload, of all."),)

    @property
    def ratio(self) -> float:
        return math.nan


class CountsFromOne(Hop):
    __doc__ = Hop.__doc__
    STATS = (Stat("messages", "", "sum", "Messages that were passed on."),)

    @property
    def messages(self) -> int:
        return self.seen + 1


class SumsBytes(Hop):
    __doc__ = Hop.__doc__
    STATS = (Stat("payload", "B", "sum", "Bytes that were passed on."),)
    payload = 0

    def emit(self, msg: Any, head: float, tail: float) -> None:
        self.payload += msg.nbytes
        super().emit(msg, head, tail)


class LeavesOutTheFirst(SumsBytes):
    __doc__ = Hop.__doc__

    def emit(self, msg: Any, head: float, tail: float) -> None:
        super().emit(msg, head, tail)
        if self.seen == 1:
            self.payload = 0


class SumsReads(Memory):
    __doc__ = Memory.__doc__
    STATS = (Stat("answered", "B", "sum", "Bytes that were read."),)
    answered = 0

    def emit(self, msg: Any, head: float, tail: float) -> None:
        self.answered += msg.total if msg.op == "read" else 0
        super().emit(msg, head, tail)


class SumsTheLongest(SumsReads):
    __doc__ = Memory.__doc__
    longest = 0

    def emit(self, msg: Any, head: float, tail: float) -> None:
        super().emit(msg, head, tail)
        self.longest = max(self.longest, msg.total)
        self.answered = min(self.answered, self.longest)


class WritesParameters(Hop):
    __doc__ = Hop.__doc__

    def emit(self, msg: Any, head: float, tail: float) -> None:
        self.node.params["overhead"] = 4.0  # type: ignore[index]
        super().emit(msg, head, tail)


class WritesATable(Hop):
    __doc__ = Hop.__doc__
    PARAMS = (*Hop.PARAMS, Param("costs", "table", {"first": 1}, "Cycles."))

    def emit(self, msg: Any, head: float, tail: float) -> None:
        self.params["costs"]["first"] += 1
        super().emit(msg, head, tail)


class WritesPaths(Hop):
    __doc__ = Hop.__doc__

    def emit(self, msg: Any, head: float, tail: float) -> None:
        if len(msg.path) > 3 and not msg.reply:
            msg.path, msg.hop = ("nowhere", *msg.path), msg.hop + 1
        super().emit(msg, head, tail)


class WritesMessages(Memory):
    __doc__ = Memory.__doc__

    def on_internal(self, msg: Any) -> None:
        msg.regions = msg.regions[:0]
        super().on_internal(msg)


class TellsItsAddress(Hop):
    __doc__ = Hop.__doc__
    __repr__ = object.__repr__


class TellsTooMuch(Hop):
    __doc__ = Hop.__doc__

    def __repr__(self) -> str:
        return f"<{self.id}: {'flit ' * 500}>"


class OtherStyle(SerialProcess):
    __doc__ = SerialProcess.__doc__

    def run(self, env: Any, msg: Any) -> Any:
        yield env.timeout(self.params["overhead"] + (msg.nbytes == 100))


class OrderOfASet(Hop):
    __doc__ = Hop.__doc__

    def overhead(self, msg: Any) -> float:
        first = next(iter({f"lane {number}" for number in range(64)}))
        return float(self.params["overhead"]) + int(first.split()[1])


class CountsInItsClass(Hop):
    __doc__ = Hop.__doc__

    def __init__(self, node: Any, fabric: Any) -> None:
        super().__init__(node, fabric)
        self.number = next(MADE)

    def overhead(self, msg: Any) -> float:
        return float(self.params["overhead"]) + self.number


class LastComeFirstServed(SerialEvents):
    __doc__ = SerialEvents.__doc__

    def done(self, msg: Any) -> None:
        self.end(msg)
        if self.waiting:
            self.next(self.queue.pop())


class Picks(ComponentBase):
    """Serve what came last first.

    Models: a stack.
    Ignores: Start-up is free.
    Timing: overhead each.
    Source: none, a test.
    """

    PARAMS = Hop.PARAMS

    def run(self, env: Any, msg: Any) -> Any:
        yield env.timeout(self.params["overhead"])

    def pick(self, queue: Any) -> Any:
        return queue.pop()


#: The models that keep their word.
HONEST = (Hop, Serial, SerialProcess, SerialEvents, Picks, SumsBytes, Memory, AtomicPort, SumsReads)
#: The check that must find each of the others, and no other check may.
FAULTS = {
    Undocumented: "documents_itself",
    DividesByZero: "refuses_wrong_parameters",
    Raises: "serves_without_errors",
    Undeclared: "uses_declared_parameters_only",
    UndeclaredAtOnce: "uses_declared_parameters_only",
    Unused: "uses_declared_parameters_only",
    Negative: "takes_finite_times",
    NotANumber: "takes_finite_times",
    Infinite: "takes_finite_times",
    NegativeDelay: "takes_finite_times",
    IntoThePast: "takes_finite_times",
    NeverThere: "takes_finite_times",
    OffTheGrid: "takes_finite_times",
    CalledOffTheGrid: "takes_finite_times",
    Loses: "conserves_messages_and_bytes",
    LeavesElementsAsTheyWere: "conserves_messages_and_bytes",
    Doubles: "conserves_messages_and_bytes",
    SendsTwice: "conserves_messages_and_bytes",
    SendsAgain: "conserves_messages_and_bytes",
    Shortens: "conserves_messages_and_bytes",
    LosesLongOnes: "conserves_messages_and_bytes",
    LosesTheSixtyFifth: "conserves_messages_and_bytes",
    LosesReadsOfWhatWasWritten: "conserves_messages_and_bytes",
    CutsOffWhatIsNoPowerOfTwo: "conserves_messages_and_bytes",
    LastComeFirstServed: "keeps_messages_in_order",
    KeepsTheLast: "drains",
    NeverRests: "drains",
    CountsWhoAsks: "answers_alike_when_asked_again",
    SlowerEachTime: "answers_alike_when_asked_again",
    Early: "never_undercuts_its_bound",
    EarlyProcess: "never_undercuts_its_bound",
    FasterThanItsPeak: "never_exceeds_its_peak",
    FasterThanItsLanes: "never_exceeds_its_peak",
    MoreWorkersThanServers: "never_exceeds_its_peak",
    SaysThatItIsBusy: "never_exceeds_its_peak",
    HoldsItsWire: "never_exceeds_its_peak",
    NoTime: "takes_time",
    MiscountsTime: "counts_what_it_served",
    MiscountsWaits: "counts_what_it_served",
    CountsNothing: "counts_what_it_served",
    CountsFromOne: "sums_what_it_counts",
    LeavesOutTheFirst: "sums_what_it_counts",
    SumsTheLongest: "sums_what_it_counts",
    WritesParameters: "leaves_messages_and_parameters_alone",
    WritesATable: "leaves_messages_and_parameters_alone",
    WritesPaths: "leaves_messages_and_parameters_alone",
    WritesMessages: "leaves_messages_and_parameters_alone",
    TellsItsAddress: "has_a_short_repr",
    TellsTooMuch: "has_a_short_repr",
    OtherStyle: "agrees_with_its_other_style",
    OrderOfASet: "logs_the_same_in_another_process",
    CountsInItsClass: "logs_the_same_in_another_process",
}
_OF = {name: f"faulty.{name.lower()}" for name in ("Serial", "SerialProcess", "SerialEvents", "OtherStyle")}
#: Which models are the same, in another style.
kernbench_same_models = {
    _OF["SerialProcess"]: _OF["Serial"], _OF["SerialEvents"]: _OF["Serial"], _OF["OtherStyle"]: _OF["Serial"],
}  # fmt: skip
#: The version of the hooks that this module is written for.
kernbench_api = 1


def kernbench_components() -> list[ComponentEntry]:
    """Register all of the above."""
    return [
        ComponentEntry(
            f"faulty.{cls.__name__.lower()}",
            f"{__name__}:{cls.__name__}",
            "sram" if issubclass(cls, Memory) else "router",
            "For tests.",
        )
        for cls in (*HONEST, *FAULTS)
    ]

