"""What every test may use: the plug-ins of this source tree, installed or not."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import hypothesis
import pytest

from kernbench_core.plugins import Plugins, load_plugins

# A loaded machine is no failure; and what CI tries is the same every time.
hypothesis.settings.register_profile("kernbench", deadline=None, derandomize=bool(os.environ.get("CI")))
hypothesis.settings.load_profile("kernbench")

SOURCE_TREE = ("builtin = kernbench_builtin.plugin", "ccl = kernbench_ccl.plugin")


@pytest.fixture(autouse=True)
def _no_narrow_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """Print as wide as anywhere without a window: whoever runs the tests may have set the width of theirs."""
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture(scope="session")
def plugins() -> Plugins:
    """Load the plug-ins of this tree, as far as their packages are there, and nobody else's."""
    present = [line for line in SOURCE_TREE if importlib.util.find_spec(line.split()[-1].partition(".")[0])]
    return load_plugins(present, installed=False)


@contextmanager
def loaded_tool(name: str) -> Iterator[ModuleType]:
    """Give tools/NAME.py as a module; what it puts on the import path is taken off again."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parents[1] / "tools" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    before = list(sys.path)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
        yield module
    finally:
        sys.path[:] = before
