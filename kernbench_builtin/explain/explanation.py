"""Explain a run: where its time went, where messages queued, the critical paths, use over time, achieved against peak.

A `Recorder` is attached to an engine that is to explain its run; without one, a run pays nothing. What it notes
changes nothing: the op log is the same, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import attrs

from kernbench_builtin.explain.causes import Cause, CauseRecorder, RecordingEnvironment
from kernbench_builtin.explain.critical_path import (
    Fold,
    Parts,
    Segment,
    critical_path,
    cut,
    fold,
    sum_of,
    waited_most_at,
)
from kernbench_builtin.explain.ledger import PARTS, Ledger, LedgerRow, QueueingPlace, queueing_places
from kernbench_builtin.explain.usage import Filling, Usage, UsageSampler, filling_of
from kernbench_builtin.machines.figures.roofline import Achieved, RooflinePoint
from kernbench_core.engine.faults import models_blamed
from kernbench_core.host.timing import PHASES, phase_spans
from kernbench_core.messages import HostRequest, KernelLaunchMsg
from kernbench_core.process.notebook import Pictured
from kernbench_core.topology.design import Machine
from kernbench_core.units import format_time

if TYPE_CHECKING:
    from kernbench_core.component import ComponentBase
    from kernbench_core.engine.hardware import Hardware
    from kernbench_core.environment import Environment
    from kernbench_core.messages import Launch, MsgBase


@attrs.frozen
class Balance:
    """Compare the PEs of one launch: how many, how long their programs took in ns, and which PE took longest."""

    pes: int
    shortest_ns: float
    mean_ns: float
    longest_ns: float
    longest: str


@attrs.frozen(repr=False)
class LaunchExplanation:
    """Explain one launch: its critical path from injection to completion (ns), its point under the roof, its PEs."""

    kernel: str
    injected_ns: float
    completed_ns: float
    path: tuple[Segment, ...]
    roofline: RooflinePoint | None
    balance: Balance | None = None

    def __repr__(self) -> str:
        return f"<LaunchExplanation of {self.kernel}: {format_time(self.ns)}, a path of {len(self.path)} segments>"

    @property
    def ns(self) -> float:
        """How long the launch took, as the host sees it; the segments of `path` sum to it exactly."""
        return self.completed_ns - self.injected_ns

    @property
    def folds(self) -> tuple[Fold, ...]:
        """The path by kernel line, the longest first."""
        return fold(self.path)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON types; the path whole."""
        return {
            "kernel": self.kernel,
            "injected_ns": self.injected_ns,
            "completed_ns": self.completed_ns,
            "path": [segment.to_json() for segment in self.path],
            "lines": [attrs.asdict(each) for each in self.folds],
            "balance": None if self.balance is None else attrs.asdict(self.balance),
            "roofline": None if self.roofline is None else self.roofline.to_json(),
        }


@attrs.frozen
class Went:
    """Say how much of a phase went, on the run's critical path, to segments of one sort and kind of place, in ns.

    `waited_at` is where most of the queueing happened, None when there was none.
    """

    phase: str
    sort: str
    kind: str
    ns: float
    parts: Parts
    waited_at: str | None = None


