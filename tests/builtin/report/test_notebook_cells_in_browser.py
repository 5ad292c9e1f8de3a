"""What a notebook shows, in a real browser: as light or dark as the notebook, and none of its rules for tables."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kernbench_core as kb
from kernbench_core.plugins import Plugins

pytestmark = pytest.mark.browser
PAGE = """<!doctype html><html data-ready="yes"><meta charset="utf-8">
<style>.out td, .out th { text-align: right } .out dl dt { float: left; width: 20% }
.out ul { padding-left: 2em } .out pre { white-space: pre }</style>
<body data-jp-theme-light="LIGHT"><div class="out">CELL</div></body></html>"""
GROUND = "getComputedStyle(document.querySelector('.kb-cell')).backgroundColor"
WIDTHS = "[document.documentElement.scrollWidth, innerWidth]"


@pytest.fixture(scope="module")
def cells(plugins: Plugins) -> str:
    """Return all that is drawn of a run."""
    size = {"M": 128, "N": 128, "K": 128}
    r = kb.run("gemm", "tiny", size, plugins=plugins, verify_data=True, explain=True)
    return "".join(str(thing._repr_html_()) for thing in (r, r.launches, r.launches[0], r.outputs))


@pytest.mark.parametrize("around", ["true", "false", ""])
@pytest.mark.parametrize("system", ["light", "dark"])
def test_a_cell_is_as_what_is_around_it(
    opened: Callable[..., Any], cells: str, tmp_path: Path, around: str, system: str
) -> None:
    """The theme of a notebook counts before that of the system; text and plots stand out from the ground."""
    file = tmp_path / "cell.html"
    file.write_text(PAGE.replace("LIGHT", around).replace("CELL", cells), encoding="utf-8")
    page = opened(file, color_scheme=system, viewport={"width": 900, "height": 700})
    dark = around == "false" or (not around and system == "dark")
    ground = "rgb(18, 22, 28)" if dark else "rgb(255, 255, 255)"
    assert page.evaluate(GROUND) == ground
    for selector, rule in (("td", "color"), (".kb-plot text", "fill"), (".kb-plot .kb-c0", "fill")):
        assert page.evaluate(f"getComputedStyle(document.querySelector('{selector}')).{rule}") != ground
    wide, window = page.evaluate(WIDTHS)
    assert wide <= window


def test_rules_of_notebooks_do_not_count(opened: Callable[..., Any], cells: str, tmp_path: Path) -> None:
    file = tmp_path / "cell.html"
    file.write_text(PAGE.replace("LIGHT", "true").replace("CELL", cells), encoding="utf-8")
    page = opened(file)
    found = "(s, r) => getComputedStyle(document.querySelector(s))[r]"
    assert page.evaluate(f"({found})('td', 'textAlign')") == "left"
    assert page.evaluate(f"({found})('td.n', 'textAlign')") == "right"
    assert page.evaluate(f"({found})('.figures dt', 'float')") == "none"
    assert page.evaluate(f"({found})('ul.legend', 'paddingLeft')") == "0px"


def test_wrong_data_are_told_within_the_cell(opened: Callable[..., Any], plugins: Plugins, tmp_path: Path) -> None:
    """However long the sentence is, it is as wide as the cell."""

    def bench(rt: Any) -> None:
        rt.check(rt.tensor(np.zeros(4, np.float32), name="n" * 400), np.ones(4))

    cell = str(kb.run(bench, "tiny", plugins=plugins, verify_data=True)._repr_html_())
    assert "n" * 400 in cell.partition("<pre")[2]
    file = tmp_path / "cell.html"
    file.write_text(PAGE.replace("LIGHT", "true").replace("CELL", cell), encoding="utf-8")
    page = opened(file, viewport={"width": 900, "height": 700})
    wide, window = page.evaluate(WIDTHS)
    assert wide <= window
    told = page.locator("pre")
    assert told.evaluate("pre => pre.scrollWidth") <= told.evaluate("pre => pre.clientWidth")
