"""The door of a room: its public names, each imported from its file when it is first asked for."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any


def door(room: str, exports: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the `__getattr__` of the package `room` that gives these names, each from its file in there."""

    def get(name: str) -> Any:
        if name not in exports:
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{room}.{exports[name]}"), name)

    return get
