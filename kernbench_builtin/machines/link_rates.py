"""Rates of serial links by lanes: what a PCIe generation or a UCIe module carries in one direction, in B/ns."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from types import MappingProxyType

PCIE_GENERATIONS: Mapping[int, tuple[Fraction, Fraction]] = MappingProxyType(
    {
        1: (Fraction("2.5"), Fraction(8, 10)),
        2: (Fraction(5), Fraction(8, 10)),
        3: (Fraction(8), Fraction(128, 130)),
        4: (Fraction(16), Fraction(128, 130)),
        5: (Fraction(32), Fraction(128, 130)),
        6: (Fraction(64), Fraction(236, 256)),
    }
)
"""Generation -> (GT/s of a lane, the share of its bits that are TLPs).

8b/10b and 128b/130b are line codes; generation 6 has none, but of each 256 B flit 236 B are TLPs, the rest is data-link
layer (6 B), CRC (8 B) and FEC (6 B). Generations 5 and 6 as published by the PCI-SIG; 1 to 4 are recalled, unverified.
"""
PCIE_LANES = (1, 2, 4, 8, 12, 16, 32)
"""Widths that a PCIe link may have."""
_BITS_PER_BYTE = 8


def pcie_bandwidth(generation: int, lanes: int) -> float:
    """Return what a PCIe link carries in one direction, TLP headers included: 63.0 B/ns for generation 5 x16.

    Raises:
        ValueError: there is no such generation or width; the text starts with the key at fault.
    """
    if generation not in PCIE_GENERATIONS:
        known = f"{min(PCIE_GENERATIONS)} to {max(PCIE_GENERATIONS)}"
        raise ValueError(f"generation must be a PCIe generation from {known}, not {generation}.")
    if lanes not in PCIE_LANES:
        raise ValueError(f"lanes must be one of {', '.join(map(str, PCIE_LANES))}, not {lanes}.")
    rate, share = PCIE_GENERATIONS[generation]
    return float(rate * share * lanes / _BITS_PER_BYTE)


def ucie_bandwidth(lanes: int, rate: float) -> float:
    """Return what UCIe modules of `lanes` lanes at `rate` GT/s carry in one direction: 256 B/ns for x64 at 32 GT/s."""
    return lanes * rate / _BITS_PER_BYTE
