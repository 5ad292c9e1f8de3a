"""The measurement of synthetic traffic for a reader: a table, a picture of the links, or one JSON object."""

from __future__ import annotations

import textwrap
from typing import Any

import attrs

from kernbench_builtin.machines import naming
from kernbench_builtin.probe.traffic import NEAR, EdgeId, LoadPoint, TrafficSetup, WireUse, links
from kernbench_builtin.probe.traffic_patterns import mean_hops
from kernbench_builtin.probe.traffic_saturation import Saturation
from kernbench_core.runs import json_text
from kernbench_core.units import format_bandwidth, format_bytes, format_time

_WIDTH = 80
_MARKS = {"stable": " ", "near": "~", "saturated": "*"}
#: Most columns of a mesh that are drawn: the picture fits in 80 characters.
_DRAWN = 15
_TOP = 10
#: Characters of a row up to the second column's end.
_ACCEPTED = 16


@attrs.define
class Report:
    """What is said of one measurement; `points` come one by one, as they are measured."""

    topology: str
    pattern: str
    traffic: TrafficSetup
    points: list[LoadPoint] = attrs.field(factory=list)
    saturation: Saturation | None = None

    def heading(self) -> list[str]:
        """Describe mesh, traffic and ceiling, and begin the table."""
        mesh, window, flits = self.traffic.mesh, self.traffic.window, self.traffic.flits
        spec, (ceiling, wire) = mesh.spec, self.traffic.ceiling()
        rate = format_bandwidth(spec.link.width * spec.clock)
        size = f"{flits} flit{'s' if flits > 1 else ''} ({format_bytes(flits * mesh.flit_bytes)})"
        return [
            f"{self.topology}: {'torus' if spec.wrap else 'mesh'} of {spec.rows} x {spec.columns} routers, links of "
            f"{spec.link.width} B at {spec.clock:g} GHz ({rate}), cycle {format_time(mesh.cycle_ns)}",
            f"{self.pattern} traffic, packets of {size}{self._bursts()}, seed {self.traffic.seed}",
            f"{window.warm_up} cycles of warm-up, {window.measured} measured, up to {window.drain} of drain",
            f"ceiling {ceiling:.4g} flits/node/cycle, set by {short(wire)}; "
            f"{mean_hops(mesh, self.traffic.pattern):.4g} hops on average",
            "",
            f"{'flits/node/cycle':>25}{'──────── latency, cycles ────────':>35}{'mean':>7}{'busiest':>13}",
            f"{'load':>7}{'accepted':>9}{'sustained':>10}{'mean':>8}{'queued':>7}{'p50':>6}{'p99':>6}{'max':>7}"
            f"{'ns':>7}{'hops':>6}{'wire':>7}",
        ]

    def _bursts(self) -> str:
        burst = self.traffic.burst
        return "" if burst is None else f", bursts of {burst:g} packets"

    def row(self, point: LoadPoint) -> str:
        """Return the line of the table for one load."""
        cycle = self.traffic.mesh.cycle_ns
        mean_ns = None if point.mean is None else point.mean * cycle
        first = f"{_MARKS[point.state]} {point.load:.4g}"
        cells = (
            f"{first}{point.accepted:>{_ACCEPTED - len(first)}.4f}{point.sustained:>10.4f}",
            _cell(point.mean, 8, 2),
            _cell(point.queued, 7, 2),
            *(_cell(value, width, 0) for value, width in ((point.p50, 6), (point.p99, 6), (point.longest, 7))),
            _cell(mean_ns, 7, 1),
            _cell(point.hops, 6, 2),
            f"{point.busiest.utilisation:>7.1%}",
        )
        return "".join(cells)

    def ending(self) -> list[str]:
        """Explain the marks, draw the links at one load, and say what is not modelled."""
        lines: list[str] = []
        rows = [*self.points, *(self.saturation.tried if self.saturation is not None else ())]
        states = {point.state for point in rows}
        if "near" in states:
            lines += [f"~ above {NEAR:.0%} of the ceiling: buffers and arbitration show"]
        if "saturated" in states:
            late = sum(point.unfinished for point in rows)
            lines += ["* saturated: queues grow without end, and latencies with the measured window"]
            lines += [f"  {late:,} measured packets had not arrived when the drain ended"] if late else []
        if self.saturation is not None:
            lines += [self._saturates(self.saturation)]
        drawn = drawn_point(self.points)
        lines += ["", *self._links(drawn), ""] if links(drawn.wires) else [""]
        sentences = dict.fromkeys(item.sentence for item in drawn.not_modelled)
        told = " ".join(sentences) or "nothing that the components declare."
        return [*lines, *textwrap.wrap(f"not modelled: {told}", _WIDTH)]

    def _saturates(self, found: Saturation) -> str:
        share = f"{found.load:.4g} flits/node/cycle, {found.load / self.traffic.ceiling()[0]:.1%} of the ceiling"
        if found.beyond is None:
            return f"does not saturate up to {share}"
        if found.vague:
            return (
                f"saturates somewhere from {found.load:.4g} to {found.beyond:.4g} flits/node/cycle: queues grow at "
                "some loads\n  between and not at higher ones; a longer --measure tells"
            )
        return f"saturates at {share}: queues grow at {found.beyond:.4g}"

    def _links(self, point: LoadPoint) -> list[str]:
        if self.traffic.mesh.spec.columns <= _DRAWN:
            return picture(self.traffic, point)
        title = f"busiest links at load {point.load:g}"
        found = sorted(links(point.wires), key=lambda use: -use.utilisation)[:_TOP]
        return [title, *(f"  {short(use.edge):<18} {use.utilisation:>6.1%}" for use in found)]

    def json(self) -> str:
        """Return everything as one JSON object."""
        traffic, mesh = self.traffic, self.traffic.mesh
        spec, (ceiling, wire) = mesh.spec, traffic.ceiling()
        return json_text(
            {
                "schema": "kernbench.probe-traffic/1",
                "topology": self.topology,
                "mesh": {
                    "rows": spec.rows,
                    "columns": spec.columns,
                    "wrap": spec.wrap,
                    "clock_ghz": spec.clock,
                    "cycle_ns": mesh.cycle_ns,
                    "flit_bytes": mesh.flit_bytes,
                },
                "traffic": {
                    "pattern": self.pattern,
                    "packet_flits": traffic.flits,
                    "packet_bytes": traffic.flits * mesh.flit_bytes,
                    "burst_packets": traffic.burst,
                    "seed": traffic.seed,
                    "mean_hops": mean_hops(mesh, traffic.pattern),
                },
                "window_cycles": attrs.asdict(traffic.window),
                "ceiling": {"load": ceiling, "wire": name(wire)},
                "saturation": self._saturation(mesh.cycle_ns),
                "loads": [_point(point, mesh.cycle_ns) for point in self.points],
                "not_modelled": [attrs.asdict(item) for item in self.points[-1].not_modelled],
            }
        )


    def _saturation(self, cycle_ns: float) -> dict[str, Any] | None:
        found = self.saturation
        if found is None:
            return None
        tried = [_point(point, cycle_ns) for point in found.tried]
        return {"load": found.load, "beyond": found.beyond, "vague": found.vague, "tried": tried}


