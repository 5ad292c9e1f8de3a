"""Have Python find no package of kernbench but core and machines: first of all in processes that core's tests start.

`site` imports it by this name from PYTHONPATH; under another name it does nothing by itself.
"""

from __future__ import annotations

import importlib.util
from typing import Any

HIDDEN = ("kernbench_builtin", "kernbench_ccl")
#: What is seen nonetheless: without a kind of machine there is no machine to test anything on.
SHOWN = "kernbench_builtin.machines"
#: The one search of `import` and that of `importlib.util.find_spec`: pytest and others put finders before any finder.
SEARCHES: tuple[Any, ...] = (importlib._bootstrap, importlib.util)  # type: ignore[attr-defined]
_find_spec = SEARCHES[0]._find_spec


def find_others(name: str, *rest: Any) -> Any:
    """Find a module as before, but for those of the hidden packages."""
    return None if name.partition(".")[0] in HIDDEN and not is_shown(name) else _find_spec(name, *rest)


def is_shown(name: str) -> bool:
    """Say whether a module is of the machines, or the package around them."""
    return f"{name}.".startswith(f"{SHOWN}.") or SHOWN.startswith(f"{name}.")


if __name__ == "sitecustomize":
    for module in SEARCHES:
        module._find_spec = find_others
