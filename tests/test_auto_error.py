"""tools/auto_error.py compares what `auto` takes with the best of all algorithms, on networks that are in no table."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

import pytest

from kernbench_ccl.measure import time_collective
from kernbench_ccl.plan.tuning import shipped
from tests.conftest import loaded_tool


@pytest.fixture(scope="module")
def tool() -> Iterator[ModuleType]:
    """Give tools/auto_error.py."""
    with loaded_tool("auto_error") as found:
        yield found


def test_the_best_is_what_timing_every_algorithm_gives(tool: ModuleType) -> None:
    """At one point, of small SIPs: the ratios are those of `kernbench ccl`'s times."""
    network = tool.UnmeasuredNetwork("ring", 3, 37, 900, "tiny")
    found = tool.error_at(tool.ChoicePoint(network, "all_gather", 30_000))
    times = {
        name: time_collective("all_gather", [30_000], "tiny", algo=name, set=network.sets, check=False)[0]
        for name in ("ring", "ring_bidirectional", "direct")
    }
    ns = {row.algorithm: row.out_of_place.time_ns for row in times.values()}
    best = min(ns, key=lambda name: ns[name])
    assert (found.size, found.best, found.able) == (times["ring"].size, best, 3)
    assert (found.ratio, found.ratio_before) == (ns[found.auto] / ns[best], ns[found.before] / ns[best])
    assert str(found).startswith("ring of 3, 37 GB/s, 900 ns, all_gather of 29.3 KiB: ")


def test_no_network_is_in_the_table_and_a_seed_draws_the_same(tool: ModuleType) -> None:
    """Ten of them: neither links nor ranks, of a shape that the table has, are the table's; sizes of all kinds."""
    measured = {(entry.network, entry.world) for entry in shipped().entries}
    assert len(tool.NETWORKS) == len(set(tool.NETWORKS)) == 10
    assert all((net.bandwidth, net.latency) != (100.0, 500.0) for net in tool.NETWORKS)  # those of `default`
    assert not measured & {(net.shape, net.ranks) for net in tool.NETWORKS}
    drawn = tool.points(tool.NETWORKS, 40, 1)
    assert drawn == tool.points(tool.NETWORKS, 40, 1) != tool.points(tool.NETWORKS, 40, 2)
    assert {point.collective for point in drawn} == set(tool.COLLECTIVES)
    sizes = [point.asked for point in drawn]
    assert tool.SMALLEST <= min(sizes) < 16 and tool.LARGEST / 2 < max(sizes) <= tool.LARGEST


def test_the_summary_counts_what_was_too_slow(tool: ModuleType) -> None:
    """The worst and the mean of both."""
    point = tool.ChoicePoint(tool.NETWORKS[0], "reduce", 8)
    found = [tool.ChoiceError(point, 8, "a", "a", now, "b", before, 3, 4) for now, before in ((1.0, 1.5), (1.2, 1.1))]
    assert tool.summary(found) == (
        "2 points: auto takes at most 1.200 x the best, 1.100 x in the mean, by 6 simulations where there are 8 "
        "algorithms; before at most 1.500 x, 1.300 x in the mean, more than 1.1 x at 1"
    )


@pytest.mark.parametrize("network", range(10))
def test_auto_is_within_a_tenth_of_the_best_on_networks_of_no_table(
    tool: ModuleType, capsys: pytest.CaptureFixture[str], network: int
) -> None:
    """A point of each of the ten."""
    assert (
        tool.main(["--points", "1", "--seed", str(network), "--largest", "512K", "-j", "1", "--network", str(network)])
        == 0
    )
    assert capsys.readouterr().out.count("\n") == 2
