"""What happened when: every track of the timeline with its spans and arrows, and time per line of the kernels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from kernbench_builtin.explain.critical_path import WITHOUT_OP
from kernbench_builtin.pages.report.busy_bins import busy_bins
from kernbench_builtin.pages.report.machine_section import launches_of
from kernbench_builtin.pages.report.page import asset, environment
from kernbench_builtin.pages.report.run_page import RunPage
from kernbench_builtin.pages.report.section import Section
from kernbench_builtin.pages.report.span_lanes import lanes
from kernbench_builtin.pages.timeline import LEVELS, PLACE

if TYPE_CHECKING:
    from kernbench_builtin.pages.timeline import Timeline

#: Spans that a page holds one by one; of more, the finest levels stand as use over time alone.
MOST_SPANS: Final = 2_500_000
_ISSUES: Final = 1 << 32


def _html(page: RunPage) -> str:
    timeline = page.timeline
    return environment().get_template("timeline.html").render(
        there=timeline is not None,
        left_out=None if timeline is None else _left_out(timeline),
        notes=() if timeline is None else timeline.notes,
        kernels=timeline is not None and LEVELS.index(timeline.depth) >= LEVELS.index("kernel"),
        known=None if timeline is None else timeline.known_ns,
        explained=page.explain is not None,
        goes_on=page.goes_on,
    )  # fmt: skip


def _data(page: RunPage) -> Mapping[str, Any] | None:
    if page.timeline is None:
        return None
    kept = shown(page.timeline)
    number = {(track.node, track.name, track.kind): track.id for track in page.timeline.tracks}
    return {
        "total": page.timeline.total_ns,
        "tick": tick_of(page.timeline.total_ns),
        "names": kept.names,
        "tracks": [[track.name, track.parent, track.kind, track.node] for track in page.timeline.tracks],
        "spans": _spans(kept, [number[track.node, track.name, track.kind] for track in kept.tracks]),
        "flows": _flows(kept, page.timeline.total_ns),
        "use": busy_bins(page.timeline, LEVELS),
        "lines": list(_lines(kept, page.sources)),
        "files": {name: text.splitlines() for name, text in page.sources.items()},
        "path": list(_path(page)),
        "words": WITHOUT_OP,
        "opens": _opens(page),
    }


def shown(timeline: Timeline) -> Timeline:
    """Return the timeline down to the finest level of which a page can hold all spans."""
    levels = LEVELS[: LEVELS.index(timeline.depth) + 1]
    counts = dict.fromkeys((*LEVELS, PLACE), 0)
    spans = np.bincount(timeline.spans.track, minlength=len(timeline.tracks))
    for track in timeline.tracks:
        counts[track.kind] += int(spans[track.id])
    for last in reversed(levels):
        if sum(counts[level] for level in LEVELS[: LEVELS.index(last) + 1]) <= MOST_SPANS or last == levels[0]:
            return timeline if last == timeline.depth else timeline.level(last)
    return timeline


def _left_out(timeline: Timeline) -> str | None:
    """Say which levels stand as use over time alone."""
    kept = shown(timeline)
    gone = LEVELS[LEVELS.index(kept.depth) + 1 : LEVELS.index(timeline.depth) + 1]
    return " and ".join(f"{level}s" for level in gone) or None


def tick_of(total: float) -> float:
    """Return the length in ns of what times are counted in: a 64th, or more where 32 bits would not reach."""
    return max(1 / 64, total / (2**32 - 2))


def _ticks(times: np.ndarray[Any, Any], total: float) -> np.ndarray[Any, Any]:
    ticks: np.ndarray[Any, Any] = np.rint(np.clip(times, 0.0, total) / tick_of(total)).astype(np.int64)
    return ticks


def _spans(timeline: Timeline, numbers: list[int]) -> Mapping[str, Any]:
    """Return the columns of the spans, as small as they can be: starts and ops as steps from the span before."""
    spans, total = timeline.spans, timeline.total_ns
    start, end = _ticks(spans.start_ns, total), _ticks(spans.end_ns, total)
    track = np.array(numbers, np.int32)[spans.track] if len(spans) else np.zeros(0, np.int32)
    issue = np.where(spans.op >= 0, spans.op % _ISSUES, -1)
    return {
        "track": track,
        "start": _steps(start, track).astype(np.uint32),
        "length": (end - start).astype(np.uint32),
        "inner": _ticks(_inner_time(timeline), total).astype(np.uint32),
        "name": _small(spans.name),
        "line": _small(spans.line),
        "pe": _small(np.where(spans.op >= 0, spans.op // _ISSUES, -1)),
        "issue": _steps(issue, track).astype(np.int32),
        "bytes": np.minimum(spans.nbytes, 2**31 - 1).astype(np.int32),
        "message": spans.message.astype(np.int32),
        "lane": lanes(spans.track, spans.start_ns, spans.end_ns, spans.parent),
    }


def _steps(numbers: np.ndarray[Any, Any], track: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return each number less the one before on its track."""
    steps = np.diff(numbers, prepend=0)
    first = np.flatnonzero(np.diff(track, prepend=-1))
    steps[first] = numbers[first]
    return steps


