"""The page in a real browser, offline: views, clicks, brush, keys, colours; skipped where there is no browser."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kernbench_core as kb
from kernbench_builtin.pages.report.saved_runs import read_run
from kernbench_builtin.pages.run_report import write_report
from kernbench_core.plugins import Plugins
from kernbench_core.units import format_time

pytestmark = pytest.mark.browser
MACHINE = "article[data-section=machine]"
TOTAL = "kernbench.run(0).machine.total"
TIMELINE = "article[data-section=timeline]"


@pytest.fixture(scope="module")
def runs(plugins: Plugins, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return the page of one run, and one of two runs from their folders."""
    folder = tmp_path_factory.mktemp("report")
    one = folder / "one.html"
    for name, tile in (("a", 64), ("b", 128)):
        kb.run(
            "gemm", "tiny", {"M": 128, "N": 128, "K": 128, "tile_m": tile}, plugins=plugins, verify_data=True,
            tcm_map=True, explain=True, out=folder / name, report=one if name == "a" else None,
        )  # fmt: skip
    both = folder / "both.html"
    write_report(both, [read_run(folder / name) for name in ("a", "b")], plugins)
    return one, both


def pixels(page: Any, selector: str) -> str:
    """Return what a canvas shows, as text."""
    page.wait_for_timeout(120)
    return str(page.eval_on_selector(selector, "canvas => canvas.toDataURL()"))


def test_every_view_is_there_and_descends(opened: Callable[..., Any], runs: tuple[Path, Path]) -> None:
    """From the cube, where the only package begins, into a PE and back to the whole by the crumbs."""
    page = opened(runs[0])
    titles = page.locator("section h2").all_inner_texts()
    assert titles == ["Verdict", "Timeline", "Machine", "Where the time went", "Run"]
    crumbs = page.locator(f"{MACHINE} .crumbs li")
    assert crumbs.all_inner_texts() == ["machine", "sip0", "cube0"]
    page.locator(f"{MACHINE} .kb-part").first.dblclick()
    assert crumbs.all_inner_texts() == ["machine", "sip0", "cube0", "pe0"]
    assert page.locator(f"{MACHINE} [aria-label^='sip0.cube0.pe0.pe_gemm, ']").count() == 1
    crumbs.first.locator("button").click()
    assert page.locator(f"{MACHINE} [aria-label^='sip0, ']").count() == 1
    page.locator(f"{MACHINE} [aria-label='host, not counted']").click()
    told = page.locator(f"{MACHINE} .detail .note").inner_text()
    assert told.startswith("How busy it is is not counted: ") and told.endswith(" There is nothing over time, then.")
    page.evaluate("kernbench.run(0).machine.show('sip0.cube0.pe0')")
    assert page.locator(f"{MACHINE} [aria-label='sip0.cube0.pe0.pe_cpu, not counted']").count() == 1
    assert page.locator(f"{MACHINE} [aria-label='sip0.cube0.pe0.pe_ipcq, idle']").count() == 1


def test_a_part_is_as_busy_as_what_is_busiest_in_it(opened: Callable[..., Any], runs: tuple[Path, Path]) -> None:
    """Units, channels, and wires both ends of which are in it: an IO chiplet's units only pass things on."""
    page = opened(runs[0])
    use = page.evaluate("kernbench.run(0).machine.data.use")
    page.evaluate("kernbench.run(0).machine.show('sip0')")
    for part in ("sip0.io0", "sip0.cube0"):
        busy = [share for place, share in zip(use["places"], use["utilisation"], strict=True)
                if all(end.startswith(f"{part}.") for end in place.split("->"))]  # fmt: skip
        label = page.locator(f"{MACHINE} [aria-label^='{part}, ']").get_attribute("aria-label")
        assert label == f"{part}, {100 * max(busy):.1f}% busy"
        assert max(busy) > 0


def test_a_click_tells_parameters_with_their_source(opened: Callable[..., Any], runs: tuple[Path, Path]) -> None:
    """Of a box its model and parameters, of a line its bandwidth; how busy each was."""
    page = opened(runs[0])
    page.locator(f"{MACHINE} [aria-label^='sip0.cube0.hbm_ctrl0, ']").click()
    told = page.locator(f"{MACHINE} .detail").inner_text()
    assert "builtin.hbm_ctrl" in told and "busy over the run" in told
    rows = page.locator(f"{MACHINE} .detail tbody tr").all_inner_texts()
    (channels,) = [row for row in rows if row.startswith("channels\t")]
    assert "base.yaml:" in channels.split("\t")[2]
    assert [row.split("\t")[1] for row in rows if row.startswith("channel_bandwidth\t")] == ["25.6 GB/s"]
    line = page.locator(f"{MACHINE} [aria-label^='sip0.cube0.r0c0->sip0.cube0.r0c1, ']")
    line.locator(".kb-hit").click(force=True)
    told = page.locator(f"{MACHINE} .detail").inner_text()
    assert "128 GB/s" in told and "833.3 ps" in told


