"""Pictures of the scale-up network: every package once, every line a link."""

from __future__ import annotations

import pytest

from kernbench_builtin.machines.cli.network_view import draw_network
from kernbench_core.topology.design import design_of
from tests.core.small_machine import machine


def picture(*sets: str) -> str:
    graph = machine(sets=sets)
    assert design_of(graph).network is not None
    return "\n".join(draw_network(graph, design_of(graph).network))


def test_a_single_package_has_no_picture() -> None:
    assert picture("system.sips=1") == ""


@pytest.mark.parametrize(
    ("topology", "sips", "expected"),
    [
        (
            "mesh_2d",
            6,
            "scale-up  mesh_2d 3 x 2, 7 links, 10 GB/s, 100 ns each way\n\n"
            "  sip0 ══ sip1 ══ sip2\n"
            "   ║       ║       ║  \n"
            "  sip3 ══ sip4 ══ sip5",
        ),
        (
            "torus_2d",
            6,
            "scale-up  torus_2d 3 x 2, 9 links, 10 GB/s, 100 ns each way\n\n"
            "  ═ sip0 ══ sip1 ══ sip2 ═\n"
            "     ║       ║       ║  \n"
            "  ═ sip3 ══ sip4 ══ sip5 ═\n\n"
            "  a line that leaves on one side comes in on the opposite one",
        ),
        (
            "fully_connected",
            9,
            "scale-up  fully_connected, 36 links, 10 GB/s, 100 ns each way\n\n"
            "  sip0  sip1  sip2  sip3  sip4  sip5  sip6  sip7\n  sip8\n\n"
            "  each is linked with every other",
        ),
        (
            "switch",
            5,
            "scale-up  switch, 5 links, 10 GB/s, 100 ns each way\n\n"
            "  sip0  sip1  sip2  sip3  sip4\n"
            "  ═╨═════╨═════╨═════╨═════╨══ fabric.switch0",
        ),
        (
            "ring",
            9,
            "scale-up  ring, 9 links, 10 GB/s, 100 ns each way\n\n"
            "  sip0 ══ sip1 ══ sip2 ══ sip3 ══ sip4 ══ sip5 ══ sip6 ══ sip7 ══\n  sip8 ══ sip0",
        ),
    ],
)
def test_a_shape_is_drawn(topology: str, sips: int, expected: str) -> None:
    assert picture(f"system.network.topology={topology}", f"system.sips={sips}") == expected


@pytest.mark.parametrize("topology", ["ring", "mesh_2d", "torus_2d", "fully_connected", "switch"])
@pytest.mark.parametrize("sips", [2, 3, 4, 7, 8, 13, 16])
def test_a_picture_fits_a_terminal_and_shows_every_package(topology: str, sips: int) -> None:
    text = picture(f"system.network.topology={topology}", f"system.sips={sips}", "sip.mesh={width: 1, height: 1}")
    assert max(map(len, text.splitlines())) <= 80
    for sip in range(sips):
        assert f"sip{sip}" in text.replace("\n", " ").replace(".", " ").split()


def test_links_that_differ_are_listed() -> None:
    text = picture("system.sips=6", "system.network.links=[{match: sip0-sip1, bandwidth: 5 GB/s}]")
    assert "scale-up  ring, 6 links, 2 sorts of links\n" in text
    assert "  sip0.io0.link_sip1 ══ 5 GB/s, 100 ns ══ sip1.io0.link_sip0\n" in text
    assert text.count("10 GB/s") == 5
