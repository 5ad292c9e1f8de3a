"""A shape of the scale-up network that the example plug-in brings, through the command line: a hypercube."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

from kernbench_ccl.catalogue import Catalogue, read_file
from kernbench_ccl.prove import Wanted, check
from kernbench_core.cli import main
from kernbench_core.errors import PluginError
from kernbench_core.plugins import Plugins, load_plugins
from kernbench_core.runs.bench_run import configure
from kernbench_core.topology.compilation import compile_topology
from kernbench_core.topology.design import design_of
from tests.conftest import SOURCE_TREE

REPO = Path(__file__).parents[1]
NAME = "example.hypercube"


@pytest.fixture(scope="module")
def plugins() -> Iterator[Plugins]:
    """Load the plug-ins of this tree, the example among them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(REPO / "plugins_example")
        yield load_plugins([*SOURCE_TREE, "example = kernbench_example.plugin"], installed=False)


def cube(sips: int) -> list[str]:
    return ["--set", f"system.sips={sips}", "--set", f"system.network.topology={NAME}"]


def printed(plugins: Plugins, capsys: pytest.CaptureFixture[str], *args: str) -> Any:
    """Run a command that succeeds, and return the object that it prints."""
    assert main(args, plugins) == 0
    return json.loads(capsys.readouterr().out)


def distances(sips: int) -> dict[int, dict[int, int]]:
    """Return the links between every two corners of networkx's hypercube, which are pairs of numbers in binary."""
    bits = sips.bit_length() - 1
    found = dict(nx.all_pairs_shortest_path_length(nx.hypercube_graph(bits)))
    places = {corner: corner if bits > 1 else (corner,) for corner in found}
    number = {corner: sum(bit << place for place, bit in enumerate(places[corner])) for corner in found}
    return {number[a]: {number[b]: far for b, far in lengths.items()} for a, lengths in found.items()}


@pytest.mark.parametrize("sips", [2, 4, 8, 16])
def test_every_route_is_as_long_as_the_shortest_of_networkx(plugins: Plugins, sips: int) -> None:
    """It mends the lowest bit that differs first, over ports that are named after the bit."""
    sets = cube(sips)[1::2]
    network = design_of(
        compile_topology(configure(plugins, "tiny", sets=sets), plugins)
    ).network
    assert network is not None
    far = distances(sips)
    for a, b in product(range(sips), repeat=2):
        route = network.route(a, b)
        assert len(route) == far[a][b]
        bits = [bit for bit in range(4) if (a ^ b) >> bit & 1]
        assert [re.findall(r"link_d(\d)", " ".join(crossing)) for crossing in route] == [[str(bit)] * 2 for bit in bits]


@pytest.mark.parametrize(
    ("sips", "others"),
    [
        (8, (6,)),
        (2, (0,)),
        *((n, tuple(range(n))) for n in (4, 8, 16)),
    ],
)
def test_a_transfer_crosses_as_many_links_as_networkx_counts(
    plugins: Plugins, capsys: pytest.CaptureFixture[str], sips: int, others: tuple[int, ...]
) -> None:
    """From one package to others, as `kernbench probe` has it."""
    far = distances(sips)[1]
    for other in set(others) - {1}:
        ends = ("--from", "sip1.cube0.pe0", "--to", f"sip{other}.cube0.hbm_ctrl0")
        found = printed(plugins, capsys, "probe", "--topology", "tiny", *cube(sips), *ends, "--json")
        (transfer,) = found["transfers"]
        assert sum(".link_" in node for node in transfer["path"]) == 2 * far[other]
        assert transfer["simulated_ns"] >= transfer["bound_ns"] >= far[other] * 500


