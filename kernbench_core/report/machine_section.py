"""The machine where it stands, with how busy everything was, and how long messages queued there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kernbench_core.drawing.svg import view_svg
from kernbench_core.report.busy_bins import busy_bins
from kernbench_core.report.page import asset, environment
from kernbench_core.report.run_page import RunPage
from kernbench_core.report.section import Section


def _html(page: RunPage) -> str:
    return environment().get_template("machine.html").render(
        there=page.drawing is not None,
        timed=page.timeline is not None,
        explained=page.explain is not None,
        launches=_launches(page),
    )  # fmt: skip


def _data(page: RunPage) -> Mapping[str, Any] | None:
    drawing = page.drawing
    if drawing is None or page.machine is None:
        return None
    shapes = [
        {
            "svg": view_svg(view, relative=True),
            "width": view.width,
            "level": view.level,
            "boxes": [[box.id, box.model, box.opens, box.outside] for box in view.boxes],
            "lines": [[line.source, line.destination, line.wires] for line in view.lines],
        }
        for view in drawing.views
    ]
    return {
        "shapes": shapes,
        "parts": drawing.parts,
        "models": drawing.models,
        "wires": drawing.wires,
        "title": drawing.title,
        "use": page.machine.get("use", {}),
        "queueing": [[place["place"], place["total_ns"], place["waits"], place["longest_ns"]]
                     for place in (page.explain or {}).get("queueing", ())],
        "launches": _launches(page),
        "busy": _busy(page),
    }  # fmt: skip


def _busy(page: RunPage) -> Mapping[str, Any] | None:
    """Return how busy places were over time, where there is a timeline."""
    if page.timeline is None:
        return None
    use = (page.machine or {}).get("use", {})
    whole = dict(zip(use.get("places", ()), use.get("utilisation", ()), strict=True))
    return busy_bins(page.timeline, ("unit", "channel", "wire"), whole)


def _launches(page: RunPage) -> list[Mapping[str, Any]]:
    """Return the launches by number, with their windows in ns: from the first begin of a program to the last end.

    `exact` is the share of that time that the busiest of each kind was busy, as the simulator counted.
    """
    return [
        {
            "name": f"{number}: {each['kernel']}",
            "from": each["started_ns"],
            "to": each["ended_ns"],
            "exact": [[use["name"], use["utilisation"]] for use in each["busiest"]],
        }
        for number, each in enumerate(page.result.get("launches", ()), start=1)
    ]


MACHINE: Final = Section(
    "Machine", 20, _html, _data, (asset("window.js"), asset("machine.js")), asset("machine.css")
)
