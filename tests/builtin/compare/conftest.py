"""The stand-ins of core's tests, and the commands that read saved runs."""

from __future__ import annotations

from types import ModuleType

import pytest

from kernbench_core.plugins import load_plugins, own_plugins
from tests.core.conftest import samples as samples
from tests.core.conftest import toy as stand_ins  # noqa: F401 - a fixture
from tests.core.offered import MACHINES, SAVED


@pytest.fixture
def toy(stand_ins: ModuleType) -> ModuleType:  # noqa: F811
    """Give core's fake module, whose plug-ins have these commands, too."""
    own = [MACHINES, SAVED, *own_plugins("builtin.compare"), *own_plugins("builtin.verify")]
    stand_ins.plugins = load_plugins(["toy = toy_plugin", *own], installed=False)
    return stand_ins
