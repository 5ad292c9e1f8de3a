"""What happened when in a run, as plain columns: tracks, spans on them, counters, and arrows between spans."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import attrs
import numpy as np

from kernbench_builtin.pages.timeline.activity import Activity
from kernbench_builtin.pages.timeline.columns import F8, I1, I4, I8, FixedColumns, Indices, Times, column_names
from kernbench_builtin.pages.timeline.levels import LEVELS, PLACE, check_level
from kernbench_core.errors import UsageError
from kernbench_core.units import format_time

FLOWS: Final = ("issue", "request", "answer", "send")
"""What an arrow may mean: from a kernel line to its op, from an op to the memory, back to it, from a send to a receipt.

Where a transfer is of no op, as a copy of the host, its request begins and its answer ends at a wire.
"""

_COUNTED_AT: Final = {"bandwidth": "channel", "outstanding": "channel", "scratchpad": "unit"}
"""The coarsest level that a counter belongs to."""

_ISSUES: Final = 1 << 32


def op_number(pe: int, issue: int) -> int:
    """Return the one number that stands for the op of a PE, by its index, with an issue number."""
    return pe * _ISSUES + issue


def op_of(number: int) -> tuple[int, int] | None:
    """Return (PE index, issue number) of an op's number, None for -1."""
    return None if number < 0 else divmod(int(number), _ISSUES)


@attrs.frozen
class Track:
    """A line of the timeline: its number (`id`), that of the track it is below (`parent`, -1 at the top), its `name`.

    `kind` is a level of `LEVELS`, or `PLACE`; `node` is the node, wire or channel that it stands for, as in the machine
    and the ledger ("sip0.cube0.pe1.pe_dma", "sip0.cube0.r0c0->sip0.cube0.r0c1", "sip0.cube0.hbm_ctrl0#pc3"), for a
    place and a kernel the prefix of its nodes ("sip0.cube0.pe1"), else "". Tracks stand in the order of the machine,
    each after its parent.
    """

    id: int
    parent: int
    name: str
    kind: str
    node: str = ""


@attrs.frozen(repr=False)
class Spans(FixedColumns):
    """What took time, one row a span, ordered by track, then start, then the longest first.

    `track`, `name` and `line` are numbers of tracks, of `Timeline.names` and of `Timeline.lines` (-1: no line).
    `start_ns` and `end_ns` are simulated times, `op` is an op's number (`op_of`; -1: none) and `nbytes` what was moved
    (a wire's without headers). `parent` is the row of the span that this one is a part of, on the same track, and which
    it lies within (-1: none); spans of one track that have no parent in common may overlap. `message` numbers the
    messages on wires and channels: one number is one message on its whole way there and back (-1: not known).
    """

    track: Indices = attrs.field(**I4)
    name: Indices = attrs.field(**I4)
    start_ns: Times = attrs.field(**F8)
    end_ns: Times = attrs.field(**F8)
    line: Indices = attrs.field(**I4)
    op: Indices = attrs.field(**I8)
    nbytes: Indices = attrs.field(**I8)
    parent: Indices = attrs.field(**I4)
    message: Indices = attrs.field(**I4)

    def __len__(self) -> int:
        return len(self.track)

    def __repr__(self) -> str:
        return f"<Spans: {len(self)}>"


@attrs.frozen(repr=False)
class Flows(FixedColumns):
    """Arrows, one row each: from row `from_span` of the spans, at `from_ns`, to row `to_span`, at `to_ns`.

    `kind` is a number of `FLOWS`. Each time lies within its span.
    """

    kind: Indices = attrs.field(**I1)
    from_span: Indices = attrs.field(**I4)
    from_ns: Times = attrs.field(**F8)
    to_span: Indices = attrs.field(**I4)
    to_ns: Times = attrs.field(**F8)

    def __len__(self) -> int:
        return len(self.kind)

    def __repr__(self) -> str:
        return f"<Flows: {len(self)}>"


@attrs.frozen(repr=False)
class Counter(FixedColumns):
    """A number over time, of one track: `values[i]`, in `unit`, holds from `times_ns[i]` on until the next time.

    `name` is "bandwidth" (unit "B/s", of links outside PEs and of memories, whose channels count together; times its
    durations it sums to the bytes that the spans moved), "outstanding"
    (requests that a node has sent and that are not answered) or "scratchpad" (bytes that it holds).
    """

    name: str
    unit: str
    track: int
    times_ns: Times = attrs.field(**F8)
    values: Times = attrs.field(**F8)

    def __repr__(self) -> str:
        return f"<Counter {self.name} of track {self.track}: {len(self.values)} values>"


