"""Patterns send where Dally and Towles say, and what they ask of each wire is what walking every route gives."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from kernbench_builtin.machines.mesh import Mesh
from kernbench_builtin.probe.traffic import TrafficSetup
from kernbench_builtin.probe.traffic_patterns import PATTERNS, Permutation, make_pattern, mean_hops, wire_shares
from kernbench_core.errors import UsageError
from tests.core.mesh_rig import HOPS, make_mesh


def table(name: str, mesh: Mesh) -> list[int]:
    pattern = make_pattern(name, mesh)
    assert isinstance(pattern, Permutation)
    return [int(place) for place in pattern.table]


def bits(value: int, width: int) -> str:
    return f"{value:0{width}b}"


def test_transpose_swaps_the_halves_of_the_address() -> None:
    width = 6
    halves = [bits(place, width) for place in range(64)]
    assert table("transpose", make_mesh(8, 8)) == [int(text[3:] + text[:3], 2) for text in halves]


def test_bit_complement_turns_every_bit_over() -> None:
    flipped = str.maketrans("01", "10")
    assert table("bitcomp", make_mesh(4, 8)) == [int(bits(place, 5).translate(flipped), 2) for place in range(32)]


def test_bit_complement_mirrors_meshes_that_have_no_bits() -> None:
    assert table("bitcomp", make_mesh(3, 3)) == [8, 7, 6, 5, 4, 3, 2, 1, 0]


@pytest.mark.parametrize("size", [3, 4, 5, 8])
def test_tornado_goes_almost_half_way_round_each_dimension(size: int) -> None:
    step = -(-size // 2) - 1
    expected = [(r + step) % size * size + (c + step) % size for r in range(size) for c in range(size)]
    assert table("tornado", make_mesh(size, size)) == expected


def test_neighbor_goes_one_further_in_each_dimension() -> None:
    expected = [(r + 1) % 2 * 3 + (c + 1) % 3 for r in range(2) for c in range(3)]
    assert table("neighbor", make_mesh(2, 3)) == expected


def test_uniform_reaches_every_place_alike_the_sender_too() -> None:
    mesh = make_mesh(3, 3)
    drawn = make_pattern("uniform", mesh).draw(np.random.default_rng(1), np.full(90_000, 4))
    counts = Counter(drawn.tolist())
    assert sorted(counts) == list(range(9))
    assert all(abs(count - 10_000) < 5 * 100 for count in counts.values())


@pytest.mark.parametrize(("hot", "part"), [(["r0c1", "mesh.r2c2"], 1 / 2), (["r0c1", "r2c2", "r0c1"], 2 / 3)])
def test_hotspots_share_what_is_sent_to_them(hot: list[str], part: float) -> None:
    """One that is named twice gets two shares."""
    mesh = make_mesh(3, 3)
    pattern = make_pattern("hotspot", mesh, hot, 0.4)
    drawn = pattern.draw(np.random.default_rng(1), np.zeros(90_000, dtype=int))
    counts = np.bincount(drawn, minlength=9) / 90_000
    expected = np.full(9, 0.6 / 9)
    expected[1] += 0.4 * part
    expected[8] += 0.4 * (1 - part)
    assert np.abs(counts - expected).max() < 0.01
    assert pattern.matrix() == pytest.approx(np.tile(expected, (9, 1)))


def test_the_default_hotspot_is_the_router_in_the_middle() -> None:
    row = make_pattern("hotspot", make_mesh(4, 5)).matrix()[0]
    assert (int(row.argmax()), row.max()) == (2 * 5 + 2, pytest.approx(0.1 + 0.9 / 20))


def test_a_random_permutation_sends_to_each_place_once_and_differs_by_seed() -> None:
    mesh = make_mesh(4, 4)
    drawn = [make_pattern("permutation", mesh, seed=seed) for seed in (0, 0, 1)]
    tables = [pattern.matrix().argmax(axis=1).tolist() for pattern in drawn]
    assert sorted(tables[0]) == list(range(16))
    assert tables[0] == tables[1] != tables[2]
    assert tables[0] != list(range(16))


@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.parametrize(("size", "wrap"), [((4, 4), False), ((5, 5), True), ((4, 4), True)])
def test_wire_shares_are_what_walking_every_route_gives(name: str, size: tuple[int, int], wrap: bool) -> None:
    mesh = make_mesh(*size, wrap=wrap)
    pattern = make_pattern(name, mesh)
    walked = dict.fromkeys(mesh.edges, 0.0)
    hops = 0.0
    for source, row in enumerate(pattern.matrix()):
        for destination, share in enumerate(row):
            path = mesh.route(source, destination)
            hops += share * (len(path) - 3) / mesh.places
            for pair in pairwise(path):
                walked[pair] += share
    assert wire_shares(mesh, pattern) == pytest.approx(walked)
    assert mean_hops(mesh, pattern) == pytest.approx(hops)


@pytest.mark.parametrize("k", range(2, 10))
def test_ceilings_and_hops_are_those_of_the_closed_forms(k: int) -> None:
    """uniform 4/k (for odd k 4k/(k^2 - 1)), transpose 1/(k - 1), bit complement 2/k, never above 1: the interfaces."""
    mesh = make_mesh(k, k)

    def ceiling(name: str) -> float:
        return TrafficSetup(mesh, HOPS, make_pattern(name, mesh)).ceiling()[0]

    assert ceiling("uniform") == pytest.approx(min(1.0, 4 / k if k % 2 == 0 else 4 * k / (k * k - 1)))
    assert ceiling("transpose") == pytest.approx(min(1.0, 1 / (k - 1)))
    assert ceiling("bitcomp") == pytest.approx(min(1.0, 2 / k if k % 2 == 0 else 2 / (k - 1)))
    assert mean_hops(mesh, make_pattern("uniform", mesh)) == pytest.approx(2 * (k * k - 1) / (3 * k))


@pytest.mark.parametrize("k", [4, 8, 12])
def test_a_torus_doubles_the_ceiling_of_uniform_traffic(k: int) -> None:
    mesh = make_mesh(k, k, wrap=True)
    assert TrafficSetup(mesh, HOPS, make_pattern("uniform", mesh)).ceiling()[0] == pytest.approx(min(1.0, 8 / k))


def test_wide_interfaces_leave_the_ceiling_to_the_links() -> None:
    for width, ceiling, wire in (
        ("8 B", 0.5, ("mesh.r0c0", "mesh.r0c0.ni")),
        ("64 B", 2.0, ("mesh.r0c0", "mesh.r0c1")),
    ):
        mesh = make_mesh(1, 2, f"mesh.interface.width={width}")
        assert TrafficSetup(mesh, HOPS, make_pattern("uniform", mesh)).ceiling() == (pytest.approx(ceiling), wire)


@pytest.mark.parametrize(
    ("name", "hot", "share", "sentence"),
    [
        ("unifrom", [], None, "--traffic must be one of uniform, transpose, bitcomp, tornado, neighbor, hotspot, "
         "permutation, not 'unifrom'. Did you mean 'uniform'?"),
        ("xyz", [], None, "--traffic must be one of uniform, transpose, bitcomp, tornado, neighbor, hotspot, "
         "permutation, not 'xyz'."),
        ("transpose", [], None, "--traffic transpose must have as many rows as columns, not 2 x 3; choose another "
         "pattern or make mesh.rows equal mesh.columns."),
        ("uniform", ["r0c0"], None, "option --hotspot must be given together with --traffic hotspot, not with "
         "uniform."),
        ("bitcomp", [], 0.1, "option --hotspot-share must be given together with --traffic hotspot, not with bitcomp."),
        ("hotspot", [], 0.0, "--hotspot-share must be a number above 0 and at most 1, not 0."),
        ("hotspot", [], 1.5, "--hotspot-share must be a number above 0 and at most 1, not 1.5."),
        ("hotspot", ["r2c0"], None, "--hotspot must name routers from r0c0 to r1c2, separated by commas, not 'r2c0'."),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_in_a_sentence(
    name: str, hot: list[str], share: float | None, sentence: str
) -> None:
    with pytest.raises(UsageError) as caught:
        make_pattern(name, make_mesh(2, 3), hot, share)
    assert str(caught.value) == sentence
