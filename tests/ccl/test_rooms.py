"""The rooms of the collective package: few names at each door, which is as light as what is asked for."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import kernbench_ccl

REPO = Path(__file__).parents[2]
ROOMS = ("catalogue", "cli", "collectives", "measure", "plan", "prove", "testing")


def files_of(room: str) -> dict[str, str]:
    """Return the names that a door tells a type checker, each with its file."""
    tree = ast.parse((Path(kernbench_ccl.__path__[0]) / room / "__init__.py").read_text())
    return {
        alias.name: node.module.rpartition(".")[2]
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module is not None and f".{room}." in node.module
        for alias in node.names
    }


@pytest.mark.parametrize("room", ROOMS)
def test_a_door_has_at_most_eight_names_and_gives_what_it_tells_a_type_checker(room: str) -> None:
    """Each is the thing of that name in its file; and the docstring says what goes in, what comes out and who calls."""
    module = importlib.import_module(f"kernbench_ccl.{room}")
    names = files_of(room)
    assert 1 <= len(names) <= 8
    for name, file in names.items():
        assert getattr(module, name) is getattr(importlib.import_module(f"{module.__name__}.{file}"), name)
    assert re.search(r"\n\nIn: .* Out: .* calls? it", module.__doc__ or "", re.DOTALL)
    with pytest.raises(AttributeError) as caught:
        _ = module.nothing
    assert str(caught.value) == f"module 'kernbench_ccl.{room}' has no attribute 'nothing'"


def test_the_help_of_the_command_loads_neither_numpy_nor_the_contract() -> None:
    """Nor an algorithm; the records of the collectives are enough for it."""
    code = (
        "import sys; from kernbench_core.cli import main; code = main(['ccl', '--help']);"
        "print(code, sorted({'numpy', 'kernbench_ccl.contract', 'kernbench_ccl.collectives.scatter'} &"
        " set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0 ['kernbench_ccl.collectives.scatter']"


def test_the_options_offer_the_reductions_that_there_are() -> None:
    """Written down again, so that help loads no numpy."""
    from kernbench_ccl.cli.group import _REDOPS
    from kernbench_ccl.reductions import REDOPS

    assert _REDOPS == REDOPS


def test_the_page_has_the_rooms_in_their_order() -> None:
    """Those of the contract that are folders."""
    contracts = tomllib.loads((REPO / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (found,) = [each for each in contracts if each.get("containers") == ["kernbench_ccl"]]
    assert found["exhaustive"] and not found.get("ignore_imports")
    listed = [name for layer in found["layers"] for name in layer.split(" : ")]
    page = (REPO / "docs/architecture.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `ccl/(\w+)` \|", page, re.MULTILINE) == [
        name for name in listed if (REPO / "kernbench_ccl" / name).is_dir()
    ]
