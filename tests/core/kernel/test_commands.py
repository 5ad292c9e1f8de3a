"""Each command is one executable record: what it did, where, on which values, and after which others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from kernbench_builtin.saved.saved_run import load_run, save_run
from kernbench_core.kernel.compute_commands import IMMEDIATE, NO_ADDRESS
from kernbench_core.oplog.log import OpLog
from tests.core.kernel_rig import Rig
from tests.core.oplog.remade import op_log_of

X = np.arange(64, dtype=np.float16).reshape(8, 8)


def test_dma_records() -> None:
    """A load and a store name both sides, their sizes, and the value that moved."""
    rig = Rig()
    x = rig.tensor(X, "x")

    def kernel(x: Any, tl: Any) -> None:
        tl.store(x, tl.load(x + 1, shape=(8, 2), strides=(8, 1)), strides=(8, 1))

    rig.run(kernel, x)
    read, write = rig.log
    tcm, hbm = rig.design.address_map.encode(0, 0, "tcm0"), x.segments[0].pa
    assert read.params == {
        "src_addr": hbm + 2, "src_space": "hbm", "dst_addr": tcm, "dst_space": "tcm", "nbytes": 32, "shape": (8, 2),
        "dtype": "f16", "handle_id": "pe0.0",
    }  # fmt: skip
    assert write.params == {
        "src_addr": tcm, "src_space": "tcm", "dst_addr": hbm, "dst_space": "hbm", "nbytes": 32, "shape": (8, 2),
        "dtype": "f16", "handle_id": "pe0.1",
    }  # fmt: skip
    assert [(r.op_kind, r.op_name, r.op_id) for r in rig.log] == [
        ("memory", "dma_read", (0, 0)),
        ("memory", "dma_write", (0, 1)),
    ]
    assert read.writes is not None
    assert read.writes.value is not None
    np.testing.assert_array_equal(read.writes.value.array(), X[:, 1:3])
    assert [region.nbytes for region in read.reads[0].regions] == [32]


def test_masked_transfers_count_what_moves() -> None:
    """nbytes is what crosses the fabric, shape is the tile's."""
    rig = Rig()

    def kernel(x: Any, tl: Any) -> None:
        offsets = tl.arange(0, 8)
        tl.store(x + offsets, tl.load(x + offsets, mask=offsets < 3), mask=offsets < 5)

    rig.run(kernel, rig.tensor(X, "x"))
    assert [(record.params["nbytes"], record.params["shape"]) for record in rig.log] == [(6, (8,)), (10, (8,))]
    assert [command.dma_op for command in rig.cpus[0].sent] == ["read", "write"]


def test_gemm_records() -> None:
    """Operand and output places, shapes, dtypes, and whether a third operand is added."""
    rig = Rig()

    def kernel(x: Any, tl: Any) -> None:
        a = tl.load(x, shape=(4, 8))
        b = tl.load(x, shape=(8, 2))
        tl.dot(a, b, tl.dot(a, b))

    rig.run(kernel, rig.tensor(X))
    first, second = [record for record in rig.log if record.op_kind == "gemm"]
    tcm = rig.design.address_map.encode(0, 0, "tcm0")
    assert first.op_name == "gemm_f16"
    assert first.params == {
        "src_a_addr": tcm, "src_b_addr": tcm + 64, "dst_addr": tcm + 128, "src_a_space": "tcm", "src_b_space": "tcm",
        "dst_space": "tcm", "addr_space": "tcm", "shape_a": (4, 8), "shape_b": (8, 2), "shape_out": (4, 2),
        "dtype_in": "f16", "dtype_acc": "f32", "dtype_out": "f32", "transpose_a": False, "transpose_b": False,
        "layout_a": "row_major", "layout_b": "row_major", "layout_out": "row_major", "m": 4, "k": 8, "n": 2,
        "accumulate": False,
    }  # fmt: skip
    assert second.params["accumulate"] is True
    assert second.dependency_ids == [0, 1, 2]


def test_math_records() -> None:
    """Operands with addresses, spaces, shapes and dtypes; numbers are 0-d values that come with the command."""
    rig = Rig()

    def kernel(x: Any, tl: Any) -> None:
        a = tl.load(x, shape=(8, 8))
        tl.max(a * 0.5, axis=1, keep_dims=True)

    rig.run(kernel, rig.tensor(X))
    _, scaled, greatest = rig.log
    tcm = rig.design.address_map.encode(0, 0, "tcm0")
    tile, half = (read.value for read in scaled.reads)
    assert scaled.params == {
        "op": "mul", "input_addrs": [tcm, NO_ADDRESS], "input_shapes": [(8, 8), ()], "input_spaces": ["tcm", IMMEDIATE],
        "input_dtypes": ["f16", "f16"], "in_dtypes": ["f16", "f16"], "dst_addr": tcm + 128, "dst_space": "tcm",
        "shape_out": (8, 8), "dtype": "f16", "axis": None, "keepdims": False, "addr_space": "tcm", "mask": False,
        "input_snapshots": [tile, half], "immediate1": half,
    }  # fmt: skip
    assert tile is not None and half is not None
    np.testing.assert_array_equal(tile.array(), X)
    assert (half.array().shape, half.array()[()]) == ((), 0.5)
    assert greatest.params["axis"] == 1
    assert greatest.params["keepdims"] is True
    elements = [command.elements for command in rig.cpus[0].sent[1:]]
    assert elements == [64, 64]


