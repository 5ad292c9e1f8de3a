"""The rooms of core: names at their doors, which other packages and the pages come through."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

REPO = Path(__file__).parents[2]
ROOMS = (
    "cache", "compiled", "compute", "engine", "host", "kernel", "memory", "oplog", "plugins", "process", "runs",
    "topology", "values",
)  # fmt: skip
#: Files that are rooms of their own: vocabularies, the records of ops, and what makes records.
OPEN = {
    "kernbench_core.compute.ops",
    "kernbench_core.compute.ops.shape_rules",
    "kernbench_core.compute.ops.type_rules",
    "kernbench_core.events.queue",  # its two forms are two files
    "kernbench_core.topology.naming",
    "kernbench_core.values.dtypes",
}
FLAT = {f"kernbench_core.{file.stem}" for file in (REPO / "kernbench_core").glob("*.py")}


def files_of(room: str) -> dict[str, str]:
    """Return the names that a door tells a type checker, each with its file."""
    tree = ast.parse((REPO / "kernbench_core" / room / "__init__.py").read_text())
    return {
        alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module is not None and f".{room}." in node.module
        for alias in node.names
    }


@pytest.mark.parametrize("room", ROOMS)
def test_a_door_gives_what_it_tells_a_type_checker(room: str) -> None:
    """Each is the thing of that name in its file, with a docstring where it can have one; unknown names are told."""
    module = importlib.import_module(f"kernbench_core.{room}")
    names = files_of(room)
    assert 1 <= len(names) <= 40  # of plug-ins a class for each sort of entries
    for name, file in names.items():
        found = getattr(module, name)
        assert found is getattr(importlib.import_module(file), name)
        if isinstance(found, type) or callable(found):
            assert found.__doc__
    assert re.search(r"\n\nIn: .* Out: .*\. .*(call|it\.)", module.__doc__ or "", re.DOTALL)
    with pytest.raises(AttributeError) as caught:
        _ = module.nothing
    assert str(caught.value) == f"module 'kernbench_core.{room}' has no attribute 'nothing'"


def imported(source: str) -> list[str]:
    """Return the modules of core that a source imports from."""
    return re.findall(r"^\s*from (kernbench_core\.[\w.]+) import", source, re.MULTILINE)


#: Features of ours, which enter rooms by files; whoever ships models has the doors.
FEATURES = (
    "sweeps", "pages", "checks", "compare", "composites", "sizes", "triton", "verify", "cache", "explain", "machines",
    "torch", "door", "native", "saved",
)  # fmt: skip


def sources() -> Iterator[tuple[str, str]]:
    """Yield the sources of the other packages and of the example, and the blocks of the pages, each with its name."""
    for package in ("kernbench_builtin", "kernbench_ccl", "plugins_example"):
        for file in (REPO / package).rglob("*.py"):
            if file.relative_to(REPO / package).parts[0] not in FEATURES:
                yield str(file.relative_to(REPO)), file.read_text()
    for page in (REPO / "docs").glob("*.md"):
        for block in re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE):
            yield page.name, block


def cimported(name: str) -> set[str]:
    """Return the modules whose C types a compiled source has: it has to import their names from there in Python too."""
    types = (REPO / name).with_suffix(".pxd")
    return set(re.findall(r"^from (\S+) cimport", types.read_text(), re.MULTILINE)) if types.is_file() else set()


def test_others_come_through_the_doors() -> None:
    """From flat files and from rooms, never from files inside them, but for those whose C types are used."""
    rooms = {f"kernbench_core.{room}" for room in (*ROOMS, "testing")} | OPEN | FLAT
    # what a command needs beside click, and a name of Triton's that the page of the language is about
    rooms |= {"kernbench_core.cli.shell", "kernbench_core.cli.options", "kernbench_core.cli.option_types"}
    rooms |= {"kernbench_core.kernel.tl.language", "kernbench_core.cli"}  # whose `main` the door of users calls
    wrong = {
        (name, module)
        for name, source in sources()
        for module in imported(source)
        if module not in rooms | cimported(name)
    }
    assert not wrong


def test_entering_a_room_costs_nothing() -> None:
    """Nothing of it is imported before it is asked for, but for what chooses the form of the core."""
    code = "import sys; import " + ", ".join(f"kernbench_core.{room}" for room in ROOMS)
    code += "; print(sorted(m for m in sys.modules if m.startswith('kernbench_core.') and m.count('.') > 1))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "['kernbench_core.compiled.form']\n"
