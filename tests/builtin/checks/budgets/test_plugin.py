"""What everybody's pytest loads is next to nothing, and in nobody's way."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from tests.builtin.checks.budgets.inner_pytest import PLUGIN, REPO, Inner

pytest_plugins = ["pytester"]
TESTS = """
import sys

def test_a():
    print("LOADED", sorted(name for name in sys.modules if name.startswith("kernbench_core")))
"""


def test_pytest_is_told_of_the_plug_in() -> None:
    project = tomllib.loads((REPO / "pyproject.toml").read_text())
    assert project["project"]["entry-points"]["pytest11"] == {"kernbench": PLUGIN}


def test_its_import_is_next_to_nothing() -> None:
    """No library, and of the packages only what they are entered by."""
    code = f"import pytest, sys; before = set(sys.modules); import {PLUGIN}; print(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=REPO)
    core = ("kernbench_core", "kernbench_core.compiled", "kernbench_core.compiled.form", "kernbench_core.package")
    rooms = ("kernbench_builtin", "kernbench_builtin.checks", "kernbench_builtin.checks.budgets")
    assert done.stdout.split() == [*rooms, PLUGIN, *core]


def test_nothing_else_is_imported_for_who_does_not_use_it(inner: Inner) -> None:
    """With every warning an error; nor where it is blocked, which takes options and fixture away."""
    inner.write(TESTS)
    found = inner.run_apart("-s", "-W", "error", "--strict-markers", "--strict-config")
    found.assert_outcomes(passed=1)
    (loaded,) = re.findall("LOADED (.*)", found.stdout.str())
    assert "numpy" not in loaded and loaded.count("kernbench_core") == 4
    inner.write("def test_a(kernbench):\n    pass\n")
    blocked = inner.run_apart("-p", "no:kernbench", "-p", f"no:{PLUGIN}")
    blocked.stdout.fnmatch_lines(["E       fixture 'kernbench' not found"])


def test_it_stands_beside_the_checks_of_plug_ins(inner: Inner) -> None:
    """Which a suite loads by itself, and whose fixture is in the same test."""
    inner.write("""
        pytest_plugins = ["kernbench_builtin.checks.pytest_plugin"]

        def test_both(kernbench, component_rig):
            assert repr(kernbench) == "<kernbench of test_k.py::test_both>"
    """)
    inner.run("-W", "error").assert_outcomes(passed=1)


def test_a_process_that_has_imported_kernbench_may_call_pytest(tmp_path: Path) -> None:
    """Although pytest warns of packages with plug-ins that are there already, unless these say not to."""
    installed = tmp_path / "site" / "kernbench-9.9.dist-info"
    installed.mkdir(parents=True)
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: kernbench\nVersion: 9.9\n")
    (installed / "entry_points.txt").write_text(f"[pytest11]\nkernbench = {PLUGIN}\n")
    names = [name for name in ("kernbench_core", "kernbench_builtin", "kernbench_ccl") if (REPO / name).is_dir()]
    (installed / "RECORD").write_text("".join(f"{name}/__init__.py,,\n" for name in names))
    for name in names:
        (tmp_path / "site" / name).symlink_to(REPO / name)
    (tmp_path / "test_a.py").write_text("def test_a():\n    pass\n")
    args = ["-q", "-W", "error", "-p", "no:cacheprovider"]
    code = f"import sys, pytest, {', '.join(names)}; sys.exit(pytest.main({args}))"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert "\n1 passed in " in done.stdout
