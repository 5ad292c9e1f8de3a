"""Sections that two plug-ins call alike, in a browser: each is drawn by its own script, from its own data."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernbench_builtin.pages.report import RunPage, render_report
from tests.builtin.report.pages import of_two, result

pytestmark = pytest.mark.browser

SCRIPT = """
kernbench.section("ops", (element, data, run) => {
  element.append(kernbench.make("b", { class: "drawn" }, `${data.of} at ${kernbench.time(run.number)}`));
});
"""


def test_each_of_two_is_drawn_from_its_own_data(opened: Callable[..., Any], tmp_path: Path) -> None:
    """Their scripts say the same name, and neither has to know of the other."""
    (tmp_path / "page.html").write_text(render_report([RunPage("r", result())], of_two(SCRIPT)), encoding="utf-8")
    page = opened(tmp_path / "page.html")
    for name, told in (("one:ops", "one at 0 ns"), ("two:ops", "two at 0 ns")):
        assert page.locator(f"article[data-section='{name}'] .drawn").all_inner_texts() == [told]
