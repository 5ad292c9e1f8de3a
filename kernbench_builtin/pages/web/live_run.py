"""The site of a run that goes on: how far it is, and the report's page of what there is so far."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from kernbench_builtin.pages.report.page import render_report
from kernbench_builtin.pages.web.loopback import JSON, Answer
from kernbench_builtin.pages.web.pages import page, sentence
from kernbench_core.errors import KernbenchError
from kernbench_core.units import finite

if TYPE_CHECKING:
    from kernbench_builtin.pages.report.run_page import RunPage
    from kernbench_core.engine.watchdog import Progress
    from kernbench_core.plugins import Registry, ReportSectionEntry

#: For how long after somebody asked how far the run is somebody is taken to look on, in s.
_LOOKING_S = 5.0


class LiveRun:
    """A `RunWatcher` whose site is `answer`: the run tells in its thread, browsers ask in others.

    Everything is kept here, so that a page that is loaded again shows the same. Pages are asked of the run only while
    somebody looks on.
    """

    def __init__(self, title: str, sections: Registry[ReportSectionEntry], *, strict: bool = False) -> None:
        self.title = title
        self._sections = sections
        self._strict = strict
        self._lock = threading.Lock()
        self._progress: Progress | None = None
        self._page: RunPage | None = None
        self._number = 0
        self._state = "running"
        self._asked = -_LOOKING_S
        self._answer: Answer | None = None
        self._served = 0
        self._drawing = threading.Lock()

    # What the run calls -----------------------------------------------------------------------------

    def progressed(self, progress: Progress) -> None:
        """Take note of how far the run is."""
        self._progress = progress

    def wants_page(self) -> bool:
        """Whether somebody looks on, and has seen the last page."""
        seen = self._served == self._number
        return seen and time.monotonic() - self._asked < _LOOKING_S

    def show(self, page: RunPage, *, complete: bool) -> None:
        """Take the page of what there is so far, or of the whole run.

        What there is so far is drawn here, in the run's own thread: another one, which compiled code lets work for a
        small part of the time only, would take many seconds.
        """
        answer = None if complete else self._draw(page)
        with self._lock:
            self._page, self._answer = page, answer
            self._number += 1
            if complete:
                self._state = "complete"

    def failed(self) -> None:
        """Say that the run has ended without a result."""
        self._state = "failed"

    # What browsers ask ------------------------------------------------------------------------------

    def answer(self, path: str, query: Mapping[str, Sequence[str]]) -> Answer | None:
        """Return the frame at `/`, how far the run is at `/progress`, and at `/page` the page so far."""
        if path == "/":
            return page("live.html", script="live.js", title=self.title)
        if path == "/progress":
            self._asked = time.monotonic()
            return Answer(json.dumps(self.to_json()).encode(), JSON)
        return self._report() if path == "/page" else None

    def to_json(self) -> dict[str, Any]:
        """Return how far the run is: its `state` (running, complete, failed), the number of its page, its progress."""
        told = self._progress
        progress = None
        if told is not None:
            progress = {name: _of_json(each) for name, each in attrs.asdict(told).items()} | {"named": told.named}
        return {"state": self._state, "page": self._number, "progress": progress}

    def _report(self) -> Answer:
        """Return the page as it is now; it is drawn once, however many look."""
        with self._drawing:
            with self._lock:
                number, found, answer = self._number, self._page, self._answer
            if found is None:
                return sentence("Nothing to see yet", "The run has not come so far.", home=False, status=200)
            if answer is None:
                answer = self._draw(found)
                with self._lock:
                    if number == self._number:
                        self._answer = answer
            self._served = number
            return answer

    def _draw(self, found: RunPage) -> Answer:
        try:
            return Answer(render_report([found], self._sections, strict=self._strict).encode())
        except KernbenchError as error:
            return sentence("This run cannot be shown", str(error), home=False)


def _of_json(value: Any) -> Any:
    """Return a value that JSON has."""
    return finite(value) if isinstance(value, float) else value
