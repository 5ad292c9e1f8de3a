"""Perfetto's own format, read back with the published protos: every packet, against the timeline."""

from __future__ import annotations

import io
from collections import Counter as Tally
from collections import defaultdict
from typing import Any

import pytest
from hypothesis import given

from kernbench_builtin.pages.exporters.perfetto import ROOT, export
from kernbench_builtin.pages.timeline import Timeline, at_whole_ns
from kernbench_builtin.pages.timeline.timeline import op_of
from tests.builtin.exporters.rounding import near
from tests.drawn_timelines import timelines

unknown = pytest.importorskip("google.protobuf.unknown_fields")
protos = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")

BEGIN, END, COUNTER = 1, 2, 4


class Reader:
    """Read a file as any importer of the protos would: interned data first, then tracks, then events by track."""

    def __init__(self, timeline: Timeline) -> None:
        out = io.BytesIO()
        export(timeline, out)
        self.trace = protos.Trace.FromString(out.getvalue())
        assert self.trace.SerializeToString(deterministic=True)
        first = self.trace.packet[0]
        assert first.sequence_flags == 1
        data = first.interned_data
        self.names = {each.iid: each.name for each in data.event_names}
        self.arguments = {each.iid: each.name for each in data.debug_annotation_names}
        self.lines = {each.iid: f"{each.file_name}:{each.line_number}" for each in data.source_locations}
        descriptors = [p.track_descriptor for p in self.trace.packet if p.HasField("track_descriptor")]
        self.tracks = {each.uuid: each for each in descriptors}
        assert len(self.tracks) == len(descriptors)
        self.slices: list[tuple[Any, ...]] = []
        self.comes: dict[int, tuple[Any, ...]] = {}
        self.left: dict[int, tuple[Any, ...]] = {}
        self.at: dict[int, int] = {}
        self.counted: dict[int, list[tuple[int, float]]] = defaultdict(list)
        under_way: dict[int, list[tuple[int, Any]]] = defaultdict(list)
        last: dict[int, int] = defaultdict(int)
        for packet in self.trace.packet[1:]:
            assert packet.trusted_packet_sequence_id == 1
            assert all(not len(unknown.UnknownFieldSet(part)) for part in (packet, packet.track_event))
            if packet.HasField("track_event"):
                event = packet.track_event
                assert packet.timestamp >= last[event.track_uuid]
                last[event.track_uuid] = packet.timestamp
                self._event(packet, event, under_way[event.track_uuid])
        assert not any(under_way.values())

    def _event(self, packet: Any, event: Any, under_way: list[tuple[int, Any]]) -> None:
        if event.type == COUNTER:
            value = event.counter_value if event.HasField("counter_value") else event.double_counter_value
            self.counted[event.track_uuid].append((packet.timestamp, value))
        elif event.type == BEGIN:
            assert packet.sequence_flags == 2
            under_way.append((packet.timestamp, event))
        else:
            assert event.type == END
            begin, opened = under_way.pop()
            found = self._said(opened, begin, packet.timestamp)
            self.slices.append(found)
            for number in opened.flow_ids:
                assert number not in self.left
                self.left[number] = found
            for number in (*opened.terminating_flow_ids, *event.terminating_flow_ids):
                assert number not in self.comes
                self.comes[number] = found
                self.at[number] = packet.timestamp if number in event.terminating_flow_ids else begin

    def _said(self, event: Any, begin: int, end: int) -> tuple[Any, ...]:
        arguments = {self.arguments[each.name_iid]: each.uint_value for each in event.debug_annotations}
        line = self.lines[event.source_location_iid] if event.source_location_iid else None
        message = event.correlation_id if event.HasField("correlation_id") else None
        name, given = self.names[event.name_iid], tuple(arguments.items())
        return self.path(event.track_uuid), name, begin, end, line, message, given

    def path(self, uuid: int) -> tuple[str, ...]:
        """Return the names of a track and of those above it."""
        track = self.tracks[uuid]
        return (*(self.path(track.parent_uuid) if track.HasField("parent_uuid") else ()), track.name)


def path_of(timeline: Timeline, track: int) -> tuple[str, ...]:
    found = timeline.tracks[track]
    return (*(path_of(timeline, found.parent) if found.parent >= 0 else (ROOT,)), found.name)


def said_of(timeline: Timeline, row: int) -> tuple[Any, ...]:
    """Say of a span of a timeline what `Reader` says of a slice."""
    spans = timeline.spans
    track, op = timeline.tracks[spans.track[row]], op_of(spans.op[row])
    arguments = [("bytes", int(spans.nbytes[row]))] if spans.nbytes[row] else []
    if op is not None and track.kind in ("host", "launch", "kernel", "unit"):
        arguments += [("PE", op[0]), ("op", op[1])]
    return (
        path_of(timeline, track.id),
        timeline.names[spans.name[row]],
        near(spans.start_ns[row]),
        near(spans.end_ns[row]),
        timeline.lines[spans.line[row]] if spans.line[row] >= 0 else None,
        int(spans.message[row]) if spans.message[row] >= 0 else None,
        tuple(arguments),
    )


@given(timelines())
def test_every_packet_is_what_the_timeline_says(timeline: Timeline) -> None:
    """Slices, which nest, with all that they have; arrows; values of counters; tracks in their order."""
    reader = Reader(timeline)
    spans, flows = timeline.spans, timeline.flows
    assert Tally(reader.slices) == Tally(said_of(timeline, row) for row in range(len(spans)))
    ends = zip(flows.from_span.tolist(), flows.to_span.tolist(), strict=True)
    assert [(reader.left[number], reader.comes[number]) for number in sorted(reader.left)] == [
        (said_of(timeline, begin), said_of(timeline, end)) for begin, end in ends
    ]
    assert len(reader.left) == len(reader.comes) == len(flows)
    for number, slice_ in reader.left.items():
        # begun before it is over, as Perfetto takes them in: where that can be at all
        assert reader.at[number] >= slice_[2] or reader.comes[number][3] < slice_[2]
    assert Tally(
        (reader.path(uuid), reader.tracks[uuid].counter.unit_name or "B", tuple(values))
        for uuid, values in reader.counted.items()
    ) == Tally(
        ((*path_of(timeline, each.track), each.name), each.unit, tuple(at_whole_ns(each)))
        for each in timeline.counters
    )


@given(timelines())
def test_tracks_stand_in_order(timeline: Timeline) -> None:
    """Those of one parent are ranked as in the timeline; lanes of one track have one name, place and rank."""
    reader = Reader(timeline)
    by_rank: dict[int, set[tuple[str, ...]]] = defaultdict(set)
    for uuid, track in reader.tracks.items():
        if not track.HasField("counter") and track.name != ROOT:
            assert reader.tracks[track.parent_uuid].child_ordering == 3
            by_rank[track.sibling_order_rank].add(reader.path(uuid))
    assert dict(by_rank) == {track.id + 1: {path_of(timeline, track.id)} for track in timeline.tracks}


@given(timelines())
def test_the_bytes_depend_on_the_timeline_alone(timeline: Timeline) -> None:
    """Written twice, they are the same."""
    first, second = io.BytesIO(), io.BytesIO()
    export(timeline, first)
    export(timeline, second)
    assert first.getvalue() == second.getvalue()
