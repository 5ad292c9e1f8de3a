"""One offline HTML page: of one or several runs, what they did, where, when and why, or of the points of a sweep.

In: `RunPage`s, plain data of runs in memory or in folders, with the sections that plug-ins register, or a `SweepPage`
of points. Out: the text of the page. Runs, sweeps, the command line and the server of pages (`web`) call it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernbench_core.package import door

if TYPE_CHECKING:
    from kernbench_builtin.pages.report.page import render_report as render_report
    from kernbench_builtin.pages.report.run_page import RunPage as RunPage
    from kernbench_builtin.pages.report.section import Section as Section
    from kernbench_builtin.pages.report.sweep.page import render_sweep as render_sweep
    from kernbench_builtin.pages.report.sweep.sweep_page import MovedBy as MovedBy
    from kernbench_builtin.pages.report.sweep.sweep_page import SweepPage as SweepPage
    from kernbench_builtin.pages.report.sweep.sweep_page import SweptObjective as SweptObjective
    from kernbench_builtin.pages.report.sweep.sweep_page import SweptParameter as SweptParameter

__getattr__ = door(__name__)
