"""What a page opens on: the longest launch, the PE that its verdict tells of, a colour for each line; nothing jumps."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import kernbench_core as kb
from kernbench_builtin.explain.critical_path import WITHOUT_OP
from kernbench_builtin.explain.text import print_explanation
from kernbench_builtin.pages.report.saved_runs import read_run
from kernbench_builtin.pages.run_report import write_report
from kernbench_core.plugins import Plugins

pytestmark = pytest.mark.browser
TIMELINE = "article[data-section=timeline]"


def short(x_ptr: Any, n: int, tl: Any) -> None:
    """Load and store a little."""
    tl.store(x_ptr, tl.load(x_ptr, shape=(n,)))


def long(x_ptr: Any, n: int, tl: Any) -> None:
    """Compute for longer, on one of the PEs for longest."""
    row = tl.load(x_ptr, shape=(n,))
    for _ in range(2 + 4 * (tl.program_id(0) == 2)):
        row = tl.exp(row)
    tl.store(x_ptr + tl.program_id(0) * n, row)


def bench(rt: Any) -> None:
    """Launch the short one, the long one, and the short one again."""
    x = rt.zeros((4, 256), "f32")
    for kernel in (short, long, short):
        rt.launch(kernel, x, 256, grid=(4,))


@pytest.fixture(scope="module")
def run(plugins: Plugins, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, kb.RunResult]:
    """Return the folder of a run of three launches, with a page, and its result."""
    folder = tmp_path_factory.mktemp("opening") / "run"
    result = kb.run(bench, "tiny", plugins=plugins, explain=True, out=folder, report=folder.parent / "one.html")
    return folder, result


def test_a_page_opens_on_the_longest_launch(opened: Callable[..., Any], run: tuple[Path, Any]) -> None:
    """Its window is the launch's, the machine is drawn around the PE, and that PE alone is open."""
    folder, result = run
    page = opened(folder.parent / "one.html", whole=False)
    number, launch = max(enumerate(result.launches), key=lambda each: each[1].time_ns)
    assert number == 1
    assert page.evaluate("kernbench.run(0).window.slice(0, 2)") == [launch.started_ns, launch.ended_ns]
    assert page.locator(f"{TIMELINE} .told").inner_text().startswith("Launch 2: long, ")
    pe = launch.last
    assert page.evaluate("kernbench.run(0).machine.part") == pe.rpartition(".")[0]
    opens = page.evaluate("""() => { const { rows, data } = kernbench.run(0).timeline;
        return rows.filter((row) => row.opens && !row.shut).map((row) => row.node); }""")
    assert opens == [pe.split(".")[0], pe.rpartition(".")[0], pe]
    path = result.explain.to_json()["launches"][number]["path"]
    longest = max(path, key=lambda each: each["to_ns"] - each["from_ns"])
    told = page.locator(f"{TIMELINE} .span-detail h4").inner_text()
    assert told == f"Longest on the critical path: {longest.get('call') or WITHOUT_OP[longest['sort']]}"
    most = max(launch.busiest, key=lambda each: each.utilisation)
    busiest = page.locator("article[data-section=machine] .busiest button").first
    assert busiest.inner_text() == most.name.replace("->", " → ")
    page.locator(f"{TIMELINE} .reset").click()
    assert page.evaluate("kernbench.run(0).window") is None
    page.locator("article[data-section=machine] h4", has_text="Busiest of each kind in the run").wait_for()
    most = max(result.busiest, key=lambda each: each.utilisation)
    assert busiest.inner_text() == most.name.replace("->", " → ")


def test_the_open_pe_is_in_sight(opened: Callable[..., Any], run: tuple[Path, Any]) -> None:
    """Where not all rows have room, it is the second row of the timeline from the start."""
    page = opened(run[0].parent / "one.html", whole=False, viewport={"width": 400, "height": 400})
    begin, row, most = page.evaluate("""() => { const { box, rowOf, pe } = kernbench.run(0).timeline;
        return [box.scrollTop, rowOf.get(pe).y, box.scrollHeight - box.clientHeight]; }""")
    assert begin == min(row - 19, most) > 0


def test_nothing_is_scrolled_away_where_the_open_pe_has_room(
    opened: Callable[..., Any], run: tuple[Path, kb.RunResult]
) -> None:
    """The host and the launches stand above it."""
    page = opened(run[0].parent / "one.html", whole=False, viewport={"width": 1280, "height": 700})
    begin, most = page.evaluate("""() => { const { box } = kernbench.run(0).timeline;
        return [box.scrollTop, box.scrollHeight - box.clientHeight]; }""")
    assert begin == 0 < most


def test_headings_and_tables_of_launches_have_room(opened: Callable[..., Any], run: tuple[Path, Any]) -> None:
    """Where two stand beside each other; a table that is wider has a shade where it goes on."""
    page = opened(run[0].parent / "one.html", whole=False, viewport={"width": 1280, "height": 900})
    wide = page.locator("article[data-section=ledger] :is(.pair .wide, [aria-label='Busiest of its kind'])")
    sizes = wide.evaluate_all("all => all.map((each) => [each.scrollWidth, each.clientWidth])")
    assert sizes and all(inner <= outer for inner, outer in sizes if outer)
    assert wide.first.evaluate("each => getComputedStyle(each).backgroundAttachment") == "local, local, scroll, scroll"


