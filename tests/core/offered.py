"""What machines are compiled from in core's tests: what is offered without other packages, and models of a test."""

from __future__ import annotations

from typing import Any

from kernbench_core.plugins import Plugins, load_plugins
from kernbench_core.topology.machine_kinds import layering_of

OFFERED = load_plugins([], installed=False)
LAYERING = layering_of(OFFERED.machines)


def offered(components: Any, **others: Any) -> Plugins:
    """Return plug-ins with models that exist in a test alone; `networks` and `machines` may be given too."""
    found = OFFERED
    for kind, registry in {"components": components, **others}.items():
        found = found.having(OFFERED.points[kind], registry)
    return found
