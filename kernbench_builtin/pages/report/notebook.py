"""What a notebook shows of runs, machines, launches, hazards and tensors: the report's pictures, in a cell.

A cell is HTML without ids and scripts, with its own colours, light and dark; every text is escaped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache, singledispatch
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from kernbench_builtin.explain.critical_path import SORTS
from kernbench_builtin.explain.explanation import Explanation
from kernbench_builtin.machines.drawing import draw_machine
from kernbench_builtin.machines.figures.launch import LaunchFigures
from kernbench_builtin.machines.figures.roofline import rate_text
from kernbench_builtin.pages.plots import over_time, spans, stacked
from kernbench_builtin.pages.report.formats import share
from kernbench_builtin.pages.report.ledger_section import roof, roof_points
from kernbench_builtin.pages.report.page import asset, environment
from kernbench_builtin.pages.report.run_page import RunPage
from kernbench_builtin.pages.report.summary_section import SUMMARY
from kernbench_builtin.pages.report.tensor_blocks import tensor_blocks
from kernbench_builtin.pages.timeline import Timeline
from kernbench_core.graph import Graph
from kernbench_core.host.device_tensor import DeviceTensor
from kernbench_core.host.host_program import LaunchHandle
from kernbench_core.memory.hazard import Hazard, HazardUse
from kernbench_core.runs.listing import Listing
from kernbench_core.runs.outputs import Outputs
from kernbench_core.runs.result import PHASES, RunResult
from kernbench_core.units import format_time

if TYPE_CHECKING:
    from kernbench_builtin.machines.figures.roofline import Achieved

#: Rows of a table, hazards with pictures, tensors with theirs, lanes of spans, and shares of a bar.
_ROWS: Final = 20
_DRAWN: Final = 6
_MAPS: Final = 3
_LANES: Final = 4
_SHARES: Final = 7
#: Launches of which points and lanes are drawn.
_LAUNCHES: Final = 2000
#: What the head of a run's page reads of a result.
_TOLD: Final = (
    "bench", "params", "topology", "device", "total_ns", "events", "wall_s", "interrupted", "verified", "hazards",
)  # fmt: skip
#: What says of a notebook that it is light, or dark, whatever the system is: JupyterLab, VS Code, Colab.
_LIGHT: Final = ('[data-jp-theme-light="true"]', ".vscode-light", 'html[theme="light"]')
_DARK: Final = ('[data-jp-theme-light="false"]', ".vscode-dark", ".vscode-high-contrast", 'html[theme="dark"]')


@singledispatch
def picture(thing: object) -> str | None:
    """Return what a notebook shows of a thing as HTML, None for what has no picture."""
    return None


@picture.register
def _of_graph(graph: Graph) -> str:
    return draw_machine(graph).svg()


@picture.register
def _of_launch(launch: LaunchFigures) -> str:
    return _launches([launch], f"Launch of {launch.label or launch.kernel}", launch.busiest[:_DRAWN])


@picture.register
def _of_handle(handle: LaunchHandle) -> str | None:
    over = handle.program.figures_of(handle)
    return None if over is None else _of_launch(over)


@picture.register
def _of_hazard(hazard: Hazard) -> str:
    return _hazards([hazard])


@picture.register
def _of_tensor(tensor: DeviceTensor) -> str:
    return tensors_cell({tensor.name: tensor})


@picture.register
def _of_explanation(explain: Explanation) -> str:
    where = list(_where(explain, explain.total_ns))
    uses = [
        {"kind": use.kind, "resources": use.resources, "most": max(use.utilisation, default=0.0),
         "plot": over_time(use.utilisation)}
        for use in sorted(explain.usage, key=lambda use: -sum(use.utilisation))[:_DRAWN]
    ]  # fmt: skip
    bar = stacked([(name, ns) for name, ns, _ in where])
    return _drawn("explanation", where, bar, uses, explain.total_ns)


@picture.register
def _of_listing(things: Listing) -> str | None:  # type: ignore[type-arg]  # of whatever it lists
    if things and all(isinstance(each, LaunchFigures) for each in things):
        return _launches(things, f"{len(things):,} launch{'' if len(things) == 1 else 'es'}", ())
    if things and all(isinstance(each, Hazard) for each in things):
        return _hazards(things)
    return None


@picture.register
def _of_run(result: RunResult) -> str | None:
    """Draw the head of a run's page, where the time went, launches, the roofline."""
    if result.parts.get("figures") is None:
        return None
    told: dict[str, Any] = {name: getattr(result, name) for name in _TOLD}
    told |= {"phases": {name: result.phases[name] for name in PHASES}, "ops": result.timing.ops}
    told |= {"kernels": None if result.kernels is None else result.kernels.to_json(), **result.correctness.data_json()}
    verdict = result.parts.get("verdict")
    told["verdict"] = None if verdict is None else verdict.to_json()
    timeline, explain, kernels = result.part(Timeline), result.part(Explanation), result.kernels
    page = RunPage(result.bench, told, timeline=timeline)
    where = [] if explain is None else list(_where(explain, page.total_ns))
    roofline, points = _under_the_roof(result.launches)
    return _drawn(
        "run", SUMMARY.html(page), where,
        stacked([(name, ns) for name, ns, _ in where]), () if kernels is None else kernels.busiest[:_DRAWN],
        _over_time(result.launches, 0.0, page.total_ns, timeline), roofline, points,
    )  # fmt: skip


