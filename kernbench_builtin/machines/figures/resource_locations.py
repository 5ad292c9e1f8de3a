"""Whose what can be busy is: parts of a PE, parts of a SIP, and links that touch it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

import attrs
import numpy as np
import numpy.typing as npt

from kernbench_core.graph import Node

if TYPE_CHECKING:
    from kernbench_core.component import ComponentBase
    from kernbench_core.engine.hardware import Hardware

BoolArray: TypeAlias = npt.NDArray[np.bool_]
_Indices: TypeAlias = npt.NDArray[np.intp]
_NOTHING: Final = Node("", "")


@attrs.frozen(eq=False)
class ResourceLocations:
    """Say where resources are, by their numbers: the SIPs of both ends, and the index of the PE that each is a part of.

    A number of -1 is none. `sip_of` is the SIP of each PE.
    """

    sources: _Indices
    destinations: _Indices
    pes: _Indices
    sip_of: tuple[int, ...]

    @classmethod
    def of(cls, hardware: Hardware, units: Sequence[ComponentBase]) -> ResourceLocations:
        """Say it of the wires and channels of a machine, by their own numbers, and of some units behind them."""
        wires = len(hardware.wires) + 1
        ends: list[tuple[Node, Node]] = [(_NOTHING, _NOTHING)] * wires
        for source in hardware.components.values():
            for to, wire in source.out_ports.items():
                ends[wire.number] = source.node, hardware.components[to].node
            for wire in source.internal_wires:
                ends[wire.number] = source.node, source.node
        ends += ((unit.node, unit.node) for unit in units)
        sites = hardware.layout.pes
        index: dict[tuple[int | None, ...], int] = {(site.sip, site.cube, site.pe): site.index for site in sites}
        sips = np.array([[-1 if end.sip is None else end.sip for end in pair] for pair in ends], np.intp)
        pes = np.array([max(index.get((end.sip, end.cube, end.pe), -1) for end in pair) for pair in ends], np.intp)
        return cls(sips[:, 0].copy(), sips[:, 1].copy(), pes, tuple(site.sip for site in sites))

    def of_launch(self, pes: Collection[int]) -> BoolArray:
        """Say of each whether it can be a launch's on some PEs: no part of another PE, and not of other SIPs alone.

        What has no SIP at either end, such as a switch, is everybody's.
        """
        sips = {self.sip_of[pe] for pe in pes}
        shared = (self.sources < 0) & (self.destinations < 0)
        touches: BoolArray = shared | _among(self.sources, sips) | _among(self.destinations, sips)
        return touches & _among(self.pes, {-1, *pes})


def _among(numbers: _Indices, chosen: Collection[int]) -> BoolArray:
    """Say of each number whether it is among the chosen ones; none is below -1."""
    known = np.zeros(max(numbers.max(), *chosen, 0) + 2, bool)
    known[[*chosen]] = True
    found: BoolArray = known[numbers]
    return found
