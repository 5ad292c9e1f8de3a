"""The matrix unit: its time by the formula, one product at a time, for commands and tiles alike."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import pytest

from kernbench_builtin.pe_gemm import PeGemm
from kernbench_core.component import ComponentBase
from kernbench_core.messages import MsgBase
from kernbench_core.params import Param
from kernbench_core.testing import Rig, assert_ready_at
from kernbench_core.units import grid_ceil

WIRE_NS = 1.0


class Product(MsgBase):
    """A product of (m, k) by (k, n)."""

    data_op: ClassVar[bool] = True

    def __init__(self, m: int, k: int, n: int) -> None:
        super().__init__()
        self.m, self.k, self.n = m, k, n


@pytest.mark.parametrize(
    ("size", "params", "service_ns"),
    [
        ((128, 128, 128), {"overhead": "10 ns", "clock": "1 GHz", "macs_per_cycle": 2048}, 10 + 1024),
        ((1, 1, 1), {"overhead": "0 ns", "clock": "1 GHz", "macs_per_cycle": 2048}, 1),
        ((3, 5, 7), {"overhead": "4 ns", "clock": "2 GHz", "macs_per_cycle": 10}, 4 + 11 / 2),
        ((64, 64, 64), {"overhead": "3 ns", "clock": "0.7 GHz", "macs_per_cycle": 1000}, grid_ceil(3 + 263 / 0.7)),
    ],
)
def test_a_product_takes_overhead_and_whole_cycles(
    size: tuple[int, int, int], params: dict[str, object], service_ns: float
) -> None:
    """Time = overhead + ceil(m k n / macs per cycle) / clock, and no grid step less."""
    rig = Rig(PeGemm, params).ask(0, msg=Product(*size))
    assert_ready_at(rig, WIRE_NS + service_ns + WIRE_NS)
    rig.run()
    assert [(line.t_start, line.t_end) for line in rig.log] == [(WIRE_NS, WIRE_NS + service_ns)]
    assert rig.under_test.min_service_ns(Product(*size)) == service_ns


def test_products_wait_for_the_array_and_keep_their_order() -> None:
    """Three products that come together end one service time after another."""
    rig = Rig(PeGemm, {"overhead": "2 ns", "macs_per_cycle": 64})
    for size in ((8, 8, 8), (4, 4, 4), (8, 8, 8)):
        rig.ask(0, msg=Product(*size))
    rig.run()
    assert [(line.t_start, line.t_end) for line in rig.log] == [(1, 11), (11, 14), (14, 24)]
    assert rig.under_test.busy_ns == 23


def test_two_servers_are_two_arrays() -> None:
    rig = Rig(PeGemm, {"overhead": "2 ns", "macs_per_cycle": 64, "servers": 2})
    for _ in range(3):
        rig.ask(0, msg=Product(8, 8, 8))
    rig.run()
    assert [(line.t_start, line.t_end) for line in rig.log] == [(1, 11), (1, 11), (11, 21)]


class OverheadGemm(ComponentBase):
    """The same unit written the other way: latency known on arrival, interval = overhead."""

    PARAMS: ClassVar[tuple[Param, ...]] = PeGemm.PARAMS

    def overhead(self, msg: Any) -> float:
        cycles = math.ceil(msg.m * msg.k * msg.n / self.params["macs_per_cycle"])
        return float(self.params["overhead"] + cycles / self.params["clock"])

    def interval(self, msg: Any) -> float:
        return self.overhead(msg)


def test_both_authoring_styles_give_one_log() -> None:
    """Interval = overhead is `servers: 1`, bit for bit, with ties and gaps in the arrivals."""
    logs = []
    for model in (PeGemm, OverheadGemm):
        rig = Rig(model, {"clock": "0.9 GHz", "macs_per_cycle": 48, "overhead": "1.3 ns"}, inputs=2)
        for i, at in enumerate((0, 0, 3.5, 4, 200, 200.25)):
            rig.ask(at, port=i % 2, msg=Product(4 + i, 8, 5))
        rig.run()
        logs.append((rig.log, rig.arrivals))
    assert logs[0] == logs[1]
