"""How large the page of a sweep of ten thousand points is, how long a browser takes to open it, and to draw it anew.

    python tools/bench_sweep_page.py [POINTS]

It needs a Chromium. The points are made up: six parameters, three objectives and 60 figures at random.
"""

from __future__ import annotations

import hashlib
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from attrs import frozen

from kernbench_builtin.pages.report import MovedBy, SweepPage, SweptObjective, SweptParameter, render_sweep

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
OBJECTIVES = (SweptObjective("time_ns"), SweptObjective("area"), SweptObjective("gflops", greatest=True))
#: What is done to the open page, each until it is drawn again.
STEPS = {
    "brush": "document.querySelector('.handle.to').dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowLeft'}))",
    "colour": "const s = document.querySelectorAll('.filter select')[1]; s.value = '0'; "
              "s.dispatchEvent(new Event('change'))",
    "words": "const i = document.querySelector('.filter input'); i.value = 'area<0.7 ring'; "
             "i.dispatchEvent(new Event('input'))",
    "clear": "document.querySelector('.filter button').click()",
    "sort": "document.querySelectorAll('.table th button')[5].click()",
    "point": "kernbench.run(0).set('point', 1)",
}  # fmt: skip
FRAME = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 0))))"
#: Count how many lines the canvases stroke.
COUNT = """
window.strokes = 0;
const stroke = CanvasRenderingContext2D.prototype.stroke;
CanvasRenderingContext2D.prototype.stroke = function () { window.strokes++; stroke.call(this); };
"""


@frozen
class SweepPageFigures:
    """Bytes of a page, ms until it was open, and for each step ms until it was drawn, and the lines of it."""

    size: int
    opened_ms: float
    steps_ms: dict[str, float]
    strokes: dict[str, int]


def page_of(count: int) -> SweepPage:
    """Return a page of points at random."""
    draw = random.Random(1)
    points: list[dict[str, Any]] = []
    for index in range(count):
        values = {
            "components.pe_gemm.params.rows": draw.choice([16, 32, 64]),
            "components.pe_gemm.params.columns": draw.choice([16, 32, 64]),
            "system.network.bandwidth": f"{100 * 8 ** draw.random():.3f} GB/s",
            "kind": draw.choice(["ring", "mesh", "torus"]),
            "tile_m": draw.choice([64, 128, 256]),
            "clock": f"{1 + draw.random():.4f} GHz",
        }
        objectives = {each.name: draw.random() for each in OBJECTIVES}
        key = hashlib.sha256(str(index).encode()).hexdigest()
        points.append(
            {"key": key, "index": index, "status": "ok" if draw.random() < 0.97 else "error", "values": values,
             "objectives": objectives, "figures": {f"figure_{i}": draw.random() for i in range(60)},
             "error": "it failed.", "op_log_sha256": key[::-1]}
        )  # fmt: skip
    names = list(points[0]["values"])
    return SweepPage(
        name=f"{count} points", facts=[("bench", "made up")], parameters=[SweptParameter(name) for name in names],
        objectives=OBJECTIVES, points=points, front=[draw.random() < 0.01 for _ in points], links=[""] * count,
        commands=[(f"kernbench run gemm {point['values']}", f"kernbench report s --point {point['key'][:12]}")
                  for point in points],
        moved_by=[MovedBy(name, each.name, draw.random()) for name in names for each in OBJECTIVES],
        moved_of="Made up.",
    )  # fmt: skip


def measure(file: Path, browser: Any) -> SweepPageFigures:
    """Open a page in a browser, and do each step."""
    with browser.new_page(viewport={"width": 1400, "height": 900}) as page:
        page.add_init_script(COUNT)
        page.goto(file.as_uri())
        page.wait_for_selector("html[data-ready=yes]", state="attached", timeout=120_000)
        page.evaluate(FRAME)
        opened = page.evaluate("performance.now()")
        took, strokes = {}, {}
        for name, step in STEPS.items():
            took[name], strokes[name] = page.evaluate(
                f"async () => {{ window.strokes = 0; const from = performance.now(); {step}; await {FRAME};"
                " return [performance.now() - from, window.strokes]; }"
            )
    return SweepPageFigures(file.stat().st_size, opened, took, strokes)


def main() -> None:
    """Write the page, measure it, and print what was found."""
    from playwright.sync_api import sync_playwright

    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    page = page_of(count)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        file = Path(folder) / "sweep.html"
        from_s = time.perf_counter()
        file.write_text(render_sweep(page), encoding="utf-8")
        print(f"{count:,} points: written in {time.perf_counter() - from_s:.2f} s, {file.stat().st_size / 1e6:.1f} MB")
        found = measure(file, browser)
    print(f"open after {found.opened_ms:,.0f} ms")
    for name, ms in found.steps_ms.items():
        print(f"{name:8}{ms:6,.0f} ms, {found.strokes[name]:,} lines")


if __name__ == "__main__":
    main()
