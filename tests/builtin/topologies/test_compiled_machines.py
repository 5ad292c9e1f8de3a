"""A machine that is compiled again is the one that was, where nothing that it follows from has changed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import kernbench_core as kb
from kernbench_core.graph import Graph
from kernbench_core.plugins import load_plugins
from kernbench_core.runs import configure
from kernbench_core.topology import compiled_machines

MODEL = """
import kernbench_core as kb
from kernbench_builtin.components.sram import Sram

kernbench_api = 1

class Slow(Sram):
    '''An SRAM of another plug-in.'''
    PARAMS = (*Sram.PARAMS, kb.Param("extra", "time", "{extra}", "More of it."))


def kernbench_components():
    return [kb.ComponentEntry("slow_plugin.sram", "slow_plugin:Slow", "sram", "A slow one.")]
"""


@pytest.fixture(autouse=True)
def nothing_kept() -> Iterator[None]:
    compiled_machines._CACHE.clear()
    yield
    compiled_machines._CACHE.clear()


def compiled(topology: object = "tiny", *sets: str, extra: tuple[str, ...] = ()) -> Graph:
    plugins = load_plugins(extra)
    config = configure(plugins, topology, sets=sets)  # type: ignore[arg-type]
    return kb.compile_topology(config, plugins)


def test_the_same_is_compiled_once() -> None:
    """By other registries that hold the same; only the last few are kept."""
    first = compiled()
    assert compiled() is first
    assert compiled("tiny", "cube.pes=2") is not first
    for pes in (1, 2, 4):
        compiled("tiny", f"cube.pes={pes}", "title=other")
    assert len(compiled_machines._CACHE) == 4
    assert compiled() is not first


def test_values_of_other_types_are_others() -> None:
    """Though they are equal."""
    first = compiled({"base": "tiny", "cube": {"pes": 1}})
    assert compiled({"base": "tiny", "cube": {"pes": 1}}) is first
    with pytest.raises(kb.ConfigError, match="not True"):
        compiled({"base": "tiny", "cube": {"pes": True}})


def test_an_edited_file_is_noticed(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("base: tiny\ncube: {pes: 2}\n")
    first = compiled(file)
    assert compiled(file) is first
    file.write_text("base: tiny\ncube: {pes: 1}\n")
    assert len(compiled(file).nodes) < len(first.nodes)
    file.write_text("base: tiny\ncube: {pes: 2}\n")
    assert compiled(file) is first


def test_a_mapping_that_was_changed_is_noticed() -> None:
    """It is somebody else's object."""
    topology: dict[str, dict[str, object]] = {"base": "tiny", "cube": {"pes": 2}}  # type: ignore[dict-item]
    first = compiled(topology)
    topology["cube"]["pes"] = 1
    assert len(compiled(topology).nodes) < len(first.nodes)


def model(tmp_path: Path, extra: str) -> ModuleType:
    """Return the module of a plug-in, imported anew."""
    (tmp_path / "slow_plugin.py").write_text(MODEL.format(extra=extra))
    sys.modules.pop("slow_plugin", None)
    import slow_plugin  # type: ignore[import-not-found]

    found: ModuleType = slow_plugin
    return found


def test_a_model_that_changed_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its module imported anew; so is a new entry."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    plain = compiled()
    model(tmp_path, "1 ns")

    def slow() -> Graph:
        given = "components.sram.impl=slow_plugin.sram"
        return compiled("tiny", given, extra=("slow_plugin = slow_plugin",))

    first = slow()
    assert slow() is first
    assert compiled() is plain
    sram = next(node for node in first.nodes.values() if node.kind == "sram")
    assert sram.params["extra"] == 1.0
    model(tmp_path, "2 ns")
    assert slow().nodes[sram.id].params["extra"] == 2.0


def test_what_is_wrong_is_told_each_time() -> None:
    """Nothing is kept of it."""
    for _ in range(2):
        with pytest.raises(kb.ConfigError, match=r"cube\.pes must be a positive integer, not 0\."):
            compiled("tiny", "cube.pes=0")
    assert not compiled_machines._CACHE
