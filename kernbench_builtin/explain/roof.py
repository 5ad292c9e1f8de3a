"""The roof of a machine over a piece of work: the time that no schedule goes below, and what sets it."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
from attrs import frozen

from kernbench_builtin.explain.accesses import (
    NO_SPANS,
    ByteRanges,
    common,
    hbm_accesses,
    joined,
    length,
    touched,
)
from kernbench_builtin.machines.figures.tables import meter_of
from kernbench_core.graph import EdgeKind
from kernbench_core.oplog.columns import ROWS_AT_ONCE

if TYPE_CHECKING:
    from kernbench_core.graph import Graph, Node
    from kernbench_core.host.session import GraphEngine
    from kernbench_core.reporting import UnitWork

Limit = Literal["compute", "hbm", "noc"]
#: Edges that no operand passes.
_CONTROL: Final = frozenset({EdgeKind.COMMAND, EdgeKind.PE, EdgeKind.PCIE})


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
    cuts: dict[tuple[tuple[str, ...], ...], tuple[float, float]] = graph.kept.setdefault("narrowest cuts", {})
    ends = tuple(memories), tuple(doors)
    if ends not in cuts:
        cuts[ends] = narrowest_cut(graph, memories, doors), narrowest_cut(graph, doors, memories)
    return Peaks(units, hbm, *cuts[ends])


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
    written, bytes_in = NO_SPANS, 0
    for read, write in zip(reads, writes, strict=True):
        written = joined(written, write)
        bytes_in += length(read) - common(read, written)
    bytes_out, later = 0, NO_SPANS
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
    of_pes = (name for name, node in nodes.items() if node.pe is not None)
    found = {name: peaks.get(name) or float(components[name].servers) for name in of_pes}
    kinds = {nodes[name].kind for name in peaks}
    idle = [name for name in found if not peaks.get(name) and nodes[name].kind in kinds]
    alike, highest = dict[str, float](), dict[str, float]()
    for name, peak in peaks.items() if idle else ():  # parameters are compared as texts, which takes time
        for known, key in ((alike, _model(nodes[name])), (highest, nodes[name].kind)):
            known[key] = max(known.get(key, 0.0), peak)
    for name in idle:
        found[name] = alike.get(_model(nodes[name])) or highest.get(nodes[name].kind) or found[name]
    return found


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


def roof_of(session: GraphEngine) -> Roof | None:
    """Return the roof over the launches of a session on the packages that they ran on, None where none ran.

    Compare it with the phase `kernel` of its timing. Launches that overlap in time on one PE do not exist.
    """
    pes = session.hardware.layout.pes
    sips = {pes[pe].sip for handle in session.shared.launches for pe in handle.launch.ended_ns}
    return roof(peaks_of(session, sips), work_of(session)) if sips else None


__all__ = ["Peaks", "Roof", "RoofWork", "narrowest_cut", "peaks_of", "roof", "roof_of", "work_of"]
