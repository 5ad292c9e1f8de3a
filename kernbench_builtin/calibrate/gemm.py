"""Calibrate by a CSV of matrix products: what a launch takes, and how much of the arrays' peak products get."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, ClassVar

from attrs import frozen

from kernbench_builtin.benches._blocks import Blocks, columns_by_cube, rows_by_cube
from kernbench_builtin.calibrate.csv_rows import CsvRows
from kernbench_builtin.calibrate.launching import LAUNCH_OVERHEAD, LAUNCH_STEPS, compiled, launched_ns
from kernbench_core.calibration import CsvForm, LogRow, MachineChoice, SimulatedRow, Unknown
from kernbench_core.errors import KernbenchError, UsageError
from kernbench_core.graph import Graph, Node
from kernbench_core.host import Runtime

DTYPES = ("f16", "bf16", "f32", "int8")
_CSV = CsvForm({"M": CsvForm.whole, "N": CsvForm.whole, "K": CsvForm.whole, "dtype": CsvForm.one_of(*DTYPES)})
_TILE = 128
_AHEAD = 3
"""Pairs of tiles that are on their way while one is multiplied."""
_BYTES_OF_DOT = 1 << 12
"""A product of one tile counts as so many bytes of `simulate_to`: 1,024 of them are 4 MiB."""


@frozen
class Product:
    """A product of an M x K by a K x N matrix."""

    m: int
    n: int
    k: int
    dtype: str

    @property
    def flops(self) -> float:
        """Two for each multiply-accumulate."""
        return 2.0 * self.m * self.n * self.k


class GemmLog(CsvRows):
    """Read products; fit what a launch takes, and the efficiency of the arrays for each dtype."""

    COLUMNS = _CSV
    FORM: ClassVar[str] = "a CSV of matrix products (M x K by K x N) with the columns M, N, K, dtype and time"

    def case_of(self, values: Mapping[str, Any]) -> tuple[str, Product]:
        """Return a product and its sizes."""
        product = Product(values["M"], values["N"], values["K"], values["dtype"])
        return f"{product.dtype} {product.m} x {product.n} x {product.k}", product

    def unknowns(self, rows: Sequence[LogRow], machine: MachineChoice) -> list[Unknown]:
        """Return the overhead of a launch, and the efficiency for each dtype: a part of the rate that the base has."""
        graph = compiled(self._plugins, machine)
        dtypes = dict.fromkeys(_case(row).dtype for row in rows)
        return [LAUNCH_OVERHEAD, *(_efficiency(_arrays(graph)[0], dtype) for dtype in dtypes)]

    def slopes(
        self, rows: Sequence[LogRow], machine: MachineChoice, values: Mapping[str, float]
    ) -> list[dict[str, float]]:
        """Return for each row two steps of a launch, and what its operations take at the peak of all arrays."""
        graph = compiled(self._plugins, machine)
        found = []
        for row in rows:
            product = _case(row)
            unknown = _efficiency(_arrays(graph)[0], product.dtype)
            took = product.flops / _peak(graph, unknown)
            found.append({LAUNCH_OVERHEAD.name: LAUNCH_STEPS, unknown.name: took})
        return found

    def simulate(self, rows: Sequence[LogRow], machine: MachineChoice) -> list[SimulatedRow]:
        """Simulate each product alone, its operands ahead of the arrays; of a large one less of K, and continue."""
        graph = compiled(self._plugins, machine)

        @cache
        def time_ns(m: int, n: int, k: int, dtype: str) -> float:
            def bench(rt: Runtime) -> None:
                left = rt.empty((m, k), dtype, name="a", placement=rows_by_cube(rt, m, k, dtype))
                right = rt.empty((k, n), dtype, name="b", placement=columns_by_cube(rt, k, n, dtype))
                out = rt.empty((m, n), "int32" if dtype == "int8" else dtype, name="c")
                rt.launch(_product_kernel, left, right, out, n, k, Blocks.over(rt, m, n))

            return launched_ns(graph, self._plugins, bench)

        def of(row: LogRow) -> SimulatedRow:
            product = _case(row)
            m, n = product.m, product.n
            dots_of_step = -(-m // _TILE) * -(-n // _TILE)

            def steps(nbytes: int) -> int:
                return 4 * max(2, nbytes // _BYTES_OF_DOT // dots_of_step // 4) * _TILE

            try:
                return self._along(product.k, lambda k: time_ns(m, n, k, product.dtype), steps)
            except KernbenchError as error:
                told = str(error).partition("\n")[0]
                raise UsageError(f"{row.place}: a product must be one that this machine can run; {told}") from None

        return [of(row) for row in rows]


def _product_kernel(a: Any, b: Any, c: Any, n_all: int, k_all: int, blocks: Blocks, tl: Any) -> None:
    """Multiply a PE's block tile by tile, all pairs of tiles in a row, so that the array hardly waits for any."""
    row, col, rows, cols = blocks.of(tl.program_id(0))
    ends = row + rows, col + cols
    corners = [(m, n) for m in range(row, ends[0], _TILE) for n in range(col, ends[1], _TILE)]
    steps = [(m, n, k) for m, n in corners for k in range(0, k_all, _TILE)]
    pairs: list[Any] = []
    acc = None
    for at in range(len(steps) + _AHEAD):
        if at < len(steps):
            m, n, k = steps[at]
            deep = min(_TILE, k_all - k)
            pairs.append((
                tl.load(a + m * k_all + k, shape=(min(_TILE, ends[0] - m), deep), strides=(k_all, 1), wait=False),
                tl.load(b + k * n_all + n, shape=(deep, min(_TILE, ends[1] - n)), strides=(n_all, 1), wait=False),
            ))  # fmt: skip
        if at >= _AHEAD:
            m, n, k = steps[at - _AHEAD]
            before, acc = acc, tl.dot(*pairs.pop(0), acc, wait=False)
            if before is not None:
                tl.wait(before)  # no more than two products are queued, and no more tiles held than they need
            before = None
            if k + _TILE >= k_all:
                tl.store(c + m * n_all + n, acc, strides=(n_all, 1))
                acc = None


def _case(row: LogRow) -> Product:
    assert isinstance(row.case, Product)
    return row.case


def _arrays(graph: Graph) -> list[Node]:
    return [node for node in graph.nodes.values() if node.kind == "pe_gemm" and node.sip == 0]


def _efficiency(array: Node, dtype: str) -> Unknown:
    """Return the efficiency for a dtype: a part of the rate that the arrays of the base have."""
    rates = array.params.get("rates")
    if not isinstance(rates, Mapping) or dtype not in rates:
        raise UsageError(
            f"a fit of products must have a model of pe_gemm with a parameter rates that has {dtype}, not "
            f"{array.impl}; choose builtin.pe_gemm, or leave the log out."
        )
    return Unknown(
        f"gemm-efficiency-{dtype}",
        f"components.pe_gemm.params.rates.{dtype}",
        "float",
        0.01,
        1.0,
        "a hundredth of what the arrays do when full, to all of it",
        f"products of {dtype} that are large in M, N and K, where the arrays decide",
        inverse=True,
        scale=float(rates[dtype]),
    )


def _peak(graph: Graph, unknown: Unknown) -> float:
    """Return the operations per ns of all arrays of the first package at efficiency 1."""
    return float(
        sum(
            2.0 * node.params["rows"] * node.params["columns"] * node.params["clock"] * unknown.scale
            for node in _arrays(graph)
        )
    )
