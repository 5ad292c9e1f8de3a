"""Every algorithm that comes with kernbench against numpy, on an untimed machine that is stricter than any queue."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import kernbench_ccl.algorithms
from kernbench_ccl.collectives import COLLECTIVES
from kernbench_ccl.contract import Cost, Network
from kernbench_ccl.plugin import kernbench_algorithms
from kernbench_ccl.reductions import refuse_redop
from kernbench_core.values.dtypes import NAMES
from tests.ccl.algorithm_cases import RANKS, algorithm_named, cases, check

FILES = sorted(
    path.stem for path in Path(kernbench_ccl.algorithms.__file__).parent.glob("*.py") if not path.stem.startswith("_")
)
PER_SIP = [name for name in FILES if name != "hierarchical_all_reduce"]
ROOTED = [name for name in PER_SIP if COLLECTIVES[algorithm_named(name).collective].rooted]
REDUCING = [name for name in PER_SIP if COLLECTIVES[algorithm_named(name).collective].reduces]


def test_every_file_is_registered_with_what_it_does() -> None:
    """One line of plugin.py for each, and no line without a file."""
    entries = {entry.name: entry for entry in kernbench_algorithms()}
    assert sorted(entries) == [f"ccl.{name}" for name in FILES]
    for name in FILES:
        entry, algorithm = entries[f"ccl.{name}"], algorithm_named(name)
        assert entry.target == f"kernbench_ccl.algorithms.{name}:kernel"
        assert entry.collective == algorithm.collective and name.endswith(f"_{algorithm.collective}")
        assert algorithm.formula is not None


def test_every_collective_has_an_algorithm_for_any_network() -> None:
    """Of any number of ranks."""
    for network in ("ring", "mesh_2d", "torus_2d", "fully_connected", "switch"):
        done = {
            algorithm.collective
            for algorithm in map(algorithm_named, PER_SIP)
            if all(algorithm.refusal(Network(network, world, world)) is None for world in RANKS)
        }
        assert done == set(COLLECTIVES)


@pytest.mark.parametrize("ranks", [(2, 3, 5, 6, 8), (4, 7, 9, 12, 17)])
@pytest.mark.parametrize("name", PER_SIP)
def test_the_result_is_numpys(name: str, ranks: tuple[int, ...]) -> None:
    """Up to 17 ranks, counts from one element to several rounds of tiles, as it comes out of place and in place."""
    for case in cases(name, ranks):
        check(name, **case)


@pytest.mark.parametrize("count", [1, 5])
def test_a_tile_that_cannot_be_kept_is_stored(count: int) -> None:
    """Halving and doubling, of which a landing has few cases: as many rounds as fill what tiles are kept in."""
    check("halving_doubling_all_gather", 8, count, 3, pipeline=False)


@pytest.mark.parametrize("name", PER_SIP)
def test_the_result_is_numpys_in_all_combinations(name: str) -> None:
    """Every count with 1, 3 and 5 PEs, in place and not, pipelined and step by step."""
    for case in cases(name, (2, 3, 5, 6, 8, 9, 13, 16), every=True):
        check(name, **case)


@pytest.mark.parametrize("name", ROOTED)
def test_any_rank_may_be_the_root(name: str) -> None:
    """Also step by step."""
    for world, root in ((2, 1), (5, 3), (8, 7), (13, 6)):
        for pipeline in (True, False):
            check(name, world, 20, 2, root=root, pipeline=pipeline)


@pytest.mark.parametrize("name", REDUCING)
def test_reductions_other_than_sums(name: str) -> None:
    """An average is divided once, at the end."""
    network = next(iter(algorithm_named(name).topologies))
    for redop in ("avg", "product", "min", "max"):
        for pipeline in (True, False):
            check(name, 4, 25, 2, dtype="f32", redop=redop, network=network, pipeline=pipeline)
    if algorithm_named(name).refusal(Network(network, 6, 3, 2)) is None:
        check(name, 6, 25, 2, dtype="f32", redop="avg", network=network)


@pytest.mark.parametrize("dtype", NAMES)
def test_every_dtype_is_reduced_and_moved(dtype: str) -> None:
    """With every reduction that it has."""
    for redop in ("sum", "avg", "product", "min", "max"):
        if refuse_redop(redop, dtype) is None:
            check("ring_all_reduce", 5, 25, dtype=dtype, redop=redop)
    check("ring_all_gather", 5, 25, dtype=dtype)


@pytest.mark.parametrize("name", [name for name in PER_SIP if name.endswith("all_to_all")])
def test_splits_may_be_uneven(name: str) -> None:
    """Some are empty, one rank sends nothing at all."""
    for world in (2, 3, 6):
        counts = np.random.default_rng(world).integers(0, 12, (world, world))
        counts[0] = 0
        rows = tuple(tuple(int(n) for n in row) for row in counts)
        for n_pe in (1, 3):
            check(name, world, int(counts.max()), n_pe, counts=rows)


@pytest.mark.parametrize(
    "name", [name for name in PER_SIP if name.startswith(("mesh", "torus"))]
)
def test_grids_use_all_ways_with_four_pes(name: str) -> None:
    """Rows or columns first, forwards and backwards; also on grids of one row."""
    algorithm = algorithm_named(name)
    (network,) = algorithm.topologies
    for world in (4, 6, 7, 12):
        for pipeline in (True, False):
            check(name, world, 50, 4, network=network, pipeline=pipeline)


@pytest.mark.parametrize("name", ["halving_doubling_all_gather", "halving_doubling_reduce_scatter"])
def test_halving_alone_takes_a_power_of_two(name: str) -> None:
    """The sentence says what takes any number."""
    algorithm = algorithm_named(name)
    refused = [world for world in RANKS if algorithm.refusal(Network("switch", world, world)) is not None]
    assert refused == [world for world in RANKS if world not in (2, 4, 8, 16)]
    assert algorithm.refusal(Network("switch", 6, 6)) == (
        f"{name} must have a power of two of ranks, not 6; choose ring, which takes any number."
    )


@pytest.mark.parametrize(
    ("name", "network", "right"),
    [
        ("ring_all_reduce", Network("ring", 8, 8), 14 * (500 + 1e6 / 800)),
        ("ring_all_reduce", Network("switch", 8, 8), 14 * (1000 + 1e6 / 800)),
        ("ring_bidirectional_all_reduce", Network("ring", 8, 8), 14 * (500 + 1e6 / 1600)),
        ("ring_bidirectional_all_reduce", Network("ring", 2, 2), 2 * (500 + 1e6 / 200)),
        ("ring_all_gather", Network("ring", 8, 8), 7 * (500 + 1e6 / 800)),
        ("ring_reduce_scatter", Network("ring", 8, 8), 7 * (500 + 1e6 / 800)),
        ("ring_broadcast", Network("ring", 8, 8), 7 * 500 + 6 * 200 + 1e4),
        ("halving_doubling_all_reduce", Network("switch", 8, 8), 6000 + 1.75e4),
        ("halving_doubling_all_reduce", Network("fully_connected", 9, 9), 3000 + 1.75e4 + 2 * 1.05e4),
        ("binomial_tree_broadcast", Network("switch", 8, 8), 3 * 1.1e4),
        ("binomial_tree_broadcast", Network("switch", 9, 9), 4 * 1e4 + 3 * 1e3),
        ("double_binary_tree_all_reduce", Network("fully_connected", 8, 8), 6 * (500 + 200) + 2e4),
        ("double_binary_tree_broadcast", Network("fully_connected", 8, 8), 3 * (500 + 200) + 1e4),
        ("pairwise_all_to_all", Network("switch", 8, 8), 1000 + 1e4 * 7 / 8),
        ("torus_all_reduce", Network("torus_2d", 16, 4, 4), 12 * 500 + 1.5 * 2.5e3 + 6 * 2.5e3 / 16),
        ("torus_all_reduce", Network("torus_2d", 4, 2, 2), 4 * 500 + 2 * 2.5e3 + 2.5e3),
        ("torus_all_gather", Network("torus_2d", 16, 4, 4), 6 * 500 + 3 * 2.5e3 / 16 + 0.75 * 2.5e3),
        ("mesh_all_reduce", Network("mesh_2d", 4, 2, 2), 4 * 500 + 5e3 + 2.5e3),
        ("direct_all_reduce", Network("fully_connected", 8, 8), 2 * (500 + 1e4 / 8)),
        ("direct_all_to_all", Network("fully_connected", 8, 8), 500 + 1e4 / 8),
        ("direct_all_to_all", Network("switch", 8, 8), 1000 + 1e4 * 7 / 8),
        ("dissemination_barrier", Network("fully_connected", 9, 9), 4 * 500),
    ],
)
def test_closed_forms(name: str, network: Network, right: float) -> None:
    """1 MB in messages of 20 kB, over links of 100 GB/s and 500 ns; the numbers are worked out by hand."""
    formula = algorithm_named(name).formula
    assert formula is not None
    assert formula(Cost(network.world, 1e6, 100.0, 500.0, network, message=2e4)) == pytest.approx(right, rel=1e-12)


def test_grids_are_as_quick_as_their_better_order_of_dimensions() -> None:
    """Of the numbers above the first torus and the mesh, in one test, as a landing has three of those cases."""
    for name, network, right in (
        ("torus_all_reduce", Network("torus_2d", 16, 4, 4), 12 * 500 + 1.5 * 2.5e3 + 6 * 2.5e3 / 16),
        ("mesh_all_reduce", Network("mesh_2d", 4, 2, 2), 4 * 500 + 5e3 + 2.5e3),
    ):
        formula = algorithm_named(name).formula
        assert formula is not None
        cost = Cost(network.world, 1e6, 100.0, 500.0, network, message=2e4)
        assert formula(cost) == pytest.approx(right, rel=1e-12)