def test_the_brush_colours_the_machine_of_the_window(opened: Callable[..., Any], runs: tuple[Path, Path]) -> None:
    """A window in which the kernel runs makes its matrix unit busier than over the run; the timeline shows it too."""
    page = opened(runs[0])
    page.locator(f"{MACHINE} .kb-part").first.dblclick()
    gemm = page.locator(f"{MACHINE} [aria-label^='sip0.cube0.pe0.pe_gemm, ']")

    def busy() -> float:
        return float(gemm.get_attribute("aria-label").split(", ")[1].split("%")[0])

    before, picture = busy(), pixels(page, f"{TIMELINE} .rows canvas")
    launch = page.evaluate("kernbench.run(0).machine.data.launches[0]")
    total = page.evaluate("kernbench.run(0).machine.total")
    box = page.locator(f"{MACHINE} .track").bounding_box()
    for event, time in (("move", launch["from"]), ("down", 0), ("move", launch["to"]), ("up", 0)):
        if event == "move":
            page.mouse.move(box["x"] + box["width"] * time / total, box["y"] + box["height"] / 2)
        else:
            getattr(page.mouse, event)()
    assert page.locator(f"{MACHINE} .scope").input_value() == "window"
    page.wait_for_timeout(100)
    assert busy() > 1.5 * before
    assert pixels(page, f"{TIMELINE} .rows canvas") != picture
    page.locator(f"{MACHINE} .scope").select_option("run")
    assert busy() == before


def test_one_launch_is_a_window(opened: Callable[..., Any], runs: tuple[Path, Path]) -> None:
    """Over the launch the matrix unit is as busy as over the same window brushed, and as much waited."""
    page = opened(runs[0])
    page.evaluate("kernbench.run(0).machine.show('sip0.cube0.pe0')")
    gemm = page.locator(f"{MACHINE} [aria-label^='sip0.cube0.pe0.pe_gemm, ']")
    whole = gemm.get_attribute("aria-label")
    page.locator(f"{MACHINE} .scope").select_option("launch0")
    launch = gemm.get_attribute("aria-label")
    assert launch != whole
    page.evaluate(
        "kernbench.run(0).set('window', ((each) => [each.from, each.to])("
        "kernbench.run(0).machine.data.launches[0]))"
    )
    page.wait_for_timeout(100)
    assert page.locator(f"{MACHINE} .scope").input_value() == "window"
    assert gemm.get_attribute("aria-label") == launch
    page.locator(f"{MACHINE} .metric").select_option("queue")
    page.evaluate("kernbench.run(0).set('window', null)")
    page.evaluate("kernbench.run(0).machine.show('')")
    place, waited = page.evaluate("kernbench.run(0).machine.data.queueing[0].slice(0, 2)")
    source, _, destination = place.partition("->")
    ends = f"{source.split('.')[0]}->{destination.split('.')[0]}"
    told = page.locator(f"{MACHINE} [aria-label^='{ends}, ']").get_attribute("aria-label")
    number, word = told.removeprefix(f"{ends}, ").split(" ")
    assert (word, float(number)) == ("waiting", pytest.approx(waited / page.evaluate(TOTAL), rel=0.05))


