"""The engine on a machine of toys: paths, phases, faults of programs and models, limits, Ctrl-C, determinism."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from kernbench_core.component import ComponentBase
from kernbench_core.engine.watchdog import Limits, Progress
from kernbench_core.environment import Environment, ProcessGenerator
from kernbench_core.errors import ComponentError, KernelError, LimitError, UsageError
from kernbench_core.host.session import select_pes
from kernbench_core.messages import MsgBase
from kernbench_core.topology.design import design_of
from kernbench_core.units import format_time
from tests.core.toy_machine import Classes, ToyForward, ToyPe, toy_engine, toy_graph


def work(tl: ComponentBase, env: Environment) -> ProcessGenerator:
    """Be a program of 100 ns and 10 more for each PE number."""
    assert tl.node.pe is not None
    yield env.timeout(100.0 + 10.0 * tl.node.pe)


def bench(rt: Any) -> None:
    """Copy 16 KiB, run a program."""
    rt.tensor((64, 64), "f32")
    rt.launch(work, None)


def test_phases_follow_what_the_host_asked_for() -> None:
    """Copy, launch and kernel take what the wires and models say; the phases sum to the total."""
    engine = toy_engine(pes=1)
    engine.run(bench)
    result = engine.get_timing_result()
    # one transaction of 16 KiB: 2 at the host, then wire (64 headers of 16 B at 16 B/ns) and latencies 50, 2, 1 and
    # overheads 1, 1, 3; the channels (4 of 8 B/ns) and every other wire are wider; the channel's latency 10;
    # back: an empty acknowledgement, its header of 16 B on the PCIe wire
    copy = 2 + (16384 + 64 * 16) / 16 + (50 + 1 + 2 + 1 + 1 + 3) + 10 + (1 + 1 + 2 + 1 + 50) + 1
    assert result.phases["host_to_device"] == copy
    assert result.phases["kernel"] == 100.0
    # there: 2, the descriptor of 72 B with a header at 16 B/ns, 50, 1, 2, 1, 1; cut-through up to the 8 B/ns wire
    there, back = 2 + 50 + 1 + 2 + 1 + 1 + 72 / 8, 1 + 1 + 2 + 1 + 50 + 1
    assert result.phases["launch"] == there + back
    assert sum(result.phases.values()) == result.total_ns == copy + 100.0 + there + back
    assert result.late_starts[0].late_ns == there - 2 - 20


def test_same_run_twice_is_the_same_bit_for_bit() -> None:
    """Two runs in one process never see each other: every time and count is equal."""
    results = []
    for _ in range(2):
        engine = toy_engine(pes=4)
        engine.run(bench)
        result = engine.get_timing_result()
        results.append((result.total_ns, result.phases, result.events, result.hops, result.busiest, result.late_starts))
    assert results[0] == results[1]


def test_events_stay_close_to_hops() -> None:
    """A run of forwarding nodes and memories costs little more than an event a delivery."""
    engine = toy_engine(pes=1)

    def copies(rt: Any) -> None:
        for _ in range(50):
            rt.tensor((64,), "f32")

    engine.run(copies)
    result = engine.get_timing_result()
    assert result.hops == 50 * 7
    # an injection for each request, two of them for a tensor; a start and an end of the host program; a worker starts
    assert result.events <= result.hops + 2 * 50 + 3


def test_edge_ids_follow_sorted_names_and_internal_wires_come_after() -> None:
    """The tie key of a wire does not depend on the order in which a graph was written."""
    engine = toy_engine(pes=1)
    edges = {w.name: w._key >> 40 for w in engine.hardware.wires if "#" not in w.name}
    assert [name for name, _ in sorted(edges.items(), key=lambda item: item[1])] == [
        f"{a}->{b}" for a, b in sorted(engine.graph.edges)
    ]
    assert sorted(edges.values()) == list(range(1, len(edges) + 1))
    internal = [w._key >> 40 for w in engine.hardware.wires if "#" in w.name]
    assert internal and min(internal) > len(edges)


def test_program_that_raises_is_a_sentence_with_its_line() -> None:
    """What the host program raises comes out as a KernelError with its own lines."""

    def broken(rt: Any) -> None:
        rt.tensor((4,), "f32")
        raise ValueError("no such thing")

    with pytest.raises(KernelError) as caught:
        toy_engine().run(broken)
    first, _, rest = str(caught.value).partition("\n")
    assert first.startswith("bench 'broken' raised ValueError: no such thing at simulated time ")
    assert 'raise ValueError("no such thing")' in rest
    assert "kernbench_core" not in rest
    assert caught.value.exit_code == 6


def test_program_that_asks_for_nothing_is_a_sentence() -> None:
    """A bench that never uses the device is a usage error."""

    def idle(rt: Any) -> None:
        """Do nothing."""

    with pytest.raises(UsageError) as caught:
        toy_engine().run(idle)
    assert str(caught.value) == (
        "bench 'idle' must submit something to the device, but it returned without a copy or a launch; "
        "call rt.tensor or rt.launch in it."
    )


def test_component_that_raises_in_a_run_is_a_sentence() -> None:
    """A program of a PE that fails outside a kernel bridge names the component and the time."""

    def fails(tl: ComponentBase, env: Environment) -> ProcessGenerator:
        yield env.timeout(1.0)
        raise ZeroDivisionError("by nothing")

    with pytest.raises(ComponentError) as caught:
        toy_engine(pes=1).run(lambda rt: rt.launch(fails, None))
    assert str(caught.value).startswith(
        f"sip0.cube0.pe0.pe_cpu: {ToyPe.__module__}.ToyPe raised ZeroDivisionError: by nothing "
        "at simulated time 67 ns.\n"
    )
    assert caught.value.exit_code == 6


def endless(tl: ComponentBase, env: Environment) -> ProcessGenerator:
    """Go on for ever, in simulated time."""
    while True:
        yield env.timeout(1.0)


def stuck(tl: ComponentBase, env: Environment) -> ProcessGenerator:
    """Never return to the simulator."""
    yield env.timeout(1.0)
    for _ in itertools.count():
        pass


def test_limit_on_events() -> None:
    """A run stops at its number of events, exactly."""
    engine = toy_engine(pes=1, limits=Limits(max_events=1000))
    with pytest.raises(LimitError) as caught:
        engine.run(lambda rt: rt.launch(endless, None))
    assert engine.env.events == 1000
    assert str(caught.value) == (
        f"the run reached its limit of 1000 events at simulated time {format_time(engine.env.now)}; "
        "raise --max-events if it is only long."
    )
    assert caught.value.exit_code == 5


def test_limit_on_simulated_time() -> None:
    """A run stops before the first event later than its limit."""
    engine = toy_engine(pes=1, limits=Limits(max_sim_ns=500.0))
    with pytest.raises(LimitError) as caught:
        engine.run(lambda rt: rt.launch(endless, None))
    assert engine.env.now == 500.0
    assert str(caught.value) == (
        f"the run reached its limit of 500 ns of simulated time after {engine.env.events} events; "
        "raise --max-sim-time if it is only long."
    )
    assert caught.value.exit_code == 5


def test_limits_that_are_not_reached_change_nothing() -> None:
    """Total time, events and phases are those of a run without limits."""
    free, limited = toy_engine(), toy_engine(limits=Limits(max_events=10**9, max_sim_ns=1e9, timeout_s=60.0))
    for engine in (free, limited):
        engine.run(bench)
    first, second = free.get_timing_result(), limited.get_timing_result()
    assert (first.total_ns, first.events, first.phases) == (second.total_ns, second.events, second.phases)


def test_limit_on_wall_time() -> None:
    """A run that goes on in simulated time stops after its wall time, between two events."""
    engine = toy_engine(pes=1, limits=Limits(timeout_s=0.3))
    with pytest.raises(LimitError) as caught:
        engine.run(lambda rt: rt.launch(endless, None))
    text = str(caught.value)
    assert text.startswith("the run reached its limit of 0.3 s of wall time at simulated time ")
    assert text.endswith(f"after {engine.env.events} events; raise --timeout if it is only long.")
    assert engine.get_timing_result().wall_s >= 0.3


def test_limit_on_wall_time_interrupts_what_never_returns() -> None:
    """A program that loops without simulated time is interrupted, and its file and line are named."""
    engine = toy_engine(pes=1, limits=Limits(timeout_s=0.2))
    with pytest.raises(LimitError) as caught:
        engine.run(lambda rt: rt.launch(stuck, None))
    first = stuck.__code__.co_firstlineno
    places = [f"{__file__}:{line}" for line in range(first + 3, first + 5)]
    assert str(caught.value) in [
        f"the run reached its limit of 0.2 s of wall time at simulated time 67 ns, after {engine.env.events} events "
        f"in {place}, which never returned to the simulator; raise --timeout if it is only long."
        for place in places
    ]
    assert caught.value.exit_code == 5


def test_interrupt_leaves_a_usable_timing_result() -> None:
    """After Ctrl-C the timing of what has run so far can be asked for."""

    def interrupted(tl: ComponentBase, env: Environment) -> ProcessGenerator:
        yield env.timeout(33.0)
        raise KeyboardInterrupt

    engine = toy_engine(pes=1)
    with pytest.raises(KeyboardInterrupt):
        engine.run(lambda rt: rt.launch(interrupted, None))
    result = engine.get_timing_result()
    # the launch reaches the PE at 66 ns
    assert result.total_ns == 66.0 + 33.0
    assert result.phases["kernel"] == 33.0
    assert sum(result.phases.values()) == result.total_ns
    assert result.hops == 3


def test_progress_is_monotone_and_ends_with_the_run() -> None:
    """Progress reports never go back, and the last one is the end."""
    seen: list[Progress] = []
    engine = toy_engine(on_progress=seen.append)
    engine.run(bench)
    assert [p.sim_ns for p in seen] == sorted(p.sim_ns for p in seen)
    assert [p.events for p in seen] == sorted(p.events for p in seen)
    assert (seen[-1].sim_ns, seen[-1].events) == (engine.env.now, engine.env.events)


def test_device_names_pes() -> None:
    """`all` is every PE, `sip:N` those of one SIP; anything else is a usage error."""
    design = design_of(toy_graph(pes=3))
    assert select_pes(design.pes, "all") == select_pes(design.pes, "sip:0") == design.pes
    for wrong in ("sip:1", "cube:0", "sip:x", ""):
        with pytest.raises(UsageError) as caught:
            select_pes(design.pes, wrong)
        assert str(caught.value) == f"--device must be 'all' or 'sip:N' with N from 0 to 0, not {wrong!r}."


def test_replacing_a_component_changes_timing_only() -> None:
    """A slower forwarding model moves the times and nothing else."""

    class Slow(ToyForward):
        def overhead(self, msg: MsgBase) -> float:
            return 20.0

    usual, slow = toy_engine(pes=1), toy_engine(pes=1, classes=Classes(forward=Slow))
    for engine in (usual, slow):
        engine.run(bench)
    a, b = usual.get_timing_result(), slow.get_timing_result()
    assert (a.hops, a.events) == (b.hops, b.events)
    # two copies of a way with two forwarding nodes, there and back, once for the copy and once for the launch
    assert b.total_ns - a.total_ns == 2 * 2 * 2 * 19.0


class Ticking(ToyForward):
    """Forward, and keep a process of its own going for ever, as a refresh does."""

    def connect(self) -> None:
        self.env.process(self._tick())

    def _tick(self) -> ProcessGenerator:
        while True:
            yield self.env.timeout(7.0)


def test_a_run_ends_with_its_host_program_whatever_models_keep_going() -> None:
    """A model's own endless process changes neither the end of the run nor its time."""
    quiet, ticking = toy_engine(pes=1), toy_engine(pes=1, classes=Classes(forward=Ticking))
    for engine in (quiet, ticking):
        engine.run(bench)
    assert ticking.get_timing_result().total_ns == quiet.get_timing_result().total_ns
    assert ticking.get_timing_result().events > quiet.get_timing_result().events


