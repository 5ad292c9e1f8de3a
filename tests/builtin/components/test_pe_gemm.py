"""The matrix unit: its time by the closed form, one product at a time, for commands and tiles alike."""

from __future__ import annotations

import math
from copy import copy
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_builtin.components.pe_gemm import RATES, PeGemm
from kernbench_core.component import ComponentBase
from kernbench_core.messages import MsgBase
from kernbench_core.params import Param
from kernbench_core.testing import Rig, assert_ready_at
from kernbench_core.units import grid_ceil
from kernbench_core.values.dtypes import NAMES

WIRE_NS = 1.0


class Product(MsgBase):
    """A product of (m, k) by (k, n)."""

    data_op: ClassVar[bool] = True

    def __init__(self, m: int, k: int, n: int, dtype_in: str = "f16") -> None:
        super().__init__()
        self.m, self.k, self.n = m, k, n
        self.dtype_in = dtype_in


class Dot(Product):
    """A product whose operands and result are in the scratchpad."""

    def __init__(self, m: int, k: int, n: int, immediate: bool = False) -> None:
        super().__init__(m, k, n)
        sizes = [(m * k * 2, object()), (k * n * 2, None if immediate else object())]
        self.reads = [SimpleNamespace(value=SimpleNamespace(nbytes=n), region=region) for n, region in sizes]
        self.value = SimpleNamespace(nbytes=m * n * 4)


SMALL = {"rows": 4, "columns": 8, "overhead": "10 ns"}


@pytest.mark.parametrize(
    ("size", "dtype", "params", "service_ns"),
    [
        # 32 x 64 cells: 4 x 2 blocks of 128 cycles, filled in 94 and drained in 32
        ((128, 128, 128), "f16", {}, 10 + 8 * 128 + 94 + 32),
        ((1, 1, 1), "f16", {"overhead": "0 ns"}, 1 + 94 + 32),
        # 3 x 2 blocks of 5 cycles, 10 to fill, 4 to drain
        ((9, 5, 16), "bf16", SMALL, 10 + 3 * 2 * 5 + 10 + 4),
        ((9, 5, 16), "f32", SMALL, 10 + 3 * 2 * 20 + 10 + 4),
        ((9, 5, 16), "int8", SMALL, 10 + 3 * 2 * 3 + 10 + 4),
        ((9, 5, 16), "f32", {**SMALL, "rates": {"f32": 1}}, 10 + 3 * 2 * 5 + 10 + 4),
        ((9, 5, 16), "bf16", {**SMALL, "pipelined": False}, 10 + 3 * 2 * (5 + 10 + 4)),
        ((64, 64, 64), "f16", {"overhead": "3 ns", "clock": "0.7 GHz"}, grid_ceil(3 + (2 * 64 + 94 + 32) / 0.7)),
        # rounded up once, not part by part
        ((64, 64, 64), "f16", {"overhead": "1.1 ns", "clock": "0.6 GHz"}, grid_ceil(1.1 + (2 * 64 + 94 + 32) / 0.6)),
    ],
)
def test_a_product_takes_overhead_and_whole_cycles(
    size: tuple[int, int, int], dtype: str, params: dict[str, object], service_ns: float
) -> None:
    """Time = overhead + cycles / clock, and no grid step less."""
    rig = Rig(PeGemm, params).ask(0, msg=Product(*size, dtype))
    assert_ready_at(rig, WIRE_NS + service_ns + WIRE_NS)
    rig.run()
    assert [(line.t_start, line.t_end) for line in rig.log] == [(WIRE_NS, WIRE_NS + service_ns)]
    started = grid_ceil(rig.under_test.params["overhead"])
    assert rig.under_test.min_service_ns(Product(*size, dtype)) == service_ns - started


def unit(**params: object) -> PeGemm:
    """A matrix unit to ask for cycles."""
    found = Rig(PeGemm, params).under_test
    assert isinstance(found, PeGemm)
    return found


@given(st.integers(1, 70), st.integers(1, 70), st.integers(1, 140))
def test_a_ragged_block_takes_as_long_as_a_full_one(m: int, k: int, n: int) -> None:
    """m and n count in whole blocks: one more column costs nothing until it needs a block of its own."""
    array = unit(rows=16, columns=32)
    full = Product(math.ceil(m / 16) * 16, k, math.ceil(n / 32) * 32)
    assert array.cycles(Product(m, k, n)) == array.cycles(full)
    assert array.cycles(Product(m, k + 1, n)) - array.cycles(Product(m, k, n)) == full.m // 16 * (full.n // 32)


def test_a_long_product_reaches_the_peak_and_a_thin_one_does_not() -> None:
    """2048 MACs a cycle: a big product loses under 1 % to filling; one row uses one row in 32."""
    array = unit()
    assert 2048 * 0.99 < 1024**3 / array.cycles(Product(1024, 1024, 1024)) < 2048
    assert 1024**2 / array.cycles(Product(1, 1024, 1024)) < 2048 / 32


