"""Make the activity of a run from what was noted of its places, and see that it sums to what the simulator counted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import attrs
import numpy as np

from kernbench_builtin.pages.timeline.activity import Activity, Intervals, joined, stretches
from kernbench_builtin.pages.timeline.columns import Indices, Times
from kernbench_builtin.pages.timeline.notes import USE, NoteRows, Notes, Readings, rows_of

if TYPE_CHECKING:
    from kernbench_core.engine.hardware import Hardware

#: What is left over by rounding, in ns.
_NOTHING: Final = 1e-6


@attrs.frozen
class _Place:
    """One place: its number in notes, its name, how many messages it serves at once, and what the simulator counted."""

    number: int
    name: str
    servers: int
    busy_ns: float
    waiting_ns: float


def activity_of(
    hardware: Hardware,
    notes: Notes,
    noted: Mapping[str, Readings] | None,
    marks: Sequence[float],
    *,
    channels_only: bool,
    whole: bool,
) -> Activity | None:
    """Return how busy everything was, None for a run in which no time has passed.

    `noted` are the passages, None where neither wires nor channels were looked at, or `channels_only` were; `marks` are
    times that are to be edges. What is of the `whole` run sums, for each place, to what the simulator counted: where a
    model counts without saying when, what it says is scaled, or spread over the run.
    """
    total = hardware.env.now
    if not total:
        return None
    places = [*_units(hardware), *(_wires(hardware, channels_only) if noted is not None else ())]
    least = -len(hardware.components)
    rows = np.full(len(hardware.wires) + 1 - least, -1)
    rows[[place.number - least for place in places]] = range(len(places))
    passed = [] if noted is None else [_passed(noted, hardware, rows, least)]
    used, waited = joined([_used(notes.busy, rows, least), *passed]), _used(notes.waits, rows, least)
    edges = stretches(total, len(places), marks, len(used.place))
    busy, waiting = used.spread(len(places), edges), waited.spread(len(places), edges)
    if whole:
        _settle(busy, np.array([place.busy_ns for place in places]), edges)
        _settle(waiting, np.array([place.waiting_ns for place in places]), edges)
    busy[[not place.busy_ns for place in places]] = 0.0
    return Activity(
        edges,
        tuple(place.name for place in places),
        np.array([place.servers for place in places], np.int32),
        np.maximum(busy, 0.0, out=busy).astype(np.float32),
        waiting.astype(np.float32),
    )


def _units(hardware: Hardware) -> Iterator[_Place]:
    """Yield the units that were used; of those whose being busy means nothing, only what waited there."""
    total = hardware.env.now
    for index, unit in enumerate(hardware.components.values()):
        counts = unit.keeps_busy and unit.node.kind != "pe_cpu"
        busy = unit.busy_by(total) if counts else 0.0
        if busy or unit.waits:
            yield _Place(-1 - index, unit.id, unit.servers, busy, unit.waited_ns)


def _wires(hardware: Hardware, channels_only: bool) -> Iterator[_Place]:
    for wire in hardware.wires:
        if (wire.busy_ns or wire.waits) and (not channels_only or "#" in wire.name):
            yield _Place(wire.number, wire.name, 1, wire.busy_by(hardware.env.now), wire.waited_ns)


def _used(kept: NoteRows, rows: Indices, least: int) -> Intervals:
    """Return the times of places that said when they were; what is taken back counts less than nothing."""
    found = rows_of(kept, USE)
    place = rows[found["place"].astype(np.int64) - least]
    known = place >= 0
    ns, until = found["ns"][known], found["until_ns"][known]
    return Intervals(place[known], until - np.abs(ns), until, ns)


def _passed(noted: Mapping[str, Readings], hardware: Hardware, rows: Indices, least: int) -> Intervals:
    """Return for how long what passed took its wire: less than it was there, where it came slowly."""
    wires = {wire.number: wire for wire in hardware.wires}
    edge, nbytes = noted["edge"].astype(np.int64), noted["nbytes"].astype(np.int64)
    start, end = noted["start_ns"], noted["end_ns"]
    held, edge = edge < 0, np.abs(edge)
    factor = int(nbytes.max(initial=0)) + 1
    kinds, which = np.unique(edge * factor + nbytes, return_inverse=True)
    took = np.array([wires[kind // factor].duration(kind % factor) for kind in kinds.tolist()], np.float64)
    ns = np.where(held, end - start, np.minimum(took[which], end - start))
    place = rows[edge - least]
    known = place >= 0
    return Intervals(place[known], start[known], end[known], ns[known])


def _settle(table: Times, counted: Times, edges: Times) -> None:
    """Have each row sum to what was counted: scaled, or where nothing was said, spread over the run."""
    said = table.sum(axis=1)
    off = np.abs(said - counted) > _NOTHING
    silent = off & (said <= _NOTHING)
    table[silent] = counted[silent, None] * (np.diff(edges) / edges[-1])
    scaled = off & ~silent
    table[scaled] *= (counted[scaled] / said[scaled])[:, None]
