"""What a section of the page is, shipped or of a plug-in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from kernbench_builtin.pages.report.run_page import RunPage


@attrs.frozen
class Section:
    """One section of the page: its `title`, its place (`order`), and what it shows of a run.

    `html` returns the HTML of a run (what it says of a run must be escaped, as by `html.escape`), "" to leave it out.
    `data`, if given, returns what its script is to have: JSON types, and numpy arrays of numbers, which reach it as
    typed arrays. `scripts` and `style` are the texts of scripts and of CSS; one script calls
    `kernbench.section("name", (element, data, run) => …)`, whose function is called once for each run.

    >>> from kernbench_builtin.pages.report import Section
    >>> Section("Ops", 60, lambda run: f"<p>{run.result['ops']:,} ops</p>").title
    'Ops'
    """

    title: str
    order: int
    html: Callable[[RunPage], str]
    data: Callable[[RunPage], Mapping[str, Any] | None] | None = None
    scripts: tuple[str, ...] = ()
    style: str = ""
