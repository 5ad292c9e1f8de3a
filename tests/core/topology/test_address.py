"""Physical addresses: fields there and back, bounds, and the node that owns each."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_core.errors import OutOfBoundsError, RoutingError
from kernbench_core.graph import Graph
from kernbench_core.topology.address import AddressMap, AddressResolver, Location
from tests.core.small_machine import machine

MAP = AddressMap(sips=512, cubes=256, pes=256, hbm_bytes=2**36, sram_bytes=2**20, tcm_bytes=2**21)


@given(
    st.integers(0, 511),
    st.integers(0, 255),
    st.one_of(
        st.tuples(st.integers(0, 255).map("hbm{}".format), st.integers(0, 2**36 - 1)),
        st.tuples(st.just("sram"), st.integers(0, 2**20 - 1)),
        st.tuples(st.integers(0, 255).map("tcm{}".format), st.integers(0, 2**21 - 1)),
    ),
)
def test_an_address_says_where_it_is(sip: int, cube: int, unit: tuple[str, int]) -> None:
    address = MAP.encode(sip, cube, *unit)
    assert 0 < address < 2**63
    assert MAP.decode(address) == Location(sip, cube, *unit)
    assert unit[0].startswith(MAP.space_of(address))


def test_neighbouring_bytes_have_neighbouring_addresses() -> None:
    assert MAP.encode(1, 2, "hbm3", 100) + 28 == MAP.encode(1, 2, "hbm3", 128)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        (
            (512, 0, "hbm0", 0),
            "address (512, 0, 'hbm0', 0) must name a unit of this machine "
            "(512 SIPs x 256 cubes x 256 slices); check the pointer arithmetic",
        ),
        (
            (0, 0, "sram", 2**20),
            "address (0, 0, 'sram', 1048576) must lie inside its sram unit of 1 MiB; check the pointer arithmetic",
        ),
        ((0, 0, "hbm", 0), "unit of an address must be 'hbm<i>', 'sram' or 'tcm<i>', not 'hbm'"),
    ],
)
def test_an_address_outside_the_machine_is_refused(fields: tuple[int, int, str, int], sentence: str) -> None:
    with pytest.raises(OutOfBoundsError) as caught:
        MAP.encode(*fields)
    assert str(caught.value) == sentence


def test_small_integers_are_no_addresses() -> None:
    with pytest.raises(OutOfBoundsError) as caught:
        MAP.space_of(0x40)
    assert str(caught.value) == "address 0x40 must lie in hbm, sram or tcm, but it has no space field"
    with pytest.raises(OutOfBoundsError, match="address 0x40 must name a unit of this machine"):
        MAP.decode(0x40)


@pytest.fixture(scope="module")
def graph() -> Graph:
    return machine(sets=["system.sips=2", "sip.io_chiplets=2"])


def test_the_owner_of_every_unit_is_a_node(graph: Graph) -> None:
    resolver, design = AddressResolver(graph), graph.checked_design
    for site in design.pes:
        place, where = design.address_map, (site.sip, site.cube)
        assert resolver.resolve(place.encode(*where, f"hbm{site.pe}", 12)) == site.hbm_ctrl
        assert resolver.resolve(place.encode(*where, f"tcm{site.pe}")) == f"{site.prefix}.pe_tcm"
        assert resolver.resolve(place.encode(*where, "sram")) == f"sip{site.sip}.cube{site.cube}.sram"
        assert {site.hbm_ctrl, f"{site.prefix}.pe_tcm", site.m_cpu, site.io_cpu, site.pe_cpu} <= graph.nodes.keys()


def test_the_last_byte_of_a_slice_resolves_and_the_next_does_not(graph: Graph) -> None:
    resolver, design = AddressResolver(graph), graph.checked_design
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
