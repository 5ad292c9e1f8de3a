"""Where each parameter of a node was given: a place in a file, a setting, or the default of its model."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Mapping

from kernbench_core.graph import Node
from kernbench_core.topology.configuration import Config, KeyPath


def parameter_sources(config: Config) -> Callable[[Node], Mapping[str, str]]:
    """Return what says of a node where each of its parameters was written, `file:line:column` or the `--set`.

    What nobody wrote is a default of the model, or follows from other keys.
    """
    overrides = config.data.get("overrides") or ()
    patterns = [(number, str(each.get("match", ""))) for number, each in enumerate(overrides)]
    units = (config.data.get("pe") or {}).get("units") or {}

    def sources(node: Node) -> Mapping[str, str]:
        owners: list[KeyPath] = [("pe", "units", node.kind) if node.kind in units else ("components", node.kind)]
        owners += [("overrides", number) for number, match in patterns if fnmatch.fnmatchcase(node.id, match)]
        found = {}
        for name in node.params:
            written = [path for path in ((*owner, "params", name) for owner in owners) if path in config.places]
            found[name] = config.places[written[-1]] if written else f"default of {node.impl}"
        return found

    return sources
