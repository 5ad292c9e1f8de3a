"""The checks of a shape of the scale-up network, each by a way of its own.

Nothing of how machines are compiled is used, but where a message is really sent.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from attrs import frozen

from kernbench_core.component import ComponentBase
from kernbench_core.messages import MsgBase
from kernbench_core.params import resolve_params
from kernbench_core.plugins import Plugins
from kernbench_core.testing.kit import CheckFailed, NotApplicable, kit_of
from kernbench_core.testing.rig import Harness, Probe, edge
from kernbench_core.topology.networks import (
    Extent,
    NetworkFault,
    NetworkShape,
    ScaleUpLink,
    ShapeFault,
    build_network,
    find_extent,
    shape_faults,
)

_MOST: Final = 17
#: Bytes of a message, bytes/ns and ns of a wire, and the ns that each node on the way takes.
_NBYTES, _BANDWIDTH, _LATENCY, _OVERHEAD = 4096, 64.0, 5.0, 3.0


@frozen
class ShapeUnderTest:
    """A shape by its name, the extents of 2 to 17 packages that it takes, and what it said of the others."""

    name: str
    shape: NetworkShape
    extents: tuple[Extent, ...]
    refusals: Mapping[int, Exception]


def shape_under_test(name: str, shape: object) -> ShapeUnderTest:
    """Ask a shape for its links at each number of packages; raise CheckFailed for one that cannot be asked."""
    if not isinstance(shape, NetworkShape):
        raise CheckFailed(f"its target must be a NetworkShape, not {shape!r}")
    if faults := list(shape_faults(shape)):
        raise CheckFailed("; ".join(faults))
    params, wrong = resolve_params(shape.params, {}, lambda *names: ".".join((name, *names)))
    if wrong:
        raise CheckFailed(f"it must do with the defaults of its parameters: {' '.join(wrong)}")
    extents, refusals = list[Extent](), dict[int, Exception]()
    for sips in range(2, _MOST + 1):
        try:
            extent = find_extent(name, shape, sips, params=params)
            shape.links(extent)
        except Exception as error:
            refusals[sips] = error
        else:
            extents.append(extent)
    if not extents:
        raise CheckFailed(f"it must take some number of packages from 2 to {_MOST}, and takes none: {refusals[2]}")
    return ShapeUnderTest(name, shape, tuple(extents), refusals)


def _open(plugins: Plugins, name: str) -> ShapeUnderTest:
    return shape_under_test(name, plugins.networks.load(name))


def refuses_in_words(under_test: ShapeUnderTest) -> None:
    """A number of packages that does not fit is refused by a NetworkFault whose text begins with "must"."""
    if not under_test.refusals:
        raise NotApplicable(f"it takes every number of packages from 2 to {_MOST}")
    for sips, error in under_test.refusals.items():
        if not isinstance(error, NetworkFault):
            told = f"{type(error).__name__}: {error}"
            raise CheckFailed(f"{sips} packages must be refused by a NetworkFault, not by {told}")
        if not str(error).startswith("must "):
            raise CheckFailed(
                f"what it says of {sips} packages must begin with 'must', as it follows a key, not {str(error)!r}"
            )


def says_the_same_twice(under_test: ShapeUnderTest) -> None:
    """Links, their order and steps are the same however often they are asked for."""
    for extent in under_test.extents:
        if list(under_test.shape.links(extent)) != list(under_test.shape.links(extent)):
            raise CheckFailed(f"links of {extent.sips} packages must be the same each time, in the same order")
        for here, there in _pairs(extent):
            if under_test.shape.step(extent, here, there) != under_test.shape.step(extent, here, there):
                raise CheckFailed(f"the step from {here} to {there} of {extent.sips} must be the same each time")


def joins_packages_once(under_test: ShapeUnderTest) -> None:
    """Links join packages that there are, or the switch, two ends once, over ports that are named once."""
    for extent in under_test.extents:
        ports: list[tuple[int, str]] = []
        ends: list[frozenset[int | None]] = []
        for link in under_test.shape.links(extent):
            if not isinstance(link, ScaleUpLink):
                raise CheckFailed(f"links must be ScaleUpLink objects, not {link!r}")
            for sip in (link.sip, link.other_sip):
                if sip is not None and sip not in range(extent.sips):
                    raise CheckFailed(f"{link} must join packages from 0 to {extent.sips - 1}")
            ports += [(link.sip, link.port)] + ([] if link.other_sip is None else [(link.other_sip, link.other_port)])
            ends.append(frozenset((link.sip, link.other_sip)))
            if len(ends[-1]) < 2:
                raise CheckFailed(f"{link} must join two packages")
        for what, given in (("port", ports), ("pair of ends", ends)):
            twice = [each for at, each in enumerate(given) if each in given[:at]]
            if twice:
                shown = sorted(twice[0], key=str) if isinstance(twice[0], frozenset) else twice[0]
                raise CheckFailed(f"each {what} of {extent.sips} packages must be there once, not twice as {shown}")


def steps_along_links(under_test: ShapeUnderTest) -> None:
    """Every step on the way to a package leads over a link that there is, or over the switch."""
    for extent in under_test.extents:
        joined = _joined(under_test.shape.links(extent), extent)
        for here, there in _pairs(extent):
            found = under_test.shape.step(extent, here, there)
            if found not in joined[here]:
                raise CheckFailed(
                    f"on the way from {here} to {there} of {extent.sips} packages it steps to {found!r}, which no link "
                    "joins"
                )


def reaches_every_package(under_test: ShapeUnderTest) -> None:
    """Steps come to the package that they are to lead to, and never to one twice."""
    for extent in under_test.extents:
        for here, there in _pairs(extent):
            route = _route(under_test.shape, extent, here, there)
            if route[-1] != there:
                told = ", ".join(map(str, route))
                raise CheckFailed(f"from {here} to {there} of {extent.sips} packages it goes in a circle: {told}")


def takes_shortest_routes(under_test: ShapeUnderTest) -> None:
    """No route has more hops than the shortest one over the links."""
    for extent in under_test.extents:
        joined = _joined(under_test.shape.links(extent), extent)
        for here in range(extent.sips):
            fewest = _hops(joined, here)
            for there in range(extent.sips):
                if here == there:
                    continue
                if there not in fewest:
                    raise CheckFailed(f"no links join {here} and {there} of {extent.sips} packages")
                route = _route(under_test.shape, extent, here, there)
                hops = len(route) - 1
                if route[-1] == there and hops > fewest[there]:
                    ends = f"from {here} to {there} of {extent.sips} packages"
                    raise CheckFailed(f"{ends} the fewest hops are {fewest[there]}, and it takes {hops}")


def builds_a_machine(under_test: ShapeUnderTest) -> None:
    """A machine can be built with it, whatever number of packages it takes."""
    for other in (joins_packages_once, steps_along_links, reaches_every_package):
        try:
            other(under_test)
        except CheckFailed:
            raise NotApplicable(f"{other.__name__} says why not") from None
    for extent in under_test.extents:
        try:
            build_network(under_test.name, under_test.shape, extent, 1)
        except ShapeFault as fault:
            raise CheckFailed(f"of {extent.sips} packages it {fault}") from None


def takes_the_time_of_its_hops(under_test: ShapeUnderTest) -> None:
    """A message between the packages that are farthest apart takes, hop by hop, what the wires on its way take."""
    for extent in under_test.extents:
        try:
            network = build_network(under_test.name, under_test.shape, extent, 1)
        except ShapeFault as fault:
            raise NotApplicable(f"no machine can be built with it: it {fault}") from None
        joined = _joined(under_test.shape.links(extent), extent)
        here, there, hops = max(
            ((here, there, count) for here in range(extent.sips) for there, count in _hops(joined, here).items()),
            key=lambda way: way[2],
        )
        ways = network.route(here, there)
        path = ["from", *(node for way in ways for node in way), "to"]
        nodes: dict[str, Any] = {"from": Probe, **dict.fromkeys(path[1:-1], _Hop), "to": Probe}
        edges = [edge(a, b, bandwidth=_BANDWIDTH, latency=_LATENCY) for a, b in pairwise(path)]
        rig = Harness(nodes, edges)
        rig.send(path, 0.0, _NBYTES)
        rig.run()
        over_switch = sum(len(way) == 3 for way in ways)
        between = 2 * hops + over_switch
        expected = (between + 1) * (_NBYTES / _BANDWIDTH + _LATENCY) + between * _OVERHEAD
        if [each.time for each in rig.arrivals] != [expected]:
            told = ", ".join(f"{each.time:g}" for each in rig.arrivals) or "never"
            raise CheckFailed(
                f"{_NBYTES} B from {here} to {there} of {extent.sips} packages, hops: {hops}, must take {expected:g} "
                f"ns, not {told}"
            )


KIT = kit_of(
    _open, refuses_in_words, says_the_same_twice, joins_packages_once, steps_along_links, reaches_every_package,
    takes_shortest_routes, builds_a_machine, takes_the_time_of_its_hops,
)  # fmt: skip


class _Hop(ComponentBase):
    """Take the time of a port for each message, which has come in whole."""

    def overhead(self, msg: MsgBase) -> float:
        return _OVERHEAD


def _pairs(extent: Extent) -> Iterator[tuple[int, int]]:
    return ((here, there) for here in range(extent.sips) for there in range(extent.sips) if here != there)


def _joined(links: Sequence[ScaleUpLink], extent: Extent) -> dict[int, set[int]]:
    """Return which packages are one hop from each: over a link, or over the switch."""
    joined: dict[int, set[int]] = {sip: set() for sip in range(extent.sips)}
    switched = {link.sip for link in links if link.other_sip is None}
    for link in links:
        if link.other_sip is not None:
            joined[link.sip].add(link.other_sip)
            joined[link.other_sip].add(link.sip)
    for sip in switched:
        joined[sip] |= switched - {sip}
    return joined


def _route(shape: NetworkShape, extent: Extent, here: int, there: int) -> list[int]:
    """Return the packages on the way, up to `there` or to the first that comes a second time."""
    route = [here]
    while route[-1] != there and route[-1] not in route[:-1]:
        route.append(shape.step(extent, route[-1], there))
    return route


def _hops(joined: Mapping[int, set[int]], here: int) -> dict[int, int]:
    """Return the fewest hops from a package to each that it is joined with, breadth first."""
    found, waiting = {here: 0}, deque([here])
    while waiting:
        at = waiting.popleft()
        for sip in sorted(joined[at] - found.keys()):
            found[sip] = found[at] + 1
            waiting.append(sip)
    return found
