"""The page of a sweep in a real browser, offline: what is kept, sorted, drawn and told, against plain Python."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from kernbench_builtin.pages.report import SweepPage, SweptObjective, render_sweep
from tests.builtin.report.pages import HOSTILE
from tests.builtin.report.sweep.made_sweep import BANDWIDTH, KIND, OBJECTIVES, ROWS, drawn_points, point, sweep_page

pytestmark = pytest.mark.browser
POINTS = "kernbench.run(0).points"
#: The table and the drawings follow what is kept at the next frame.
FRAME = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 0))))"
Opened = Callable[..., Any]


@pytest.fixture(scope="module")
def points() -> list[dict[str, Any]]:
    """Return points drawn at random, with many equal figures."""
    return drawn_points(120, objectives=3)


@pytest.fixture(scope="module")
def file(points: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return their page."""
    return written(tmp_path_factory.mktemp("swept"), sweep_page(points, OBJECTIVES[:3]))


def written(folder: Path, page: SweepPage, name: str = "sweep") -> Path:
    """Write a page to a file."""
    file = folder / f"{name}.html"
    file.write_text(render_sweep(page), encoding="utf-8")
    return file


def rows(page: Any) -> list[int]:
    """Return the numbers of the points in the table, over all of its pages."""
    found: list[int] = []
    page.evaluate(FRAME)
    page.locator("[aria-label='First rows']").evaluate("button => button.click()")
    while True:
        found += [int(text) for text in page.locator(".table .open").all_inner_texts()]
        on = page.locator("[aria-label='Next rows']")
        if on.get_attribute("aria-disabled") == "true":
            return found
        on.click()


def kept(page: Any) -> list[int]:
    """Return the points that the filter keeps, once all is drawn."""
    page.evaluate(FRAME)
    found: list[int] = page.evaluate(f"[...{POINTS}.kept.keys()].filter((i) => {POINTS}.kept[i])")
    return found


def filtered(page: Any, words: str) -> list[int]:
    """Type words into the filter."""
    page.locator(".filter input").fill(words)
    return kept(page)


def test_a_point_is_found_chosen_and_told(opened: Opened, file: Path, points: list[dict[str, Any]]) -> None:
    """By words, by a click on its row, with its commands; Escape lets go, and clearing keeps all again."""
    page = opened(file)
    wanted = [each["index"] for each in points if each["values"][ROWS] == 16 and each["status"] == "error"]
    assert wanted and filtered(page, "rows=16 error") == wanted == rows(page)
    page.locator(".table .open").first.click()
    panel = page.locator("aside.point")
    assert panel.locator("h3").inner_text() == f"Point {wanted[0]}"
    assert panel.locator(".warn").all_inner_texts() == ["error", "it failed."]
    commands = panel.locator("pre.command").all_inner_texts()
    assert commands == [f"show {points[wanted[0]]['key'][:12]}", f"run {wanted[0]}"]
    assert page.evaluate("location.hash") == f"#point-{points[wanted[0]]['key'][:16]}"
    page.keyboard.press("Escape")
    assert panel.locator("h3").count() == 0 and page.evaluate("location.hash") == ""
    page.get_by_role("button", name="clear").click()
    assert kept(page) == list(range(len(points)))
    assert page.locator(".filter .told").inner_text() == "All 120 points"


@pytest.mark.parametrize("seed", range(3))
def test_the_front_of_two_objectives_is_that_of_comparing_all(opened: Opened, tmp_path: Path, seed: int) -> None:
    """Whichever way either is good, with equal points and points that failed; its line goes up or down steadily."""
    points = drawn_points(150, objectives=3, seed=seed)
    page = opened(written(tmp_path, sweep_page(points, OBJECTIVES[:3])))
    lengths = []
    for x, y in itertools.permutations(range(3), 2):
        pair = [OBJECTIVES[x], OBJECTIVES[y]]
        brute = [i for i, best in enumerate(sweep_page(points, pair).front) if best]
        found = page.evaluate(f"kernbench.front({POINTS}, {POINTS}.objectives()[{x}], {POINTS}.objectives()[{y}])")
        assert sorted(found) == brute
        lengths.append(len(found))
        across = [points[i]["objectives"][OBJECTIVES[x].name] for i in found]
        assert across == sorted(across, reverse=OBJECTIVES[x].greatest)
    assert max(lengths) > 2


