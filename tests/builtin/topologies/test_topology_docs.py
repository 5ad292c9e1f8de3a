"""The manual of configuration and topology: its examples compile, its lists are complete, its picture is right."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path
from typing import get_type_hints

import pytest

from kernbench_builtin.machines.cli.topology_view import show
from kernbench_builtin.machines.specification import SpanSpec
from kernbench_core.graph import EdgeKind
from kernbench_core.plugins import Plugins
from kernbench_core.topology.compilation import compile_topology
from kernbench_core.topology.configuration import load_config
from tests.core.topology.text_config import parse_config

DOCS = Path(__file__).parents[3] / "docs"
FOLDER = resources.files("kernbench_builtin") / "topologies"
PRESETS = {name: Path(str(FOLDER / f"{name}.yaml")) for name in ("tiny", "default", "full")}
CONFIGURATION, TOPOLOGY = ((DOCS / f"{name}.md").read_text(encoding="utf-8") for name in ("configuration", "topology"))


@pytest.mark.parametrize("example", re.findall(r"```yaml\n(.*?)```", CONFIGURATION, re.DOTALL))
def test_an_example_compiles(plugins: Plugins, example: str) -> None:
    compile_topology(parse_config(example, presets=PRESETS), plugins)


def test_the_page_names_every_figure_of_a_link() -> None:
    assert all(f"`{name}`" in CONFIGURATION for name in get_type_hints(SpanSpec))


def test_every_kind_of_edge_is_in_the_table() -> None:
    rows = set(re.findall(r"^\| `(\w+)` \| .*$", TOPOLOGY, re.MULTILINE))
    assert rows - {"host"} == {kind.value for kind in EdgeKind}


def test_the_picture_is_what_the_view_draws(plugins: Plugins) -> None:
    (picture,) = re.findall(r"```text\n(.*?)```", TOPOLOGY, re.DOTALL)
    graph = compile_topology(load_config("default", presets=PRESETS), plugins)
    assert picture in show(graph, "cube")
