"""The example plug-in has one of everything, over public names alone, and `kernbench plugins show` tells all of it."""

from __future__ import annotations

import ast
import importlib
import json
import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernbench_core.cli import main
from kernbench_core.plugins import Plugins, load_plugins
from tests.conftest import SOURCE_TREE

REPO = Path(__file__).parents[1]
EXAMPLE = REPO / "plugins_example"
#: Beside the doors of core's rooms and its flat files: checks, and what the collective package has for who extends it.
OTHERS = {
    "kernbench_builtin.checks", "kernbench_builtin.machines", "kernbench_builtin.memory_standards",
    "kernbench_builtin.pages.plugin",
    "kernbench_builtin.pages.report",
    "kernbench_ccl.collectives", "kernbench_ccl.contract", "kernbench_ccl.testing",
}  # fmt: skip


@pytest.fixture(scope="module")
def plugins() -> Plugins:
    return load_plugins([*SOURCE_TREE, "example = kernbench_example.plugin"], installed=False)


def imported() -> Iterator[tuple[str, str, str]]:
    """Yield what the sources of the example import: file, module, name ("" for a whole module)."""
    for file in sorted(EXAMPLE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                assert node.level == 0 and node.module is not None
                yield from ((file.name, node.module, alias.name) for alias in node.names)
            elif isinstance(node, ast.Import):
                yield from ((file.name, alias.name, "") for alias in node.names)


def test_the_plug_in_module_loads_nothing_that_simulates_or_computes() -> None:
    """Every command imports it, `kernbench --help` as well."""
    heavy = {"kernbench_core.component", "numpy", "simpy"}
    program = f"import kernbench_example.plugin, sys; print({heavy!r} & {{*sys.modules}})"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(REPO), str(EXAMPLE)])}
    told = subprocess.run([sys.executable, "-c", program], env=environment, check=True, capture_output=True, text=True)
    assert told.stdout == "set()\n"


def test_it_has_one_of_everything(plugins: Plugins) -> None:
    """Each hook there is gives at least one entry, whose target is there; the README names each file."""
    for sort, registry in plugins.registries.items():
        names = [name for name in registry if registry.provider(name).plugin == "example"]
        assert names or sort == "folders", sort  # what `report` shows besides runs, as our sweeps
        for name in names:
            assert sort == "topologies" or registry.load(name) is not None
    readme = (EXAMPLE / "README.md").read_text(encoding="utf-8")
    files = [path.stem for path in (EXAMPLE / "kernbench_example").iterdir() if path.suffix in (".py", ".yaml")]
    assert [name for name in files if name != "__init__" and f"`kernbench_example/{name}." not in readme] == []


def test_it_imports_public_names_only() -> None:
    """Of flat files and of rooms, through their doors; nothing of the built-in models, nothing that begins with `_`."""
    found = [(file, module, name) for file, module, name in imported() if module.startswith("kernbench_")]
    assert len(found) > 60
    for file, module, name in found:
        where = f"{file} imports {name} from {module}"
        if module.startswith("kernbench_example"):
            continue
        assert not name.startswith("_") and "._" not in module, where
        source = importlib.import_module(module)
        assert name == "" or hasattr(source, name), where
        flat = Path(source.__file__ or "").parent == REPO / "kernbench_core"
        door = Path(source.__file__ or "").name == "__init__.py"
        rooms = ("kernbench_core.compute.ops.shape_rules", "kernbench_core.compute.ops.type_rules")
        of_core = module.startswith("kernbench_core") and (flat or door)
        assert of_core or module in (*rooms, *OTHERS, "kernbench_core.cli.shell", "kernbench_core.cli.options"), where


def test_show_displays_every_entry(plugins: Plugins, capsys: pytest.CaptureFixture[str]) -> None:
    """By name, sentence and target; of models all parameters and statistics too."""
    assert main(["plugins", "show", "example", "--json"], plugins) == 0
    described = json.loads(capsys.readouterr().out)["plugin"]
    assert set(described["entries"]) == {*plugins.points} - {"folders"}
    for sort, entries in described["entries"].items():
        registry = plugins.registries[sort]
        mine = [name for name in registry if registry.provider(name).plugin == "example"]
        assert [entry["name"] for entry in entries] == mine
        for entry in entries:
            assert entry["target"] == registry[entry["name"]].target
            assert entry["sentence"], (sort, entry["name"])
    assert main(["plugins", "show", "example"], plugins) == 0
    told = " ".join(capsys.readouterr().out.split())
    for entries in described["entries"].values():
        for entry in entries:
            assert entry["name"] in told and entry["target"] in told
    for model in described["entries"]["components"]:
        for each in (*model["params"], *model["statistics"]):
            assert each["name"] in told


def test_its_own_tests_pass_from_outside(tmp_path: Path) -> None:
    """Installed in a clean environment, in a folder of its own; libraries come from here, and no registry is asked."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "env"], check=True)
    python = tmp_path / "env" / "bin" / "python"
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    purelib = subprocess.run([python, "-c", where], check=True, capture_output=True, text=True).stdout.strip()
    (tmp_path / "door").mkdir()
    (tmp_path / "door" / "kernbench").symlink_to(REPO / "kernbench_builtin" / "door")  # its name, as installed
    (Path(purelib) / "libraries.pth").write_text(f"{sysconfig.get_path('purelib')}\n{REPO}\n{tmp_path / 'door'}\n")
    there = tmp_path / "there"
    subprocess.run(["cp", "-R", EXAMPLE, there], check=True)
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-deps", "--no-build-isolation"]
    for command in ([*install, "--quiet", "."], [python, "-m", "pytest", "-q", "-p", "no:cacheprovider"]):
        done = subprocess.run(command, cwd=there, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    assert re.match(r"\d+ passed", done.stdout.splitlines()[-1]), done.stdout
