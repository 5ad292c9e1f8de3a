"""Names that two plug-ins have, and that their vendors tell apart."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kernbench_core.plugins.registry import PluginFailure, Registry


def told_apart(registries: Iterable[Registry[Any]]) -> frozenset[PluginFailure]:
    """Return the failures of names that two have and either may be called with its vendor: of no entry itself."""
    return frozenset(
        failure
        for registry in registries
        for name, failure in registry.taken.items()
        if any(each.endswith(f":{name}") for each in registry)
    )
