"""Write a timeline as Chrome trace JSON, which Perfetto and chrome://tracing open.

A process is a place of the first two levels of the machine ("SIP 0 · cube 0"), a thread is a track in it ("PE 0 ·
DMA"), a span is a complete event. Spans that overlap go to further threads of the track; an event is drawn inside
another one only where it is a part of it. Times are microseconds since the run began, to the nanosecond,
as importers take them: rounded, halves up.

Nothing is written that says nothing: no blanks, no empty arguments, no zeros behind a number. A source line is written
as "gemm.py:22", with as much of the file's path as tells it from others; "otherData" has the whole paths.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import IO, Any, Final

import attrs

from kernbench_builtin.pages.timeline import FLOWS, Timeline, at_whole_ns, lanes_of, op_of, whole_ns

NS_PER_US: Final = 1000
_PLACES: Final = 2
_BATCH: Final = 1 << 12


@attrs.frozen
class _Thread:
    """Where a lane of a track is drawn."""

    pid: int
    tid: int
    process: str
    name: str


def export(timeline: Timeline, out: IO[bytes]) -> None:
    """Write a timeline; the bytes depend on it alone."""
    on = lanes_of(timeline.spans).tolist()
    threads = _threads(timeline, on)
    files = short_names({line.rpartition(":")[0] for line in timeline.lines})
    named = {short: file for file, short in files.items()}
    out.write(f'{{"displayTimeUnit":"ns","otherData":{{"files":{_line(named)}}},"traceEvents":[\n'.encode())
    batch: list[str] = []
    separator = ""
    for event in _events(timeline, on, threads, files):
        batch.append(event)
        if len(batch) == _BATCH:
            out.write((separator + ",\n".join(batch)).encode())
            separator = ",\n"
            batch.clear()
    if batch:
        out.write((separator + ",\n".join(batch)).encode())
    out.write(b"\n]}\n")


def short_names(files: Iterable[str]) -> dict[str, str]:
    """Return for each path of a file, in their order, as many of its last parts as no other one ends with."""
    parts = {file: PurePath(file).parts for file in sorted(files)}
    count: dict[tuple[str, ...], int] = {}
    for each in parts.values():
        for most in range(1, len(each) + 1):
            count[each[-most:]] = count.get(each[-most:], 0) + 1
    short = {}
    for file, each in parts.items():
        most = next((most for most in range(1, len(each) + 1) if count[each[-most:]] == 1), 0)
        short[file] = str(PurePath(*each[-most:])) if most else file
    return short


def _events(
    timeline: Timeline, on: list[int], threads: Mapping[tuple[int, int], _Thread], files: Mapping[str, str]
) -> Iterator[str]:
    yield from _names(threads.values())
    heads = {place: f'"pid":{thread.pid},"tid":{thread.tid}' for place, thread in threads.items()}
    parts = (line.rpartition(":") for line in timeline.lines)
    yield from _slices(timeline, on, heads, [f"{files[file]}:{number}" for file, _, number in parts])
    yield from _arrows(timeline, on, heads)
    for counter in timeline.counters:
        thread = threads[counter.track, 0]
        name = json.dumps(f"{thread.name}: {counter.name} ({counter.unit})", ensure_ascii=False)
        for time, value in at_whole_ns(counter):
            yield f'{{"ph":"C","name":{name},"pid":{thread.pid},"ts":{_us(time)},"args":{{"value":{_number(value)}}}}}'


def _threads(timeline: Timeline, on: list[int]) -> dict[tuple[int, int], _Thread]:
    """Number processes and threads in the order of the timeline: by track and lane."""
    count = [0] * len(timeline.tracks)
    shown = {*(counter.track for counter in timeline.counters), *timeline.spans.track.tolist()}
    for track, lane in zip(timeline.spans.track.tolist(), on, strict=True):
        count[track] = max(count[track], lane)
    found: dict[tuple[int, int], _Thread] = {}
    pids: dict[str, int] = {}
    tids: dict[int, int] = {}
    for track in timeline.tracks:
        if track.id not in shown:
            continue
        path = [track]
        while path[0].parent >= 0:
            path.insert(0, timeline.tracks[path[0].parent])
        places = min(_PLACES, max(1, len(path) - 1))
        process = " · ".join(each.name for each in path[:places])
        name = " · ".join(each.name for each in path[places:]) or track.name
        pid = pids.setdefault(process, len(pids) + 1)
        for lane in range(count[track.id] + 1):
            tids[pid] = tids.get(pid, 0) + 1
            found[track.id, lane] = _Thread(pid, tids[pid], process, name + (f" ({lane + 1})" if lane else ""))
    return found


def _names(threads: Iterable[_Thread]) -> Iterator[str]:
    """Return the metadata: each process's name and place once, then each of its threads'."""
    seen: set[int] = set()
    for thread in threads:
        if thread.pid not in seen:
            seen.add(thread.pid)
            whole = {"ph": "M", "pid": thread.pid}
            yield _line({**whole, "name": "process_name", "args": {"name": thread.process}})
            yield _line({**whole, "name": "process_sort_index", "args": {"sort_index": thread.pid}})
        head = {"ph": "M", "pid": thread.pid, "tid": thread.tid}
        yield _line({**head, "name": "thread_name", "args": {"name": thread.name}})
        yield _line({**head, "name": "thread_sort_index", "args": {"sort_index": thread.tid}})


def _slices(
    timeline: Timeline, on: list[int], heads: Mapping[tuple[int, int], str], shown: Sequence[str]
) -> Iterator[str]:
    spans = timeline.spans
    kinds = [json.dumps(track.kind) for track in timeline.tracks]
    names = [json.dumps(name, ensure_ascii=False) for name in timeline.names]
    lines = [json.dumps(line, ensure_ascii=False) for line in shown]
    starts, ends = whole_ns(spans.start_ns), whole_ns(spans.end_ns)
    columns = (getattr(spans, name).tolist() for name in ("track", "name", "line", "op", "nbytes", "message"))
    for lane, start, end, track, name, line, op, nbytes, sent in zip(on, starts, ends, *columns, strict=True):
        arguments = []
        if nbytes:
            arguments.append(f'"bytes":{nbytes}')
        found = op_of(op)
        if found is not None:
            arguments.append(f'"PE":{found[0]},"op":{found[1]}')
        if line >= 0:
            arguments.append(f'"line":{lines[line]}')
        if sent >= 0:
            arguments.append(f'"message":{sent}')
        has = f',"args":{{{",".join(arguments)}}}' if arguments else ""
        yield (
            f'{{"name":{names[name]},"cat":{kinds[track]},"ph":"X",{heads[track, lane]},"ts":{_us(start)},'
            f'"dur":{_us(end - start)}{has}}}'
        )


def _arrows(timeline: Timeline, on: list[int], heads: Mapping[tuple[int, int], str]) -> Iterator[str]:
    """Return the arrows: a beginning and an end of one number, each bound to the event that it lies in."""
    spans, flows = timeline.spans, timeline.flows
    tracks = spans.track.tolist()
    rows = (getattr(flows, name).tolist() for name in ("kind", "from_span", "to_span"))
    times = whole_ns(flows.from_ns), whole_ns(flows.to_ns)
    for number, (kind, begin, end, leaves, comes) in enumerate(zip(*rows, *times, strict=True), 1):
        said = f'"name":"{FLOWS[kind]}","cat":"arrow","id":{number}'
        yield f'{{"ph":"s",{said},{heads[tracks[begin], on[begin]]},"ts":{_us(leaves)}}}'
        yield f'{{"ph":"f","bp":"e",{said},{heads[tracks[end], on[end]]},"ts":{_us(comes)}}}'


def _us(ns: int) -> str:
    """Write digit by digit: a quotient of floats would make touching events overlap by a rounding error."""
    whole, rest = divmod(ns, NS_PER_US)
    return f"{whole}.{rest:03d}".rstrip("0") if rest else str(whole)


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() else repr(value)


def _line(event: Mapping[str, Any]) -> str:
    return json.dumps(event, separators=(",", ":"), ensure_ascii=False)
