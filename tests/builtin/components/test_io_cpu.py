"""The IO chiplet's processor: the start stamp, the fan-out to cubes, the gathering of answers."""

from __future__ import annotations

import pytest


def least_stamp(sim, truth, pes, nbytes) -> float:
    """Work out when the launch leaves the io_cpu, and when its farthest PE can have it."""
    io_cpu = sim.sites[pes[0]].io_cpu
    leaves = 50 + truth.launch_reach(truth.path("host", io_cpu), nbytes)
    return leaves + max(
        truth.launch_reach(truth.path(io_cpu, sim.sites[pe].m_cpu), nbytes)
        + truth.launch_reach([sim.sites[pe].m_cpu, sim.sites[pe].pe_cpu], nbytes)
        for pe in pes
    )


def waiting(sim, truth, cubes, nbytes) -> float:
    """Bound what messages to several cubes can wait for one another: all of them, once, on the slowest wire."""
    paths = [truth.path(sim.sites[0].io_cpu, f"sip0.cube{cube}.m_cpu") for cube in cubes]
    return (len(paths) - 1) * max(truth.slowest(path, nbytes) for path in paths)


@pytest.mark.parametrize(
    ("preset", "pes"),
    [
        ("tiny", [0]),
        ("tiny", [0, 1, 2, 3]),
        ("default", [5]),
        ("default", list(range(32))),
        ("default", list(range(40, 48))),
        ("default", [3, 31]),
    ],
)
def test_a_launch_on_one_package_is_stamped_with_its_farthest_pe_in_mind(simulate, oracle, preset, pes) -> None:
    sim = simulate(preset)
    request = sim.launch(pes)
    sim.run()
    truth, nbytes = oracle(sim.graph), request.launch.nbytes
    least, cubes = least_stamp(sim, truth, pes, nbytes), {sim.sites[pe].cube for pe in pes}
    assert least <= request.launch.target_start_ns <= least + waiting(sim, truth, cubes, nbytes)
    if len(cubes) == 1:
        assert request.launch.target_start_ns == least


@pytest.mark.parametrize("arguments", [0, 1, 40])
def test_the_stamp_grows_with_the_size_of_the_descriptor(simulate, oracle, arguments) -> None:
    sim = simulate("tiny")
    request = sim.launch([1, 2], arguments=arguments)
    sim.run()
    nbytes = 64 + 8 * arguments
    assert request.launch.nbytes == nbytes
    assert request.launch.target_start_ns == least_stamp(sim, oracle(sim.graph), [1, 2], nbytes)


def test_a_pe_alone_is_reached_just_at_the_stamp(simulate) -> None:
    sim = simulate("default")
    request = sim.launch([13])
    sim.run()
    assert request.launch.started_ns == {13: request.launch.target_start_ns}
    assert sim[sim.sites[13].pe_cpu].arrived_ns == request.launch.target_start_ns


@pytest.mark.parametrize("sets", [(), ("sip.noc.bandwidth=1 GB/s",), ("cube.command.bandwidth=0.05 GB/s",)])
def test_pes_reached_in_time_start_together_and_later_ones_on_arrival(simulate, sets) -> None:
    """A launch that another one delays on the way is late, and the result says where by how much."""
    sim = simulate("default", *sets)
    sim.launch(range(8, 32), at_ns=0.0, arguments=2000)
    launch = sim.launch(range(32, 64), at_ns=0.0, arguments=2000).launch
    launch.target_start_ns = 600.0
    sim.run()
    arrived = {site.index: sim[site.pe_cpu].arrived_ns for site in sim.sites[32:]}
    assert launch.started_ns == {pe: max(launch.target_start_ns, at) for pe, at in arrived.items()}
    stamp = launch.target_start_ns
    late = {sim.sites[pe].prefix: at - stamp for pe, at in arrived.items() if at > stamp}
    assert late
    assert {start.pe: start.late_ns for start in sim.engine.get_timing_result().late_starts} == late


def test_each_cube_gets_the_launch_once_and_answers_once(simulate) -> None:
    sim = simulate("default")
    request = sim.launch(range(32))
    sim.run()
    assert sim["sip0.io0.io_cpu"].served == 1 + 4
    assert sim["sip1.io0.io_cpu"].served == 0
    assert [sim[f"sip0.cube{cube}.m_cpu"].served for cube in range(4)] == [1 + 8] * 4
    assert sim["sip0.io0.io_cpu"].awaiting() == ()
    assert request.done.fired


def test_only_cubes_with_targets_hear_of_a_launch(simulate) -> None:
    sim = simulate("default")
    sim.launch([8, 9, 25])
    sim.run()
    assert [sim[f"sip0.cube{cube}.m_cpu"].served for cube in range(4)] == [0, 3, 0, 2]


def test_it_answers_when_its_last_cube_has(simulate, answering, oracle) -> None:
    sim = simulate("default", cpu=answering(lambda cpu: 3000.0 if "cube3" in cpu else 20.0))
    request = sim.launch([0, 24])
    sim.run()
    truth, site = oracle(sim.graph), sim.sites[24]
    back = [[site.pe_cpu, site.m_cpu], truth.path(site.io_cpu, site.m_cpu)[::-1], truth.path("host", site.io_cpu)[::-1]]
    # the host takes an answer at once, so its own overhead is not part of the way back
    answer = sum(truth.launch_reach(path, 0) for path in back) - 50
    assert request.launch.ended_ns[24] == request.launch.started_ns[24] + 3000
    assert request.response.completed_ns == request.launch.ended_ns[24] + answer


def test_two_launches_in_flight_are_stamped_and_answered_apart(simulate) -> None:
    sim = simulate("tiny")
    first, second = sim.launch([0, 1]), sim.launch([2, 3])
    sim.run()
    assert first.launch.target_start_ns <= second.launch.target_start_ns
    assert first.done.fired
    assert second.done.fired
    assert set(second.launch.ended_ns) == {2, 3}


def test_it_says_which_cubes_have_not_answered(simulate, answering) -> None:
    sim = simulate("default", cpu=answering(lambda cpu: 1e6 if "cube2" in cpu else 1.0))
    sim.launch(range(32))
    while sim.env.now < 1e5 and sim.env.advance(1):
        pass
    assert [msg.path[-1] for msg in sim["sip0.io0.io_cpu"].awaiting()] == ["sip0.cube2.m_cpu"]
    sim.run()
