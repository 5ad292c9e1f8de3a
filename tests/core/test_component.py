"""Components: the fast machinery equals the naive one, both styles agree, times are exact."""

from __future__ import annotations

import math
import random
import re
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernbench_core.component import ComponentBase
from kernbench_core.environment import Environment, ProcessGenerator
from kernbench_core.errors import ComponentError
from kernbench_core.graph import Edge
from kernbench_core.messages import MsgBase, Transaction
from kernbench_core.params import Param
from kernbench_core.testing import Harness, Probe, Rig, assert_ready_at, edge, line
from kernbench_core.units import grid_ceil
from tests.core.component_styles import OneServer, Pipelined
from tests.core.number_classes import NO_NUMBERS, NUMBERS
from tests.core.reference_model import Behaviour, ReferenceMachine

SIZES = (0, 1, 64, 100, 256, 4096)


@attrs.frozen
class Service:
    """The parameters of one node of a random machine, from which both models are made."""

    base: float = 0.0
    per_byte: float = 0.0
    interval: float | None = None
    servers: int = 0
    on_head: bool = False

    def ns(self, nbytes: int) -> float:
        return self.base + self.per_byte * nbytes

    def behaviour(self) -> Behaviour:
        interval = self.interval or 0.0
        return Behaviour(self.ns, not self.servers, lambda nbytes: interval, max(1, self.servers), self.on_head)

    def model(self) -> type[ComponentBase]:
        service = self

        class Fast(ComponentBase):
            ON_HEAD = service.on_head

            if service.servers:

                def start(self) -> None:
                    self.servers = service.servers
                    super().start()

                def run(self, env: Environment, msg: MsgBase) -> ProcessGenerator:
                    yield env.timeout(service.ns(msg.nbytes))
            else:

                def overhead(self, msg: MsgBase) -> float:
                    return service.ns(msg.nbytes)

                if service.interval is not None:

                    def interval(self, msg: MsgBase) -> float:
                        return service.interval or 0.0

        return Fast


Feeds = Sequence[tuple[tuple[str, ...], float, int]]


def compare(services: dict[str, Service], edges: Sequence[Edge], feeds: Feeds) -> int:
    """Run both machines and assert equal logs and completions; return how many completions there were."""
    probes = {end for each in edges for end in (each.src, each.dst)} - set(services)
    fast = Harness({**{n: s.model() for n, s in services.items()}, **dict.fromkeys(probes, Probe)}, edges)
    naive = ReferenceMachine(
        {**{n: s.behaviour() for n, s in services.items()}, **dict.fromkeys(probes, Behaviour())}, edges
    )
    for path, at, nbytes in feeds:
        fast.send(path, at, nbytes)
        naive.feed(path, at, nbytes)
    fast.run()
    naive.run()
    served = [(n.t_start, n.t_end, n.component, int(n.label[4:])) for n in fast.log]
    assert sorted(served) == sorted(entry for entry in naive.log if entry[2] in services)
    arrived = [(a.time, a.node, int(a.label[4:]), a.head, a.tail) for a in fast.arrivals]
    by_sink = lambda entries: sorted(entries, key=lambda entry: entry[1])  # noqa: E731
    assert by_sink(arrived) == by_sink(naive.completions)
    for msg in (arrival.message for arrival in fast.arrivals):
        parts = msg.propagation + msg.serialisation + msg.overhead + msg.queueing + msg.service
        assert parts == msg.tail - msg.born
    return len(arrived)


GRIDLESS = st.sampled_from((0.0, 1.0, 2.0, 0.3, 1 / 3, 7.77))
SERVICES = st.builds(
    Service,
    base=GRIDLESS,
    per_byte=st.sampled_from((0.0, 0.01, 1 / 64)),
    interval=st.sampled_from((None, None, 0.0, 1.0, 2.5)),
    servers=st.sampled_from((0, 0, 1)),
    on_head=st.booleans(),
)


