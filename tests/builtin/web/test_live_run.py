"""What browsers are told of a run that goes on."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kernbench_builtin.pages.report import RunPage
from kernbench_builtin.pages.web import live_run
from kernbench_builtin.pages.web.live_run import LiveRun
from kernbench_core.engine.watchdog import Progress
from tests.builtin.report.pages import result, shipped


class Clock:
    """A clock that a test sets."""

    now = 100.0

    def monotonic(self) -> float:
        """Return the time in s."""
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Give the clock that a live run looks at."""
    made = Clock()
    monkeypatch.setattr(live_run, "time", made)
    return made


def told(live: LiveRun) -> dict[str, Any]:
    """Return what a browser is told that asks how far the run is."""
    answer = live.answer("/progress", {})
    assert answer is not None and answer.kind == "application/json"
    found: dict[str, Any] = json.loads(answer.body)
    return found


def body(live: LiveRun) -> str:
    """Return the page as a browser gets it."""
    answer = live.answer("/page", {})
    assert answer is not None
    return answer.body.decode()


def test_it_is_told_how_far_the_run_is() -> None:
    """Before anything happened, while it runs, and at its end; infinity is a word, which JSON has not."""
    live = LiveRun("a run", shipped())
    assert told(live) == {"state": "running", "page": 0, "progress": None}
    live.progressed(Progress(12.5, 300, 2.0, 0.25, "kernel", "gemm", 3, 12, "programs", 1.0, float("inf")))
    expected = {
        "sim_ns": 12.5, "events": 300, "wall_s": 2.0, "fraction": 0.25, "phase": "kernel", "what": "gemm", "done": 3,
        "of": 12, "unit": "programs", "step_s": 1.0, "events_per_s": "inf", "named": "kernel gemm",
    }  # fmt: skip
    assert told(live) == {"state": "running", "page": 0, "progress": expected}
    live.show(RunPage("one", result()), complete=True)
    assert (told(live)["state"], told(live)["page"]) == ("complete", 1)


def test_one_that_ends_without_a_result_says_so() -> None:
    """What there was of it stays."""
    live = LiveRun("a run", shipped())
    live.show(RunPage("one", result(), goes_on=True), complete=False)
    live.failed()
    assert told(live)["state"] == "failed" and "this run goes on" in body(live)


def test_a_page_is_wanted_while_somebody_looks_on_and_has_seen_the_last(clock: Clock) -> None:
    """Not before anybody asked, nor five seconds after the last one did, nor before the last page was fetched."""
    live = LiveRun("a run", shipped())
    assert not live.wants_page()
    told(live)
    assert live.wants_page()
    clock.now += 4.9
    assert live.wants_page()
    clock.now += 0.2
    assert not live.wants_page()
    told(live)
    live.show(RunPage("one", result(), goes_on=True), complete=False)
    assert not live.wants_page()
    body(live)
    assert live.wants_page()


def test_the_run_draws_what_there_is_so_far_and_who_looks_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread than the run's gets little time beside compiled code; at the end the run holds nobody up."""
    drawn: list[str] = []

    def render(pages: list[RunPage], *args: Any, **options: Any) -> str:
        drawn.extend(page.name for page in pages)
        return "a page"

    monkeypatch.setattr(live_run, "render_report", render)
    live = LiveRun("a run", shipped())
    live.show(RunPage("so far", result(), goes_on=True), complete=False)
    assert drawn == ["so far"]
    live.show(RunPage("whole", result()), complete=True)
    assert drawn == ["so far"]
    assert (body(live), body(live), drawn) == ("a page", "a page", ["so far", "whole"])


def test_every_load_shows_the_latest_page() -> None:
    """Drawn once, however many look at it; before there is one, that."""
    live = LiveRun("a run", shipped())
    assert "The run has not come so far." in body(live)
    live.show(RunPage("first", result(), goes_on=True), complete=False)
    first = live.answer("/page", {})
    assert first is live.answer("/page", {}) and "this run goes on" in body(live)
    live.show(RunPage("second", result()), complete=True)
    assert "this run goes on" not in body(live) and "second" in body(live)


def test_its_frame_names_it_and_may_fetch_from_here_alone() -> None:
    """However hostile the name; there is nothing else to see."""
    live = LiveRun("<script>alert(1)</script>", shipped())
    frame = live.answer("/", {})
    assert frame is not None
    text = frame.body.decode()
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text and "<script>alert(1)" not in text
    assert "default-src 'none'" in frame.policy and "connect-src 'self'" in frame.policy
    assert "unsafe" not in frame.policy
    assert live.answer("/etc/passwd", {}) is None
