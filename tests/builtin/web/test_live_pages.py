"""A watched run: pages of what there is so far, and in the end the run that it is without."""

from __future__ import annotations

import attrs
import pytest

import kernbench_core as kb
from kernbench_builtin.pages import live_pages
from kernbench_builtin.pages.live_pages import PartialPages
from kernbench_builtin.pages.plugin import REPORT_SECTIONS
from kernbench_builtin.pages.report import RunPage, render_report
from kernbench_core.engine.watchdog import Progress
from kernbench_core.plugins import Plugins


@attrs.define
class Watcher:
    """Keeps all that it is told; `raises` when a page is shown."""

    wants: bool = True
    raises: bool = False
    told: list[Progress] = attrs.field(factory=list)
    pages: list[tuple[RunPage, bool]] = attrs.field(factory=list)

    def progressed(self, progress: Progress) -> None:
        """Keep it."""
        self.told.append(progress)

    def wants_page(self) -> bool:
        """Say whether a page is wanted."""
        return self.wants

    def show(self, page: RunPage, *, complete: bool) -> None:
        """Keep it."""
        self.pages.append((page, complete))


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have pages made as often as there is anything to tell, however long they take, and tell of every look."""
    monkeypatch.setattr(live_pages, "_LEAST_S", 0.0)
    monkeypatch.setattr(live_pages, "_SHARE", 0.0)
    monkeypatch.setattr("kernbench_core.runs.run_progress._LOOK_S", 0.0)
    monkeypatch.setattr("kernbench_core.engine.watchdog._LOOK_S", 0.0)


@pytest.mark.usefixtures("impatient")
def test_a_run_that_is_watched_is_the_same_run(plugins: Plugins) -> None:
    """Op log, figures and explanation; its pages grow, and the last is the whole."""
    params = {"M": 128, "N": 64, "K": 64, "tile_m": 64, "tile_n": 64, "tile_k": 64}
    watcher = Watcher()
    bare = kb.run("gemm", "tiny", params, plugins=plugins, verify_data=True, explain=True, timeline=True, tcm_map=True)
    seen = kb.run(
        "gemm", "tiny", params, plugins=plugins, verify_data=True, explain=True, timeline=True, tcm_map=True,
        watcher=watcher,
    )  # fmt: skip
    assert {**seen.to_json(), "wall_s": 0} == {**bare.to_json(), "wall_s": 0}
    assert seen.timeline == bare.timeline
    assert [complete for _, complete in watcher.pages] == [False] * (len(watcher.pages) - 1) + [True]
    assert len(watcher.pages) > 5 and watcher.told[-1].phase
    totals = [page.total_ns for page, _ in watcher.pages]
    assert totals == sorted(totals) and totals[0] < totals[len(totals) // 2] < totals[-1] == seen.total_ns
    for page, complete in watcher.pages[:: len(watcher.pages) // 4]:
        assert page.goes_on is not complete
        assert ("this run goes on" in render_report([page], plugins.of(REPORT_SECTIONS))) is not complete
    last, _ = watcher.pages[-1]
    assert last.result == seen.to_json() and not last.goes_on


@pytest.mark.usefixtures("impatient")
def test_nothing_is_made_that_nobody_wants(plugins: Plugins) -> None:
    """But the whole page at the end; `on_progress` is told beside the watcher."""
    watcher, told = Watcher(wants=False), list[Progress]()
    kb.run("vector-add", "tiny", {"n": 64}, plugins=plugins, watcher=watcher, on_progress=told.append)
    assert [complete for _, complete in watcher.pages] == [True]
    assert told == watcher.told != []


def test_a_page_is_made_every_half_second_or_takes_two_fifths_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next is made half a second after the last, or half as long again after as that took."""
    now, takes = [0.0], [0.0]

    def make() -> RunPage:
        now[0] += takes[0]
        return RunPage("page", {})

    monkeypatch.setattr("kernbench_builtin.pages.live_pages.time.perf_counter", lambda: now[0])
    for took, pause in ((0.01, 0.5), (0.3, 0.5), (0.6, 0.9), (3.0, 4.5)):
        takes[0] = took
        watcher = Watcher()
        pages = PartialPages(watcher)
        pages.progressed(Progress(0.0, 0, 0.0), make)
        made = now[0]
        for later, number in ((pause - 0.001, 1), (pause + 0.001, 2)):
            now[0] = made + later
            pages.progressed(Progress(0.0, 0, 0.0), make)
            assert len(watcher.pages) == number
        now[0] += 100.0
