"""When packets are made: at the load, in bursts of the length, with pauses, whatever blocks they are asked for in."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_builtin.probe.traffic import TrafficSetup, Window
from kernbench_builtin.probe.traffic_command import burst_length, default_loads
from kernbench_builtin.probe.traffic_patterns import make_pattern
from kernbench_builtin.probe.traffic_sources import Bursts, dispersion, make_source, most_load
from kernbench_core.errors import UsageError
from tests.core.mesh_rig import HOPS, make_mesh


def made(load: float, flits: int, burst: float | None, cycles: int, blocks: int = 1, seed: int = 3) -> np.ndarray:
    """Return cycle and place of each packet, as rows."""
    source = make_source(np.random.default_rng(seed), 8, load, flits, burst)
    size = cycles // blocks
    return np.concatenate([np.array(source.make(block * size, size)).T for block in range(blocks)])


@pytest.mark.parametrize("burst", [None, 1.0, 6.0, 40.0])
@pytest.mark.parametrize(("load", "flits"), [(0.1, 1), (0.4, 1), (0.4, 5)])
def test_as_many_packets_are_made_as_the_load_says(load: float, flits: int, burst: float | None) -> None:
    cycles = 60_000
    packets = made(load, flits, burst, cycles)
    assert len(packets) * flits / (8 * cycles) == pytest.approx(load, rel=0.04)
    assert [tuple(each) for each in packets.tolist()] == sorted(tuple(each) for each in packets.tolist())


@pytest.mark.parametrize(("load", "flits", "burst"), [(0.3, 1, 8.0), (0.5, 4, 3.0), (0.8, 1, 20.0)])
def test_bursts_are_as_long_as_asked_for_and_pauses_are_geometric(load: float, flits: int, burst: float) -> None:
    """Within a burst a packet follows its forerunner by its own length, behind it by a cycle more at least."""
    packets = made(load, flits, burst, 120_000)
    lengths: list[int] = []
    pauses: list[int] = []
    for place in range(8):
        when = packets[packets[:, 1] == place][:, 0]
        gaps = np.diff(when)
        assert gaps.min() == flits
        ends = np.flatnonzero(gaps > flits)
        lengths += np.diff(ends).tolist()
        pauses += (gaps[ends] - flits).tolist()
    assert np.mean(lengths) == pytest.approx(burst, rel=0.05)
    assert np.std(lengths) == pytest.approx(np.sqrt(burst * (burst - 1)), rel=0.1), "a geometric length"
    pause = burst * flits * (1 - load) / load
    assert np.mean(pauses) == pytest.approx(pause, rel=0.05)
    assert np.std(pauses) == pytest.approx(np.sqrt(pause * (pause - 1)), rel=0.1)


@given(st.integers(1, 6), st.floats(1.0, 30.0), st.floats(0.05, 0.7), st.sampled_from([2, 3, 10]))
def test_bursts_do_not_depend_on_the_blocks_they_are_asked_for_in(
    flits: int, burst: float, share: float, blocks: int
) -> None:
    load = share * most_load(flits, burst)
    whole, cut = made(load, flits, burst, 600), made(load, flits, burst, 600, blocks)
    assert whole.tolist() == cut.tolist()


def test_sources_begin_in_equilibrium() -> None:
    """In the first cycles as many are made as later: no transient that a warm-up must wait for."""
    first = sum(len(made(0.4, 1, 25.0, 10, seed=seed)) for seed in range(600)) / (600 * 80)
    assert first == pytest.approx(0.4, rel=0.06)


@pytest.mark.parametrize(("load", "flits", "burst"), [(0.3, 1, None), (0.3, 1, 8.0), (0.6, 4, 5.0), (0.4, 1, 1.0)])
def test_numbers_of_packets_vary_as_renewal_theory_says(load: float, flits: int, burst: float | None) -> None:
    """Counted in stretches of 1500 cycles, of 8 sources: within the noise of 1600 stretches."""
    stretch = 1500
    packets = made(load, flits, burst, 200 * stretch)
    counts = np.zeros((200, 8))
    np.add.at(counts, (packets[:, 0] // stretch, packets[:, 1]), 1)
    assert counts.var() / counts.mean() == pytest.approx(dispersion(load, flits, burst), rel=0.12)


def test_a_load_that_leaves_no_pause_is_refused() -> None:
    assert most_load(1, 8.0) == pytest.approx(8 / 9)
    with pytest.raises(UsageError) as caught:
        Bursts(np.random.default_rng(1), 4, 0.9, 1, 8.0)
    assert str(caught.value) == (
        "--load must be at most 0.8888 with bursts of 8 packets of 1 flit, as a source pauses for a cycle at least, "
        "not 0.9."
    )
    mesh = make_mesh(4, 4)
    driven = TrafficSetup(mesh, HOPS, make_pattern("uniform", mesh), burst=1.0)
    assert max(default_loads(driven)) < most_load(1, 1.0) == 0.5


@pytest.mark.parametrize("text", ["0.5", "x", "-3", "nan", ""])
def test_the_length_of_bursts_is_a_number_of_packets(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        burst_length(text)
    assert str(caught.value) == f"--burst must be a number of packets of at least 1, not {text!r}."


def test_bursts_wait_longer_than_single_packets() -> None:
    mesh = make_mesh(4, 4)
    waits = []
    for burst in (None, 4.0, 16.0):
        point = TrafficSetup(mesh, HOPS, make_pattern("uniform", mesh), 1, Window(200, 1500, 1200), 1, burst).measure(
            0.5
        )
        assert point.state == "stable" and point.queued is not None
        waits.append(point.queued)
    assert waits[0] < waits[1] < waits[2]
