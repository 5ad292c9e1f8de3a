"""What is told of the parameters of a node: their units, and where each was given: in a file, by a setting, or not."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Mapping
from typing import Any, Final

from kernbench_core.graph import Node
from kernbench_core.topology.configuration import Config, KeyPath
from kernbench_core.units import DIMENSIONS

#: Sizes are written in the largest of these that they are whole numbers of.
_BINARY: Final = ("GiB", "MiB", "KiB")


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


def with_unit(value: Any, dimension: str | None) -> Any:
    """Return a number of kernbench's own unit as text with the unit of its dimension; anything else as it is."""
    kind = DIMENSIONS.get(dimension or "")
    if kind is None or not kind.units or not isinstance(value, int | float) or isinstance(value, bool):
        return value
    if kind.name == "size" and value:
        for unit in _BINARY:
            count, rest = divmod(value, kind.units[unit])
            if not rest:
                return f"{int(count):,} {unit}"
    return kind.text(value)
