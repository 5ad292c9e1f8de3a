"""A vector of every PE, all-reduced in the simulator: the data of every dtype and reduction, time, table, sentences."""

from __future__ import annotations

import json

import numpy as np
import pytest

from kernbench_ccl.collectives import COLLECTIVES
from kernbench_ccl.measure import Setup, machine_of, time_collective
from kernbench_ccl.measure.data_check import Data
from kernbench_ccl.reductions import REDOPS, refuse_redop
from kernbench_core.cli import main
from kernbench_core.errors import UsageError
from kernbench_core.plugins import load_plugins, own_plugins
from kernbench_core.topology.design import design_of
from kernbench_core.values.dtypes import NAMES
from tests.ccl.measure.logged_collective import Collective


def kinds():
    """Return every dtype with each of the reductions that it has."""
    return [(dtype, redop) for dtype in NAMES for redop in REDOPS if refuse_redop(redop, dtype) is None]


@pytest.fixture(scope="module")
def plugins():
    return load_plugins(own_plugins(), installed=False)


@pytest.fixture
def ccl(plugins, capsys):
    """Run a command line; return its exit code, stdout and stderr."""

    def run(*args):
        code = main(["ccl", *args], plugins)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def all_reduce(plugins, size, topology="tiny", **options):
    (row,) = time_collective("all_reduce", [size], topology, contributors="pe", plugins=plugins, **options)
    return row


@pytest.mark.parametrize("dtype, redop", list(kinds()))
def test_every_pe_has_the_reduction_of_all_pes(plugins, dtype, redop):
    """Four PEs in one cube; 137 B is no multiple of anything. The check is exact on integers, and on reals in eps."""
    row = all_reduce(plugins, 137 * 4, dtype=dtype, redop=redop)
    for found in row.measured:
        assert (found.wrong, found.failures, found.hazards) == (0, (), ())
    assert row.in_place is not None


@pytest.mark.parametrize("sips, redop", [(2, "avg"), (3, "sum")])
def test_cubes_and_sips_are_reduced_too(plugins, sips, redop):
    """2 x 2 cubes of 2 PEs in each SIP."""
    sets = ("sip.mesh.width=2", "sip.mesh.height=2", "cube.pes=2")
    row = all_reduce(plugins, 1000, ranks=sips, redop=redop, set=sets)
    assert [(found.wrong, found.hazards) for found in row.measured] == [(0, ()), (0, ())]


@pytest.mark.parametrize(
    ("ranks", "set"),
    [
        (1, ("cube.pes=1",)), (1, ("cube.pes=2",)), (2, ()), (2, ("cube.pes=1",)), (3, ("cube.pes=1",)),
        *[(1, ()), (2, ("cube.pes=2",)), (3, ()), (3, ("cube.pes=2",))],
    ],
)  # fmt: skip
def test_any_number_of_pes_and_sips_will_do(plugins, ranks, set):
    """Also a single PE in all, which only copies."""
    row = all_reduce(plugins, 4096, set=set, ranks=ranks)
    assert [(found.wrong, found.hazards) for found in row.measured] == [(0, ()), (0, ())]


@pytest.mark.parametrize(
    ("size", "pipeline"),
    [
        (1 << 10, True), (1 << 16, False), (1 << 16, True),
        *[(1 << 10, False), (1 << 18, False), (1 << 18, True)],
    ],
)  # fmt: skip
def test_no_time_is_below_what_the_wires_of_a_pe_take(plugins, size, pipeline):
    """Each PE sends 2(n - 1)/n of a vector over its one wire."""
    graph = machine_of(Setup("tiny"), plugins).graph
    pes = design_of(graph).pes
    wires = {edge.bandwidth for (src, _), edge in graph.edges.items() if src == f"{pes[0].prefix}.pe_dma"}
    row = all_reduce(plugins, size, pipeline=pipeline, check=False)
    least = 2 * (len(pes) - 1) / len(pes) * size / max(wires)
    assert row.out_of_place.time_ns >= least
    assert row.out_of_place.busbw == pytest.approx(1.5 * size / row.out_of_place.time_ns)


def test_times_do_not_depend_on_data(plugins):
    """Checked or not, the device does the same."""
    assert (
        all_reduce(plugins, 5000, ranks=2).out_of_place.time_ns
        == all_reduce(plugins, 5000, ranks=2, check=False).out_of_place.time_ns
    )


def test_the_table_counts_pes(ccl):
    """The number of ranks is that of the vectors, in the header and in the factor."""
    code, printed, _ = ccl("all_reduce", "--topology", "tiny", "--contributors", "pe", "-b", "1K", "-e", "1K")
    assert code == 0 and printed.startswith("# all_reduce: 4 ranks, the PEs of tiny, 1 SIP\n# f16, sum;")
    code, printed, _ = ccl(
        "all_reduce", "--topology", "tiny", "--ranks", "2", "--contributors", "pe", "-b", "1K", "-e", "1K", "--json"
    )
    found = json.loads(printed)
    (row,) = found["rows"]
    assert (code, found["ranks"], found["contributors"], found["wrong"]) == (0, 8, "pe", 0)
    out = row["out_of_place"]
    assert out["busbw"] == pytest.approx(2 * 7 / 8 * out["algbw"])


def test_what_does_not_go_together_is_refused(plugins, ccl):
    """Other algorithms want a vector of each SIP; PEs cannot be left out."""
    with pytest.raises(UsageError) as refused:
        all_reduce(plugins, 1024, algo="ring", ranks=2)
    assert str(refused.value) == "ccl.ring_all_reduce must be given one vector per sip, not per pe; choose another."
    code, _, printed = ccl("all_reduce", "--contributors", "pe", "--pes", "2")
    assert (code, printed) == (
        2,
        "error: options --pes and --contributors pe exclude each other: every PE takes part; leave --pes out.\n",
    )


def test_wrong_data_names_the_pe():
    """Vector 3 of two SIPs with two PEs each is PE 1 of rank 1."""
    made = Collective(Data(COLLECTIVES["all_reduce"], "f32", "sum", 0, 10, 4, 2))
    whole = made.chain([0, 1, 2, 3])
    verdict = made.verdict({0: whole, 1: whole, 2: whole, 3: made.chain([0, 1, 2])})
    right = np.sum([array[0] for array in made.integers])
    held = np.sum([array[0] for array in made.integers[:3]])
    assert verdict.wrong == 10
    assert verdict.failures == (
        f"PE 1 of rank 1, integers: elements 0 to 9 of 10 are wrong; element 0 must be {right:.7g}, not {held:.7g}.",
    )
