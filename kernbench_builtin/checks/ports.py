"""What hardware models are wired to: their ports are named after the nodes at the other ends."""

from __future__ import annotations

from attrs import frozen

from kernbench_builtin.machines.presets import machines_by_size
from kernbench_core.graph import Graph
from kernbench_core.plugins import Plugins


@frozen
class Ports:
    """Say between which kinds of nodes those of a kind stand, in the smallest preset that has it."""

    kind: str
    preset: str
    sources: tuple[str, ...]
    sinks: tuple[str, ...]

    def __str__(self) -> str:
        ways = [("in from", self.sources), ("out to", self.sinks)]
        told = "; ".join(f"{way} {', '.join(kinds)}" for way, kinds in ways if kinds)
        return f"{self.kind}: {told or 'none'} (as in preset {self.preset!r})"


class Wiring:
    """The ports of nodes of any kind. Presets are compiled as they are needed, the smallest first."""

    def __init__(self, plugins: Plugins) -> None:
        self._graphs = machines_by_size(plugins)
        self._known: dict[str, Ports] = {}

    def ports(self, kind: str) -> Ports | None:
        """Return the ports of a kind of node; None where no preset has one."""
        while kind not in self._known:
            compiled = next(self._graphs, None)
            if compiled is None:
                return None
            preset, graph = compiled
            for found in _ports(preset, graph):
                self._known.setdefault(found.kind, found)
        return self._known[kind]


def _ports(preset: str, graph: Graph) -> list[Ports]:
    sources: dict[str, set[str]] = {node.kind: set() for node in graph.nodes.values()}
    sinks: dict[str, set[str]] = {kind: set() for kind in sources}
    for src, dst in graph.edges:
        here, there = graph.nodes[src].kind, graph.nodes[dst].kind
        sinks[here].add(there)
        sources[there].add(here)
    return [Ports(kind, preset, tuple(sorted(sources[kind])), tuple(sorted(sinks[kind]))) for kind in sorted(sources)]
