"""The roof of a machine over a piece of work: the time that no schedule goes below, and what sets it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import numpy.typing as npt
from attrs import frozen

from kernbench_builtin.machines.figures.tables import meter_of
from kernbench_core.graph import EdgeKind
from kernbench_core.oplog.columns import ROWS_AT_ONCE
from kernbench_core.oplog.spill import take

if TYPE_CHECKING:
    from kernbench_core.graph import Graph, Node
    from kernbench_core.host.host_program import LaunchHandle
    from kernbench_core.host.session import GraphEngine
    from kernbench_core.oplog.columns import Columns
    from kernbench_core.reporting import UnitWork
    from kernbench_core.values.region import Region

Limit = Literal["compute", "hbm", "noc"]
ByteRanges = npt.NDArray[np.int64]
"""Ranges of bytes, a row (start, end) for each, ascending and apart from each other."""

#: So many regions are added up at once.
_TOGETHER: Final = 1 << 14
#: Edges that no operand passes.
_CONTROL: Final = frozenset({EdgeKind.COMMAND, EdgeKind.PE, EdgeKind.PCIE})
_NO_SPANS: Final[ByteRanges] = np.zeros((0, 2), np.int64)


@frozen
class Roof:
    """Say how long a piece of work takes at least, in ns, by each limit; `ns` is the largest.

    `units` has the time by kind of unit, `compute_ns` is the largest of them.
    """

    units: Mapping[str, float]
    hbm_ns: float
    noc_ns: float

    @property
    def compute_ns(self) -> float:
        """The work of the kind of units that has most, with all of them at their peak."""
        return max(self.units.values(), default=0.0)

    @property
    def ns(self) -> float:
        """The time that no schedule goes below."""
        return max(self.compute_ns, self.hbm_ns, self.noc_ns)

    @property
    def limit(self) -> Limit:
        """What takes that time."""
        sides: dict[Limit, float] = {"compute": self.compute_ns, "hbm": self.hbm_ns, "noc": self.noc_ns}
        return max(sides, key=lambda side: sides[side])


@frozen
class RoofWork:
    """Say what a piece of work asks for: its `units` by kind, as `Peaks` counts what they do, and its compulsory bytes.

    Those are the bytes of operands that come in from HBM and of results that go out, each once.
    """

    units: Mapping[str, float]
    bytes_in: int
    bytes_out: int


@frozen
class Peaks:
    """Say what a machine can do: the operations per ns of all units of each kind, the bytes per ns of HBM and its NoC.

    Of HBM it is what its models sustain: their `efficiency` of the peak, as refresh takes the rest.
    `noc_in` is what the narrowest cut between HBM and the PEs lets through to the PEs, `noc_out` the way back.
    """

    units: Mapping[str, float]
    hbm: float
    noc_in: float
    noc_out: float


def roof(peaks: Peaks, work: RoofWork) -> Roof:
    """Return the roof of `work` on a machine. HBM moves one byte in or out at a time, the NoC both ways at once."""
    units = {kind: asked / peaks.units[kind] for kind, asked in work.units.items()}
    noc = max(_time(work.bytes_in, peaks.noc_in), _time(work.bytes_out, peaks.noc_out))
    return Roof(units, _time(work.bytes_in + work.bytes_out, peaks.hbm), noc)


def _time(nbytes: int, rate: float) -> float:
    return nbytes / rate if nbytes and rate else 0.0  # of memories that declare no peak nothing is known


# The machine ------------------------------------------------------------------------------------------


def narrowest_cut(graph: Graph, sources: Collection[str], sinks: Collection[str]) -> float:
    """Return the bytes per ns that the narrowest cut between two sets of nodes lets through, headers not counted."""
    left: dict[str, dict[str, float]] = {}
    for (start, end), edge in graph.edges.items():
        if edge.kind not in _CONTROL:
            rate = edge.bandwidth * edge.payload_bytes / (edge.payload_bytes + edge.header_bytes)
            left.setdefault(start, {})[end] = rate
            left.setdefault(end, {}).setdefault(start, 0.0)
    flow, ends = 0.0, frozenset(sinks)
    while level := _levels(left, sources, ends):
        ways = {node: list(beyond) for node, beyond in left.items()}
        for source in sources:
            while pushed := _push(left, level, ways, source, ends):
                flow += pushed
    return flow


def _levels(
    left: Mapping[str, Mapping[str, float]], sources: Collection[str], sinks: Collection[str]
) -> dict[str, int]:
    """Return how many edges with room lie between the sources and each node; nothing where no sink can be reached."""
    level = {node: 0 for node in sources if node in left}
    queue = deque(level)
    while queue:
        node = queue.popleft()
        for end, room in left[node].items():
            if room > 0 and end not in level:
                level[end] = level[node] + 1
                queue.append(end)
    return level if any(sink in level for sink in sinks) else {}


def _push(
    left: dict[str, dict[str, float]], level: Mapping[str, int], ways: dict[str, list[str]], source: str,
    sinks: Collection[str],
) -> float:  # fmt: skip
    """Send as much as one more path has room for; return how much, 0 where there is none."""
    path = [source]
    while path[-1] not in sinks:
        node = path[-1]
        open_ways = ways.get(node, [])
        while open_ways and not (left[node][open_ways[-1]] > 0 and level.get(open_ways[-1]) == level[node] + 1):
            open_ways.pop()
        if open_ways:
            path.append(open_ways[-1])
            continue
        path.pop()
        if not path:
            return 0.0
        ways[path[-1]].pop()
    hops = [*pairwise(path)]
    room = min(left[start][end] for start, end in hops)
    for start, end in hops:
        left[start][end] -= room
        left[end][start] += room
    return room


def peaks_of(session: GraphEngine, sips: Collection[int]) -> Peaks:
    """Return the peaks of some packages of the machine of a session, with all memories that launches used."""
    graph, components, meter = session.hardware.graph, session.hardware.components, meter_of(session)
    own = {name: node for name, node in graph.nodes.items() if node.sip in sips}
    used = {graph.nodes[name].sip for work in (() if meter is None else meter.work()) for name in work.memories}
    memories = [n for n, node in graph.nodes.items() if node.kind == "hbm_ctrl" and node.sip in {*sips, *used}]
    doors = [name for name, node in own.items() if node.kind == "pe_dma"]
    units: dict[str, float] = {}
    speeds = _speeds(session)
    for name, node in own.items():
        if node.pe is not None:
            units[node.kind] = units.get(node.kind, 0.0) + speeds[name]
    hbm = sum(_sustained(components[name]) for name in memories)
    return Peaks(units, hbm, narrowest_cut(graph, memories, doors), narrowest_cut(graph, doors, memories))


def _sustained(memory: Any) -> float:
    """Return the bytes per ns of a memory: its peak, and of it what its model ever lets through.

    A refresh that the model makes at its time counts for nothing: a short kernel may lie between two.
    """
    geometry = getattr(memory, "geometry", None)
    return float(memory.peak_bandwidth * (1.0 if geometry is None else geometry().sustained))


# The work ---------------------------------------------------------------------------------------------


def work_of(session: GraphEngine) -> RoofWork:
    """Return what the launches of a session asked for.

    Bytes come in where a launch reads them and no launch wrote them before, and go out where a launch writes them and
    no later one reads them: what stays between two launches may stay on the chip. Of a byte that one launch both reads
    and writes only the writing counts. All copies of a tensor are one. Of pe_math an op counts what it takes beyond
    its start-up, of other units its operations at the unit's peak.
    """
    return work_on(session, touched(session, hbm_accesses(session)))


def work_on(session: GraphEngine, found: tuple[list[ByteRanges], list[ByteRanges]]) -> RoofWork:
    """Return the work of a session whose launches `touched` these bytes."""
    reads, writes = found
    written, bytes_in = _NO_SPANS, 0
    for read, write in zip(reads, writes, strict=True):
        written = joined(written, write)
        bytes_in += length(read) - common(read, written)
    bytes_out, later = 0, _NO_SPANS
    for read, write in zip(reversed(reads), reversed(writes), strict=True):
        bytes_out += length(write) - common(write, later)
        later = joined(later, read, write)
    return RoofWork(_asked_of_units(session), bytes_in, bytes_out)


def _unit_works(session: GraphEngine) -> Iterator[tuple[str, UnitWork]]:
    """Yield what each unit did in each launch."""
    meter = meter_of(session)
    return (pair for work in (() if meter is None else meter.work()) for pair in work.units.items())


def _speeds(session: GraphEngine) -> dict[str, float]:
    """Return the operations per ns of the units of PEs, all servers of one together.

    One that did nothing has the peak of one that is alike, or else the highest of its kind; where no peak is known the
    servers count.
    """
    nodes, components = session.hardware.graph.nodes, session.hardware.components
    peaks: dict[str, float] = {}
    for name, unit in _unit_works(session):
        peaks[name] = max(peaks.get(name, 0.0), unit.peak)
    alike, highest = dict[str, float](), dict[str, float]()
    for name, peak in peaks.items():
        for known, key in ((alike, _model(nodes[name])), (highest, nodes[name].kind)):
            known[key] = max(known.get(key, 0.0), peak)
    return {
        name: peaks.get(name) or alike.get(_model(node)) or highest.get(node.kind) or float(components[name].servers)
        for name, node in nodes.items()
        if node.pe is not None
    }


def _model(node: Node) -> str:
    return f"{node.kind} {node.impl} {node.params!r}"


def _asked_of_units(session: GraphEngine) -> dict[str, float]:
    nodes, speeds = session.hardware.graph.nodes, _speeds(session)
    found: dict[str, float] = {}
    for name, unit in _unit_works(session):
        if unit.peak and nodes[name].kind != "pe_math":
            found[nodes[name].kind] = found.get(nodes[name].kind, 0.0) + unit.flops
    columns = session.op_log.columns
    starts_up = np.full(len(columns.components), np.inf)  # of components that are none
    each = np.zeros(len(columns.components))
    for name, number in columns.components.items():
        if nodes[name].kind == "pe_math":
            starts_up[number] = float(nodes[name].params.get("overhead", 0.0))
            each[number] = speeds[name] / session.hardware.components[name].servers
    if not np.isfinite(starts_up).any():
        return found
    found["pe_math"] = 0.0
    for some in _some(len(columns)):
        took = np.asarray(columns.t_end[some]) - np.asarray(columns.t_start[some])
        units = np.asarray(columns.component[some], np.int64)
        found["pe_math"] += float((np.maximum(took - starts_up[units], 0.0) * each[units]).sum())
    return found


def _some(rows: int) -> Iterator[slice]:
    return (slice(first, first + ROWS_AT_ONCE) for first in range(0, rows, ROWS_AT_ONCE))


def touched(session: GraphEngine, accesses: Sequence[HbmAccess]) -> tuple[list[ByteRanges], list[ByteRanges]]:
    """Return the bytes of HBM that each launch read, and wrote, where cells of tensors have one place."""
    handles = session.shared.launches
    found: list[tuple[list[ByteRanges], list[ByteRanges]]] = [([], []) for _ in handles]
    for access in accesses:
        for each in distinct(access.launch).tolist():
            if each >= 0:
                found[each][access.writes].append(access.bytes_of(access.launch == each))
    places = [np.array(sorted(_places(handle)), np.int64).reshape(-1, 3) for handle in handles]
    return tuple(  # type: ignore[return-value]
        [_moved(joined(_NO_SPANS, *each[side]), place) for each, place in zip(found, places, strict=True)]
        for side in (0, 1)
    )


def loads_of_stored(
    session: GraphEngine, accesses: Sequence[HbmAccess], launch: int, pe: int
) -> npt.NDArray[np.int64]:  # fmt: skip
    """Return the rows of a PE's loads, in one launch, of bytes that any PE stores in it, before or after."""
    op_pe, found = session.op_log.columns.op_pe, [_NO_SPANS[:, 0]]
    stored = joined(_NO_SPANS, *(each.bytes_of(each.launch == launch) for each in accesses if each.writes))
    for access in accesses if len(stored) else ():
        if not access.writes:
            base, row_bytes, count, pitch = access.table.T
            at = np.searchsorted(stored[:, 1], base, "right")
            begins = np.append(stored[:, 0], np.iinfo(np.int64).max)[at]
            meets = begins < base + (count - 1) * pitch + row_bytes
            own = (access.launch == launch) & (take(op_pe, access.rows) == pe)
            found.append(access.rows[own & (access.each(meets) > 0)])
    return np.concatenate(found)


