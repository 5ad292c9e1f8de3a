"""What the tests of this plug-in share. Run them with pytest, in this folder or in kernbench's source tree."""

from __future__ import annotations

import pytest

from kernbench_core.plugins import Plugins, load_plugins


@pytest.fixture(scope="session")
def plugins() -> Plugins:
    """Load the installed plug-ins, and this one from its folder where it is not installed."""
    return load_plugins(["example = kernbench_example.plugin"])
