"""Pages served on loopback: saved runs below a folder, and a run while it goes on.

In: a folder, or what a run tells and shows of itself. Out: the report's page, to a browser on this machine and to
nobody else. The command line calls it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernbench_core.package import door

if TYPE_CHECKING:
    from kernbench_builtin.pages.web.live_run import LiveRun as LiveRun
    from kernbench_builtin.pages.web.loopback import Answer as Answer
    from kernbench_builtin.pages.web.loopback import served as served
    from kernbench_builtin.pages.web.saved_site import SavedSite as SavedSite

__getattr__ = door(__name__)
