"""Core's tests, and the processes that they start, have core alone; what others imported is there again for others."""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.core.isolation import alone

CORE = Path(__file__).parent
#: An import of another package, or of the tests of one: the fixtures of all tests are core's, too.
OTHERS = re.compile(
    r"^\s*(?:from|import) (?:kernbench_(?!core\b|builtin\.(?:machines|saved)\b)\w+|tests\b(?!\.(?:core|conftest)\b)).*",
    re.MULTILINE,
)
#: Of the built-in package there are the folders of machines and of saved runs, and nothing else.
UNSEEN = ("kernbench_builtin.components", "kernbench_ccl")
FOUND_WHEN_COLLECTED = [name for name in UNSEEN if importlib.util.find_spec(name) is not None]
IN_A_CHILD = """
import importlib, importlib.util, sys
for name in sys.argv[1:]:
    print(importlib.util.find_spec(name))
    try:
        importlib.import_module(f"{name}.plugin")
    except ModuleNotFoundError as error:
        print(error.name)
"""


def test_the_other_packages_are_not_found_when_tests_are_collected() -> None:
    assert FOUND_WHEN_COLLECTED == []


@pytest.mark.parametrize("package", UNSEEN)
def test_the_other_packages_are_not_found_when_tests_run(package: str) -> None:
    """Neither they nor what is in them, although they lie beside core."""
    assert importlib.util.find_spec(package) is None
    for module in (package, f"{package}.plugin"):
        with pytest.raises(ModuleNotFoundError) as caught:
            importlib.import_module(module)
        assert str(caught.value) == f"No module named {package!r}"


@pytest.mark.parametrize("folder", [".", str(CORE.parents[1])], ids=["here", "beside"])
def test_nor_by_processes_that_tests_start(folder: str) -> None:
    """Wherever they start, also beside the packages."""
    done = subprocess.run(
        [sys.executable, "-c", IN_A_CHILD, *UNSEEN], cwd=folder, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [word for name in UNSEEN for word in ("None", name)]


def test_what_was_imported_before_is_there_again_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same modules, so that their classes are the same; and the environment."""
    before = {name: ModuleType(name) for name in (*UNSEEN, f"{UNSEEN[1]}.plan")}
    for name, module in before.items():
        monkeypatch.setitem(sys.modules, name, module)
    for path in ("somewhere", None):
        with monkeypatch.context() as patch:
            patch.setenv("PYTHONPATH", path) if path is not None else patch.delenv("PYTHONPATH")
            with pytest.raises(ZeroDivisionError), alone():
                assert not before.keys() & sys.modules.keys()
                assert os.environ["PYTHONPATH"].endswith(path or str(CORE.parents[1]))
                _ = 1 / 0
            assert os.environ.get("PYTHONPATH") == path
        assert {name: sys.modules[name] for name in before} == before


def test_helpers_import_nothing_of_the_others() -> None:
    """A helper that the tests of another package imported before would not be imported again, and so not be refused."""
    found = {str(file.relative_to(CORE)): OTHERS.findall(file.read_text()) for file in CORE.rglob("*.py")}
    assert {name: lines for name, lines in found.items() if lines} == {}