@pytest.mark.parametrize("pipelined", [True, False])
def test_cells_of_a_small_array_do_what_the_formula_says(pipelined: bool) -> None:
    """Each cell works through its blocks; the last cell starts after the skew; the last block leaves row by row."""
    rows, columns, (m, k, n) = 3, 2, (7, 4, 3)
    at, last = 0, 0
    for _ in range(math.ceil(m / rows)):
        for _ in range(math.ceil(n / columns)):
            busy = [at + i + j + step for i in range(rows) for j in range(columns) for step in range(k)]
            last = max(busy) + rows
            at = at + k if pipelined else last + 1
    assert unit(rows=rows, columns=columns, pipelined=pipelined).cycles(Product(m, k, n)) == last + 1


def test_every_dtype_has_a_rate() -> None:
    assert set(RATES) == set(NAMES) - {"f64"}


@pytest.mark.parametrize(
    ("command", "nbytes"),
    [
        (Dot(64, 64, 64), 64 * 64 * 4),  # two f16 operands, or one f32 result
        (Dot(8, 256, 8), 2 * 8 * 256 * 2),  # more comes in than goes out
        (Dot(8, 256, 8, immediate=True), 8 * 256 * 2),
        (Dot(64, 1, 80), 64 * 80 * 4),
    ],
)
def test_a_command_streams_its_operands_meanwhile(command: Dot, nbytes: int) -> None:
    """The slower of array and ports counts: a fast port hides behind the array, a slow one is all there is."""
    cycles = unit().cycles(command)
    for bandwidth, work in ((100, max(cycles, nbytes / 100)), (1, nbytes)):
        params = {"operand_bandwidth": f"{bandwidth} GB/s", "overhead": "2 ns"}
        assert_ready_at(Rig(PeGemm, params).ask(0, msg=copy(command)), WIRE_NS + grid_ceil(2 + work) + WIRE_NS)
        assert unit(**params).min_service_ns(command) == grid_ceil(work)


def test_products_enter_one_behind_the_other_and_keep_their_order() -> None:
    """Three products that come together: each enters when the one before it has, and the start-up is paid once."""
    rig = Rig(PeGemm, {"overhead": "2 ns", "rows": 1, "columns": 1})
    for k in (7, 3, 7):
        rig.ask(0, msg=Product(1, k, 1))
    rig.run()
    # 7 cycles enter, filling and draining takes 1
    assert [(line.t_start, line.t_end) for line in rig.log] == [(1, 11), (10, 14), (13, 21)]
    assert rig.under_test.busy_ns == 20
    assert rig.under_test.filling_ns == 20 - (7 + 3 + 7)


def test_two_servers_are_two_arrays() -> None:
    rig = Rig(PeGemm, {"overhead": "2 ns", "rows": 1, "columns": 1, "servers": 2})
    for _ in range(3):
        rig.ask(0, msg=Product(1, 7, 1))
    rig.run()
    assert [(line.t_start, line.t_end) for line in rig.log] == [(1, 11), (1, 11), (10, 18)]


class OverheadGemm(ComponentBase):
    """The same unit written the other way: latency known on arrival, and operands that enter behind each other."""

    PARAMS: ClassVar[tuple[Param, ...]] = PeGemm.PARAMS

    def cycles(self, msg: Any, around: int) -> int:
        blocks = math.ceil(msg.m / self.params["rows"]) * math.ceil(msg.n / self.params["columns"])
        each = 2 * self.params["rows"] + self.params["columns"] - 2
        return blocks * msg.k + each * (around if self.params["pipelined"] else blocks)

    def overhead(self, msg: Any) -> float:
        return float(self.params["overhead"] + self.cycles(msg, 1) / self.params["clock"])

    def interval(self, msg: Any) -> float:
        return float(self.cycles(msg, 0) / self.params["clock"])


@pytest.mark.parametrize("pipelined", [True, False])
def test_both_authoring_styles_answer_at_the_same_times(pipelined: bool) -> None:
    """A pipelined model whose interval is what enters gives the same times, with ties and gaps in the arrivals."""
    arrivals = []
    for model in (PeGemm, OverheadGemm):
        params = {"clock": "0.5 GHz", "rows": 4, "columns": 3, "overhead": "1.5 ns", "pipelined": pipelined}
        rig = Rig(model, params, inputs=2)
        for i, at in enumerate((0, 0, 3.5, 4, 500, 500.25, 500.25, 530, 700, 800)):
            rig.ask(at, port=i % 2, msg=Product(4 + i, 8, 5))
        arrivals.append(rig.run().arrivals)
    assert arrivals[0] == arrivals[1]
