"""Where the time went: critical paths by kernel line, roofline, queues, scratchpads, hazards, what is missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kernbench_builtin.explain.critical_path import SORTS, WITHOUT_OP
from kernbench_builtin.explain.ledger import PARTS
from kernbench_builtin.pages.plots import held, over_time, roofline
from kernbench_builtin.pages.report.formats import share
from kernbench_builtin.pages.report.page import environment
from kernbench_builtin.pages.report.run_page import RunPage
from kernbench_builtin.pages.report.section import Section
from kernbench_builtin.pages.report.sweep.columns import figure_form
from kernbench_core.wording import spell_numbers

#: Rows of a table that are shown at once; the others stand below "more".
FEW: Final = 12
#: Launches whose tables are open: the longest.
OPENED: Final = 3


def _html(page: RunPage) -> str:
    explain: Mapping[str, Any] = page.explain or {}
    launches = list(_launches(page))
    points = roof_points(launches)
    longest = sorted(launches, key=lambda each: -each["ns"])[:OPENED]
    return environment().get_template("ledger.html").render(
        explained=page.explain is not None,
        total=page.total_ns or 1.0,
        where=sorted(explain.get("where", ()), key=lambda row: -row["ns"]),
        phases=page.result["phases"],
        busiest=list(_busiest(page.result)),
        launches=launches,
        opened={each["number"] for each in longest},
        shown={each["number"] for each in (*launches[:FEW], *longest)},
        points=points,
        roof=roof(launches, points),
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
        without_op=WITHOUT_OP,
        few=FEW,
        columns=_columns(page.result.get("rows", ())),
        form_of=figure_form,
    )  # fmt: skip


def _launches(page: RunPage) -> Iterator[Mapping[str, Any]]:
    """Yield the launches by number: explained, with their ways there and back; else what their programs did."""
    if page.explain is not None:
        for number, launch in enumerate(page.explain.get("launches", ()), start=1):
            since = launch["injected_ns"]
            yield {**launch, **_calls(page, number), "number": number, "from_ns": since,
                   "ns": launch["completed_ns"] - since}  # fmt: skip
        return
    for number, launch in enumerate(page.result.get("launches") or (), start=1):
        since = launch["started_ns"]
        yield {"kernel": launch["kernel"], "number": number, "from_ns": since, "ns": launch["ended_ns"] - since,
               "lines": (), "balance": None, "roofline": launch.get("roofline"), **_calls(page, number)}  # fmt: skip


def _calls(page: RunPage, number: int) -> Mapping[str, Any]:
    """Return what the time of the PE that ended a launch last went to, by call, and that PE: what verdicts tell of."""
    launches = page.result.get("launches") or ()
    launch = launches[number - 1] if number <= len(launches) else {}
    return {"calls": launch.get("path") or (), "last": launch.get("last")}


def _busiest(result: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the busiest place of each kind: of those that kernels used, and then of what only the host did."""
    during = (result.get("kernels") or {}).get("busiest") or ()
    kinds = {use.get("kind") for use in during}
    for use in during:
        yield {"in_kernels": use["utilisation"], "in_all": use.get("run_utilisation"), **_place(use)}
    for use in result.get("busiest") or ():
        if use.get("kind") not in kinds:
            yield {**_place(use), "in_kernels": None, "mean": None, "in_all": use["utilisation"]}


def _place(use: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return which place it is, of which kind, and how busy the others of that kind were."""
    alike, mean = use.get("alike") or 1, use.get("mean_utilisation")
    return {"name": use["name"], "kind": use.get("kind") or "",
            "mean": f"{share(mean)} of {alike}" if alike > 1 and mean is not None else None}  # fmt: skip


def roof_points(launches: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return where launches are under the roof; those of a kernel that are at the same place together."""
    found: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for each in launches:
        point = each["roofline"]
        if point and point["intensity"] and point["achieved"] > 0:
            at = f"{point['intensity']:.2g}", f"{point['achieved']:.2g}", share(point["share"]), point["bound"]
            found.setdefault((each["kernel"], *at), []).append(each)
    return [
        {
            "kernel": kernel,
            "numbers": spell_numbers(each["number"] for each in alike),
            "intensity": alike[0]["roofline"]["intensity"],
            "achieved": alike[0]["roofline"]["achieved"],
            "share": told,
            "bound": bound,
        }
        for (kernel, _, _, told, bound), alike in found.items()
    ]


def roof(launches: Sequence[Mapping[str, Any]], points: Sequence[Mapping[str, Any]]) -> str:
    """Draw the launches under the highest roof of any."""
    peaks = {"GFLOP/s": 0.0, "GB/s": 0.0}
    for launch in launches:
        found = dict.fromkeys(peaks, 0.0)
        for each in (launch["roofline"] or {}).get("resources", ()):
            found[each["unit"]] = found.get(each["unit"], 0.0) + each["peak"]
        peaks = {unit: max(peaks[unit], found[unit]) for unit in peaks}
    drawn = [(f"{each['numbers']}: {each['kernel']}", each["intensity"], each["achieved"]) for each in points]
    return roofline(drawn, peaks["GFLOP/s"], peaks["GB/s"])


def _scratchpads(page: RunPage) -> Iterator[Mapping[str, Any]]:
    """Yield what each scratchpad held, the fullest first, that one with its picture."""
    for use in page.result.get("tcm_map") or ():
        steps = use.get("steps")
        yield {**use, "plot": held(steps, page.total_ns, use["size"]) if steps else ""}


def _columns(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the names of what a bench reported, in the order in which they first appear."""
    return list(dict.fromkeys(name for row in rows for name in row))


LEDGER: Final = Section("Where the time went", 40, _html)
