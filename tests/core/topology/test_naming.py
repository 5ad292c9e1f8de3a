"""Node names: spelled and taken apart in one module."""

from __future__ import annotations

import pytest

from kernbench_builtin.machines import naming
from kernbench_core.topology.naming import Place, cube_unit, hbm_ctrl, link, parse, pe_prefix, pe_unit, switch
from kernbench_core.topology.naming import pe as pe_name


@pytest.mark.parametrize(
    ("node_id", "spelled", "place"),
    [
        (naming.HOST, "host", Place("host")),
        (naming.io_unit(0, 1, "pcie_ep"), "sip0.io1.pcie_ep", Place("pcie_ep", sip=0, io=1)),
        (link(2, 0, "sip3"), "sip2.io0.link_sip3", Place("link_sip3", sip=2, io=0)),
        (switch(0), "fabric.switch0", Place("switch0")),
        (cube_unit(0, 3, "m_cpu"), "sip0.cube3.m_cpu", Place("m_cpu", sip=0, cube=3)),
        (naming.router(0, 3, 1, 2), "sip0.cube3.r1c2", Place("r1c2", sip=0, cube=3)),
        (hbm_ctrl(0, 3, 0), "sip0.cube3.hbm_ctrl0", Place("hbm_ctrl0", sip=0, cube=3)),
        (naming.ucie(0, 3, "n"), "sip0.cube3.ucie_n", Place("ucie_n", sip=0, cube=3)),
        (
            pe_unit(pe_name(0, 3, 5), "pe_gemm"),
            "sip0.cube3.pe5.pe_gemm",
            Place("pe_gemm", sip=0, cube=3, pe=5),
        ),
    ],
)
def test_a_name_is_spelled_as_documented_and_taken_apart_again(node_id: str, spelled: str, place: Place) -> None:
    assert node_id == spelled
    assert parse(node_id) == place


def test_only_units_of_a_pe_have_its_prefix() -> None:
    assert pe_prefix("sip0.cube3.pe5.pe_gemm") == "sip0.cube3.pe5"
    assert pe_prefix("sip0.cube3.m_cpu") is None
    assert pe_prefix("host") is None