@attrs.frozen(repr=False)
class Timeline:
    """What happened when in a run of `total_ns`.

    `names` are what spans are called, `lines` are kernel lines ("/path/file.py:12") with their text in `sources`.
    `depth` is the finest level in it. `notes` say, a sentence each, what is not in it. `activity` says how busy every
    place was over time, None where nobody looked or no time has passed. `known_ns` are the times from and until which
    it says what happened, None where that is the whole run.

    >>> timeline = kb.run("vector-add", "tiny", {"n": 64}, timeline=True).timeline
    >>> units = [track.node for track in timeline.tracks if track.kind == "unit"]
    >>> units[:2]
    ['sip0.cube0.pe0.pe_dma', 'sip0.cube0.pe0.pe_math']
    >>> {timeline.names[name] for name in timeline.spans.name[timeline.spans.track == 0].tolist()}
    """

    total_ns: float
    tracks: tuple[Track, ...]
    names: tuple[str, ...]
    lines: tuple[str, ...]
    sources: tuple[str, ...]
    spans: Spans
    counters: tuple[Counter, ...]
    flows: Flows
    depth: str = LEVELS[-1]
    notes: tuple[str, ...] = ()
    activity: Activity | None = None
    known_ns: tuple[float, float] | None = None

    def window(self, from_ns: float, to_ns: float) -> Timeline:
        """Return what lies in a window of simulated time, even in part: spans keep their true times.

        Counters begin and end with the window, or with what is known of it. UsageError for a window in which nothing
        of the run lies, or nothing that is known.
        """
        since, until = self.known_ns or (0.0, self.total_ns)
        if not (from_ns < to_ns and from_ns < until and to_ns > since):
            place = "the run, which took" if self.known_ns is None else "what is known of the run, which is from"
            raise UsageError(
                f"a window must lie in {place} {self._extent()}, and not be empty, not "
                f"{format_time(from_ns)}..{format_time(to_ns) if to_ns < math.inf else ''}; give another one."
            )
        from_ns, to_ns = max(from_ns, since), min(to_ns, until)
        spans = self.spans
        inside = (spans.start_ns < to_ns) & (spans.end_ns > from_ns)
        inside |= (spans.start_ns == spans.end_ns) & (spans.start_ns >= from_ns) & (spans.start_ns < to_ns)
        counters = tuple(_cut(counter, from_ns, to_ns) for counter in self.counters)
        activity = None if self.activity is None else self.activity.window(from_ns, to_ns)
        known = None if from_ns <= 0.0 and to_ns >= self.total_ns else (from_ns, to_ns)
        return attrs.evolve(self._of(inside, self.tracks, counters), activity=activity, known_ns=known)

    def level(self, name: str) -> Timeline:
        """Return what is of a level of `LEVELS` or a coarser one, and the places that it lies in.

        UsageError for another name.
        """
        check_level(name)
        wanted = {*LEVELS[: LEVELS.index(name) + 1], PLACE}
        kept = np.array([track.kind in wanted for track in self.tracks], bool)
        counters = tuple(
            counter
            for counter in self.counters
            if kept[counter.track] and _COUNTED_AT.get(counter.name, LEVELS[0]) in wanted
        )
        inside = kept[self.spans.track] if len(self.spans) else np.zeros(0, bool)
        depth = LEVELS[min(LEVELS.index(name), LEVELS.index(self.depth))]
        found = None
        if self.activity is not None and "unit" in wanted:
            found = self.activity.of([_level_of(place) in wanted for place in self.activity.places])
        made = attrs.evolve(self._of(inside, self.tracks, counters), depth=depth, activity=found)
        return made.without_empty_tracks()

    def without_empty_tracks(self) -> Timeline:
        """Return the same without the tracks that nothing lies on or below; the others are numbered anew."""
        used = np.zeros(len(self.tracks), bool)
        used[self.spans.track] = True
        used[[counter.track for counter in self.counters]] = True
        for track in reversed(self.tracks):
            if used[track.id] and track.parent >= 0:
                used[track.parent] = True
        number = np.cumsum(used) - 1
        tracks = tuple(
            attrs.evolve(track, id=int(number[track.id]), parent=int(number[track.parent]) if track.parent >= 0 else -1)
            for track in self.tracks
            if used[track.id]
        )
        counters = tuple(attrs.evolve(each, track=int(number[each.track])) for each in self.counters)
        spans = attrs.evolve(self.spans, track=number[self.spans.track])
        return attrs.evolve(self, tracks=tracks, spans=spans, counters=counters)

    def _of(self, rows: np.ndarray[Any, Any], tracks: Sequence[Track], counters: tuple[Counter, ...]) -> Timeline:
        """Return the timeline with some of the spans only, and the arrows between them."""
        number = np.where(rows, np.cumsum(rows) - 1, -1)
        old, flows = self.spans, self.flows
        parent = old.parent[rows]
        spans = Spans(**{name: getattr(old, name)[rows] for name in column_names(Spans) if name != "parent"},
                      parent=np.where(parent >= 0, number[parent], -1))  # fmt: skip
        kept = rows[flows.from_span] & rows[flows.to_span]
        columns = {name: getattr(flows, name)[kept] for name in column_names(Flows)}
        for end in ("from_span", "to_span"):
            columns[end] = number[columns[end]]
        return attrs.evolve(self, tracks=tuple(tracks), spans=spans, counters=counters, flows=Flows(**columns))

    def _extent(self) -> str:
        """Say how long the run took, or from and until when it is known."""
        return format_time(self.total_ns) if self.known_ns is None else " to ".join(map(format_time, self.known_ns))

    def __repr__(self) -> str:
        return (
            f"<Timeline of {format_time(self.total_ns)}: {len(self.spans)} spans on {len(self.tracks)} tracks, "
            f"{len(self.counters)} counters, {len(self.flows)} flows>"
        )


def _level_of(place: str) -> str:
    """Return the level that a place of an activity is of."""
    return "wire" if "->" in place else "channel" if "#" in place else "unit"


def _cut(counter: Counter, from_ns: float, to_ns: float) -> Counter:
    """Return a counter between two times: it begins with the value that holds then, and ends with 0."""
    times, values = counter.times_ns, counter.values
    inside = (times > from_ns) & (times < to_ns)
    at = int(np.searchsorted(times, from_ns, side="right")) - 1
    before = values[at] if at >= 0 else 0.0
    return attrs.evolve(
        counter,
        times_ns=np.concatenate([[from_ns], times[inside], [to_ns]]),
        values=np.concatenate([[before], values[inside], [0.0]]),
    )
