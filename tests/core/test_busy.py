"""Busy times of every style of component, against the spans that services really took."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernbench_core.component import ComponentBase
from kernbench_core.environment import Environment, ProcessGenerator
from kernbench_core.host.timing import resource_uses
from kernbench_core.messages import MsgBase
from kernbench_core.testing import Harness, Model, Probe, Rig, edge

SERVICE = 8.0
#: Times at which 8 B messages are fed, in ns; they are at the component, over 1 ns and 8 B/ns, 2 ns later.
ARRIVALS = st.lists(st.integers(0, 60), min_size=1, max_size=12).map(sorted)


class Pipelined(ComponentBase):
    """Be a latency: any number of messages at once."""

    def overhead(self, msg: MsgBase) -> float:
        return SERVICE


class Serial(Pipelined):
    """Take messages one by one."""

    def interval(self, msg: MsgBase) -> float:
        return SERVICE


class Paced(Pipelined):
    """Let a message go every 3 ns."""

    def interval(self, msg: MsgBase) -> float:
        return 3.0


class Slow(Pipelined):
    """Let a message go every 20 ns, though each takes less."""

    def interval(self, msg: MsgBase) -> float:
        return 20.0


class OneServer(ComponentBase):
    """Be `Serial`, written as a process."""

    def run(self, env: Environment, msg: MsgBase) -> ProcessGenerator:
        yield env.timeout(SERVICE)


class TwoServers(OneServer):
    """Serve two at once."""

    servers = 2


def fed(model: Model, times: list[int]) -> Rig:
    rig = Rig(model, bandwidth=8.0, latency=1.0)
    for time in times:
        rig.feed(float(time), 8)
    return rig


def within(spans: list[tuple[float, float]], until: float) -> float:
    """Sum up how long spans last before `until`."""
    return sum(max(0.0, min(end, until) - max(0.0, start)) for start, end in spans)


@settings(max_examples=60)
@given(times=ARRIVALS, until=st.integers(1, 200))
@pytest.mark.parametrize("model", [Serial, OneServer, TwoServers])
def test_a_service_counts_as_far_as_it_has_come(model: type[ComponentBase], times: list[int], until: int) -> None:
    """At any time: of what is booked ahead, or half served, only the part before it; the styles agree."""
    rig = fed(model, times)
    rig.run(until_ns=float(until))
    found = rig.under_test.busy_by(float(until))
    rig.run()
    spans = [(line.t_start, line.t_end) for line in rig.log]
    assert found == within(spans, until)
    assert rig.under_test.busy_by(rig.env.now) == SERVICE * len(times)


@settings(max_examples=60)
@given(times=ARRIVALS)
@pytest.mark.parametrize(("model", "interval"), [(Paced, 3.0), (Slow, 20.0)])
def test_a_paced_model_is_taken_for_an_interval_before_each_departure(
    model: type[ComponentBase], interval: float, times: list[int]
) -> None:
    """Spans that cannot overlap, none of it before time 0: a model is never busy for longer than there was time."""
    rig = fed(model, times).run()
    departures = [line.t_end for line in rig.log]
    assert rig.under_test.busy_by(departures[-1]) == within(
        [(out - interval, out) for out in departures], departures[-1]
    )
    assert rig.under_test.busy_by(departures[-1]) <= departures[-1]


def test_a_pure_latency_is_never_busy() -> None:
    """Interval 0: there is no capacity to take up, however many messages are on their way."""
    rig = fed(Pipelined, [0] * 40).run()
    assert (rig.under_test.keeps_busy, rig.under_test.busy_by(rig.env.now)) == (False, 0.0)
    assert {use.kind for use in resource_uses(rig.hardware, rig.env.now)} == {"pe wire"}


def test_uses_stop_at_the_end_of_the_run() -> None:
    """One serial model with three messages at 2 ns: at 2 + 12 ns it was busy for 12 of 14, not for 24."""
    rig = fed(Serial, [0, 0, 0])
    rig.run(until_ns=14.0)
    (use,) = [use for use in resource_uses(rig.hardware, 14.0) if use.kind == "under_test"]
    assert (use.busy_ns, use.utilisation) == (12.0, 12.0 / 14.0)


@pytest.mark.parametrize(
    ("until", "busy"), [(0.0, 0.0), (3.0, 3.0), (10.0, 10.0), (15.0, 10.0), (24.0, 14.0), (40.0, 20.0)]
)
def test_a_wire_is_busy_as_far_as_time_has_come(until: float, busy: float) -> None:
    """Two messages of 10 B over 1 B/ns, put on it at 0 and 20 ns."""
    machine = Harness({"a": Probe, "b": Probe}, [edge("a", "b", bandwidth=1.0, latency=1.0)])
    for time in (0.0, 20.0):
        machine.send(("a", "b"), time, 10)
    machine.run(until_ns=until)
    (wire,) = machine.hardware.wires
    assert wire.busy_by(until) == busy