@picture.register
def _of_outputs(outputs: Outputs) -> str | None:
    return tensors_cell(outputs.tensors) if outputs.to_json() else None


def tensors_cell(tensors: Mapping[str, DeviceTensor | None]) -> str:
    """Return what a notebook shows of tensors: their facts, and for the first ones what of them lies where."""
    first = [*tensors][:_ROWS]
    found = [tensor_blocks(name, tensors[name], drawn=name in first[:_MAPS]) for name in first]
    return _drawn("tensors", found, len(tensors))


def _launches(launches: Sequence[LaunchFigures], head: str, uses: Sequence[Any]) -> str:
    begin, end = min(each.started_ns for each in launches), max(each.ended_ns for each in launches)
    roofline, points = _under_the_roof(launches)
    rows = [_row(number, each) for number, each in enumerate(launches[:_ROWS], start=1)]
    plot = _over_time(launches, begin, end) if len(launches) > 1 else ""
    return _drawn("launches", head, rows, len(launches), uses, plot, roofline, points)


def _row(number: int, launch: LaunchFigures) -> Mapping[str, Any]:
    resources = () if launch.roofline is None else launch.roofline.resources
    first = launch.busiest[0] if launch.busiest else None
    return {
        "number": number,
        "kernel": launch.label or launch.kernel,
        "pes": launch.pes,
        "ns": launch.time_ns,
        "computed": _best_achieved([each for each in resources if each.unit != "GB/s"]),
        "moved": _best_achieved([each for each in resources if each.unit == "GB/s"]),
        "busiest": "" if first is None else first.name,
        "utilisation": 0.0 if first is None else first.utilisation,
    }


def _best_achieved(resources: Sequence[Achieved]) -> str:
    """Tell what those of the kind that came nearest to its peak achieved."""
    nearest = max(resources, key=lambda each: each.share, default=None)
    return "–" if nearest is None else f"{rate_text(nearest.achieved, nearest.unit)} ({share(nearest.share)})"


def _under_the_roof(launches: Sequence[LaunchFigures]) -> tuple[str, list[Mapping[str, Any]]]:
    """Return the roofline of launches, and its points in words."""
    known = [
        {"kernel": each.kernel, "number": number, "roofline": each.roofline and each.roofline.to_json()}
        for number, each in enumerate(launches[:_LAUNCHES], start=1)
    ]
    points = roof_points(known)
    return roof(known, points[: 4 * _DRAWN]), points


