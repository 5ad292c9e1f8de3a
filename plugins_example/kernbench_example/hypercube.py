"""A hypercube as the scale-up network: packages are linked whose numbers differ in one bit."""

from __future__ import annotations

from kernbench_core.topology import Extent, NetworkFault, NetworkShape, ScaleUpLink


def links(extent: Extent) -> list[ScaleUpLink]:
    """Link each package in every dimension; its port there is named after it: `d0` flips the lowest bit."""
    dimensions = extent.sips.bit_length() - 1
    if extent.sips != 1 << dimensions:
        fewer, more = 1 << dimensions, 2 << dimensions
        raise NetworkFault(
            "sips", f"must be a power of two for a hypercube, not {extent.sips}; give {fewer} or {more} packages."
        )
    return [
        ScaleUpLink(sip, f"d{bit}", sip | 1 << bit, f"d{bit}")
        for bit in range(dimensions)
        for sip in range(extent.sips)
        if not sip >> bit & 1
    ]


def step(extent: Extent, here: int, there: int) -> int:
    """Flip the lowest bit that differs (e-cube routing): minimal, and never the cause of a circle of waits."""
    differing = here ^ there
    return here ^ (differing & -differing)


SHAPE = NetworkShape(links, step)
