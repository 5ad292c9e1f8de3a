"""Shapes of the scale-up network: each is one function that lists the links between packages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from attrs import frozen

from kernbench_core import naming


@frozen
class ScaleUpLink:
    """A two-way link between two packages; each end names its port after the peer or the direction."""

    sip: int
    port: str
    other_sip: int
    other_port: str


def ring(sips: int) -> list[ScaleUpLink]:
    """Join each SIP with its two neighbours; two SIPs share one pair of links, a single one has none."""
    pairs = [(sip, (sip + 1) % sips) for sip in range(sips)]
    if sips <= 2:
        pairs = pairs[: sips - 1]
    return [ScaleUpLink(a, f"sip{b}", b, f"sip{a}") for a, b in pairs]


NETWORKS: Mapping[str, Callable[[int], list[ScaleUpLink]]] = MappingProxyType({"ring": ring})
"""Every shape that `system.network.topology` may name."""


@frozen
class Port:
    """One end of a placed link: a node on an IO chiplet of a SIP."""

    sip: int
    io: int
    id: str


@frozen
class PortPair:
    """The two port nodes of a placed link; both directions run between them."""

    first: Port
    second: Port


def assign_ports(links: list[ScaleUpLink], io_chiplets: int) -> tuple[PortPair, ...]:
    """Place the ends of every link, dealing the ports of a SIP round-robin to its IO chiplets."""
    used: dict[int, int] = {}

    def port(sip: int, name: str) -> Port:
        io = used.get(sip, 0) % io_chiplets
        used[sip] = used.get(sip, 0) + 1
        return Port(sip, io, naming.link(sip, io, name))

    return tuple(PortPair(port(link.sip, link.port), port(link.other_sip, link.other_port)) for link in links)
