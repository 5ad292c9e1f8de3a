"""Write the pictures of docs/report.md: screenshots of a small run's page.

    python tools/report_pictures.py

It needs a Chromium.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import kernbench_core as kb

PICTURES = Path(__file__).parents[1] / "docs" / "report"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


def main() -> None:
    """Run a bench, open its page, and write what is seen."""
    from playwright.sync_api import sync_playwright

    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as started:
        file = Path(folder) / "gemm.html"
        kb.run("gemm", "tiny", {"M": 256, "N": 256, "K": 256}, report=file)
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1000, "height": 900})
        page.goto(file.as_uri())
        page.wait_for_selector("html[data-ready=yes]", state="attached")
        page.evaluate("kernbench.run(0).timeline.show(9200, 12800)")
        page.evaluate("kernbench.run(0).timeline.choose(kernbench.run(0).timeline.spans.first[14] + 1)")
        page.evaluate("kernbench.run(0).machine.show('sip0.cube0')")
        page.wait_for_timeout(500)
        page.locator("[data-section=machine] .ground").screenshot(path=PICTURES / "machine.png")
        page.locator("[data-section=timeline] .rows").screenshot(path=PICTURES / "timeline.png")
        browser.close()


if __name__ == "__main__":
    main()
