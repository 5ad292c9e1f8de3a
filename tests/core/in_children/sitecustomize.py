"""Hide all packages of kernbench but core, machines and saved runs: first in processes that core's tests start.

`site` imports it by this name from PYTHONPATH; under another name it does nothing by itself.
"""

from __future__ import annotations

import importlib.util
from typing import Any

HIDDEN = ("kernbench_builtin", "kernbench_ccl")
#: What is seen nonetheless: without a kind of machine there is no machine to test anything on, and no log is loaded.
SHOWN = ("kernbench_builtin.machines", "kernbench_builtin.saved")
#: The one search of `import` and that of `importlib.util.find_spec`: pytest and others put finders before any finder.
SEARCHES: tuple[Any, ...] = (importlib._bootstrap, importlib.util)  # type: ignore[attr-defined]
_find_spec = SEARCHES[0]._find_spec


def find_others(name: str, *rest: Any) -> Any:
    """Find a module as before, but for those of the hidden packages."""
    return None if name.partition(".")[0] in HIDDEN and not is_shown(name) else _find_spec(name, *rest)


def is_shown(name: str) -> bool:
    """Say whether a module is of these, or the package around them."""
    return any(f"{name}.".startswith(f"{shown}.") or shown.startswith(f"{name}.") for shown in SHOWN)


if __name__ == "sitecustomize":
    for module in SEARCHES:
        module._find_spec = find_others