def test_a_launch_is_as_busy_as_its_figures_say(
    opened: Callable[..., Any], plugins: Plugins, tmp_path: Path
) -> None:  # fmt: skip
    """Each of two launches, from the first begin of a program to the last end; the strip marks it and says which."""
    file = tmp_path / "sweep.html"
    params = {"shapes": "64x64x64,32x64x32", "tiles": "32"}
    run = kb.run("gemm-sweep", "tiny", params, plugins=plugins, report=file)
    page = opened(file)
    told = page.locator(f"{MACHINE} .told")
    assert told.inner_text().startswith("The whole run")
    for number, launch in enumerate(run.launches):
        page.locator(f"{MACHINE} .scope").select_option(f"launch{number}")
        assert told.inner_text().startswith(f"Launch {number + 1}: {launch.kernel}, ")
        assert told.inner_text().endswith(f", {format_time(launch.time_ns)}")
        ends = [float(each.get_attribute("aria-valuenow")) for each in page.locator(f"{MACHINE} .handle").all()]
        assert ends == [launch.started_ns, launch.ended_ns]
        page.evaluate("kernbench.run(0).machine.show('sip0.cube0.pe0')")
        (gemm,) = [use for use in launch.busiest if use.kind == "pe_gemm"]
        assert gemm.name == "sip0.cube0.pe0.pe_gemm"
        (box,) = page.locator(f"{MACHINE} [aria-label^='{gemm.name}, ']").all()
        assert box.get_attribute("aria-label") == f"{gemm.name}, {100 * gemm.utilisation:.0f}% busy"
        for use in launch.busiest:
            busy = f"kernbench.run(0).machine.figures.busy('{use.name}', kernbench.run(0).window)"
            assert page.evaluate(busy) == use.utilisation, use.name
    page.locator(f"{MACHINE} .reset").click()
    assert page.locator(f"{MACHINE} .scope").input_value() == "run"
    assert told.inner_text().startswith("The whole run")


def test_figures_of_a_window_are_what_was_counted_in_it(opened: Callable[..., Any], runs: tuple[Path, Path]) -> None:
    """Busy and waiting, of the run, of a launch and of a window: as the timeline's tables have it, summed here."""
    page, activity = opened(runs[0]), read_run(runs[0].parent / "a").timeline.activity  # type: ignore[union-attr]
    assert activity is not None
    edges, launch = activity.edges_ns, page.evaluate("kernbench.run(0).machine.data.launches[0]")
    low, high = launch["from"], launch["to"]
    figures = "kernbench.run(0).machine.figures"
    windows = ((0.0, float(edges[-1])), (low, high), (low + 0.3 * (high - low), low + 0.31 * (high - low)))
    for what, table in (("busy", activity.busy_ns), ("waiting", activity.waiting_ns)):
        for begin, end in windows:
            overlap = np.clip(np.minimum(edges[1:], end) - np.maximum(edges[:-1], begin), 0.0, None) / np.diff(edges)
            servers = activity.servers if what == "busy" else 1
            wanted = (table @ overlap) / (end - begin) / servers
            script = f"{[*activity.places]}.map((place) => {figures}.mean('{what}', place, [{begin}, {end}]))"
            told = page.evaluate(script)
            assert told == pytest.approx(wanted.tolist(), rel=1e-3, abs=1e-6)


def test_a_window_says_in_which_steps_it_is_known(opened: Callable[..., Any], runs: tuple[Path, Path]) -> None:
    """As long as a stretch is; a launch, whose begin and end are edges, and the whole run say nothing of the sort."""
    page = opened(runs[0])
    scale = page.locator(f"{MACHINE} .scale")
    page.evaluate("kernbench.run(0).set('window', [1001.3, 2002.7])")
    page.wait_for_timeout(100)
    edges = page.evaluate("kernbench.run(0).machine.data.activity.edges")
    longest = np.diff(edges).max()
    assert "busy, as a share of the window" in scale.inner_text()
    told = scale.inner_text().rsplit("in steps of ", 1)[1]
    assert told == f"{float(f'{longest:.4g}'):g} ns."
    for scope, word in (("launch0", "launch"), ("run", "run")):
        page.locator(f"{MACHINE} .scope").select_option(scope)
        assert f"busy, as a share of the {word}" in scale.inner_text() and "steps" not in scale.inner_text()


def test_queues_of_a_launch_are_told(opened: Callable[..., Any], runs: tuple[Path, Path]) -> None:
    """In the drawing, and beside it over the run and the launch; messages wait longer in it than over the run."""
    page = opened(runs[0])
    page.locator(f"{MACHINE} .metric").select_option("queue")
    memory = page.locator(f"{MACHINE} [aria-label^='sip0.cube0.hbm_ctrl0, ']")
    memory.click()
    whole = float(memory.get_attribute("aria-label").split(", ")[1].split(" ")[0])
    page.locator(f"{MACHINE} .scope").select_option("launch0")
    assert float(memory.get_attribute("aria-label").split(", ")[1].split(" ")[0]) > whole > 0
    told = page.locator(f"{MACHINE} .detail").inner_text()
    assert "waiting over the run" in told and "waiting in the launch" in told
    assert "waiting over time" in told


