"""The served pages in a real browser: an index that leads to runs, and a run that grows under one's eyes."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import kernbench_core as kb
from kernbench_builtin.pages.plugin import REPORT_SECTIONS
from kernbench_builtin.pages.report import RunPage
from kernbench_builtin.pages.report.saved_runs import read_run
from kernbench_builtin.pages.web import LiveRun, SavedSite, served
from kernbench_core.engine.watchdog import Progress
from kernbench_core.plugins import Plugins
from tests.builtin.report.pages import result

pytestmark = pytest.mark.browser


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """Open a page; whatever its console has to say is a fault, but that a server has ended."""
    opened = browser.new_page()
    said: list[str] = []
    opened.on("console", lambda message: said.append(message.text))
    opened.on("pageerror", lambda error: said.append(str(error)))
    yield opened
    opened.close()
    assert not [text for text in said if "net::ERR_" not in text]


def test_the_index_leads_to_runs_side_by_side(plugins: Plugins, tmp_path: Path, page: Any) -> None:
    """By a click on one, and by choosing two with the keyboard."""
    for name in ("a", "b"):
        kb.run("vector-add", "tiny", {"n": 64}, plugins=plugins, out=tmp_path / name)
    with served(SavedSite(tmp_path, plugins.of(REPORT_SECTIONS))) as address:
        page.goto(address)
        page.get_by_role("link", name="a", exact=True).click()
        page.wait_for_selector("article[data-section=machine] svg")
        page.go_back()
        for name in ("a", "b"):
            page.get_by_role("checkbox", name=name, exact=True).press("Space")
        page.get_by_role("button", name="side by side").press("Enter")
        page.wait_for_selector("h3.of")
        assert page.locator("article[data-section=summary] h3.of").all_inner_texts() == ["a", "b"]  # the older first


@pytest.mark.parametrize("width", [360, 400, 600, 660, 700, 1280])
def test_no_cell_of_the_index_is_printed_over_another(plugins: Plugins, tmp_path: Path, page: Any, width: int) -> None:
    """At any width: no text lies in the box of another cell."""
    kb.run("vector-add", "tiny", {"n": 64}, plugins=plugins, verify_data=True, out=tmp_path / "a")
    over = """() => [...document.querySelectorAll("tbody td")].flatMap((cell) => {
      const range = document.createRange();
      range.selectNodeContents(cell);
      return [...range.getClientRects()].filter((box) => box.width > 1).flatMap((box) => {
        const others = [...cell.parentElement.cells].filter((other) => other !== cell);
        return others.map((other) => other.getBoundingClientRect()).filter((found) => box.left < found.right - 1
          && found.left < box.right - 1 && box.top < found.bottom - 2 && found.top < box.bottom - 2);
      });
    }).length"""
    with served(SavedSite(tmp_path, plugins.of(REPORT_SECTIONS))) as address:
        page.set_viewport_size({"width": width, "height": 800})
        page.goto(address)
        assert page.locator("td.limits").inner_text()
        assert page.evaluate(over) == 0


def test_a_run_grows_and_a_reload_loses_nothing(plugins: Plugins, page: Any) -> None:
    """From nothing over a part to the whole; scrolled to the same place; a closed page harms nothing."""
    live = LiveRun("vector-add on tiny", plugins.of(REPORT_SECTIONS))
    params, frame = {"n": 64}, page.frame_locator("iframe:not(.coming)")

    class Stages:
        """Hands on the first page and the last, and looks at each in the browser."""

        looked = 0

        def progressed(self, progress: Any) -> None:
            live.progressed(progress)

        def wants_page(self) -> bool:
            return self.looked == 0

        def show(self, made: Any, *, complete: bool) -> None:
            live.show(made, complete=complete)
            self.looked += 1

    with served(live) as address:
        page.goto(address)
        page.get_by_text("Nothing to see yet").wait_for()
        kb.run("vector-add", "tiny", params, plugins=plugins, watcher=Stages())
        frame.get_by_role("heading", name="Timeline").wait_for()
        page.get_by_role("status").get_by_text("complete").wait_for()
        page.reload()
        frame.get_by_role("heading", name="Timeline").wait_for()
        assert re.search(r"page\?n=\d", page.locator("iframe").get_attribute("src"))
        again = LiveRun("again", plugins.of(REPORT_SECTIONS))
    with served(again) as address:
        page.goto(address)
        page.get_by_role("status").get_by_text("building the machine").wait_for()
        page.goto("about:blank")
        assert kb.run("vector-add", "tiny", params, plugins=plugins, watcher=again).total_ns > 0


def test_a_new_page_shows_what_was_chosen_on_the_old_one(plugins: Plugins, tmp_path: Path, page: Any) -> None:
    """The window, the part of the machine, colours, and the place it was scrolled to; and so does a reload."""
    kb.run("vector-add", "tiny", {"n": 64}, plugins=plugins, out=tmp_path / "run")
    live, made = LiveRun("vector-add on tiny", plugins.of(REPORT_SECTIONS)), read_run(tmp_path / "run")
    view = "document.querySelector('iframe').contentWindow"
    run = f"{view}.kernbench.run(0)"
    chosen = f"[{run}.window, {run}.machine.part, {view}.document.documentElement.dataset.theme, {view}.scrollY]"
    expected = [[100, 900], "sip0.cube0.pe1", "light", 300]
    with served(live) as address:
        live.show(made, complete=False)
        page.goto(address)
        page.locator("iframe[src$='n=1']:not(.coming)").wait_for()
        page.evaluate(f"{run}.set('window', [100, 900])")
        page.evaluate(f"{run}.machine.show('sip0.cube0.pe1')")
        page.frame_locator("iframe").locator("#theme").click()
        scrolled = "new Promise((done) => {{ {0}.addEventListener('scroll', done); {0}.scrollTo(0, 300); }})"
        page.evaluate(scrolled.format(view) + ".then(() => null)")
        live.show(made, complete=True)
        page.locator("iframe[src$='n=2']:not(.coming)").wait_for()
        page.locator("iframe[src$='n=1']").wait_for(state="detached")
        page.get_by_role("status").get_by_text("complete", exact=True).wait_for()
        assert page.evaluate(chosen) == expected
        page.reload()
        page.locator("iframe[src$='n=2']:not(.coming)").wait_for()
        assert page.evaluate(chosen) == expected


def test_a_reload_of_a_saved_run_keeps_what_was_chosen(plugins: Plugins, tmp_path: Path, page: Any) -> None:
    """Of each run its own: a launch by its name, and a window as far as the run that is there now has it."""
    for name, n in (("a", 64), ("b", 64)):
        kb.run("vector-add", "tiny", {"n": n}, plugins=plugins, out=tmp_path / name)
    ready = "html[data-ready=yes]"
    with served(SavedSite(tmp_path, plugins.of(REPORT_SECTIONS))) as address:
        page.goto(f"{address}run?at=a&at=b")
        page.wait_for_selector(ready, state="attached")
        scopes = page.locator("article[data-section=machine] .scope")
        scopes.nth(0).select_option("launch0")
        page.evaluate("kernbench.run(1).set('window', [0, kernbench.run(1).machine.total - 1])")
        told = page.locator("article[data-section=machine] output.told").all_inner_texts()
        page.reload()
        page.wait_for_selector(ready, state="attached")
        assert [scopes.nth(at).input_value() for at in range(2)] == ["launch0", "window"]
        assert page.locator("article[data-section=machine] output.told").all_inner_texts() == told
        assert told[0].startswith("Launch ")
        page.goto(f"{address}run?at=b")
        page.wait_for_selector(ready, state="attached")
        opens = "[kernbench.run(0).timeline.data.opens].map(({ from, to }) => [from, to])[0]"
        assert page.evaluate("kernbench.run(0).window.slice(0, 2)") == page.evaluate(opens)
        shutil.rmtree(tmp_path / "b")
        kb.run("vector-add", "tiny", {"n": 8}, plugins=plugins, out=tmp_path / "b")
        page.goto(f"{address}run?at=a&at=b")
        page.wait_for_selector(ready, state="attached")
        assert [scopes.nth(at).input_value() for at in range(2)] == ["launch0", "run"]


def test_without_a_page_it_says_why(plugins: Plugins, page: Any) -> None:
    """The machine is being built until the run says otherwise; then no page was made, or it is being drawn."""
    live, none = LiveRun("vector-add on tiny", plugins.of(REPORT_SECTIONS)), page.locator("#none")
    made = RunPage("one", result(), goes_on=True)
    page.route("**/page?*", lambda route: None)  # it is never answered
    with served(live) as address:
        page.goto(address)
        none.get_by_text("Nothing to see yet: the machine is being built.", exact=True).wait_for()
        live.progressed(Progress(12.5, 300, 2.0, 0.42, "kernel", "gemm", step_s=1.0, events_per_s=300.0))
        none.get_by_text("Nothing to see yet: the run goes on, and its first page is still to be made.").wait_for()
        assert "42 % of this step" in page.get_by_role("status").inner_text()
        live.progressed(Progress(12.5, 300, 2.0, phase="summing", step_s=1.0, events_per_s=300.0))
        page.get_by_role("status").get_by_text("summing up · 2.0 s so far").wait_for()
        live.show(made, complete=False)
        none.get_by_text("The first page of what has happened so far is being drawn.", exact=True).wait_for()
        assert page.locator("iframe.coming").count() == 1
        live.show(made, complete=True)
        page.get_by_role("status").get_by_text("complete; its page is being drawn", exact=True).wait_for()


def test_a_run_that_fails_early_has_nothing_to_show(plugins: Plugins, page: Any) -> None:
    """It does not promise a page any more."""
    live = LiveRun("vector-add on tiny", plugins.of(REPORT_SECTIONS))
    live.failed()
    with served(live) as address:
        page.goto(address)
        page.get_by_text("There is nothing to see of this run.", exact=True).wait_for()
