"""The package exports what a notebook needs, and imports it on first use only."""

from __future__ import annotations

import subprocess
import sys

import pytest

import kernbench_core as kb
from kernbench_core.plugins import entries


@pytest.mark.parametrize("name", [name for name in kb.__all__ if name != "__version__"])
def test_an_export_is_the_thing_and_no_module(name: str) -> None:
    """Every exported name is a class or a function of that name."""
    assert getattr(kb, name).__name__ == name
    assert name in dir(kb)


def test_every_class_of_entries_is_exported() -> None:
    """A plug-in's module imports them from here, whichever hook it has."""
    found = {name for name, each in vars(entries).items() if isinstance(each, type) and issubclass(each, entries.Entry)}
    assert {name for name in found if name.endswith("Entry") and name != "Entry"} <= {*kb.__all__}


def test_an_unknown_name_is_an_attribute_error() -> None:
    """The package fails as any module does."""
    with pytest.raises(AttributeError) as caught:
        _ = kb.rum
    assert str(caught.value) == "module 'kernbench_core' has no attribute 'rum'"


def test_importing_the_package_imports_nothing_else() -> None:
    """Importing the package chooses its form, and no more; asking for an error class does not import the engine."""
    program = (
        "import sys, kernbench_core as kb; first = [n for n in sys.modules if n.startswith('kernbench_core.')]; "
        "kb.KernelError; print(first, 'simpy' in sys.modules, 'numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    entered = ["kernbench_core.package", "kernbench_core.compiled", "kernbench_core.compiled.form"]
    assert done.stdout == f"{entered} False False\n"


def test_a_graph_asks_plugins_to_draw_it_and_imports_them_only_then() -> None:
    """Whatever was asked of the package first that knows of graphs; without a plug-in that draws there is none."""
    program = (
        "import sys, kernbench_core as kb; kb.compile_topology; Graph = sys.modules['kernbench_core.graph'].Graph; "
        "graph = Graph.of([kb.Node('a', 'k', 'i', {})], []); "
        "before = 'kernbench_core.runs.parts' in sys.modules; "
        "print(before, graph._repr_html_(), 'kernbench_core.runs.parts' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False None True\n"
