"""What a component tells those who report: what it counts, what waits there, who looks on, how fast it computed."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol

from attrs import Factory, define, field, frozen

from kernbench_core.events.faults import unusable
from kernbench_core.messages import Command, MsgBase
from kernbench_core.units import grid_ceil
from kernbench_core.wire import Waits

if TYPE_CHECKING:
    from kernbench_core.environment import Environment

#: How the numbers of several components become one.
COMBINE: Final[Mapping[str, Callable[[Sequence[float]], float]]] = MappingProxyType(
    {"sum": sum, "max": max, "mean": lambda numbers: sum(numbers) / len(numbers)}
)


def _check_word(stat: Stat, attribute: Any, value: str) -> None:
    known = ("ns", "B", "") if attribute.name == "unit" else tuple(COMBINE)
    if value not in known:
        raise ValueError(f"{attribute.name} of statistic {stat.name!r} must be one of {known}, not {value!r}")


def _check_text(stat: Stat, attribute: Any, value: Any) -> None:
    if not isinstance(value, str) or not value:
        raise ValueError(f"{attribute.name} of statistic {stat.name!r} must be a text, not {value!r}")


@frozen
class Stat:
    """Something that a model counts: the attribute of this `name`, read at the end of a run; `doc` is one sentence.

    The numbers of all components of the model that served anything are shown as one, as `combine` says: their "sum",
    "max" or "mean"; another word is a ValueError. `unit` is "ns", "B", or "" for a plain number.

    >>> class Cache(kb.ComponentBase):
    ...     STATS = (kb.Stat("misses", "", "sum", "Lines that were fetched."),)
    ...     misses = 0
    >>> kb.Stat("misses", "", "median", "Lines that were fetched.")
    Traceback (most recent call last):
    ValueError: combine of statistic 'misses' must be one of ('sum', 'max', 'mean'), not 'median'
    """

    name: str = field(validator=_check_text)
    unit: str = field(validator=_check_word)
    combine: str = field(validator=_check_word)
    doc: str = field(validator=_check_text)


class Waiting:
    """Tell what a program waits for, as a sentence that follows its PE's name, and since when (ns).

    `commands` are those that it waits for, where it is a kernel.
    """

    __slots__ = ("commands", "sentence", "since_ns")

    def __init__(self, sentence: str, since_ns: float, commands: tuple[Command, ...] = ()) -> None:
        self.sentence = sentence
        self.since_ns = since_ns
        self.commands = commands


class Observer(Protocol):
    """Who is told what happens at components; it changes nothing of that."""

    def answered(self, component: Any, msg: MsgBase) -> None:
        """Take note of an answer that has come back to where its request was sent from."""

    def served(self, component: Any, msg: MsgBase) -> None:
        """Take note of a logged message at the end of its service."""

    def was_busy(self, component: Any, took: float, until: float) -> None:
        """Take note of `took` ns, `until` a time, that it was busy; less than 0 takes back what was told of those."""

    def waited(self, component: Any, waited: float, until: float) -> None:
        """Take note of a message that queued there for `waited` ns, `until` a time."""


class Computing(Protocol):
    """A component that computes."""

    @property
    def id(self) -> str:
        """Its name in the graph."""

    def flops(self, msg: MsgBase) -> float:
        """Return the operations that serving a message takes."""

    def peak_flops(self, msg: MsgBase) -> float:
        """Return the most operations per ns on work of the dtype of a message."""


class UnitWork:
    """Count the operations that a unit computed, and keep the highest of its peaks (per ns) on such work."""

    __slots__ = ("flops", "peak")

    def __init__(self) -> None:
        self.flops = self.peak = 0.0


@define
class LaunchWork:
    """Count what a launch has its units compute, and the payload bytes that it moves to and from each memory."""

    units: dict[str, UnitWork] = Factory(dict)
    memories: dict[str, int] = Factory(dict)


class PeCounter:
    """Say what the work of a PE is counted for now: for the launch that it runs, or nothing."""

    __slots__ = ("work",)

    def __init__(self, work: LaunchWork | None = None) -> None:
        self.work = work


class Rates:
    """Compare how fast the ops of a component were with the peaks that it declares, and count them.

    `peaks` are those of the dtypes that were computed in, in operations per ns; `too_fast` is the first op that was
    faster: the message, its operations, how many ns it took, and the peak. `counter` says where ops are counted.
    """

    __slots__ = ("counter", "peaks", "too_fast")

    def __init__(self) -> None:
        self.peaks: dict[str, float] = {}
        self.too_fast: tuple[MsgBase, float, float, float] | None = None
        self.counter = PeCounter()

    def note(self, component: Computing, msg: MsgBase, took: float) -> None:
        """Count an op that took `took` ns, and compare it with the peak; what takes no time is found in the op log."""
        peak, flops, counted = component.peak_flops(msg), component.flops(msg), self.counter.work
        if not (0.0 <= flops < math.inf and 0.0 <= peak < math.inf):
            what, found = ("peak_flops", peak) if 0.0 <= flops < math.inf else ("flops", flops)
            raise unusable(component, what, "return a finite number, at least 0", found)
        if counted is not None:
            work = counted.units.get(component.id)
            if work is None:
                work = counted.units[component.id] = UnitWork()
            work.flops += flops
            if peak > work.peak:
                work.peak = peak
        if not peak:
            return
        self.peaks[_dtype_of(msg)] = peak
        if took and self.too_fast is None and flops > peak * took * (1 + 1e-9):
            self.too_fast = (msg, flops, took, peak)


def _dtype_of(msg: object) -> str:
    """Return the dtype of the work of a command or tile: of the operands, where it tells."""
    for name in ("dtype_in", "dtype"):
        try:
            found = getattr(msg, name, None)
        except KeyError:  # a tile has the parameters of its stage only
            continue
        if found is not None:
            return str(found)
    return "f32"


_NOTHING_BEGUN: Final[Mapping[MsgBase, float]] = MappingProxyType({})


class Reported(Waits):
    """What reports ask of every component: how much it served, for how long it was busy, what it holds now."""

    # A slot: every launch asks all units for it, and their dicts are three times as much memory to go through.
    __slots__ = (
        "__dict__", "_begun", "_observers", "_paced", "_previous_out", "_workers", "busy_ns", "env", "queue",
        "run_style", "served",
    )  # fmt: skip

    run_style: bool
    _paced: bool
    # What few components have is theirs alone: with more than 30 attributes of its own, an object of CPython has a dict
    # of its own as well, and every node of a fabric is slower (tools/compare_trees.py: all_reduce -3 %).
    #: Of `busy_ns`, how long a unit that computes only started up, filled and drained.
    filling_ns: float = 0.0
    #: Of `busy_ns`, how long operands entered a unit that computes, times the share of its cells that had no element.
    unfilled_ns: float = 0.0
    env: Environment

    def __init__(self) -> None:
        super().__init__()
        self.served = 0
        self.busy_ns = 0.0
        #: What a model that defines `receive` serves now, each with the time in ns at which that began.
        self._begun: Mapping[MsgBase, float] = _NOTHING_BEGUN
        self._observers: tuple[Observer, ...] = ()
        self._previous_out = -math.inf
        #: What waits for a worker or, where a model keeps the order itself, for what it puts in.
        self.queue: deque[MsgBase] = deque()
        #: Those who serve by `run`, in the order of their numbers.
        self._workers: list[Any] = []

    def observe(self, observer: Observer) -> None:
        """Tell an observer of each answer that ends here, of logged messages served, and when it was busy or waited."""
        self._observers = (*self._observers, observer)

    def note_busy(self, took: float, until: float) -> None:
        """Count `took` ns of being busy, `until` a time; less than 0 takes back what was counted of those."""
        self.busy_ns += took
        for observer in self._observers:
            observer.was_busy(self, took, until)

    def note_wait(self, waited: float, until: float | None = None) -> None:
        """Count a message that queued here for `waited` ns, `until` a time (None: until now)."""
        Waits.note_wait(self, waited)
        for observer in self._observers:
            observer.waited(self, waited, self.env.now if until is None else until)

    def awaiting(self) -> Iterable[MsgBase]:
        """Return the messages sent from here whose answers are still out; for the deadlock report."""
        return ()

    def waits_in_words(self) -> Waiting | None:
        """Say what a program that runs here waits for; for the deadlock report, asked at its time."""
        return None

    def open_waits(self) -> Iterable[Waiting]:
        """Say what the commands that are served here wait for, each with its line; for the deadlock report."""
        return ()

    @property
    def keeps_busy(self) -> bool:
        """Whether service takes up a capacity, so that `busy_ns` means something; a pure latency does not."""
        return self.run_style or self._paced

    def busy_by(self, time: float) -> float:
        """Return for how long, in ns, servers were busy until `time`, together: services under way count so far."""
        under_way = sum(max(0.0, time - since) for _, since in self.serving)
        return max(0.0, self.busy_ns + under_way - self.booked_ahead(time))

    def booked_ahead(self, time: float) -> float:
        """Return how much of `busy_ns` lies after `time` ns, where a model counts work before it is done.

        Default: workers count a service at its end; a paced model is taken until its last departure.
        """
        return max(0.0, self._previous_out - time) if self._paced and not self.run_style else 0.0

    @property
    def serving(self) -> tuple[tuple[MsgBase, float], ...]:
        """The messages in service, each with the time in ns at which its service began."""
        by_workers = [(worker.msg, worker.start) for worker in self._workers if worker.msg is not None]
        return (*by_workers, *self._begun.items())

    @property
    def waiting(self) -> tuple[MsgBase, ...]:
        """The messages that wait for a worker, first come first."""
        return tuple(self.queue)


def checked_ns(component: Any, raw: object, what: str) -> float:
    """Return a time that a model's method `what` gave, rounded up to the grid; ComponentError for what is no time."""
    if not isinstance(raw, int | float) or not 0.0 <= raw < math.inf:
        raise unusable(component, what, "return a finite time in ns, at least 0", raw)
    return grid_ceil(raw)
