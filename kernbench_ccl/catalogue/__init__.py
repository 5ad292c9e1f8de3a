"""The algorithms and collectives that are registered, or lie in a file: found by what a user calls them, and checked.

In: the loaded plug-ins, a name or a path. Out: checked views of modules, and records. Plans, proofs, measurements and
commands call it. Names are imported on first use: a list of commands needs no algorithm.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernbench_ccl.catalogue.algorithm import Algorithm as Algorithm
    from kernbench_ccl.catalogue.algorithm import read_algorithm as read_algorithm
    from kernbench_ccl.catalogue.catalogue import Catalogue as Catalogue
    from kernbench_ccl.catalogue.catalogue import read_file as read_file
    from kernbench_ccl.catalogue.collectives import Collectives as Collectives
    from kernbench_ccl.catalogue.names import meant as meant
    from kernbench_ccl.catalogue.names import spellings as spellings

_EXPORTS = {
    "Algorithm": "algorithm",
    "Catalogue": "catalogue",
    "Collectives": "collectives",
    "meant": "names",
    "read_algorithm": "algorithm",
    "read_file": "catalogue",
    "spellings": "names",
}

__all__ = sorted(_EXPORTS)


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_EXPORTS[name]}"), name)
