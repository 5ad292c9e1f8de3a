"""Write a timeline in Perfetto's own format: a protobuf of packets, with tracks that nest as the machine does.

Names, source lines and the names of arguments are interned in the first packet. Times are whole nanoseconds, rounded to
the nearest one, halves up: one rule for all, so that what came before or lay inside still does, though a slice may be
left without length. Spans that overlap go to tracks of one name beside each other, which Perfetto draws as one.

Source of names and numbers: the published protos, protos/perfetto/trace of github.com/google/perfetto: trace_packet,
track_event/{track_event,track_descriptor,counter_descriptor,debug_annotation,source_location}, interned_data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import IO, Any, Final, TypeAlias

import numpy as np

from kernbench_builtin.pages.exporters.protobuf import double, fixed64, integer, message, text, varint
from kernbench_builtin.pages.timeline import LEVELS, Counter, Timeline, at_whole_ns, lanes_of, op_of, whole_ns

_Numbers: TypeAlias = np.ndarray[Any, Any]

# Numbers of fields, by the message that they are of.
_PACKET: Final = 1
_TIMESTAMP, _SEQUENCE, _EVENT, _INTERNED, _FLAGS, _DESCRIPTOR = 8, 10, 11, 12, 13, 60
_ARGUMENT, _TYPE, _NAME, _TRACK, _VALUE, _LINE, _DOUBLE = 4, 9, 10, 11, 30, 34, 44
_LEAVES, _COMES, _CORRELATION = 47, 48, 52
_UUID, _CALLED, _PARENT, _COUNTS, _ORDERING, _RANK = 1, 2, 5, 8, 11, 12
_UNIT, _UNIT_NAME = 3, 6
_IID, _TEXT, _LINE_NUMBER = 1, 2, 4
_NAMES, _ARGUMENTS, _LINES = 2, 3, 4
# Values of enums.
_CLEARED, _NEEDED = 1, 2
_BEGIN, _END, _COUNTER = 1, 2, 4
_EXPLICIT: Final = 3
_BYTES: Final = 3

ROOT: Final = "run"
"""The track that all others are below."""

ARGUMENTS: Final = ("bytes", "PE", "op")
"""What a slice has beside its name, its line and, as its correlation id, its message, as far as it has them."""

_OURS: Final = integer(_SEQUENCE, 1)
_BEGINS: Final = integer(_TYPE, _BEGIN)
_EVENT_TAG: Final = varint(_EVENT << 3 | 2)
_TIME_TAG: Final = varint(_TIMESTAMP << 3)
_PACKET_TAG: Final = varint(_PACKET << 3 | 2)
_INTERNS: Final = _OURS + integer(_FLAGS, _NEEDED)
_BATCH: Final = 1 << 12


def export(timeline: Timeline, out: IO[bytes]) -> None:
    """Write a timeline; the bytes depend on it alone."""
    out.write(message(_PACKET, _interned(timeline)))
    on = lanes_of(timeline.spans)
    tracks = _Tracks(timeline, on)
    for descriptor in tracks.descriptors():
        out.write(message(_PACKET, descriptor + _OURS))
    batch: list[bytes] = []
    for packet in _slices(timeline, on, tracks):
        batch.append(packet)
        if len(batch) == _BATCH:
            out.write(b"".join(batch))
            batch.clear()
    out.write(b"".join(batch))
    for number, counter in enumerate(timeline.counters):
        out.write(b"".join(_values(counter, tracks.of_counter(number))))


def _interned(timeline: Timeline) -> bytes:
    """Return the packet that gives names and lines the numbers, from 1, by which all others refer to them."""
    data = [
        message(field, integer(_IID, iid) + text(_TEXT, name))
        for field, names in ((_NAMES, timeline.names), (_ARGUMENTS, ARGUMENTS))
        for iid, name in enumerate(names, 1)
    ]
    for iid, line in enumerate(timeline.lines, 1):
        file, _, number = line.rpartition(":")
        data.append(message(_LINES, integer(_IID, iid) + text(_TEXT, file) + integer(_LINE_NUMBER, int(number))))
    return _OURS + integer(_FLAGS, _CLEARED) + message(_INTERNED, b"".join(data))


class _Tracks:
    """Number the tracks of Perfetto from 1: those of the timeline, their further lanes, counters, the root."""

    def __init__(self, timeline: Timeline, on: _Numbers) -> None:
        self._timeline = timeline
        further = np.zeros(len(timeline.tracks), np.int64)
        np.maximum.at(further, timeline.spans.track, on)
        self._before = [len(timeline.tracks), *(len(timeline.tracks) + np.cumsum(further)).tolist()]

    def of(self, track: int, lane: int = 0) -> int:
        """Return the number of a lane of a track."""
        return int(self._before[track]) + lane if lane else track + 1

    def of_counter(self, number: int) -> int:
        """Return the number of a counter."""
        return int(self._before[-1]) + number + 1

    def descriptors(self) -> Iterator[bytes]:
        """Return what describes each: its name, and where it stands, in the order of the timeline."""
        # tracks without one above them would stand in the order of their names
        root = self.of_counter(len(self._timeline.counters))
        yield message(_DESCRIPTOR, integer(_UUID, root) + text(_CALLED, ROOT) + integer(_ORDERING, _EXPLICIT))
        for track in self._timeline.tracks:
            below = integer(_PARENT, track.parent + 1 if track.parent >= 0 else root)
            said = below + text(_CALLED, track.name) + integer(_ORDERING, _EXPLICIT) + integer(_RANK, track.id + 1)
            for lane in range(int(self._before[track.id + 1] - self._before[track.id]) + 1):
                yield message(_DESCRIPTOR, integer(_UUID, self.of(track.id, lane)) + said)
        for number, counter in enumerate(self._timeline.counters):
            unit = integer(_UNIT, _BYTES) if counter.unit == "B" else text(_UNIT_NAME, counter.unit)
            said = integer(_PARENT, counter.track + 1) + text(_CALLED, counter.name) + message(_COUNTS, unit)
            yield message(_DESCRIPTOR, integer(_UUID, self.of_counter(number)) + said)


def _slices(timeline: Timeline, on: _Numbers, tracks: _Tracks) -> Iterator[bytes]:
    """Return the packets of all slices, lane by lane: what begins inside another one also ends inside it."""
    spans = timeline.spans
    starts, ends, until = whole_ns(spans.start_ns), whole_ns(spans.end_ns), spans.end_ns.tolist()
    leaving, coming, ending = _arrows(timeline)
    order = np.lexsort((np.arange(len(spans)), on, spans.track))
    changes = np.flatnonzero(np.diff(spans.track[order]) | np.diff(on[order])) + 1
    for rows in np.split(order, changes) if len(spans) else ():
        track = int(spans.track[rows[0]])
        uuid = integer(_TRACK, tracks.of(track, int(on[rows[0]])))
        over = integer(_TYPE, _END) + uuid
        end = message(_EVENT, over) + _OURS
        open_rows: list[int] = []

        def ended(row: int, over: bytes = over, end: bytes = end) -> bytes:
            arrows = ending.get(row)
            return _packet(ends[row], end if arrows is None else message(_EVENT, over + arrows) + _OURS)

        for row, start, content in zip(
            rows.tolist(), spans.start_ns[rows].tolist(), _contents(timeline, rows, track), strict=True
        ):
            while open_rows and until[open_rows[-1]] <= start:
                yield ended(open_rows.pop())
            event = b"".join((_BEGINS, uuid, content, leaving.get(row, b""), coming.get(row, b"")))
            yield _packet(starts[row], b"".join((_EVENT_TAG, varint(len(event)), event, _INTERNS)))
            open_rows.append(row)
        while open_rows:
            yield ended(open_rows.pop())


def _contents(timeline: Timeline, rows: _Numbers, track: int) -> Iterator[bytes]:
    """Return, of each row of a track, its name, line and arguments; on wires and channels the message tells the op."""
    spans = timeline.spans
    of_op = timeline.tracks[track].kind in LEVELS[: LEVELS.index("unit") + 1]
    known: dict[tuple[int, int, int], bytes] = {}
    columns = (getattr(spans, name)[rows].tolist() for name in ("name", "line", "nbytes", "op", "message"))
    for name, line, nbytes, op, sent in zip(*columns, strict=True):
        content = known.get((name, line, nbytes))
        if content is None:
            content = integer(_NAME, name + 1) + (integer(_LINE, line + 1) if line >= 0 else b"")
            content = known[name, line, nbytes] = content + (_argument(0, nbytes) if nbytes else b"")
        if sent >= 0:
            content += integer(_CORRELATION, sent)
        found = op_of(op) if of_op else None
        yield content if found is None else content + _argument(1, found[0]) + _argument(2, found[1])


def _argument(which: int, number: int) -> bytes:
    return message(_ARGUMENT, integer(_IID, which + 1) + integer(3, number))


def _arrows(timeline: Timeline) -> tuple[Mapping[int, bytes], Mapping[int, bytes], Mapping[int, bytes]]:
    """Return, by row, the numbers of the arrows that leave there, that come to its beginning, and to its end.

    Perfetto takes events as they come: an arrow that leaves when the slice that it leads to has begun comes to its end.
    """
    flows, starts = timeline.flows, timeline.spans.start_ns
    leaving: dict[int, bytes] = {}
    coming: dict[int, bytes] = {}
    ending: dict[int, bytes] = {}
    late = starts[flows.to_span] <= starts[flows.from_span]
    rows = zip(flows.from_span.tolist(), flows.to_span.tolist(), late.tolist(), strict=True)
    for number, (begin, end, is_late) in enumerate(rows, 1):
        comes = ending if is_late else coming
        leaving[begin] = leaving.get(begin, b"") + fixed64(_LEAVES, number)
        comes[end] = comes.get(end, b"") + fixed64(_COMES, number)
    return leaving, coming, ending


def _values(counter: Counter, uuid: int) -> Iterator[bytes]:
    """Return the packets of a counter's values."""
    head = integer(_TYPE, _COUNTER) + integer(_TRACK, uuid)
    for time, value in at_whole_ns(counter):
        shown = integer(_VALUE, int(value)) if value == int(value) else double(_DOUBLE, value)
        yield _packet(time, message(_EVENT, head + shown) + _OURS)


def _packet(time: int, rest: bytes) -> bytes:
    stamp = varint(time)
    return b"".join((_PACKET_TAG, varint(len(_TIME_TAG) + len(stamp) + len(rest)), _TIME_TAG, stamp, rest))
