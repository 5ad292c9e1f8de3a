"""Products that follow each other through an array: against arrays that are stepped, and cut in every way."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernbench_builtin.components.pe_gemm import PeGemm
from kernbench_builtin.components.pe_gemm_systolic import PeGemmSystolic
from kernbench_core.messages import MsgBase
from kernbench_core.testing import Rig, assert_ready_at
from kernbench_core.units import GRID_NS
from tools.accuracy.gemm import folds_of, stepped

WIRE_NS = 1.0
DATAFLOWS = ("output_stationary", "weight_stationary", "input_stationary")
Size = tuple[int, int, int]


class Product(MsgBase):
    """A product of (m, k) by (k, n), with what it may say of its operands and its sum."""

    data_op: ClassVar[bool] = True

    def __init__(self, size: Size, dtype: str = "f16", **more: Any) -> None:
        super().__init__()
        self.m, self.k, self.n = size
        self.dtype_in = dtype
        self.keys: dict[str, object] = more.pop("keys", {})
        self.__dict__.update(more)

    def operand_key(self, operand: str) -> object:
        return self.keys.get(operand)


def streamed(size: Size, reads: tuple[int, ...], written: int, issue: int, adds_to: int | None = None) -> Product:
    """A command whose operands come from the scratchpad, so many bytes each."""
    operands = [SimpleNamespace(value=SimpleNamespace(nbytes=each), region=object()) for each in reads]
    value = SimpleNamespace(nbytes=written)
    before = None if adds_to is None else (0, adds_to)
    return Product(size, reads=operands, value=value, op_id=(0, issue), sum_after=(0, issue), sum_before=before)


def ends(model: Any, params: dict[str, Any], products: list[Product], at: list[float] | None = None) -> list[float]:
    """When each product's result is out, in ns from when the unit could have begun the first."""
    rig = Rig(model, params)
    for product, time in zip(products, at or [0.0] * len(products), strict=True):
        rig.ask(time, msg=product)
    rig.run()
    took = {line.label: line.t_end for line in rig.log}
    assert all(line.t_end - line.t_start >= rig.under_test.min_service_ns(each)
               for line, each in zip(rig.log, products, strict=True))  # fmt: skip
    assert 0 <= rig.under_test.filling_ns <= rig.under_test.busy_ns <= max(took.values()) * rig.under_test.servers
    return [took[f"Product{number}"] - WIRE_NS for number in range(1, len(products) + 1)]


# Arrays that are stepped ---------------------------------------------------------------------------------


small_sizes = st.lists(st.tuples(*[st.integers(1, 14)] * 3), min_size=1, max_size=5)
small_arrays = st.tuples(st.integers(1, 5), st.integers(1, 5))
gaps = st.lists(st.integers(0, 60), min_size=5, max_size=5)


@settings(max_examples=150)
@given(st.sampled_from(DATAFLOWS), small_arrays, small_sizes, gaps, st.booleans())
def test_products_in_a_row_end_when_those_of_a_stepped_array_do(
    dataflow: str, array: tuple[int, int], sizes: list[Size], waits: list[int], overlap: bool
) -> None:
    """Whenever they come: at once, in the midst of each other, after a gap."""
    at = [sum(waits[: i + 1]) - waits[0] for i in range(len(sizes))]
    params = {"rows": array[0], "columns": array[1], "dataflow": dataflow, "overlap": overlap}
    found = ends(PeGemmSystolic, params, [Product(size) for size in sizes], [float(time) for time in at])
    assert found == stepped(array, folds_of(dataflow, array, sizes, at), overlap)


