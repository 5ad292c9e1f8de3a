"""What a run shows of what limits it: figures that its verdict and its advice are read from."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Final

import attrs
import numpy as np

from kernbench_builtin.explain.accesses import (
    ByteRanges,
    hbm_accesses,
    joined,
    length,
    loads_of_stored,
    places_of,
    touched,
)
from kernbench_builtin.explain.advice.computed import (
    PeWork,
    Products,
    Vectors,
    more_work,
    pe_work,
    products_of,
    vectors_of,
)
from kernbench_builtin.explain.advice.moved import Moved, moved_by
from kernbench_builtin.explain.advice.schedule import apart, handed_on
from kernbench_builtin.explain.advice.sent import collector, message_bytes
from kernbench_builtin.explain.advice.unit_times import (
    Queueing,
    all_trips,
    at_work,
    least_of,
    longest,
    of_pe,
    on_elements,
    parts_of,
    queueing,
)
from kernbench_builtin.explain.intervals import late_among, time_of_any
from kernbench_builtin.explain.roof import Roof, peaks_of, roof, work_on
from kernbench_builtin.machines.figures.launch import LATE
from kernbench_builtin.machines.figures.tables import kernels_of, launches_of
from kernbench_core.host.timing import PHASES, phases, phases_of
from kernbench_core.messages import KernelLaunchMsg, MemoryMsg, MmuMapMsg
from kernbench_core.oplog.spill import take

if TYPE_CHECKING:
    from kernbench_builtin.machines.figures.kernels import ArrayFill, KernelUse
    from kernbench_builtin.machines.figures.launch import LaunchFigures, PathCall
    from kernbench_core.host.host_program import LaunchHandle
    from kernbench_core.host.session import GraphEngine

_MOST_OWN: Final = 0.8
"""A kernel with so much of the time of all has what a run as a whole shows."""
#: What a call does, by the kind of unit that serves it; others are computed.
_KINDS = {"pe_ipcq": "message", "pe_scheduler": "composite", "pe_gemm": "product", "": "issue", LATE: LATE}


@attrs.frozen
class Overlap:
    """Say what a PE did in its time, in ns: units at work, and loads.

    `late_ns` is the time in which loads were under way that began after units first were at work, and not behind
    others, so many `times` alike: all but the first could have begun before. In `hidden_ns` of it, units were at work.
    """

    time_ns: float
    working_ns: float
    late_ns: float
    hidden_ns: float
    times: int


@attrs.frozen
class Facts:
    """The figures of one run; times in ns, bytes of payload.

    `kernel` is the one that ran longest, with so many `launches`, of which any ran for `own_ns`, and its `path` over
    all of them; `last` of these is its longest launch, and `overlap` is of the PE that ended last there, with so many
    `own_programs`. `pes` have programs, `busy_pes` with those of launches at the same time, of `all_pes` in so many
    `packages`; `programs` are those of the PE with most, and of all; launches `alike` do as much as `last` on as many
    PEs; launches that do not wait, and need not, are over by `apart_ns` sooner, `more_work` is how much more the
    slowest PE had to do than the mean, from 0, `slower` how much slower its units were; its units, by kind, were
    `at_work` for a share of `last`, for so many ns `on_elements`, and `work` is what it did there; `loads_stored` says
    whether it loads what any PE stores there, `places` at how many addresses it does what is alike, at most, `longest`
    how long the longest op of each kind of unit took. Of `all_launches` some may read what others wrote: `hands_on`.
    `fill` says what arrays were at work for, `waiting` which line's load in Triton does not go ahead of its loop (""
    for all of them), why, and how many turns such a loop has. `around_ns` is how long the host copied, and told MMUs,
    `triton` whether kernels are Triton's, `reads` whether they read elements into Python. `trips` are the parts of what
    chunks took in DMAs, so many `round_trips` with set-up, translation and scratchpad, `own_trips` those of the slowest
    PE's loads, stores and both ("composite"), of which `of_commands` is the share of the way of commands there and
    back, and `least_ns` what one takes there however little it moves; `queueing` says where they queued. `moved` is
    what went from and to HBM; `distinct` are the bytes of it that a launch moves at least, in bursts that have so many
    `burst_bytes`. `scratchpad` is the most that one held, and what it has. `collector` is the PE of `last` that sends
    and receives most messages, with how many, and how many there are, of `message_bytes` on average.
    """

    phases: dict[str, float]
    around_ns: tuple[float, float]
    triton: bool
    reads: bool
    roof: Roof
    kernel: str
    launches: int
    kernels: int
    own_ns: float
    path_ns: float
    path: tuple[PathCall, ...]
    last: LaunchFigures
    overlap: Overlap
    mean_ns: float
    pes: int
    busy_pes: int
    all_pes: int
    packages: int
    alike: tuple[LaunchFigures, ...]
    programs: tuple[int, int]
    own_programs: int
    apart_ns: float
    more_work: float
    slower: float
    at_work: dict[str, float]
    on_elements: dict[str, float]
    work: PeWork
    loads_stored: bool
    places: int
    longest: dict[str, float]
    hands_on: bool
    all_launches: int
    trips: dict[str, float]
    own_trips: dict[str, dict[str, float]]
    of_commands: dict[str, float]
    least_ns: dict[str, float]
    round_trips: int
    queueing: Queueing | None
    busiest: tuple[KernelUse, ...]
    moved: Moved
    distinct: int
    burst_bytes: int
    scratchpad: tuple[int, int]
    waiting: tuple[str, str, float]
    fill: ArrayFill | None
    products: Products
    vectors: Vectors
    collector: tuple[str, int, int]
    message_bytes: float

    @property
    def kernel_ns(self) -> float:
        """The phase `kernel`."""
        return self.phases["kernel"]

    @property
    def total_ns(self) -> float:
        """The whole run."""
        return sum(self.phases.values())

    def share(self, kind: str) -> float:
        """Return the share of the path of calls of a kind: "load", "store", "atomic", "message", "product", …"""
        return sum(call.ns for call in self.calls(kind)) / self.path_ns if self.path_ns else 0.0

    def calls(self, kind: str) -> list[PathCall]:
        """Return the calls of a kind, the longest first."""
        return [call for call in self.path if kind_of(call) == kind]

    def turns(self, kind: str) -> tuple[PathCall | None, float]:
        """Return the longest call of a kind, and how many of its commands the path waits for in each program."""
        calls = self.calls(kind)
        return (calls[0], calls[0].commands / self.launches / max(self.own_programs, 1)) if calls else (None, 0.0)

    @property
    def moves_on(self) -> float:
        """How many times a program loads, or stores, at a line at other addresses, at least: a loop could do more."""
        lines = max(len({call.line for call in self.calls(kind)}) for kind in ("load", "store"))
        return self.places / max(self.own_programs, 1) - max(lines - 1, 0)

    def stays(self, kind: str) -> float:
        """Return which part of the time of "load" or "store" calls stays, however little each moves; up to 1."""
        calls = self.calls(kind)
        ns = sum(call.ns for call in calls) or 1.0
        return min(1.0, self.least_ns.get(kind, 0.0) * sum(call.commands for call in calls) / ns)

    def of_bytes(self, kind: str) -> float:
        """Return which part of the time of the slowest PE's loads, or stores, is bytes and what they queue for."""
        trips = self.own_trips[kind]
        return (trips["serialisation"] + trips["service"] + trips["queueing"]) / (sum(trips.values()) or 1.0)

    @property
    def latency(self) -> float:
        """The share of what chunks take in DMAs, but for translation, that is set-up and the way there and back."""
        together = sum(self.trips.values()) - self.trips["translation"]
        return sum(self.trips[part] for part in ("set_up", "propagation", "overhead")) / together if together else 0.0

    @property
    def of_longest(self) -> Facts:
        """The same with the path of its longest launch alone."""
        return attrs.evolve(self, launches=1, path=self.last.path, path_ns=sum(call.ns for call in self.last.path))

    def in_launches(self, gain: float) -> tuple[int, float]:
        """Return in how many launches, and of the time of all, what saves such a share of the longest gains.

        Those alike that wait for the same save as much each, others take no longer than the longest then.
        """
        waited = [{(call.call, call.line, call.commands) for call in each.path} for each in (self.last, *self.alike)]
        found = [
            gain * each.time_ns if calls == waited[0] else each.time_ns - (1 - gain) * self.last.time_ns
            for each, calls in zip(self.alike, waited[1:], strict=True)
        ]
        share = _together(self.alike) / (sum(each.time_ns for each in self.alike) * self.own_ns or 1.0)
        return sum(ns > 0 for ns in found), share * sum(ns for ns in found if ns > 0)

    @property
    def part(self) -> float:
        """The share of the time of all kernels in which this one ran."""
        return min(1.0, self.own_ns / self.kernel_ns) if self.own_ns else 1.0

    @property
    def mixed(self) -> bool:
        """Whether other kernels have much of the time: figures of the whole run are theirs, too."""
        return self.part < _MOST_OWN

    @property
    def above_roof(self) -> float:
        """The share of the kernel's time beyond the roof of all: what does the same work otherwise saves no more."""
        return self.above(self.roof.ns)

    def above(self, ns: float) -> float:
        """Return the share of the kernel's time beyond some."""
        return max(0.0, 1 - ns / (self.kernel_ns * self.part)) if self.kernel_ns else 0.0

    @property
    def queued(self) -> float:
        """The share of the path in which loads and stores queue, of the slowest PE's, about."""
        found = 0.0
        for kind, trips in self.own_trips.items():
            together = sum(trips.values())
            found += self.share(kind) * trips["queueing"] / together if together else 0.0
        return found

    @property
    def busiest_place(self) -> float:
        """How busy the busiest channel of memory or wire outside of PEs was, at most, while the kernel ran."""
        inside = ("pe_tcm channel", "pe wire", "command wire", "pcie wire")
        places = (use for use in self.busiest if use.kind.endswith((" channel", " wire")) and use.kind not in inside)
        return min(1.0, max((use.utilisation for use in places), default=0.0) / self.part)

    def use(self, kind: str) -> KernelUse | None:
        """Return the busiest of a kind of resource while kernels ran."""
        return next((use for use in self.busiest if use.kind == kind), None)


