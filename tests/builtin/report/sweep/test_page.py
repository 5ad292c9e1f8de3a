"""The page of a sweep before any script runs: its head, its table of what moves what, and nothing that breaks out."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest

from kernbench_builtin.pages.report import MovedBy, SweptObjective, render_sweep
from kernbench_builtin.pages.report.sweep.page import verdict_of
from tests.builtin.report.pages import HOSTILE, Elements
from tests.builtin.report.sweep.made_sweep import KIND, OBJECTIVES, ROWS, drawn_points, point, sweep_page


def told(text: str, element: str) -> list[str]:
    """Return the texts in elements of this kind, with blanks as one."""
    found = re.findall(rf"<{element}\b[^>]*>(.*?)</{element}>", text, re.DOTALL)
    return [" ".join(html.unescape(re.sub(r"<[^>]+>", " ", each)).split()) for each in found]


def figures(text: str) -> dict[str, str]:
    """Return what the head says, by name."""
    head = re.search(r'<dl class="figures">(.*?)</dl>', text, re.DOTALL)
    assert head is not None
    return dict(zip(told(head[1], "dt"), told(head[1], "dd"), strict=True))


def test_the_head_counts_what_became_of_the_points_and_names_the_best() -> None:
    """The best by the direction of each objective; a point that failed is the best of nothing, and ties are named."""
    points = [
        point(0, {"x": 1}, {"time_ns": 1500.0, "gain": 2.0}),
        point(1, {"x": 2}, {"time_ns": 900.0, "gain": 3.0}),
        point(2, {"x": 3}, {"time_ns": 900.0, "gain": 1.0}),
        point(3, {"x": 4}, {"time_ns": 1.0, "gain": 9.0}, status="wrong"),
        point(4, {"x": 5}, status="deadlock"),
        point(5, {"x": 6}, {"time_ns": float("nan"), "gain": float("inf")}),
    ]
    page = sweep_page(points, [SweptObjective("time_ns"), SweptObjective("gain", greatest=True)], planned=9, skipped=3)
    assert figures(render_sweep(page)) == {
        "ran": "4 points", "deadlocked": "1 point", "computed wrong data": "1 point", "still to run": "3 points",
        "left out by constraints": "3 points", "least time_ns": "900 ns point 1 , point 2",
        "greatest gain": "3 point 1",
    }  # fmt: skip


def test_each_parameter_tells_what_it_moves() -> None:
    """The one that moves anything most stands first; chance is not sold as more, and what is not known says why."""
    moved = [
        MovedBy("x", "time_ns", 0.25, chance=0.2, ends=((900.0, "2"), (1500.0, "16"))),
        MovedBy("x", "area", 0.05, chance=0.05, ends=((1.0, "2"), (2.0, "16"))),
        MovedBy("y", "time_ns", 0.75, ends=((900.0, "ring"), (2500.0, "mesh"))),
        MovedBy("y", "area", None, "it has one value"),
        MovedBy("z", "time_ns", 0.0),
    ]
    points = [point(0, {"x": 2, "y": "ring", "z": 1}, {"time_ns": 1.0, "area": 1.0})]
    text = render_sweep(sweep_page(points, moved_by=moved))
    assert told(text.partition('id="moved"')[2].partition("</table>")[0], "tr") == [
        "parameter time_ns area",
        "y 75.0% 900 ns at ring … 2.5 us at mesh it has one value",
        "x 25.0% 900 ns at 2 … 1.5 us at 16 5.0% no more than chance",
        "z 0.0% nothing –",
    ]


@pytest.mark.parametrize("points", [[], drawn_points(1, failing=0), drawn_points(3, failing=1)])
def test_a_page_of_few_points_is_whole(points: list[dict[str, Any]]) -> None:
    """None at all, one, none that ran: the parts that have nothing to show are not there."""
    text = render_sweep(sweep_page(points, moved_by=()))
    titles = ["Verdict", *(["Parallel coordinates", "Scatter", "Points"] if points else [])]
    assert told(text, "h2") == titles
    assert ("No point is recorded yet" in text) == (not points)
    assert figures(text)["ran"] == f"{sum(each['status'] == 'ok' for each in points)} point" + "s" * (len(points) != 1)


def hostile(value: Any) -> Any:
    """Make every text of a point hostile, names of parameters and figures among them."""
    if isinstance(value, str):
        return value + HOSTILE
    return {key + HOSTILE: hostile(each) for key, each in value.items()} if isinstance(value, dict) else value


def test_no_text_breaks_out_of_the_page() -> None:
    """Of a bench, an objective, a value, an error, a command: the page has the same elements as with harmless ones."""
    points = [point(0, {"x": "ring"}, {"time_ns": 1.0}), point(1, {"x": "mesh"})]
    evil = [
        {**each, "values": hostile(each["values"]), "figures": hostile(each["figures"]), "error": HOSTILE,
         "objectives": hostile(each["objectives"]), "status": hostile(each["status"]) if each["index"] else "ok"}
        for each in points
    ]  # fmt: skip
    pages = []
    for some, more in ((points, ""), (evil, HOSTILE)):
        objectives = [SweptObjective("time_ns" + more)]
        pages.append(render_sweep(sweep_page(
            some, objectives, name="n" + more, facts=[("bench" + more, "gemm" + more)], notes=["note" + more],
            moved_of="of" + more, commands=[("run" + more, "show" + more)] * 2, links=["a.html" + more] * 2,
        )))  # fmt: skip
    plain, bad = (Elements(page) for page in pages)
    assert [tag for tag, _ in bad.found] == [tag for tag, _ in plain.found]
    assert [attributes for tag, attributes, _ in bad.texts] == [attributes for tag, attributes, _ in plain.texts]


def test_ten_thousand_points_are_small() -> None:
    """Hashes, which nothing packs, are most of it: 128 characters a point, which deflate and base64 leave at 90."""
    points = drawn_points(400, objectives=5)
    more = len(render_sweep(sweep_page(points, OBJECTIVES))) - len(render_sweep(sweep_page(points[:1], OBJECTIVES)))
    assert more < 180 * len(points)


def test_parameters_keep_their_order() -> None:
    """In columns they stand as the plan has them."""
    text = render_sweep(sweep_page(drawn_points(3), moved_by=[MovedBy(KIND, "area", 0.5), MovedBy(ROWS, "area", 0.5)]))
    assert 'data-over="0"' in text and 'data-over="2"' in text and 'data-over="1"' not in text


def test_the_verdict_names_the_best_and_what_moves_it() -> None:
    """The first objective's best with its values, the size of the front, the median, the worst, the main parameters."""
    times = ((0, 300.0), (1, 200.0), (2, 100.0))
    points = [point(i, {"a.x": i, "b.x": "k", "c.y": 2}, {"time_ns": ns, "area": float(i)}) for i, ns in times]
    moved = [MovedBy("a.x", "time_ns", 0.9), MovedBy("c.y", "time_ns", 0.02, chance=0.1), MovedBy("b.x", "area", 0.99)]
    assert list(verdict_of(sweep_page(points, moved_by=moved))) == [
        "least time_ns: 100 ns, with area 2, point 2: a.x=2, b.x=k, y=2.",
        "3 of 3 points are on the front of time_ns and area: what is better in one is worse in another.",
        "The median is 200 ns (+100%), the worst 300 ns (+200%).",
        "What moves time_ns most: a.x (90% of its variance); least: y (2%).",
    ]
    greatest = [SweptObjective("time_ns", greatest=True)]
    assert next(verdict_of(sweep_page(points, greatest))).startswith("greatest time_ns: 300 ns, point 0: ")
    assert list(verdict_of(sweep_page([point(0, {"x": 1})]))) == list(verdict_of(sweep_page([]))) == []
