"""Look at a run while it goes on: what there is so far, given to somebody who watches it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

import attrs

if TYPE_CHECKING:
    from kernbench_builtin.pages.report.run_page import RunPage
    from kernbench_core.engine.watchdog import Progress

#: A page stands for at least so long, in s, and for so many times as long as it took to make.
_LEAST_S = 0.5
_SHARE = 1.5


class RunWatcher(Protocol):
    """Somebody who watches a run; all is called in the thread of the run, which goes on when it returns.

    A watched run notes what its report needs: it takes somewhat longer, and its result and op log are the same.
    """

    def progressed(self, progress: Progress) -> None:
        """Take note of how far the run is; called as `on_progress` is."""

    def wants_page(self) -> bool:
        """Whether a page of what there is so far is wanted now; asked when one could be made."""

    def show(self, page: RunPage, *, complete: bool) -> None:
        """Take a page of what there is so far; of the whole run at its end, whether wanted or not."""


@attrs.define
class PartialPages:
    """Gives a watcher what a run has so far, every half second where that takes two fifths of its time at most."""

    watcher: RunWatcher
    _next: float = 0.0

    def progressed(self, progress: Progress, make: Callable[[], RunPage] | None) -> None:
        """Tell how far the run is, and show the watcher the page that `make` makes if that is wanted, and not too soon.

        `make` is None until there is something to see.
        """
        self.watcher.progressed(progress)
        began = time.perf_counter()
        if make is not None and began >= self._next and self.watcher.wants_page():
            self.watcher.show(make(), complete=False)
            ended = time.perf_counter()
            self._next = ended + max(_LEAST_S, _SHARE * (ended - began))
