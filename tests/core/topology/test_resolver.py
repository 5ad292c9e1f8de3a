"""The node that owns a physical address, and the nodes where requests enter."""

from __future__ import annotations

import pytest

from kernbench_core.errors import OutOfBoundsError, RoutingError
from kernbench_core.graph import Graph
from kernbench_core.topology.design import design_of
from kernbench_core.topology.resolver import AddressResolver
from tests.core.small_machine import machine


@pytest.fixture(scope="module")
def graph() -> Graph:
    return machine(sets=["system.sips=2", "sip.io_chiplets=2"])


def test_the_owner_of_every_unit_is_a_node(graph: Graph) -> None:
    resolver, design = AddressResolver(graph), design_of(graph)
    for site in design.pes:
        place, where = design.address_map, (site.sip, site.cube)
        assert resolver.resolve(place.encode(*where, f"hbm{site.pe}", 12)) == site.hbm_ctrl
        assert resolver.resolve(place.encode(*where, f"tcm{site.pe}")) == f"{site.prefix}.pe_tcm"
        assert resolver.resolve(place.encode(*where, "sram")) == f"sip{site.sip}.cube{site.cube}.sram"
        assert {site.hbm_ctrl, f"{site.prefix}.pe_tcm", site.m_cpu, site.io_cpu, site.pe_cpu} <= graph.nodes.keys()


def test_the_last_byte_of_a_slice_resolves_and_the_next_does_not(graph: Graph) -> None:
    resolver, design = AddressResolver(graph), design_of(graph)
    last = design.address_map.encode(0, 0, "hbm0", design.hbm_slice_bytes - 1)
    assert resolver.resolve(last) == "sip0.cube0.hbm_ctrl0"
    with pytest.raises(OutOfBoundsError) as caught:
        resolver.resolve(last + 1)
    assert str(caught.value) == (
        f"address {hex(last + 1)} must lie inside its hbm unit of 1 MiB; check the pointer arithmetic"
    )


def test_requests_find_their_entry_nodes(graph: Graph) -> None:
    resolver = AddressResolver(graph)
    assert resolver.find_m_cpu(1, 3) == "sip1.cube3.m_cpu"
    assert resolver.find_pcie_ep(1) == "sip1.io0.pcie_ep"
    assert resolver.find_io_cpu(0) == "sip0.io0.io_cpu"
    assert resolver.find_all_pcie_eps() == (
        "sip0.io0.pcie_ep", "sip0.io1.pcie_ep", "sip1.io0.pcie_ep", "sip1.io1.pcie_ep",
    )  # fmt: skip
    with pytest.raises(RoutingError) as caught:
        resolver.find_m_cpu(0, 9)
    assert str(caught.value) == "cube 9 of SIP 0 must have a m_cpu, but the machine has no such node"
