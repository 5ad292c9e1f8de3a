"""A kind of machine that the example plug-in brings, through the command line: a chain of routers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernbench_core.cli import main
from kernbench_core.plugins import Plugins, load_plugins
from tests.conftest import SOURCE_TREE

REPO = Path(__file__).parents[1]
FILE = str(REPO / "plugins_example/kernbench_example/chain.yaml")
CHAIN = ("--topology", FILE)


@pytest.fixture(scope="module")
def plugins() -> Iterator[Plugins]:
    """Load the plug-ins of this tree, the example among them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(REPO / "plugins_example")
        yield load_plugins([*SOURCE_TREE, "example = kernbench_example.plugin"], installed=False)


def test_it_is_listed_with_who_brings_it(plugins: Plugins, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topology", "machines", "--json"], plugins) == 0
    assert json.loads(capsys.readouterr().out)["machines"][0] == {
        "name": "chain", "sentence": "Routers in a row, to drive traffic over.",
        "provider": "kernbench_example (source tree)",
    }  # fmt: skip


def test_it_is_drawn_and_checked(plugins: Plugins, capsys: pytest.CaptureFixture[str]) -> None:
    """Of n routers: 2n nodes, 2 (n - 1) wires between routers and 2n to their interfaces."""
    assert main(["topology", "show", FILE, "--set", "chain.routers=5"], plugins) == 0
    assert capsys.readouterr().out.splitlines() == [
        "mesh      1 x 5 routers, mesh.r0c0 to mesh.r0c4, each with a network interface",
        "",
        "nodes     10",
        "     5 interface  builtin.forwarding",
        "     5 router     builtin.forwarding",
        "",
        "edges     18, one way each",
        "    10 attach     32 GB/s                1 ns",
        "     8 noc        32 GB/s                1 ns",
    ]
    assert main(["topology", "validate", FILE], plugins) == 0
    assert capsys.readouterr().out == f"{FILE}: valid; 16 nodes, 30 edges, 0 PEs.\n"


def test_traffic_takes_the_closed_form_and_ends_at_the_cut_in_the_middle(
    plugins: Plugins, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of n routers, n/2 nodes send half of their packets over the middle link: the ceiling is 4/n, 4/8 of the capacity.

    A packet alone is an interface (4) and a wire (1), for each hop a router (8) and a wire (1), the last router (8), a
    wire (1), the other interface (4), and a flit (1).
    """
    how = ("--traffic", "uniform", "--load", "0.001", "--warmup", "0", "--measure", "4000", "--json")
    assert main(["probe", *CHAIN, *how], plugins) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["ceiling"] == {"load": pytest.approx(4 / 8), "wire": "mesh.r0c3->mesh.r0c4"}
    (point,) = found["loads"]
    assert point["packets"] > 20
    assert point["latency_cycles"]["mean"] == pytest.approx(19 + 9 * point["mean_hops"])


def test_its_vendor_may_stand_before_its_section(
    plugins: Plugins, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As the manual writes it: the same machine, and faults of its keys stand where they were written."""
    file = tmp_path / "chain.yaml"
    file.write_text(Path(FILE).read_text().replace("\nchain:", '\n"example:chain":'))
    assert main(["topology", "validate", str(file)], plugins) == 0
    assert capsys.readouterr().out == f"{file}: valid; 16 nodes, 30 edges, 0 PEs.\n"
    file.write_text(file.read_text().replace("routers: 8", "routers: 1"))
    assert main(["topology", "validate", str(file)], plugins) == 3
    assert f"{file}:4:3: chain.routers must be an integer from 2 to 64, not 1." in capsys.readouterr().err
    assert main(["topology", "validate", str(file), "--set", "mesh.rows=4"], plugins) == 3
    assert f"{file}:3:1: chain must be the only machine, not beside mesh; drop" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("args", "code", "sentence"),
    [
        (["topology", "validate", FILE, "--set", "chain.routers=1"], 3,
         "--set chain.routers=1: chain.routers must be an integer from 2 to 64, not 1."),
        (["topology", "validate", FILE, "--set", "chain.routes=9", "--set", "components.router.params.overheat=1 ns"],
         3, "--set chain.routes=9: chain.routes must be a known key. Did you mean 'routers'?\n--set "
         "components.router.params.overheat=1 ns: components.router.params.overheat must be a declared parameter. Did "
         "you mean 'overhead'?"),
        (["topology", "validate", "tiny", "--set", "chain.routers=4"], 3,
         "--set chain.routers=4: chain must be the only machine, not beside system, host, sip, cube, pe; drop them, "
         "and a 'base' that adds them, or drop chain."),
        (["topology", "validate", "mesh", "--set", "chain.routers=4"], 3,
         "--set chain.routers=4: chain must be the only machine, not beside mesh; drop them, and a 'base' that adds "
         "them, or drop chain."),
        (["topology", "show", FILE, "--view", "pe"], 2,
         "error: view must be system for a chain of routers on its own, which has no packages or PEs, not 'pe'."),
        (["run", "gemm", *CHAIN], 3,
         f"{FILE}:3:1: chain is a chain of routers on its own, which has no PEs to run a bench on; drive it with "
         "'kernbench probe --traffic', or choose another --topology."),
        (["ccl", "all_reduce", *CHAIN], 3,
         f"{FILE}:3:1: chain is a chain of routers on its own, which has no PEs to run a collective on; drive it with "
         "'kernbench probe --traffic', or choose another --topology."),
        (["probe", *CHAIN], 3,
         "topology must be a machine with PEs and memories for this, not a chain of routers on its own; drive it with "
         "'kernbench probe --traffic', or choose another --topology."),
    ],
)  # fmt: skip
def test_what_does_not_go_is_told_in_a_sentence(
    plugins: Plugins, capsys: pytest.CaptureFixture[str], args: list[str], code: int, sentence: str
) -> None:
    assert main(args, plugins) == code
    assert capsys.readouterr().err == f"{sentence}\n"


def test_the_page_shows_the_file() -> None:
    """docs/plugins.md has the whole of it, but for its first lines."""
    text = (REPO / "plugins_example/kernbench_example/chain.py").read_text(encoding="utf-8")
    shown = text[text.index("from attrs") :]
    assert shown in (REPO / "docs/plugins.md").read_text(encoding="utf-8")
