"""How long units were at work in a launch, and what the chunks of DMAs took: figures that advice is read from."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs
import numpy as np

from kernbench_builtin.components.dma_jobs import Trips
from kernbench_builtin.components.pe_dma import PeDma
from kernbench_builtin.explain.intervals import time_of_any
from kernbench_builtin.explain.ledger import PARTS
from kernbench_builtin.machines.figures.tables import meter_of
from kernbench_core.oplog.spill import take

if TYPE_CHECKING:
    from kernbench_builtin.machines.figures.launch import LaunchFigures
    from kernbench_core.host.session import GraphEngine
    from kernbench_core.oplog.forms import RecordForm

_AROUND: Final = ("set_up", "translation", "scratchpad")
"""What a chunk takes in a DMA besides the parts of its round trip."""


@attrs.frozen
class Queueing:
    """Say where messages queued most while kernels ran: a kind of place, and which cube; "" where none has most."""

    kind: str
    cube: str


def at_work(session: GraphEngine, launch: LaunchFigures) -> dict[str, float]:
    """Return for which share of a launch each kind of unit of its slowest PE was at work, a tile's stages too."""
    columns = session.op_log.columns
    component, found = np.asarray(columns.component[:]), dict[str, float]()
    for name, number in columns.components.items():
        if name.startswith(f"{launch.last}.") and launch.time_ns:
            rows = np.flatnonzero(component == number)
            start, end = (np.clip(take(times, rows), launch.started_ns, launch.ended_ns)
                          for times in (columns.t_start, columns.t_end))  # fmt: skip
            found[name.rpartition(".")[2]] = time_of_any(start, end, start < end) / launch.time_ns
    return found


def on_elements(session: GraphEngine, launch: LaunchFigures) -> dict[str, float]:
    """Return how long each kind of unit of a launch's slowest PE was at work on what smaller commands have less of.

    In ns: start-up, filling and the first block of a product's result take as long, however little there is.
    """
    columns, found = session.op_log.columns, dict[str, float]()
    component = np.asarray(columns.component[:])
    for name, number in columns.components.items():
        if name.startswith(f"{launch.last}."):
            rows = np.flatnonzero(component == number)
            unit = session.hardware.components[name]
            start, end = (take(times, rows) for times in (columns.t_start, columns.t_end))
            during = (start >= launch.started_ns) & (start <= launch.ended_ns)
            took = np.maximum(end - start - _number(unit.node.params, "overhead", 0.0), 0.0)
            blocks = np.array([_blocks(columns.form(each), unit.node.params) for each in range(len(columns.templates))])
            filling = unit.filling_ns / (unit.busy_by(session.hardware.env.now) or 1.0)
            ns = float((took * (1 - 1 / blocks[take(columns.template, rows)]))[during].sum()) * (1 - filling)
            found[name.rpartition(".")[2]] = ns
    return found


def _blocks(form: RecordForm, params: Mapping[str, Any]) -> float:
    """Return how many blocks of an array a product's result has; infinity of what is no product of an array."""
    if "shape_b" not in form.constants:
        return math.inf
    rows, columns = form.constants["shape_a"][-2], form.constants["shape_b"][-1]
    of_array = _number(params, "rows", 0.0), _number(params, "columns", 0.0)
    return max(1.0, -(-rows // of_array[0]) * -(-columns // of_array[1])) if all(of_array) else math.inf


def _number(params: Mapping[str, Any], name: str, default: float) -> float:
    """Return a parameter that is a number; a model of somebody else's may have it as something else."""
    found = params.get(name, default)
    return float(found) if isinstance(found, int | float) else default


def longest(session: GraphEngine, launch: LaunchFigures) -> dict[str, float]:
    """Return how long the longest op of a launch took on each kind of unit, in ns."""
    columns, found = session.op_log.columns, dict[str, float]()
    start, end = np.asarray(columns.t_start[:]), np.asarray(columns.t_end[:])
    during = (start >= launch.started_ns) & (start <= launch.ended_ns)
    most = np.zeros(len(columns.components))
    np.maximum.at(most, np.asarray(columns.component[:], np.int64)[during], (end - start)[during])
    for name, number in columns.components.items():
        kind = name.rpartition(".")[2]
        found[kind] = max(found.get(kind, 0.0), float(most[number]))
    return found


def all_trips(session: GraphEngine) -> list[Trips]:
    """Return what the DMAs that count their round trips have of them, of reads and of writes."""
    return [each for component in session.hardware.components.values() for each in _trips_of(component) or ()]


def _trips_of(component: object) -> tuple[Trips, Trips] | None:
    """Return what a DMA has of its reads and of its writes; a model of somebody else's may have no such thing."""
    return component.trips if isinstance(component, PeDma) else None


def parts_of(found: Sequence[Trips]) -> dict[str, float]:
    """Add up what chunks took in DMAs, by part."""
    return {part: sum(getattr(trips, part) for trips in found) for part in (*_AROUND, *PARTS)}


def of_pe(session: GraphEngine, pe: str) -> tuple[dict[str, dict[str, float]], dict[str, float]]:
    """Return the same of one PE's loads and stores, and which share of their time is the way of commands."""
    loads, stores = _trips_of(session.hardware.components.get(f"{pe}.pe_dma")) or (Trips(), Trips())
    kinds = {"load": [loads], "store": [stores], "composite": [loads, stores]}
    ways = {kind: (2 * sum(each.way for each in found), sum(each.served for each in found))
            for kind, found in kinds.items()}  # fmt: skip
    shares = {kind: way / (way + served) if served else 0.0 for kind, (way, served) in ways.items()}
    return {kind: parts_of(found) for kind, found in kinds.items()}, shares


def least_of(session: GraphEngine, pe: str) -> dict[str, float]:
    """Return what a load, and a store, of a PE takes in its DMA and on its way, in ns, however little it moves."""
    both = _trips_of(session.hardware.components.get(f"{pe}.pe_dma")) or ()
    return {
        kind: (each.set_up + each.translation + each.propagation + each.overhead) / each.number
        for kind, each in zip(("load", "store"), both, strict=False)
        if each.number
    }


def queueing(session: GraphEngine) -> Queueing | None:
    """Return where messages queued most, None where none did, or no kind of place has most of it."""
    meter = meter_of(session)
    assert meter is not None
    resources, waited = meter.resources, meter.waited()
    inside = {"pe wire", "command wire", "pcie wire", "pe_tcm channel"}  # where no load or store of HBM queues
    waited[[resources.kinds[code] in inside for code in resources.codes[: resources.wires]]] = 0.0
    if not waited.any():
        return None
    kinds = np.bincount(resources.codes[: resources.wires], waited)
    code = int(np.argmax(kinds))
    if kinds[code] < waited.sum() / 2:
        return None
    own = np.where(resources.codes[: resources.wires] == code, waited, 0.0)
    cubes: dict[str, float] = {}
    for number in np.flatnonzero(own).tolist():
        cube = ".".join(resources.names[number].split(".")[:2])
        cubes[cube] = cubes.get(cube, 0.0) + own[number]
    most = max(cubes, key=lambda cube: cubes[cube])
    one = most if cubes[most] > 0.5 * kinds[code] and ".cube" in most else ""
    return Queueing(resources.kinds[code], one)
