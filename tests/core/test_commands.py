"""Each command is one executable record with the fields that records 0020 and 0052 ask for."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernbench_core.commands import IMMEDIATE, NO_ADDRESS
from tests.core.kernel_rig import Rig

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
        "dtype": "f16", "handle_id": 0,
    }  # fmt: skip
    assert write.params == {
        "src_addr": tcm, "src_space": "tcm", "dst_addr": hbm, "dst_space": "hbm", "nbytes": 32, "shape": (8, 2),
        "dtype": "f16", "handle_id": 1,
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
    assert second.dependency_ids == [2]


def test_math_records() -> None:
    """Operands with addresses, spaces, shapes and dtypes; numbers are 0-d values that come with the command."""
    rig = Rig()

    def kernel(x: Any, tl: Any) -> None:
        a = tl.load(x, shape=(8, 8))
        tl.max(a * 0.5, axis=1, keep_dims=True)

    rig.run(kernel, rig.tensor(X))
    _, scaled, greatest = rig.log
    tcm = rig.design.address_map.encode(0, 0, "tcm0")
    assert scaled.params == {
        "op": "mul", "input_addrs": [tcm, NO_ADDRESS], "input_shapes": ((8, 8), ()), "input_spaces": ("tcm", IMMEDIATE),
        "input_dtypes": ("f16", "f16"), "in_dtypes": ("f16", "f16"), "dst_addr": tcm + 128, "dst_space": "tcm",
        "shape_out": (8, 8), "dtype": "f16", "axis": None, "keepdims": False, "addr_space": "tcm", "mask": False,
        "immediate1": 0.5,
    }  # fmt: skip
    assert scaled.reads[1].value is not None
    assert scaled.reads[1].value.array().shape == ()
    assert greatest.params["axis"] == 1
    assert greatest.params["keepdims"] is True
    elements = [command.elements for command in rig.cpus[0].sent[1:]]
    assert elements == [64, 64]


def test_landing_times_and_writers_are_kept() -> None:
    """Memory knows who wrote, and when the bytes were really there."""
    rig = Rig(overhead=0.0)
    x = rig.tensor(X)

    def kernel(x: Any, tl: Any) -> None:
        tl.store(x, tl.load(x, shape=(8, 8)))

    rig.run(kernel, x)
    (write,) = rig.ctx.store.writes("hbm", x.regions)
    assert (write.ticket.writer, write.ticket.lands_at) == ((0, 1), 200.0)


def test_the_repr_shows_the_state() -> None:
    """A command says which call it is, from where, and whether it is complete."""
    rig = Rig()

    def kernel(x: Any, tl: Any) -> None:
        tl.load(x)

    rig.run(kernel, rig.tensor(X))
    line = kernel.__code__.co_firstlineno + 1
    assert repr(rig.cpus[0].sent[0]) == f"<DmaReadCmd tl.load at {__file__}:{line}, complete>"
