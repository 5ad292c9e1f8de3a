"""The single addresses behind regions, for tests that compare places byte by byte."""

from __future__ import annotations

from kernbench_core.values.region import Region


def bytes_of(regions: tuple[Region, ...]) -> list[int]:
    """List the addresses of regions in order, one by one."""
    return [r.base + row * r.pitch + column for r in regions for row in range(r.rows) for column in range(r.row_bytes)]
