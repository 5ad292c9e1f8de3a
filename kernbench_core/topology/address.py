"""Physical addresses: one integer with the fields sip, cube, unit and offset.

From the low end: 36 bits of offset, 8 bits of unit index, 2 bits of space, 8 bits of cube, 9 bits of SIP: 63 bits, so
that an address fits a signed 64-bit column. Space 0 is unused: small integers are no addresses.
"""

from __future__ import annotations

import re

from attrs import frozen

from kernbench_core.errors import OutOfBoundsError
from kernbench_core.units import format_bytes

OFFSET_BITS, INDEX_BITS, SPACE_BITS, CUBE_BITS, SIP_BITS = 36, 8, 2, 8, 9
_SPACE_SHIFT = OFFSET_BITS + INDEX_BITS
_CUBE_SHIFT = _SPACE_SHIFT + SPACE_BITS
_SIP_SHIFT = _CUBE_SHIFT + CUBE_BITS
_OFFSET_MASK = (1 << OFFSET_BITS) - 1
_INDEX_MASK = (1 << INDEX_BITS) - 1
_SPACE_MASK = (1 << SPACE_BITS) - 1
_CUBE_MASK = (1 << CUBE_BITS) - 1
_SPACES = ("", "hbm", "sram", "tcm")
_UNIT = re.compile(r"(hbm|tcm)(\d+)|(sram)")

TCM_ALIGNMENT = 64
"""Bytes that every block of a scratchpad is aligned to: a line of it."""


def place_of(address: int) -> tuple[int, int]:
    """Return the SIP and the cube of a physical address, of whatever machine."""
    return address >> _SIP_SHIFT, address >> _CUBE_SHIFT & _CUBE_MASK


@frozen
class Location:
    """A physical address taken apart: the unit is `hbm<i>`, `sram` or `tcm<i>`, the offset is in bytes."""

    sip: int
    cube: int
    unit: str
    offset: int


@frozen
class AddressMap:
    """The address fields of one machine, with the capacity in bytes of an HBM slice, a cube's SRAM and a PE's TCM."""

    sips: int
    cubes: int
    pes: int
    hbm_bytes: int
    sram_bytes: int
    tcm_bytes: int

    def encode(self, sip: int, cube: int, unit: str, offset: int = 0) -> int:
        """Return the address of a byte.

        Raises:
            OutOfBoundsError: this machine has no such unit, or the unit has no such byte.
        """
        space, index = self._unit(unit)
        self._check(sip, cube, space, index, offset, f"({sip}, {cube}, {unit!r}, {offset})")
        return sip << _SIP_SHIFT | cube << _CUBE_SHIFT | space << _SPACE_SHIFT | index << OFFSET_BITS | offset

    def decode(self, address: int) -> Location:
        """Take an address apart.

        Raises:
            OutOfBoundsError: no unit of this machine owns the address.
        """
        sip, cube = address >> _SIP_SHIFT, address >> _CUBE_SHIFT & _CUBE_MASK
        space, index = address >> _SPACE_SHIFT & _SPACE_MASK, address >> OFFSET_BITS & _INDEX_MASK
        offset = address & _OFFSET_MASK
        self._check(sip, cube, space, index, offset, hex(address))
        unit = "sram" if space == 2 else f"{_SPACES[space]}{index}"
        return Location(sip, cube, unit, offset)

    def capacity(self, space: str) -> int:
        """Return the bytes of one unit of a space: an HBM slice, a cube's SRAM, a PE's TCM."""
        return {"hbm": self.hbm_bytes, "sram": self.sram_bytes, "tcm": self.tcm_bytes}[space]

    def _unit(self, unit: str) -> tuple[int, int]:
        match = _UNIT.fullmatch(unit)
        if match is None:
            raise OutOfBoundsError(f"unit of an address must be 'hbm<i>', 'sram' or 'tcm<i>', not {unit!r}")
        return _SPACES.index(match[1] or match[3]), int(match[2] or 0)

    def _check(self, sip: int, cube: int, space: int, index: int, offset: int, shown: str) -> None:
        units = 1 if space == 2 else self.pes
        if space == 0 or not (0 <= sip < self.sips and 0 <= cube < self.cubes and 0 <= index < units):
            raise OutOfBoundsError(
                f"address {shown} must name a unit of this machine "
                f"({self.sips} SIPs x {self.cubes} cubes x {self.pes} slices); check the pointer arithmetic"
            )
        capacity = self.capacity(_SPACES[space])
        if not 0 <= offset < capacity:
            raise OutOfBoundsError(
                f"address {shown} must lie inside its {_SPACES[space]} unit of {format_bytes(capacity)}; "
                "check the pointer arithmetic"
            )
