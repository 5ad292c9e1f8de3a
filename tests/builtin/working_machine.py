"""The machine of toys of core's tests, with the parts of runs of the built-in package."""

from __future__ import annotations

from functools import cache
from typing import Any

from kernbench_core.plugins import Plugins, load_plugins, own_plugins
from tests.core.working_machine import MACHINE, UNIT_NS, YAML

__all__ = ["MACHINE", "UNIT_NS", "YAML", "on_machine", "plugins"]


@cache
def plugins() -> Plugins:
    """Load the machine's models, and the built-in package."""
    return load_plugins(["test = tests.core.working_machine", *own_plugins("builtin")], installed=False)


def on_machine(**options: Any) -> dict[str, Any]:
    """Return the options of a run on the machine, with more."""
    return {"topology": MACHINE, "plugins": plugins(), **options}