def test_a_merging_store_names_the_old_content_too() -> None:
    """A store under a mask that only phase 2 knows reads three tensors: the memory, the tile and the mask."""
    rig = Rig()
    x = rig.tensor(X)

    def kernel(x: Any, tl: Any) -> None:
        tile = tl.load(x, shape=(8, 8))
        tl.store(x, tile * 2.0, mask=tile > 9.0)

    rig.run(kernel, x)
    merge = rig.log[-1]
    assert merge.params["input_spaces"] == ["hbm", "tcm", "tcm"]
    assert merge.params["input_shapes"] == [(8, 8)] * 3
    assert merge.params["input_snapshots"] == [read.value for read in merge.reads]
    np.testing.assert_array_equal(merge.params["input_snapshots"][0].array(), X)
    np.testing.assert_array_equal(rig.numpy(x), np.where(X > 9, X * 2, X))


def critical_path(log: OpLog) -> list[int]:
    """Rebuild the chain of records that ends last, as a reader of the log would."""
    at = max(range(len(log)), key=lambda i: log[i].t_end)
    chain = [at]
    while log[at].dependency_ids:
        at = max(log[at].dependency_ids, key=lambda i: log[i].t_end)
        chain.insert(0, at)
    return chain


def test_dependencies_lead_through_loads_and_stores_of_two_pes(tmp_path: Path) -> None:
    """Data goes from PE 0's load to its store, from memory to PE 1's load, and on; views and integers count too."""
    rig = Rig(pes=2)
    x, y, z, k = rig.tensor(X, "x"), rig.tensor(X, "y"), rig.empty((64,), "f16", "z"), rig.tensor(X.astype(np.int32))

    def kernel(x: Any, y: Any, z: Any, k: Any, tl: Any) -> None:
        if tl.program_id(0) == 0:
            tl.store(y, tl.load(x, shape=(8, 8)) * 2.0)
        else:
            tl.store(k, tl.load(k, shape=(4,)) + 1)
            tl.store(z, tl.load(y, shape=(4, 4), strides=(8, 1)).reshape(16) + 1.0)

    rig.run(kernel, x, y, z, k)
    names = [(r.op_id[0], r.op_name) for r in rig.log if r.op_id is not None]
    assert names == [
        (0, "dma_read"), (1, "dma_read"), (0, "mul"), (1, "add"), (0, "dma_write"), (1, "dma_write"),
        (1, "dma_read"), (1, "add"), (1, "dma_write"),
    ]  # fmt: skip
    wanted = [[], [], [0], [1], [2], [3], [2, 4], [2, 6], [7]]
    assert [r.dependency_ids for r in rig.log] == wanted
    assert critical_path(rig.log) == [0, 2, 4, 6, 7, 8]
    save_run(tmp_path, rig.log, rig.store)
    saved = load_run(tmp_path).op_log
    assert [r.dependency_ids for r in saved] == wanted
    assert saved.sha256() == op_log_of(list(rig.log)).sha256() == rig.log.sha256()


def test_a_load_depends_on_the_writes_that_it_found_only() -> None:
    """What was overwritten before the load, or lies beside it, is no dependency."""
    rig = Rig(overhead=1.0)
    x = rig.tensor(np.tile(X, (2, 1)), "x")

    def kernel(x: Any, tl: Any) -> None:
        tl.store(x, tl.zeros((8, 8), "f16"))  # ops 0 and 1
        tl.store(x, tl.zeros((8,), "f16"))  # 2 and 3: the first row
        tl.store(x + 8, tl.zeros((8,), "f16"))  # 4 and 5: the second
        tl.load(x, shape=(8,))  # 6
        tl.load(x + 8, shape=(2, 8))  # 7: the second row, and the third of op 1

    rig.run(kernel, x)
    found = [record.dependency_ids for record in rig.log]
    assert found[6:] == [[2, 3], [0, 1, 4, 5]]


def test_a_masked_load_names_its_source() -> None:
    """What it reads is the elements that moved; those depend on whoever wrote them."""
    rig = Rig()
    x = rig.tensor(X, "x")

    def kernel(x: Any, tl: Any) -> None:
        offsets = tl.arange(0, 8)
        tl.store(x + offsets, tl.load(x + 8 + offsets, mask=offsets < 3))
        tl.load(x + offsets, mask=offsets < 5, other=7)

    rig.run(kernel, x)
    first, write, second = rig.log
    (source,) = first.reads
    assert source.value is not None and first.writes is not None and first.writes.value is not None
    np.testing.assert_array_equal(source.value.array(), X[1, :3])
    np.testing.assert_array_equal(first.writes.value.array(), [8, 9, 10, 0, 0, 0, 0, 0])
    assert [r.dependency_ids for r in (first, write, second)] == [[], [0], [1]]


def test_writers_are_kept() -> None:
    """Memory knows who wrote."""
    rig = Rig(overhead=0.0)
    x = rig.tensor(X)

    def kernel(x: Any, tl: Any) -> None:
        tl.store(x, tl.load(x, shape=(8, 8)))

    rig.run(kernel, x)
    (write,) = rig.store.writes("hbm", x.regions)
    assert write.writer == (0, 1)


def test_the_repr_shows_the_state() -> None:
    """A command says which call it is, from where, and whether it is complete."""
    rig = Rig()

    def kernel(x: Any, tl: Any) -> None:
        tl.load(x)

    rig.run(kernel, rig.tensor(X))
    line = kernel.__code__.co_firstlineno + 1
    assert repr(rig.cpus[0].sent[0]) == f"<DmaReadCmd tl.load at {__file__}:{line}, complete>"
