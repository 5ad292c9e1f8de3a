"""One model in each of the three styles gives one log, bit for bit."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernbench_core.messages import MsgBase
from kernbench_core.testing import Feed, Rig, assert_same_log
from kernbench_core.units import grid_ceil
from tests.core.component_styles import OneAfterAnother, OneServer, Pipelined, Serial, Unbounded, UnboundedEvents

SIZES = (0, 1, 64, 100, 256, 4096)

WORKLOADS = st.lists(
    st.builds(Feed, st.integers(0, 12).map(float), st.sampled_from(SIZES), st.integers(0, 2)), min_size=1, max_size=30
)


@pytest.mark.parametrize("on_head", [False, True], ids=["tail", "head"])
@settings(max_examples=60)
@given(workload=WORKLOADS)
def test_interval_0_equals_unbounded_servers(on_head: bool, workload: list[Feed]) -> None:
    """The same pipelined model in each style gives the same log, bit for bit."""
    for cls in (Unbounded, UnboundedEvents):
        styles = [type(each.__name__, (each,), {"ON_HEAD": on_head}) for each in (Pipelined, cls)]
        assert_same_log(styles[0], styles[1], workload, bandwidth=20.0)


@pytest.mark.parametrize("on_head", [False, True], ids=["tail", "head"])
@settings(max_examples=60)
@given(workload=WORKLOADS)
def test_interval_equal_to_overhead_equals_one_server(on_head: bool, workload: list[Feed]) -> None:
    """The same serial model in each style gives the same log, bit for bit."""
    for cls in (OneServer, OneAfterAnother):
        styles = [type(each.__name__, (each,), {"ON_HEAD": on_head}) for each in (Serial, cls)]
        assert_same_log(styles[0], styles[1], workload, bandwidth=20.0)


class Doorkeeper(Pipelined):
    """Hand on what comes to the latency of the base."""

    def receive(self, msg: MsgBase) -> None:
        self.serve(msg)


def test_what_takes_up_capacity_is_told_by_what_a_class_defines() -> None:
    """A pure latency does not, also behind a `receive` of its own; whoever serves by events or as a process does."""
    styles = {Pipelined: False, Doorkeeper: False, Serial: True, OneServer: True, OneAfterAnother: True}
    assert {cls: Rig(cls).component("under_test").keeps_busy for cls in styles} == styles
    assert_same_log(Pipelined, Doorkeeper, [Feed(0, 100), Feed(0, 100), Feed(3, 5)])
    rig = Rig(OneAfterAnother).feed(0, 30).feed(0, 30).run()
    component = rig.component("under_test")
    assert component.busy_ns == 2 * grid_ceil(1.1 + 30 / 300) == component.busy_by(rig.env.now)