def kind_of(call: PathCall) -> str:
    """Return what a call does.

    "load", "store", "atomic", "message", "product", "composite", "compute", "issue" or "late".
    """
    if call.unit == "pe_dma":
        return "atomic" if "atomic" in call.call else "store" if "store" in call.call else "load"
    return _KINDS.get(call.unit, "compute")


@attrs.frozen
class KernelOutline:
    """The times of a run alone, as `Facts` has them: what is known of one of any length."""

    kernel: str
    kernel_ns: float
    launches: int
    kernels: int
    own_ns: float
    path: tuple[PathCall, ...]


def outline_of(session: GraphEngine) -> tuple[KernelOutline, list[LaunchFigures]] | None:
    """Return the outline of a run so far, and the launches of its kernel; None where no launch is over."""
    named: dict[str, list[LaunchFigures]] = {}
    for each in launches_of(session):
        named.setdefault(each.kernel, []).append(each)
    if not named:
        return None
    times_of = {name: _together(found) for name, found in named.items()}
    kernel = max(times_of, key=times_of.__getitem__)
    own = named[kernel]
    kernel_ns = phases(session.hardware.env.now, session.shared.requests)["kernel"]
    return KernelOutline(kernel, kernel_ns, len(own), len(named), times_of[kernel], _added(own)), own


