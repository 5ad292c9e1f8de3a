"""The manual of the PE pipeline: its tables have every parameter, and the costs and figures of the models."""

from __future__ import annotations

import re
from pathlib import Path

from kernbench_builtin.components.math_costs import COSTS
from kernbench_core.plugins import Plugins

TEXT = (Path(__file__).parents[3] / "docs" / "pe_pipeline.md").read_text(encoding="utf-8")
MODELS = ("pe_scheduler", "pe_fetch_store", "pe_gemm", "pe_math")


def test_the_table_of_parameters_is_complete_and_has_the_defaults(plugins: Plugins) -> None:
    rows = re.findall(r"^\| `builtin\.(\w+)` \| `(\w+)` \| ([^|]+) \|", TEXT, re.MULTILINE)
    declared = [(model, param) for model in MODELS for param in plugins.components.declared(f"builtin.{model}")]
    assert [(model, name) for model, name, _ in rows] == [(model, param.name) for model, param in declared]
    for (_, param), (_, _, shown) in zip(declared, rows, strict=True):
        if param.name == "costs":
            continue
        if param.dimension == "table":
            shown = {name: float(number) for name, number in (each.split() for each in shown.split(", "))}
        elif param.dimension == "bool":
            shown = shown == "true"
        elif shown.isdecimal():
            shown = int(shown)
        assert param.convert(shown) == param.default_value, param.name


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
