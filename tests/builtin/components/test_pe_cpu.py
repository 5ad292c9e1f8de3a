"""The processor of a PE: when programs start, in what order they run, what a command costs."""

from __future__ import annotations

from typing import Any

import pytest

from kernbench_builtin.components.pe_cpu import PeCpu
from kernbench_core.errors import ComponentError
from kernbench_core.messages import Command, Launch

PE0 = "sip0.cube0.pe0"
NO_WALK = "components.pe_mmu.params.walk_time=0 ns"


def idle(tl: Any) -> None:
    """Do nothing."""


def load_once(x: Any, tl: Any) -> None:
    """Load the rows of this PE: 4 KiB of its own slice."""
    tl.load(x + tl.program_id(0) % 4 * 1024, shape=(1024,), dtype="f32")


def run(sim: Any, *launches: tuple[Any, dict[str, Any]]) -> list[Launch]:
    """Run kernels over a tensor with 4 KiB in the slice of each PE of `tiny`."""
    started: list[Launch] = []

    def program(rt: Any) -> None:
        x = rt.empty((4, 1024), "f32")
        for kernel, how in launches:
            arguments = () if kernel is idle else (x,)
            started.append(rt.launch(kernel, *arguments, **how).launch)
        rt.wait_all()

    sim.engine.run(program)
    return started


def command_ns(sim: Any, oracle: Any, nbytes: int) -> float:
    """Return how long a load of 4 KiB takes from its issue: the command, the DMA, its answer."""
    wire = sim.graph.edges[f"{PE0}.pe_cpu", f"{PE0}.pe_dma"]
    there = wire.latency + (nbytes + wire.header_bytes) / wire.bandwidth
    back = wire.latency + wire.header_bytes / wire.bandwidth
    dma = 20 + 2 + oracle(sim.graph).round_trip(f"{PE0}.pe_dma", "sip0.cube0.hbm_ctrl0", "read", 4096, 1024)
    scratchpad = sim.graph.edges[f"{PE0}.pe_dma", f"{PE0}.pe_tcm"].latency + 3
    return there + dma + scratchpad + back


def test_programs_start_at_the_stamp(simulate) -> None:
    sim = simulate("tiny", cpu=PeCpu)
    (launch,) = run(sim, (idle, {}))
    assert len(launch.started_ns) == 4
    assert set(launch.started_ns.values()) == {launch.target_start_ns}
    assert launch.ended_ns == launch.started_ns


def test_programs_that_are_reached_after_the_stamp_start_on_arrival(simulate, oracle) -> None:
    sim = simulate("tiny", cpu=PeCpu)
    truth = oracle(sim.graph)
    injected: list[Launch] = []

    def program(rt: Any) -> None:
        handle = rt.launch(idle, wait=False)
        handle.launch.target_start_ns = 1.0
        injected.append(handle.launch)
        rt.wait(handle)

    sim.engine.run(program)
    launch = injected[0]
    arrival = {
        site.index: 50
        + truth.launch_reach(truth.path("host", site.io_cpu), launch.nbytes)
        + truth.launch_reach(truth.path(site.io_cpu, site.m_cpu), launch.nbytes)
        + truth.launch_reach([site.m_cpu, site.pe_cpu], launch.nbytes)
        for site in sim.sites
    }
    assert launch.started_ns == arrival
    late = sim.engine.get_timing_result().late_starts
    assert {start.pe: start.late_ns for start in late} == {
        sim.sites[pe].prefix: at - 1.0 for pe, at in arrival.items()
    }


@pytest.mark.parametrize("dispatch", [0, 10, 35])
def test_a_command_leaves_its_dispatch_time_after_the_call(simulate, oracle, dispatch) -> None:
    sim = simulate("tiny", f"components.pe_cpu.params.dispatch_overhead={dispatch} ns", NO_WALK, cpu=PeCpu)
    (launch,) = run(sim, (load_once, {}))
    expected = dispatch + command_ns(sim, oracle, 64 + 16)
    assert launch.ended_ns[0] - launch.started_ns[0] == expected
    record = next(iter(sim.engine.op_log))
    assert record.t_start == launch.started_ns[0] + dispatch + 1 + (64 + 16 + 32) / 32


def test_a_pe_runs_its_programs_one_after_another(simulate, oracle) -> None:
    sim = simulate("tiny", NO_WALK, cpu=PeCpu)
    (launch,) = run(sim, (load_once, {"grid": (12,)}))
    assert launch.ended_ns[0] - launch.started_ns[0] == 3 * (10 + command_ns(sim, oracle, 64 + 16))
    assert len(sim.engine.op_log) == 12


def test_a_pe_runs_its_launches_one_after_another(simulate) -> None:
    sim = simulate("tiny", cpu=PeCpu)
    first, second = run(sim, (load_once, {"wait": False}), (load_once, {"wait": False}))
    for pe in range(4):
        assert second.target_start_ns < first.ended_ns[pe] == second.started_ns[pe] < second.ended_ns[pe]


def test_loads_that_are_not_waited_for_overlap(simulate, oracle) -> None:
    def load_twice(x: Any, tl: Any) -> None:
        first = tl.load(x, shape=(512,), dtype="f32", wait=False)
        second = tl.load(x + 512, shape=(512,), dtype="f32", wait=False)
        tl.wait(first)
        tl.wait(second)

    sim = simulate("tiny", NO_WALK, cpu=PeCpu)
    (launch,) = run(sim, (load_twice, {"grid": (1,)}))
    took = launch.ended_ns[0] - launch.started_ns[0]
    single = command_ns(sim, oracle, 64 + 16)
    assert 20 < took < 20 + single
    first, second = sim.engine.op_log
    assert second.t_start - first.t_start == 10
    assert second.t_start < first.t_end


def test_a_command_that_no_unit_serves_is_refused(simulate) -> None:
    class FancyCmd(Command):
        serves = "pe_sfu"

    sim = simulate("tiny", cpu=PeCpu)
    with pytest.raises(ComponentError) as caught:
        sim[f"{PE0}.pe_cpu"].send_command(FancyCmd((0, 0)))
    assert str(caught.value) == (
        "sip0.cube0.pe0.pe_cpu: a FancyCmd must be served by a unit of kind 'pe_sfu', and this PE has none; "
        "add it under pe.units in the configuration."
    )


def test_it_says_which_line_waits_for_what(simulate) -> None:
    sim = simulate("tiny", cpu=PeCpu)
    cpu, told = sim[f"{PE0}.pe_cpu"], []

    def look(*_: Any) -> Any:
        yield sim.env.timeout(3000)
        told.append(cpu.waits_in_words())

    def reads_much(x: Any, tl: Any) -> None:
        for _ in range(50):
            tl.load(x, shape=(1024,), dtype="f32")

    assert cpu.waits_in_words() is None
    sim.env.process(look())
    run(sim, (reads_much, {"grid": (1,)}))
    assert cpu.waits_in_words() is None
    where = f"{reads_much.__code__.co_filename}:{reads_much.__code__.co_firstlineno + 2}"
    assert told[0].sentence == f"kernel 'reads_much' at {where} waits for tl.load from its pe_dma"
    assert told[0].since_ns <= 3000
