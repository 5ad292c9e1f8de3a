"""The vector unit: its time by the formula, one op at a time."""

from __future__ import annotations

from typing import ClassVar

import pytest

from kernbench_builtin.pe_math import PeMath
from kernbench_core.messages import MsgBase
from kernbench_core.testing import Rig, assert_ready_at
from kernbench_core.units import grid_ceil

WIRE_NS = 1.0


class Elements(MsgBase):
    """An op over so many elements."""

    data_op: ClassVar[bool] = True

    def __init__(self, elements: int) -> None:
        super().__init__()
        self.elements = elements


@pytest.mark.parametrize(
    ("elements", "params", "service_ns"),
    [
        (1024, {"overhead": "10 ns", "clock": "1 GHz", "lanes": 128}, 10 + 8),
        (1025, {"overhead": "10 ns", "clock": "1 GHz", "lanes": 128}, 10 + 9),
        (1, {"overhead": "0 ns", "clock": "2 GHz", "lanes": 128}, 0.5),
        (4096, {}, grid_ceil(10 + 32 / 0.96)),
    ],
)
def test_an_op_takes_overhead_and_whole_cycles(elements: int, params: dict[str, object], service_ns: float) -> None:
    """Time = overhead + ceil(elements / lanes) / clock, and no grid step less."""
    rig = Rig(PeMath, params).ask(0, msg=Elements(elements))
    assert_ready_at(rig, WIRE_NS + service_ns + WIRE_NS)
    rig.run()
    assert [(line.t_start, line.t_end) for line in rig.log] == [(WIRE_NS, WIRE_NS + service_ns)]
    assert rig.under_test.min_service_ns(Elements(elements)) == service_ns


def test_ops_wait_for_the_lanes_and_keep_their_order() -> None:
    rig = Rig(PeMath, {"overhead": "2 ns", "clock": "1 GHz", "lanes": 4})
    for elements in (40, 4, 1):
        rig.ask(0, msg=Elements(elements))
    rig.run()
    assert [(line.t_start, line.t_end) for line in rig.log] == [(1, 13), (13, 16), (16, 19)]
    assert rig.under_test.busy_ns == 18