def test_a_run_waits_for_launches_that_the_program_left_running() -> None:
    """The end of the program is not the end of a launch that it did not wait for."""
    engine = toy_engine(pes=1)
    engine.run(lambda rt: rt.launch(work, None, wait=False))
    (request,) = engine.runtime.requests  # type: ignore[union-attr]
    assert request.response is not None
    assert engine.get_timing_result().total_ns == request.response.completed_ns


@pytest.mark.parametrize("given", ["gemm", None, 3], ids=repr)
def test_what_is_no_function_cannot_be_run(given: Any) -> None:
    """As the name of a bench, which the engine knows nothing of: it is told where the function is."""
    engine = toy_engine()
    with pytest.raises(UsageError) as caught:
        engine.run(given)
    assert str(caught.value) == (
        f"GraphEngine.run must be given a function of `rt`, not {given!r}; for a bench with a name, give "
        "`kb.load_plugins().benches.load(name)`, or call `kb.run(name, topology)` without an engine."
    )
    engine.run(bench)
    assert engine.get_timing_result().total_ns > 0


def test_a_launch_has_its_time_where_nobody_measures() -> None:
    """Its figures are asked for in vain, in a sentence."""
    engine, handles = toy_engine(), list[Any]()
    engine.run(lambda rt: handles.append(rt.launch(work, None)))
    (handle,) = handles
    launch = handle.launch
    assert handle.time_ns == max(launch.ended_ns.values()) - min(launch.started_ns.values()) > 0
    assert repr(handle) == f"<LaunchHandle of the launch of 'work', '{format_time(handle.time_ns)}'>"
    with pytest.raises(UsageError) as caught:
        _ = handle.busiest
    assert str(caught.value) == (
        "the figures of the launch of 'work' need a plug-in that measures launches; there is none."
    )
