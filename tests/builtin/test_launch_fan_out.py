"""What the levels of a launch share: who gets it, and that every answer is counted once."""

from __future__ import annotations

import random

import pytest

from kernbench_core.messages import LaunchMsg


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[LaunchMsg]:
    """Keep every launch message that is made."""
    made: list[LaunchMsg] = []
    begin = LaunchMsg.__init__

    def keep(self: LaunchMsg, *args: object) -> None:
        begin(self, *args)  # type: ignore[arg-type]
        made.append(self)

    monkeypatch.setattr(LaunchMsg, "__init__", keep)
    return made


def test_targets_are_grouped_by_the_node_that_serves_them_in_pe_order(simulate) -> None:
    sim = simulate("default")
    pes = (1, 9, 2, 33, 8)
    assert sim["host"].groups(pes) == {"sip0.io0.io_cpu": (1, 9, 2, 8), "sip1.io0.io_cpu": (33,)}
    assert sim["sip0.io0.io_cpu"].groups(pes[:3]) == {"sip0.cube0.m_cpu": (1, 2), "sip0.cube1.m_cpu": (9,)}
    assert sim["sip0.cube0.m_cpu"].groups((1, 2)) == {
        "sip0.cube0.pe1.pe_cpu": (1,),
        "sip0.cube0.pe2.pe_cpu": (2,),
    }


@pytest.mark.parametrize("seed", range(4))
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
    sent = [msg for msg in seen if msg.targets]
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
    for msg in (msg for msg in seen if msg.targets):
        parts = (msg.propagation, msg.serialisation, msg.overhead, msg.queueing, msg.service)
        assert sum(parts) == msg.tail - msg.born
        assert min(parts) >= 0


def test_a_stamp_that_is_there_is_kept(simulate) -> None:
    sim = simulate("tiny")
    request = sim.launch()
    request.launch.start_ns = 1_000_000.0
    sim.run()
    assert request.launch.start_ns == 1_000_000.0
    assert set(request.launch.started_ns.values()) == {1_000_000.0}
