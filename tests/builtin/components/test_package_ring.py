"""Rings of packages whose links and NoCs all have virtual channels: no circle of waits closes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from kernbench_builtin.components.flits.package_ring import PackageRing
from kernbench_builtin.components.flits.subpaths import Subpaths
from kernbench_builtin.components.router_vc import RouterVc
from kernbench_core.errors import ConfigError
from kernbench_core.graph import Edge
from kernbench_core.testing import Harness, Model, Probe, edge, line, place

pytestmark = pytest.mark.filterwarnings("ignore:.*raise buffer_flits to")  # small buffers are what is tested

FLIT, RATE = 32, 32.0


def ring_of_packages(count: int, **params: Any) -> Harness:
    """Return packages in a ring, each a NoC with a probe and two ports of links, all with channels but the probes."""
    nodes: dict[str, Model] = {}
    wires: list[Edge] = []
    for sip in range(count):
        noc, ends = f"sip{sip}.io0.noc", [(sip - 1) % count, (sip + 1) % count]
        nodes |= {f"sip{sip}.pe": Probe, noc: place(RouterVc, overhead="2 ns", **params)}
        for other in ends:
            nodes[f"sip{sip}.io0.link_sip{other}"] = place(RouterVc, overhead="2 ns", **params)
            wires += line(noc, f"sip{sip}.io0.link_sip{other}", bandwidth=RATE)
        wires += line(f"sip{sip}.pe", noc, bandwidth=RATE)
        wires.append(edge(f"sip{sip}.io0.link_sip{ends[0]}", f"sip{ends[0]}.io0.link_sip{sip}", bandwidth=RATE))
        wires.append(edge(f"sip{sip}.io0.link_sip{ends[1]}", f"sip{ends[1]}.io0.link_sip{sip}", bandwidth=RATE))
    back = [edge(b.dst, b.src, bandwidth=RATE) for b in wires if "link" not in b.src or "link" not in b.dst]
    return Harness(nodes, {(each.src, each.dst): each for each in (*wires, *back)}.values())


def around(count: int, source: int, links: int) -> tuple[str, ...]:
    """Return the way from a package over so many links, backwards where that is negative."""
    path, at, step = [f"sip{source}.pe", f"sip{source}.io0.noc"], source, 1 if links > 0 else -1
    for _ in range(abs(links)):
        after = (at + step) % count
        path += [f"sip{at}.io0.link_sip{after}", f"sip{after}.io0.link_sip{at}", f"sip{after}.io0.noc"]
        at = after
    return (*path, f"sip{at}.pe")


def arrived(count: int, vcs: int, ways: Sequence[tuple[str, ...]]) -> int:
    """Send three long messages each way at once, over buffers that hold next to nothing, and count what comes."""
    machine = ring_of_packages(count, vcs=vcs, buffer_flits=1)
    for way in 3 * list(ways):
        machine.send(way, 0, 9 * FLIT)
    return len(machine.run().arrivals)


@pytest.mark.parametrize("count", [5, 8])
@pytest.mark.parametrize("vcs", [2, 3])
def test_no_messages_of_a_ring_of_packages_wait_in_a_circle(count: int, vcs: int) -> None:
    """Over up to half of the ring, both ways around."""
    far = [sign * links for links in range(1, count // 2 + 1) for sign in (1, -1)]
    ways = [around(count, sip, links) for sip in range(count) for links in far]
    assert arrived(count, vcs, ways) == 3 * len(ways)


def test_without_classes_a_ring_of_packages_is_refused_and_would_stand_still(monkeypatch: pytest.MonkeyPatch) -> None:
    ways = [around(7, sip, 3) for sip in range(7)]
    monkeypatch.setattr(PackageRing, "classes", lambda ring, nodes: [None] * (len(nodes) - 1))
    with pytest.raises(ConfigError, match="must not wait for each other in a cycle"):
        arrived(7, 2, ways)
    monkeypatch.setattr(Subpaths, "_check", lambda *_: None)
    assert arrived(7, 2, ways) < 3 * len(ways)


def test_classes_are_for_what_may_pass_through_a_package_alone() -> None:
    """In a ring of four no ways over two links close a circle; where NoCs take everything nothing passes through."""

    def outputs(count: int, nocs: bool) -> dict[str, dict[str, None]]:
        graph = ring_of_packages(count).hardware
        routers = {name for name, model in graph.components.items() if isinstance(model, RouterVc)}
        kept = {name for name in routers if nocs or "noc" not in name}
        return {name: dict.fromkeys(graph.components[name].out_ports) for name in sorted(kept)}

    for count, nocs, has in ((5, True, True), (4, True, False), (5, False, False)):
        ring = PackageRing(outputs(count, nocs))
        assert ring.has_classes("sip0.io0.noc", "sip0.io0.link_sip1") is has
        assert ring.has_classes("sip0.pe", "sip0.io0.noc") is False