def test_the_table_sorts_by_any_column(opened: Opened, file: Path, points: list[dict[str, Any]]) -> None:
    """By number or by name, either way; what has no value comes last, and equal rows keep their order."""
    page = opened(file)
    head = ".table th button"

    def sorted_by(value: Callable[[Mapping[str, Any]], Any], down: bool) -> list[int]:
        known = [each for each in points if value(each) is not None]
        known.sort(key=value, reverse=down)  # which keeps the order of equal ones, too
        return [each["index"] for each in (*known, *(each for each in points if value(each) is None))]

    assert rows(page) == sorted_by(lambda each: each["objectives"].get("time_ns"), False)  # as it opens
    page.locator(head, has_text="point").first.click()
    for text, value in (
        ("time_ns", lambda each: each["objectives"].get("time_ns")),
        ("rows", lambda each: each["values"][ROWS]),
        ("bandwidth", lambda each: float(each["values"][BANDWIDTH].split()[0])),
        ("kind", lambda each: each["values"][KIND]),
    ):
        for down in (False, True):
            page.locator(head, has_text=text).first.click()
            assert page.evaluate("document.activeElement.innerText") == text
            assert rows(page) == sorted_by(value, down)
            state = page.locator(".table th[aria-sort]").get_attribute("aria-sort")
            assert state == ("descending" if down else "ascending")


def test_words_of_the_filter_are_a_small_language(opened: Opened, file: Path, points: list[dict[str, Any]]) -> None:
    """Comparisons by a column's short or whole name, with units, and texts; what is none of it is told."""
    page = opened(file)

    def having(test: Callable[[dict[str, Any]], Any]) -> list[int]:
        return [each["index"] for each in points if test(each)]

    def bandwidth(each: dict[str, Any]) -> float:
        return float(each["values"][BANDWIDTH].split()[0])

    time = {each["index"]: each["objectives"].get("time_ns", math.nan) for each in points}
    assert filtered(page, "time_ns<10ns kind!=ring") == having(
        lambda each: time[each["index"]] < 10 and each["values"][KIND] != "ring"
    )
    assert filtered(page, f"{ROWS}>=32 bandwidth<=0.2TB/s") == having(
        lambda each: each["values"][ROWS] >= 32 and bandwidth(each) <= 200
    )
    assert filtered(page, "TOR") == having(lambda each: each["values"][KIND] == "torus")
    assert filtered(page, "colour=red") == filtered(page, "kind<3") == having(lambda each: True)
    assert page.locator(".filter .told").inner_text() == "All 120 points. kind<3 compares no numbers."
    filtered(page, "")
    select = page.get_by_label("Which points")
    for choice, test in (
        ("those that failed", lambda each: each["status"] != "ok"),
        ("those that ran", lambda each: each["status"] == "ok"),
    ):
        select.select_option(label=choice)
        assert kept(page) == having(test)


def test_a_brush_keeps_what_goes_through_it(opened: Opened, file: Path, points: list[dict[str, Any]]) -> None:
    """By the keyboard and by dragging, on axes with a logarithm and without; a click on the axis keeps all again."""
    page = opened(file)
    page.get_by_role("slider", name=f"Largest {ROWS} that is kept").press("ArrowLeft")
    assert kept(page) == [each["index"] for each in points if each["values"][ROWS] <= 32]
    page.get_by_role("slider", name=f"Smallest {KIND} that is kept").press("ArrowRight")
    wanted = [each for each in points if each["values"][ROWS] <= 32 and each["values"][KIND] != "mesh"]
    assert kept(page) == [each["index"] for each in wanted]
    page.get_by_role("button", name="clear").click()
    ground = page.locator(".parallel .ground").bounding_box()
    slider = page.get_by_role("slider", name=f"Largest {BANDWIDTH} that is kept")
    box = slider.bounding_box()
    x, top = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    assert abs(top - ground["y"] - 52) < 1
    page.mouse.move(x, top + 30)
    page.mouse.down()
    page.mouse.move(x, top + 75, steps=3)
    page.mouse.move(x, top + 150, steps=3)
    page.mouse.up()
    known = [float(each["values"][BANDWIDTH].split()[0]) for each in points]
    low, high = min(known), max(known)
    # the axis is 300 pixels long, the largest value at its top, and logarithmic
    ends = [low * (high / low) ** (1 - down / 300) for down in (150, 30)]
    near = [value for value in known if any(abs(value / end - 1) < 0.01 for end in ends)]
    inside = [i for i, value in enumerate(known) if ends[0] <= value <= ends[1] and value not in near]
    assert set(inside) <= set(kept(page)) <= {*inside, *(known.index(value) for value in near)}
    page.mouse.click(x, top + 100)
    assert kept(page) == list(range(len(points)))