def test_the_timeline_by_keyboard(opened: Callable[..., Any], runs: tuple[Path, Path]) -> None:
    """Tracks, spans, zoom and back, without a mouse; the chosen span is told."""
    page = opened(runs[0])
    canvas = page.locator(f"{TIMELINE} .rows canvas")
    canvas.focus()
    page.keyboard.press("ArrowDown")
    assert canvas.get_attribute("aria-label") == "Timeline, track host"
    page.keyboard.press("ArrowRight")
    detail = page.locator(f"{TIMELINE} .span-detail")
    assert detail.locator("h4").inner_text() == "map pages"
    page.keyboard.press("ArrowRight")
    assert detail.locator("h4").inner_text().startswith("copy to device")
    page.keyboard.press("Enter")
    low, high = page.evaluate("kernbench.run(0).window")
    assert high - low < page.evaluate("kernbench.run(0).machine.total") / 2
    page.keyboard.press("Shift+ArrowRight")
    assert page.evaluate("kernbench.run(0).window")[0] > low
    page.keyboard.press("0")
    assert page.evaluate("kernbench.run(0).window") is None
    page.keyboard.press("Escape")
    assert detail.inner_text() == "Nothing is chosen."


def around(x_ptr: Any, n: int, tl: Any) -> None:
    """Send a row to the next PE."""
    me, world = tl.program_id(0), tl.num_programs(0)
    tl.send(tl.load(x_ptr + me * n, shape=(n,)), (me + 1) % world)
    tl.recv((n,), "f32", (me - 1) % world)


def around_bench(rt: Any) -> None:
    """Send rows around."""
    rt.launch(around, rt.tensor(np.zeros((rt.n_pes, 64), np.float32)), 64)


def test_arrows_lead_from_sends_to_receipts(opened: Callable[..., Any], plugins: Plugins, tmp_path: Path) -> None:
    """One a message, also to PEs that are closed; without them the picture is another one."""
    file = tmp_path / "around.html"
    kb.run(around_bench, "tiny", plugins=plugins, report=file)
    page = opened(file)
    assert page.evaluate("kernbench.run(0).timeline.painter.sends().length") == 4
    ends = page.evaluate(
        "(() => { const t = kernbench.run(0).timeline, f = t.data.flows;"
        " return t.painter.sends().map((i) => [f.from[i], f.to[i]].map((s) => t.spans.pe[s])); })()"
    )
    assert sorted(ends) == [[0, 1], [1, 2], [2, 3], [3, 0]]
    picture = pixels(page, f"{TIMELINE} .rows canvas")
    page.locator(f"{TIMELINE} .arrows").uncheck()
    assert pixels(page, f"{TIMELINE} .rows canvas") != picture


def test_the_page_by_tab(opened: Callable[..., Any], runs: tuple[Path, Path]) -> None:
    """The skip link is first, then the sections; a box of the machine opens with Enter and closes with Escape."""
    page = opened(runs[0])
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Verdict"
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.locator(f"{MACHINE} .kb-part").first.focus()
    page.keyboard.press("Enter")
    assert page.locator(f"{MACHINE} .crumbs b").inner_text() == "pe0"
    page.keyboard.press("Escape")
    assert page.locator(f"{MACHINE} .crumbs b").inner_text() == "cube0"
    page.locator(f"{MACHINE} [data-box]").first.focus()
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("document.activeElement.dataset.line") is not None
    page.keyboard.press("Enter")
    assert "bandwidth" in page.locator(f"{MACHINE} .detail").inner_text()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.dataset.box") == "0"
    handle = page.locator(f"{MACHINE} .handle.from")
    handle.focus()
    page.keyboard.press("ArrowRight")
    assert float(handle.get_attribute("aria-valuenow")) > 0


def test_lines_of_the_kernel_and_the_critical_path(opened: Callable[..., Any], runs: tuple[Path, Path]) -> None:
    """Lines that ran have their time; a segment that waited names what held the place."""
    page = opened(runs[0])
    page.wait_for_timeout(150)
    hot = page.locator(f"{TIMELINE} .source tr.hot")
    assert hot.count() >= 3
    assert "on the critical path" in hot.first.get_attribute("aria-label")
    waited = page.evaluate(
        "kernbench.run(0).timeline.data.path.findIndex((each) => each.waited_at && each.op_id && each.parts.queueing)"
    )
    page.evaluate(f"kernbench.run(0).timeline.chooseSegment({waited})")
    detail = page.locator(f"{TIMELINE} .span-detail")
    assert "which was held, in the " in detail.inner_text()
    before = page.evaluate("kernbench.run(0).timeline.span")
    detail.locator("li button").first.click()
    assert page.evaluate("kernbench.run(0).timeline.span") not in (before, None)


