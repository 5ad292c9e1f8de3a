"""The manual of the hardware: its examples run, its figures are the simulator's, its table of nodes is complete."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from kernbench_core.plugins import Plugins
from kernbench_core.values.region import Region

TEXT = (Path(__file__).parents[3] / "docs" / "hardware.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("example", re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL))
def test_an_example_runs(example: str) -> None:
    exec(compile(example, "hardware.md", "exec"), {})


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
