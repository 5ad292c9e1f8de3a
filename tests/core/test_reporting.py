"""What a component tells those who report: observers hear of answers and of logged messages, and change nothing."""

from __future__ import annotations

from typing import Any, ClassVar

from kernbench_core.component import ComponentBase
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

    def answered(self, component: Any, msg: MsgBase) -> None:
        self.told.append(("answered", component.id, msg))

    def served(self, component: Any, msg: MsgBase) -> None:
        self.told.append(("served", component.id, msg))


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
        rig, observer = Rig(model), Noting()
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
