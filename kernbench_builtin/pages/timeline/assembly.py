"""Make a timeline of what was noted: each source adds its spans, which are then put in order and joined by arrows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import attrs
import numpy as np

from kernbench_builtin.pages.timeline import arrows, counters
from kernbench_builtin.pages.timeline.accounting import activity_of
from kernbench_builtin.pages.timeline.call_stacks import calls_of
from kernbench_builtin.pages.timeline.columns import Indices, Times
from kernbench_builtin.pages.timeline.levels import LEVELS
from kernbench_builtin.pages.timeline.lines import AT_THE_END, LineTable
from kernbench_builtin.pages.timeline.notes import (
    MESSAGE,
    PASSAGE,
    PROGRAM,
    RECEIPT,
    STEP,
    TRIP,
    Notes,
    Readings,
    rows_of,
)
from kernbench_builtin.pages.timeline.outline import Outline, outline
from kernbench_builtin.pages.timeline.span_rows import SpanRows
from kernbench_builtin.pages.timeline.timeline import Counter, Flows, Timeline, op_number
from kernbench_builtin.pages.timeline.tracks import TrackTree, words_of_op
from kernbench_core.environment import SEQUENCE_BITS
from kernbench_core.messages import HostRequest, KernelLaunchMsg, Launch, MemoryMsg, MmuMapMsg
from kernbench_core.topology.naming import pe_prefix
from kernbench_core.units import format_bytes, format_time

if TYPE_CHECKING:
    from kernbench_builtin.explain.scratchpad_map import TcmRecorder
    from kernbench_builtin.pages.timeline.activity import Activity
    from kernbench_core.engine.hardware import Hardware
    from kernbench_core.oplog.log import OpLog

_OF_ONE_PE: Final = op_number(1, 0)


class Assembly:
    """Put the timeline of a run together, down to a level."""

    def __init__(self, hardware: Hardware, notes: Notes, level: str) -> None:
        self._hardware = hardware
        self._notes = notes
        self._depth = LEVELS.index(level)
        self._total = hardware.env.now
        self._tree = TrackTree()
        self._lines = LineTable(site for _, site in notes.sites)
        self._rows = SpanRows()
        self._flows: list[Flows] = []
        nothing = np.empty(0, np.int64)
        self._steps: tuple[Indices, Indices] = nothing, nothing
        #: The row of each op, and the line that it was issued at.
        self._ops = self._line_of_op = arrows.Found(nothing, nothing)
        self._passed: arrows.Passed | None = None
        self._noted: dict[str, Readings] | None = None
        self._bandwidths: dict[int, list[counters.Passages]] = {}

    def reaches(self, level: str) -> bool:
        """Say whether the timeline is to go down to a level."""
        return LEVELS.index(level) <= self._depth

    def add_requests(self, requests: Sequence[HostRequest]) -> None:
        """Add what the host asked for, until it was answered."""
        track = self._tree.special(("host",), "host", "host", "host")
        for request in requests:
            end = self._total if request.response is None else request.response.completed_ns
            nbytes = request.nbytes if isinstance(request, MemoryMsg) else 0
            self._rows.add(track, self._rows.name(_request_name(request)), request.born, end, nbytes=nbytes)

    def add_launches(self, launches: Sequence[Launch]) -> None:
        """Add from when to when the programs of each launch ran, all together."""
        track = self._tree.special(("launches",), "launches", "launch")
        for launch in launches:
            if launch.started_ns:
                ends = [launch.ended_ns.get(pe, self._total) for pe in launch.started_ns]
                name = self._rows.name(f"{_name(launch)} [{'×'.join(map(str, launch.grid))}]")
                self._rows.add(track, name, min(launch.started_ns.values()), max(ends))

    def add_programs(self, launches: Sequence[Launch]) -> None:
        """Add, on each PE, each launch with its programs, in these the lines that they waited at, within callers."""
        whole: dict[tuple[Launch, int], int] = {}
        for launch in launches:
            for pe, start in launch.started_ns.items():
                name, end = self._rows.name(_name(launch)), launch.ended_ns.get(pe, self._total)
                whole[launch, pe] = int(self._rows.add(self._kernel_track(pe), name, start, end)[0])
        noted = rows_of(self._notes.programs, PROGRAM)
        started = [*self._notes.launches]
        tracks, names, parents = [], [], []
        for number, pe, *place in zip(*(noted[name].astype(int).tolist() for name in PROGRAM[:5]), strict=True):
            tracks.append(self._kernel_track(pe))
            names.append(self._rows.name(f"program {place[0]},{place[1]},{place[2]}"))
            parents.append(whole[started[number], pe])
        ends = np.where(noted["end_ns"] < 0, self._total, noted["end_ns"])
        on = np.array(tracks, np.int64)
        programs = self._rows.add(on, np.array(names, np.int64), noted["start_ns"], ends, parent=np.array(parents))
        self._add_steps(on, programs)

    def _add_steps(self, on: Indices, programs: Indices) -> None:
        steps = rows_of(self._notes.steps, STEP)
        program, stack = steps["program"].astype(np.int64), steps["stack"].astype(np.int64)
        stacks = [self._lines.of_site[[*sites]].tolist() for sites in self._notes.stacks]
        line = np.array([*(lines[-1] for lines in stacks), -1], np.int64)[stack]
        names = np.array([self._rows.name(text) for text in (*self._lines.sources, AT_THE_END)], np.int64)
        op = steps["op"].astype(np.int64)
        self._line_of_op = arrows.Found(np.where(stack < 0, -1, op), line)
        took = steps["end_ns"] > steps["start_ns"]
        steps = {name: each[took] for name, each in steps.items()}
        program, stack, line, op = program[took], stack[took], line[took], op[took]
        ended = stack < 0
        parent = programs[program]
        for calls in calls_of(stacks, stack, program, steps["start_ns"], steps["end_ns"]):
            within = np.full(len(calls.line), -1)
            within[calls.inside[calls.inside >= 0]] = parent[calls.inside >= 0]
            made = self._rows.add(
                on[calls.program], names[calls.line], calls.start_ns, calls.end_ns, line=calls.line, parent=within
            )
            parent = np.where(calls.inside >= 0, made[calls.inside], parent)
        asked = np.where(ended, self._line_of_op.of(op), line)
        rows = self._rows.add(
            on[program], names[line], steps["start_ns"], steps["end_ns"], line=asked, op=op, parent=parent
        )
        self._steps = rows[~ended], op[~ended]

    def _kernel_track(self, pe: int) -> int:
        prefix = self._hardware.layout.pes[pe].prefix
        return self._tree.special((*prefix.split("."), "kernel"), "kernel", "kernel", prefix)

    def add_ops(self, log: OpLog) -> None:
        """Add what the op log says of each unit; a stage is a part of its op where it lies in it on the same unit."""
        found = outline(log)
        tracks = np.array([self._tree.unit(component) for component in found.components], np.int64)
        names = np.array([self._rows.name(words_of_op(name)) for name in found.names], np.int64)
        made = np.where(found.op_pe >= 0, _OF_ONE_PE * found.op_pe + found.op_issue, -1)
        of = np.where(found.stage_pe >= 0, _OF_ONE_PE * found.stage_pe + found.stage_issue, -1)
        own = np.where(of >= 0, of, made)
        whole = np.where(of >= 0, -1, made)
        if not len(own):
            return
        rows = self._rows.add(
            tracks[found.component], names[found.name], found.start_ns, found.end_ns, line=self._line_of_op.of(own),
            op=own, nbytes=found.nbytes,
        )  # fmt: skip
        self._ops = arrows.Found(whole, rows)
        self._rows.column("parent")[rows] = _enclosing(found, rows, self._ops.of(of))

    def add_passages(self) -> None:
        """Add what passed over channels and wires, each with the message that it was."""
        noted = self._noted = rows_of(self._notes.passages, PASSAGE)
        names = np.array([self._rows.name(text) for text in (*self._notes.sorts, "transfer")], np.int64)
        messages = rows_of(self._notes.messages, MESSAGE)
        edges = np.abs(noted["edge"].astype(np.int64))
        tracks = np.zeros(int(edges.max(initial=0)) + 1, np.int64)
        inner = np.zeros(len(tracks), bool)
        used = np.unique(edges)
        wires = {wire._key >> SEQUENCE_BITS: wire.name for wire in self._hardware.wires}
        for edge in used.tolist():
            inner[edge] = "#" in wires[edge]
            tracks[edge] = self._tree.channel(wires[edge]) if inner[edge] else self._tree.wire(wires[edge])
        self._count_bytes(edges, used, noted, wires)
        number = noted["message"].astype(np.int64)
        known, at = number >= 0, number // 2
        sort, op = np.full(len(number), -1), np.full(len(number), -1)
        for reply, column in enumerate(MESSAGE[:2]):
            mine = known & (number % 2 == reply)
            sort[mine] = messages[column].astype(np.int64)[at[mine]]
        op[known] = messages["op"].astype(np.int64)[at[known]]
        rows = self._rows.add(
            tracks[edges], names[sort], noted["start_ns"], noted["end_ns"], op=op, nbytes=noted["nbytes"],
            line=self._line_of_op.of(op), message=np.where(known, at, -1),
        )  # fmt: skip
        self._passed = arrows.Passed(rows, number, inner[edges])

    def _count_bytes(
        self, edges: Indices, used: Indices, noted: dict[str, Times], wires: dict[int, str]
    ) -> None:
        """Note what each link between units carries, and each memory by its channels together."""
        order = np.argsort(edges, kind="stable")
        bounds = np.searchsorted(edges[order], [*used, np.inf])
        for edge, first, last in zip(used.tolist(), bounds[:-1], bounds[1:], strict=True):
            name, rows = wires[edge], order[first:last]
            if _inside_a_pe(name):
                continue
            track = self._tree.place(name.partition("#")[0]) if "#" in name else self._tree.wire(name)
            passages = noted["start_ns"][rows], noted["end_ns"][rows], noted["nbytes"][rows]
            self._bandwidths.setdefault(track, []).append(passages)

    def add_arrows(self) -> None:
        """Join the spans."""
        ends = arrows.SpanEnds(self._rows.column("start_ns"), self._rows.column("end_ns"))
        self._flows.append(arrows.issues(ends, *self._steps, self._ops))
        self._flows.append(arrows.receipts(ends, rows_of(self._notes.receipts, RECEIPT), self._ops))
        if self._passed is not None:
            trips = rows_of(self._notes.trips, TRIP)
            self._flows += arrows.round_trips(ends, trips, self._passed, self._ops)

    def _counters(self, scratchpads: TcmRecorder | None) -> list[Counter]:
        """Count bytes per second, requests that are out, and what scratchpads hold; tracks are not final."""
        trips = rows_of(self._notes.trips, TRIP)
        sender = trips["sender"].astype(np.int64)
        held = scratchpads.result(self._total).uses if scratchpads is not None and self.reaches("unit") else ()
        most = counters.values_each(len(self._bandwidths) + len(self._notes.senders) + len(held))
        found = [counters.bandwidth(track, wires, most) for track, wires in self._bandwidths.items()]
        for name, number in self._notes.senders.items():
            born, answered = (trips[column][sender == number] for column in ("born_ns", "answered_ns"))
            found.append(counters.outstanding(self._tree.place(name), born, answered, most))
        found += [counters.held(self._tree.place(f"{use.pe}.pe_tcm"), use.steps, most) for use in held if use.steps]
        return found

    def finish(self, scratchpads: TcmRecorder | None, launches: Sequence[Launch]) -> Timeline:
        """Return the timeline."""
        counted = self._counters(scratchpads)
        tracks, numbers = self._tree.finish()
        spans, rows = self._rows.finish(numbers)
        return Timeline(
            self._total,
            tracks,
            tuple(self._rows.names),
            self._lines.lines,
            tuple(self._lines.sources),
            spans,
            tuple(attrs.evolve(each, track=int(numbers[each.track])) for each in counted),
            arrows.joined(self._flows, rows),
            LEVELS[self._depth],
            () if self._notes.full_ns is None else (_full(self._notes.full_ns, len(self._notes.passages.table())),),
            self._activity(launches) if self.reaches("unit") else None,
        )

    def _activity(self, launches: Sequence[Launch]) -> Activity | None:
        """Return how busy everything was, with the begins and ends of launches among its edges."""
        notes = self._notes
        marks = [mark for each in launches if each.started_ns
                 for mark in (min(each.started_ns.values()), max(each.ended_ns.values(), default=0.0))]  # fmt: skip
        marks += [notes.since, notes.until]
        whole = notes.since <= 0.0 and notes.until == math.inf
        only = not self.reaches("wire")
        return activity_of(self._hardware, notes, self._noted, marks, channels_only=only, whole=whole)


def assemble(
    hardware: Hardware,
    notes: Notes,
    requests: Sequence[HostRequest],
    log: OpLog,
    scratchpads: TcmRecorder | None,
    level: str,
) -> Timeline:
    """Return the timeline of a run so far, down to a level."""
    made = Assembly(hardware, notes, level)
    launches = [request.launch for request in requests if isinstance(request, KernelLaunchMsg)]
    made.add_requests(requests)
    if made.reaches("launch"):
        made.add_launches(launches)
    if made.reaches("kernel"):
        made.add_programs(launches)
    if made.reaches("unit"):
        made.add_ops(log)
    if made.reaches("channel"):
        made.add_passages()
    made.add_arrows()
    return made.finish(scratchpads, launches)


def _enclosing(found: Outline, rows: Indices, of: Indices) -> Indices:
    """Return the row that each record is a part of, -1 for none: that of its op, on the same unit and around it."""
    whole = np.where(of >= 0, of - rows[0], 0)
    inside = (
        (of >= 0)
        & (found.component[whole] == found.component)
        & (found.start_ns[whole] <= found.start_ns)
        & (found.end_ns <= found.end_ns[whole])
    )
    return np.where(inside, of, -1)


def _inside_a_pe(wire: str) -> bool:
    source, arrow, destination = wire.partition("->")
    return bool(arrow) and pe_prefix(source) is not None and pe_prefix(source) == pe_prefix(destination)


def _full(until: float, times: int) -> str:
    return (
        f"what passes on channels and wires was noted until {format_time(until)} only, "
        f"{times:,} times; give a --window, or a coarser --level."
    )


def _request_name(request: HostRequest) -> str:
    if isinstance(request, KernelLaunchMsg):
        return f"launch {_name(request.launch)}"
    if isinstance(request, MmuMapMsg):
        return "unmap pages" if request.update.unmap else "map pages"
    return f"copy {'to' if request.op == 'write' else 'from'} device, {format_bytes(request.nbytes)}"


def _name(launch: Launch) -> str:
    return str(getattr(launch.kernel, "__name__", "kernel"))
