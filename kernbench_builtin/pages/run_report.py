"""What a run leaves to be looked at: its machine as a drawing with what everything did, and its page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernbench_builtin.pages.plugin import REPORT_SECTIONS
from kernbench_core.process.whole_files import write_text

if TYPE_CHECKING:
    from kernbench_builtin.pages.report.run_page import RunPage
    from kernbench_core.host.session import GraphEngine
    from kernbench_core.plugins import Plugins
    from kernbench_core.runs.result import RunResult
    from kernbench_core.topology.configuration import Config


def drawing_json(engine: GraphEngine, config: Config, title: str) -> Mapping[str, Any]:
    """Return the machine of a run as it is drawn; plain JSON types."""
    from kernbench_builtin.machines.drawing import draw_machine, parameter_sources

    models = engine.hardware.components
    return draw_machine(
        engine.graph, parameter_sources(config), title, lambda node: models[node.id].PARAMS
    ).to_json()


def use_json(engine: GraphEngine) -> Mapping[str, Any]:
    """Return how busy everything in the machine of a run was until now; plain JSON types."""
    from kernbench_core.host.timing import not_counted, resource_uses

    total = engine.hardware.env.now
    uses = list(resource_uses(engine.hardware, total))
    return {
        "total_ns": total,
        "places": [use.name for use in uses],
        "utilisation": [use.utilisation for use in uses],
        "busy_ns": [use.busy_ns for use in uses],
        "nbytes": [use.nbytes for use in uses],
        "not_counted": list(not_counted(engine.hardware)),
    }


def page_of(result: RunResult, machine: Mapping[str, Any]) -> RunPage:
    """Return the page of a run in memory, with the texts of the files that its kernels are in."""
    from kernbench_builtin.pages.report.run_page import RunPage
    from kernbench_builtin.pages.timeline import Timeline

    sources = {}
    timeline = result.part(Timeline)
    lines = () if timeline is None else timeline.lines
    for name in sorted({line.rpartition(":")[0] for line in lines}):
        with suppress(OSError, ValueError):
            sources[name] = Path(name).read_text(encoding="utf-8")
    name = f"{result.bench} on {result.topology}"
    return RunPage(name, result.to_json(), machine, timeline, sources, links=result.links)


def write_report(path: Path, pages: Sequence[RunPage], plugins: Plugins) -> None:
    """Write the page of one or several runs, whole or not at all."""
    from kernbench_builtin.pages.report.page import render_report

    write_text(path, render_report(pages, plugins.of(REPORT_SECTIONS), strict=plugins.strict))