def drawn_point(points: list[LoadPoint]) -> LoadPoint:
    """Return the highest load that is not saturated, else the lowest."""
    calm = [point for point in points if point.state != "saturated"]
    return max(calm, key=lambda point: point.load) if calm else min(points, key=lambda point: point.load)


def picture(traffic: TrafficSetup, point: LoadPoint) -> list[str]:
    """Draw routers with the use of the links between them in percent, of each pair the busier direction."""
    spec = traffic.mesh.spec
    uses = {use.edge: use.utilisation for use in point.wires}

    def between(a: str, b: str) -> str:
        return f"{100 * max(uses[a, b], uses[b, a]):>3.0f}" if (a, b) in uses else "   "

    def router(row: int, column: int) -> str:
        return naming.mesh_router(row % spec.rows, column % spec.columns)

    wide = spec.columns if spec.wrap and spec.columns > 2 else spec.columns - 1
    high = spec.rows if spec.wrap and spec.rows > 2 else spec.rows - 1
    lines = [f"busy share of the links at load {point.load:g}, in %, of each pair the busier direction"]
    for row in range(spec.rows):
        gaps = [between(router(row, column), router(row, column + 1)) for column in range(wide)]
        lines.append(
            "  " + " ".join(f"o {gap}" for gap in gaps) + ("" if wide == spec.columns else " o" if gaps else "o")
        )
        if row < high:
            lines.append(" " + "   ".join(between(router(row, c), router(row + 1, c)) for c in range(spec.columns)))
    return [text.rstrip() for text in lines]


def short(edge: EdgeId) -> str:
    """Write a wire without the word that all its nodes begin with: `r0c3->r0c4`."""
    return "->".join(end.removeprefix("mesh.") for end in edge)


def name(edge: EdgeId) -> str:
    """Write a wire with the ids of its nodes."""
    return "->".join(edge)


def _cell(value: float | None, width: int, digits: int) -> str:
    """Write a number in so many characters, the first of them a space, with as many digits of it as fit."""
    if value is None:
        return f"{'-':>{width}}"
    texts = [f"{value:.{more}f}" for more in range(digits, -1, -1)] + [f"{value / 1e3:.0f}k", f"{value / 1e6:.3g}M"]
    return f"{next((text for text in texts if len(text) < width), texts[-1]):>{width}}"


def _use(use: WireUse) -> dict[str, Any]:
    return {"wire": name(use.edge), "utilisation": use.utilisation, "expected": use.expected}


def _point(point: LoadPoint, cycle_ns: float) -> dict[str, Any]:
    latencies = {
        "mean": point.mean,
        "mean_ci95": point.mean_ci95,
        "queued": point.queued,
        "p50": point.p50,
        "p99": point.p99,
        "max": point.longest,
    }
    return {
        "load": point.load,
        "state": point.state,
        "offered": point.offered,
        "delivered": point.delivered,
        "accepted": point.accepted,
        "sustained": point.sustained,
        "growth": point.growth,
        "latency_cycles": latencies,
        "latency_ns": {key: None if value is None else value * cycle_ns for key, value in latencies.items()},
        "mean_hops": point.hops,
        "packets": point.packets,
        "unfinished": point.unfinished,
        "busiest": _use(point.busiest),
        "wires": [_use(use) for use in point.wires],
        "events": point.events,
    }
