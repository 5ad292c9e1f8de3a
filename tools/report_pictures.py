"""Write the pictures of README, docs/report.md and docs/sweeping.md: screenshots of pages of small runs and a sweep.

    python tools/report_pictures.py [FOLDER]

It needs a Chromium.
"""

from __future__ import annotations

import shutil
import subprocess
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
README: Final = Path(__file__).parents[1] / "README.md"
#: Runs with their pages: bench, topology, parameters.
RUNS: Final[Mapping[str, tuple[str, str, dict[str, Any]]]] = {
    "flame": ("tp-mlp", "default", {"tokens": 32, "hidden": 128, "ffn": 256, "layers": 1}),
    "collective": ("collective", "default", {"size": "1 MiB"}),
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


def main() -> None:
    """Run the benches, open their pages, and write what is seen."""
    from playwright.sync_api import sync_playwright

    pictures = Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURES
    pictures.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        script = Path(folder) / "matmul.py"
        text = README.read_text(encoding="utf-8").partition("```python\n")[2].partition("```")[0]
        script.write_text(text, encoding="utf-8")
        triton = [sys.executable, "-m", "kernbench", "triton", script.name, "--report", "page.html", "-q"]
        subprocess.run(triton, cwd=folder, check=True)
        top(browser, Path(folder) / "page.html", pictures / "page.png")
        machine(opened(browser, Path(folder) / "page.html", 1700), pictures)
        for name, (bench, topology, params) in RUNS.items():
            file = Path(folder) / f"{name}.html"
            kb.run(bench, topology, params, report=file)
            if name == "collective":
                top(browser, file, pictures / "collective.png")
            else:
                flame(opened(browser, file), pictures)
        swept = Path(folder) / "swept.html"
        sweep = kb.sweep(**SWEEP, out=Path(folder) / "swept")
        swept.write_text(render_sweep(sweep_page(sweep, "s", load_plugins())), encoding="utf-8")
        top(browser, swept, pictures / "sweep.png")
        points(opened(browser, swept), pictures)
        browser.close()


def opened(browser: Any, file: Path, width: int = 1100, height: int = 900) -> Any:
    """Open a page, and wait until it is drawn."""
    page = browser.new_page(viewport={"width": width, "height": height})
    page.goto(file.as_uri())
    page.wait_for_selector("html[data-ready=yes]", state="attached")
    return page


def top(browser: Any, file: Path, picture: Path) -> None:
    """Show what a page opens on."""
    page = opened(browser, file, 1400, 1360)
    page.wait_for_timeout(500)
    page.screenshot(path=picture)


def machine(page: Any, pictures: Path) -> None:
    """Show the cube of the slowest PE."""
    page.wait_for_timeout(500)
    page.locator("[data-section=machine] .ground").screenshot(path=pictures / "machine.png")


def flame(page: Any, pictures: Path) -> None:
    """Show the flame of the longest kernel that sends and receives."""
    page.evaluate("kernbench.run(0).set('window', null)")
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
