"""Machines that were compiled last in this process, for who compiles the same again: a notebook, or a sweep.

One is given again where all that it followed from is the same: the configuration with its places, what plug-ins
registered, and the very classes and kinds that these names stand for now, so that an edited file, a reloaded module or
another plug-in is noticed. What is given is a frozen graph: nothing of a run is in it but the routes that were found,
which follow from it alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from typing import Any, Final

from kernbench_core.graph import Graph
from kernbench_core.plugins import Entry, Registry
from kernbench_core.topology.configuration import Config

_MOST: Final = 4
"""How many machines are kept: one with 512 PEs takes 30 MB."""

#: Each by its key, the one that was asked for last at the end, with the classes whose identities are in the key.
_CACHE: dict[tuple[Any, ...], tuple[Graph, tuple[object, ...]]] = {}


def compiled_once(config: Config, registries: tuple[Any, ...], compile: Callable[[], Graph]) -> Graph:
    """Return the machine of a configuration: what `compile` gives, or gave for the same."""
    if not all(isinstance(each, Registry) for each in registries):
        return compile()
    parts = (config.data, config.places, config.sources, config.faults, config.inherited, config.replaced)
    given = [registry.given for registry in registries]
    told = repr((*parts, config.warnings, given))  # tells apart what is equal and not the same: 1, 1.0 and True
    kept = _CACHE.pop((told, *map(id, _behind(given))), None)
    graph = compile() if kept is None else kept[0]
    behind = tuple(_behind(given))  # some of it was imported just now
    _CACHE[told, *map(id, behind)] = graph, behind
    if len(_CACHE) > _MOST:
        del _CACHE[next(iter(_CACHE))]
    return graph


def _behind(given: Iterable[Iterable[tuple[Entry, object]]]) -> Iterator[object]:
    """Yield what the names of entries stand for now; None where nobody imported them."""
    for entries in given:
        for entry, _ in entries:
            module, _, path = entry.target.partition(":")
            try:
                yield attrgetter(path)(sys.modules[module])
            except (KeyError, AttributeError):
                yield None