@st.composite
def workloads(draw: st.DrawFn) -> tuple[dict[str, Service], list[Edge], list[tuple[tuple[str, ...], float, int]]]:
    """Draw a mesh of up to five nodes between three sources and two sinks, and messages that often tie."""
    names = [f"n{i}" for i in range(draw(st.integers(1, 5)))]
    services = {name: draw(SERVICES) for name in names}
    sources, sinks = ["s0", "s1", "x2"], ["t0", "a1"]
    pairs = [(a, b) for a in [*sources, *names] for b in names if a != b] + [(a, b) for a in names for b in sinks]
    wires = st.tuples(
        st.sampled_from((1.0, 3.0, 10.0, 64.0)), st.sampled_from((1.0, 2.0, 0.3)), st.sampled_from((0, 16))
    )
    edges = []
    for src, dst in pairs:
        bandwidth, latency, header = draw(wires)
        edges.append(edge(src, dst, bandwidth=bandwidth, latency=latency, header_bytes=header, payload_bytes=256))
    feeds = []
    for _ in range(draw(st.integers(1, 40))):
        middle = [draw(st.sampled_from(names))]
        for _ in range(draw(st.integers(0, 3))):
            others = [name for name in names if name != middle[-1]]
            if others:
                middle.append(draw(st.sampled_from(others)))
        path = (draw(st.sampled_from(sources)), *middle, draw(st.sampled_from(sinks)))
        feeds.append((path, float(draw(st.integers(0, 6))), draw(st.sampled_from(SIZES))))
    return services, edges, feeds


@settings(max_examples=150)
@given(workloads())
def test_equals_the_naive_model_on_tied_workloads(drawn: tuple[dict[str, Service], list[Edge], Feeds]) -> None:
    """Fast and naive agree bit for bit on random meshes whose messages meet at equal times."""
    services, edges, feeds = drawn
    assert compare(services, edges, feeds) == len(feeds)


