"""Workers do what SimPy processes would do that go through `run` after `run`: same times, order and count of events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import simpy
from hypothesis import given, settings
from hypothesis import strategies as st

from kernbench_core.component import ComponentBase
from kernbench_core.environment import Environment, ProcessGenerator, Signal
from kernbench_core.errors import ComponentError
from kernbench_core.messages import MsgBase
from kernbench_core.testing import Rig

#: What a service does, step by step: a word and a number of ns.
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["wait", "any", "all", "past", "fail", "child", "tell", "hit", "signal"]), st.integers(0, 3)
    ),
    max_size=4,
)
PROGRAMS = st.lists(st.tuples(st.integers(0, 8), STEPS), min_size=1, max_size=8)


class Scripted(ComponentBase):
    """Go through the steps that a message's size numbers, and note when each was over, and with what."""

    servers = 2
    programs: list[Any]

    def connect(self) -> None:
        self.noted: list[Any] = []
        self.now_running: list[Any] = []

    def run(self, env: Environment, msg: MsgBase) -> ProcessGenerator:
        me = env.active_process
        self.now_running.append(me)
        for number, (word, ns) in enumerate(self.programs[msg.nbytes][1]):
            try:
                value = yield from self.step(env, word, float(ns))
            except simpy.Interrupt as hit:
                value = ("hit", hit.cause)
            except KeyError as error:
                value = error.args
            assert env.active_process is me
            self.noted.append((env.now, env.events, msg.nbytes, number, value))
        self.now_running.remove(me)

    def step(self, env: Environment, word: str, ns: float) -> Iterator[Any]:
        if word == "wait":
            return (yield env.timeout(ns, ns))
        if word == "any":
            return len((yield env.timeout(ns) | env.timeout(1.0)))
        if word == "all":
            return len((yield env.timeout(ns) & env.timeout(1.0)))
        if word == "past":
            event = env.event().succeed("past")
            yield env.timeout(ns)
            return (yield event)
        if word == "fail":
            event = env.event()
            env.timeout(ns).callbacks.append(lambda _: event.fail(KeyError(ns)))
            return (yield event)
        if word == "child":
            return (yield env.process(self.child(env, ns)))
        if word == "signal":
            signal = Signal()
            env.call_at(env.now + ns, MsgBase(), lambda _: signal.fire("fired"))
            return (yield signal)
        others = [each for each in self.now_running if each is not env.active_process]
        if word == "hit" and others:
            others[0].interrupt(ns)
        return [each.is_alive for each in others]

    def child(self, env: Environment, ns: float) -> Iterator[Any]:
        yield env.timeout(ns)
        if ns == 2.0:
            raise KeyError("child")
        return "grown"


class ByProcesses(Scripted):
    """Have each worker be a SimPy process, by the words of its contract."""

    def start(self) -> None:
        self.free: list[Signal] = []
        for _ in range(self.servers):
            self.env.process(self.work(Signal()))

    def receive(self, msg: MsgBase) -> None:
        if self.free:
            self.free.pop().fire(msg)
        else:
            self.queue.append(msg)

    def work(self, mailbox: Signal) -> Any:
        while True:
            if self.queue:
                msg = self.queue.popleft()
            else:
                self.free.append(mailbox.rearm())
                msg = yield mailbox  # type: ignore[misc]
            start = self.env.now
            yield from self.run(self.env, msg)
            msg.service += self.env.now - start
            self.emit(msg, self.env.now, self.env.now)


@settings(max_examples=150)
@given(PROGRAMS)
def test_a_worker_is_no_other_than_a_process(programs: list[Any]) -> None:
    """Any steps, of two services at a time that interrupt each other: what each sees, and every event of the run."""
    seen = []
    for model in (Scripted, ByProcesses):
        rig = Rig(type(model.__name__, (model,), {"programs": programs}), bandwidth=1e9)
        for number, (at, _) in enumerate(programs):
            rig.feed(at, number)
        try:
            rig.run()
            error = None
        except ComponentError as raised:  # a hit outside of all steps
            error = str(raised).splitlines()[0].split(" raised ")[1]
        left = [(arrival.time, arrival.message.nbytes) for arrival in rig.arrivals]
        seen.append((rig.under_test.noted, left, error, rig.env.now, rig.env.events))  # type: ignore[attr-defined]
    assert seen[0] == seen[1]


def test_a_worker_without_work_can_be_interrupted_which_ends_it() -> None:
    """Its process waits for a message then; what interrupts it is raised where nobody waits for that process."""

    class Idle(ComponentBase):
        def run(self, env: Environment, msg: MsgBase) -> ProcessGenerator:
            self.mine = env.active_process
            yield env.timeout(1.0)

    rig = Rig(Idle).feed(0).run()
    process = rig.under_test.mine  # type: ignore[attr-defined]
    assert (process.is_alive, process.name, process.target.fired) == (True, "under_test", False)
    process.interrupt("enough")
    with pytest.raises(ComponentError, match=r"under_test: .*Idle raised Interrupt: Interrupt\('enough'\)"):
        rig.run()
    assert not process.is_alive


def test_others_can_wait_for_a_worker_that_fails() -> None:
    """As for any process: its exception is theirs then, and the simulation goes on."""

    class Fails(ComponentBase):
        def run(self, env: Environment, msg: MsgBase) -> ProcessGenerator:
            env.process(self.wait_for(env.active_process))
            yield env.timeout(1.0)
            raise LookupError("its own fault")

        def wait_for(self, process: Any) -> Any:
            try:
                yield process
            except LookupError as error:
                self.met = str(error)

    assert Rig(Fails).feed(0).run().under_test.met == "its own fault"  # type: ignore[attr-defined]


@pytest.mark.parametrize("iterable", [list, tuple, iter, lambda events: (event for event in events)])
def test_whatever_can_be_gone_through_is_gone_through(iterable: Any) -> None:
    """A run that is no generator, but gives some events: they are waited for one after another."""

    class Gives(ComponentBase):
        def run(self, env: Environment, msg: MsgBase) -> Any:
            return iterable([env.timeout(2.0), env.timeout(5.0)])

    assert [arrival.message.service for arrival in Rig(Gives).feed(0).run().arrivals] == [5.0]
