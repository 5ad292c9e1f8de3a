"""Physical addresses: fields there and back, and bounds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_core.errors import OutOfBoundsError
from kernbench_core.topology.address import AddressMap, Location

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
    with pytest.raises(OutOfBoundsError, match="address 0x40 must name a unit of this machine"):
        MAP.decode(0x40)
