"""One offline HTML page of one or several runs: what they did, where, when and why.

In: `RunPage`s, plain data of runs in memory or in folders, and the sections that plug-ins register. Out: the text of
the page. Runs, the command line and the server of pages (`web`) call it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernbench_core.package import door

if TYPE_CHECKING:
    from kernbench_core.report.page import render_report as render_report
    from kernbench_core.report.run_page import RunPage as RunPage
    from kernbench_core.report.section import Section as Section

__getattr__ = door(__name__, {"RunPage": "run_page", "Section": "section", "render_report": "page"})
