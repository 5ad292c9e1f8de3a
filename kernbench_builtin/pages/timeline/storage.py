"""A timeline as a file: an `.npz` of plain arrays, without pickles, that says which form it has."""

from __future__ import annotations

import json
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any, Final

import attrs
import numpy as np

from kernbench_builtin.machines.figures.columns_file import write_arrays
from kernbench_builtin.pages.timeline.activity import Activity
from kernbench_builtin.pages.timeline.columns import column_names, column_type
from kernbench_builtin.pages.timeline.timeline import Counter, Flows, Spans, Timeline, Track
from kernbench_core.errors import UsageError
from kernbench_core.process.whole_files import whole_file
from kernbench_core.wording import brief, schema_hint

SCHEMA: Final = 1
"""The form of the file; a newer one is refused."""

_HEAD: Final = "head"


def save(timeline: Timeline, path: str | Path | IO[bytes]) -> None:
    """Write a timeline to a file, whole or not at all, or to what is open; equal timelines give equal bytes."""
    if isinstance(path, str | Path):
        with whole_file(Path(path)) as out:
            save(timeline, out)
        return
    counters = timeline.counters
    head = {
        "schema": SCHEMA,
        "total_ns": timeline.total_ns,
        "depth": timeline.depth,
        "names": timeline.names,
        "lines": timeline.lines,
        "sources": timeline.sources,
        "notes": timeline.notes,
        "known_ns": timeline.known_ns,
        "tracks": [[track.parent, track.name, track.kind, track.node] for track in timeline.tracks],
        "places": None if timeline.activity is None else timeline.activity.places,
        "counters": [[each.name, each.unit, each.track, len(each.values)] for each in counters],
    }
    arrays: dict[str, Any] = {_HEAD: np.frombuffer(json.dumps(head, ensure_ascii=False).encode(), np.uint8)}
    tables: list[Any] = [timeline.spans, timeline.flows]
    tables += [timeline.activity] if timeline.activity is not None else []
    for table in tables:
        for name in column_names(type(table)):
            arrays[f"{type(table).__name__.lower()}.{name}"] = getattr(table, name)
    for name in ("times_ns", "values"):
        arrays[f"counters.{name}"] = np.concatenate([np.empty(0), *(getattr(each, name) for each in counters)])
    write_arrays(path, arrays)


def load(path: str | Path) -> Timeline:
    """Read a timeline that `save` wrote; UsageError where there is none, or it is damaged or newer."""
    shown = repr(str(path))
    try:
        with Path(path).open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            head = json.loads(arrays[_HEAD].tobytes())
            if head["schema"] != SCHEMA:
                hint = schema_hint(head["schema"], SCHEMA, "run again")
                raise UsageError(f"timeline {shown} must have schema {SCHEMA}, not {brief(head['schema'])}; {hint}.")
            timeline = _made(head, arrays)
    except FileNotFoundError:
        raise UsageError(
            f"timeline {shown} must exist, and does not; run with --out to have one written."
        ) from None
    except OSError as error:
        raise UsageError(f"timeline {shown} must be a file that can be read: {error.strerror}.") from None
    except (ValueError, KeyError, TypeError, IndexError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise UsageError(
            f"timeline {shown} must be a whole file as a run wrote it, and is damaged ({type(error).__name__}); run "
            "again."
        ) from None
    return timeline


def _made(head: dict[str, Any], arrays: Any) -> Timeline:
    spans = Spans(**{name: _column(arrays, Spans, name) for name in column_names(Spans)})
    flows = Flows(**{name: _column(arrays, Flows, name) for name in column_names(Flows)})
    tracks = tuple(Track(number, *fields) for number, fields in enumerate(head["tracks"]))
    bounds = np.cumsum([0, *(count for *_, count in head["counters"])])
    times, values = arrays["counters.times_ns"], arrays["counters.values"]
    if not len(times) == len(values) == bounds[-1]:
        raise ValueError("counters")
    counters = tuple(
        Counter(name, unit, track, times[first:last], values[first:last])
        for (name, unit, track, _), first, last in zip(head["counters"], bounds[:-1], bounds[1:], strict=True)
    )
    texts = {name: tuple(head[name]) for name in ("names", "lines", "sources", "notes")}
    activity = _activity(head.get("places"), arrays)
    timeline = Timeline(
        head["total_ns"], tracks, spans=spans, counters=counters, flows=flows, depth=head["depth"], activity=activity,
        known_ns=_known(head, activity), **texts,
    )  # fmt: skip
    _check(timeline)
    return timeline


def _known(head: dict[str, Any], activity: Activity | None) -> tuple[float, float] | None:
    """Return from and until when a timeline is known; files of an earlier kernbench tell it by their activity alone."""
    if "known_ns" not in head:
        edges = (0.0, head["total_ns"]) if activity is None else (activity.edges_ns[0], activity.edges_ns[-1])
        whole = edges[0] <= 0.0 and edges[1] >= head["total_ns"] * (1 - 1e-9)
        return None if whole else (float(edges[0]), float(edges[1]))
    if head["known_ns"] is None:
        return None
    since, until = map(float, head["known_ns"])
    if not since < until:
        raise ValueError("known_ns")
    return since, until


def _activity(places: list[str] | None, arrays: Any) -> Activity | None:
    """Return the activity of a file; those of an earlier kernbench have none."""
    if places is None:
        return None
    wide = {"busy_ns": 2, "waiting_ns": 2}
    columns = {name: _column(arrays, Activity, name, wide.get(name, 1)) for name in column_names(Activity)}
    shape = len(places), len(columns["edges_ns"]) - 1
    if not (columns["busy_ns"].shape == columns["waiting_ns"].shape == shape) or len(columns["servers"]) != shape[0]:
        raise ValueError("activity")
    if shape[1] < 1 or np.any(np.diff(columns["edges_ns"]) <= 0) or np.any(columns["servers"] < 1):
        raise ValueError("activity")
    return Activity(places=tuple(map(str, places)), **columns)


def _column(arrays: Any, made: type[Any], name: str, dimensions: int = 1) -> np.ndarray[Any, Any]:
    found: np.ndarray[Any, Any] = arrays[f"{made.__name__.lower()}.{name}"]
    if found.ndim != dimensions or found.dtype != np.dtype(column_type(made, name)):
        raise ValueError(name)
    return found


def _check(timeline: Timeline) -> None:
    """Raise ValueError where a column is shorter than others, or names what is not there."""
    spans, flows = timeline.spans, timeline.flows
    for table in (spans, flows):
        if len({len(column) for column in attrs.astuple(table, recurse=False)}) != 1:
            raise ValueError("columns")
    limits = (
        (spans.track, 0, len(timeline.tracks)),
        (spans.name, 0, len(timeline.names)),
        (spans.line, -1, len(timeline.lines)),
        (spans.parent, -1, len(spans)),
        (flows.from_span, 0, len(spans)),
        (flows.to_span, 0, len(spans)),
        (np.array([track.parent for track in timeline.tracks], np.int64), -1, len(timeline.tracks)),
        (np.array([counter.track for counter in timeline.counters], np.int64), 0, len(timeline.tracks)),
    )
    for column, least, end in limits:
        if len(column) and not (least <= column.min() and column.max() < end):
            raise ValueError("numbers")