def facts_of(session: GraphEngine) -> Facts | None:
    """Return what a run shows so far; None where no launch of it is over."""
    launches, kernels, found = [*launches_of(session)], kernels_of(session), outline_of(session)
    if found is None or kernels is None:
        return None
    outline, own = found
    last = max(own, key=lambda each: each.time_ns)
    handles = session.shared.launches
    number = next(at for at, h in enumerate(handles) if h.launch.ended_ns and _began(h) == last.started_ns)
    handle = handles[number]
    times = [end - handle.launch.started_ns[pe] for pe, end in handle.launch.ended_ns.items()]
    programs = np.zeros(len(session.hardware.layout.pes), np.int64)
    programs[[*handle.launch.programs]] = [len(each) for each in handle.launch.programs.values()]
    names = [site.prefix for site in session.hardware.layout.pes]
    states = session.device.kernels.states.values()
    accesses = hbm_accesses(session)
    bytes_of = touched(session, accesses)
    at_least = sum(length(spans) for side in bytes_of for spans in side)
    sips = {sip for each in launches for sip in each.sips}
    does = attrgetter("grid", "pes", "flops", "hbm_bytes")
    (more, slower), (hands_on, meet) = more_work(session, last), handed_on(bytes_of)
    trips, own_trips, of_commands = all_trips(session), *of_pe(session, last.last)
    moved = moved_by(session, number, accesses, programs)
    stored = loads_of_stored(session, accesses, number, names.index(last.last))
    return Facts(
        phases=phases(session.hardware.env.now, session.shared.requests),
        around_ns=_copies_and_tables(session),
        triton=session.shared.places_arrays,
        reads=any(state.elements_read for state in states),
        roof=roof(peaks_of(session, sips), work_on(session, bytes_of)),
        kernel=outline.kernel,
        launches=outline.launches,
        kernels=outline.kernels,
        own_ns=outline.own_ns,
        path_ns=sum(call.ns for call in outline.path),
        path=outline.path,
        last=last,
        overlap=_overlap(session, last),
        mean_ns=sum(times) / len(times),
        pes=int((programs > 0).sum()),
        busy_pes=len({pe for each in session.shared.launches if _meet(each, last) for pe in each.launch.programs}),
        all_pes=len(handle.program.pes),
        packages=len({site.sip for site in handle.program.pes}),
        alike=tuple(each for each in own if does(each) == does(last)),
        programs=(int(programs.max()), int(programs.sum())),
        own_programs=int(programs[names.index(last.last)]),
        apart_ns=0.0 if meet else apart(session, launches),
        more_work=more,
        slower=slower,
        at_work=at_work(session, last),
        on_elements=on_elements(session, last),
        work=pe_work(session, last, stored),
        loads_stored=bool(len(stored)),
        places=places_of(session, accesses, number, names.index(last.last)),
        longest=longest(session, last),
        hands_on=hands_on,
        all_launches=len(launches),
        trips=parts_of(trips),
        own_trips=own_trips,
        of_commands=of_commands,
        least_ns=least_of(session, last.last),
        round_trips=sum(each.number for each in trips),
        queueing=queueing(session),
        busiest=kernels.busiest,
        moved=moved,
        distinct=at_least,
        burst_bytes=sum(length(_bursts(spans, moved.burst)) for side in bytes_of for spans in side),
        scratchpad=_scratchpad(session),
        waiting=_waiting(session),
        fill=next(iter(kernels.fills), None),
        products=products_of(session, at_least),
        vectors=vectors_of(session),
        collector=collector(session, last),
        message_bytes=message_bytes(session),
    )


