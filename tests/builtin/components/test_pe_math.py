"""The vector unit: its time by the closed form, per op, dtype, reduction and axis; one op at a time."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_builtin.components.math_costs import COSTS
from kernbench_builtin.components.pe_math import PeMath
from kernbench_builtin.composites.language import ALONE, WITH_OPERAND
from kernbench_core.compute.ops import OPS
from kernbench_core.kernel.compute_commands import MathCmd, Operand
from kernbench_core.messages import MsgBase
from kernbench_core.testing import Rig, assert_ready_at
from kernbench_core.units import grid_ceil
from kernbench_core.values.dtypes import itemsize
from kernbench_core.values.region import Region
from kernbench_core.values.value import ResultValue

WIRE_NS = 1.0


class Elements(MsgBase):
    """An op over so many elements of a tile."""

    data_op: ClassVar[bool] = True

    def __init__(self, elements: int, op: str = "add", dtype: str = "f32", beside_bytes: int = 0) -> None:
        super().__init__()
        self.elements, self.op, self.dtype, self.beside_bytes = elements, op, dtype, beside_bytes


def value(shape: tuple[int, ...], dtype: str) -> SimpleNamespace:
    return SimpleNamespace(shape=shape, dtype=dtype, nbytes=math.prod(shape) * itemsize(dtype))


class MathCommand(MsgBase):
    """An op on tensors in the scratchpad; with `axis`, a reduction or scan of the first."""

    def __init__(self, op: str, *shapes: tuple[int, ...], dtype: str = "f32", out: str = "", **extra: Any) -> None:
        super().__init__()
        self.op, self.extra, self.reduce = op, extra, "axis" in extra
        self.reads = [SimpleNamespace(value=value(shape, dtype), region=object()) for shape in shapes]
        kept = tuple(e for i, e in enumerate(shapes[0]) if extra.get("axis") not in (None, i))
        self.value = value(shapes[0] if not self.reduce or "reverse" in extra else kept, out or dtype)
        self.dtype = self.value.dtype
        self.elements = math.prod(shapes[0])


def unit(**params: object) -> PeMath:
    """A vector unit to ask for cycles."""
    found = Rig(PeMath, params).under_test
    assert isinstance(found, PeMath)
    return found


@pytest.mark.parametrize(
    ("op", "params", "service_ns"),
    [
        (Elements(1024), {"clock": "1 GHz"}, 10 + 8),
        (Elements(1025), {"clock": "1 GHz"}, 10 + 9),
        (Elements(1), {"overhead": "0 ns", "clock": "2 GHz"}, 0.5),
        (Elements(4096), {}, grid_ceil(10 + 32 / 0.96)),
        (Elements(1024, "exp"), {"clock": "1 GHz"}, 10 + 5 * 8),
        (Elements(1024, "exp"), {"clock": "1 GHz", "costs": {"exp": 1.3}}, 10 + 11),
        (Elements(1024, "acme_op"), {"clock": "1 GHz", "costs": {"other": 3}}, 10 + 24),
        (Elements(1024, "truediv"), {"clock": "1 GHz"}, 10 + 7 * 8),
        (Elements(1024, dtype="int64"), {"clock": "1 GHz"}, 10 + 16),
        (Elements(1024, dtype="f16"), {"clock": "1 GHz"}, 10 + 8),
        (Elements(1024, dtype="f16"), {"clock": "1 GHz", "packed": True}, 10 + 4),
        (Elements(1024, dtype="int8"), {"clock": "1 GHz", "packed": True}, 10 + 2),
        (Elements(128, beside_bytes=4096), {"clock": "1 GHz", "operand_bandwidth": "64 GB/s"}, 10 + 64),
    ],
)
def test_an_op_takes_overhead_and_whole_cycles(op: Elements, params: dict[str, object], service_ns: float) -> None:
    """Time = overhead + ceil(cost * passes) / clock, and no grid step less."""
    rig = Rig(PeMath, params).ask(0, msg=op)
    assert_ready_at(rig, WIRE_NS + service_ns + WIRE_NS)
    rig.run()
    assert [(line.t_start, line.t_end) for line in rig.log] == [(WIRE_NS, WIRE_NS + service_ns)]
    assert rig.under_test.min_service_ns(op) == service_ns


@pytest.mark.parametrize("cost", [0.25, 1, 3])
def test_no_op_goes_faster_than_the_peak(cost: float) -> None:
    """The peak is that of the cheapest op of the table, whatever the table says."""
    found = unit(overhead="0 ns", clock="1 GHz", costs=dict.fromkeys(COSTS, cost))
    op = Elements(1 << 20)
    assert found.flops(op) / found.min_service_ns(op) == found.peak_flops(op) == 128 / cost


def naive_steps(shape: tuple[int, ...], axis: int | None, lanes: int) -> tuple[int, int]:
    """Deal the elements of `shape` to lanes in memory order; give passes, and lanes that share one result at most."""
    results: dict[tuple[int, ...], set[int]] = {}
    size = math.prod(shape)
    for number in range(size):
        index, rest = [], number
        for extent in reversed(shape):
            index.append(rest % extent)
            rest //= extent
        index.reverse()
        key = () if axis is None else tuple(e for i, e in enumerate(index) if i != axis)
        results.setdefault(key, set()).add(number % lanes)
    return math.ceil(size / lanes), max(len(lanes_of) for lanes_of in results.values())


@pytest.mark.parametrize(
    ("shape", "axis"),
    [((64,), 0), ((4,), 0), ((8, 16), 1), ((8, 16), 0), ((8, 4), 0), ((8, 4), 1), ((2, 8, 4), 1), ((8, 8), None)],
)
def test_a_reduction_adds_up_in_lanes_and_then_in_a_tree(shape: tuple[int, ...], axis: int | None) -> None:
    """Against elements dealt to 16 lanes one by one: the tree joins the lanes that hold parts of one result."""
    passes, together = naive_steps(shape, axis, 16)
    array = unit(lanes=16)
    tree = math.ceil(math.log2(together))
    assert array.cycles(MathCommand("sum", shape, axis=axis)) == passes + tree
    assert array.cycles(MathCommand("argmax", shape, axis=axis, out="int32")) == 2 * (passes + tree)
    assert array.cycles(MathCommand("cumsum", shape, axis=axis or 0, reverse=False)) == passes * (
        1 + math.ceil(math.log2(naive_steps(shape, axis or 0, 16)[1]))
    )


@given(st.integers(1, 4096), st.integers(1, 4096))
def test_a_reduction_over_rows_needs_no_tree_where_a_row_fills_the_lanes(rows: int, columns: int) -> None:
    """Along the first axis every lane has results of its own; along the last, lanes share them."""
    array = unit(lanes=64)
    passes = math.ceil(rows * columns / 64)
    first, last = (array.cycles(MathCommand("max", (rows, columns), axis=axis)) for axis in (0, 1))
    assert first - passes == (0 if columns >= 64 else math.ceil(math.log2(min(rows, math.ceil(64 / columns)))))
    assert last - passes == math.ceil(math.log2(min(columns, 64)))


@pytest.mark.parametrize(
    ("command", "nbytes"),
    [
        (MathCommand("add", (64, 64), (64, 64)), 2 * 64 * 64 * 4),
        (MathCommand("neg", (64, 64), dtype="f16"), 64 * 64 * 2),
        (MathCommand("cast", (64, 64), dtype="f16", out="f32"), 64 * 64 * 4),
        (MathCommand("sum", (64, 64), axis=1), 64 * 64 * 4),
    ],
)
def test_a_command_streams_its_operands_meanwhile(command: MathCommand, nbytes: int) -> None:
    """The slower of lanes and ports counts; the ports carry operands one way and results the other."""
    cycles = unit().cycles(command)
    fast, slow = unit(clock="1 GHz", operand_bandwidth="4 TB/s"), unit(clock="1 GHz", operand_bandwidth="8 GB/s")
    assert fast.min_service_ns(command) == 10 + cycles
    assert slow.min_service_ns(command) == 10 + nbytes / 8


def test_the_widest_element_counts() -> None:
    """A cast from int64 takes two passes for each 4-byte lane, as does one to int64."""
    array = unit()
    for dtype, out in (("int64", "f32"), ("f32", "int64")):
        assert array.cycles(MathCommand("cast", (1024,), dtype=dtype, out=out)) == 16


def test_the_table_has_every_op_of_the_language_and_no_other() -> None:
    """Also every kind of epilogue step; "other" is for plug-ins."""
    assert set(COSTS) == {*OPS, *WITH_OPERAND, *ALONE, "other"}


def test_an_entry_that_is_no_op_is_refused(plugins) -> None:
    costs = next(each for each in plugins.components.declared("builtin.pe_math") if each.name == "costs")
    with pytest.raises(ValueError) as raised:
        costs.convert({"expp": 3})
    assert str(raised.value) == "must be an entry of the table. Did you mean 'exp'?"


def test_ops_wait_for_the_lanes_and_keep_their_order() -> None:
    rig = Rig(PeMath, {"overhead": "2 ns", "clock": "1 GHz", "lanes": 4})
    for elements in (40, 4, 1):
        rig.ask(0, msg=Elements(elements))
    rig.run()
    assert [(line.t_start, line.t_end) for line in rig.log] == [(1, 13), (13, 16), (16, 19)]
    assert rig.under_test.busy_ns == 18


commands = st.tuples(
    st.sampled_from(["add", "exp", "sum", "cumsum"]), st.sampled_from([(8,), (8, 128), (128, 8), (64, 64)]),
    st.sampled_from(["f16", "f32", "int64"]), st.sampled_from(["f16", "f32"]), st.sampled_from([None, 0]),
    st.booleans(),
)  # fmt: skip


def command_of(op: str, shape: tuple[int, ...], dtype: str, out: str, axis: int | None, immediate: bool) -> MathCmd:
    """Make a command as the language does, with a second operand that comes with it, or lies in the scratchpad."""
    folds = op in ("sum", "cumsum")
    kept = tuple(e for i, e in enumerate(shape) if axis is not None and i != axis) if op == "sum" else shape
    where = Region(0, 64)
    more = [] if folds else [Operand(ResultValue((0, 1), (), dtype), None if immediate else where)]
    reads = (Operand(ResultValue((0, 0), shape, dtype), where), *more)
    block: Any = SimpleNamespace(region=where)
    site = (command_of.__code__, 0)
    return MathCmd(
        (0, 2), op, site, (block,), reads, ResultValue((0, 2), kept, out), {"axis": axis} if folds else {}, folds
    )


@given(st.lists(commands, min_size=2, max_size=8))
def test_what_is_known_of_commands_that_are_alike_is_what_each_alone_takes(found: list[Any]) -> None:
    """A unit that has seen others says the same of a command as one that is asked for the first time."""
    params: dict[str, object] = {"operand_bandwidth": "64 GB/s", "packed": True}
    seen = unit(**params)
    for one in found:
        fresh = unit(**params)
        assert seen.min_service_ns(command_of(*one)) == fresh.min_service_ns(command_of(*one))
        assert seen.peak_flops(command_of(*one)) == fresh.peak_flops(command_of(*one))
