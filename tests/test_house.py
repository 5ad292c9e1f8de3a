"""The house stands as the page of the architecture draws it, and a model needs little of it."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

REPO = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def house() -> dict[str, Any]:
    """Give the tool's names."""
    return runpy.run_path(str(REPO / "tools" / "house.py"))


def test_the_figure_is_of_this_tree(house: dict[str, Any]) -> None:
    """Drawing it raises where rooms know each other in a circle."""
    _, edges, _ = house["read"]()
    drawn = (REPO / "docs" / "house.svg").read_text()
    assert house["figure"](edges) + "\n" == drawn, "run tools/house.py --figure docs/house.svg"


@pytest.mark.parametrize(("what", "most"), [("a model", 3_600), ("model and engine", 5_600)])
def test_little_is_imported_for(house: dict[str, Any], what: str, most: int) -> None:
    """Lines of what a fresh process has then."""
    _, lines = house["closure"](house["CLOSURES"][what])
    assert lines <= most


def test_arrows_that_others_lead_along_are_left_out(house: dict[str, Any]) -> None:
    """The ways are the same ones."""
    edges = {"a": {"b", "c"}, "b": {"c"}, "c": set()}
    assert house["reduced"](edges) == {"a": {"b"}, "b": {"c"}, "c": set()}
    with pytest.raises(ValueError, match=r"^these rooms know each other in a circle: a -> b -> a$"):
        house["levels"]({"a": {"b"}, "b": {"a"}})
