"""Where the time went: critical paths by kernel line, roofline, queues, scratchpads, hazards, what is missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kernbench_core.drawing.plots import held, over_time, roofline
from kernbench_core.explain.critical_path import SORTS
from kernbench_core.explain.ledger import PARTS
from kernbench_core.report.page import environment
from kernbench_core.report.run_page import RunPage
from kernbench_core.report.section import Section

#: Rows of a table that are shown at once; the others stand below "more".
FEW: Final = 12


def _html(page: RunPage) -> str:
    explain: Mapping[str, Any] = page.explain or {}
    launches = list(_launches(explain))
    points = [(each["kernel"], each["roofline"]["intensity"] or 0.0, each["roofline"]["achieved"])
              for each in launches if each["roofline"]]  # fmt: skip
    return environment().get_template("ledger.html").render(
        explained=page.explain is not None,
        total=page.total_ns or 1.0,
        where=sorted(explain.get("where", ()), key=lambda row: -row["ns"]),
        launches=launches,
        roof=_roof(launches, points),
        queueing=explain.get("queueing", ()),
        messages=explain.get("ledger", ()),
        usage=[{**use, "plot": over_time(use["utilisation"]), "most": max(use["utilisation"], default=0.0)}
               for use in explain.get("utilisation", {}).get("kinds", ())],
        filling=explain.get("filling", ()),
        scratchpads=list(_scratchpads(page)),
        asked_for_scratchpads="tcm_map" in page.result,
        result=page.result,
        parts=PARTS,
        sorts=SORTS,
        few=FEW,
        columns=_columns(page.result.get("rows", ())),
    )  # fmt: skip


def _launches(explain: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for number, launch in enumerate(explain.get("launches", ()), start=1):
        yield {**launch, "number": number, "ns": launch["completed_ns"] - launch["injected_ns"]}


def _roof(launches: Sequence[Mapping[str, Any]], points: Sequence[tuple[str, float, float]]) -> str:
    """Draw the launches under the highest roof of any."""
    peaks = {"GFLOP/s": 0.0, "GB/s": 0.0}
    for launch in launches:
        found = dict.fromkeys(peaks, 0.0)
        for each in (launch["roofline"] or {}).get("resources", ()):
            found[each["unit"]] = found.get(each["unit"], 0.0) + each["peak"]
        peaks = {unit: max(peaks[unit], found[unit]) for unit in peaks}
    return roofline(points, peaks["GFLOP/s"], peaks["GB/s"])


def _scratchpads(page: RunPage) -> Iterator[Mapping[str, Any]]:
    """Yield what each scratchpad held, the fullest first, that one with its picture."""
    for use in page.result.get("tcm_map") or ():
        steps = use.get("steps")
        yield {**use, "plot": held(steps, page.total_ns, use["size"]) if steps else ""}


def _columns(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the names of what a bench reported, in the order in which they first appear."""
    return list(dict.fromkeys(name for row in rows for name in row))


LEDGER: Final = Section("Ledger", 40, _html)
