"""A trace is Chrome JSON: numeric times, nothing nested that is not contained, arrows that find their events."""

from __future__ import annotations

import io
import json
from collections import Counter as Tally
from collections import defaultdict
from decimal import Decimal
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kernbench_builtin.pages.exporters.chrome_trace import export, short_names
from kernbench_builtin.pages.timeline import Timeline, Track, at_whole_ns
from kernbench_builtin.pages.timeline.span_rows import SpanRows
from kernbench_builtin.pages.timeline.timeline import FLOWS, Counter, Flows, op_of
from tests.builtin.exporters.rounding import near
from tests.drawn_timelines import timelines


def exported(timeline: Timeline) -> list[dict[str, Any]]:
    """Export and read back, with times as exact decimals and the whole paths of lines."""
    out = io.BytesIO()
    export(timeline, out)
    found = json.loads(out.getvalue(), parse_float=Decimal)
    assert found["displayTimeUnit"] == "ns"
    events: list[dict[str, Any]] = found["traceEvents"]
    files = found["otherData"]["files"]
    for event in events:
        line = event.get("args", {}).get("line")
        if line is not None:
            short, _, number = line.rpartition(":")
            event["args"]["line"] = f"{files[short]}:{number}"
    return events


def threads(events: list[dict[str, Any]]) -> dict[tuple[int, int], tuple[str, str]]:
    """Return (process name, thread name) by (pid, tid)."""
    processes = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    return {
        (e["pid"], e["tid"]): (processes[e["pid"]], e["args"]["name"]) for e in events if e["name"] == "thread_name"
    }


def ns(microseconds: Decimal | int) -> int:
    whole = microseconds * 1000
    assert whole == int(whole)
    return int(whole)


@given(timelines())
def test_every_event_is_what_the_timeline_says(timeline: Timeline) -> None:
    """Spans with all that they have, and values of counters."""
    events, spans = exported(timeline), timeline.spans
    found = Tally(
        (e["name"], e["cat"], ns(e["ts"]), ns(e["ts"] + e["dur"]), tuple(sorted(e.get("args", {}).items())))
        for e in events
        if e["ph"] == "X"
    )
    wanted: Tally[Any] = Tally()
    for row in range(len(spans)):
        op, arguments = op_of(spans.op[row]), {}
        if op is not None:
            arguments.update({"PE": op[0], "op": op[1]})
        if spans.nbytes[row]:
            arguments["bytes"] = int(spans.nbytes[row])
        if spans.line[row] >= 0:
            arguments["line"] = timeline.lines[spans.line[row]]
        if spans.message[row] >= 0:
            arguments["message"] = int(spans.message[row])
        wanted[
            timeline.names[spans.name[row]], timeline.tracks[spans.track[row]].kind, near(spans.start_ns[row]),
            near(spans.end_ns[row]), tuple(sorted(arguments.items())),
        ] += 1  # fmt: skip
    assert found == wanted
    counted = sorted((ns(e["ts"]), float(e["args"]["value"])) for e in events if e["ph"] == "C")
    assert counted == sorted(step for each in timeline.counters for step in at_whole_ns(each))


@given(timelines())
def test_events_of_a_thread_are_apart_or_contained(timeline: Timeline) -> None:
    """As importers ask: an event that begins in another one ends in it."""
    by_thread = defaultdict(list)
    for event in exported(timeline):
        if event["ph"] == "X":
            by_thread[event["pid"], event["tid"]].append((ns(event["ts"]), ns(event["ts"] + event["dur"])))
    for events in by_thread.values():
        for at, (start, end) in enumerate(events):
            for begin, until in events[at + 1 :]:
                assert begin >= end or (start <= begin and until <= end)


@given(timelines())
def test_arrows_lie_in_their_events(timeline: Timeline) -> None:
    """One beginning and one end for each number, on the thread of an event that is under way then."""
    events = exported(timeline)
    slices = [e for e in events if e["ph"] == "X"]
    ends = {phase: {e["id"]: e for e in events if e["ph"] == phase} for phase in "sf"}
    assert set(ends["s"]) == set(ends["f"]) and len(ends["s"]) == len(timeline.flows)
    assert Tally(e["name"] for e in ends["s"].values()) == Tally(FLOWS[kind] for kind in timeline.flows.kind)
    for arrow in (e for each in ends.values() for e in each.values()):
        assert arrow.get("bp") == ("e" if arrow["ph"] == "f" else None)
        assert any(
            (e["pid"], e["tid"]) == (arrow["pid"], arrow["tid"]) and e["ts"] <= arrow["ts"] <= e["ts"] + e["dur"]
            for e in slices
        )


