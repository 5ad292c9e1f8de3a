"""`import kernbench`: what users call, by name, from all packages, as type checkers see it too."""

from __future__ import annotations

import ast
import doctest
import inspect
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import attrs
import pytest

import kernbench
from kernbench_builtin.machines.figures.tables import RunTables
from kernbench_core.plugins import Plugins
from kernbench_core.runs.options import RunCall
from kernbench_core.runs.parts import parts_of


def test_the_door_gives_what_it_tells_a_type_checker() -> None:
    """Each name is the thing itself, and `dir` has nothing else."""
    tree = ast.parse(Path(kernbench.__file__).read_text())
    typed = {
        name.asname: ("." * node.level + str(node.module), name.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for name in node.names
        if name.asname is not None
    }
    assert sorted(typed) == dir(kernbench) == kernbench.__all__
    for name, (module, of) in typed.items():
        assert getattr(kernbench, name) is getattr(import_module(module, "kernbench"), of)


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("launch", "kernbench.kernel_launch"), ("rerun", "kernbench_builtin.compare.reruns"),
        ("sizes_from", "kernbench_core.plugins"), ("sweep", "kernbench_builtin.sweeps.call"),
    ],
)  # fmt: skip
def test_the_example_does_what_it_shows(
    name: str, place: str, plugins: Plugins, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    for module in (place, "kernbench_core.runs.bench_run"):
        monkeypatch.setattr(f"{module}.load_plugins", lambda: plugins)
    globs = {"kb": kernbench}
    (example,) = doctest.DocTestFinder(recurse=False).find(getattr(kernbench, name), f"kb.{name}", False, globs=globs)
    assert doctest.DocTestRunner(verbose=False).run(example) == (0, len(example.examples))


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"^module 'kernbench' has no attribute 'nonsense'$"):
        _ = kernbench.nonsense  # type: ignore[attr-defined]


def test_importing_it_imports_little() -> None:
    """Not one of the packages, before a name is asked for."""
    told = "import kernbench, sys; print(*sorted(name for name in sys.modules if name.startswith('kernbench_')))"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_it_is_a_command() -> None:
    done = subprocess.run([sys.executable, "-m", "kernbench", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("kernbench 0.")


def test_the_signature_of_run_has_the_options_of_our_parts(plugins: Plugins) -> None:
    """Those that type checkers are told of, which editors complete as well."""
    tree = ast.parse(Path(kernbench.__file__).with_name("runs.py").read_text())
    [call] = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name == "_Call"]
    bases = {ast.unparse(base) for base in call.bases}
    records = {part.OPTIONS for part in parts_of(plugins) if attrs.fields(part.OPTIONS)}
    assert bases == {"RunCall", *(record.__name__ for record in records)}
    taken = set(inspect.signature(kernbench.run).parameters)
    assert taken >= {field.name for record in (RunCall, *records) for field in attrs.fields(record)}


def test_type_checkers_are_told_what_figures_give() -> None:
    """A name that is not declared is of any type, so a wrong use of it shows nowhere."""
    tree = ast.parse(Path(kernbench.__file__).with_name("runs.py").read_text())
    [told] = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name == "ResultWithFigures"]
    assert [ast.unparse(base) for base in told.bases] == ["RunResult", "RunTables"]
    assert {*RunTables.__annotations__, *vars(RunTables)} >= {*RunTables.GIVES}


def test_a_notebook_shows_a_picture_of_a_run() -> None:
    """In a process that has asked the door for nothing else, as a first cell has."""
    told = "import kernbench as kb; print(kb.run('vector-add', 'tiny', {'n': 64})._repr_html_()[:5])"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    assert done.stdout == "<div \n"
