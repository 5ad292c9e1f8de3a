"""Core alone: its tests, and processes that they start, find machines and saved runs, and nothing else of ours."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.core.in_children.sitecustomize import HIDDEN, SEARCHES, find_others, is_shown

_HERE = Path(__file__).parent
#: What children import from first: what hides the packages from them, and core, whether it is installed or not.
_PYTHONPATH = os.pathsep.join((str(_HERE / "in_children"), str(_HERE.parents[1])))


@contextmanager
def alone() -> Iterator[None]:
    """Have the other packages be missing, here and in processes that are started; then give them back as they were."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in sys.modules if name.startswith(HIDDEN) and not is_shown(name)]:
            patch.delitem(sys.modules, name)
        for module in SEARCHES:
            patch.setattr(module, "_find_spec", find_others)
        patch.setenv("PYTHONPATH", _PYTHONPATH, prepend=os.pathsep)
        yield
