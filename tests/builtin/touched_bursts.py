"""The bursts that a request moves, one by one: what the mapping of banks is held to."""

from __future__ import annotations

from kernbench_core.values import Region


def bursts_of(regions: tuple[Region, ...], burst: int = 32) -> list[int]:
    """Return the address of each burst of so many bytes, in order; rows that ascend move what they share once."""
    found = []
    for region in regions:
        moved: set[int] = set()
        for row in range(region.rows):
            first = region.base + row * region.pitch
            touched = range(first - first % burst, first + region.row_bytes, burst)
            found += [address for address in touched if address not in moved]
            if region.pitch > 0:
                moved.update(touched)
    return found