@pytest.mark.parametrize("count", [1000, 15000])
@pytest.mark.parametrize("servers", [0, 1, 3], ids=["overhead", "run", "run with three servers"])
def test_equals_the_naive_model_over_many_completions(servers: int, count: int) -> None:
    """A long seeded workload through a fan-in and fan-out mesh gives the same log and completions."""
    rng = random.Random(7 + servers)
    names = [f"n{i:02d}" for i in range(12)]
    services = {
        name: Service(
            base=rng.choice((0.0, 1.0, 5.0)) if servers < 2 else rng.uniform(0.5, 9.0),
            per_byte=0.0 if servers < 2 else rng.uniform(0.001, 0.01),
            interval=rng.choice((None, 1.0)) if not servers else None,
            servers=servers,
            on_head=rng.random() < 0.5,
        )
        for name in names
    }
    sources, sinks = [f"s{i}" for i in range(6)], [f"t{i}" for i in range(4)]
    pairs = [(a, b) for a in [*sources, *names] for b in names if a != b] + [(a, b) for a in names for b in sinks]
    edges = [edge(a, b, bandwidth=rng.choice((8.0, 64.0)), latency=rng.choice((1.0, 2.0))) for a, b in pairs]
    feeds = []
    for _ in range(count):
        middle = rng.sample(names, rng.randint(1, 4))
        at = float(rng.randint(0, count * 8 // 3))
        feeds.append(((rng.choice(sources), *middle, rng.choice(sinks)), at, rng.choice(SIZES)))
    assert compare(services, edges, feeds) == count


def test_departures_keep_the_order_of_arrivals() -> None:
    """A short latency does not overtake a long one: `previous_out` is one per component."""

    class Sized(ComponentBase):
        def overhead(self, msg: MsgBase) -> float:
            return float(msg.nbytes)

    rig = Rig(Sized, inputs=2, bandwidth=1000.0).feed(0, 50).feed(1, 1, port=1).run()
    assert [a.label for a in rig.arrivals] == ["Ping1", "Ping2"]
    assert [entry.t_end for entry in rig.log if entry.label == "Ping2"] == [
        entry.t_end for entry in rig.log if entry.label == "Ping1"
    ]


def test_pick_chooses_among_those_that_wait_at_that_time() -> None:
    """A worker that becomes free sees every delivery of that instant before it picks."""

    class Smallest(ComponentBase):
        def run(self, env: Environment, msg: MsgBase) -> ProcessGenerator:
            yield env.timeout(10.0)

        def pick(self, queue: deque[MsgBase]) -> MsgBase:
            found = min(queue, key=lambda msg: msg.nbytes)
            queue.remove(found)
            return found

    rig = Rig(Smallest, inputs=4, bandwidth=100.0)
    # the first is taken at 2 ns; the others are there when it ends at 12 ns, the last at that very instant
    rig.feed(0, 100).feed(1, 300, port=1).feed(1, 200, port=2).feed(10.5, 50, port=3).run()
    assert [entry.label for entry in rig.log] == ["Ping1", "Ping4", "Ping3", "Ping2"]


def test_idle_worker_takes_the_first_delivery_of_an_instant() -> None:
    """Of two deliveries at one time the one with the smaller edge id is served first."""
    rig = Rig(OneServer, inputs=2).feed(0, 0, port=1).feed(0, 0, port=0).run()
    assert [entry.label for entry in rig.log] == ["Ping2", "Ping1"]


def test_acting_on_the_head_sends_head_and_tail_after_service() -> None:
    """A run-style model that acts on the head sends head = end and tail = tail_in + service."""
    cut_through = type("CutThrough", (OneServer,), {"ON_HEAD": True})
    rig = Rig(cut_through, bandwidth=1.0, latency=1.0).feed(0, 30).run()
    service = grid_ceil(1.1 + 30 / 300)
    # head at 1, tail at 31; then service; then a wire of the same bandwidth, which follows the tail
    (arrival,) = rig.arrivals
    assert rig.log[0].t_start == 1.0
    assert rig.log[0].t_end == 1.0 + service
    assert arrival.tail == 31.0 + service + 1.0


def test_split_serves_pieces_side_by_side_and_ends_once() -> None:
    """Pieces of one message go to the workers one by one; `emit` decides what follows."""

    class Halves(ComponentBase):
        PARAMS = (Param("servers", "int", 2, "Pieces at a time.", minimum=1),)

        def split(self, msg: MsgBase) -> Iterable[MsgBase]:
            self.left, self.whole = 4, msg
            for _ in range(4):
                piece = MsgBase(msg.nbytes // 4)
                piece.head = piece.tail = piece.born = self.env.now
                yield piece

        def run(self, env: Environment, msg: MsgBase) -> ProcessGenerator:
            yield env.timeout(5.0)

        def emit(self, msg: MsgBase, head: float, tail: float) -> None:
            self.left -= 1
            if not self.left:
                super().emit(self.whole, head, tail)

    rig = Rig(Halves, bandwidth=100.0).feed(0, 100)
    assert_ready_at(rig, 1 + 1 + 2 * 5.0 + 1 + 1)
    assert rig.under_test.served == 4


@pytest.mark.parametrize("wrong", [33 * 1.05, np.float32(33.3), np.float64(1.5), "33"])
def test_parts_of_bytes_are_refused(wrong: Any) -> None:
    """In both forms: a size in C would lose the part, and times would be others."""

    class Pads(ComponentBase):
        """Make messages longer."""

        def emit(self, msg: MsgBase, head: float, tail: float) -> None:
            msg.nbytes = wrong
            super().emit(msg, head, tail)

    with pytest.raises(ComponentError) as caught:
        Rig(Pads, bandwidth=10.0).feed(0, 33).run()
    assert re.match(
        r"under_test: .*Pads raised TypeError: '.*' object cannot be interpreted as an integer at simulated time",
        str(caught.value),
    )


def emitting(number: Callable[[float], Any]) -> type[ComponentBase]:
    """Return a model that sends everything on 1.3 ns later, in numbers of a class."""

    class Emits(ComponentBase):
        def emit(self, msg: MsgBase, head: float, tail: float) -> None:
            super().emit(msg, number(head + 1.3), number(tail + 1.3))

    return Emits


@pytest.mark.parametrize("number", NUMBERS)
def test_emit_takes_numbers_of_any_class(number: Callable[[float], Any]) -> None:
    """In both forms they are Python's own floats from there on, at its end as on the way."""
    rig = Rig(emitting(number), bandwidth=7.0).feed(0, 100).feed(3, 50).run()
    plain = Rig(emitting(lambda time: float(number(time))), bandwidth=7.0).feed(0, 100).feed(3, 50).run()
    assert [each.time for each in rig.arrivals] == [each.time for each in plain.arrivals]
    assert {type(each.time) for each in rig.arrivals} == {float}
    machine = Harness({"a": Pipelined, "b": emitting(number)}, line("a", "b"))
    sent = Transaction("read", (), 100, ("a", "b"), lambda back: None)
    machine.send(("a", "b"), 0.0, msg=sent)
    machine.run()
    assert type(sent.head) is type(sent.tail) is float


@pytest.mark.parametrize(
    ("earlier", "head", "tail"), [(0.5, 4.5, 4.5), (-math.nan, math.nan, math.nan), (-100.0, 105.0, 5.0)]
)
def test_emit_refuses_times_that_no_message_can_leave_at(earlier: float, head: float, tail: float) -> None:
    """Before now, at no time at all, or with the first byte after the last."""

    class Odd(ComponentBase):
        def overhead(self, msg: MsgBase) -> float:
            return 4.0

        def emit(self, msg: MsgBase, head: float, tail: float) -> None:
            now = self.env.now
            super().emit(msg, now - earlier, now if earlier < 0 else now - earlier)

    with pytest.raises(ComponentError) as caught:
        Rig(Odd, bandwidth=25.0, latency=1.0).feed(0, 100).run()
    assert str(caught.value) == (
        "under_test must send nothing before now, nor a last byte before the first: at 5.0 ns it sent a Ping with its "
        f"head at {head} ns and its tail at {tail} ns; correct what emit is given."
    )


@pytest.mark.parametrize(("time", "of"), NO_NUMBERS)
def test_emit_refuses_what_is_no_number(time: Any, of: str) -> None:
    """Text, too, though it may spell one."""
    model = emitting(lambda _: time)
    with pytest.raises(ComponentError) as caught:
        Rig(model).feed(0, 8).run()
    assert str(caught.value).startswith(
        f"under_test: {__name__}.{model.__qualname__} raised TypeError: must be real number, not {of} at simulated time"
    )


@pytest.mark.parametrize("number", NUMBERS)
def test_end_takes_numbers_of_any_class(number: Callable[[float], Any]) -> None:
    """Of how long a service kept it busy."""

    class Ends(ComponentBase):
        def receive(self, msg: MsgBase) -> None:
            self.begin(msg)
            self.env.call_at(self.env.now + 7.0, msg, lambda each: self.end(each, number(3.0)))

    unit = Rig(Ends).feed(0, 8).run().under_test
    assert unit.busy_ns == 3.0 and type(unit.busy_ns) is float


@pytest.mark.parametrize("on_head", [False, True], ids=["tail", "head"])
def test_answer_is_taken_at_its_last_byte(on_head: bool) -> None:
    """An overhead-style sender takes note of an answer when its own latency is over, not on arrival."""

    class Sender(ComponentBase):
        ON_HEAD = on_head

        def overhead(self, msg: MsgBase) -> float:
            return 7.0

    taken: list[float] = []
    machine = Harness({"a": Sender, "b": Pipelined}, line("a", "b", bandwidth=10.0, latency=2.0))
    sent = Transaction("read", (), 100, ("a", "b"), lambda back: taken.append(machine.env.now))
    machine.send(("a", "b"), 0.0, msg=sent)
    machine.run()
    # out: 7 of overhead, an empty message over 2 ns, 3.3 of overhead; back: 100 B at 10 B/ns, 2 ns, 7 of overhead
    assert taken == [7 + 2 + grid_ceil(3.3) + 10 + 2 + 7]
    assert sent.tail == taken[0]


def bad_overhead(value: object) -> type[ComponentBase]:
    """Return a model whose overhead is `value`."""

    class Bad(ComponentBase):
        def overhead(self, msg: MsgBase) -> float:
            return value  # type: ignore[return-value]

    return Bad


@pytest.mark.parametrize("value", [-1.0, math.nan, math.inf, "5 ns", None], ids=repr)
def test_wrong_overhead_is_a_sentence(value: object) -> None:
    """A latency that is negative, no number or no time stops the run, naming the model and what to do."""
    model = bad_overhead(value)
    with pytest.raises(ComponentError) as caught:
        Rig(model).feed(0, 8).run()
    assert str(caught.value) == (
        f"under_test: {model.__module__}.{model.__qualname__}.overhead must return a finite time in ns, at least 0, "
        f"not {value!r}; correct the component or choose another one for kind 'under_test'."
    )
    assert caught.value.exit_code == 6


def test_wrong_interval_is_a_sentence() -> None:
    """The same holds for the interval."""

    class Bad(ComponentBase):
        def interval(self, msg: MsgBase) -> float:
            return -2.0

    with pytest.raises(ComponentError) as caught:
        Rig(Bad).feed(0, 8).run()
    assert str(caught.value) == (
        f"under_test: {Bad.__module__}.{Bad.__qualname__}.interval must return a finite time in ns, at least 0, "
        "not -2.0; correct the component or choose another one for kind 'under_test'."
    )


@pytest.mark.parametrize("garbage", [42, None, "soon"], ids=repr)
def test_garbage_from_run_is_a_sentence(garbage: object) -> None:
    """A run that yields something that is no event is named, with what to write instead."""

    class Bad(ComponentBase):
        def run(self, env: Environment, msg: MsgBase) -> ProcessGenerator:
            yield garbage  # type: ignore[misc]

    with pytest.raises(ComponentError) as caught:
        Rig(Bad).feed(0, 8).run()
    assert str(caught.value) == (
        f"under_test: {Bad.__module__}.{Bad.__qualname__}.run must yield SimPy events, not {garbage!r}; "
        "write `yield env.timeout(ns)` to wait."
    )


def test_negative_delay_in_run_is_a_sentence() -> None:
    """A timeout that is no time is named with the line that made it."""

    class Bad(ComponentBase):
        def run(self, env: Environment, msg: MsgBase) -> ProcessGenerator:
            yield env.timeout(-1.0)

    with pytest.raises(ComponentError) as caught:
        Rig(Bad).feed(0, 8).run()
    first, _, rest = str(caught.value).partition("\n")
    assert first == (
        f"under_test: {Bad.__module__}.{Bad.__qualname__} raised ValueError: a delay must be a finite time in ns, "
        "at least 0, not -1.0 at simulated time 1.08 ns."
    )
    assert "yield env.timeout(-1.0)" in rest


def test_exception_in_a_component_names_it_the_time_and_the_line() -> None:
    """What a model raises comes out with the model's name, the simulated time and its own lines only."""

    class Bad(ComponentBase):
        def run(self, env: Environment, msg: MsgBase) -> ProcessGenerator:
            yield env.timeout(5.0)
            raise RuntimeError("no such bank")

    with pytest.raises(ComponentError) as caught:
        Rig(Bad).feed(0, 100).run()
    first, _, rest = str(caught.value).partition("\n")
    assert first == (
        f"under_test: {Bad.__module__}.{Bad.__qualname__} raised RuntimeError: no such bank at simulated time 7 ns."
    )
    assert rest.count("File ") == 1
    assert 'raise RuntimeError("no such bank")' in rest


def test_internal_wire_needs_on_internal() -> None:
    """A model that makes an internal wire and does not say what its delivery means is told so."""

    class Bad(ComponentBase):
        def connect(self) -> None:
            self.channel = self.internal_wire("pc0", 10.0, 1.0)

        def emit(self, msg: MsgBase, head: float, tail: float) -> None:
            self.channel.send(msg, head, tail)

    with pytest.raises(ComponentError) as caught:
        Rig(Bad).feed(0, 8).run()
    assert str(caught.value) == "under_test: Bad has an internal wire, so it must define on_internal."


def test_repr_shows_the_state() -> None:
    """A component says its style, its queue and what it has served."""
    rig = Rig(OneServer).feed(0, 100).feed(0, 100).run()
    assert repr(rig.under_test) == "<OneServer under_test (run, 1 servers, 0 waiting), 2 served>"
    assert repr(Rig(Pipelined).under_test) == "<Pipelined under_test (overhead), 0 served>"


def test_servers_may_be_said_by_the_class() -> None:
    """Without a parameter of that name, the class says how many messages are served at once."""

    class Two(ComponentBase):
        servers = 2

        def run(self, env: Environment, msg: MsgBase) -> ProcessGenerator:
            yield env.timeout(10)

    rig = Rig(Two).feed(at_ns=0, nbytes=1).feed(at_ns=0, nbytes=1)
    rig.run()
    first, second = (arrival.tail for arrival in rig.arrivals)
    assert second - first < 10