def test_cells_that_are_clocked_hold_several_products_at_once() -> None:
    """Operands of three products, one behind the other, in cells: the right products, the last results in time."""
    rows, columns, random = 3, 4, np.random.default_rng(1)
    sizes = [(3, 5, 4), (2, 3, 3), (3, 7, 4)]
    pairs = [(random.integers(-4, 5, (m, k)), random.integers(-4, 5, (k, n))) for m, k, n in sizes]
    wide = [(np.pad(a, ((0, rows - len(a)), (0, 0))), np.pad(b, ((0, 0), (0, columns - b.shape[1])))) for a, b in pairs]
    left = np.hstack([a for a, _ in wide])  # what enters row i, a cycle later than row i - 1
    above = np.vstack([b for _, b in wide])
    owner = [number for number, (_, k, _) in enumerate(sizes) for _ in range(k)]
    sums, last = np.zeros((len(sizes), rows, columns)), [0] * len(sizes)
    across, down, whose = np.zeros((rows, columns)), np.zeros((rows, columns)), np.full((rows, columns), -1)
    for cycle in range(len(owner) + rows + columns):
        across[:, 1:], down[1:, :] = across[:, :-1].copy(), down[:-1, :].copy()
        whose[:, 1:] = whose[:, :-1].copy()
        for i in range(rows):
            inside = 0 <= cycle - i < len(owner)
            across[i, 0], whose[i, 0] = (left[i, cycle - i], owner[cycle - i]) if inside else (0, -1)
        for j in range(columns):
            down[0, j] = above[cycle - j, j] if 0 <= cycle - j < len(owner) else 0
        for i, j in np.argwhere(whose >= 0):
            sums[whose[i, j], i, j] += across[i, j] * down[i, j]
            last[whose[i, j]] = cycle
    for (m, _, n), (a, b), total in zip(sizes, pairs, sums, strict=True):
        np.testing.assert_array_equal(total[:m, :n], a @ b)
    found = ends(PeGemmSystolic, {"rows": rows, "columns": columns, "overlap": True}, [Product(s) for s in sizes])
    assert found == last
    # the same cells, from which the results are then shifted out
    params = {"rows": rows, "columns": columns, "overhead": "0 ns"}
    assert ends(PeGemm, params, [Product(s) for s in sizes]) == [end + 1 + rows for end in last]


# n products in a row, and one that comes too late ----------------------------------------------------------

UNITS: dict[str, tuple[Any, dict[str, Any], Size, int, int]] = {
    # model, parameters, product; cycles in which its operands enter, and those around that
    "pe_gemm": (PeGemm, {"rows": 8, "columns": 4, "overhead": "5 ns"}, (16, 50, 8), 2 * 2 * 50, 2 * 8 + 4 - 2),
    "output": (PeGemmSystolic, {"rows": 8, "columns": 4, "overhead": "5 ns", "overlap": True}, (16, 50, 8),
               2 * 2 * 50, 8 + 4 - 2 - 1),
    "weight": (PeGemmSystolic, {"rows": 8, "columns": 4, "overhead": "5 ns", "overlap": True,
                                "dataflow": "weight_stationary"}, (50, 8, 4), 50, 8 + 8 + 4 - 2 - 1),
    "weight, short": (PeGemmSystolic, {"rows": 8, "columns": 4, "overhead": "5 ns", "overlap": True,
                                       "dataflow": "weight_stationary"}, (3, 8, 4), 8, 3 + 8 + 4 - 2 - 1),
    "input": (PeGemmSystolic, {"rows": 8, "columns": 4, "overhead": "5 ns", "overlap": True,
                               "dataflow": "input_stationary"}, (4, 8, 50), 50, 8 + 8 + 4 - 2 - 1),
}  # fmt: skip


@pytest.mark.parametrize("name", UNITS)
@pytest.mark.parametrize("n", [1, 2, 17])
def test_n_products_in_a_row_start_fill_and_drain_once(name: str, n: int) -> None:
    """5 ns of start-up, n times what enters, and once what is around; not one grid step less."""
    model, params, size, entering, around = UNITS[name]
    rig = Rig(model, params)
    for _ in range(n):
        rig.ask(0, msg=Product(size))
    assert_ready_at(rig, WIRE_NS + 5 + n * entering + around + WIRE_NS, arrival=n)
    rig.run()
    assert rig.under_test.busy_ns == 5 + n * entering + around


