"""Components on a fabric: built from a graph, joined, and given what they need of the session."""

from __future__ import annotations

from collections import Counter
from typing import Any, ClassVar

import pytest

from kernbench_core.component import ComponentBase
from kernbench_core.engine.hardware import Hardware
from kernbench_core.environment import Environment
from kernbench_core.errors import ComponentError, ConfigError
from kernbench_core.graph import Graph, Node
from kernbench_core.messages import MsgBase
from kernbench_core.params import Param
from kernbench_core.plugins import Provider
from kernbench_core.reporting import Stat
from kernbench_core.testing import Rig, edge
from tests.core.toy_machine import Classes

SEEN = Stat("seen", "", "sum", "All.")
NODES = [Node("a", "host", "forward", {"overhead": 1.0}), Node("b", "router", "forward", {"overhead": 1.0})]


def built(classes: Classes, **options: object) -> Hardware:
    """Return two nodes and the wire between them, built by hand."""
    hardware = Hardware(Environment(), Graph.of(NODES, [edge("a", "b")]), **options)
    hardware.build(classes)
    return hardware


def test_a_component_leaves_models_room_for_attributes_of_their_own() -> None:
    """CPython shares the names of up to 30 attributes between the objects of a class; every access is slower beyond."""

    class Model(ComponentBase):
        """One of Python."""

    component = built(Classes()).components["b"]
    assert len(vars(Model(component.node, component.fabric))) <= 26


def test_graph_without_a_design_can_be_built() -> None:
    """Graphs that were made by hand are wired; only programs need a design."""
    hardware = built(Classes())
    assert set(hardware.components) == {"a", "b"}
    assert list(hardware.components["a"].out_ports) == ["b"]
    assert list(hardware.components["b"].in_ports) == ["a"]


def test_port_put_delivers_from_outside_the_graph() -> None:
    """`in_ports[source].put` hands a message over as an event of the present instant."""
    hardware = built(Classes(forward=ComponentBase))
    msg = MsgBase(8, ("b", "b"))
    msg.reply = True
    msg.hop = 1
    hardware.components["b"].in_ports["a"].put(msg)
    assert not hardware.env.advance(10)
    assert hardware.components["b"].served == 1


class Counting(ComponentBase):
    """Ask, while it is made, for what it needs of the session."""

    needs: ClassVar[tuple[type, ...]] = (Counter, Environment)

    def __init__(self, node: object, fabric: object) -> None:
        super().__init__(node, fabric)  # type: ignore[arg-type]
        self.counted = self.part(Counter)


def test_a_component_is_given_what_it_needs() -> None:
    """The very object of the session, and nothing that it did not say it needs."""
    counter: Counter[str] = Counter()
    hardware = built(Classes(forward=Counting), parts={Counter: counter, Environment: Environment()})
    found = hardware.components["a"]
    assert isinstance(found, Counting)
    assert found.counted is counter
    with pytest.raises(ComponentError) as caught:
        found.part(Node)
    assert str(caught.value) == "a: Counting must say that it needs Node; add it to its needs."


def test_a_machine_without_what_a_component_needs_is_refused() -> None:
    """Before anything is made, in a sentence that names node, class and everything that is missing."""
    made: list[str] = []

    class Noting(Counting):
        def __init__(self, node: object, fabric: object) -> None:
            made.append("one")
            super().__init__(node, fabric)

    with pytest.raises(ConfigError) as caught:
        built(Classes(forward=Noting))
    assert str(caught.value) == (
        f"a must be part of a whole machine, as {__name__}.{Noting.__qualname__} needs its Counter and Environment, "
        "which this one does not have; compile it from a topology instead."
    )
    assert not made


