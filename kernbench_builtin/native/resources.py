"""The resources of a machine, each of which can be made faster by itself."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import attrs

from kernbench_core.graph import Edge, EdgeKind, Node
from kernbench_core.units import GRID_NS, grid_ceil

if TYPE_CHECKING:
    from kernbench_core.plugins import Plugins
    from kernbench_core.topology.design import Machine

#: What makes a resource free: so many times faster is less than a tick of the clock for whatever it does.
FREE: Final = math.inf
_FASTEST: Final = 2.0**40


@attrs.frozen
class Improvable:
    """A part of a machine: the nodes of some `kinds` and the wires of some `edges`, or the `places` of the former.

    Faster by f means: each time is 1/f of what it was, each rate f times; places are f times as many, up to `most`, and
    never fewer. A number of places of 0 is that of another parameter, and stays 0.
    """

    name: str
    kinds: tuple[str, ...] = ()
    edges: tuple[EdgeKind, ...] = ()
    places: tuple[str, ...] = ()
    most: int = 1024

    def faster(self, machine: Machine, plugins: Plugins, times: float) -> Machine:
        """Return a machine on which it is so many times as fast, or free."""
        nodes = {
            name: self._node(node, plugins, times) if node.kind in self.kinds else node
            for name, node in machine.nodes.items()
        }
        edges = {
            ends: _edge(edge, times) if edge.kind in self.edges else edge for ends, edge in machine.edges.items()
        }
        return attrs.evolve(machine, nodes=MappingProxyType(nodes), edges=MappingProxyType(edges))

    def _node(self, node: Node, plugins: Plugins, times: float) -> Node:
        params: dict[str, Any] = dict(node.params)
        for name in (name for name in self.places if params.get(name)):
            params[name] = max(params[name], math.ceil(min(params[name] * times, self.most)))
        if not self.places:
            params |= self._times(node.params, plugins.components.load(node.impl), times)
        return attrs.evolve(node, params=MappingProxyType(params))

    def _times(self, params: Mapping[str, Any], model: Any, times: float) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for param in model.PARAMS:
            if param.name not in params:
                continue
            value = params[param.name]
            if param.dimension == "time":
                found[param.name] = max(value / times, GRID_NS if param.positive else 0.0)
            elif param.dimension in ("bandwidth", "frequency"):
                found[param.name] = value * min(times, _FASTEST)
        return found


def _edge(edge: Edge, times: float) -> Edge:
    latency = max(GRID_NS, grid_ceil(edge.latency / times))
    return attrs.evolve(edge, bandwidth=edge.bandwidth * min(times, _FASTEST), latency=latency)


RESOURCES: Final = (
    Improvable("HBM", ("hbm_ctrl",)),
    Improvable("SRAM", ("sram",)),
    Improvable("scratchpads", ("pe_tcm",)),
    Improvable("matrix units", ("pe_gemm",)),
    Improvable("vector units", ("pe_math",)),
    Improvable("places of the DMAs", ("pe_dma",), places=("servers", "read_outstanding", "write_outstanding")),
    Improvable("set-up of the DMAs", ("pe_dma",)),
    Improvable("address translation", ("pe_mmu",)),
    Improvable("schedulers of tiles", ("pe_scheduler", "pe_fetch_store")),
    Improvable("queues", ("pe_ipcq",)),
    Improvable("CPUs of the PEs", ("pe_cpu",)),
    Improvable("wires inside PEs", (), (EdgeKind.PE,)),
    Improvable("mesh of the cubes", ("router",), (EdgeKind.NOC, EdgeKind.ATTACH, EdgeKind.HBM)),
    Improvable("UCIe", ("ucie", "io_ucie"), (EdgeKind.UCIE,)),
    Improvable("NoC of the IO chiplets", ("io_noc",), (EdgeKind.IO_NOC,)),
    Improvable("scale-up links", ("link", "switch", "interface"), (EdgeKind.SCALE_UP,)),
    Improvable("launch", ("io_cpu", "m_cpu"), (EdgeKind.COMMAND,)),
    Improvable("PCIe", ("pcie_ep",), (EdgeKind.PCIE,)),
    Improvable("host driver", ("host",)),
)