@pytest.mark.parametrize("late", [0, 1, 1000])
@pytest.mark.parametrize("name", ["pe_gemm", "output", "weight", "input"])
def test_a_product_that_comes_too_late_pays_for_what_is_not_hidden(name: str, late: int) -> None:
    """In time is 5 ns (and a load, where one must be over) before the operands ahead are in; each grid step counts."""
    model, params, size, entering, around = UNITS[name]
    load = 8 if name in ("weight", "input") else 0
    in_time = 5 + load + entering - (5 + load) + late * GRID_NS
    found = ends(model, params, [Product(size), Product(size)], [0.0, in_time])
    assert found == [5 + entering + around, 5 + 2 * entering + around + late * GRID_NS]
    alone = ends(model, params, [Product(size)])[0]
    assert found[1] - in_time == alone  # as long as if it had the array for itself


@pytest.mark.parametrize("model", [PeGemm, PeGemmSystolic])
def test_without_overlap_products_queue_for_the_array(model: Any) -> None:
    """Only the start-up of a product that waits is over; the systolic array's cycles are counted from 0 once."""
    off = {"pipelined": False} if model is PeGemm else {"overlap": False}
    params = {"rows": 8, "columns": 4, "overhead": "5 ns", **off}
    fold = 50 + (2 * 8 + 4 - 2 if model is PeGemm else 8 + 4 - 2)
    first = 0 if model is PeGemm else 1
    rig = Rig(model, params)
    for _ in range(3):
        rig.ask(0, msg=Product((16, 50, 8)))
    rig.run()
    times = [1 + 5 + 4 * fold * n for n in range(4)]  # a wire, and the start-up
    assert [(line.t_start, line.t_end) for line in rig.log] == [
        (start if start > 6 else 1, end - first) for start, end in pairwise(times)
    ]


# Cut in every way -----------------------------------------------------------------------------------------

models = st.one_of(
    st.fixed_dictionaries({"model": st.just(PeGemm), "pipelined": st.booleans()}),
    st.fixed_dictionaries({
        "model": st.just(PeGemmSystolic), "overlap": st.booleans(), "dataflow": st.sampled_from(DATAFLOWS)
    }),
)  # fmt: skip


def cut(size: Size, axis: int, pieces: list[int]) -> list[Size]:
    """Cut a product along m, k or n at these places (taken modulo its extent)."""
    places = sorted({0, size[axis], *(piece % size[axis] for piece in pieces)})
    return [
        tuple(b - a if i == axis else size[i] for i in range(3))  # type: ignore[misc]
        for a, b in pairwise(places)
    ]


@settings(max_examples=300)
@given(
    models, small_arrays, st.tuples(*[st.integers(1, 40)] * 3), st.integers(0, 2),
    st.lists(st.integers(0, 99), max_size=6), st.sampled_from(("f16", "f32", "int8")),
    st.sampled_from((0.5, 4.0, 512.0)), st.booleans(),
)  # fmt: skip
def test_a_product_that_is_cut_is_never_quicker(
    chosen: dict[str, Any], array: tuple[int, int], size: Size, axis: int, pieces: list[int], dtype: str, port: float,
    told: bool,
) -> None:
    """Back to back, along any axis; also where each piece says which operand it shares and which sum it goes on with.

    Nor are pieces quicker than what the array needs to take their operands in.
    """
    params = {"rows": array[0], "columns": array[1], "overhead": "1.3 ns", **chosen}
    model = params.pop("model")
    if model is PeGemm:
        params["operand_bandwidth"] = f"{port} GB/s"

    def product(part: Size, issue: int) -> Product:
        m, k, n = part
        before = issue - 1 if axis == 1 and told and issue else None
        reads = (2 * m * k, 2 * k * n) if before is None else (2 * m * k, 2 * k * n, 4 * m * n)
        made = streamed(part, reads, 4 * m * n, issue, before)
        made.dtype_in = dtype
        if told:  # along m every piece has the same b, along n the same a
            made.keys = {"a": "a" if axis == 2 else issue, "b": "b" if axis == 0 else issue}
        return made

    parts = cut(size, axis, pieces)
    alone = Rig(model, params).under_test
    whole = ends(model, params, [product(size, 0)])[-1]
    found = ends(model, params, [product(part, issue) for issue, part in enumerate(parts)])
    assert found == sorted(found)
    assert found[-1] >= whole
    passages = [alone.passage(product(part, 0)) for part in parts]  # type: ignore[attr-defined]
    assert found[-1] >= sum(each.folds * each.stream for each in passages) - 1