def test_the_keyboard_goes_through_the_scatter(opened: Opened, file: Path, points: list[dict[str, Any]]) -> None:
    """From point to point by what is across, along the front, into the panel and back."""
    page = opened(file)
    plot = page.locator(".scatter canvas")
    plot.focus()
    plot.press("ArrowRight")
    ran = [each for each in points if each["status"] == "ok"]
    order = sorted(ran, key=lambda each: (each["objectives"]["time_ns"], each["objectives"]["area"], each["index"]))
    told = page.locator(".scatter .told")
    assert told.inner_text().startswith(f"Point {order[0]['index']}: time_ns ")
    plot.press("ArrowRight")
    assert told.inner_text().startswith(f"Point {order[1]['index']}: ")
    plot.press("ArrowUp")
    assert told.inner_text().endswith(", on the front.")
    plot.press("Enter")
    assert page.evaluate("document.activeElement.tagName") == "H3"
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement === document.querySelector('.scatter canvas')")
    page.get_by_label("Column up").select_option(label="kind")
    assert told.inner_text().startswith("A front is drawn where both columns are objectives.")
    page.locator(".moved button").first.click()
    assert plot.get_attribute("aria-label").startswith("Scatter of time_ns over components.pe_gemm.params.rows;")


def test_it_opens_on_the_best_point(opened: Opened, file: Path, points: list[dict[str, Any]]) -> None:
    """Of the first objective; another point stands beside it, with what differs, how much; not on narrow pages."""
    page = opened(file)
    name = OBJECTIVES[0].name
    ran = [each for each in points if each["objectives"].get(name) is not None]
    best = min(ran, key=lambda each: each["objectives"][name])
    title = page.locator("aside.point h3")
    assert title.inner_text() == f"Point {best['index']}" and "#point-" not in page.url
    other = next(each for each in ran if each["objectives"][name] != best["objectives"][name])
    page.evaluate(f"kernbench.run(0).set('point', {other['index']})")
    more = 100 * (other["objectives"][name] / best["objectives"][name] - 1)
    assert f", +{more:.1f}%)" in page.locator("aside.point .facts").nth(1).inner_text()
    page.get_by_role("button", name=f"best, point {best['index']}").click()
    assert title.inner_text() == f"Point {best['index']}"
    assert not opened(file, viewport={"width": 600, "height": 900}).locator("aside.point").is_visible()


def test_an_address_names_a_point(opened: Opened, file: Path, points: list[dict[str, Any]]) -> None:
    """When the page is opened with it, and when it changes; the table turns to the row."""
    page = opened(file)
    page.evaluate(f"location.hash = '#point-{points[77]['key'][:16]}'")
    page.locator("aside.point h3", has_text="Point 77").wait_for()
    assert page.locator(".table tr.chosen .open").inner_text() == "77"
    page.reload()
    page.locator("aside.point h3", has_text="Point 77").wait_for()


INFINITE = [
    point(0, {"x": 1}, {"time_ns": math.inf, "area": 1.0}),
    point(1, {"x": 2}, {"time_ns": 5.0, "area": math.nan}),
    point(2, {"x": 3}, {"time_ns": 7.0, "area": 2.0}),
    point(3, {"x": 3}, {"time_ns": -math.inf, "area": 3.0}),
]
ODD: Mapping[str, tuple[Sequence[Mapping[str, Any]], Sequence[SweptObjective]]] = {
    "none": ([], OBJECTIVES[:2]),
    "one": (drawn_points(1, failing=0), OBJECTIVES[:2]),
    "all failed": (drawn_points(5, failing=1), OBJECTIVES[:2]),
    "not finite": (INFINITE, OBJECTIVES[:2]),
    "one objective": (drawn_points(20, objectives=1), OBJECTIVES[:1]),
    "nothing but keys": ([point(0, {}, {}), point(1, {}, {})], ()),
    "figures alone": ([point(i, {}, {}, figures={"f": float(i)}) for i in range(3)], ()),
    "no objective": (drawn_points(20, objectives=0), ()),
    "five objectives": (drawn_points(40, objectives=5), OBJECTIVES),
    "no parameter": ([point(0, {}, {"time_ns": 1.0, "area": 2.0})], OBJECTIVES[:2]),
}


