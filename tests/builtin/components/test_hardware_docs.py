"""The manual of the hardware: its examples run, its figures are the simulator's, its tables are complete."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from kernbench_core.plugins import Plugins
from kernbench_core.values.region import Region

TEXT = (Path(__file__).parents[3] / "docs" / "hardware.md").read_text(encoding="utf-8")
MODELS = (
    "host", "pcie_ep", "forwarding", "io_cpu", "m_cpu",
    "hbm_ctrl", "sram", "pe_cpu", "pe_dma", "pe_ipcq", "pe_mmu",
)


@pytest.mark.parametrize("example", re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL))
def test_an_example_runs(example: str) -> None:
    exec(compile(example, "hardware.md", "exec"), {})


def test_the_table_of_parameters_is_complete_and_has_the_figures_of_the_presets(simulate, plugins: Plugins) -> None:
    rows = re.findall(r"^\| `builtin\.(\w+)` \| `(\w+)` \| ([^|]+) \|", TEXT, re.MULTILINE)
    params = {param.name: param for model in MODELS for param in plugins.components.declared(f"builtin.{model}")}
    assert [(model, name) for model, name, _ in rows] == [
        (model, param.name) for model in MODELS for param in plugins.components.declared(f"builtin.{model}")
    ]
    graph = simulate("default", cpu=plugins.components.load("builtin.pe_cpu")).graph
    kinds = {"forwarding": "router"}
    for model, name, shown in rows:
        node = next(node for node in graph.nodes.values() if node.kind == kinds.get(model, model))
        value = shown if " " in shown or isinstance(node.params[name], str) else json.loads(shown)
        assert node.params[name] == params[name].convert(value), f"{model}.{name}"


def lone(simulate: Any, op: str, unit: str, nbytes: int = 4096, **where: int) -> str:
    """Measure one transfer of PE 0 at its DMA, without a page walk, in ns with two decimals."""
    sim = simulate("default", "components.pe_mmu.params.walk_time=0 ns")
    sim.move(op, Region(sim.address(unit, **where), nbytes))
    sim.run()
    (record,) = sim.engine.op_log
    return f"{record.t_end - record.t_start:.2f}"


@pytest.mark.parametrize("op", ["read", "write"])
def test_the_table_of_transfers_is_what_is_simulated(simulate, op) -> None:
    rows = re.findall(r"^\| [^|`]+ \| ([\d.]+) \| ([\d.]+) \|$", TEXT, re.MULTILINE)
    assert [row[op == "write"] for row in rows] == [
        lone(simulate, op, "hbm0"),
        lone(simulate, op, "hbm1"),
        lone(simulate, op, "hbm7"),
        lone(simulate, op, "sram"),
        lone(simulate, op, "hbm0", cube=2),
        lone(simulate, op, "hbm0", cube=3),
        lone(simulate, op, "hbm7", sip=1, cube=3),
    ]


def test_the_table_of_nodes_names_the_models_of_the_presets_and_what_they_act_on(simulate, plugins: Plugins) -> None:
    rows = re.findall(r"^\| ([\w, ]+) \| `(builtin\.\w+)` \| [^|]+ \| ([^|]+) \|$", TEXT, re.MULTILINE)
    shown = {kind: (impl, acts) for kinds, impl, acts in rows for kind in kinds.split(", ")}
    graph = simulate("default").graph
    for node in graph.nodes.values():
        if node.kind in shown:
            impl, acts = shown[node.kind]
            assert node.impl == impl
            assert plugins.components.load(impl).ON_HEAD is (acts == "head")
    assert {node.kind for node in graph.nodes.values() if node.pe is None} <= set(shown)
