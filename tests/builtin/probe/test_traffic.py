"""What is measured agrees with closed forms, with queueing theory and with a simulator of another make."""

from __future__ import annotations

import statistics
from itertools import pairwise
from typing import ClassVar

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_builtin.machines import naming
from kernbench_builtin.machines.mesh import Mesh
from kernbench_builtin.probe.traffic import LoadPoint, Meter, Packet, TrafficSetup, Window, half_width, rank, state_of
from kernbench_builtin.probe.traffic_patterns import make_pattern
from kernbench_core.component import ComponentBase
from kernbench_core.engine.hardware import Hardware
from kernbench_core.engine.watchdog import Progress
from kernbench_core.environment import Environment
from kernbench_core.errors import ComponentError
from kernbench_core.messages import MsgBase
from tests.core import mesh_rig
from tests.core.flit_simulator import FlitSimulator
from tests.core.mesh_rig import HOPS, INTERFACE, INTERFACE_WIRE, LINK, ROUTER, Hop, Hops, make_mesh


def measure(mesh: Mesh, name: str, load: float, flits: int = 1, *, cycles: int = 2000, seed: int = 0) -> LoadPoint:
    window = Window(500, cycles, 1000)
    return TrafficSetup(mesh, HOPS, make_pattern(name, mesh), flits, window, seed).measure(load)


def lone_latency(mesh: Mesh, source: int, destination: int, flits: int) -> float:
    """Return the latency in ns of one packet in an empty mesh."""
    env = Environment()
    hardware = Hardware(env, mesh)
    hardware.build(HOPS)
    meter = Meter(0.0, 1.0)
    path = mesh.route(source, destination)
    env.inject(Packet(flits * mesh.flit_bytes, path, meter), hardware.components[path[0]].arrive, 0.0)
    assert not env.advance(1000)
    assert env.events == len(path), "one event for each node that the packet comes to"
    return meter.latencies[0]


def test_a_load_says_how_far_it_is_and_is_the_same() -> None:
    """Of warm-up and measured cycles, in blocks of 256; never all, as the drain may go on."""
    mesh, seen = make_mesh(3, 3), list[Progress]()
    traffic = TrafficSetup(mesh, HOPS, make_pattern("uniform", mesh), window=Window(300, 700, 1000))
    assert attrs.evolve(traffic, on_progress=seen.append).measure(0.2) == traffic.measure(0.2)
    parts = [one.fraction for one in seen]
    assert parts[:4] == [0.256, 0.3, 0.556, 0.812] and set(parts[4:]) == {0.99}
    assert {one.phase for one in seen} == {"load 0.2"}
    assert [one.step_s for one in seen] == sorted(one.step_s for one in seen)


@pytest.mark.parametrize("flits", [1, 5])
@pytest.mark.parametrize("wrap", [False, True])
def test_a_lone_packet_takes_the_closed_form_between_all_pairs(flits: int, wrap: bool) -> None:
    mesh = make_mesh(3, 4, wrap=wrap)
    for source in range(12):
        for destination in range(12):
            (r, c), (r2, c2) = divmod(source, 4), divmod(destination, 4)
            rows, columns = abs(r - r2), abs(c - c2)
            hops = min(rows, 3 - rows) + min(columns, 4 - columns) if wrap else rows + columns
            expected = 2 * INTERFACE + 2 * INTERFACE_WIRE + (hops + 1) * ROUTER + hops * LINK + flits
            assert lone_latency(mesh, source, destination, flits) == expected


@given(st.integers(1, 64), st.sampled_from(["0.5 GHz", "2 GHz", "4 GHz"]))
def test_serialisation_is_the_packet_over_the_link_once(flits: int, clock: str) -> None:
    mesh = make_mesh(1, 3, clock=clock)
    fixed = 2 * (INTERFACE + INTERFACE_WIRE) + 3 * ROUTER + 2 * LINK
    assert lone_latency(mesh, 0, 2, flits) == fixed + flits / float(clock.split()[0])


