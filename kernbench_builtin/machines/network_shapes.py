"""The shapes of the scale-up network that come with kernbench: ring, mesh, torus, fully connected, switch.

Packages are numbered row by row, so that package i of a mesh or torus is at column i % width and row i // width. Routes
are minimal and the same every time: along the row first, then along the column. Where both ways around a ring or a
dimension of a torus are as long, a package at an even place goes up (east, south) and one at an odd place down, so that
both directions carry the same. A dimension of two is one pair of links, a dimension of one none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kernbench_core.topology.networks import Extent, NetworkShape, ScaleUpLink


def _ring_links(extent: Extent) -> list[ScaleUpLink]:
    pairs = _neighbours(extent.sips, closed=True)
    return [ScaleUpLink(a, f"sip{b}", b, f"sip{a}") for a, b in pairs]


def _mesh_links(extent: Extent, closed: bool = False) -> list[ScaleUpLink]:
    links = []
    for row in range(extent.height):
        for a, b in _neighbours(extent.width, closed):
            links.append(ScaleUpLink(extent.at(a, row), "e", extent.at(b, row), "w"))
    for column in range(extent.width):
        for a, b in _neighbours(extent.height, closed):
            links.append(ScaleUpLink(extent.at(column, a), "s", extent.at(column, b), "n"))
    return links


def _torus_links(extent: Extent) -> list[ScaleUpLink]:
    return _mesh_links(extent, closed=True)


def _full_links(extent: Extent) -> list[ScaleUpLink]:
    return [ScaleUpLink(a, f"sip{b}", b, f"sip{a}") for a in range(extent.sips) for b in range(a + 1, extent.sips)]


def _switch_links(extent: Extent) -> list[ScaleUpLink]:
    return [ScaleUpLink(sip, "switch0", None) for sip in range(extent.sips if extent.sips > 1 else 0)]


def _neighbours(count: int, closed: bool) -> Iterator[tuple[int, int]]:
    """Yield the neighbouring places of one dimension; a closed one of two places is joined once."""
    for place in range(count - 1):
        yield place, place + 1
    if closed and count > 2:
        yield count - 1, 0


def _towards(here: int, there: int, _: int) -> int:
    return here + (there > here) - (there < here)


def _around(here: int, there: int, count: int) -> int:
    """Return the next place of a closed dimension; half way around the parity of `here` decides."""
    up = (there - here) % count
    goes_up = 2 * up < count or (2 * up == count and here % 2 == 0)
    return (here + (1 if goes_up else -1)) % count


def _by_dimension(along: Callable[[int, int, int], int]) -> Callable[[Extent, int, int], int]:
    """Make the step of a mesh from that of one dimension: columns first, then rows."""

    def step(extent: Extent, here: int, there: int) -> int:
        (column, row), (last_column, last_row) = extent.place(here), extent.place(there)
        if column != last_column:
            return extent.at(along(column, last_column, extent.width), row)
        return extent.at(column, along(row, last_row, extent.height))

    return step


def _straight(_: Extent, __: int, there: int) -> int:
    return there


RING = NetworkShape(_ring_links, _by_dimension(_around), closed=True)
MESH_2D = NetworkShape(_mesh_links, _by_dimension(_towards), flat=True, closed=False)
TORUS_2D = NetworkShape(_torus_links, _by_dimension(_around), flat=True, closed=True)
FULLY_CONNECTED = NetworkShape(_full_links, _straight)
SWITCH = NetworkShape(_switch_links, _straight)
