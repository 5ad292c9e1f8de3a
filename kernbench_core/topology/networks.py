"""The scale-up network: what a shape of it is, and the network of one machine, with its ports and its routes.

A shape is two functions over an `Extent`: which packages are linked, and which one comes next on the way to another.
Plug-ins register shapes. What a shape says is checked when a machine is compiled:
every route ends, and goes along links that there are.
"""

from __future__ import annotations

import math
import operator
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from itertools import pairwise
from types import MappingProxyType
from typing import Any

from attrs import field, frozen

from kernbench_core.params import Param, resolve_params
from kernbench_core.peers import DIRECTIONS
from kernbench_core.plugins import NetworkRegistry
from kernbench_core.process.interrupt import INTERRUPTS
from kernbench_core.topology import naming
from kernbench_core.wording import brief

_PORT = re.compile(r"[a-z0-9_]+")


def _whole(given: Any) -> Any:
    """Return a whole number, also one of numpy, as Python's int; anything else, True and False too, as it is."""
    try:
        return given if isinstance(given, bool) else operator.index(given)
    except TypeError:
        return given


class NetworkFault(ValueError):
    """The packages do not fit the shape, in words that follow the key at fault.

    `key` is `sips`, `width`, `height` or a parameter of the shape.
    """

    def __init__(self, key: str, text: str) -> None:
        super().__init__(text)
        self.key = key


class ShapeFault(ValueError):
    """A shape breaks its contract, in words that follow its name."""


@frozen
class Extent:
    """How many packages there are, their columns and rows where the shape has such, and the shape's parameters."""

    sips: int
    width: int
    height: int = 1
    params: Mapping[str, Any] = field(factory=lambda: MappingProxyType({}), hash=False)

    def place(self, sip: int) -> tuple[int, int]:
        """Return the column and row of a package."""
        return sip % self.width, sip // self.width

    def at(self, column: int, row: int) -> int:
        """Return the package at a column and row."""
        return row * self.width + column


@frozen
class ScaleUpLink:
    """A two-way link; each end is a package (None: the switch) with a port named after the peer or the direction."""

    sip: int = field(converter=_whole)
    port: str
    other_sip: int | None = field(converter=_whole)
    other_port: str = ""


@frozen
class NetworkShape:
    """One family of networks.

    `links` is called once for a machine and returns every link, each once; it raises `NetworkFault` where the packages
    do not fit. `step(extent, here, there)` returns the package that comes after `here` on the way to another, `there`,
    over one link or over the switch; it is called once for every two packages. `params` are what a configuration may
    give under `system.network.params`. A `flat` shape is a mesh of columns and rows; `closed` says whether rows and
    columns are rings, and is None where packages have no directions.
    """

    links: Callable[[Extent], Sequence[ScaleUpLink]]
    step: Callable[[Extent, int, int], int]
    params: tuple[Param, ...] = ()
    flat: bool = False
    closed: bool | None = None


def shape_faults(shape: NetworkShape) -> Iterator[str]:
    """Yield which fields of a shape are not what they must be, in words that follow its name."""
    for name, of in (("links", "the extent"), ("step", "the extent and two packages")):
        if not callable(getattr(shape, name)):
            yield f"must have as {name} a function of {of}, not {getattr(shape, name)!r}"
    params: object = shape.params
    if not isinstance(params, tuple) or not all(isinstance(param, Param) for param in params):
        yield f"must have as params a tuple of Param, not {params!r}"
    flat: object = shape.flat
    closed: object = shape.closed
    if not isinstance(flat, bool):
        yield f"must have True or False as flat, not {flat!r}"
    if closed is not None and not isinstance(closed, bool):
        yield f"must have True, False or None as closed, not {closed!r}"


