"""Everything that the built-in plug-in registers is there, and says what it is."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

import kernbench_builtin
from kernbench_builtin import plugin
from kernbench_builtin.benches.plugin import kernbench_benches
from kernbench_core.component import ComponentBase
from kernbench_core.host.bench import open_bench
from kernbench_core.host.timing import docstring_section, ignored_by
from kernbench_core.plugins import Plugins


@pytest.mark.parametrize("entry", plugin.kernbench_components(), ids=lambda entry: entry.name)
def test_a_component_declares_and_describes_itself(plugins: Plugins, entry: object) -> None:
    """A model loads, documents its four sections, and gives every parameter a sentence and a usable default."""
    name = entry.name  # type: ignore[attr-defined]
    cls = plugins.components.load(name)
    assert issubclass(cls, ComponentBase)
    assert [s for s in ("Models", "Ignores", "Timing", "Source") if not docstring_section(cls, s)] == []
    for param in plugins.components.declared(name):
        assert param.doc.endswith(".")
        assert param.required or param.default_value is not None
    assert plugins.components[name].sentence.endswith(".")


def test_what_models_ignore_is_told_in_short_sentences_each_once(plugins: Plugins) -> None:
    """A result quotes these: no two models say the same, and none says much at once."""
    classes = [plugins.components.load(entry.name) for entry in plugin.kernbench_components()]
    sentences = [sentence for cls in classes for sentence in ignored_by(cls)]
    assert [sentence for sentence in sentences if sentences.count(sentence) > 1] == []
    assert [sentence for sentence in sentences if len(sentence) > 180 or not sentence.endswith(".")] == []


@pytest.mark.parametrize("entry", kernbench_benches(), ids=lambda entry: entry.name)
def test_a_bench_has_a_sentence_and_typed_parameters(plugins: Plugins, entry: object) -> None:
    """A bench loads, and its signature is a parameter schema."""
    bench = open_bench(entry.name, plugins.benches)  # type: ignore[attr-defined]
    assert bench.sentence.endswith(".")
    assert bench.params
    assert not any(param.required for param in bench.params)


@pytest.mark.parametrize("entry", plugin.kernbench_topologies(), ids=lambda entry: entry.name)
def test_a_preset_is_a_file_of_the_package(entry: object) -> None:
    """A preset's target is a resource that exists."""
    package, _, resource = entry.target.partition(":")  # type: ignore[attr-defined]
    assert (Path(importlib.import_module(package).__path__[0]) / resource).is_file()


def test_every_preset_is_registered() -> None:
    """A file in the presets' folder is a preset, but for those that others are based on."""
    folder = Path(kernbench_builtin.__path__[0]) / "topologies"
    files = {path.stem for path in folder.glob("*.yaml")} - {"base", "wide"}
    assert files == {entry.name for entry in plugin.kernbench_topologies()}


def test_every_bench_module_is_registered() -> None:
    """A module in the benches' folder is registered, unless its name begins with an underscore."""
    folder = Path(kernbench_builtin.__path__[0]) / "benches"
    files = {path.stem for path in folder.glob("*.py") if not path.stem.startswith("_")} - {"plugin"}
    assert files == {entry.target.split(":")[0].rpartition(".")[2] for entry in kernbench_benches()}
