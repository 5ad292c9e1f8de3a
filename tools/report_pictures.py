"""Write the pictures of docs/report.md and docs/sweeping.md: screenshots of the pages of small runs, and of a sweep.

    python tools/report_pictures.py [FOLDER]

It needs a Chromium.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import kernbench as kb
from kernbench_builtin.pages.report import render_sweep
from kernbench_builtin.sweeps import sweep_page
from kernbench_core.plugins import load_plugins

PICTURES: Final = Path(__file__).parents[1] / "docs" / "report"
CHROMIUM: Final = shutil.which("chromium") or shutil.which("chromium-browser")
#: Runs with their pages: bench, topology, parameters.
RUNS: Final[Mapping[str, tuple[str, str, dict[str, Any]]]] = {
    "gemm": ("gemm-naive", "tiny", {"M": 256, "N": 256, "K": 256}),
    "collective": ("tp-mlp", "default", {"tokens": 32, "hidden": 128, "ffn": 256, "layers": 1}),
}
#: A sweep of the matrix unit and the tiles.
SWEEP: Final[Mapping[str, Any]] = {
    "bench": "gemm-naive",
    "topology": "tiny",
    "params": {"M": 128, "N": 128, "K": 128, "tile_m": [32, 64, 128]},
    "set": {
        "components.pe_gemm.params.rows": "8..64:pow2",
        "components.pe_gemm.params.columns": "8..64:pow2",
        "sip.ucie.bandwidth": ["64 GB/s", "256 GB/s"],
    },
    "objectives": ["time", "area = 0.004 * components.pe_gemm.params.rows * columns"],
}
TIMELINE: Final = "kernbench.run(0).timeline"
#: The second read of the DMA of the first PE.
DMA: Final = f"{TIMELINE}.data.tracks.findIndex((track) => track[3].endsWith('pe0.pe_dma'))"
READ: Final = f"{TIMELINE}.spans.first[{DMA}] + 1"


def main() -> None:
    """Run the benches, open their pages, and write what is seen."""
    from playwright.sync_api import sync_playwright

    pictures = Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURES
    pictures.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        for name, (bench, topology, params) in RUNS.items():
            file = Path(folder) / f"{name}.html"
            kb.run(bench, topology, params, report=file)
            {"gemm": gemm, "collective": collective}[name](opened(browser, file), pictures)
        swept = Path(folder) / "swept.html"
        sweep = kb.sweep(**SWEEP, out=Path(folder) / "swept")
        swept.write_text(render_sweep(sweep_page(sweep, "s", load_plugins())), encoding="utf-8")
        points(opened(browser, swept), pictures)
        browser.close()


def opened(browser: Any, file: Path) -> Any:
    """Open a page, and wait until it is drawn."""
    page = browser.new_page(viewport={"width": 1100, "height": 900})
    page.goto(file.as_uri())
    page.wait_for_selector("html[data-ready=yes]", state="attached")
    return page


def gemm(page: Any, pictures: Path) -> None:
    """Show the cube, the timeline zoomed to the first products, and the source with the time of its lines."""
    launch = page.evaluate("kernbench.run(0).machine.data.launches[0]")
    page.evaluate(f"{TIMELINE}.show({launch['from'] - 120}, {launch['from'] + 3500})")
    page.evaluate(f"{TIMELINE}.choose({READ})")
    page.evaluate("kernbench.run(0).machine.show('sip0.cube0')")
    page.wait_for_timeout(500)
    page.locator("[data-section=machine] .ground").screenshot(path=pictures / "machine.png")
    page.locator("[data-section=timeline] .rows").screenshot(path=pictures / "timeline.png")
    page.evaluate("kernbench.run(0).set('window', null)")
    page.set_viewport_size({"width": 1500, "height": 900})
    source = page.locator("[data-section=timeline] .source")
    # all of it, without the folder that this tree happens to be in
    source.evaluate("each => { each.style.maxHeight = 'none'; each.querySelector('caption').remove(); }")
    page.wait_for_timeout(500)
    source.screenshot(path=pictures / "source.png")


def collective(page: Any, pictures: Path) -> None:
    """Show the flame of the longest kernel that sends and receives."""
    page.locator(".icicle").scroll_into_view_if_needed()
    page.wait_for_timeout(500)
    bar = page.locator(".icicle [role=treeitem], .icicle [tabindex]", has_text="all_reduce").first
    bar.click()
    page.wait_for_timeout(300)
    page.locator(".icicle").screenshot(path=pictures / "flame.png")


def points(page: Any, pictures: Path) -> None:
    """Show the lines of a sweep, those of small arrays kept, and times over areas with their front."""
    for _ in range(3):
        page.get_by_role("slider", name="Largest area that is kept").press("ArrowLeft")
    page.wait_for_timeout(500)
    page.locator(".parallel").screenshot(path=pictures / "sweep_parallel.png")
    page.get_by_role("button", name="clear").click()
    page.wait_for_timeout(500)
    page.locator(".scatter canvas").screenshot(path=pictures / "sweep_scatter.png")


if __name__ == "__main__":
    main()
