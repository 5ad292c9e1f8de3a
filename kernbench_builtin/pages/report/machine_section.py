"""The machine where it stands, with how busy everything was, and how long messages queued there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from kernbench_builtin.machines.drawing.svg import view_svg
from kernbench_builtin.pages.report.page import asset, environment
from kernbench_builtin.pages.report.run_page import RunPage
from kernbench_builtin.pages.report.section import Section
from kernbench_core.units import format_time
from kernbench_core.wording import join_names

#: What stands for the most of a place.
_FULL: Final = 65535


def _html(page: RunPage) -> str:
    return environment().get_template("machine.html").render(
        there=page.drawing is not None,
        timed=page.timeline is not None and page.timeline.activity is not None,
        explained=page.explain is not None,
        launches=launches_of(page),
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
        "launches": launches_of(page),
        "busiest": [[use["name"], use["utilisation"]] for use in page.result.get("busiest", ())],
        "activity": _activity(page),
    }  # fmt: skip


def _activity(page: RunPage) -> Mapping[str, Any] | None:
    """Return how busy places were over time and how many messages waited there, where there is a timeline.

    Rows are shares of the `most` of their place, 0 to 65535.
    """
    found = None if page.timeline is None else page.timeline.activity
    if found is None:
        return None
    width = np.diff(found.edges_ns)
    tables = {"busy": found.busy_ns / (width * found.servers[:, None]), "waiting": found.waiting_ns / width}
    data: dict[str, Any] = {"places": list(found.places), "edges": found.edges_ns}
    for name, table in tables.items():
        most = table.max(axis=1, initial=0.0)
        rows = np.rint(table / np.where(most > 0, most, 1.0)[:, None] * _FULL).astype(np.uint16)
        data[name] = {"most": most, "rows": rows}
    return data


def launches_of(page: RunPage) -> list[Mapping[str, Any]]:
    """Return the launches by number, with their windows in ns: from the first begin of a program to the last end.

    `exact` is the share of that time that the busiest of each kind was busy, as the simulator counted.
    """
    launches = page.result.get("launches", ())
    several = len({sip for each in launches for sip in each.get("sips") or ()}) > 1
    return [
        {
            "name": f"{number}: {each['kernel']}{_where(each) if several else ''}",
            "at": format_time(each["started_ns"]),
            "from": each["started_ns"],
            "to": each["ended_ns"],
            "exact": [[use["name"], use["utilisation"]] for use in each["busiest"]],
        }
        for number, each in enumerate(launches, start=1)
    ]


def _where(launch: Mapping[str, Any]) -> str:
    sips = launch.get("sips")
    return f" on {join_names(f'SIP {sip}' for sip in sips)}" if sips else ""


MACHINE: Final = Section(
    "Machine",
    30,
    _html,
    _data,
    tuple(asset(f"{name}.js") for name in ("window", "figures", "machine")),
    asset("machine.css"),
)
