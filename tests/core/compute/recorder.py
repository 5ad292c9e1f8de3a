"""Logs written by hand as a run writes them, for tests of what phase 2 makes of them."""

from __future__ import annotations

import numpy as np

from kernbench_core.compute.executor import DataExecutor
from kernbench_core.oplog.description import Access, OpDescription
from kernbench_core.oplog.log import OpLog
from kernbench_core.values.dtypes import numpy_dtype
from kernbench_core.values.memory_store import MemoryStore
from kernbench_core.values.region import Region
from kernbench_core.values.value import ResultValue
from tests.core.arrays import adopt

TCM = 1 << 40


class Recorder:
    """Write a log the way a run does: loads sample memory, ops give pending results, stores are visible at once."""

    def __init__(self) -> None:
        self.log, self.store, self.count = OpLog(), MemoryStore(), 0

    def op(self, name, inputs, shape, dtype, params=None, kind="math", **more):
        op_id = (0, self.count)
        self.count += 1
        result = ResultValue(op_id, shape, dtype)
        described = OpDescription(
            kind,
            name,
            {"op": name, "dtype": dtype, "shape_out": shape, **(params or {})},
            tuple(Access("tcm", (Region(TCM, max(1, v.nbytes)),), v) for v in inputs),
            Access("tcm", (Region(TCM + (self.count << 20), result.nbytes),), result),
            op_id,
            **more,
        )
        self.log.append(float(self.count), self.count + 0.5, "sip0.cube0.pe0.unit", described)
        return result

    def dot(self, a, b, dtype_out, **params):
        name = f"gemm_{a.dtype}"
        m = a.shape[1] if params.get("transpose_a") else a.shape[0]
        n = b.shape[0] if params.get("transpose_b") else b.shape[1]
        return self.op(
            name, [a, b, *params.pop("more", [])], (m, n), dtype_out, {"dtype_out": dtype_out, **params}, "gemm"
        )

    def executor(self, **options):
        return DataExecutor(self.log, self.store, **options)


def host(array):
    return adopt(np.array(array))


def graph(record: Recorder) -> list:
    """Log products that share an operand, alike ones, one of integers, and float math on what they give."""
    rng = np.random.default_rng(11)

    def operand(dtype: str = "f16"):
        return host(rng.integers(-4, 5, (8, 8)).astype(numpy_dtype(dtype)))

    shared = operand()
    made = [record.dot(operand(), shared, "f32") for _ in range(3)]
    made += [record.dot(operand("f32"), operand("f32"), "f32", transpose_b=True) for _ in range(2)]
    made.append(record.dot(operand("int8"), operand("int8"), "int32"))
    made.append(record.op("exp", [record.op("sub", [made[0], made[1]], (8, 8), "f32")], (8, 8), "f32"))
    made.append(record.op("sum", [made[-1]], (8, 1), "bf16", {"axis": 1, "keepdims": True}))
    made.append(record.op("cast", [made[2]], (8, 8), "f16"))
    made.append(record.op("add", [operand("int32"), made[5]], (8, 8), "int32"))
    return made