def test_a_line_is_on_the_critical_path_within_the_window(opened: Callable[..., Any], runs: tuple[Path, Path]) -> None:
    """A window inside of the longest segment gives its line all of the window, and no other line any."""
    page = opened(runs[0])
    path = page.evaluate("kernbench.run(0).timeline.data.path.filter((each) => each.line)")
    longest = max(path, key=lambda each: each["to_ns"] - each["from_ns"])
    middle, long = (longest["from_ns"] + longest["to_ns"]) / 2, (longest["to_ns"] - longest["from_ns"]) / 4
    page.evaluate(f"kernbench.run(0).set('window', [{middle - long / 2}, {middle + long / 2}])")
    page.wait_for_timeout(150)
    told = page.locator(f"{TIMELINE} .source tr.hot").evaluate_all("rows => rows.map((row) => row.ariaLabel)")
    line, told_long = longest["line"].rpartition(":")[2], page.evaluate(f"kernbench.time({long})")
    for each in told:
        spent = told_long if each.startswith(f"line {line}: ") else "0 ns"
        assert each.endswith(f", {spent} on the critical path")
    assert any(each.startswith(f"line {line}: ") for each in told)


def test_what_a_program_waits_at_its_end_is_told(opened: Callable[..., Any], plugins: Plugins, tmp_path: Path) -> None:
    """A composite's line asks for it and goes on: the line's bar is short, that of the end has nearly all the time."""
    params = {"M": 64, "N": 64, "K": 64}
    kb.run("gemm-composite", "tiny", params, plugins=plugins, timeline=True, report=(file := tmp_path / "page.html"))
    page = opened(file)
    page.wait_for_timeout(150)
    rows = page.locator(f"{TIMELINE} .source tr:has(.amount)")
    line, end = rows.all_inner_texts()
    number = page.evaluate("kernbench.run(0).timeline.data.lines[0].number")
    assert "40 ns" in line and f"waiting at the end of the program, for what line {number} asked for" in end
    short, long = (float(rows.nth(i).locator("rect").first.get_attribute("width")) for i in (0, 1))
    assert short + long == pytest.approx(100, abs=0.1) and short < 5


@pytest.mark.parametrize("width", [320, 645, 900, 1040, 1300])
def test_parameters_break_between_words_only(opened: Callable[..., Any], runs: tuple[Path, Path], width: int) -> None:
    """A file with its line, a number with its unit's letters, and each word of a name stand on one line."""
    page = opened(runs[0], viewport={"width": width, "height": 900})
    page.evaluate("kernbench.run(0).machine.show('sip0.cube0.pe0')")
    page.locator(f"{MACHINE} [aria-label^='sip0.cube0.pe0.pe_gemm, ']").dispatch_event("click")
    told = page.locator(f"{MACHINE} .detail tbody td").evaluate_all("""cells => cells.flatMap((cell) => {
      const texts = [];
      const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
      while (walker.nextNode()) for (const word of walker.currentNode.data.matchAll(/[A-Za-z0-9.:]+/g)) {
        const range = document.createRange();
        range.setStart(walker.currentNode, word.index);
        range.setEnd(walker.currentNode, word.index + word[0].length);
        texts.push([word[0], new Set([...range.getClientRects()].map((each) => each.top)).size]);
      }
      return texts;
    })""")
    assert any(re.fullmatch(r"base\.yaml:\d+:\d+", word) for word, _ in told)
    assert [word for word, lines in told if lines > 1] == []


def test_light_and_dark(opened: Callable[..., Any], runs: tuple[Path, Path]) -> None:
    """As the system has them, and by the button; text stands out in both, canvases are drawn anew."""
    for scheme, ground in (("light", "rgb(255, 255, 255)"), ("dark", "rgb(18, 22, 28)")):
        page = opened(runs[0], color_scheme=scheme)
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == ground
    picture = pixels(page, f"{TIMELINE} .rows canvas")
    page.locator("#theme").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert pixels(page, f"{TIMELINE} .rows canvas") != picture