def find_extent(
    name: str,
    shape: NetworkShape,
    sips: int,
    width: int | None = None,
    height: int | None = None,
    params: Mapping[str, Any] | None = None,
) -> Extent:
    """Return the columns and rows of a network; what is not given is chosen, the most square and not higher than wide.

    Raises:
        NetworkFault: the shape has no columns and rows, or those given do not hold exactly the packages.
    """
    values = MappingProxyType(dict(params or {}))
    if not shape.flat:
        key, given = ("width", width) if width is not None else ("height", height)
        if given is not None:
            raise NetworkFault(key, f"must be left out, as {name} has no columns and rows, not {given}.")
        return Extent(sips, sips, 1, values)
    if width is None and height is None:
        height = next(rows for rows in range(math.isqrt(sips), 0, -1) if sips % rows == 0)
    key, given = ("width", width) if width is not None else ("height", height)
    assert given is not None
    other = height if width is not None else None
    if sips % given or (other is not None and given * other != sips):
        shown = str(given) if other is None else f"{given} x {other}"
        raise NetworkFault(key, f"must make a full {name} of {sips} SIPs, not {shown}; leave width and height out.")
    found = (given, sips // given) if width is not None else (sips // given, given)
    return Extent(sips, *found, values)


def neighbour(shape: NetworkShape, extent: Extent, sip: int, step: tuple[int, int]) -> int | None:
    """Return the package one `step` (columns to the east, rows to the south) away over one link, None without one.

    Packages of a ring are one row.
    """
    if shape.closed is None:
        return None
    column, row = (place + moved for place, moved in zip(extent.place(sip), step, strict=True))
    if shape.closed:
        column, row = column % extent.width, row % extent.height
    elif not (0 <= column < extent.width and 0 <= row < extent.height):
        return None
    other = extent.at(column, row)
    return None if other == sip else other


def network_directions(
    shape: NetworkShape, extent: Extent, ranks: Sequence[Sequence[int]]
) -> Callable[[int, str], int | None]:
    """Give `Peers.direction` for ranks that are the packages of a scale-up network: the same place next door.

    On a ring "e" is the next rank and "w" the one before; networks without directions have no neighbours.
    """
    places: dict[int, tuple[int, int]] = {}

    def direction(pe: int, name: str) -> int | None:
        if not places:  # only when asked: few launches use directions, and each is kept
            places.update((pe, (rank, place)) for rank, pes in enumerate(ranks) for place, pe in enumerate(pes))
        rank, place = places[pe]
        other = neighbour(shape, extent, rank, DIRECTIONS[name])
        return None if other is None else ranks[other][place]

    return direction


@frozen
class LinkEnd:
    """One end of a placed link: a node on an IO chiplet of a SIP, or the switch (`sip` and `io` None)."""

    id: str
    sip: int | None = None
    io: int | None = None


@frozen
class PlacedLink:
    """The two ends of a placed link; both directions run between them."""

    first: LinkEnd
    second: LinkEnd

    @property
    def names(self) -> tuple[str, ...]:
        """What a pattern may match: the link by its ends in either order, and the ids of its ports."""
        a, b = (f"sip{end.sip}" if end.sip is not None else end.id.rpartition(".")[2] for end in self.ends)
        return f"{a}-{b}", f"{b}-{a}", *(port.id for port in self.ports)

    @property
    def ends(self) -> tuple[LinkEnd, LinkEnd]:
        """Both ends, the first first."""
        return self.first, self.second

    @property
    def ports(self) -> tuple[LinkEnd, ...]:
        """The ends that are ports of packages."""
        return tuple(end for end in self.ends if end.sip is not None)


@frozen
class ScaleUpNetwork:
    """The scale-up network of one machine: its shape, its links with their ports, and its routes."""

    topology: str
    shape: NetworkShape = field(eq=False, repr=False)
    extent: Extent
    links: tuple[PlacedLink, ...]
    _ways: Mapping[tuple[int, int], tuple[str, ...]] = field(repr=False)
    _next: tuple[tuple[int, ...], ...] = field(repr=False)

    def route(self, sip: int, other: int) -> tuple[tuple[str, ...], ...]:
        """Return how to get from one package to another: for each step the port out, any switch, and the port in."""
        return tuple(self._ways[pair] for pair in pairwise(_stops(self._next[other], sip, other)))


def build_network(name: str, shape: NetworkShape, extent: Extent, io_chiplets: int) -> ScaleUpNetwork:
    """Place the ends of every link, dealing the ports of a SIP round-robin to its IO chiplets, and find every route.

    Raises:
        NetworkFault: the packages do not fit the shape.
        ShapeFault: the shape's links are none, or a route goes along no link or in circles.
    """
    used: dict[int, int] = {}

    def port(sip: int | None, name: str) -> LinkEnd:
        if sip is None:
            return LinkEnd(naming.switch(0))
        io = used.get(sip, 0) % io_chiplets
        used[sip] = used.get(sip, 0) + 1
        return LinkEnd(naming.link(sip, io, name), sip, io)

    links = tuple(
        PlacedLink(port(link.sip, link.port), port(link.other_sip, link.other_port))
        for link in _checked_links(shape, extent)
    )
    ways = _ways(links)
    _check_directions(shape, extent, ways)
    following = tuple(_towards(shape, extent, there, ways) for there in range(extent.sips))
    return ScaleUpNetwork(name, shape, extent, links, MappingProxyType(ways), following)


def _checked_links(shape: NetworkShape, extent: Extent) -> list[ScaleUpLink]:
    """Return the links of a shape; raise ShapeFault for the first that cannot be built."""
    given: object = shape.links(extent)
    if not isinstance(given, Iterable):
        raise ShapeFault(f"must return as links a list of ScaleUpLink objects, not {given!r}")
    links, pairs, ports = list[ScaleUpLink](), set[frozenset[int | None]](), set[tuple[int, str]]()
    for link in given:
        if not isinstance(link, ScaleUpLink):
            raise ShapeFault(f"must have ScaleUpLink objects as its links, not {link!r}")
        for sip, port in _ends(link):
            if type(sip) is not int or not 0 <= sip < extent.sips:
                raise ShapeFault(f"must link packages from 0 to {extent.sips - 1}, not {sip!r} in {link}")
            if not isinstance(port, str) or not _PORT.fullmatch(port):
                raise ShapeFault(f"must name ports in lower-case letters, digits and '_', not {port!r} in {link}")
            if (sip, port) in ports:
                raise ShapeFault(f"must give each link of a package a port of its own, but sip{sip} has two {port!r}")
            ports.add((sip, port))
        pair = frozenset((link.sip, link.other_sip))
        if len(pair) < 2 or pair in pairs:
            raise ShapeFault(f"must link two packages, or a package and the switch, and once only, not as in {link}")
        pairs.add(pair)
        links.append(link)
    return links


def _ends(link: ScaleUpLink) -> Iterator[tuple[int, str]]:
    """Yield the ends of a link that are packages, with their ports."""
    yield link.sip, link.port
    if link.other_sip is not None:
        yield link.other_sip, link.other_port


def _ways(links: tuple[PlacedLink, ...]) -> dict[tuple[int, int], tuple[str, ...]]:
    """Return the nodes from each package to each that is one step away, by a link of their own before the switch."""
    found: dict[tuple[int, int], tuple[str, ...]] = {}
    up: list[LinkEnd] = []
    for link in links:
        for a, b in (link.ends, link.ends[::-1]):
            if a.sip is not None and b.sip is not None:
                found[a.sip, b.sip] = (a.id, b.id)
            elif a.sip is not None:
                up.append(a)
    for a in up:
        for b in up:
            if a.sip is not None and b.sip is not None and a.sip != b.sip:
                found.setdefault((a.sip, b.sip), (a.id, naming.switch(0), b.id))
    return found


def _check_directions(shape: NetworkShape, extent: Extent, ways: Mapping[tuple[int, int], object]) -> None:
    """Raise ShapeFault where packages that are next to each other, as `closed` says, are not joined."""
    for sip in range(extent.sips):
        for step in DIRECTIONS.values():
            other = neighbour(shape, extent, sip, step)
            if other is not None and (sip, other) not in ways:
                raise ShapeFault(
                    f"must have a link from each package to its neighbours, as closed={shape.closed} says, but none "
                    f"joins sip{sip} and sip{other}"
                )


def _towards(
    shape: NetworkShape, extent: Extent, there: int, ways: Mapping[tuple[int, int], object]
) -> tuple[int, ...]:
    """Return what comes after each package on the way to `there`; raise ShapeFault where that leads nowhere."""
    following = [there] * extent.sips
    for here in range(extent.sips):
        if here != there:
            given = shape.step(extent, here, there)
            following[here] = found = _whole(given)
            goes = f"on the way to sip{there} it goes from sip{here} to"
            if not isinstance(found, int):
                raise ShapeFault(f"must step to packages by their whole numbers, but {goes} {given!r}")
            if (here, found) not in ways:
                raise ShapeFault(f"must lead along its links, but {goes} {found}, which no link joins")
    ending = {there}
    for here in range(extent.sips):
        stops: dict[int, None] = {}
        while here not in ending and here not in stops:
            stops[here] = None
            here = following[here]
        if here not in ending:
            circle = [*list(stops)[list(stops).index(here) :], here]
            told = ", ".join(f"sip{sip}" for sip in circle)
            raise ShapeFault(f"must lead every package to every other, but on the way to sip{there} it goes {told}")
        ending.update(stops)
    return tuple(following)


def _stops(following: Sequence[int], here: int, there: int) -> Iterator[int]:
    """Yield the packages on the way from one to another, both included."""
    yield here
    while here != there:
        here = following[here]
        yield here


def build_alone(networks: NetworkRegistry, name: str, sips: int) -> ScaleUpNetwork:
    """Return the network of a shape over some packages of one IO chiplet, with the defaults of its parameters.

    Raises:
        NetworkFault: so many packages do not fit the shape, or a parameter has no default.
        UnknownName: nobody registered the shape.
        PluginError: the shape cannot be loaded, breaks its contract, or raised.
    """
    shape = open_shape(networks, name)
    values, faults = resolve_params(shape.params, {}, str)
    if faults:
        key, _, text = faults[0].partition(" ")
        raise NetworkFault(key, text)
    try:
        with redirect_stdout(sys.stderr):  # what a shape prints is no result
            return build_network(name, shape, find_extent(name, shape, sips, params=values), 1)
    except ShapeFault as fault:
        raise networks.fault(name, str(fault)) from None
    except NetworkFault as fault:
        wrong = unusual(shape, fault)
        if wrong:
            raise networks.fault(name, wrong) from fault
        raise
    except (*INTERRUPTS, MemoryError):
        raise
    except BaseException as error:
        raise networks.raised(name, error) from error


def open_shape(networks: NetworkRegistry, name: str) -> NetworkShape:
    """Return the shape of a name; raise UnknownName where there is none, PluginError where it is no usable one."""
    shape = networks.load(name)
    if not isinstance(shape, NetworkShape):
        raise networks.fault(name, f"must be a NetworkShape of kernbench_core.topology, not {brief(shape)}")
    wrong = next(shape_faults(shape), None)
    if wrong is not None:
        raise networks.fault(name, wrong)
    return shape


def unusual(shape: NetworkShape, fault: NetworkFault) -> str:
    """Return what a shape's own NetworkFault must be, in words that follow the shape's name; "" where it is so."""
    keys = ("sips", "width", "height", *(param.name for param in shape.params))
    key: object = fault.key
    if key not in keys:
        return f"must raise NetworkFault for one of the keys {', '.join(keys)}, not for {key!r}"
    if not str(fault).strip():
        return f"must say in its NetworkFault what {key} must be, not {str(fault)!r}"
    return ""
