"""What the levels of a launch share: who gets it, and that every answer is counted once."""

from __future__ import annotations

import random

import pytest

from kernbench_builtin.components.launch_fan_out import LaunchFanOut
from kernbench_core.messages import LaunchMsg, MapUpdate, MmuMapMsg, MsgBase
from kernbench_core.values.region import Region


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[LaunchMsg]:
    """Keep every launch message that is sent."""
    sent: list[LaunchMsg] = []
    send = LaunchFanOut.send

    def keep(self: LaunchFanOut, msg: MsgBase) -> None:
        if isinstance(msg, LaunchMsg) and not msg.reply:
            sent.append(msg)
        send(self, msg)

    monkeypatch.setattr(LaunchFanOut, "send", keep)
    return sent


def test_targets_are_grouped_by_the_node_that_serves_them_in_pe_order(simulate) -> None:
    sim = simulate("default")
    pes = (1, 9, 2, 33, 8)
    order = sim.launch(pes).launch
    assert sim["host"].groups(pes, order) == {"sip0.io0.io_cpu": (1, 9, 2, 8), "sip1.io0.io_cpu": (33,)}
    assert sim["sip0.io0.io_cpu"].groups(pes[:3], order) == {"sip0.cube0.m_cpu": (1, 2), "sip0.cube1.m_cpu": (9,)}
    assert sim["sip0.cube0.m_cpu"].groups((1, 2), order) == {
        "sip0.cube0.pe1.pe_cpu": (1,),
        "sip0.cube0.pe2.pe_cpu": (2,),
    }
    assert sim["sip0.cube0.m_cpu"].groups((1, 2), MapUpdate(())) == {
        "sip0.cube0.pe1.pe_mmu": (1,),
        "sip0.cube0.pe2.pe_mmu": (2,),
    }


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_every_chosen_pe_starts_once_and_the_launch_ends_after_the_last(simulate, answering, seed) -> None:
    rng = random.Random(seed)
    times = {}
    sim = simulate("default", cpu=answering(lambda cpu: times.setdefault(cpu, float(rng.randrange(1, 4000)))))
    chosen = sorted(rng.sample(range(64), rng.randrange(1, 64)))
    request = sim.launch(chosen)
    sim.run()
    launch = request.launch
    assert sorted(launch.started_ns) == sorted(launch.ended_ns) == chosen
    assert request.response.completed_ns > max(launch.ended_ns.values())
    assert all(sim[node].awaiting() == () for node in sim.graph.nodes if sim.graph.nodes[node].kind.endswith("_cpu"))


def test_one_message_goes_to_each_node_of_the_tree_with_the_pes_below_it(simulate, seen) -> None:
    sim = simulate("default")
    request = sim.launch(range(64))
    sim.run()
    sent = seen
    ends = sorted(msg.path[0] for msg in sent)
    assert ends == sorted(
        {site.io_cpu for site in sim.sites} | {site.m_cpu for site in sim.sites} | {site.pe_cpu for site in sim.sites}
    )
    assert sum(len(msg.targets) for msg in sent) == 3 * 64
    assert {msg.launch for msg in sent} == {request.launch}


def test_the_ledger_of_a_launch_and_its_answer_adds_up(simulate, answering, seen) -> None:
    sim = simulate("default", cpu=answering(lambda cpu: 10.0 * len(cpu)))
    sim.launch(range(64))
    sim.launch(range(0, 64, 3))
    sim.run()
    assert seen
    for msg in seen:
        parts = (msg.propagation, msg.serialisation, msg.overhead, msg.queueing, msg.service)
        assert sum(parts) == msg.tail - msg.born
        assert min(parts) >= 0


def test_a_stamp_that_is_there_is_kept(simulate) -> None:
    sim = simulate("tiny")
    request = sim.launch()
    request.launch.target_start_ns = 1_000_000.0
    sim.run()
    assert request.launch.target_start_ns == 1_000_000.0
    assert set(request.launch.started_ns.values()) == {1_000_000.0}


MACHINES = [
    ("tiny", (), None),
    ("default", (), None),
    ("default", (), range(3, 30)),
    ("default", ("cube.command.bandwidth=0.05 GB/s",), None),
    ("default", ("sip.noc.bandwidth=1 GB/s",), range(32)),
    ("default", ("sip.noc.bandwidth=1 GB/s", "sip.mesh={width: 3, height: 3}", "system.sips=1"), None),
    ("default", ("sip.io_chiplets=2", "system.sips=3"), None),
    ("full", (), None),
]


