"""Which node owns a physical address, and which nodes requests are steered to."""

from __future__ import annotations

from kernbench_core.errors import RoutingError
from kernbench_core.graph import Graph
from kernbench_core.topology import naming
from kernbench_core.topology.address import OFFSET_BITS, Location
from kernbench_core.topology.design import design_of

_OFFSET_MASK = (1 << OFFSET_BITS) - 1


class AddressResolver:
    """Find the node that owns an address, and the nodes that requests are steered to."""

    def __init__(self, graph: Graph) -> None:
        design = design_of(graph)
        self._map = design.address_map
        self._owners: dict[int, tuple[str, int]] = {}
        self._pcie_eps: dict[int, list[str]] = {}
        self._io_cpus: dict[int, list[str]] = {}
        self._m_cpus: dict[tuple[int, int], str] = {}
        for site in design.pes:
            self._m_cpus[site.sip, site.cube] = site.m_cpu
        for node in graph.nodes.values():
            if node.kind == "pcie_ep" and node.sip is not None:
                self._pcie_eps.setdefault(node.sip, []).append(node.id)
            elif node.kind == "io_cpu" and node.sip is not None:
                self._io_cpus.setdefault(node.sip, []).append(node.id)

    def resolve(self, address: int) -> str:
        """Return the id of the memory node that owns a physical address: hbm_ctrl, sram or pe_tcm.

        Raises:
            OutOfBoundsError: no unit of this machine owns the address.
        """
        owner = self._owners.get(address >> OFFSET_BITS)
        if owner is None or address & _OFFSET_MASK >= owner[1]:
            place = self._map.decode(address)
            owner = (self._owner(place), self._map.capacity(place.unit.rstrip("0123456789")))
            self._owners[address >> OFFSET_BITS] = owner
        return owner[0]

    def _owner(self, place: Location) -> str:
        if place.unit == "sram":
            return naming.cube_unit(place.sip, place.cube, "sram")
        index = int(place.unit[3:])
        if place.unit.startswith("hbm"):
            return naming.hbm_ctrl(place.sip, place.cube, index)
        return naming.pe_unit(naming.pe(place.sip, place.cube, index), "pe_tcm")

    def find_m_cpu(self, sip: int, cube: int) -> str:
        """Return the m_cpu of a cube."""
        return self._found(self._m_cpus.get((sip, cube)), "m_cpu", f"cube {cube} of SIP {sip}")

    def find_pcie_ep(self, sip: int) -> str:
        """Return the PCIe endpoint of a SIP (that of its first IO chiplet)."""
        return self._found(next(iter(self._pcie_eps.get(sip, ())), None), "pcie_ep", f"SIP {sip}")

    def find_io_cpu(self, sip: int) -> str:
        """Return the io_cpu of a SIP (that of its first IO chiplet)."""
        return self._found(next(iter(self._io_cpus.get(sip, ())), None), "io_cpu", f"SIP {sip}")

    def find_all_pcie_eps(self) -> tuple[str, ...]:
        """Return every PCIe endpoint of the machine, by SIP and IO chiplet."""
        return tuple(node for sip in sorted(self._pcie_eps) for node in self._pcie_eps[sip])

    def _found(self, node: str | None, kind: str, place: str) -> str:
        if node is None:
            raise RoutingError(f"{place} must have a {kind}, but the machine has no such node")
        return node