@pytest.mark.parametrize("pipelined", [True, False])
def test_pieces_along_k_that_go_on_with_one_sum_are_one_product(pipelined: bool) -> None:
    """One block: filled and drained once, as uncut, also where blocks do not overlap; by itself no piece is spared."""
    params = {"rows": 8, "columns": 8, "overhead": "2 ns", "pipelined": pipelined}
    whole = ends(PeGemm, params, [Product((8, 96, 8))])[-1]
    parts = [streamed((8, 32, 8), (512, 512), 256, i, i - 1 if i else None) for i in range(3)]
    assert ends(PeGemm, params, parts)[-1] == whole
    apart = [Product((8, 32, 8)) for _ in range(3)]
    assert ends(PeGemm, params, apart)[-1] == whole + (0 if pipelined else 2 * (2 * 8 + 8 - 2))


def test_without_overlap_a_sum_of_several_blocks_is_taken_up_block_by_block() -> None:
    """The cells hold one block; the second pass over two of them fills and drains them again."""
    params = {"rows": 8, "columns": 8, "overhead": "2 ns", "pipelined": False}
    parts = [streamed((16, 32, 8), (1024, 512), 512, i, i - 1 if i else None) for i in range(2)]
    assert ends(PeGemm, params, parts)[-1] == 2 + 2 * 2 * (32 + 22)


@pytest.mark.parametrize("dataflow", ["weight_stationary", "input_stationary"])
def test_without_overlap_cells_that_hold_an_operand_keep_no_sum(dataflow: str) -> None:
    """Each piece along k has weights, or inputs, of its own: a fold that is loaded, filled and drained."""
    params = {"rows": 8, "columns": 8, "dataflow": dataflow}
    parts = [streamed((8, 8, 8), (128, 128), 256, i, i - 1 if i else None) for i in range(3)]
    assert ends(PeGemmSystolic, params, parts) == [(8 + 2 * 8 + 8 - 2) * n - 1 for n in (1, 2, 3)]


@pytest.mark.parametrize("late", [0, 1])
def test_without_overlap_a_sum_waits_in_the_cells_for_nobody(late: int) -> None:
    """In time is before the operands ahead are in; then they are shifted out, and the next product fills anew."""
    params = {"rows": 8, "columns": 8, "overhead": "2 ns", "pipelined": False}
    parts = [streamed((8, 32, 8), (512, 512), 256, i, i - 1 if i else None) for i in range(2)]
    found = ends(PeGemm, params, parts, [0.0, 32.0 + late * GRID_NS])
    assert found[1] == 2 + 32 + 32 + 22 + late * 22


