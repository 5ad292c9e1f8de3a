"""Who waits at a component, for how long, and which of its workers serves: the accounts that reports read."""

from __future__ import annotations

from kernbench_core.component import ComponentBase
from kernbench_core.environment import Environment, ProcessGenerator
from kernbench_core.messages import MsgBase
from kernbench_core.params import Param
from kernbench_core.testing import Harness, Probe, Rig, line, place


class Paced(ComponentBase):
    """Take 3 ns for each message, and let one go every `interval`."""

    PARAMS = (Param("interval", "time", "10 ns", "Between departures."),)

    def overhead(self, msg: MsgBase) -> float:
        return 3.0

    def interval(self, msg: MsgBase) -> float:
        return float(self.params["interval"])


class Two(ComponentBase):
    """Serve two messages at a time, each for 5 ns, and note by which worker."""

    servers = 2

    def connect(self) -> None:
        self.workers: list[int] = []

    def run(self, env: Environment, msg: MsgBase) -> ProcessGenerator:
        self.workers.append([worker.msg for worker in self._workers].index(msg))
        yield env.timeout(5.0)


def test_a_message_that_leaves_when_its_own_latency_is_over_has_not_waited() -> None:
    """Not even for 0 ns: neither alone, nor where it comes just when the one before it lets it go."""
    rig = Rig(Paced).feed(0, 100).feed(10, 100).run()
    assert (rig.under_test.waits, rig.under_test.waited_ns, rig.under_test.longest_wait_ns) == (0, 0.0, 0.0)
    assert [arrival.message.queueing for arrival in rig.arrivals] == [0.0, 0.0]


def test_waits_add_up_at_the_component_and_along_the_way_of_a_message() -> None:
    """Three at once leave x 10 ns apart and y 15 ns apart, so that they wait 0, 10 and 20 ns, then 0, 5 and 10."""
    machine = Harness(
        {"a": Probe, "x": Paced, "y": place(Paced, interval="15 ns"), "b": Probe}, line("a", "x", "y", "b")
    )
    for _ in range(3):
        machine.send(("a", "x", "y", "b"), 0.0)
    machine.run()
    assert [arrival.tail for arrival in machine.arrivals] == [1 + 3 + 1 + 3 + 1 + 15 * n for n in range(3)]
    assert [arrival.message.queueing for arrival in machine.arrivals] == [0.0, 15.0, 30.0]
    x, y = machine.component("x"), machine.component("y")
    assert (x.waits, x.waited_ns, x.longest_wait_ns) == (2, 30.0, 20.0)
    assert (y.waits, y.waited_ns, y.longest_wait_ns) == (2, 15.0, 10.0)


def test_a_head_that_is_held_up_while_its_tail_is_on_the_way_has_not_waited() -> None:
    """40 B at 10 B/ns from 10 to 14 ns: the head leaves at 14 ns instead of 13, and the last byte at 17 ns or later.

    The wire behind it takes 4 ns from 14 ns on, and 1 ns of latency.
    """
    cut_through = type("CutThrough", (Paced,), {"ON_HEAD": True})
    rig = Rig(cut_through, inputs=2, bandwidth=10.0).feed(0, 0).feed(9, 40, port=1).run()
    assert [(entry.t_start, entry.t_end) for entry in rig.log] == [(1.0, 4.0), (11.0, 14.0)]
    assert [arrival.tail for arrival in rig.arrivals] == [5.0, 19.0]
    assert rig.under_test.waits == 0


def test_the_worker_that_became_idle_last_serves_next() -> None:
    """One worker serves what comes one by one; the other has its turn while that one is busy, and then stays."""
    rig = Rig(Two).feed(0).feed(10).feed(11).feed(30).run()
    first, second, beside, last = rig.under_test.workers  # type: ignore[attr-defined]
    assert (second, last) == (first, beside)
    assert beside != first
