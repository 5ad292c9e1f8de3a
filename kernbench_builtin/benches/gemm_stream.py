"""Products in a row on the matrix unit of each PE: what a row of them reaches, and how soon."""

from __future__ import annotations

from typing import Literal

from kernbench_builtin.benches._shared import check_product, require_positive
from kernbench_core.errors import UsageError
from kernbench_core.host import Runtime
from kernbench_core.wording import brief


def stream_kernel(a_ptr, b_ptr, c_ptr, m, n, k, products, ahead, tl):
    """Multiply one pair of tiles again and again, up to `ahead` products in the unit's queue behind the present."""
    pe = tl.program_id(0)
    a = tl.load(a_ptr + pe * m * k, shape=(m, k))
    b = tl.load(b_ptr, shape=(k, n))
    under_way = []
    for _ in range(products):
        under_way.append(tl.dot(a, b, wait=False))
        if len(under_way) > ahead:
            c = under_way.pop(0)
            tl.wait(c)
    for c in under_way:
        tl.wait(c)
    tl.store(c_ptr + pe * m * n, c)


def bench(
    rt: Runtime,
    products: str = "1,2,4,8,16,32,64",
    ahead: int = 2,
    m: int = 128,
    n: int = 128,
    k: int = 128,
    dtype: Literal["f16", "bf16", "f32", "int8"] = "f16",
) -> None:
    """Multiply tiles in the scratchpad so many times in a row; tabulate time and rate of a matrix unit.

    Args:
        products: How many products in a row, a list with commas.
        ahead: Products that may be under way before one is waited for.
        m: Rows of a tile of A.
        n: Columns of a tile of B.
        k: Terms of the sum.
        dtype: Of the arrays.
    """
    require_positive(m=m, n=n, k=k)
    if ahead < 0:
        raise UsageError(f"parameter 'ahead' must be 0 or more, not {ahead}; give 0 to wait for each product.")
    a, b = rt.tensor((m * rt.n_pes, k), dtype, name="a"), rt.tensor((k, n), dtype, name="b")
    for number in _numbers(products):
        c = rt.empty((m * rt.n_pes, n), "int32" if dtype == "int8" else "f32", name=f"c of {number}")
        before = len(rt.op_log)
        rt.launch(stream_kernel, a, b, c, m, n, k, number, ahead)
        gemm_ns = _row_of_first(rt, before)
        rt.report(products=number, gemm_ns=gemm_ns, **{"TFLOP/s": 2e-3 * m * n * k * number / gemm_ns})
        check_product(rt, c, a, b)
        rt.free(c)


def _row_of_first(rt: Runtime, before: int) -> float:
    """Return how long the first PE's unit took for the row of products that it has made since."""
    made = [(op.op_id or (0, 0), op) for op in rt.op_log.since(before) if op.op_kind == "gemm"]
    first, _ = min(op_id for op_id, _ in made)
    own = [op for (pe, _), op in made if pe == first]
    return max(op.t_end for op in own) - min(op.t_start for op in own)


def _numbers(text: str) -> list[int]:
    """Read a list of positive integers; UsageError for anything else."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts or not all(part.isdecimal() and int(part) for part in parts):
        raise UsageError(f"parameter 'products' must list positive integers, not {brief(text)}; write 1,4,16.")
    return [int(part) for part in parts]