def _small(numbers: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return numbers from -1 on in 16 bits where they fit."""
    return numbers.astype(np.int16 if not len(numbers) or numbers.max() < 2**15 else np.int32)


def _inner_time(timeline: Timeline) -> np.ndarray[Any, Any]:
    """Return, of each span of a kernel line, the time in ns that is of lines within it; 0 for others."""
    spans = timeline.spans
    time = np.zeros(len(spans))
    inner = np.flatnonzero((spans.line >= 0) & (spans.parent >= 0))
    np.add.at(time, spans.parent[inner], (spans.end_ns - spans.start_ns)[inner])
    kept: np.ndarray[Any, Any] = np.where(spans.line >= 0, time, 0.0)
    return kept


def _flows(timeline: Timeline, total: float) -> Mapping[str, Any]:
    flows = timeline.flows
    return {
        "kind": flows.kind.astype(np.int8),
        "from": flows.from_span.astype(np.int32),
        "to": flows.to_span.astype(np.int32),
        "left": _ticks(flows.from_ns, total).astype(np.uint32),
        "came": _ticks(flows.to_ns, total).astype(np.uint32),
    }


def _lines(timeline: Timeline, sources: Mapping[str, str]) -> Iterator[Mapping[str, Any]]:
    """Yield the kernel lines: file, number, what they say."""
    for line, text in zip(timeline.lines, timeline.sources, strict=True):
        file, _, number = line.rpartition(":")
        yield {"file": file, "number": int(number) if number.isdigit() else 0, "text": text}


def _opens(page: RunPage) -> Mapping[str, Any] | None:
    """Return the launch that the page opens on, the longest: its number from 0, name, begin and end in ns.

    Of a run that goes on it is the latest part, where no more is known. `pe` is the PE that ended
    last, of which the verdict tells. Beside other runs, `beside` is how long the longest such launch of any of them is.
    """
    known = None if page.timeline is None else page.timeline.known_ns
    if page.goes_on:
        return None if known is None else {"name": "The latest part", "from": known[0], "to": known[1]}
    launches = launches_of(page)
    number, found = max(enumerate(launches), key=lambda each: each[1]["to"] - each[1]["from"], default=(0, None))
    if found is None:
        return None
    told = {"name": f"Launch {found['name']}", "from": found["from"], "to": found["to"]}
    last = page.result["launches"][number].get("last")
    return {"launch": number, "pe": last, "beside": page.launch_scale_ns, **told}


def _path(page: RunPage) -> Iterator[Mapping[str, Any]]:
    """Yield the segments of the critical paths of all launches, in short."""
    for number, launch in enumerate((page.explain or {}).get("launches", ()), start=1):
        for each in launch["path"]:
            yield {"launch": number, **{name: value for name, value in each.items() if name != "kind"}}


TIMELINE: Final = Section(
    "Timeline",
    20,
    _html,
    _data,
    tuple(asset(f"{name}.js") for name in ("window", "spans", "source", "paint", "flame_tree", "flame", "timeline")),
    asset("timeline.css"),
)
