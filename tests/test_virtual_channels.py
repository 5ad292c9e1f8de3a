"""Machines with virtual channels in their cubes and on their links: right data, no deadlock, sane, explained."""

from __future__ import annotations

from typing import Any

import pytest

import kernbench_core as kb
from kernbench_ccl.measure import time_collective
from kernbench_core.errors import ConfigError
from kernbench_core.runs.result import RunResult
from tests.builtin.machine.explained_runs import tiles, why

pytestmark = pytest.mark.filterwarnings("ignore:.*raise buffer_flits to")  # small buffers are what is tested


def channels(*kinds: str, flits: int = 16, **params: object) -> tuple[str, ...]:
    """Return the settings that give nodes of these kinds virtual channels."""
    return tuple(
        setting
        for kind in kinds
        for setting in (
            f"components.{kind}.impl=builtin.router_vc",
            f"components.{kind}.params.flit=128 B",
            f"components.{kind}.params.buffer_flits={flits}",
            *(f"components.{kind}.params.{name}={value}" for name, value in params.items()),
        )
    )


def run(
    bench: Any, *sets: str, preset: str = "tiny", params: dict[str, Any] | None = None, **options: Any
) -> RunResult:
    return kb.run(bench, preset, params, set=sets, **options)


SMALL = {"M": 64, "N": 64, "K": 128, "tile_m": 32, "tile_n": 32, "tile_k": 32}


@pytest.mark.parametrize("bench", ["gemm", "gemm-composite"])
@pytest.mark.parametrize("flits", [1, 16])
def test_data_are_right_and_the_path_tiles(bench: str, flits: int) -> None:
    """Around the hole of the cube that HBM leaves, with next to no buffers too; the run's own checks pass."""
    result = run(bench, *channels("router", flits=flits), params=SMALL, verify_data=True, explain=True)
    assert result.verified
    for launch in why(result).launches:
        tiles(launch)


@pytest.mark.parametrize(
    "kinds", [("router", "ucie"), ("router", "ucie", "link")]
)
def test_cubes_and_the_links_between_them_may_both_have_channels(kinds: tuple[str, ...]) -> None:
    """No circle of waits closes over several cubes: each path that is taken is checked against all before it."""
    result = run("vector-add", *channels(*kinds), preset="default", params={"n": 20000}, verify_data=True)
    assert result.verified


def exchange(tl: Any) -> None:
    """Send pieces to the PE across the cube, both ways at once."""
    me = tl.program_id(0)
    other = (me + 2) % 4
    sent = [tl.send(tl.full((8192,), index, "int8"), other, wait=False) for index in range(6)]
    for _ in range(6):
        tl.recv((8192,), "int8", other)
    for each in sent:
        tl.wait(each)


def test_messages_between_pes_are_explained_too_and_take_longer_with_fewer_buffers() -> None:
    totals = []
    for sets in ((), channels("router", flits=16), channels("router", flits=1)):
        result = run(lambda rt: rt.launch(exchange), *sets, explain=True)
        for launch in why(result).launches:
            tiles(launch)
        totals.append(result.total_ns)
    assert totals[0] < totals[2]
    assert totals[1] < totals[2]


def test_explaining_changes_nothing() -> None:
    plain, told = (run("gemm", *channels("router"), params=SMALL, explain=explain) for explain in (False, True))
    assert (plain.op_log_sha256, plain.events) == (told.op_log_sha256, told.events)


@pytest.mark.parametrize("network", ["ring", "torus_2d", "switch"])
@pytest.mark.parametrize("flits", [2, 64])
def test_collectives_over_links_with_credits_are_right(network: str, flits: int) -> None:
    sets = ("system.sips=4", f"system.network.topology={network}", *channels("link", "switch", flits=flits))
    (row,) = time_collective("all_reduce", [16384], "tiny", set=sets)
    assert [measured.wrong for measured in row.measured] == [0, 0]


def test_a_link_is_as_fast_as_its_buffer_lets_it_be() -> None:
    """A credit takes the link's latency and more to come back: with few flits the link waits for it."""
    took = []
    for flits in (2, 8, 512):
        sets = ("system.sips=2", "cube.pes=1", *channels("link", flits=flits, vcs=1))
        (row,) = time_collective("send_recv", [262144], "tiny", set=sets, check=False)
        took.append(row.out_of_place.time_ns)
    assert took[0] > 2 * took[1] > 3 * took[2]


@pytest.mark.parametrize(
    "kinds", [("link", "io_noc"), ("link", "io_noc", "io_ucie", "ucie", "router")]
)
def test_a_ring_of_packages_without_unlimited_buffers_anywhere_comes_to_an_end(kinds: tuple[str, ...]) -> None:
    """Messages pass through packages that hold next to nothing, and a dateline keeps them from closing a circle."""
    sets = ("system.sips=6", "system.network.topology=ring", *channels(*kinds, flits=1))
    (row,) = time_collective("all_to_all", [4096], "tiny", set=sets)
    assert row.out_of_place.wrong == 0


def test_a_ring_of_packages_needs_two_channels() -> None:
    sets = ("system.sips=5", "system.network.topology=ring", *channels("link", "io_noc", vcs=1))
    with pytest.raises(ConfigError) as caught:
        time_collective("all_to_all", [4096], "tiny", set=sets)
    assert str(caught.value) == (
        "sip0.io0.link_sip1: vcs must be at least 2 where rows, columns or packages are closed to rings, or paths lead "
        "around holes of a mesh, not 1; with one, messages could wait for each other in a cycle."
    )


def test_a_torus_of_packages_without_unlimited_buffers_anywhere_is_refused() -> None:
    sets = ("system.sips=25", "system.network.topology=torus_2d", *channels("link", "io_noc"))
    with pytest.raises(ConfigError) as caught:
        time_collective("all_to_all", [4096], "tiny", set=sets)
    told = str(caught.value)
    assert told.startswith("routers with virtual channels must not wait for each other in a cycle, but messages may ")
    assert told.endswith("; choose builtin.forwarding for one of these nodes.")


@pytest.mark.parametrize("size", [32, 200, 512])
def test_messages_of_a_flit_over_links_are_not_below_their_bound(size: int) -> None:
    """Links are slower than what is on both sides of them: the last byte of a flit comes later than its first."""
    plain = time_collective("send_recv", [size], "tiny", set=("system.sips=2",), check=False)
    ours = time_collective("send_recv", [size], "tiny", set=("system.sips=2", *channels("link")), check=False)
    assert 0 <= ours[0].out_of_place.time_ns - plain[0].out_of_place.time_ns < 2 * 128 / 100


def test_a_mesh_with_a_hole_needs_two_channels() -> None:
    with pytest.raises(ConfigError) as caught:
        run("gemm", *channels("router", vcs=1), params=SMALL)
    assert str(caught.value) == (
        "sip0.cube0.r0c1: vcs must be at least 2 where rows, columns or packages are closed to rings, or paths lead "
        "around holes of a mesh, not 1; with one, messages could wait for each other in a cycle."
    )
