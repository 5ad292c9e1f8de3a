"""What a component tells those who report: observers hear of answers and of logged messages, and change nothing."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from kernbench_core.component import ComponentBase
from kernbench_core.environment import Environment, ProcessGenerator
from kernbench_core.errors import ComponentError
from kernbench_core.graph import Node
from kernbench_core.messages import MsgBase
from kernbench_core.oplog.description import OpDescription
from kernbench_core.reporting import Rates
from kernbench_core.testing import Rig


class Logged(MsgBase):
    """Be logged."""

    data_op: ClassVar[bool] = True

    def describe(self) -> OpDescription:
        return OpDescription("memory", "move", {}, (), None)


class Noting:
    """Note what is told, and where."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str, MsgBase]] = []
        self.uses: list[tuple[str, float, float]] = []

    def answered(self, component: Any, msg: MsgBase) -> None:
        self.told.append(("answered", component.id, msg))

    def served(self, component: Any, msg: MsgBase) -> None:
        self.told.append(("served", component.id, msg))

    def was_busy(self, component: Any, took: float, until: float) -> None:
        self.uses.append(("busy", took, until))

    def waited(self, component: Any, waited: float, until: float) -> None:
        self.uses.append(("waited", waited, until))


class Memory(ComponentBase):
    """Answer after 5 ns."""

    def overhead(self, msg: MsgBase) -> float:
        return 5.0


def test_observers_hear_of_what_is_served_and_answered() -> None:
    """Each of several, at the component that they look at; what happens is what happens without them."""
    times = []
    for observers in ([], [Noting(), Noting()]):
        rig = Rig(Memory)
        for observer in observers:
            rig.under_test.observe(observer)
        msg, answer = Logged(64), MsgBase()
        rig.send(("in0", "under_test"), 0, msg=msg)
        rig.run()
        rig.under_test.take_answer(answer)
        times.append((msg.head, msg.tail, rig.env.events))
        for observer in observers:
            assert observer.told == [("served", "under_test", msg), ("answered", "under_test", answer)]
    assert times[0] == times[1]


class Events(ComponentBase):
    """Serve event by event."""

    def receive(self, msg: MsgBase) -> None:
        self.begin(msg)
        self.env.call_at(self.env.now + 5.0, msg, self.end)


def test_observers_hear_of_logged_messages_only_whatever_the_style() -> None:
    """What is not logged is nobody's work, of a model that serves by events as of any other."""
    for model in (Memory, Events):
        rig, observer = Rig(model, inputs=2, bandwidth=1.0, latency=1.0), Noting()
        rig.under_test.observe(observer)
        logged = Logged(64)
        rig.send(("in0", "under_test"), 0, msg=MsgBase(64))
        rig.send(("in0", "under_test"), 50, msg=logged)
        rig.run()
        assert observer.told == [("served", "under_test", logged)]


class Unit:
    """Compute 4 operations per ns at most."""

    def __init__(self, flops: float, peak: float = 4.0) -> None:
        self._flops, self._peak = flops, peak

    def flops(self, msg: MsgBase) -> float:
        return self._flops

    def peak_flops(self, msg: MsgBase) -> float:
        return self._peak


def test_the_first_op_above_the_peak_is_kept() -> None:
    """To a rounding error; a unit without a peak is compared with none, and what takes no time is told elsewhere."""
    rates, msg, later = Rates(), Logged(1), Logged(1)
    rates.note(Unit(40.0), msg, 10.0)
    rates.note(Unit(40.0), msg, 0.0)
    assert rates.too_fast is None
    assert rates.peaks == {"f32": 4.0}
    rates.note(Unit(40.1), msg, 10.0)
    rates.note(Unit(80.0), later, 10.0)
    assert rates.too_fast == (msg, 40.1, 10.0, 4.0)
    silent = Rates()
    silent.note(Unit(1e9, 0.0), msg, 1.0)
    assert (silent.peaks, silent.too_fast) == ({}, None)


class Served(ComponentBase):
    """Serve for 4 ns."""

    def run(self, env: Environment, msg: MsgBase) -> ProcessGenerator:
        yield env.timeout(4.0)


class Paced(ComponentBase):
    """Take 2 ns, and let one go every 3 ns."""

    def overhead(self, msg: MsgBase) -> float:
        return 2.0

    def interval(self, msg: MsgBase) -> float:
        return 3.0


class ByEvents(ComponentBase):
    """Serve one after another, each for 4 ns."""

    def receive(self, msg: MsgBase) -> None:
        self.queue.append(msg)
        if len(self.queue) == 1:
            self._next()

    def _next(self) -> None:
        self.begin(self.queue[0])
        self.env.call_at(self.env.now + 4.0, self.queue[0], self._done)

    def _done(self, msg: MsgBase) -> None:
        self.queue.popleft()
        self.end(msg)
        if self.queue:
            self._next()


@pytest.mark.parametrize(
    ("model", "uses"),
    [
        (Served, [("busy", 4.0, 5.0), ("busy", 4.0, 9.0), ("waited", 4.0, 5.0)]),
        (ByEvents, [("busy", 4.0, 5.0), ("waited", 4.0, 5.0), ("busy", 4.0, 9.0)]),
        (Paced, [("busy", 3.0, 3.0), ("busy", 3.0, 6.0), ("waited", 3.0, 4.0)]),
    ],
)
def test_observers_hear_when_it_was_busy_and_what_waited(
    model: type[ComponentBase], uses: list[tuple[str, float, float]]
) -> None:
    """Two messages come at 1 ns, and one of them waits for the other; what is told sums to what is counted."""
    rig, observer = Rig(model, inputs=2, bandwidth=1.0, latency=1.0), Noting()
    rig.under_test.observe(observer)
    rig.feed(0, 0).feed(0, 0, port=1).run()
    assert observer.uses == uses
    assert rig.under_test.busy_ns == sum(ns for what, ns, _ in uses if what == "busy")
    assert rig.under_test.waited_ns == sum(ns for what, ns, _ in uses if what == "waited")


@pytest.mark.parametrize("found", [-1.0, float("nan"), float("inf")])
@pytest.mark.parametrize("what", ["flops", "peak_flops"])
def test_operations_that_are_no_number_are_told_with_their_model(what: str, found: float) -> None:
    """They would make shares of less than nothing."""

    class Odd(Unit):
        id, node = "unit", Node("unit", "pe_gemm")

    setattr(Odd, what, lambda self, msg: found)
    with pytest.raises(ComponentError) as caught:
        Rates().note(Odd(1.0), Logged(1), 10.0)
    assert str(caught.value) == (
        f"unit: {__name__}.{Odd.__qualname__}.{what} must return a finite number, at least 0, not {found!r}; "
        "correct the component or choose another one for kind 'pe_gemm'."
    )
