"""Which PE is next to which, for kernels that name a peer by a direction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kernbench_core.graph import Node, PeSite
from kernbench_core.peers import nearest_in


class Neighbours:
    """Find the PEs next to others in the meshes of cubes of their SIP, by the positions of their nodes."""

    def __init__(self, sites: Sequence[PeSite], nodes: Mapping[str, Node]) -> None:
        self._sites = sites
        self._nodes = nodes
        self._found: dict[tuple[int, str], int | None] = {}

    def nearest(self, pe: int, direction: str) -> int | None:
        """Return the nearest PE of the same SIP in a direction, None where there is none."""
        key = (pe, direction)
        if key not in self._found:
            sip = self._sites[pe].sip
            places = {site.index: self._nodes[site.pe_cpu].position for site in self._sites if site.sip == sip}
            self._found[key] = nearest_in(places, pe, direction)
        return self._found[key]