def test_a_sum_on_its_way_is_not_read_again_and_is_waited_for_elsewhere() -> None:
    """Right behind the product that makes it; with another one between, only when it is in the scratchpad."""
    params = {"rows": 8, "columns": 8, "overhead": "0 ns", "operand_bandwidth": "16 GB/s"}
    size, (a, b, c) = (8, 64, 8), (1024, 1024, 256)
    first, second = streamed(size, (a, b), c, 0), streamed(size, (a, b, c), c, 1, 0)
    port, around = (a + b) / 16, 22
    for at, reads in ((64 + around - GRID_NS, 2 * a), (64 + around, 2 * a + c)):  # once it has ended, it is read
        apart = [streamed(size, (16, 16), 16, 0), streamed((8, 1, 8), (a, a, c), c, 1, 0)]
        assert ends(PeGemm, params, apart, [0.0, at])[1] == at + reads / 16
    assert ends(PeGemm, params, [first, second]) == [max(64 + around, port), port + max(64 + around, port)]
    between = [streamed(size, (a, b), c, 0), streamed((8, 1, 8), (16, 16), 0, 1), streamed(size, (a, b, c), c, 2, 0)]
    wide = {**params, "operand_bandwidth": "1 TB/s"}
    assert ends(PeGemm, wide, between) == [64 + around, 65 + around, (64 + around) + 64 + around]
    two = [streamed(size, (a, b), c, 0), streamed((8, 70, 8), (16, 16), 0, 1), streamed(size, (a, b, c), c, 2, 0)]
    assert ends(PeGemm, {**wide, "servers": 2}, two) == [64 + around, 70 + around, 64 + 64 + around]


def test_of_several_arrays_that_which_has_the_sum_is_taken() -> None:
    """Two drain; a product that is added to what the second one makes follows there, and does not wait for the end."""
    params = {"rows": 8, "columns": 8, "overhead": "0 ns", "operand_bandwidth": "1 TB/s", "servers": 2}
    products = [streamed((8, k, 8), (16, 16), 16, issue, adds_to) for issue, (k, adds_to) in
                enumerate(((64, None), (70, None), (64, 1)))]  # fmt: skip
    assert ends(PeGemm, params, products, [0.0, 0.0, 75.0]) == [64 + 22, 70 + 22, 75 + 64 + 22]


@pytest.mark.parametrize(("dataflow", "operand"), [("weight_stationary", "b"), ("input_stationary", "a")])
@pytest.mark.parametrize(
    ("same", "late_ns", "extra"),
    [(True, 0.0, 0), (False, 0.0, 8 - 3), (True, GRID_NS, 8 + GRID_NS)],
    ids=["stays", "switched", "after a gap"],
)
def test_an_operand_that_stays_in_the_cells_is_not_loaded_again(
    dataflow: str, operand: str, same: bool, late_ns: float, extra: float
) -> None:
    """8 rows are loaded behind 3 that stream: the switch of the operand shows, and so does a gap."""
    params = {"rows": 8, "columns": 4, "dataflow": dataflow, "overlap": True}
    size = (3, 8, 4) if operand == "b" else (4, 8, 3)
    pair = [Product(size, keys={operand: "kept"}), Product(size, keys={operand: "kept" if same else "another"})]
    at = [0.0, 8 + 3 + late_ns if late_ns else 0.0]
    assert ends(PeGemmSystolic, params, pair, at)[1] == 8 + 3 + 3 + 8 + 4 - 2 - 1 + extra


def test_a_part_of_a_sum_leaves_with_its_last_operand() -> None:
    """What the array still has of it is the next one's; the last part drains for all."""
    params = {"rows": 8, "columns": 8, "overhead": "2 ns"}
    parts = [Product((8, 32, 8), part_of_sum=True), Product((8, 32, 8), part_of_sum=True), Product((8, 32, 8))]
    rig = Rig(PeGemm, params)
    for part in parts:
        rig.ask(0, msg=part)
    rig.run()
    assert [(line.t_start, line.t_end) for line in rig.log] == [(1, 35), (35, 67), (67, 121)]
    assert (rig.under_test.busy_ns, rig.under_test.filling_ns) == (120, 120 - 96)


def test_time_that_products_share_is_counted_once_while_they_are_under_way() -> None:
    """At every moment an array has been busy for no longer than there was time."""
    rig = Rig(PeGemm, {"rows": 8, "columns": 8, "overhead": "2 ns"})
    for at in (0, 0, 30, 200):
        rig.ask(at, msg=Product((8, 32, 8)))
    for until, busy in ((11, 10), (40, 39), (60, 59), (300, 2 + 3 * 32 + 22 + 2 + 32 + 22)):
        rig.run(until_ns=until)
        assert rig.under_test.busy_by(until) == busy, until
