"""What the units of a run computed, and what of it could be saved: figures that its advice is read from."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Final

import attrs
import numpy as np
import numpy.typing as npt

from kernbench_builtin.components.matrix_unit import MatrixUnit
from kernbench_builtin.explain.intervals import time_of_any
from kernbench_core.oplog.spill import take
from kernbench_core.values.dtypes import itemsize

if TYPE_CHECKING:
    from kernbench_builtin.machines.figures.launch import LaunchFigures
    from kernbench_core.host.session import GraphEngine
    from kernbench_core.oplog.columns import Columns
    from kernbench_core.oplog.forms import RecordForm

#: Shares of the cycles of divisions that tl.sigmoid for 1 / (1 + exp(-x)) saves, and a product for a quotient: 12 for
#: 14, of which the division has 7, and 1 for 7.
_OF_SIGMOIDS, _OF_QUOTIENTS = 2 / 7, 6 / 7
#: Commands of a PE that are looked at for what follows from what.
_FOLLOWED: Final = 1 << 16
#: Sums that are looked at for what they add up.
_SUMS: Final = 256
#: A divisor of so many times fewer elements is worth 1 / divisor.
_FEW: Final = 16
#: Dtypes of elements that take twice as long as those of four bytes.
_WIDE: Final = ("f64", "int64", "uint64")
#: So many products are added up to one element, of so many in all, where a matrix unit does it better.
_ADDED, _PRODUCTS = 16, 4096
#: ... of rows and columns: of a matrix and a vector an array would be empty.
_SIDES: Final = 3


@attrs.frozen
class Products:
    """Say what the products of a run were: the most `rows` of one, and whether most add to the one before.

    `rows_at_most` is what rows could be, by the multiplications for each element moved. Most are of `dtype`, of which
    arrays do `slower` times fewer than of f16; 1 where that is not known. Tiles of composites have so many
    multiplications, `of_tile`, on average.
    """

    rows: int
    rows_at_most: float
    adds: bool
    dtype: str
    slower: float
    of_tile: float


@attrs.frozen
class Vectors:
    """Say what could be saved of the time of vector units at work, as shares of it.

    `sigmoids` by tl.sigmoid, `quotients` by products with 1 / divisor (`more_ops`: which is an op of its own),
    `by_hand` by tl.dot for products that are added up, of so many `added` to one; `wide` is the share of ops on
    elements of eight bytes, `starting` that of start-up.
    """

    sigmoids: float = 0.0
    quotients: float = 0.0
    more_ops: bool = False
    by_hand: float = 0.0
    added: int = 0
    wide: float = 0.0
    starting: float = 0.0


def products_of(session: GraphEngine, at_least: int) -> Products:
    """Return what products were, where launches move so many bytes of HBM at least."""
    columns = session.op_log.columns
    times = np.bincount(np.asarray(columns.template[:]), minlength=len(columns.templates))
    rows, multiplied, adds, every, of_dtype, of_composites, tiles = 0, 0.0, 0, 0, dict[str, float](), 0.0, 0
    for number in range(len(columns.templates)):
        form = columns.form(number)
        if form.op_kind == "gemm" and "shape_b" in form.constants:
            m, (k, n) = form.constants["shape_a"][-2], form.constants["shape_b"][-2:]
            dtype = form.constants["dtype_in"]
            rows = max(rows, m)
            multiplied += float(times[number]) * m * k * n * itemsize(dtype)
            of_dtype[dtype] = of_dtype.get(dtype, 0.0) + float(times[number]) * m * k * n
            every += int(times[number])
            adds += int(times[number]) if form.constants.get("accumulate") else 0
            of_composites += float(times[number]) * m * k * n if form.op_name.startswith("composite") else 0.0
        elif form.op_kind == "gemm":
            tiles += int(times[number])
    dtype = max(of_dtype, key=lambda each: of_dtype[each], default="")
    at_most = multiplied / at_least if at_least else np.inf
    return Products(rows, at_most, adds > every / 2, dtype, _slower(session, dtype), of_composites / max(tiles, 1))


def _slower(session: GraphEngine, dtype: str) -> float:
    """Return how many times fewer products an array does of a dtype than of f16."""
    arrays = (node for node in session.hardware.graph.nodes.values() if node.kind == "pe_gemm")
    rates = next((node.params.get("rates") for node in arrays), None)
    if not isinstance(rates, dict) or dtype not in rates or "f16" not in rates:
        return 1.0
    return float(rates["f16"] / rates[dtype])


def vectors_of(session: GraphEngine) -> Vectors:
    """Return what could be saved of what vector units did."""
    ops = [*_vector_ops(session)]
    together = sum(op.together for op in ops)
    if not together:
        return Vectors()
    divisions = [op for op in ops if op.form.op_name == "div"]
    same = sum(op.times * op.elements for op in divisions if [*op.shapes[-1:]] == [op.out])
    exponentials = sum(op.times * op.elements for op in ops if op.form.op_name == "exp")
    alike = sum(op.times * op.working_ns for op in divisions if [*op.shapes[-1:]] == [op.out])
    sigmoids = _OF_SIGMOIDS * alike if 0.5 * same < exponentials < 2 * same else 0.0
    quotients = sum(op.times * max(0.0, _quotient(op)) for op in divisions)
    by_hand, added = _by_hand(session, ops)
    wide = sum(op.together for op in ops if op.form.constants.get("dtype") in _WIDE)
    starting = sum(op.times * (op.ns - op.working_ns) for op in ops)
    more_ops = any(_quotient(op) > 0 and not op.constant_divisor for op in divisions)
    shares = (each / together for each in (sigmoids, quotients, by_hand, wide, starting))
    sigmoids, quotients, by_hand, wide, starting = shares
    return Vectors(sigmoids, quotients, more_ops, by_hand, added, wide, starting)


@attrs.frozen
class _VectorOps:
    """Ops of one form: how many `times`, in ns of each, `working_ns` without start-up."""

    number: int
    form: RecordForm
    times: int
    ns: float
    working_ns: float

    @property
    def together(self) -> float:
        return self.times * self.ns

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        return [tuple(shape) for shape in self.form.constants.get("input_shapes", ())]

    @property
    def out(self) -> tuple[int, ...]:
        return tuple(self.form.constants.get("shape_out", ()))

    @property
    def constant_divisor(self) -> bool:
        return self.form.spaces[1:2] == ("immediate",)

    @property
    def elements(self) -> int:
        return int(np.prod(self.out))


def _vector_ops(session: GraphEngine) -> Iterator[_VectorOps]:
    columns, nodes = session.op_log.columns, session.hardware.graph.nodes
    template = np.asarray(columns.template[:])
    took = np.asarray(columns.t_end[:]) - np.asarray(columns.t_start[:])
    starts_up = np.zeros(len(columns.components))
    for name, number in columns.components.items():
        starts_up[number] = float(nodes[name].params.get("overhead", 0.0)) if nodes[name].kind == "pe_math" else np.inf
    working = took - starts_up[np.asarray(columns.component[:], np.int64)]
    times, ns, working_ns = (
        np.bincount(template, weights, len(columns.templates)) for weights in (None, took, np.maximum(working, 0.0))
    )
    for number in range(len(columns.templates)):
        form = columns.form(number)
        if form.op_kind == "math" and times[number] and form.constants.get("shape_out") is not None:
            each = float(ns[number] / times[number]), float(working_ns[number] / times[number])
            yield _VectorOps(number, form, int(times[number]), *each)


def _quotient(op: _VectorOps) -> float:
    """Return what one quotient saves that becomes a product with 1 / divisor, in ns: that is an op of its own."""
    divisor = int(np.prod(op.shapes[-1])) if op.shapes else 0
    if not divisor or _FEW * divisor > op.elements:
        return 0.0
    once = 0.0 if op.constant_divisor else op.ns - op.working_ns + op.working_ns * divisor / op.elements
    return _OF_QUOTIENTS * op.working_ns - once


def _product_ns(session: GraphEngine, out: Sequence[int], k: int, dtype: str) -> float:
    """Return how long an array takes for a product that gives such rows and columns, of sums of so many."""
    array = next((each for each in session.hardware.components.values() if isinstance(each, MatrixUnit)), None)
    m, *n = [each for each in out if each > 1] or [1]
    if array is None or dtype not in (array.params.get("rates") or {dtype: 1.0}):
        return math.inf
    cycles = array.cycles(SimpleNamespace(m=m, k=k, n=math.prod(n), dtype_in=dtype))
    return float(array.params.get("overhead", 0.0) + cycles / array.params["clock"])


def _by_hand(session: GraphEngine, ops: list[_VectorOps]) -> tuple[float, int]:
    """Return what arrays would save of products of a tile with a smaller one that are added up, in ns.

    And how many are added to one element.
    """
    summed = _summed(session)
    found, added = 0.0, 0
    for product in ops:
        of_fewer = any(0 < np.prod(shape) < product.elements for shape in product.shapes if shape)
        if product.form.op_name != "mul" or not of_fewer or product.elements < _PRODUCTS or len(product.out) < _SIDES:
            continue
        for total in ops:
            of_product = product.number in summed.get(total.number, ())
            if of_product and product.times <= 2 * total.times and product.elements >= _ADDED * total.elements:
                added = product.elements // total.elements
                each = _product_ns(session, total.out, added, str(product.form.constants.get("dtype")))
                found += max(0.0, product.together + total.together - product.times * each)
                break
    return found, added


def _summed(session: GraphEngine) -> dict[int, set[int]]:
    """Return, for each template of sums, the templates of what some of its records add up."""
    columns = session.op_log.columns
    sums = np.array([template.sig[1] == "sum" for template in columns.templates], bool)
    template = np.asarray(columns.template[:])
    rows = np.flatnonzero(sums[template])[:_SUMS] if len(sums) else np.zeros(0, np.int64)
    makers = {(pe << 32) + issue: int(template[row]) for row, (pe, issue) in _inputs(columns, rows)}
    ops = (np.asarray(columns.op_pe[:], np.int64) << 32) + np.asarray(columns.op_issue[:], np.int64)
    own = np.isin(ops, np.array([*makers], np.int64)) & (np.asarray(columns.stage_pe[:]) < 0)
    found: dict[int, set[int]] = {}
    for row in np.flatnonzero(own).tolist():
        found.setdefault(makers[int(ops[row])], set()).add(int(template[row]))
    return found


def _inputs(columns: Columns, rows: npt.NDArray[np.int64]) -> Iterator[tuple[int, tuple[int, int]]]:
    """Yield of each row the ops that made its inputs."""
    begins, ends = (take(columns.row_starts()[2], rows + more).tolist() for more in (0, 1))
    own = zip(take(columns.op_pe, rows).tolist(), take(columns.op_issue, rows).tolist(), strict=True)
    for row, op, begin, end in zip(rows.tolist(), own, begins, ends, strict=True):
        for value in columns.values[begin:end]:
            if value.writer is not None and value.writer != op:
                yield row, value.writer


def more_work(session: GraphEngine, launch: LaunchFigures) -> tuple[float, float]:
    """Return by which share a launch's slowest PE had more to do than the mean, and by which its units were slower.

    It has more to do where it issued more commands, or such that take longer on average, whichever is more. Atomics do
    not count: who waits for others asks again.
    """
    columns, pes = session.op_log.columns, session.hardware.layout.pes
    start, pe = np.asarray(columns.t_start[:]), np.asarray(columns.op_pe[:])
    rows = np.flatnonzero((pe >= 0) & (np.asarray(columns.stage_pe[:]) < 0) & (start >= launch.started_ns))
    rows = rows[start[rows] <= launch.ended_ns]
    template = take(columns.template, rows)
    works = np.array([not name.endswith((".pe_dma", ".pe_ipcq")) for name in columns.components])
    counts = np.array([not each.sig[1].startswith("atomic") for each in columns.templates])[template]
    took = (take(columns.t_end, rows) - start[rows]) * works[take(columns.component, rows)]
    times = np.maximum(np.bincount(template, minlength=len(columns.templates)), 1)
    usual = (np.bincount(template, took, len(columns.templates)) / times)[template]
    last = next(number for number, site in enumerate(pes) if site.prefix == launch.last)

    def beyond(weights: npt.NDArray[np.float64]) -> float:
        each = np.bincount(pe[rows], weights, len(pes))
        mean = each[each > 0].mean() if (each > 0).any() else 0.0
        return float(each[last] / mean) - 1 if mean else 0.0

    more = max(beyond(counts.astype(np.float64)), beyond(usual))
    own = pe[rows] == last
    slower = float(took[own].sum() / usual[own].sum()) - 1 if usual[own].any() else 0.0
    return more, slower


@attrs.frozen
class PeWork:
    """Say what the slowest PE of a launch did, in ns.

    It waited `waiting_ns` for messages, and `free_ns` after the first one it loaded and computed what needs none. In
    `repeated_ns` it computed again what it had: most by the op that is `repeated`.
    """

    waiting_ns: float = 0.0
    free_ns: float = 0.0
    repeated_ns: float = 0.0
    repeated: str = ""


def pe_work(session: GraphEngine, launch: LaunchFigures, of_others: npt.NDArray[np.int64]) -> PeWork:
    """Return what the slowest PE of a launch did, whose loads in the rows `of_others` bring what other PEs stored."""
    columns, pes = session.op_log.columns, session.hardware.layout.pes
    last = next(number for number, site in enumerate(pes) if site.prefix == launch.last)
    start, end, pe = (np.asarray(each[:]) for each in (columns.t_start, columns.t_end, columns.op_pe))
    rows = np.flatnonzero((pe == last) & (np.asarray(columns.stage_pe[:]) < 0) & (start >= launch.started_ns))
    rows = rows[start[rows] <= launch.ended_ns][:_FOLLOWED]
    rows = rows[np.argsort(take(columns.op_issue, rows), kind="stable")]
    template = take(columns.template, rows)
    names, kinds = (np.array([each.sig[at] for each in columns.templates]) for at in (1, 0))
    came, reads = names[template] == "ipcq_recv", names[template] == "dma_read"
    computes = np.isin(kinds[template], ("math", "gemm"))
    begins, ends = (take(columns.row_starts()[2], rows + more).tolist() for more in (0, 1))
    issues, took = take(columns.op_issue, rows).tolist(), (end[rows] - start[rows]).tolist()
    row_ints = take(columns.row_starts()[0], rows).tolist()
    forms = (columns.form(number) for number in range(len(columns.templates)))
    parts = [[at for name, at in form.int_places.items() if not name.endswith("_addr")] for form in forms]
    follows, had, again = set[tuple[int, int]](), set[tuple[object, ...]](), dict[str, float]()
    free, repeated, foreign_loads = np.zeros(len(rows), bool), np.zeros(len(rows), bool), np.isin(rows, of_others)
    first = int(np.argmax(came)) if came.any() else len(rows)
    for at in range(len(rows)):
        inputs = columns.values[begins[at] : ends[at]]
        makers = {maker for value in inputs for maker in (value.writer, *value.makers())}
        foreign = foreign_loads[at] or any(
            maker in follows or (maker is not None and maker[0] != last) for maker in makers
        )
        if came[at] or (foreign and at > first):
            follows.add((last, issues[at]))
        elif at > first and (computes[at] or reads[at]):
            free[at] = True
        own = makers - {(last, issues[at]), None}
        if computes[at] and own:
            given = (value for value in inputs if value.writer != (last, issues[at]))
            which = (row_ints[at] + place for place in parts[template[at]])
            key = (int(template[at]), *(columns.ints[place] for place in which),
                   *(value.writer or id(value) for value in given))  # fmt: skip  # numbers are one value each
            if key in had:
                name = "dot" if kinds[template[at]] == "gemm" else str(names[template[at]])
                again[name] = again.get(name, 0.0) + took[at]
                repeated[at] = True
            had.add(key)
    waits = np.sort(np.stack([start[rows][came], end[rows][came]], axis=1), axis=0)
    waiting = time_of_any(waits[:, 0], waits[:, 1], np.ones(len(waits), bool)) if len(waits) else 0.0
    free_ns, repeated_ns = (time_of_any(start[rows], end[rows], each) for each in (free, repeated))
    return PeWork(waiting, free_ns, repeated_ns, max(again, key=lambda name: again[name], default=""))