@pytest.mark.parametrize("case", ODD)
@pytest.mark.parametrize(("width", "theme"), [(320, "dark"), (1600, "light")])
def test_an_odd_sweep_has_a_page(opened: Opened, tmp_path: Path, case: str, width: int, theme: str) -> None:
    """Nothing is told on the console, nothing is wider than the window, and every point can be chosen."""
    points, objectives = ODD[case]
    viewport = {"width": width, "height": 900}
    page = opened(written(tmp_path, sweep_page(points, objectives)), viewport=viewport, color_scheme=theme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("[role=alert]").count() == 0
    if points:
        assert sorted(rows(page)) == [each["index"] for each in points]
        for i in range(min(3, len(points))):
            page.evaluate(f"kernbench.run(0).set('point', {i})")
            assert page.locator("aside.point h3").inner_text() == f"Point {i}"
        page.wait_for_timeout(50)
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_figures_that_are_not_finite_are_told_as_such(opened: Opened, tmp_path: Path) -> None:
    """They have no place in the scatter, and are on no front."""
    page = opened(written(tmp_path, sweep_page(INFINITE)))
    read = "body => [...body.rows].map((row) => [...row.cells].slice(-2).map((cell) => cell.innerText))"
    cells = page.locator(".table tbody").evaluate(read)
    assert cells == [["−∞", "3"], ["5 ns", "–"], ["7 ns", "2"], ["∞", "1"]]
    brute = [i for i, best in enumerate(sweep_page(INFINITE).front) if best]
    assert sorted(page.evaluate(f"kernbench.front({POINTS}, ...{POINTS}.objectives())")) == brute
    assert "3 points have no value here" in page.locator(".scatter .told").inner_text()


def test_hostile_texts_stay_texts(opened: Opened, tmp_path: Path) -> None:
    """Of names, values, errors and commands, in the table, the panel and the axes."""
    points = [
        point(0, {"x" + HOSTILE: "ring" + HOSTILE}, {"t" + HOSTILE: 1.0}),
        point(1, {"x" + HOSTILE: "mesh"}, error="no" + HOSTILE, status="error" + HOSTILE, warnings=["w" + HOSTILE]),
    ]
    swept = sweep_page(points, [SweptObjective("t" + HOSTILE)], commands=[("run" + HOSTILE, "show" + HOSTILE)] * 2)
    page = opened(written(tmp_path, swept))
    page.evaluate("kernbench.run(0).set('point', 1)")
    panel = page.locator("aside.point").text_content()
    assert all(word + HOSTILE in panel for word in ("no", "error", "w", "run", "show", "x", "t"))
    assert page.locator("img").count() == 0
    assert f"ring{HOSTILE}" in page.locator(".table").text_content()


def test_a_link_leads_to_the_page_of_the_run(opened: Opened, tmp_path: Path, points: list[dict[str, Any]]) -> None:
    """Where there is one; the others say how to make theirs."""
    links = ["runs/a b/report.html", *[""] * (len(points) - 1)]
    page = opened(written(tmp_path, sweep_page(points, OBJECTIVES[:3], links=links)))
    page.evaluate("kernbench.run(0).set('point', 0)")
    assert page.locator("aside.point a.run").get_attribute("href") == "runs/a b/report.html"
    assert page.locator("aside.point pre.command").all_inner_texts() == ["run 0"]


def test_nothing_moves_by_itself_where_that_is_not_wanted(opened: Opened, file: Path) -> None:
    """The way to the scatter is a jump then."""
    page = opened(file, reduced_motion="reduce")
    page.evaluate("() => { Element.prototype.scrollIntoView = (how) => { window.how = how.behavior; }; }")
    page.locator(".moved button").first.click()
    assert page.evaluate("window.how") == "auto"


@pytest.mark.parametrize("width", [1200, 340])
def test_a_click_on_a_line_or_a_dot_shows_its_point(opened: Opened, tmp_path: Path, width: int) -> None:
    """Where axes stand and where they lie; a click beside them shows none."""
    points = [point(0, {"x": 1}, {"time_ns": 10.0}), point(1, {"x": 3}, {"time_ns": 30.0}), point(2, {"x": 3})]
    page = opened(
        written(tmp_path, sweep_page(points, OBJECTIVES[:1])), viewport={"width": width, "height": 1600}
    )  # fmt: skip
    title = page.locator("aside.point h3")
    ends = [page.get_by_role("slider", name=f"{end} {name} that is kept").bounding_box()
            for name in ("x", "time_ns") for end in ("Smallest", "Largest")]  # fmt: skip
    low_x, high_x, low_time, high_time = ((box["x"] + box["width"] / 2, box["y"] + box["height"] / 2) for box in ends)

    def between(a: tuple[float, float], b: tuple[float, float], off: float = 0.0) -> tuple[float, float]:
        x, y = a[0] + 0.6 * (b[0] - a[0]), a[1] + 0.6 * (b[1] - a[1])
        return (x, y + off) if width > 1000 else (x + off, y)

    for number, place in ((0, between(low_x, low_time)), (1, between(high_x, high_time, 3))):
        page.mouse.click(*place)
        assert title.inner_text() == f"Point {number}"
        page.keyboard.press("Escape")
    page.mouse.click(*between(low_x, low_time, 60 if width < 1000 else -60))
    assert title.count() == 0
    plot = page.locator(".scatter canvas")
    box = plot.bounding_box()
    wide, high = box["width"] - 74 - 32, box["height"] - 34 - 48
    for number, at in ((0, (74 + 16, 16 + high)), (1, (74 + 16 + wide, 16)), (2, (74 + 16 + wide, 16 + high + 34))):
        plot.click(position={"x": at[0] - (2 if number == 1 else 0), "y": at[1]})
        assert title.inner_text() == f"Point {number}"
        page.keyboard.press("Escape")
    plot.click(position={"x": 74 + 16 + wide / 2, "y": 16 + high / 4})
    assert title.count() == 0


def test_an_axis_is_linear_or_logarithmic(opened: Opened, tmp_path: Path) -> None:
    """Places are shares of the difference, or of the factor; all stand in the middle where there is one value."""
    values = [1.0, 10.0, 25.0, 1000.0]
    points = [point(i, {"x": i, "same": 7}, {"time_ns": each}) for i, each in enumerate(values)]
    points += [point(9, {"x": 4, "same": 7}), point(10, {"x": 5, "same": 7}, {"time_ns": math.inf})]
    page = opened(written(tmp_path, sweep_page(points, OBJECTIVES[:1])))

    def places(column: int, log: bool) -> list[float | None]:
        scale = f"new kernbench.Scale({POINTS}.columns[{column}], {POINTS}.count, {str(log).lower()})"
        found: list[float | None] = page.evaluate(f"[...{scale}.at].map((at) => Number.isNaN(at) ? null : at)")
        return found

    time = 2
    assert places(time, False) == pytest.approx([*((each - 1) / 999 for each in values), None, None], abs=1e-6)
    assert places(time, True) == pytest.approx([*(math.log10(each) / 3 for each in values), None, None], abs=1e-6)
    assert places(1, True) == [0.5] * 6
    button = page.get_by_role("button", name="Logarithmic axis of time_ns")
    assert button.get_attribute("aria-pressed") == "true"
    slider = page.get_by_role("slider", name="Largest time_ns that is kept")
    slider.press("ArrowLeft")
    assert kept(page) == [0, 1, 2] and slider.get_attribute("aria-valuetext") == "25 ns"
    button.click()
    assert (button.get_attribute("aria-pressed"), kept(page)) == ("false", list(range(6)))
    assert page.get_by_role("button", name="Logarithmic axis of same").count() == 0


def test_the_best_are_kept_and_a_narrow_table_is_short(
    opened: Opened, file: Path, points: list[dict[str, Any]]
) -> None:
    """Ten rows at a time on a narrow page, each cell below its head; a star for those that none is better than."""
    page = opened(file, viewport={"width": 320, "height": 900})
    page.get_by_label("Which points").select_option(label="the best")
    best = [i for i, each in enumerate(sweep_page(points, OBJECTIVES[:3]).front) if each]
    assert kept(page) == best and page.locator(".table [role=img]").count() == min(10, len(best))
    assert sorted(rows(page)) == best
    page.get_by_role("button", name="clear").click()
    page.evaluate(FRAME)
    assert page.locator(".table .open").count() == 10
    cell = page.locator(".table tbody tr").first.locator("td").nth(2)
    assert cell.get_attribute("data-head") == "front"