def _waiting(session: GraphEngine) -> tuple[str, str, float]:
    """Return the line of a load that most often waits for its iteration, and why; "" of all that a loop has.

    And how many turns a loop has on average of which that is said.
    """
    kernels = session.device.kernels
    if session.shared.places_arrays and not kernels.pipelines:
        return "", "loops bring nothing ahead (--no-pipeline-loops)", 0.0
    late = {each: times for each, times in kernels.late_loads.items() if each[0] != "turns"}
    line, why = max(late, key=lambda each: late[each], default=("", ""))
    return line, why, 0.0 if line or not late else kernels.late_loads["turns", why] / late[line, why]


def _copies_and_tables(session: GraphEngine) -> tuple[float, float]:
    """Return for how long, in ns, no launch was under way and the host copied, or else told MMUs of tensors."""
    now, spans = session.hardware.env.now, dict[str, list[tuple[float, float]]]()
    for phase, kind in zip(PHASES, (KernelLaunchMsg, MemoryMsg, MmuMapMsg), strict=False):  # the first of all counts
        own = (each for each in session.shared.requests if isinstance(each, kind))
        spans[phase] = [(each.born, each.response.completed_ns if each.response else now) for each in own]
    _, copies, tables, _ = phases_of(now, spans).values()
    return copies, tables