@pytest.mark.parametrize(
    ("declared", "sentence"),
    [
        ({"needs": ("Queues",)}, "needs must be a tuple of classes, not ('Queues',)"),
        ({"needs": Counter}, f"needs must be a tuple of classes, not {Counter!r}"),
        ({"STATS": 3}, "STATS must be a tuple of Stats, not 3"),
        ({"STATS": ("a", 3)}, "STATS must be a tuple of Stats, not ('a', 3)"),
        ({"STATS": [SEEN]}, f"STATS must be a tuple of Stats, not {[SEEN]!r}"),
        ({"PARAMS": (SEEN,)}, f"PARAMS must be a tuple of Params, not {(SEEN,)!r}"),
        ({"ON_HEAD": "yes"}, "ON_HEAD must be True or False, not 'yes'"),
        ({"bound_is_exact": 0}, "bound_is_exact must be True or False, not 0"),
        ({"back_pressure": None}, "back_pressure must be True or False, not None"),
        ({"servers": "two"}, "servers must be an integer of at least 1, not 'two'"),
        ({"servers": 0}, "servers must be an integer of at least 1, not 0"),
        ({"servers": True}, "servers must be an integer of at least 1, not True"),
    ],
)
def test_what_a_class_declares_wrongly_is_told(declared: dict[str, object], sentence: str) -> None:
    """Before one is made."""
    cls = type("Wrong", (ComponentBase,), declared)
    with pytest.raises(ConfigError) as caught:
        built(Classes(forward=cls))
    assert str(caught.value) == f"a: {cls.__module__}.Wrong.{sentence}; correct it."


@pytest.mark.parametrize(
    ("what", "must"),
    [("overhead", "a plain function"), ("receive", "a plain function"), ("run", "a generator of SimPy events")],
)
def test_a_method_that_nobody_awaits_is_told(what: str, must: str) -> None:
    """Before one is made; Python alone would warn, and the message be lost."""

    async def method(self: ComponentBase, msg: MsgBase) -> float:
        return 1.0

    cls = type("Wrong", (ComponentBase,), {what: method})
    with pytest.raises(ConfigError) as caught:
        built(Classes(forward=cls))
    assert str(caught.value) == f"a: {cls.__module__}.Wrong.{what} must be {must}, without async; it would never run."


@pytest.mark.parametrize(
    ("what", "declared", "kinds"),
    [("STATS", (SEEN, Stat("most", "", "max", "Most."), SEEN), "Stats"),
     ("PARAMS", (Param("seen", "time", "1 ns", "One."), Param("seen", "int", 3, "Another.")), "Params")],
)  # fmt: skip
def test_what_a_class_declares_twice_is_told_with_its_distribution(what: str, declared: Any, kinds: str) -> None:
    """One of the two would be passed over."""

    class Registered(Classes):
        def provider(self, name: str) -> Provider:
            return Provider("bad", "bad-kb", "1.2.3")

    cls = type("Wrong", (ComponentBase,), {what: declared})
    with pytest.raises(ConfigError) as caught:
        built(Registered(forward=cls))
    assert str(caught.value) == (
        f"a: {cls.__module__}.Wrong.{what} of bad-kb 1.2.3 must name each of its {kinds} once, not 'seen' twice; "
        "rename one."
    )


@pytest.mark.parametrize("beat", ["__init__", "connect"])
def test_a_component_that_replaces_its_arrival_is_told(beat: str) -> None:
    """Messages would be lost, or never reach it: wires deliver to `receive`."""

    def replaces(self: Any, *given: Any) -> None:
        getattr(ComponentBase, beat)(self, *given)
        self.arrive = lambda msg: None

    cls = type("Old", (ComponentBase,), {beat: replaces})
    with pytest.raises(ComponentError) as caught:
        built(Classes(forward=cls))
    assert str(caught.value) == (
        f"a: {cls.__module__}.Old must leave self.arrive as it is; define receive(self, msg), which takes what comes."
    )


@pytest.mark.parametrize("begins", [False, True])
def test_service_that_ends_without_a_beginning_is_told(begins: bool) -> None:
    """Or twice: the model is named, with its line, and what it must call."""

    class Ending(ComponentBase):
        def receive(self, msg: MsgBase) -> None:
            if begins:
                self.begin(msg)
                self.end(msg)
            self.end(msg)

    with pytest.raises(ComponentError) as caught:
        Rig(Ending).feed(10).run()
    told = str(caught.value)
    assert "Ending raised ValueError: end must be called once for what `begin` began, not for <" in told
    assert "; call begin before at simulated time" in told
    assert f'File "{__file__}", line {Ending.receive.__code__.co_firstlineno + 4}, in receive' in told


def test_a_component_that_leaves_the_base_out_is_told() -> None:
    """It has nothing that messages could come to."""

    class Bare(ComponentBase):
        def __init__(self, node: object, fabric: object) -> None:
            """Do nothing."""

    with pytest.raises(ComponentError) as caught:
        built(Classes(forward=Bare))
    assert str(caught.value).startswith(
        f"a: {__name__}.{Bare.__qualname__}.__init__ raised TypeError: super().__init__(node, fabric) must be called "
        "by its __init__, and was not before simulated time 0."
    )