def test_four_times_as_large_the_page_reflows(opened: Callable[..., Any], runs: tuple[Path, Path]) -> None:
    """At 400 % of a window of 1280 px nothing but the drawing is wider than its frame; cells say what they are."""
    page = opened(runs[0], viewport={"width": 320, "height": 225}, device_scale_factor=4)
    page.locator(f"{MACHINE} [data-box]").first.evaluate("each => each.dispatchEvent(new MouseEvent('click'))")
    wide = "[...document.querySelectorAll('html, .wide, .source, .detail, .rows, .launch')]"
    assert page.evaluate(f"{wide}.filter((each) => each.scrollWidth > each.clientWidth).length") == 0
    assert page.evaluate(f"{wide}.length") > 10
    share = page.locator("#ledger td[data-head='share']")
    assert share.first.is_visible()
    page = opened(runs[0])
    assert share.count() > 1 and page.locator("#ledger td[data-head]").count() == 0
    page.set_viewport_size({"width": 320, "height": 225})
    assert page.locator("#ledger td[data-head='share']").count() == share.count()


def test_runs_stand_side_by_side(opened: Callable[..., Any], runs: tuple[Path, Path]) -> None:
    """Each with its name and figures and its whole machine; what is chosen in one stays in it."""
    page = opened(runs[1], viewport={"width": 1300, "height": 900})
    cropped = "[...document.querySelectorAll('.ground')].filter((each) => each.scrollWidth > each.clientWidth).length"
    assert page.evaluate(cropped) == 0
    names = page.locator("#machine h3.of")
    assert names.all_inner_texts() == ["a", "b"]
    boxes = [names.nth(i).bounding_box() for i in (0, 1)]
    assert boxes[0]["y"] == boxes[1]["y"] and boxes[0]["x"] < boxes[1]["x"]
    page.evaluate("kernbench.run(0).set('window', [10, 20])")
    assert page.evaluate("kernbench.run(1).window") is None
    page.set_viewport_size({"width": 320, "height": 225})
    assert page.locator("#moved td[data-head='against a']").count() > 5
    wider = "all => all.filter((each) => each.scrollWidth > each.clientWidth).length"
    assert page.locator("#moved .wide").evaluate_all(wider) == 0 < page.locator("#moved .wide").count()


def test_runs_side_by_side_have_one_scale(
    opened: Callable[..., Any], runs: tuple[Path, Path], plugins: Plugins, tmp_path: Path
) -> None:
    """The strip of a shorter run is as much shorter; the same place of both timelines is the same time."""
    short = kb.run("gemm", "tiny", {"M": 64, "N": 64, "K": 64}, plugins=plugins, out=tmp_path / "c")
    file, long = tmp_path / "page.html", read_run(runs[0].parent / "a")
    write_report(file, [long, read_run(tmp_path / "c")], plugins)
    page = opened(file)
    told = f"have one scale: from 0 to {format_time(long.total_ns)}, which the longest of these runs took."
    assert page.locator("main > .note").inner_text() == f"Phases, strips and timelines of whole runs {told}"
    strips = [page.locator(f"{MACHINE} .track").nth(run).bounding_box()["width"] for run in (0, 1)]
    share = short.total_ns / long.total_ns
    assert share < 0.9 and strips[1] / strips[0] == pytest.approx(share, abs=0.01)
    times = [page.evaluate(f"kernbench.run({run}).timeline.time(500)") for run in (0, 1)]
    assert times[0] == pytest.approx(times[1])
    page.locator(f"{TIMELINE} .zoom-in").nth(1).click()
    begin, end = page.evaluate("kernbench.run(1).window")
    assert 0 < begin < end < short.total_ns
    widths = [sum(float(each) for each in page.locator("#summary .kb-stretch").nth(run).locator("rect").evaluate_all(
        "each => each.map((one) => one.getAttribute('width'))")) for run in (0, 1)]  # fmt: skip
    assert widths[1] / widths[0] == pytest.approx(share, abs=0.01)


def test_the_command_can_be_copied(opened: Callable[..., Any], runs: tuple[Path, Path]) -> None:
    """By its button, which says so."""
    page = opened(runs[0], permissions=["clipboard-read", "clipboard-write"])
    run = page.locator("article[data-section=run]")
    run.locator(".copy button").nth(1).click()
    run.locator(".copy [role=status]").nth(1).filter(has_text="copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == run.locator("pre.command").nth(1).inner_text()
