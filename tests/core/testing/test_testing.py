"""The test kit, tested as a stranger would use it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kernbench_core.component import ComponentBase
from kernbench_core.engine.watchdog import Limits
from kernbench_core.environment import Environment, ProcessGenerator
from kernbench_core.errors import ComponentError, ConfigError, LimitError, UsageError
from kernbench_core.messages import MsgBase
from kernbench_core.params import Param
from kernbench_core.plugins import Plugins
from kernbench_core.testing import (
    Feed,
    Harness,
    Probe,
    Rig,
    assert_ready_at,
    assert_same_log,
    edge,
    line,
    place,
)
from kernbench_core.units import GRID_NS


class Delay(ComponentBase):
    """Take `overhead` for each message."""

    PARAMS = (Param("overhead", "time", "5 ns", "Latency."),)

    def overhead(self, msg: MsgBase) -> float:
        return float(self.params["overhead"])


class Worker(ComponentBase):
    """Take 5 ns for each message, one after another."""

    def run(self, env: Environment, msg: MsgBase) -> ProcessGenerator:
        yield env.timeout(5.0)


def test_rig_feeds_one_component_and_collects_what_comes_out() -> None:
    """Wires of 100 B/ns and 1 ns around the component; parameters written as in YAML."""
    rig = Rig(Delay, {"overhead": "3 ns"}).feed(0, 100).feed(10, 200).run()
    assert [(a.label, a.node, a.time, a.nbytes) for a in rig.arrivals] == [
        ("Ping1", "out0", 1 + 1 + 3 + 1 + 1, 100),
        ("Ping2", "out0", 10 + 2 + 1 + 3 + 2 + 1, 200),
    ]
    assert [(entry.t_start, entry.t_end, entry.label) for entry in rig.log] == [
        (2.0, 5.0, "Ping1"),
        (13.0, 16.0, "Ping2"),
    ]
    assert rig.under_test.served == 2


def test_several_inputs_and_outputs() -> None:
    """Messages go in at `port` and out at `output`."""
    rig = Rig(Delay, inputs=2, outputs=2).feed(0, port=1, output=0).feed(0, port=0, output=1).run()
    assert [(a.label, a.node) for a in rig.arrivals] == [("Ping1", "out0"), ("Ping2", "out1")]


def test_ask_brings_the_answer_back() -> None:
    """A request that ends at the component is answered to the probe that fed it."""
    rig = Rig(Delay, latency=2.0).ask(0)
    assert_ready_at(rig, 2 + 5 + 2)
    assert rig.arrivals[0].node == "in0"


def test_machine_of_a_line() -> None:
    """Nodes and edges by hand, without a design."""
    nodes = {"a": Probe, "x": place(Delay, overhead="1 ns"), "y": Delay, "b": Probe}
    machine = Harness(nodes, line("a", "x", "y", "b", latency=2.0))
    machine.send(("a", "x", "y", "b"), 4.0)
    assert_ready_at(machine, 4 + 2 + 1 + 2 + 5 + 2)
    assert repr(machine) == "<Harness of 4 nodes at 16.0 ns>"


def test_line_may_be_one_way() -> None:
    """`both_ways=False` leaves out the edges back."""
    assert [(e.src, e.dst) for e in line("a", "b", "c", both_ways=False)] == [("a", "b"), ("b", "c")]


def test_registered_names_are_looked_up(plugins: Plugins) -> None:
    """A name of the registry is as good as a class; an unknown one is refused by the registry."""
    with pytest.raises(UsageError):
        Rig("nobody.nothing", catalogue=plugins.components)


def test_ready_at_wants_the_exact_grid_step() -> None:
    """One step too early or too late fails, saying when the message came."""
    with pytest.raises(AssertionError) as caught:
        assert_ready_at(Rig(Delay).feed(0), 7.0 + GRID_NS)
    assert str(caught.value) == f"arrival 1 must come at {7.0 + GRID_NS!r} ns, not as early as 7.0 ns."
    with pytest.raises(AssertionError) as caught:
        assert_ready_at(Rig(Delay).feed(0), 7.0 - GRID_NS)
    assert str(caught.value) == f"arrival 1 must come at {7.0 - GRID_NS!r} ns, but it came only at 7.0 ns."
    with pytest.raises(AssertionError) as caught:
        assert_ready_at(Rig(Delay).feed(0), 7.0, arrival=2)
    assert str(caught.value) == "arrival 2 must come at 7.0 ns, but it came never."
    rig = Rig(Delay).feed(0).run()
    with pytest.raises(UsageError) as late:
        assert_ready_at(rig, 7.0)
    assert str(late.value) == (
        "at_ns must be later than the machine's time 7.0 ns, not 7.0; check arrivals in the order of time."
    )


def test_same_log_names_the_first_difference() -> None:
    """Models that agree pass; others fail with the line that differs."""
    assert_same_log(Worker, Worker, [Feed(0, 100), Feed(0, 50)])
    with pytest.raises(AssertionError) as caught:
        # pipelined against serial: they part at the second message
        assert_same_log(Delay, Worker, [Feed(0), Feed(0)])
    assert str(caught.value) == (
        "line 2 of the log differs: "
        "LogLine(t_start=1.0, t_end=6.0, component='under_test', label='Ping2') of the first, "
        "LogLine(t_start=6.0, t_end=11.0, component='under_test', label='Ping2') of the second model."
    )


def test_wrong_parameters_are_told_together() -> None:
    """Unknown and unfit parameters of all nodes make one ConfigError."""
    with pytest.raises(ConfigError) as caught:
        Harness({"a": place(Delay, overhead="5 GB/s"), "b": place(Delay, overhaed="5 ns")}, line("a", "b"))
    assert caught.value.problems == (
        "a.overhead must be a time, not '5 GB/s'. Did you mean '5 ns'?",
        "b.overhaed must be a declared parameter. Did you mean 'overhead'?",
    )


def test_path_must_exist() -> None:
    """A path without an edge, and a time in the past, are refused."""
    machine = Harness({"a": Probe, "b": Probe}, [edge("a", "b")])
    with pytest.raises(UsageError) as caught:
        machine.send(("b", "a"))
    assert str(caught.value) == "path must follow edges of the machine, not ['b', 'a']; add ['b -> a']."
    machine.send(("a", "b"), 5.0)
    machine.run()
    with pytest.raises(UsageError) as late:
        machine.send(("a", "b"), 1.0)
    assert str(late.value) == "at_ns must be at least the present time 6.0 ns, not 1.0."


def test_model_that_never_ends_fails_its_test() -> None:
    """The kit gives up after its limit instead of hanging, in `run` and in `assert_ready_at`."""

    class Restless(ComponentBase):
        def run(self, env: Environment, msg: MsgBase) -> ProcessGenerator:
            while True:
                yield env.timeout(0.0)

    with pytest.raises(LimitError) as caught:
        Rig(Restless, limits=Limits(max_events=5000)).feed(0).run()
    told = str(caught.value)
    assert "of them took no time: a process goes on at " in told
    assert told.endswith(" again and again; correct the model, or give the machine other limits.")
    with pytest.raises(LimitError) as caught:
        assert_ready_at(Rig(Restless, limits=Limits(max_events=1000)).feed(0), 9.0)
    assert str(caught.value) == f"the machine must reach {9.0 - GRID_NS!r} ns within 1000 events; correct the model."


def test_faults_of_models_come_out_as_in_a_run() -> None:
    """A model that raises is a ComponentError with its name, as from the engine."""

    class Broken(ComponentBase):
        def overhead(self, msg: MsgBase) -> float:
            raise LookupError("no row")

    with pytest.raises(ComponentError) as caught:
        Rig(Broken).feed(0).run()
    assert str(caught.value).startswith(
        f"under_test: {Broken.__module__}.{Broken.__qualname__} raised LookupError: no row at simulated time 1 ns.\n"
    )


def test_classes_of_one_name_are_kept_apart() -> None:
    """Two local classes that share a name stand at their own nodes."""

    def make(ns: float) -> type[ComponentBase]:
        class Local(ComponentBase):
            def overhead(self, msg: MsgBase) -> float:
                return ns

        return Local

    machine = Harness({"a": Probe, "x": make(1.0), "y": make(2.0), "b": Probe}, line("a", "x", "y", "b"))
    machine.send(("a", "x", "y", "b"))
    assert_ready_at(machine, 3.0 + 3.0)


def python_blocks(name: str) -> list[str]:
    """Return the python blocks of a page of the documentation."""
    page = Path(__file__).parents[3] / "docs" / name
    return re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def test_examples_of_the_components_page_run() -> None:
    """Every python block of docs/components.md runs, one after another, and its assertions hold."""
    blocks = python_blocks("components.md")
    assert len(blocks) >= 8
    namespace: dict[str, object] = {"__name__": "docs_components"}
    for block in blocks:
        exec(compile(block, "docs/components.md", "exec"), namespace)
