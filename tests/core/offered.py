"""What machines are compiled from in core's tests: kinds of machine, shapes of networks, and models of a test."""

from __future__ import annotations

from typing import Any

from kernbench_core.plugins import Plugins, load_plugins
from kernbench_core.topology.machine_kinds import layering_of

#: The plug-in of machines: who tries things without hardware of ours loads it so.
MACHINES = "builtin.machines = kernbench_builtin.machines.plugin"
#: The plug-in that writes the folder of a run.
SAVED = "builtin.saved = kernbench_builtin.saved.plugin"
OFFERED = load_plugins([MACHINES], installed=False)
LAYERING = layering_of(OFFERED.machines)


#: What is offered, for registries that hold more.
NETWORKS, KINDS = OFFERED.networks.given, OFFERED.machines.given


def offered(components: Any, **others: Any) -> Plugins:
    """Return plug-ins with models that exist in a test alone; `networks` and `machines` may be given too."""
    found = OFFERED
    for kind, registry in {"components": components, **others}.items():
        found = found.having(OFFERED.points[kind], registry)
    return found