def test_places_are_processes_and_tracks_are_threads() -> None:
    """In the order of the timeline; what overlaps goes to a thread beside."""
    tracks = (
        Track(0, -1, "host", "host"), Track(1, -1, "SIP 0", "place"), Track(2, 1, "cube 0", "place"),
        Track(3, 2, "PE 0", "place"), Track(4, 3, "DMA", "unit"), Track(5, 2, "PE 1", "place"),
        Track(6, 5, "DMA", "unit"),
    )  # fmt: skip
    rows = SpanRows()
    for track, start, end in ((0, 0, 9), (4, 1, 5), (4, 2, 6), (4, 5, 7), (6, 1, 2)):
        rows.add(track, rows.name("op"), start, end)
    spans, _ = rows.finish(list(range(7)))  # type: ignore[arg-type]
    events = exported(Timeline(9.0, tracks, ("op",), (), (), spans, (), Flows([], [], [], [], [])))  # type: ignore[arg-type]
    assert threads(events) == {
        (1, 1): ("host", "host"),
        (2, 1): ("SIP 0 · cube 0", "PE 0 · DMA"),
        (2, 2): ("SIP 0 · cube 0", "PE 0 · DMA (2)"),
        (2, 3): ("SIP 0 · cube 0", "PE 1 · DMA"),
    }
    inside = [(e["tid"], ns(e["ts"])) for e in events if e["ph"] == "X" and e["pid"] == 2]
    assert inside == [(1, 1), (2, 2), (1, 5), (3, 1)]
    sorts = [(e["name"], e["pid"], e["args"]["sort_index"]) for e in events if e["name"] == "process_sort_index"]
    assert sorts == [("process_sort_index", 1, 1), ("process_sort_index", 2, 2)]


def test_what_says_nothing_is_not_written() -> None:
    """The bytes of one slice, one arrow and one value: no blanks, no empty arguments, no zeros at the end."""
    rows = SpanRows()
    rows.add(0, rows.name("op"), 1000, 1250)
    rows.add(0, rows.name("op"), 2500, 2500, line=1, nbytes=64)
    spans, _ = rows.finish(list(range(1)))  # type: ignore[arg-type]
    arrow = Flows(*(np.array(each) for each in ([0], [0], [1250.0], [1], [2500.0])))
    counters = (Counter("bandwidth", "B/s", 0, np.array([0.0, 1.0]), np.array([1.5, 2e9])),)
    lines = ("/a/b/k.py:3", "/a/c/k.py:12")
    out = io.BytesIO()
    export(Timeline(2500.0, (Track(0, -1, "DMA", "unit"),), ("op",), lines, ("", ""), spans, counters, arrow), out)
    assert out.getvalue().decode().splitlines() == [
        '{"displayTimeUnit":"ns","otherData":{"files":{"b/k.py":"/a/b/k.py","c/k.py":"/a/c/k.py"}},"traceEvents":[',
        '{"ph":"M","pid":1,"name":"process_name","args":{"name":"DMA"}},',
        '{"ph":"M","pid":1,"name":"process_sort_index","args":{"sort_index":1}},',
        '{"ph":"M","pid":1,"tid":1,"name":"thread_name","args":{"name":"DMA"}},',
        '{"ph":"M","pid":1,"tid":1,"name":"thread_sort_index","args":{"sort_index":1}},',
        '{"name":"op","cat":"unit","ph":"X","pid":1,"tid":1,"ts":1,"dur":0.25},',
        '{"name":"op","cat":"unit","ph":"X","pid":1,"tid":1,"ts":2.5,"dur":0,"args":{"bytes":64,"line":"c/k.py:12"}},',
        f'{{"ph":"s","name":"{FLOWS[0]}","cat":"arrow","id":1,"pid":1,"tid":1,"ts":1.25}},',
        f'{{"ph":"f","bp":"e","name":"{FLOWS[0]}","cat":"arrow","id":1,"pid":1,"tid":1,"ts":2.5}},',
        '{"ph":"C","name":"DMA: bandwidth (B/s)","pid":1,"ts":0,"args":{"value":1.5}},',
        '{"ph":"C","name":"DMA: bandwidth (B/s)","pid":1,"ts":0.001,"args":{"value":2000000000}}',
        "]}",
    ]


@given(st.lists(st.lists(st.sampled_from("abk"), min_size=1, max_size=4), min_size=1, unique_by=tuple))
def test_files_are_called_as_short_as_tells_them_apart(paths: list[list[str]]) -> None:
    """Each name is the end of one path alone, and one part less is that of several; what others end with is whole."""
    files = ["/" + "/".join(path) for path in paths]
    found = short_names(files)
    assert set(found) == set(files) and len({*found.values()}) == len(files)
    for file, short in found.items():
        parts = short.split("/")
        assert file.endswith(short)
        ending = [other for other in files if other.split("/")[-len(parts) :] == parts]
        less = parts[1:]
        assert short == file or ending == [file]
        assert not less or short == file or len([f for f in files if f.split("/")[-len(less) :] == less]) > 1


def test_names_of_what_is_no_file_stay() -> None:
    """A cell of a notebook, a path of one part."""
    assert short_names(["<stdin>", "k.py", "/a/k.py"]) == {"/a/k.py": "a/k.py", "<stdin>": "<stdin>", "k.py": "k.py"}