def _over_time(
    launches: Sequence[LaunchFigures], begin: float, end: float, timeline: Timeline | None = None
) -> str:
    """Draw when launches ran, a lane for each kernel; of many kernels the last lane has all others.

    Where there is a timeline, the first lane is what the host did.
    """
    lanes: dict[str, list[tuple[float, float, str]]] = {}
    host = () if timeline is None else tuple(_of_host(timeline))
    if host:
        lanes["host"] = list(host)
    for number, each in enumerate(launches[:_LAUNCHES], start=1):
        name = each.label or each.kernel
        lane = name if name in lanes or len(lanes) < _LANES else "other kernels"
        told = f"launch {number}: {format_time(each.time_ns)} from {format_time(each.started_ns)}"
        lanes.setdefault(lane, []).append((each.started_ns, each.ended_ns, told))
    return spans([*lanes.items()], begin, end) if lanes else ""


def _of_host(timeline: Timeline) -> Iterator[tuple[float, float, str]]:
    """Yield the first spans of the host: begin, end, and what it did."""
    rows = timeline.spans
    for track in (track.id for track in timeline.tracks if track.kind == "host"):
        begin, end = np.searchsorted(rows.track, [track, track + 1])
        for row in range(begin, min(end, begin + _LAUNCHES)):
            name = timeline.names[rows.name[row]]
            yield float(rows.start_ns[row]), float(rows.end_ns[row]), f"{name}: {format_time(rows.start_ns[row])}"


def _where(explain: Explanation, total: float) -> Iterator[tuple[str, float, float]]:
    """Yield the longest parts of a run's critical path with their time (ns) and share, then all others together."""
    rows = sorted(explain.went, key=lambda row: -row.ns)
    for row in rows[:_SHARES]:
        words = row.phase.replace("_", " "), SORTS.get(row.sort, row.sort), row.kind
        yield " · ".join(word for word in words if word), row.ns, row.ns / (total or 1.0)
    rest = sum(row.ns for row in rows[_SHARES:])
    if rest > 0:
        yield "all others", rest, rest / (total or 1.0)


def _hazards(hazards: Sequence[Hazard]) -> str:
    found = [
        {"what": str(each), "lines": each.lines(folders=False)[1:], "plot": _both(each.first, each.second)}
        for each in hazards[:_DRAWN]
    ]
    return _drawn("hazards", found, len(hazards))


def _both(*uses: HazardUse) -> str:
    """Draw when the sides of a hazard used the memory; one that never landed lasts as long as is drawn."""
    begin = min(use.issued_ns for use in uses)
    last = max(use.issued_ns if use.landed_ns is None else use.landed_ns for use in uses)
    end = last if last > begin else begin + 1.0
    lanes = [
        (f"{use.pe} {use.call}", [(use.issued_ns, end if use.landed_ns is None else use.landed_ns, str(use))])
        for use in uses
    ]
    return spans(lanes, begin, end)


@cache
def _style() -> str:
    light, dark = (asset(name).replace("\n", " ") for name in ("light.css", "dark.css"))
    around = "background: var(--kb-ground); color: var(--kb-ink); padding: 0.4rem 0.7rem; border-radius: 6px; "
    around += 'font: 13px/1.45 system-ui, "Segoe UI", "DejaVu Sans", sans-serif;'
    # named twice, so that the rules of notebooks for tables and lists do not count
    own = (f".kb-cell.kb-cell {rule}" for rule in (*asset("plots.css").splitlines(), *asset("cell.css").splitlines()))
    return "\n".join(
        [
            f".kb-cell {{ {light}{around} }}",
            f"@media (prefers-color-scheme: dark) {{ .kb-cell {{ {dark}}} }}",
            f"{', '.join(f'{each} .kb-cell' for each in _LIGHT)} {{ {light}}}",
            f"{', '.join(f'{each} .kb-cell' for each in _DARK)} {{ {dark}}}",
            *own,
        ]
    )


def _drawn(macro: str, *values: Any) -> str:
    """Return what a macro of the template makes of values, as a plain text: adding to it escapes nothing."""
    return str(getattr(environment().get_template("notebook.html").module, macro)(_style(), *values))