def test_at_almost_no_load_latency_is_the_mean_of_the_closed_form() -> None:
    mesh = make_mesh(4, 4)
    point = measure(mesh, "uniform", 0.01, cycles=20_000)
    fixed = 2 * (INTERFACE + INTERFACE_WIRE) + ROUTER + 1
    assert point.hops is not None and point.mean is not None and point.queued is not None
    assert point.hops == pytest.approx(2 * (16 - 1) / (3 * 4), rel=0.02)
    assert point.mean - point.queued == pytest.approx(fixed + point.hops * (ROUTER + LINK))
    assert point.queued < 0.05


@pytest.mark.parametrize(
    ("name", "k", "ceiling"),
    [
        ("uniform", 6, 4 / 6),
        ("bitcomp", 6, 2 / 6),
        ("uniform", 5, 5 / 6),
        ("transpose", 5, 1 / 4),
        ("bitcomp", 4, 2 / 4),
        ("tornado", 5, 0.5),
    ],
)
def test_the_tightest_links_are_busy_in_proportion_until_the_ceiling(name: str, k: int, ceiling: float) -> None:
    mesh = make_mesh(k, k)
    low = measure(mesh, name, 0.4 * ceiling)
    tight = [use for use in low.wires if use.expected == pytest.approx(0.4)]
    assert statistics.mean(use.utilisation for use in tight) == pytest.approx(0.4, rel=0.03)
    assert all(use.utilisation == pytest.approx(use.expected, abs=0.06) for use in low.wires)
    assert low.sustained == pytest.approx(low.accepted, rel=0.03)

    below = measure(mesh, name, 0.95 * ceiling)
    assert (below.state, below.unfinished) == ("near", 0)
    assert below.accepted == pytest.approx(0.95 * ceiling, rel=0.02)
    assert below.sustained == pytest.approx(0.95 * ceiling, rel=0.03)

    above = measure(mesh, name, min(1.0, 1.3 * ceiling))
    assert above.state == "saturated"
    full = [use.utilisation for use in above.wires if use.expected == pytest.approx(min(1.3, 1 / ceiling))]
    assert statistics.mean(full) == pytest.approx(1.0, abs=0.02)
    assert 0.95 * ceiling <= above.sustained <= ceiling, "what crosses two such wires still waits at the second"
    assert above.accepted < 0.97 * above.offered
    assert above.busiest.utilisation == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize("name", ["transpose", "bitcomp"])
def test_what_crosses_the_tightest_link_gets_the_ceiling_and_no_more(name: str) -> None:
    """Count at the destinations whose whole traffic crosses it, not at the link."""
    mesh, k = make_mesh(4, 4), 4
    traffic = TrafficSetup(mesh, HOPS, make_pattern(name, mesh), 1, Window(500, 3000, 0))
    ceiling, wire = traffic.ceiling()
    table = traffic.pattern.matrix().argmax(axis=1)
    through = [int(table[s]) for s in range(k * k) if wire in pairwise(mesh.route(s, int(table[s])))]
    point = traffic.measure(1.25 * ceiling)
    ejected = {use.edge: use.utilisation for use in point.wires if use.edge[1].endswith(".ni")}
    rates = [ejected[mesh.route(place, place)[1], mesh.route(place, place)[2]] for place in through]
    assert sum(rates) / len(rates) == pytest.approx(ceiling, rel=0.02)


@pytest.mark.parametrize(
    ("flits", "load"), [(8, 0.5), (8, 0.8), (32, 0.5), (1, 0.9)]
)
def test_one_queue_waits_as_long_as_queueing_theory_says(flits: int, load: float) -> None:
    """A ring of neighbours has one stream per wire: Geo/D/1, whose wait is load (P - 1) / 2 / (1 - load) cycles.

    That becomes M/D/1, load P / 2 / (1 - load), for long packets; a stream of single flits never waits.
    """
    mesh = make_mesh(1, 8, wrap=True)
    cycles, seeds = (20_000, 6) if flits > 1 else (2000, 1)
    waits = [measure(mesh, "neighbor", load, flits, cycles=cycles, seed=seed).queued or 0.0 for seed in range(seeds)]
    assert statistics.mean(waits) == pytest.approx(load * (flits - 1) / 2 / (1 - load), rel=0.06)


