"""How large the page of a run of a million ops is, how long a browser takes to open it, and to draw while one brushes.

    python tools/bench_report.py [OPS]

It needs a Chromium. The run is made up: ops at random times on every unit of 512 PEs, with a kernel line beside each.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from attrs import frozen

from kernbench_builtin.machines.drawing import draw_machine
from kernbench_builtin.pages.plugin import REPORT_SECTIONS
from kernbench_builtin.pages.report import RunPage, render_report
from kernbench_builtin.pages.timeline import Activity, Timeline, Track
from kernbench_builtin.pages.timeline.activity import Intervals, stretches
from kernbench_builtin.pages.timeline.timeline import Flows, Spans
from kernbench_core.plugins import Plugins, load_plugins
from kernbench_core.runs import configure
from kernbench_core.topology.compilation import compile_topology

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
UNITS = ("pe_dma", "pe_gemm", "pe_math")


def large_timeline(pes: list[str], ops: int) -> Timeline:
    """Return spans of ops, dealt to units of PEs at random times, with the kernel line of each beside them."""
    rng = np.random.default_rng(1)
    tracks: list[Track] = []
    for pe in pes:
        parent = len(tracks)
        tracks.append(Track(parent, -1, pe, "place", pe))
        tracks.append(Track(parent + 1, parent, "kernel", "kernel", pe))
        tracks += [Track(parent + 2 + i, parent, unit, "unit", f"{pe}.{unit}") for i, unit in enumerate(UNITS)]
    units = np.array([track.id for track in tracks if track.kind == "unit"])
    of = np.sort(rng.choice(units, ops))
    kernels = np.array([track.id for track in tracks if track.kind == "kernel"])
    lines = np.sort(rng.choice(kernels, ops))
    track = np.concatenate([of, lines])
    gaps = rng.exponential(40.0, 2 * ops)
    start = np.zeros(2 * ops)
    order = np.argsort(track, kind="stable")
    track = track[order]
    bounds = np.flatnonzero(np.diff(track, prepend=-1))
    sums = np.cumsum(gaps)
    start = sums - np.repeat(sums[bounds], np.diff([*bounds, 2 * ops]))
    length = np.minimum(rng.exponential(20.0, 2 * ops), np.append(np.diff(start), 1.0).clip(0.1))
    none = np.full(2 * ops, -1)
    op = (track.astype(np.int64) << 32) + np.arange(2 * ops) % 5000
    line = np.where(np.isin(track, kernels), rng.integers(0, 40, 2 * ops), rng.integers(-1, 40, 2 * ops))
    name = rng.integers(0, 30, 2 * ops)
    spans = Spans(track, name, start, start + length, line, op, none, none, none)
    flows = Flows(*(np.zeros(0) for _ in range(5)))
    texts = tuple(f"/k/kernel.py:{i + 1}" for i in range(40))
    names = tuple(f"op {i}" for i in range(30))
    total = float((start + length).max())
    return Timeline(total, tuple(tracks), names, texts, texts, spans, (), flows, "unit", (), activity_of(spans, tracks))


def activity_of(spans: Spans, tracks: list[Track]) -> Activity:
    """Return how busy each unit was; of each op something else waited just as long before it."""
    places = [track for track in tracks if track.kind == "unit"]
    row_of = np.full(len(tracks), -1)
    row_of[[track.id for track in places]] = range(len(places))
    rows = row_of[spans.track]
    mine = rows >= 0
    start, end = spans.start_ns[mine], spans.end_ns[mine]
    edges = stretches(float(spans.end_ns.max()), len(places), (), len(spans))
    busy = Intervals(rows[mine], start, end, end - start).spread(len(places), edges)
    waits = Intervals(rows[mine], np.maximum(2 * start - end, 0.0), start, end - start).spread(len(places), edges)
    names, ones = tuple(track.node for track in places), np.ones(len(places), np.int32)
    return Activity(edges, names, ones, busy.astype(np.float32), waits.astype(np.float32))


@frozen
class PageFigures:
    """Bytes of a page, ms until it was open, and for each step of a brush ms and rectangles drawn."""

    size: int
    opened_ms: float
    steps_ms: tuple[float, ...]
    drawn: tuple[int, ...]


def write_page(file: Path, ops: int, plugins: Plugins) -> None:
    """Write the page of a made-up run on the largest preset."""
    graph = compile_topology(configure(plugins, "full"), plugins)
    timeline = large_timeline([site.prefix for site in graph.design.pes], ops)  # type: ignore[attr-defined]
    machine = {**draw_machine(graph, title="full").to_json(), "use": {"total_ns": timeline.total_ns}}
    result: dict[str, Any] = {
        "bench": "large", "params": {}, "topology": "full", "device": "all", "total_ns": timeline.total_ns,
        "phases": {"kernel": timeline.total_ns}, "ops": ops, "events": 1, "wall_s": 1.0, "interrupted": False,
        "verified": None, "checked": 0, "wrong": 0, "failures": [], "hazards": [], "rows": [], "warnings": [],
        "statistics": [], "not_modelled": [], "op_log_sha256": "", "manifest": {},
    }  # fmt: skip
    file.write_text(render_report([RunPage("large", result, machine, timeline)], plugins.of(REPORT_SECTIONS)))


def measure(file: Path, browser: Any) -> PageFigures:
    """Open a page in a browser and brush over it."""
    with browser.new_page(viewport={"width": 1400, "height": 900}) as page:
        page.goto(file.as_uri())
        page.wait_for_selector("html[data-ready=yes]", state="attached", timeout=120_000)
        opened = page.evaluate("performance.now()")
        took, drawn = page.evaluate(BRUSH)
    return PageFigures(file.stat().st_size, opened, tuple(took), tuple(drawn))


BRUSH = """async () => {
  const { timeline } = kernbench.run(0);
  const took = [];
  const drawn = [];
  const fill = CanvasRenderingContext2D.prototype.fillRect;
  let calls = 0;
  CanvasRenderingContext2D.prototype.fillRect = function (...all) { calls++; return fill.apply(this, all); };
  for (let i = 0; i < 40; i++) {
    const from = timeline.total * 0.01 * i;
    calls = 0;
    const begun = performance.now();
    timeline.show(from, from + timeline.total * 0.5 ** (1 + i / 4));
    timeline.painter.paint(timeline.view());
    took.push(performance.now() - begun);
    drawn.push(calls);
    await new Promise((done) => requestAnimationFrame(done));
  }
  return [took, drawn];
}"""


def main() -> None:
    """Measure one page, and print what it takes."""
    from playwright.sync_api import sync_playwright

    ops = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        file = Path(folder) / "large.html"
        write_page(file, ops, load_plugins())
        found = measure(file, browser)
    print(f"{ops:,} ops: {found.size / 1e6:.1f} MB, open after {found.opened_ms:.0f} ms")
    mean = np.mean(found.steps_ms)
    print(f"a step of a brush: {mean:.0f} ms, {max(found.steps_ms):.0f} ms at most, {max(found.drawn):,} rectangles")


if __name__ == "__main__":
    main()
