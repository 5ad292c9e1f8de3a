"""The page of budgets shows what pytest prints: its files are written, its commands run, one after another."""

from __future__ import annotations

import re
import shlex

from kernbench_builtin.checks.budgets.limits import figures_of_result
from kernbench_core.runs.result import RunResult
from tests.builtin.checks.budgets.inner_pytest import REPO, Inner

pytest_plugins = ["pytester"]
PAGE = REPO / "docs" / "budgets.md"


def blocks() -> list[tuple[str, str]]:
    """Return the blocks of the page: language and text."""
    return re.findall(r"^```(\w+)\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def test_commands_print_what_the_page_shows(inner: Inner) -> None:
    """Line by line; what stands between blank lines and … together there is together in what is printed."""
    ran = 0
    for language, text in blocks():
        if language == "python" and (named := re.match(r"# (\w+\.py): ", text)):
            inner.write(text, name=named[1])
        elif language == "text" and text.startswith("$ pytest"):
            command, _, shown = text.partition("\n")
            printed = inner.run(*shlex.split(command)[2:]).stdout.str()
            at = 0
            for part in re.split(r"^…?\n", shown, flags=re.MULTILINE):
                at = printed.find(part, at)
                assert at >= 0, f"{command} must print what the page shows:\n{part}\nand prints\n{printed}"
            ran += 1
    assert ran == 5


def test_figures_of_the_page_are_figures(result: RunResult) -> None:
    """Each that it names, of a kind too."""
    known = figures_of_result(result)
    section = PAGE.read_text(encoding="utf-8").partition("## Budgets")[2].partition("## The report")[0]
    named = set(re.findall(r"`(\w+_(?:ns|bytes)|[a-z_]+)`(?=[,)]| \()", section))
    assert {"time_ns", "flop", "max_abs_error", "hazards"} <= named
    assert named - {*known, "verify_data"} == set()
