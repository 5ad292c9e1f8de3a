"""Have Python find no package of kernbench but core: first of all in each process that one of core's tests starts.

`site` imports it by this name from PYTHONPATH; under another name it does nothing by itself.
"""

from __future__ import annotations

import importlib.util
from typing import Any

HIDDEN = ("kernbench_builtin", "kernbench_ccl")
#: The one search of `import` and that of `importlib.util.find_spec`: pytest and others put finders before any finder.
SEARCHES: tuple[Any, ...] = (importlib._bootstrap, importlib.util)  # type: ignore[attr-defined]
_find_spec = SEARCHES[0]._find_spec


def find_others(name: str, *rest: Any) -> Any:
    """Find a module as before, but for those of the hidden packages."""
    return None if name.partition(".")[0] in HIDDEN else _find_spec(name, *rest)


if __name__ == "sitecustomize":
    for module in SEARCHES:
        module._find_spec = find_others
