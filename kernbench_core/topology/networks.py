"""Shapes of the scale-up network: which packages are linked, and which package comes next on the way to another.

A shape is two functions over an `Extent`. Packages are numbered row by row, so that package i of a mesh or torus is at
column i % width and row i // width. Routes are minimal and the same every time: along the row first, then along the
column. Where both ways around a ring or a dimension of a torus are as long, a package at an even place goes up (east,
south) and one at an odd place down, so that both directions carry the same. A dimension of two is one pair of links,
a dimension of one none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType

from attrs import field, frozen

from kernbench_core.peers import DIRECTIONS
from kernbench_core.topology import naming


class NetworkFault(ValueError):
    """The packages do not fit the shape; `key` is the key of `system.network` at fault."""

    def __init__(self, key: str, text: str) -> None:
        super().__init__(text)
        self.key = key


@frozen
class Extent:
    """How many packages there are, and their columns and rows where the shape has such."""

    sips: int
    width: int
    height: int = 1

    def place(self, sip: int) -> tuple[int, int]:
        """Return the column and row of a package."""
        return sip % self.width, sip // self.width

    def at(self, column: int, row: int) -> int:
        """Return the package at a column and row."""
        return row * self.width + column


@frozen
class ScaleUpLink:
    """A two-way link; each end is a package (None: the switch) with a port named after the peer or the direction."""

    sip: int
    port: str
    other_sip: int | None
    other_port: str = ""


@frozen
class Shape:
    """One family of networks; `flat` shapes are meshes of columns and rows.

    `closed` says whether rows and columns are rings; it is None where packages have no directions.
    """

    links: Callable[[Extent], list[ScaleUpLink]]
    step: Callable[[Extent, int, int], int]
    flat: bool = False
    closed: bool | None = None


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


NETWORKS: Mapping[str, Shape] = MappingProxyType(
    {
        "ring": Shape(_ring_links, _by_dimension(_around), closed=True),
        "mesh_2d": Shape(_mesh_links, _by_dimension(_towards), flat=True, closed=False),
        "torus_2d": Shape(_torus_links, _by_dimension(_around), flat=True, closed=True),
        "fully_connected": Shape(_full_links, _straight),
        "switch": Shape(_switch_links, _straight),
    }
)
"""Every shape that `system.network.topology` may name."""


def find_extent(topology: str, sips: int, width: int | None, height: int | None) -> Extent:
    """Return the columns and rows of a network; what is not given is chosen, the most square and not higher than wide.

    Raises:
        NetworkFault: the shape has no columns and rows, or those given do not hold exactly the packages.
    """
    if not NETWORKS[topology].flat:
        key, given = ("width", width) if width is not None else ("height", height)
        if given is not None:
            raise NetworkFault(key, f"must be left out, as a {topology} has no columns and rows, not {given}.")
        return Extent(sips, sips)
    if width is None and height is None:
        height = next(rows for rows in range(math.isqrt(sips), 0, -1) if sips % rows == 0)
    key, given = ("width", width) if width is not None else ("height", height)
    assert given is not None
    other = height if width is not None else None
    if sips % given or (other is not None and given * other != sips):
        shown = str(given) if other is None else f"{given} x {other}"
        raise NetworkFault(key, f"must make a full {topology} of {sips} SIPs, not {shown}; leave width and height out.")
    found = (given, sips // given) if width is not None else (sips // given, given)
    return Extent(sips, *found)


def neighbour(topology: str, extent: Extent, sip: int, step: tuple[int, int]) -> int | None:
    """Return the package one `step` (columns to the east, rows to the south) away over one link, None without one.

    Packages of a ring are one row.
    """
    closed = NETWORKS[topology].closed
    if closed is None:
        return None
    column, row = (place + moved for place, moved in zip(extent.place(sip), step, strict=True))
    if closed:
        column, row = column % extent.width, row % extent.height
    elif not (0 <= column < extent.width and 0 <= row < extent.height):
        return None
    other = extent.at(column, row)
    return None if other == sip else other


def network_directions(
    topology: str, extent: Extent, ranks: Sequence[Sequence[int]]
) -> Callable[[int, str], int | None]:
    """Give `Peers.direction` for ranks that are the packages of a scale-up network: the same place next door.

    On a ring "e" is the next rank and "w" the one before; networks without directions have no neighbours.
    """
    places: dict[int, tuple[int, int]] = {}

    def direction(pe: int, name: str) -> int | None:
        if not places:  # only when asked: few launches use directions, and each is kept
            places.update((pe, (rank, place)) for rank, pes in enumerate(ranks) for place, pe in enumerate(pes))
        rank, place = places[pe]
        other = neighbour(topology, extent, rank, DIRECTIONS[name])
        return None if other is None else ranks[other][place]

    return direction


@frozen
class Port:
    """One end of a placed link: a node on an IO chiplet of a SIP, or the switch (`sip` and `io` None)."""

    id: str
    sip: int | None = None
    io: int | None = None


@frozen
class PlacedLink:
    """The two ends of a placed link; both directions run between them."""

    first: Port
    second: Port

    @property
    def names(self) -> tuple[str, ...]:
        """What a pattern may match: the link by its ends in either order, and the ids of its ports."""
        a, b = (f"sip{end.sip}" if end.sip is not None else end.id.rpartition(".")[2] for end in self.ends)
        return f"{a}-{b}", f"{b}-{a}", *(port.id for port in self.ports)

    @property
    def ends(self) -> tuple[Port, Port]:
        """Both ends, the first first."""
        return self.first, self.second

    @property
    def ports(self) -> tuple[Port, ...]:
        """The ends that are ports of packages."""
        return tuple(end for end in self.ends if end.sip is not None)


@frozen
class Network:
    """The scale-up network of one machine: its shape, its links with their ports, and its routes."""

    topology: str
    extent: Extent
    links: tuple[PlacedLink, ...]
    _ways: Mapping[tuple[int, int], tuple[str, ...]] = field(repr=False)

    def route(self, sip: int, other: int) -> tuple[tuple[str, ...], ...]:
        """Return how to get from one package to another: for each step the port out, any switch, and the port in."""
        step, steps = NETWORKS[self.topology].step, []
        while sip != other:
            following = step(self.extent, sip, other)
            steps.append(self._ways[sip, following])
            sip = following
        return tuple(steps)


def build_network(topology: str, extent: Extent, io_chiplets: int) -> Network:
    """Place the ends of every link, dealing the ports of a SIP round-robin to its IO chiplets."""
    used: dict[int, int] = {}

    def port(sip: int | None, name: str) -> Port:
        if sip is None:
            return Port(naming.switch(0))
        io = used.get(sip, 0) % io_chiplets
        used[sip] = used.get(sip, 0) + 1
        return Port(naming.link(sip, io, name), sip, io)

    links = tuple(
        PlacedLink(port(link.sip, link.port), port(link.other_sip, link.other_port))
        for link in NETWORKS[topology].links(extent)
    )
    return Network(topology, extent, links, MappingProxyType(_ways(links)))


def _ways(links: tuple[PlacedLink, ...]) -> dict[tuple[int, int], tuple[str, ...]]:
    """Return the nodes from each package to each that is one step away."""
    found: dict[tuple[int, int], tuple[str, ...]] = {}
    up: list[Port] = []
    for link in links:
        for a, b in (link.ends, link.ends[::-1]):
            if a.sip is not None and b.sip is not None:
                found[a.sip, b.sip] = (a.id, b.id)
            elif a.sip is not None:
                up.append(a)
    for a in up:
        for b in up:
            if a.sip is not None and b.sip is not None and a.sip != b.sip:
                found[a.sip, b.sip] = (a.id, naming.switch(0), b.id)
    return found
