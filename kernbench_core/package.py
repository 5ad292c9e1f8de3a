"""What the package is: its version, who may join it, and how its rooms are entered."""

from __future__ import annotations

import functools
import importlib
import linecache
import os
import re
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

__version__ = "0.1.0"
#: When this process began to load kernbench, in ns since 1970.
IMPORTED_NS = time.time_ns()

#: The group of entry points by which packages register.
GROUP = "kernbench"
#: The version of the hooks. It rises when a hook, or what one returns, changes so that plug-ins must change too; a
#: plug-in says as `kernbench_api` which it is written for.
API = 1

#: Our own plug-ins, as the entry points of the distribution have them: see `pyproject.toml`.
OWN_PLUGINS = (
    "builtin = kernbench_builtin.plugin",
    "builtin.benches = kernbench_builtin.benches.plugin",
    "builtin.cache = kernbench_builtin.cache.plugin",
    "builtin.calibrate = kernbench_builtin.calibrate.plugin",
    "builtin.checks = kernbench_builtin.checks.plugin",
    "builtin.compare = kernbench_builtin.compare.plugin",
    "builtin.explain = kernbench_builtin.explain.plugin",
    "builtin.machines = kernbench_builtin.machines.plugin",
    "builtin.native = kernbench_builtin.native.plugin",
    "builtin.pages = kernbench_builtin.pages.plugin",
    "builtin.probe = kernbench_builtin.probe.plugin",
    "builtin.saved = kernbench_builtin.saved.plugin",
    "builtin.sweeps = kernbench_builtin.sweeps.plugin",
    "builtin.torch = kernbench_builtin.torch.plugin",
    "builtin.triton = kernbench_builtin.triton.plugin",
    "builtin.verify = kernbench_builtin.verify.plugin",
    "ccl = kernbench_ccl.plugin",
)
#: The packages of kernbench.
PACKAGES = ("kernbench_core", *(text.partition("= ")[2].partition(".")[0] for text in OWN_PLUGINS))
#: What their distribution is called, installed, or as a source tree.
OUR_DISTRIBUTIONS = frozenset({"kernbench", *(f"{package} (source tree)" for package in PACKAGES)})

#: A name that a package imports for type checkers.
_IMPORTED = re.compile(r"^    from (\S+) import (\w+) as \2$", re.MULTILINE)

_ROOMS = "cache checks compare composites door explain machines native pages saved sizes sweeps torch triton verify"
#: How the modules begin that stand between a user's lines and what these ask for: core's, and those of features. What
#: else there is of ours, benches, models, algorithms, is treated as a user's own.
OURS = ("kernbench_core.", "kernbench.", *(f"kernbench_builtin.{feature}." for feature in _ROOMS.split()))


def is_ours(module: str) -> bool:
    """Whether a module is one of those that `OURS` tells of, so that none of its lines is a user's."""
    return f"{module}.".startswith(OURS)


def is_pythons(file: str) -> bool:
    """Whether a source file is of Python's own library, and not of what is installed beside it."""
    return file.startswith(("<frozen ", f"{os.path.dirname(os.__file__)}/")) and "-packages/" not in file  # noqa: PTH120


def door(room: str) -> Callable[[str], Any]:
    """Return the `__getattr__` of the package `room`: the names that it imports for type checkers, and no others.

    A file is imported when something of it is first asked for, so that entering a room costs nothing.
    """

    def get(name: str) -> Any:
        module = exports(room).get(name)
        if module is None:
            raise AttributeError(f"module {room!r} has no attribute {name!r}", name=name, obj=sys.modules.get(room))
        return getattr(importlib.import_module(module), name)

    return get


@functools.cache
def exports(room: str) -> Mapping[str, str]:
    """Return the names that a package imports for type checkers, each with its module, as its source has them."""
    package = sys.modules[room]
    source = "".join(linecache.getlines(str(package.__file__), vars(package)))  # of a zip, too
    return {name: module for module, name in _IMPORTED.findall(source)}
