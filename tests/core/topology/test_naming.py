"""Node names: spelled and taken apart in one module."""

from __future__ import annotations

import pytest

from kernbench_core.topology import naming
from kernbench_core.topology.naming import Place


@pytest.mark.parametrize(
    ("node_id", "spelled", "place"),
    [
        (naming.HOST, "host", Place("host")),
        (naming.io_unit(0, 1, "pcie_ep"), "sip0.io1.pcie_ep", Place("pcie_ep", sip=0, io=1)),
        (naming.link(2, 0, "sip3"), "sip2.io0.link_sip3", Place("link_sip3", sip=2, io=0)),
        (naming.switch(0), "fabric.switch0", Place("switch0")),
        (naming.cube_unit(0, 3, "m_cpu"), "sip0.cube3.m_cpu", Place("m_cpu", sip=0, cube=3)),
        (naming.router(0, 3, 1, 2), "sip0.cube3.r1c2", Place("r1c2", sip=0, cube=3)),
        (naming.hbm_ctrl(0, 3, 0), "sip0.cube3.hbm_ctrl0", Place("hbm_ctrl0", sip=0, cube=3)),
        (naming.ucie(0, 3, "n"), "sip0.cube3.ucie_n", Place("ucie_n", sip=0, cube=3)),
        (
            naming.pe_unit(naming.pe(0, 3, 5), "pe_gemm"),
            "sip0.cube3.pe5.pe_gemm",
            Place("pe_gemm", sip=0, cube=3, pe=5),
        ),
    ],
)
def test_a_name_is_spelled_as_documented_and_taken_apart_again(node_id: str, spelled: str, place: Place) -> None:
    assert node_id == spelled
    assert naming.parse(node_id) == place


def test_only_units_of_a_pe_have_its_prefix() -> None:
    assert naming.pe_prefix("sip0.cube3.pe5.pe_gemm") == "sip0.cube3.pe5"
    assert naming.pe_prefix("sip0.cube3.m_cpu") is None
    assert naming.pe_prefix("host") is None