def _began(handle: LaunchHandle) -> float:
    return min(handle.launch.started_ns.values())


def _meet(handle: LaunchHandle, last: LaunchFigures) -> bool:
    """Whether a launch ran while another one did."""
    times = handle.launch.ended_ns.values()
    return bool(times) and _began(handle) < last.ended_ns and max(times) > last.started_ns


def _together(launches: Sequence[LaunchFigures]) -> float:
    """Return for how long any of some launches ran: those of ranks run at the same time."""
    start, end = (np.array([getattr(each, name) for each in launches]) for name in ("started_ns", "ended_ns"))
    return time_of_any(start, end, np.ones(len(launches), bool))


def _added(launches: Sequence[LaunchFigures]) -> tuple[PathCall, ...]:
    """Add up the paths of several launches."""
    found: dict[tuple[str, str, str], PathCall] = {}
    for each in (call for launch in launches for call in launch.path):
        key = each.call, each.unit, each.line
        known = found.get(key)
        found[key] = each if known is None else attrs.evolve(
            known, ns=known.ns + each.ns, commands=known.commands + each.commands
        )  # fmt: skip
    return tuple(sorted(found.values(), key=lambda each: (-each.ns, each.call, each.line)))


def _overlap(session: GraphEngine, launch: LaunchFigures) -> Overlap:
    columns = session.op_log.columns
    units = {number: name for name, number in columns.components.items() if name.startswith(f"{launch.last}.")}
    rows = np.flatnonzero(np.isin(np.asarray(columns.component[:]), [*units]))
    rows = rows[take(columns.t_start, rows) >= launch.started_ns]
    start, end = take(columns.t_start, rows), np.minimum(take(columns.t_end, rows), launch.ended_ns)
    dma, queue = (
        np.isin(take(columns.component, rows), [number for number, name in units.items() if name.endswith(kind)])
        for kind in (".pe_dma", ".pe_ipcq")
    )
    of_reads = np.array([template.sig[1] == "dma_read" for template in columns.templates], bool)
    reads = of_reads[take(columns.template, rows)]
    keep = start < end
    works = keep & ~dma & ~queue
    late = late_among(start, end, keep & dma & reads, start[works].min() if works.any() else np.inf)
    times = int(np.bincount(take(columns.template, rows)[late]).max()) if late.any() else 0
    working, moving = time_of_any(start, end, works), time_of_any(start, end, late)
    hidden = working + moving - time_of_any(start, end, works | late)
    return Overlap(launch.time_ns, working, moving, hidden, times)


def _bursts(spans: ByteRanges, burst: int) -> ByteRanges:
    """Return the bursts that have bytes of some ranges."""
    return joined(np.stack([spans[:, 0] // burst * burst, -(-spans[:, 1] // burst) * burst], axis=1))


def _scratchpad(session: GraphEngine) -> tuple[int, int]:
    """Return the most that any scratchpad held, and how much it has, in bytes."""
    tables = [state.tcm.fit for state in session.device.kernels.states.values()]
    return max((table.most for table in tables), default=0), max((table.size for table in tables), default=0)