@attrs.frozen(repr=False)
class Explanation(Pictured):
    """Why a run took as long as it did; times in ns.

    `went` splits the whole run, by the path that led to its end: its rows sum to the total exactly, those of a phase to
    that phase. `ledger` sums up every message by class, `queueing` lists every place where any queued, `filling` says
    what units that compute lost to filling and draining.
    """

    total_ns: float
    went: tuple[Went, ...]
    ledger: tuple[LedgerRow, ...]
    queueing: tuple[QueueingPlace, ...]
    launches: tuple[LaunchExplanation, ...]
    usage: tuple[Usage, ...]
    filling: tuple[Filling, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON types."""
        bins = len(self.usage[0].utilisation) if self.usage else 0
        return {
            "where": [
                {**attrs.asdict(w, filter=lambda a, _: a.name != "parts"), **dict(zip(PARTS, w.parts, strict=True))}
                for w in self.went
            ],
            "ledger": [{**attrs.asdict(row), "unaccounted_ns": row.unaccounted_ns} for row in self.ledger],
            "queueing": [attrs.asdict(place) for place in self.queueing],
            "launches": [launch.to_json() for launch in self.launches],
            "utilisation": {
                "bin_ns": self.total_ns / bins if bins else 0.0,
                "kinds": [attrs.asdict(use) for use in self.usage],
            },
            "filling": [{**attrs.asdict(each), "share": each.share} for each in self.filling],
        }

    def __repr__(self) -> str:
        return f"<Explanation of {len(self.launches)} launches, {len(self.queueing)} places of queueing>"


class Recorder:
    """Look on at one run (a `RunObserver` of the engine), on a clock that notes what causes what."""

    def __init__(self) -> None:
        self.env: Environment | None
        self.env = self._env = RecordingEnvironment()
        self._ends: dict[HostRequest, Cause] = {}

    def begin(self, hardware: Hardware) -> None:
        """Let everything be built as it is: only the clock is another one."""

    def attach(self, hardware: Hardware) -> None:
        """Look on from now: every component exists, and nothing has happened yet."""
        env = self._env
        self._hardware = hardware
        self._ledger = Ledger(hardware)
        self._sampler = UsageSampler(hardware)
        env.cause_of = CauseRecorder(hardware).cause_of
        env.sample_with(self._sampler.sample, self._sampler.first)
        for component in hardware.components.values():
            component.observe(self)

    def answered(self, component: ComponentBase, msg: MsgBase) -> None:
        """Add an answer's way to the ledger."""
        self._ledger.add(msg)

    def served(self, component: ComponentBase, msg: MsgBase) -> None:
        """Do nothing: what was served is in the op log."""

    def was_busy(self, component: ComponentBase, took: float, until: float) -> None:
        """Do nothing: use over time is sampled."""

    def waited(self, component: ComponentBase, waited: float, until: float) -> None:
        """Do nothing: components count what waited."""

    def submitted(self, request: HostRequest) -> None:
        """Note when a host request completes, and why."""
        if request.done.callbacks is not None:
            request.done.callbacks.append(lambda _: self._ends.__setitem__(request, self._env.current))

    # What it all meant ------------------------------------------------------------------------------

    def explanation(
        self, requests: Iterable[HostRequest], point_of: Callable[[Launch], RooflinePoint | None]
    ) -> Explanation:
        """Explain what has happened so far; `point_of` gives a launch's point under the roof."""
        requests = tuple(requests)
        total = self._env.now
        with models_blamed(self._hardware):
            return Explanation(
                total,
                tuple(self._went(total, requests)),
                self._ledger.rows(PHASES),
                queueing_places(self._hardware),
                tuple(self._launches(requests, point_of)),
                self._sampler.usage(total),
                filling_of(self._hardware, total),
            )

    def _path(self, end: Cause, since: float) -> tuple[Segment, ...]:
        return critical_path(end, since, self._kind)

    def _kind(self, node: str) -> str:
        found = self._hardware.graph.nodes.get(node)
        return node if found is None else found.kind

    def _launches(
        self, requests: Iterable[HostRequest], point_of: Callable[[Launch], RooflinePoint | None]
    ) -> Iterable[LaunchExplanation]:
        for request in requests:
            end = self._ends.get(request)
            if end is not None and isinstance(request, KernelLaunchMsg) and request.response is not None:
                kernel = getattr(request.launch.kernel, "__name__", repr(request.launch.kernel))
                path, launch = self._path(end, request.born), request.launch
                completed = request.response.completed_ns
                balance = self._balance(launch)
                yield LaunchExplanation(kernel, request.born, completed, path, point_of(launch), balance)

    def _balance(self, launch: Launch) -> Balance | None:
        """Compare the times of the PEs that ran a launch."""
        times = {pe: ended - launch.started_ns[pe] for pe, ended in sorted(launch.ended_ns.items())}
        graph = self._hardware.graph
        if not times or not isinstance(graph, Machine):
            return None
        longest = max(times, key=lambda pe: times[pe])
        mean = sum(times.values()) / len(times)
        name = graph.design.pes[longest].prefix
        return Balance(len(times), min(times.values()), mean, times[longest], name)

    def _went(self, total: float, requests: Iterable[HostRequest]) -> Iterable[Went]:
        """Split the run's critical path by phase, sort and kind."""
        spans = phase_spans(total, requests)
        edges = [begin for begin, _, _ in spans]
        phase_at = {begin: phase for begin, _, phase in spans}
        groups: dict[tuple[str, str, str], list[Segment]] = {}
        at = 0
        for segment in self._path(self._env.current, 0.0):
            for piece in cut(segment, edges):
                while at + 1 < len(edges) and edges[at + 1] <= piece.from_ns:
                    at += 1
                groups.setdefault((phase_at[edges[at]], piece.sort, piece.kind), []).append(piece)
        order = {phase: number for number, phase in enumerate(PHASES)}
        rows = [
            Went(phase, sort, kind, sum(piece.ns for piece in pieces), sum_of(pieces), waited_most_at(pieces))
            for (phase, sort, kind), pieces in groups.items()
        ]
        return sorted(rows, key=lambda row: (order[row.phase], -row.ns, row.sort, row.kind))


__all__ = [
    "Achieved",
    "Balance",
    "Explanation",
    "Filling",
    "Fold",
    "LaunchExplanation",
    "LedgerRow",
    "QueueingPlace",
    "Recorder",
    "RooflinePoint",
    "Segment",
    "Usage",
    "Went",
]
