"""Pictures: what they say is what the graph holds."""

from __future__ import annotations

from collections import Counter

import pytest

from kernbench_builtin.machines.cli.topology_view import VIEWS, show
from kernbench_core.errors import UsageError
from tests.commands import Run
from tests.core.small_machine import machine

CUBE = """\
sip0.cube0   3 x 3 routers, 1 place under HBM

   r0c0    ──   r0c1    ──   r0c2
    pe0                       pe1
 hbm_ctrl0                 hbm_ctrl1
 ucie n w                  ucie e n
     │                         │
   r1c0      ░░░░░░░░░░░     r1c2
   m_cpu     ░░░ HBM ░░░     sram
             ░░░░░░░░░░░
             ░░░░░░░░░░░
     │                         │
   r2c0    ──   r2c1    ──   r2c2
    pe2                       pe3
 hbm_ctrl2                 hbm_ctrl3
 ucie s w                  ucie e s
"""


def test_the_cube_view_shows_routers_and_what_hangs_on_them() -> None:
    assert show(machine(), "cube").startswith(CUBE)


def test_the_sip_view_shows_cubes_and_their_joins() -> None:
    picture = show(machine(sets=["system.sips=2"]), "sip")
    assert "io0: io_cpu io_noc io_ucie link_sip1 pcie_ep" in picture
    assert (
        "│    cube0     │══│    cube1     │\n"
        "│ 4 PEs, 4 MiB │══│ 4 PEs, 4 MiB │\n"
        "└──────╥───────┘  └──────╥───────┘\n"
        "┌──────╨───────┐  ┌──────╨───────┐\n"
        "│    cube2     │══│    cube3     │\n"
        "│ 4 PEs, 4 MiB │══│ 4 PEs, 4 MiB │\n"
        "└──────────────┘  └──────────────┘\n"
    ) in picture
    assert "io0 north of the mesh; its UCIe joins cube0, cube1" in picture


def test_the_system_view_counts_what_the_graph_holds() -> None:
    graph = machine(sets=["system.sips=3", "system.network.bandwidth=60 GB/s"])
    picture = show(graph)
    assert picture.startswith("machine   3 SIPs x 4 cubes x 4 PEs = 48 PEs, 48 MiB HBM\n")
    assert f"nodes     {len(graph.nodes)}\n" in picture
    assert f"edges     {len(graph.edges)}, one way each\n" in picture
    assert "scale-up  ring, 3 links, 60 GB/s, 100 ns each way\n\n  sip0 ══ sip1 ══ sip2 ══ sip0\n" in picture
    assert "  sip0.io0.link_sip1 ══ 60 GB/s, 100 ns ══ sip1.io0.link_sip0\n" in picture
    assert picture.endswith(f"warnings\n  {graph.warnings[0]}")


def test_many_alike_pcie_links_are_drawn_as_one() -> None:
    assert "└── 24 x PCIe 10 GB/s, 50 ns ── sip0.io0 … sip11.io1\n" in show(
        machine(sets=["system.sips=12", "sip.io_chiplets=2", "sip.mesh={width: 1, height: 1}"])
    )
    assert "├── PCIe 10 GB/s, 50 ns ── sip0.io0\n" in show(machine(sets=["system.sips=4"]))


def test_the_pe_view_lists_units_and_every_wire_once() -> None:
    graph = machine(sets=["pe.units={pe_sfu: {impl: test.sfu}}"])
    picture = show(graph, "pe")
    assert "  pe_sfu          test.sfu\n" in picture
    ends = [line.split(" ── ")[2].split(", ") for line in picture.splitlines() if " ── " in line]
    touching = [pair for pair in graph.edges if "sip0.cube0.pe0." in pair[0]]
    inside = [pair for pair in touching if "sip0.cube0.pe0." in pair[1]]
    assert sum(map(len, ends)) == len(inside) // 2 + (len(touching) - len(inside))


def test_the_parameters_of_a_pe_are_those_of_its_machine(inside: Run) -> None:
    """With what a configuration sets, and units; of tables how long they are."""
    changed = ["--set", "components.hbm_ctrl.params.channel_bandwidth=51.2 GB/s"]
    printed = inside("topology", "show", "tiny", "--view", "pe", *changed).stdout
    lines = printed.partition("\nparameters\n")[2].splitlines()
    told = "channel_bandwidth 51.2 GB/s", "register_file 256 KiB", "pipelined true", "clock 1 GHz", "rates (14 entries)"
    assert [each for each in told if each not in " ".join(lines)] == []
    kinds = [line.split(":")[0].strip() for line in lines if line.startswith("  ") and line[2] != " "]
    assert kinds == [*sorted(kinds[:-1]), "hbm_ctrl"] and len(kinds) == 10


def test_an_unknown_view_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        show(machine(), "rack")
    assert str(caught.value) == "view must be one of system, sip, cube, pe, not 'rack'."
    assert list(VIEWS) == ["system", "sip", "cube", "pe"]


@pytest.mark.parametrize("view", VIEWS)
def test_no_picture_has_trailing_blanks(view: str) -> None:
    assert all(line == line.rstrip() for line in show(machine(), view).splitlines())


def test_counts_of_nodes_fit_into_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """No name is broken, and none is lost."""
    monkeypatch.setenv("COLUMNS", "80")
    graph = machine()
    lines = show(graph).splitlines()
    begin = lines.index(f"nodes     {len(graph.nodes)}") + 1
    told = lines[begin : lines.index("", begin)]
    words = " ".join(told).split()
    assert max(map(len, told)) <= 80
    assert dict(zip(words[1::2], map(int, words[::2]), strict=True)) == Counter(n.kind for n in graph.nodes.values())
