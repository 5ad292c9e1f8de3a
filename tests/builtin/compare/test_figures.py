"""Figures of a run survive JSON whole, and what is no such JSON is refused in a sentence."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given

from kernbench_builtin.compare import RunFigures
from kernbench_builtin.compare.figures import COLUMNS
from kernbench_core.errors import UsageError
from tests.builtin.compare.runs_by_hand import links, run, runs


@given(runs())
def test_figures_come_back_from_json(figures: RunFigures) -> None:
    """Equal in every field, and the same text again."""
    text = json.dumps(figures.to_json(), allow_nan=False)
    again = RunFigures.from_json(json.loads(text))
    assert again == figures
    assert json.dumps(again.to_json()) == text


def changed(*path: Any, to: Any) -> dict[str, Any]:
    """Return figures as JSON with another value at a path; None removes it."""
    whole = json.loads(json.dumps(run(tables={"link": links(a_b=(1.0, 2.0, 3, 4, 5.0, 6.0))}).to_json()))
    found = whole
    for key in path[:-1]:
        found = found[key]
    found[path[-1]] = to
    return whole


SORTS = ", ".join(COLUMNS)


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (None, "g.json must have schema 'kernbench.figures/1', not None; make it again."),
        (changed("schema", to="kernbench.figures/9"),
         "g.json must have schema 'kernbench.figures/1', not 'kernbench.figures/9'; a later kernbench wrote it; use a "
         "newer kernbench."),
        (changed("totals", to={}), "g.json must hold totals.time_ns, which is missing; make it again."),
        (changed("totals", "ops", to=math.nan), "g.json must hold totals.ops as a number, not nan; make it again."),
        (changed("tables", "link", "rows", "a->b", to=[1.0]),
         "g.json must hold 6 figures of link 'a->b', not 1; make it again."),
        (changed("tables", "link", "rows", "a->b", 2, to="3"),
         "g.json must hold tables.link.rows.a->b[2] as a number, not '3'; make it again."),
        (changed("tables", "link", "columns", to=["bytes"]),
         f"g.json must hold tables of {SORTS} with their own columns, not 'link' with ['bytes']; make it again."),
        (changed("tables", "wire", to={"columns": [], "rows": {}, "about": {}}),
         f"g.json must hold tables of {SORTS} with their own columns, not 'wire' with []; make it again."),
        (changed("causes", "weather", to={}),
         "g.json must hold causes of the sorts bench, params, launches, options, configuration, sources, models, "
         "plugins, versions, not 'weather'; make it again."),
        (changed("interrupted", to=0), "g.json must hold interrupted as true or false, not 0; make it again."),
    ],
)  # fmt: skip
def test_what_is_no_figures_is_refused(found: Any, told: str) -> None:
    """The place, what must be there, and what is."""
    with pytest.raises(UsageError) as caught:
        RunFigures.from_json(found, "g.json")
    assert str(caught.value) == told
