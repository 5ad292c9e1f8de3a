"""The names that the package exports: which they are, and that the example of each does what it shows."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

import kernbench_core as kb
from kernbench_core.plugins.points import PREFIX, Point
from tests.core.exported_examples import RUN_A_BENCH, example_of, try_example

#: Notebooks, plug-ins and models of others rest on these: to drop or rename one belongs in the changelog.
PUBLIC = [
    "AlgorithmEntry",
    "BackendEntry",
    "BenchEntry",
    "CalibratorEntry",
    "CollectiveEntry",
    "Command",
    "CommandEntry",
    "ComponentBase",
    "ComponentEntry",
    "ConfigError",
    "DataExecutor",
    "DiagnosisEntry",
    "ExporterEntry",
    "Fabric",
    "FolderEntry",
    "GraphEngine",
    "Interleave",
    "KernbenchError",
    "KernelError",
    "KitEntry",
    "LanguageEntry",
    "MachineEntry",
    "MemoryStandardEntry",
    "MsgBase",
    "NetworkEntry",
    "Node",
    "OpEntry",
    "Param",
    "PictureEntry",
    "ProgramEntry",
    "Replicate",
    "ReportSectionEntry",
    "RunPartEntry",
    "RunResult",
    "Shard",
    "Stat",
    "TopologyEntry",
    "UsageError",
    "__version__",
    "compile_topology",
    "depends",
    "load_plugins",
    "run",
]
DOCUMENTED = [name for name in PUBLIC if name != "__version__"]
ENTRIES = [name for name in DOCUMENTED if name.endswith("Entry")]


def test_the_public_names_are_these() -> None:
    """In the order of the alphabet; the import that type checkers follow gives each as well."""
    assert kb.__all__ == PUBLIC == sorted(PUBLIC)
    source = Path(kb.__file__).read_text(encoding="utf-8")
    assert [name for name in PUBLIC if f" import {name} as {name}\n" not in source] == []


@pytest.mark.parametrize("name", DOCUMENTED)
def test_each_has_an_example_of_itself(name: str) -> None:
    """One to five statements after a sentence; what is shown speaks of the thing that it belongs to."""
    example = example_of(name)
    assert example.docstring is not None
    assert example.docstring.partition("\n")[0].rstrip().endswith((".", "…")), "the first line is a sentence"
    assert 1 <= len(example.examples) <= 5
    assert name.lower() in "".join(each.source + each.want for each in example.examples).lower()


@pytest.mark.parametrize("name", [name for name in DOCUMENTED if name not in RUN_A_BENCH])
def test_the_example_does_what_it_shows(name: str) -> None:
    try_example(name)


@pytest.mark.parametrize("name", ENTRIES)
def test_the_hook_of_an_example_is_taken(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plug-in that has the hook that is shown, and nothing else, is loaded, and offers that entry."""
    hooks = {key: value for key, value in try_example(name).items() if key.startswith(PREFIX)}
    ((hook, function),) = hooks.items()
    (entry,) = function()
    module = ModuleType("acme_models_plugin")
    point = Point(type(entry), "Return what is of a feature that is not here.")
    features = [] if point.kind in kb.load_plugins([], installed=False).points else [point]
    vars(module).update(hooks, kernbench_api=1, kernbench_points=lambda: features)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    plugins = kb.load_plugins([f"acme = {module.__name__}"], installed=False)
    assert plugins.failures == ()
    assert type(entry).__name__ == name
    assert plugins.registries[hook.removeprefix(PREFIX)][entry.name] == entry
