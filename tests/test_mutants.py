"""tools/mutants.toml speaks of code and tests that are there; the run itself is long, and done by hand."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.conftest import loaded_tool

REPO = Path(__file__).parents[1]
SETTINGS: dict[str, Any] = tomllib.loads((REPO / "tools" / "mutants.toml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def tool() -> Iterator[ModuleType]:
    """Give tools/mutants.py."""
    with loaded_tool("mutants") as module:
        yield module


@pytest.fixture(scope="module")
def areas(tool: ModuleType) -> dict[str, Any]:
    """Give the areas of mutants.toml."""
    return {
        name: tool.Area(name, tuple(area["sources"]), tuple(area["tests"])) for name, area in SETTINGS["areas"].items()
    }


def test_each_file_has_tests_that_have_to_notice(areas: dict[str, Any]) -> None:
    for area in areas.values():
        for source in area.sources:
            assert (REPO / source).is_file(), source
            assert area.tests_of(source), source


def test_each_planted_mutant_breaks_code_that_is_there(tool: ModuleType, areas: dict[str, Any]) -> None:
    for mutant in tool.planted(SETTINGS, areas):
        compile(mutant.code, mutant.file, "exec")
        assert mutant.before != mutant.after


def test_mutants_that_change_nothing_are_few_and_say_why() -> None:
    listed = SETTINGS.get("equivalent", ())
    assert len(listed) <= 12
    assert all(len(entry["reason"].split()) > 4 for entry in listed)
    assert len({entry["mutant"] for entry in listed}) == len(listed)


def test_only_what_runs_is_broken(tool: ModuleType) -> None:
    source = "class A:\n    x: int | None = 1 + 1\n\n    def f(self, y: int | None) -> int:\n        return 1\n"
    outline = tool.Outline.of(source)
    assert outline.function(5) == "A.f"
    assert outline.counts((5, 15))
    assert not outline.counts((4, 19))
