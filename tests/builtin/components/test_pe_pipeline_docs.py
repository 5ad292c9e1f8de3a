"""The manual of the PE pipeline: its table of costs is the models'."""

from __future__ import annotations

import re
from pathlib import Path

from kernbench_builtin.components.math_costs import COSTS

TEXT = (Path(__file__).parents[3] / "docs" / "pe_pipeline.md").read_text(encoding="utf-8")


def test_the_table_of_costs_agrees_with_the_model() -> None:
    rows = re.findall(r"^\| (\d+)(?: to (\d+))? \| ([^|]+) \|$", TEXT, re.MULTILINE)
    assert len(rows) == 7
    named = set()
    for least, most, ops in rows:
        for op in re.split(r"[,;] ", ops):
            if op in COSTS:
                assert int(least) <= COSTS[op] <= int(most or least), op
                named.add(op)
    assert {op for op, cost in COSTS.items() if cost > 1} <= named
