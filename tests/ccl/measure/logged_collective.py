"""A collective as a log by hand, for tests of the check of data."""

from __future__ import annotations

import numpy as np

from kernbench_ccl.measure.data_check import check
from kernbench_core.compute.executor import DataExecutor
from kernbench_core.oplog.description import Access, OpDescription
from kernbench_core.oplog.log import OpLog
from kernbench_core.values.memory_store import MemoryStore
from kernbench_core.values.region import Region
from kernbench_core.values.value import ResultValue
from tests.core.arrays import adopt


class Collective:
    """A collective written as a log by hand: `op` chains over the ranks' inputs in some order."""

    def __init__(self, data):
        self.data, self.log, self.store, self.count = data, OpLog(), MemoryStore(), 0
        self.integers = data.integers()
        self.inputs = {rank: adopt(np.array(array)) for rank, array in enumerate(self.integers) if array is not None}

    def op(self, name, *operands, **params):
        op_id = (0, self.count)
        self.count += 1
        result = ResultValue(op_id, operands[0].shape, operands[0].dtype)
        reads = tuple(Access("tcm", (Region(1 << 30, v.nbytes),), v) for v in operands)
        writes = Access("tcm", (Region((2 << 30) + (self.count << 20), result.nbytes),), result)
        params = {"op": name, "dtype": result.dtype, "shape_out": result.shape, **params}
        self.log.append(self.count, self.count, "unit", OpDescription("math", name, params, reads, writes, op_id))
        return result

    def chain(self, ranks, name="add"):
        made = self.inputs[ranks[0]]
        for rank in ranks[1:]:
            made = self.op(name, made, self.inputs[rank])
        return made

    def verdict(self, outputs, kept=()):
        def executor(**options):
            return DataExecutor(self.log, self.store, **options)

        return check(self.data, executor, self.inputs, outputs, self.integers, kept)