def test_what_is_for_no_op_is_called_as_the_terminal_calls_it(
    opened: Callable[..., Any], run: tuple[Path, Any]
) -> None:
    """In the table of the critical path, and in the timeline."""
    printed = io.StringIO()
    print_explanation(run[1].explain, Console(width=200, file=printed), verbose=True)
    lines = {line.strip().partition("  ")[0] for line in printed.getvalue().splitlines()}
    page = opened(run[0].parent / "one.html", whole=False)
    table = page.locator("[aria-label='Critical path of launch 2 by kernel line'] tbody tr")
    told = table.evaluate_all("""all => all.map((row) => [...row.cells].map((cell) => cell.textContent))
        .filter(([, line]) => !line).map(([what]) => what)""")
    assert "launch on its way" in told and lines.issuperset(told)
    page.evaluate("""() => { const it = kernbench.run(0).timeline;
        it.chooseSegment(it.data.path.findIndex(({ sort }) => sort === "launch")); }""")
    heading = page.locator(f"{TIMELINE} .span-detail h4").inner_text()
    assert heading == "On the critical path: launch on its way"


def test_a_docstring_of_one_line_is_a_text(opened: Callable[..., Any], run: tuple[Path, Any]) -> None:
    """And no word in it is a keyword."""
    page = opened(run[0].parent / "one.html", whole=False)
    texts = page.locator(f"{TIMELINE} .source .text").all_inner_texts()
    assert '"""Compute for longer, on one of the PEs for longest."""' in texts


def test_a_click_moves_nothing(opened: Callable[..., Any], run: tuple[Path, Any]) -> None:
    """Spans, segments and boxes tell at the side; all stays where it was, and the source follows."""
    page = opened(run[0].parent / "one.html", whole=False)
    where = """() => [...document.querySelectorAll("h2, canvas, .ground, .source")].map(
        (each) => Math.round(each.getBoundingClientRect().top + scrollY))"""
    before = page.evaluate(where)
    timeline = "const it = kernbench.run(0).timeline;"
    page.evaluate(f"() => {{ {timeline} it.chooseSegment(it.data.path.findIndex((each) => each.line)); }}")
    assert page.locator(f"{TIMELINE} .source tr.chosen").count() == 1
    page.evaluate(f"() => {{ {timeline} it.choose(it.spans.line.findIndex((line) => line >= 0)); }}")
    assert "for" in page.locator(f"{TIMELINE} .span-detail dt").all_inner_texts()
    page.locator("article[data-section=machine] [data-box]").first.click()
    assert page.evaluate(where) == before


def test_a_line_has_one_colour(opened: Callable[..., Any], run: tuple[Path, Any]) -> None:
    """In the timeline, the source, the flame and the legend; that of the critical path is no line's."""
    page = opened(run[0].parent / "one.html", whole=False)
    page.wait_for_timeout(200)
    painted, source, flame, legend, critical = page.evaluate("""() => {
        const { data, painter, spans, element } = kernbench.run(0).timeline;
        const line = data.lines.findIndex(({ text }) => text.includes("tl.exp"));
        const named = `${data.lines[line].number}`;
        const shown = (colour) => { const it = document.createElement("p"); it.style.color = colour;
            document.body.append(it); const found = getComputedStyle(it).color; it.remove(); return found; };
        const all = (selector) => [...element.querySelectorAll(selector)];
        const row = all(".source tr.hot").find((each) => each.querySelector(".no").textContent === named);
        const bar = all(".icicle .line").find((each) => each.textContent.includes("tl.exp"));
        const key = all(".legend.lines li").find((each) => each.textContent.includes("tl.exp"));
        const one = spans.line.findIndex((each) => each === line);
        return [painter.colour(one) === data.colourOf[line] && shown(kernbench.lineColour(data, line).ground),
            getComputedStyle(row.querySelector(".flame rect")).fill, getComputedStyle(bar).backgroundColor,
            getComputedStyle(key.querySelector("rect")).fill, kernbench.css("--kb-crit")];
    }""")
    assert painted and {source, flame, legend} == {painted}
    assert critical and critical not in page.evaluate("""() => { const { data } = kernbench.run(0).timeline;
        return data.lines.map((_, line) => kernbench.lineColour(data, line).ground); }""")


def test_runs_side_by_side_open_on_windows_of_one_length(
    opened: Callable[..., Any], run: tuple[Path, Any], plugins: Plugins, tmp_path: Path
) -> None:
    """That of the longest launch of any, from where each one's own begins."""
    folder, result = run
    other = kb.run(short_bench, "tiny", plugins=plugins, explain=True, out=tmp_path / "other")
    write_report(tmp_path / "both.html", [read_run(folder), read_run(tmp_path / "other")], plugins)
    page = opened(tmp_path / "both.html", whole=False)
    longest = max(launch.time_ns for launch in result.launches)
    for number, launch in enumerate((result.launches[1], other.launches[0])):
        begin, end = page.evaluate(f"kernbench.run({number}).window")
        assert begin == launch.started_ns
        assert end - begin == pytest.approx(longest)


def short_bench(rt: Any) -> None:
    """Launch the short one alone."""
    rt.launch(short, rt.zeros((256,), "f32"), 256, grid=(1,))
