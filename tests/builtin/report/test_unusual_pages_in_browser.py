"""Pages out of the ordinary in a real browser: hostile names, a section of a plug-in, a timeline that was cut."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kernbench_core as kb
from kernbench_builtin.machines.drawing import draw_machine
from kernbench_builtin.pages.plugin import REPORT_SECTIONS
from kernbench_builtin.pages.report import RunPage, render_report
from kernbench_builtin.pages.timeline import Timeline, Track
from kernbench_builtin.pages.timeline.timeline import Flows, Spans
from kernbench_core.graph import Edge, EdgeKind, Graph, Node
from kernbench_core.plugins import Plugins, load_plugins, own_plugins
from tests.builtin.report.pages import result

pytestmark = pytest.mark.browser
MACHINE = "article[data-section=machine]"
SCRIPTS = ("core", "kept", "format", "colour", "window", "figures", "machine", "spans", "source", "paint", "flame_tree",
           "flame", "timeline", "run", "theme", "start")  # fmt: skip
TIMELINE = "article[data-section=timeline]"


def test_hostile_names_are_text_in_every_view(opened: Callable[..., Any], plugins: Plugins, tmp_path: Path) -> None:
    """Of nodes, tracks, spans, files and lines: none becomes an element, and nothing runs."""
    evil = "</script><img src=x onerror=alert(1)>\"'&<svg>"
    graph = Graph.of(
        [Node(f"{name}{evil}", f"k{evil}", f"i{evil}", {f"p{evil}": evil}) for name in "ab"],
        [Edge(f"a{evil}", f"b{evil}", EdgeKind.NOC, 16.0, 1.0)],
    )
    use = {"total_ns": 10.0, "places": [f"a{evil}"], "utilisation": [0.5], "busy_ns": [5.0], "nbytes": [1]}
    machine = {**draw_machine(graph, lambda node: {f"p{evil}": evil}, evil).to_json(), "use": use}
    one = np.zeros(1, int)
    spans = Spans(one, one, one, one + 10, one, one, one, one - 1, one)
    tracks = (Track(0, -1, f"t{evil}", "kernel", f"a{evil}"),)
    flows = Flows(*(np.zeros(0) for _ in range(5)))
    timeline = Timeline(10.0, tracks, (f"n{evil}",), (f"/f{evil}.py:1",), (f"x = {evil}",), spans, (), flows)
    page = RunPage(f"run{evil}", result(f"bench{evil}"), machine, timeline, {f"/f{evil}.py": f"x = {evil}\n"})
    file = tmp_path / "evil.html"
    file.write_text(render_report([page, page], plugins.of(REPORT_SECTIONS)))
    shown = opened(file)
    shown.locator(f"{MACHINE} [data-box]").first.click()
    shown.evaluate("kernbench.run(0).timeline.choose(0)")
    assert evil in shown.locator(f"{MACHINE} .detail").first.inner_text()
    assert f"n{evil}" in shown.locator(f"{TIMELINE} .span-detail").first.inner_text()
    assert f"x = {evil}" in shown.locator(f"{TIMELINE} .source").first.inner_text()
    assert shown.locator("img").count() == 0 and shown.locator("script:not([data-of])").count() == len(SCRIPTS)


def test_a_section_of_a_plug_in_draws_itself(
    opened: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its script has the arrays of its data, and the helpers of the page."""
    monkeypatch.syspath_prepend(Path(__file__).parents[3] / "plugins_example")
    both = load_plugins([*own_plugins("builtin"), "example = kernbench_example.plugin"], installed=False)
    file = tmp_path / "late.html"
    late = [{"pe": "pe0", "late_ns": 2.0}, {"pe": "pe1", "late_ns": 4.0}]
    file.write_text(render_report([RunPage("r", result(late_starts=late))], both.of(REPORT_SECTIONS)))
    bars = opened(file).locator("svg.late rect")
    assert [float(bars.nth(i).get_attribute("height")) for i in range(bars.count())] == [29.0, 58.0]
    assert bars.nth(1).locator("title").text_content() == "pe1: 4 ns"


def test_of_a_cut_timeline_only_its_window_is_told(
    opened: Callable[..., Any], plugins: Plugins, tmp_path: Path
) -> None:  # fmt: skip
    """What lies outside counts neither as busy nor as idle; the page says what is known."""
    file = tmp_path / "cut.html"
    run = kb.run("gemm", "tiny", {"M": 64, "N": 64, "K": 64}, plugins=plugins, report=file, window="4 us..5 us")
    assert run.launches[0].started_ns > 5000
    page = opened(file)
    wire = "host->sip0.io0.pcie_ep"
    figures = "kernbench.run(0).machine.figures"
    windows = ([4000, 5000], [0, 9000], [6000, 9000])
    inside, wide, outside = (page.evaluate(f"{figures}.mean('busy', '{wire}', {window})") for window in windows)
    assert inside == wide > 0 and outside is None
    assert page.locator(f"{MACHINE} .scale").inner_text().endswith("It is known from 4 us to 5 us only.")
    assert page.locator(f"{TIMELINE} p.note", has_text="It is known from 4 us to 5 us only.").count() == 1
    page.locator(f"{TIMELINE} .icicle output", has_text="Nothing is known of a kernel in this window.").wait_for()
    page.evaluate("kernbench.run(0).machine.show('')")
    page.evaluate("kernbench.run(0).set('window', [6000, 9000])")
    page.wait_for_timeout(100)
    labels = page.locator(f"{MACHINE} [data-box]").evaluate_all("boxes => boxes.map((box) => box.ariaLabel)")
    assert labels and all(label.endswith(", not recorded") for label in labels)
    page.locator(f"{MACHINE} [aria-label='host, not recorded']").click()
    told = page.locator(f"{MACHINE} .detail .note").inner_text()
    assert told == "The window was not recorded: the timeline is known from 4 us to 5 us only."
