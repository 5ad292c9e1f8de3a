"""The flame of lines in a real browser: its times against the timeline's columns, zoom, keys, window and light."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kernbench_core as kb
from kernbench_builtin.pages.plugin import REPORT_SECTIONS
from kernbench_builtin.pages.report import RunPage, render_report
from kernbench_builtin.pages.timeline import Timeline, Track
from kernbench_builtin.pages.timeline.lines import AT_THE_END
from kernbench_builtin.pages.timeline.timeline import Flows, Spans
from kernbench_core.plugins import Plugins
from tests.builtin.report.pages import result

pytestmark = pytest.mark.browser
FLAME = "article[data-section=timeline] .icicle"
#: The paths of all parts to the ns that they took without the parts below, and in all.
PATHS = """(() => {
  const { flame } = kernbench.run(0).timeline;
  const found = [];
  const walk = (at, path) => {
    found.push([path, at.own * flame.tick, at.total * flame.tick]);
    for (const each of at.parts) walk(each, [...path, each.label]);
  };
  walk(flame.root, []);
  return found;
})()"""


def twice(x: Any, n: int, tl: Any) -> Any:
    """Load a row, and double it."""
    row = tl.load(x, shape=(n,))
    return row + row


def kernel(x: Any, y: Any, n: int, tl: Any) -> None:
    """Exponentials of doubled rows, some of them waited for together."""
    me = tl.program_id(0)
    for _ in range(2):
        tl.store(y + me * n, tl.exp(twice(x + me * n, n, tl)))
    last = tl.load(x + me * n, shape=(n,), wait=False)
    tl.store(y + me * n, last)


def bench(rt: Any) -> None:
    """Launch it twice."""
    x, y = rt.zeros((2 * rt.n_pes, 128)), rt.empty((2 * rt.n_pes, 128))
    for _ in range(2):
        rt.launch(kernel, x, y, 128, grid=(2 * rt.n_pes,))


@pytest.fixture(scope="module")
def run(plugins: Plugins, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Timeline]:
    """Return the page of a run, and its timeline."""
    file = tmp_path_factory.mktemp("flame") / "flame.html"
    found = kb.run(bench, "tiny", plugins=plugins, report=file, timeline=True).timeline
    assert found is not None
    return file, found


def expected(timeline: Timeline, low: float, high: float) -> dict[tuple[str, ...], float]:
    """Return, of each launch, stack of lines, and op, the time in a window without that of parts within it."""
    spans, sums = timeline.spans, Counter[tuple[str, ...]]()
    launches = [i for i, track in enumerate(spans.track.tolist()) if timeline.tracks[track].kind == "launch"]
    flows = timeline.flows
    issued = dict(zip(flows.from_span[flows.kind == 0].tolist(), flows.to_span[flows.kind == 0].tolist(), strict=True))
    around = set(spans.parent.tolist())
    inside = np.clip(np.minimum(spans.end_ns, high) - np.maximum(spans.start_ns, low), 0.0, None)
    for i, track in enumerate(spans.track.tolist()):
        if timeline.tracks[track].kind != "kernel":
            continue
        chain = [i]
        while spans.parent[chain[0]] >= 0:
            chain.insert(0, int(spans.parent[chain[0]]))
        if len(chain) == 2:
            continue  # a program, whose time is the launch's
        (launch,) = [n for n, each in enumerate(launches)
                     if spans.start_ns[each] <= spans.start_ns[chain[0]] <= spans.end_ns[each]]  # fmt: skip
        names = [timeline.names[spans.name[each]] for each in chain[2:]]
        names = [f"waiting at the {name}" if name == AT_THE_END else name for name in names]
        path = (f"{launch + 1}: {timeline.names[spans.name[launches[launch]]]}", *names)
        if i in issued:
            op = issued[i]
            path = (*path, f"{timeline.tracks[spans.track[op]].name}: {timeline.names[spans.name[op]]}")
        elif spans.line[i] >= 0 and i not in around:
            path = (*path, "waiting for earlier ops")
        sums[path] += inside[i]
        if len(chain) > 2:
            sums[path[: len(chain) - 2]] -= inside[i]
    return {path: ns for path, ns in sums.items() if ns > 1.0}


def settled(page: Any) -> Any:
    """Wait until the flame stays as it is: a page that opens draws it more than once, and a loaded machine late."""
    before = ""
    while (now := page.locator(FLAME).inner_html()) != before:
        before = now
        page.wait_for_timeout(300)
    return page


def told(page: Any) -> dict[tuple[str, ...], float]:
    """Return what the flame has, of parts with time of their own."""
    page.wait_for_timeout(250)
    return {tuple(path): own for path, own, _ in page.evaluate(PATHS) if own > 1.0}


def test_the_flame_has_the_time_of_each_stack(
    opened: Callable[..., Any], run: tuple[Path, Timeline]
) -> None:  # fmt: skip
    """Of launches, lines within the lines that called them, and ops, as the columns have it; in a window its part."""
    page, timeline = opened(run[0]), run[1]
    whole = expected(timeline, 0.0, timeline.total_ns)
    assert max(map(len, whole)) == 4  # launch, line, line that it calls, op
    assert any(path[-1] == "waiting for earlier ops" for path in whole)
    assert set(told(page)) == set(whole)
    assert told(page) == pytest.approx(whole, abs=1.0)
    last = int(np.flatnonzero([timeline.tracks[track].kind == "launch" for track in timeline.spans.track])[-1])
    low, high = float(timeline.spans.start_ns[last]) + 100.0, float(timeline.spans.end_ns[last]) - 50.0
    page.evaluate(f"kernbench.run(0).set('window', [{low}, {high}])")
    part = expected(timeline, low, high)
    assert told(page) == pytest.approx(part, abs=1.0)
    assert 0 < sum(part.values()) < sum(whole.values())


def test_a_click_shows_a_part_alone_and_lights_its_line(
    opened: Callable[..., Any], run: tuple[Path, Timeline]
) -> None:  # fmt: skip
    """What it is a part of stays above it; a second click goes back; launches can be taken together, or one by one."""
    page = settled(opened(run[0]))
    bars = page.locator(f"{FLAME} .level")
    lines = page.locator(f"{FLAME} button.line")
    lines.first.click()
    label = lines.first.inner_text()
    wide = bars.first.bounding_box()["width"]
    assert lines.first.bounding_box()["width"] == pytest.approx(wide, abs=1)
    assert page.locator(f"{FLAME} .above").count() == 2
    line = page.evaluate("kernbench.run(0).timeline.line")
    source = page.locator("article[data-section=timeline] .source")
    frame, row = source.bounding_box(), source.locator(".chosen").bounding_box()
    assert frame["y"] < row["y"] < frame["y"] + frame["height"]
    assert page.evaluate(f"kernbench.run(0).timeline.data.lines[{line}].text") == label
    lines.first.click()
    assert page.evaluate("kernbench.run(0).timeline.line") == -1
    assert page.locator(f"{FLAME} .above").count() == 1
    assert page.locator(f"{FLAME} button.kernel").count() == 1  # the launch that it was of
    for by, names in (("kernel", ["kernel"]), ("launch", ["1: kernel [8×1×1]", "2: kernel [8×1×1]"])):
        page.locator(f"{FLAME} select").select_option(by)
        assert sorted(page.locator(f"{FLAME} button.kernel").all_inner_texts()) == names
    page.locator(f"{FLAME} select").select_option("program")
    assert page.locator(f"{FLAME} button.program").count() == 16


def test_the_flame_by_keyboard(opened: Callable[..., Any], run: tuple[Path, Timeline]) -> None:
    """Down to the largest part, aside, Enter to see it alone, Escape for all; each part says what it took."""
    page = settled(opened(run[0]))
    page.locator(f"{FLAME} .level button").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    now = "document.activeElement.getAttribute('aria-label')"
    assert page.evaluate(now).split(",")[0] in ("1: kernel [8×1×1]", "2: kernel [8×1×1]")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.className") == "line"
    assert page.locator(f"{FLAME} output").inner_text() == page.evaluate(now)
    page.keyboard.press("ArrowUp")
    assert page.evaluate("document.activeElement.className") == "kernel above"
    page.keyboard.press("Escape")
    assert page.evaluate(now).startswith("all kernels, over all PEs, ")
    assert page.locator(f"{FLAME} .above").count() == 0


def test_a_line_that_calls_tells_the_time_of_what_it_calls(
    opened: Callable[..., Any], run: tuple[Path, Timeline]
) -> None:  # fmt: skip
    """Apart from its own, as the spans within its spans have it."""
    page, timeline = opened(run[0]), run[1]
    spans = timeline.spans
    (line,) = [i for i, text in enumerate(timeline.sources) if "twice(" in text]
    lines, parents = spans.line.tolist(), spans.parent.tolist()
    within = [i for i, up in enumerate(parents) if up >= 0 and lines[i] >= 0 and lines[up] == line]
    time, called = page.evaluate(
        "((found) => [found.time, found.called].map((each) => each["
        f"{line}]))(kernbench.run(0).timeline.spans.lines(0, {timeline.total_ns}))"
    )
    inside = float((spans.end_ns - spans.start_ns)[within].sum())
    assert called == pytest.approx(inside, abs=1.0) and inside > 0
    own = float((spans.end_ns - spans.start_ns)[(spans.line == line) & (spans.op >= 0) & on_kernels(timeline)].sum())
    assert time == pytest.approx(own, abs=1.0) and own > 0
    page.wait_for_timeout(250)
    number = timeline.lines[line].rpartition(":")[2]
    row = page.locator(f"article[data-section=timeline] tr[aria-label^='line {number}:']")
    assert " in lines that it calls, " in row.get_attribute("aria-label")


def test_parts_that_are_too_narrow_are_one(opened: Callable[..., Any], plugins: Plugins, tmp_path: Path) -> None:
    """A thousand programs of 1 ns after one of 500 ns: they are told together, and the long one is itself."""
    count, long = 1000, 500.0
    start = np.array([0.0, 0.0, *(long + i for i in range(count))])
    end = np.array([long + count, long, *(start[2:] + 1.0)])
    name = np.array([0, *range(1, count + 2)])
    parent = np.array([-1, *[0] * (count + 1)])
    none = np.full(count + 2, -1)
    spans = Spans(none + 1, name, start, end, none, none, none + 1, parent, none)
    names = ("kernel", *(f"program {i},0,0" for i in range(count + 1)))
    flows = Flows(*(np.zeros(0) for _ in range(5)))
    tracks = (Track(0, -1, "kernel", "kernel", "pe0"),)
    made = Timeline(long + count, tracks, names, (), (), spans, (), flows)
    file = tmp_path / "narrow.html"
    file.write_text(render_report([RunPage("r", result(), timeline=made)], plugins.of(REPORT_SECTIONS)))
    page = opened(file)
    page.wait_for_timeout(250)
    page.locator(f"{FLAME} select").select_option("program")
    assert page.locator(f"{FLAME} button.program").all_inner_texts() == ["program 0,0,0 on pe0"]
    assert page.locator(f"{FLAME} .more").all_inner_texts() == ["1,000 more, 1 us together"]
    wide, more = (page.locator(f"{FLAME} {each}").bounding_box() for each in (".bars", ".more"))
    assert more["width"] == pytest.approx(wide["width"] * count / (long + count), abs=1)
    assert more["x"] == pytest.approx(wide["x"] + wide["width"] * long / (long + count), abs=1)


def on_kernels(timeline: Timeline) -> np.ndarray[Any, Any]:
    """Return which spans are on a kernel's track."""
    kinds = np.array([track.kind == "kernel" for track in timeline.tracks])
    return kinds[timeline.spans.track]
