"""What every test may use: the plug-ins of this source tree, installed or not."""

from __future__ import annotations

import importlib.util
import os

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