def test_the_picture_lists_the_links_of_each_package(plugins: Plugins, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topology", "show", "tiny", *cube(4)], plugins) == 0
    shown = capsys.readouterr().out
    assert (
        "scale-up  example.hypercube, 4 links, 100 GB/s, 500 ns each way\n\n"
        "  sip0 ══ sip1, sip2\n  sip1 ══ sip0, sip3\n  sip2 ══ sip0, sip3\n  sip3 ══ sip1, sip2\n"
    ) in shown


def test_a_number_of_packages_that_is_no_power_of_two_is_told(
    plugins: Plugins, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["topology", "validate", "tiny", *cube(6)], plugins) == 3
    assert capsys.readouterr().err == (
        "--set system.sips=6: system.sips must be a power of two for a hypercube, not 6; give 4 or 8 packages.\n"
    )


def test_a_bench_computes_over_it(plugins: Plugins, capsys: pytest.CaptureFixture[str]) -> None:
    found = printed(plugins, capsys, "run", "vector-add", "--topology", "tiny", "--verify-data", *cube(8), "--json")
    assert found["verified"] is True
    assert {"plugin": "example", "distribution": "kernbench_example (source tree)", "version": ""} in found["manifest"][
        "plugins"
    ]


def test_a_collective_is_right_and_halving_doubling_takes_its_closed_form(
    plugins: Plugins, capsys: pytest.CaptureFixture[str]
) -> None:
    """Partners are neighbours: 2 log2(N) a + 2 (N - 1)/N S/b, by whole steps and where nothing but links takes time.

    Nothing is below the latency to the far corner.
    """
    how = ("--idealised", "--pipeline", "off", "--algo", "halving_doubling", "-b", "64K", "-e", "64K", "-j", "1")
    table = printed(plugins, capsys, "ccl", "all_reduce", "--topology", "tiny", "--ranks", "8", "--network", NAME, *how,
                    "--json")  # fmt: skip
    (row,) = table["rows"]
    assert table["wrong"] == table["hazards"] == 0
    assert row["formula_ns"] == pytest.approx(6 * 500 + 2 * 7 / 8 * 65536 / 100)
    assert row["out_of_place"]["time_ns"] == pytest.approx(row["formula_ns"], rel=0.01)
    assert row["bound_ns"] == pytest.approx(3 * 500)


def test_an_algorithm_is_proved_on_it_when_it_is_named(plugins: Plugins, capsys: pytest.CaptureFixture[str]) -> None:
    """Where the packages do not fit, the sentence of the shape says why not."""
    args = ("ccl.ring_all_reduce", "--topology", NAME, "--ranks", "3,4", "--pes", "1", "--count", "5", "-j", "1")
    (found,) = printed(plugins, capsys, "ccl", "check", *args, "--json")["topologies"]
    assert found["topology"] == NAME
    refused, proved = found["ranks"]
    assert refused["refusal"] == "sips must be a power of two for a hypercube, not 3; give 2 or 4 packages."
    assert (proved["ranks"], proved["proved"], proved["cases"] > 0) == (4, True, True)
    assert main(["ccl", "check", "mesh", "--topology", NAME, "--ranks", "4"], plugins) == 2
    assert capsys.readouterr().err == (
        "error: option --topology must be one of mesh_2d, not 'example.hypercube'; choose one of these.\n"
    )


def test_an_algorithm_may_name_it_among_the_networks_that_it_runs_on(
    plugins: Plugins, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The star of the example, which is proved there by default; where nobody registers the network it is refused."""
    source = (REPO / "plugins_example/kernbench_example/star_all_reduce.py").read_text(encoding="utf-8")
    file = tmp_path / "star.py"
    file.write_text(source.replace('{"fully_connected": 0, "switch": 1}', f'{{"{NAME}": 7}}'))
    algorithm = Catalogue.of(plugins).read_file(file)
    assert algorithm.topologies == {NAME: 7}
    args = (str(file), "--ranks", "4", "--pes", "1", "--count", "5", "-j", "1", "--json")
    (found,) = printed(plugins, capsys, "ccl", "check", *args)["topologies"]
    assert (found["topology"], found["ranks"][0]["proved"]) == (NAME, True)
    with pytest.raises(PluginError) as caught:
        read_file(file)
    assert str(caught.value) == (
        f"{file}: TOPO_NAME_TO_KIND must have the names of networks as its keys, or '*' for any other, not '{NAME}'. "
        "Known: fully_connected, mesh_2d, ring, switch, torus_2d."
    )


def test_an_algorithm_may_lay_it_over_the_ranks_of_another_network(
    plugins: Plugins, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By ccl.yaml: one that runs there only does 4 ranks of a ring, and 6 do not fit; other names are refused."""
    source = (REPO / "plugins_example/kernbench_example/star_all_reduce.py").read_text(encoding="utf-8")
    (tmp_path / "star.py").write_text(source.replace('{"fully_connected": 0, "switch": 1}', f'{{"{NAME}": 7}}'))
    laid = tmp_path / "ccl.yaml"
    laid.write_text(f"algorithms: {{mine: {{algorithm: star.py, topology: {NAME}}}}}\n")
    how = ["all_reduce", "--topology", "tiny", "--algo", "mine", "-b", "4K", "-e", "4K", "-j", "1"]
    table = printed(plugins, capsys, "ccl", *how, "--ranks", "4", "--config", str(laid), "--json")
    assert (table["wrong"], table["network"]["topology"], len(table["rows"])) == (0, "ring", 1)
    assert main(["ccl", *how, "--ranks", "6", "--config", str(laid)], plugins) == 2
    assert capsys.readouterr().err == (
        f"error: topology '{NAME}' of ccl.yaml does not fit the machine: sips must be a power of two for a hypercube, "
        "not 6; give 4 or 8 packages.\n"
    )
    laid.write_text("defaults: {topology: example.hypercubes}\n")
    assert main(["ccl", *how, "--ranks", "4", "--config", str(laid)], plugins) == 3
    assert capsys.readouterr().err == (
        f"{laid}:1:12: defaults.topology must be one of 'auto', 'example.hypercube', 'fully_connected', 'mesh_2d', "
        "'ring', 'switch', 'torus_2d', not 'example.hypercubes'.\n"
    )


def test_what_another_process_found_wrong_on_it_can_be_sent(plugins: Plugins, tmp_path: Path) -> None:
    """A fault names its network; the shape stays where its plug-in is loaded."""
    (tmp_path / "lazy.py").write_text(
        "from kernbench_ccl.contract import kernel_args\n"
        "COLLECTIVE, TOPO_NAME_TO_KIND = 'all_reduce', {'*': 0}\n"
        "def kernel(in_ptr, out_ptr, scratch_ptr, count, rank, world, pe, n_pe, topo_kind, tl):\n    pass\n"
    )
    wanted = Wanted([4], [NAME], 1, [5], registry=plugins.networks)
    (found,) = check(read_file(tmp_path / "lazy.py"), wanted)
    sent = pickle.loads(pickle.dumps(found))
    assert [fault.case.network.name for fault in sent.faults] == [NAME]
    assert sent.faults == found.faults


def test_the_page_shows_the_file() -> None:
    """docs/plugins.md has the whole of it, but for its first lines."""
    text = (REPO / "plugins_example/kernbench_example/hypercube.py").read_text(encoding="utf-8")
    shown = text[text.index("from kernbench_core") :]
    assert shown in (REPO / "docs/plugins.md").read_text(encoding="utf-8")
