"""The manual of configuration and topology: its examples compile, its lists are complete, its picture is right."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any, get_type_hints

import attrs
import pytest

from kernbench_builtin.machines.cli.topology_view import show
from kernbench_builtin.machines.specification import LinkSpec, Spec
from kernbench_core.graph import EdgeKind
from kernbench_core.plugins import Plugins
from kernbench_core.topology.compilation import compile_topology
from kernbench_core.topology.configuration import load_config, parse_config

DOCS = Path(__file__).parents[3] / "docs"
FOLDER = resources.files("kernbench_builtin") / "topologies"
PRESETS = {name: Path(str(FOLDER / f"{name}.yaml")) for name in ("tiny", "default", "full")}
CONFIGURATION, TOPOLOGY = ((DOCS / f"{name}.md").read_text(encoding="utf-8") for name in ("configuration", "topology"))


@pytest.mark.parametrize("example", re.findall(r"```yaml\n(.*?)```", CONFIGURATION, re.DOTALL))
def test_an_example_compiles(plugins: Plugins, example: str) -> None:
    compile_topology(parse_config(example, presets=PRESETS), plugins)


def _keys(section: type[Any], path: str = "") -> Iterator[str]:
    """Yield the dotted keys of a section; a link counts as one."""
    for name, hint in get_type_hints(section).items():
        if isinstance(hint, type) and attrs.has(hint) and not issubclass(hint, LinkSpec):
            yield from _keys(hint, f"{path}{name}.")
        else:
            yield f"{path}{name}"


def test_every_key_is_in_the_table() -> None:
    rows = set(re.findall(r"`([a-z_.]+)`", "\n".join(line for line in CONFIGURATION.splitlines() if line[0:1] == "|")))
    assert set(_keys(Spec)) - rows == set()
    assert all(f"`{name}`" in CONFIGURATION for name in get_type_hints(LinkSpec))


def test_every_kind_of_edge_is_in_the_table() -> None:
    rows = set(re.findall(r"^\| `(\w+)` \| .*$", TOPOLOGY, re.MULTILINE))
    assert rows - {"host"} == {kind.value for kind in EdgeKind}


def test_the_picture_is_what_the_view_draws(plugins: Plugins) -> None:
    (picture,) = re.findall(r"```text\n(.*?)```", TOPOLOGY, re.DOTALL)
    graph = compile_topology(load_config("default", presets=PRESETS), plugins)
    assert picture in show(graph, "cube")