@pytest.mark.parametrize("when", [-5.0, float("nan")])
def test_coming_back_in_the_past_is_the_fault_of_who_asks(when: float) -> None:
    """The model is named, with its line; not whoever was sent something then."""

    class Early(ComponentBase):
        def receive(self, msg: MsgBase) -> None:
            self.begin(msg)
            self.env.call_at(self.env.now + when, msg, self.end)

    with pytest.raises(ComponentError) as caught:
        Rig(Early).feed(10).run()
    told = str(caught.value)
    assert told.startswith(f"under_test: {__name__}.{Early.__qualname__} raised ValueError: call_at must be given a ")
    assert "self.env.call_at(self.env.now + when, msg, self.end)" in told


@pytest.mark.parametrize("found", ["400 GB/s", -5.0, float("nan"), float("inf"), None])
def test_a_peak_that_is_no_bandwidth_is_told_before_the_run(found: object) -> None:
    """Figures would be divided by it, or be less than nothing."""
    cls = type("Odd", (ComponentBase,), {"overhead": lambda self, msg: 1.0, "peak_bandwidth": found})
    with pytest.raises(ComponentError) as caught:
        built(Classes(forward=cls))
    assert str(caught.value) == (
        f"a: {cls.__module__}.Odd.peak_bandwidth must be a finite number of bytes/ns, at least 0, not {found!r}; "
        "correct the component or choose another one for kind 'host'."
    )


@pytest.mark.parametrize("found", [1.5, 0, "two"])
def test_servers_that_an_object_sets_wrongly_are_told_before_the_run(found: object) -> None:
    """As those of a class are."""

    class Odd(ComponentBase):
        def connect(self) -> None:
            self.servers: Any = found

        def run(self, env: Environment, msg: MsgBase) -> Any:
            yield env.timeout(1.0)

    with pytest.raises(ComponentError) as caught:
        built(Classes(forward=Odd))
    assert str(caught.value) == (
        f"a: {__name__}.{Odd.__qualname__}.servers must be an integer of at least 1, not {found!r}; correct the "
        "component or choose another one for kind 'host'."
    )


@pytest.mark.parametrize(("method", "meant"), [("overhaed", "overhead"), ("recieve", "receive"), ("runs", "run")])
def test_a_misspelt_method_is_told(method: str, meant: str) -> None:
    """Else the component would take no time; one that has none of them, nor anything like them, may be."""
    cls = type("Free", (ComponentBase,), {method: lambda self, msg: 4.0})
    with pytest.raises(ConfigError) as caught:
        built(Classes(forward=cls))
    assert str(caught.value) == (
        f"a: {cls.__module__}.Free must define overhead or run or receive, and has none but {method!r}. Did you mean "
        f"{meant!r}?"
    )
    built(Classes(forward=type("Also", (ComponentBase,), {method: cls, "overhead": lambda self, msg: 4.0})))
    built(Classes(forward=type("Pure", (ComponentBase,), {"connect": lambda self: None, "over": 3})))


def test_a_run_that_its_base_never_calls_is_told() -> None:
    """The base serves by events of its own; where it calls `serve`, a `run` is asked for."""

    class ByEvents(ComponentBase):
        def receive(self, msg: MsgBase) -> None:
            self.begin(msg)
            self.end(msg)

    class Handing(ComponentBase):
        def receive(self, msg: MsgBase) -> None:
            self.serve(msg)

    class Slow:
        def run(self, env: Environment, msg: MsgBase) -> Any:
            yield env.timeout(777.0)

    cls = type("Slowed", (Slow, ByEvents), {})
    with pytest.raises(ConfigError) as caught:
        built(Classes(forward=cls))
    assert str(caught.value) == (
        f"a: {cls.__module__}.Slowed.run must be called by {ByEvents.__qualname__}.receive, which serves by events of "
        "its own; define receive too, or derive it from ComponentBase."
    )
    built(Classes(forward=type("Slowed", (Slow, Handing), {})))
    built(Classes(forward=type("Slowed", (Slow, ByEvents), {"receive": ComponentBase.serve})))
