"""Machines that were compiled last in this process, for who compiles the same again: a notebook, or a sweep.

One is given again where all that it followed from is the same: the configuration with its places, what plug-ins
registered, and the very classes and kinds that these names stand for now, so that an edited file, a reloaded module or
another plug-in is noticed. What is given is a frozen graph: nothing of a run is in it but the routes that were found,
which follow from it alone.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import attrgetter
from typing import Any, Final

from attrs import frozen

from kernbench_core.graph import Graph
from kernbench_core.plugins import Registry
from kernbench_core.topology.configuration import Config

_MOST: Final = 4
"""How many machines are kept: one with 512 PEs takes 30 MB."""


@frozen(eq=False)
class _CompiledMachine:
    graph: Graph
    registered: tuple[Any, ...]
    behind: tuple[object, ...]
    tables: str


#: Types of most values of a configuration, tried before those of containers: that is quicker.
_LEAVES: Final = frozenset({str, int, float, bool, type(None)})

_CACHE: OrderedDict[str, _CompiledMachine] = OrderedDict()


def compiled_once(config: Config, registries: tuple[Any, ...], compile: Callable[[], Graph]) -> Graph:
    """Return the machine of a configuration: what `compile` gives, or gave for the same."""
    if not all(isinstance(each, Registry) for each in registries):
        return compile()
    parts = (config.data, config.places, config.sources, config.faults, config.inherited, config.replaced)
    key = _canonical_text((*parts, config.warnings))
    registered = tuple(registry.given for registry in registries)
    kept = _CACHE.get(key)
    if (
        kept is None
        or kept.registered != registered
        or not all(map(_same, kept.behind, _behind(registered)))
        or kept.tables != _tables(kept.graph)
    ):
        graph = compile()
        kept = _CompiledMachine(graph, registered, tuple(_behind(registered)), _tables(graph))
    _CACHE[key] = kept
    _CACHE.move_to_end(key)
    while len(_CACHE) > _MOST:
        _CACHE.popitem(last=False)
    return kept.graph


def _same(one: object, other: object) -> bool:
    return one is other


def _behind(registered: Iterable[Iterable[tuple[Any, object]]]) -> Iterator[object]:
    """Yield what the names of entries stand for now, and the parameters of models; None where nobody imported them."""
    for entries in registered:
        for entry, _ in entries:
            module, _, path = entry.target.partition(":")
            try:
                found = attrgetter(path)(sys.modules[module])
            except (KeyError, AttributeError):
                found = None
            yield found
            yield getattr(found, "PARAMS", None)


def _tables(graph: Graph) -> str:
    """Spell the parameters that are tables: of all that a graph holds, a model could change them."""
    params = {id(node.params): node.params for node in graph.nodes.values()}
    tables = [value for each in params.values() for value in each.values() if isinstance(value, Mapping)]
    return _canonical_text(tables) if tables else ""


def _canonical_text(value: Any) -> str:
    """Return a text that two values share only where they are of the same types throughout, and equal."""
    kind = type(value)
    if kind in _LEAVES:
        return f"{kind.__name__} {value!r}"
    if isinstance(value, Mapping):
        return f"{{{','.join(f'{_canonical_text(key)}:{_canonical_text(each)}' for key, each in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"{kind.__name__}({','.join(map(_canonical_text, value))})"
    if isinstance(value, frozenset):
        return f"set({','.join(sorted(map(_canonical_text, value)))})"
    return f"{kind.__name__} {value!r}"
