"""Records that no command of kernbench made: unknown ones, and those that name nothing but addresses."""

from __future__ import annotations

import numpy as np
import pytest

from kernbench_core.compute.executor import DataExecutor
from kernbench_core.errors import ExecutionError
from kernbench_core.oplog.description import OpDescription
from kernbench_core.oplog.log import OpRecord
from kernbench_core.values.memory_store import MemoryStore
from tests.core.compute.recorder import Recorder


def test_unknown_and_stage_records_are_skipped() -> None:
    """Records of messages that describe nothing, and timing-only stages, compute nothing."""
    record = Recorder()
    record.log.append(0.0, 1.0, "x", OpDescription("unknown", "Thing", {}))
    stage = OpDescription("gemm", "TileToken/GEMM", {"m": 2, "dst_addr": 4}, stage_of=(0, 0))
    record.log.append(0.0, 1.0, "x", stage)
    executor = record.executor()
    executor.run()
    assert executor.computed == 0
    assert [r.stage_of for r in record.log] == [None, (0, 0)]


def foreign(t, kind, name, **params) -> OpRecord:
    return OpRecord(t, t + 1, "unit", kind, name, params)


def test_records_that_name_only_addresses() -> None:
    """A log of plain records executes in the order that its addresses imply, overwrites of inputs included."""
    rng = np.random.default_rng(11)
    a, b = rng.standard_normal((4, 6)).astype(np.float16), rng.standard_normal((6, 5)).astype(np.float16)
    store = MemoryStore()
    store.write("hbm", 0, a)
    store.write("hbm", 1000, b)
    copy = {"src_space": "hbm", "dst_space": "tcm"}
    gemm = {"shape_a": (4, 6), "shape_b": (6, 5), "shape_out": (4, 5), "dtype_in": "f16", "dtype_out": "f32"}
    records = [
        foreign(0, "memory", "dma_read", src_addr=0, dst_addr=0, nbytes=48, **copy),
        foreign(1, "memory", "dma_read", src_addr=1000, dst_addr=64, nbytes=60, **copy),
        foreign(2, "gemm", "gemm_f16", src_a_addr=0, src_b_addr=64, dst_addr=512, addr_space="tcm", **gemm),
        foreign(3, "memory", "dma_read", src_addr=1000, dst_addr=0, nbytes=48, **copy),
        foreign(
            4,
            "math",
            "relu",
            input_addrs=[512],
            input_shapes=[(4, 5)],
            dst_addr=512,
            shape_out=(4, 5),
            dtype="f32",
            axis=None,
            addr_space="tcm",
        ),
        foreign(5, "memory", "dma_write", src_addr=512, dst_addr=4096, nbytes=80, src_space="tcm", dst_space="hbm"),
        foreign(6, "unknown", "Odd"),
    ]
    executor = DataExecutor(records, store)
    executor.run()
    want = np.maximum(a.astype(np.float64) @ b.astype(np.float64), 0)
    np.testing.assert_allclose(executor.store.read("hbm", 4096, (4, 5), "f32"), want, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(executor.store.read("tcm", 0, (4, 6), "f16"), b.reshape(-1)[:24].reshape(4, 6))
    assert not store.has("hbm", 4096)


def test_explicit_dependencies_of_foreign_records() -> None:
    """`dependency_ids` order what times alone would not; a cycle is an error."""
    store = MemoryStore()
    store.write("tcm", 0, np.zeros(4, np.float32))
    common = {
        "input_shapes": [(4,)],
        "shape_out": (4,),
        "dtype": "f32",
        "addr_space": "tcm",
        "input_addrs": [0],
        "dst_addr": 0,
    }
    first = OpRecord(5.0, 6.0, "u", "math", "exp", common)
    second = OpRecord(1.0, 2.0, "u", "math", "neg", common, dependency_ids=[0])
    executor = DataExecutor([first, second], store)
    executor.run()
    np.testing.assert_array_equal(executor.store.read("tcm", 0, (4,), "f32"), [-1] * 4)
    first = OpRecord(5.0, 6.0, "u", "math", "exp", common, dependency_ids=[1])
    with pytest.raises(ExecutionError) as caught:
        DataExecutor([first, second], store).run()
    assert str(caught.value) == "exp (u, 5.000 ns) must not depend on itself through other ops; break the cycle."
