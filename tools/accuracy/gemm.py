"""Matrix units against arrays that stream, stepped cycle by cycle or in closed form.

`compare` returns a row for each case: what it is, kernbench's figure, the reference's, their unit, and the relative
error. What is below "The references" shares no code with the models.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

from kernbench_core.plugins import own_plugins

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from kernbench_builtin.components.pe_gemm import PeGemm
from kernbench_builtin.components.pe_gemm_systolic import PeGemmSystolic
from kernbench_core.errors import KernbenchWarning
from kernbench_core.messages import MsgBase
from kernbench_core.plugins import load_plugins
from kernbench_core.runs.bench_run import run
from kernbench_core.testing import Rig

Size = tuple[int, int, int]
Row = tuple[str, float, float, str, float]

ABOUT = SimpleNamespace(
    title="Matrix units",
    reference="Single products: the published closed forms of scale-out systolic arrays (SCALE-Sim). Rows of products: "
    "an array whose two halves of cells are stepped cycle by cycle. Tiled products and rows of `tl.dot`: n T + fill, n "
    "products whose operands take T cycles to enter, and one fill and drain.",
    equal="Rows and columns, clock, dtype, dataflow, tiles and their order, one start-up. In the cases of 128 x 128 "
    "cells scratchpad, register file and tiles in flight are wide enough to feed them.",
    differs="A whole composite also fetches its first tile and writes back its last one; the reference has the array "
    "alone. Room and bandwidth of the presets suit 32 x 64 cells: 128 x 128 cells need more of both to stream.",
    direction="Rows of products and tiles are exact. Pessimistic by the first fetch and the last write-back of a "
    "composite, the less the longer it is. Optimistic where operands of commands meet other traffic of the "
    "scratchpad, for which they do not wait, and for blocks that enter faster than the ones before them are shifted "
    "out.",
    cost="Processor time of runs of products alone is 1.06 times what it was without streaming, of `gemm` 1.02 times: "
    "one event more for each product.",
    within=0.03,
)

ARRAY = 128
_WIDE = (
    f"components.pe_gemm.params.rows={ARRAY}", f"components.pe_gemm.params.columns={ARRAY}",
    "components.pe_scheduler.params.tiles_in_flight=16", "components.pe_scheduler.params.staging=8MiB",
    "components.pe_fetch_store.params.register_file=1MiB", "components.pe_fetch_store.params.servers=4",
    "components.pe_tcm.params.read_bandwidth=2TB/s", "components.pe_tcm.params.write_bandwidth=2TB/s",
    "pe.links.data.bandwidth=2TB/s",
)  # fmt: skip
_START_NS = 10  # start-up of pe_gemm in the presets


def compare(sizes: Sequence[int] = (512, 1024, 2048)) -> list[Row]:
    """Run every case; tiled products are of these sizes."""
    return [*_alone(), *_in_rows(), *_tiled(sizes), *_from_a_kernel()]


# The references --------------------------------------------------------------------------------------------


class Fold(NamedTuple):
    """What one fold needs: cycles to load the cells and to stream, the product it is of, and the cycle it is there."""

    load: int
    stream: int
    product: int
    there: int


def folds_of(dataflow: str, array: tuple[int, int], sizes: Sequence[Size], there: Sequence[int]) -> list[Fold]:
    """Cut products, each there from a cycle on, into folds."""
    rows, columns = array
    found = []
    for number, ((m, k, n), cycle) in enumerate(zip(sizes, there, strict=True)):
        down, across, stream = {
            "output_stationary": (m, n, k), "weight_stationary": (k, n, m), "input_stationary": (k, m, n)
        }[dataflow]  # fmt: skip
        load = 0 if dataflow == "output_stationary" else rows
        count = len(range(0, down, rows)) * len(range(0, across, columns))
        found += [Fold(load, stream, number, cycle)] * count
    return found


def stepped(array: tuple[int, int], folds: Sequence[Fold], overlap: bool) -> list[int]:
    """Step the two halves of the cells cycle by cycle; return the number of each product's last cycle, from 0.

    One half is loaded while the other one is streamed through; without overlap the array is empty first.
    """
    waiting = list(folds)
    ready: Fold | None = None
    active: Fold | None = None
    loading, streaming, empty_at, cycle = 0, 0, 0, 0
    last: dict[int, int] = {}
    while waiting or ready or active:
        if active and not streaming:
            empty_at = cycle + sum(array) - 2
            last[active.product] = empty_at - 1
            active = None
        if ready and not loading and not active and (overlap or cycle >= empty_at):
            active, ready = ready, None
            streaming = active.stream
        if not ready and waiting and waiting[0].there <= cycle and (overlap or (not active and cycle >= empty_at)):
            ready = waiting.pop(0)
            loading = ready.load
            if not loading and not active:
                continue
        streaming -= bool(streaming)
        loading -= bool(loading)
        cycle += 1
    return [last[number] for number in sorted(last)]


def published(dataflow: str, array: tuple[int, int], size: Size) -> int:
    """Return the cycles of a single product by the closed form of its dataflow."""
    (rows, columns), (m, k, n) = array, size
    if dataflow == "output_stationary":
        return -(-m // rows) * -(-n // columns) * (k + rows + columns - 2) - 1
    if dataflow == "weight_stationary":
        return -(-k // rows) * -(-n // columns) * (m + 2 * rows + columns - 2) - 1
    return -(-k // rows) * -(-m // columns) * (n + 2 * rows + columns - 2) - 1


def streaming(products: int, entering: int, rows: int, columns: int) -> int:
    """Return the cycles of products in a row on output-stationary cells, whose results are shifted out at the end."""
    return products * entering + (rows + columns - 2) + rows


# The cases -------------------------------------------------------------------------------------------------


class _Product(MsgBase):
    data_op = True
    dtype_in = "f16"

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.m, self.k, self.n = size


def _last_ns(model: Any, params: dict[str, Any], sizes: Sequence[Size]) -> float:
    """Return when the last of products that come at once is out, in ns."""
    rig = Rig(model, {"overhead": "0 ns", **params})
    for size in sizes:
        rig.ask(0, msg=_Product(size))
    return rig.run().arrivals[-1].time - 2.0  # two wires of 1 ns


def _row(case: str, ours: float, reference: float, unit: str = "ns") -> Row:
    return case, ours, reference, unit, ours / reference - 1.0


def _alone() -> list[Row]:
    rows = []
    for dataflow in ("output_stationary", "weight_stationary", "input_stationary"):
        for array, size in (((32, 32), (1000, 1000, 1000)), ((128, 128), (512, 4096, 1024)), ((16, 64), (77, 130, 3))):
            params = {"rows": array[0], "columns": array[1], "dataflow": dataflow}
            case = f"{dataflow}, {array[0]} x {array[1]} cells, {'x'.join(map(str, size))}"
            rows.append(_row(case, _last_ns(PeGemmSystolic, params, [size]), published(dataflow, array, size)))
    return rows


def _in_rows() -> list[Row]:
    rows = []
    cells, tile = {"rows": ARRAY, "columns": ARRAY}, (ARRAY, ARRAY, ARRAY)
    for products in (4, 64):
        sizes = [tile] * products
        for dataflow in ("output_stationary", "weight_stationary", "input_stationary"):
            ours = _last_ns(PeGemmSystolic, {**cells, "dataflow": dataflow, "overlap": True}, sizes)
            folds = folds_of(dataflow, (ARRAY, ARRAY), sizes, [0] * products)
            rows.append(_row(f"{products} products in a row, {dataflow}", ours, stepped((ARRAY,) * 2, folds, True)[-1]))
        folds = folds_of("output_stationary", (ARRAY, ARRAY), sizes, [0] * products)
        shifted_out = stepped((ARRAY, ARRAY), folds, True)[-1] + 1 + ARRAY
        rows.append(_row(f"{products} products in a row, pe_gemm", _last_ns(PeGemm, cells, sizes), shifted_out))
    return rows


def tiled(size: int, sets: Sequence[str], plugins: Any = None) -> tuple[float, float]:
    """Multiply square matrices in the scratchpad by 128-tiles; return the ns of the composite and of its products."""

    def kernel(a_ptr: Any, b_ptr: Any, c_ptr: Any, tl: Any) -> None:
        a, b = (tl.load(tl.ref(pointer, (size, size))) for pointer in (a_ptr, b_ptr))
        tl.composite("gemm", a, b, tl.ref(c_ptr, (size, size)), tile_m=128, tile_n=128, tile_k=128)

    def bench(rt: Any) -> None:
        rt.launch(kernel, *(rt.zeros((size, size), "f16") for _ in "ab"), rt.empty((size, size), "f16"), grid=(1,))

    room = f"pe.tcm.capacity={4 * size * size // 2**20 + 2}MiB"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KernbenchWarning)  # another model leaves out some of the preset's parameters
        log = run(bench, "tiny", {}, set=[room, *sets], data=False, plugins=plugins or _plugins()).op_log
    (whole,) = (op for op in log if op.op_name == "composite_gemm")
    products = [op for op in log if op.op_name == "TileToken/GEMM"]
    return whole.t_end - whole.t_start, max(op.t_end for op in products) - min(op.t_start for op in products)


def _tiled(sizes: Sequence[int]) -> list[Row]:
    rows = []
    for size in sizes:
        tiles = (size // 128) ** 3
        _, ours = tiled(size, _WIDE)
        reference = _START_NS + streaming(tiles, 128, ARRAY, ARRAY)
        rows.append(_row(f"{size}^3 by 128-tiles on 128 x 128 cells, the array", ours, reference))
        whole, ours = tiled(size, ())
        reference = _START_NS + streaming(tiles, 4 * 2 * 128, 32, 64)
        rows.append(_row(f"{size}^3 by 128-tiles on 32 x 64 cells, the array", ours, reference))
        rows.append(_row(f"{size}^3 by 128-tiles on 32 x 64 cells, the composite", whole, reference))
    flows = ("impl=builtin.pe_gemm_systolic", "params.overlap=true", "params.dataflow=weight_stationary")
    _, ours = tiled(512, (*(f"components.pe_gemm.{each}" for each in flows), *_WIDE))
    folds = folds_of("weight_stationary", (ARRAY, ARRAY), [(ARRAY, ARRAY, ARRAY)] * 64, [0] * 64)
    reference = _START_NS + stepped((ARRAY, ARRAY), folds, True)[-1]
    return [*rows, _row("512^3 by 128-tiles on 128 x 128 cells, weight_stationary, the array", ours, reference)]


def _from_a_kernel() -> list[Row]:
    result = run("gemm-stream", "tiny", {"products": "1,8,64"}, data=False, plugins=_plugins())
    return [
        _row(f"{row['products']} times tl.dot(…, wait=False) of 128-tiles on 32 x 64 cells", row["gemm_ns"],
             _START_NS + streaming(row["products"], 4 * 2 * 128, 32, 64))
        for row in result.rows
    ]  # fmt: skip


def _plugins() -> Any:
    return load_plugins(own_plugins("builtin"), installed=False)