def _launches(handles: Sequence[LaunchHandle]) -> Callable[[Any, Any], npt.NDArray[np.int64]]:
    """Return what tells of PEs and times (ns) which launch ran there: the last that started; -1 where none had."""
    began: dict[int, list[tuple[float, int]]] = {}
    for number, handle in enumerate(handles):
        for pe in handle.launch.ended_ns:
            began.setdefault(pe, []).append((handle.launch.started_ns[pe], number))

    def launch_of(pes: npt.NDArray[Any], times: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        found = np.full(len(pes), -1, np.int64)
        for pe, starts in began.items():
            starts.sort()
            at = np.flatnonzero(pes == pe)
            place = np.searchsorted([time for time, _ in starts], times[at], "right")
            found[at] = np.array([-1, *(number for _, number in starts)])[place]
        return found

    return launch_of


@frozen
class HbmAccess:
    """Where records of one template access HBM: each has one or several regions of one `table`.

    `rows` are those of the op log, `template` their number, `launch` the launch of each, -1 for none. `at` says which
    of so many `lists` of regions each record has, `owner` to which list each region of the table belongs: a row (base,
    row bytes, rows, pitch).
    """

    template: int
    rows: npt.NDArray[np.int64]
    launch: npt.NDArray[np.int64]
    writes: bool
    at: npt.NDArray[np.int64]
    lists: int
    owner: npt.NDArray[np.int64]
    table: npt.NDArray[np.int64]

    def each(self, of_region: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """Add up a figure of regions for each record."""
        return np.bincount(self.owner, of_region, self.lists).astype(np.int64)[self.at]

    def bases(self) -> npt.NDArray[np.int64]:
        """Return the address at which each record begins; of one without bytes, any."""
        first = np.searchsorted(self.owner, self.at)
        return self.table[np.minimum(first, len(self.table) - 1), 0] if len(self.table) else np.zeros_like(first)

    def bytes_of(self, own: npt.NDArray[np.bool_]) -> ByteRanges:
        """Return the bytes that some of the records access."""
        some = np.zeros(self.lists, bool)
        some[self.at[own]] = True
        regions = np.flatnonzero(some[self.owner])
        parts = (self.table[regions[at : at + _TOGETHER]] for at in range(0, len(regions), _TOGETHER))
        return joined(_NO_SPANS, *(spans_of(part) for part in parts))


def hbm_accesses(session: GraphEngine) -> list[HbmAccess]:
    """Return all accesses of PEs' ops to HBM, by template and operand."""
    columns = session.op_log.columns
    launch_of, found = _launches(session.shared.launches), list[HbmAccess]()
    moves = np.array(["hbm" in columns.form(number).spaces for number in range(len(columns.templates))], bool)
    template = np.asarray(columns.template[:])
    rows = np.flatnonzero(moves[template] & (np.asarray(columns.stage_pe[:]) < 0)) if len(moves) else _NO_SPANS[:, 0]
    rows = rows[np.argsort(template[rows], kind="stable")]
    launch = launch_of(take(columns.op_pe, rows), take(columns.t_start, rows))
    ends = [*np.flatnonzero(np.diff(template[rows])) + 1, len(rows)]
    for first, end in pairwise([0, *ends]):
        if end > first:
            number = int(template[rows[first]])
            found.extend(_accesses_of(columns, number, rows[first:end], launch[first:end]))
    return found


def _accesses_of(
    columns: Columns, number: int, rows: npt.NDArray[np.int64], launch: npt.NDArray[np.int64]
) -> Iterator[HbmAccess]:
    """Yield each access to HBM of records of one template."""
    form = columns.form(number)
    last = len(form.geometry) - 1 if form.writes else -1
    begins, several = take(columns.row_starts()[0], rows), 0
    for side, (space, _, row_bytes, count, pitch) in enumerate(form.geometry):
        place = form.base_places[side]
        if space == "hbm" and place >= 0 and row_bytes is not None:
            all_bases = take(columns.ints, begins + place)
            bases = distinct(all_bases)
            at = np.searchsorted(bases, all_bases)
            table = np.stack([bases, *(np.full(len(bases), each) for each in (row_bytes, count, pitch))], axis=1)
            yield HbmAccess(number, rows, launch, side == last, at, len(bases), np.arange(len(bases)), table)
        elif space == "hbm" and row_bytes is None:
            regions: Any = [columns.side.get(row, ())[several] for row in rows.tolist()]
            known = {id(each): each for each in regions}
            place_of = {key: at for at, key in enumerate(known)}
            at = np.array([place_of[id(each)] for each in regions], np.int64)
            owner = np.repeat(np.arange(len(known)), [len(each) for each in known.values()])
            table = _table(chain.from_iterable(known.values()))
            yield HbmAccess(number, rows, launch, side == last, at, len(known), owner, table)
        several += row_bytes is None


def _table(regions: Iterable[Region]) -> npt.NDArray[np.int64]:
    found = [(each.base, each.row_bytes, each.rows, each.pitch) for each in regions]
    return np.array(found, np.int64).reshape(-1, 4)


def _places(handle: LaunchHandle) -> Iterator[tuple[int, int, int]]:
    """Yield of each segment of the tensors of a launch its address, that of its cell among virtual ones, and its bytes.

    The cells of a tensor are taken one behind the other, so that its copies are one, and no address is used again.
    """
    for tensor in handle.tensors:
        at, cells = tensor.allocation.va, dict[int, int]()
        for segment in sorted(tensor.allocation.segments, key=lambda segment: segment.cell):
            if segment.cell not in cells:
                cells[segment.cell] = at
                at += segment.nbytes
            yield segment.pa, cells[segment.cell], segment.nbytes


def spans_of(table: npt.NDArray[np.int64]) -> ByteRanges:
    """Return the bytes of some regions, each a row (base, row bytes, rows, pitch)."""
    base, row_bytes, count, pitch = table.T
    which = np.repeat(np.arange(len(base)), count)
    row = np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count)
    starts = base[which] + row * pitch[which]
    return joined(np.stack([starts, starts + row_bytes[which]], axis=1))


def _moved(spans: ByteRanges, places: npt.NDArray[np.int64]) -> ByteRanges:
    """Cut spans at the ends of segments (address, place, bytes), and move what is in a segment to its place."""
    if not len(spans) or not len(places):
        return spans
    edges = distinct(np.concatenate([places[:, 0], places[:, 0] + places[:, 2]]))
    starts = distinct(np.concatenate([spans[:, 0], edges[_inside(spans, edges)]]))
    ends = distinct(np.concatenate([spans[:, 1], edges[_inside(spans, edges)]]))
    at = np.searchsorted(places[:, 0], starts, "right") - 1
    place = places[np.maximum(at, 0)]
    mapped = (at >= 0) & (starts < place[:, 0] + place[:, 2])
    moved = np.where(mapped, place[:, 1] - place[:, 0], 0)
    return joined(np.stack([starts + moved, ends + moved], axis=1))


def _inside(spans: ByteRanges, edges: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    at = np.maximum(np.searchsorted(spans[:, 0], edges, "left") - 1, 0)
    found: npt.NDArray[np.bool_] = (spans[at, 0] < edges) & (edges < spans[at, 1])
    return found


def distinct(found: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return each value once, ascending: what np.unique does, which takes 30 ms to import what it needs for itself."""
    found = np.sort(found)
    return found[np.concatenate([[True], found[1:] != found[:-1]])] if len(found) else found


# Ranges of bytes --------------------------------------------------------------------------------------


def joined(*several: ByteRanges) -> ByteRanges:
    """Return the bytes that are in any of several ranges; these may overlap and come in any order."""
    spans = np.concatenate(several)
    if not len(spans):
        return _NO_SPANS
    spans = spans[np.argsort(spans[:, 0], kind="stable")]
    reach = np.maximum.accumulate(spans[:, 1])
    first = np.concatenate([[True], spans[1:, 0] > reach[:-1]])
    last = np.concatenate([first[1:], [True]])
    return np.stack([spans[first, 0], reach[last]], axis=1)


def length(spans: ByteRanges) -> int:
    """Return how many bytes there are."""
    return int((spans[:, 1] - spans[:, 0]).sum())


def common(one: ByteRanges, other: ByteRanges) -> int:
    """Return how many bytes are in both."""
    return length(one) + length(other) - length(joined(one, other))


def roof_of(session: GraphEngine) -> Roof | None:
    """Return the roof over the launches of a session on the packages that they ran on, None where none ran.

    Compare it with the phase `kernel` of its timing. Launches that overlap in time on one PE do not exist.
    """
    pes = session.hardware.layout.pes
    sips = {pes[pe].sip for handle in session.shared.launches for pe in handle.launch.ended_ns}
    return roof(peaks_of(session, sips), work_of(session)) if sips else None


__all__ = ["Peaks", "Roof", "RoofWork", "narrowest_cut", "peaks_of", "roof", "roof_of", "work_of"]