#: More loads of the mesh, and sizes of its packets.
FURTHER = ((1, 0.7), (4, 0.1), (4, 0.4))


class Recorder(Meter):
    """A meter that also keeps every packet that arrives: when it was made, from where to where, and its latency."""

    packets: ClassVar[list[tuple[int, int, int]]] = []
    latencies_of: ClassVar[list[float]] = []

    def note(self, packet: Packet) -> None:
        ends = [naming.mesh_cell(packet.path[end]) for end in (0, -1)]
        self.packets.append((int(packet.born), *(row * 4 + column for row, column in ends)))
        self.latencies_of.append(packet.tail - packet.born)
        super().note(packet)


@pytest.mark.parametrize(
    ("flits", "load"),
    [(1, 0.1), (4, 0.7), (9, 0.6), *FURTHER],
)
def test_latency_is_that_of_a_simulator_that_moves_single_flits_each_cycle(
    flits: int, load: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Give both the very same packets: they differ only in whom they serve first when two heads come at once."""
    monkeypatch.setattr("kernbench_builtin.probe.traffic.Meter", Recorder)
    monkeypatch.setattr(Recorder, "packets", [])
    monkeypatch.setattr(Recorder, "latencies_of", [])
    measure(make_mesh(4, 4), "uniform", load, flits, cycles=2500)
    order = sorted(range(len(Recorder.packets)), key=lambda i: Recorder.packets[i])
    delays = {"start": INTERFACE, "in": INTERFACE_WIRE + ROUTER, "link": LINK + ROUTER}
    reference = FlitSimulator(4, flits, {**delays, "out": INTERFACE_WIRE + INTERFACE})
    expected = reference.latencies([Recorder.packets[i] for i in order])
    ours = [Recorder.latencies_of[i] for i in order]
    least = [2 * (INTERFACE + INTERFACE_WIRE) + ROUTER + flits] * len(ours)
    waited, waits = (statistics.mean(latencies) - statistics.mean(least) for latencies in (ours, expected))
    assert statistics.mean(ours) == pytest.approx(statistics.mean(expected), rel=0.005)
    assert waited == pytest.approx(waits, rel=0.01)
    assert np.percentile(ours, 99) == pytest.approx(np.percentile(expected, 99), rel=0.03)


def test_same_seed_same_result_and_another_one_another() -> None:
    mesh = make_mesh(3, 3)
    first, second = (measure(mesh, "hotspot", 0.2, 2, cycles=500, seed=3) for _ in range(2))
    assert first == second
    assert measure(mesh, "hotspot", 0.2, 2, cycles=500, seed=4) != first


def test_flits_are_conserved() -> None:
    """What is accepted is what left through ejecting wires; what entered passed the injecting ones."""
    point = measure(make_mesh(3, 3), "uniform", 0.5, 2)
    into = [use.utilisation for use in point.wires if use.edge[0].endswith(".ni")]
    out = [use.utilisation for use in point.wires if use.edge[1].endswith(".ni")]
    assert sum(into) / 9 == pytest.approx(point.offered, rel=0.005)
    assert sum(out) / 9 == pytest.approx(point.accepted, rel=0.005)
    assert point.unfinished == 0


def test_the_clock_scales_nothing_but_nanoseconds() -> None:
    """Twice the clock and half of every latency: the same numbers of cycles."""
    sets = ("mesh.link.latency=0.5 ns", "mesh.interface.latency=1 ns", "components.router.params.overhead=1.5 ns")
    fast = make_mesh(3, 3, *sets, "components.interface.params.overhead=2 ns", clock="2 GHz")
    slow = measure(make_mesh(3, 3), "uniform", 0.6, 4, cycles=1000)
    assert attrs.evolve(measure(fast, "uniform", 0.6, 4, cycles=1000), queued=slow.queued) == slow


def test_a_wire_is_busy_for_no_less_than_none_of_a_short_window() -> None:
    """Wires are booked ahead for more than half of it here, with gaps."""
    mesh = make_mesh(8, 8, "components.router.params.overhead=9 ns")
    point = TrafficSetup(mesh, HOPS, make_pattern("uniform", mesh), 1, Window(250, 20, 100)).measure(0.3)
    assert all(0 <= use.utilisation <= 1 for use in point.wires)


def test_packets_that_do_not_arrive_are_counted() -> None:
    mesh = make_mesh(2, 2)
    traffic = TrafficSetup(mesh, HOPS, make_pattern("hotspot", mesh, ["r0c0"], 1.0), 1, Window(0, 400, 100))
    point = traffic.measure(0.5)
    assert point.state == "saturated"
    assert point.packets - point.unfinished == pytest.approx(500 - 2 * (INTERFACE + INTERFACE_WIRE) - ROUTER, abs=8)
    assert point.accepted * 4 * 400 == pytest.approx(400 - 2 * (INTERFACE + INTERFACE_WIRE) - ROUTER, abs=8)


def test_a_window_in_which_nothing_arrives_has_no_latencies() -> None:
    mesh = make_mesh(2, 2)
    point = TrafficSetup(mesh, HOPS, make_pattern("uniform", mesh), 1, Window(0, 5, 0)).measure(1.0)
    assert (point.mean, point.mean_ci95, point.p50, point.p99) == (None,) * 4
    assert (point.longest, point.queued, point.hops) == (None,) * 3
    assert (point.packets, point.unfinished, point.accepted) == (20, 20, 0.0)


@pytest.mark.parametrize(
    ("load", "unfinished", "state"),
    [(0.3, 0, "stable"), (0.31, 0, "near"), (0.499, 0, "near"), (0.5, 0, "saturated"), (0.1, 1, "saturated")],
)
def test_loads_are_marked_by_how_near_they_are_to_the_ceiling(load: float, unfinished: int, state: str) -> None:
    assert state_of(load, 0.5, unfinished) == state
    assert state_of(load, 0.5, unfinished, buffered=True) == ("stable" if state == "near" else state)


@given(st.lists(st.integers(0, 50), min_size=1, max_size=200), st.sampled_from([0.01, 0.5, 0.9, 0.99, 1.0]))
def test_percentiles_are_values_that_occurred_by_nearest_rank(values: list[int], share: float) -> None:
    ordered = np.sort(np.array(values, dtype=float))
    assert rank(ordered, share) == np.percentile(ordered, 100 * share, method="inverted_cdf")


def test_the_confidence_interval_covers_the_mean_as_often_as_it_says() -> None:
    dice = np.random.default_rng(1)
    samples = dice.normal(50.0, 5.0, (400, 1000))
    covered = sum(abs(sample.mean() - 50.0) <= (half_width(sample) or 0.0) for sample in samples)
    assert 0.92 <= covered / 400 <= 0.98
    assert half_width(samples[0, :99]) is None


class Fails(Hop):
    def overhead(self, msg: MsgBase) -> float:
        raise RuntimeError("no")


def test_a_model_that_raises_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing(Hops):
        def load(self, name: str) -> type[ComponentBase]:
            return Fails

    mesh = make_mesh(2, 2)
    with pytest.raises(ComponentError) as caught:
        TrafficSetup(mesh, Failing(), make_pattern("uniform", mesh), 1, Window(0, 50, 0)).measure(0.5)
    assert "tests.builtin.probe.test_traffic.Fails raised RuntimeError: no at simulated time 0 ns." in str(caught.value)


def test_what_the_models_ignore_is_told_with_how_much_crossed_them() -> None:
    point = measure(make_mesh(2, 2), "uniform", 0.1, cycles=200)
    assert [(item.sentence, item.component) for item in point.not_modelled] == [("Everything else.", "test.hop")]
    assert mesh_rig.Hop.__doc__ is not None