@pytest.mark.parametrize(("preset", "sets", "pes"), MACHINES)
def test_on_an_idle_machine_nobody_is_late_and_the_last_is_just_in_time(simulate, preset, sets, pes) -> None:
    sim = simulate(preset, *sets)
    request = sim.launch(pes)
    sim.run()
    launch = request.launch
    assert set(launch.started_ns.values()) == {launch.target_start_ns}
    assert max(sim[sim.sites[pe].pe_cpu].arrived_ns for pe in launch.started_ns) == launch.target_start_ns
    assert sim.engine.get_timing_result().late_starts == ()


def ask_to_map(sim, regions: int, pes=None, unmap: bool = False) -> MmuMapMsg:
    update = MapUpdate(tuple(Region(sim.own(0, 4096 * i), 4096) for i in range(regions)), unmap)
    request = MmuMapMsg(tuple(range(len(sim.sites)) if pes is None else pes), update)
    sim.env.inject(request, sim["host"].arrive, 0.0)
    return request


@pytest.mark.parametrize("regions", [1, 64])
@pytest.mark.parametrize("unmap", [False, True])
def test_a_map_update_goes_down_to_the_mmu_and_back(simulate, oracle, grid, regions, unmap) -> None:
    sim = simulate("tiny")
    request = ask_to_map(sim, regions, [2], unmap)
    sim.run()
    truth, site, nbytes = oracle(sim.graph), sim.sites[2], 16 + 24 * regions
    mmu = f"{site.prefix}.pe_mmu"
    legs = [truth.path("host", site.io_cpu), truth.path(site.io_cpu, site.m_cpu), [site.m_cpu, mmu]]
    there = sum(truth.launch_reach(path, nbytes) for path in legs)
    there += regions * grid(sim.graph.nodes[mmu].params["tlb_overhead"])
    back = sum(truth.launch_reach(path[::-1], 0) for path in legs) - 50
    assert request.response.completed_ns == 50 + there + back
    assert sim[mmu].served == 1


def test_every_mmu_hears_of_a_map_update_once_and_nobody_starts(simulate) -> None:
    sim = simulate("default")
    request = ask_to_map(sim, 3)
    sim.run()
    assert request.done.fired
    assert [sim[f"{site.prefix}.pe_mmu"].served for site in sim.sites] == [1] * 64
    assert [sim[site.pe_cpu].served for site in sim.sites] == [0] * 64
    assert all(sim[node].awaiting() == () for node in sim.graph.nodes if sim.graph.nodes[node].kind.endswith("_cpu"))


def test_a_larger_map_update_takes_longer(simulate) -> None:
    took = []
    for regions in (1, 10, 100, 1000):
        sim = simulate("default")
        request = ask_to_map(sim, regions)
        sim.run()
        took.append(request.response.completed_ns)
    assert took == sorted(set(took))


def test_tensors_are_mapped_before_their_use_and_unmapped_when_freed(simulate) -> None:
    sim = simulate("tiny")
    times = []

    def program(rt) -> None:
        tensor = rt.empty((64, 64), "f16")
        times.append(rt.now)
        rt.copy_to_host(tensor)
        times.append(rt.now)
        rt.free(tensor)
        times.append(rt.now)

    sim.engine.run(program)
    phases = sim.engine.get_timing_result().phases
    assert [type(request).__name__ for request in sim.engine.runtime.requests] == [
        "MmuMapMsg", "MemoryReadMsg", "MmuMapMsg",
    ]  # fmt: skip
    assert 0 < times[0] < times[1] < times[2]
    assert phases["host_to_device"] == times[0] + times[2] - times[1]
    assert [sim[f"{site.prefix}.pe_mmu"].served for site in sim.sites] == [2] * 4


def test_what_is_unmapped_is_forgotten_by_every_tlb(simulate) -> None:
    sim = simulate("tiny")
    for pe in range(2):
        sim.move("read", Region(sim.own(0), 3 * 4096), pe=pe)
    sim.run()
    assert [sim[f"{site.prefix}.pe_mmu"].misses for site in sim.sites] == [3, 3, 0, 0]
    request = ask_to_map(sim, 2, unmap=True)
    sim.run()
    assert request.done.fired
    move = sim.move("read", Region(sim.own(0), 3 * 4096), at_ns=sim.env.now)
    sim.run()
    assert move.ended_ns is not None
    assert sim["sip0.cube0.pe0.pe_mmu"].misses == 3 + 2
