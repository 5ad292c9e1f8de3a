"""A composite is one executable record; its tiles cover its operands; its data equals numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_builtin.composites.command import CompositeCmd
from kernbench_core.errors import UninitializedReadError
from tests.builtin.composites.composites import BIAS, A, B, run
from tests.core.kernel_rig import Rig

AB = A.astype(np.float32) @ B.astype(np.float32)


def test_a_composite_left_in_hbm() -> None:
    """Both operands are refs; the call returns at once; the result is computed in phase 2."""
    after: list[float] = []

    def kernel(a: Any, b: Any, bias: Any, c: Any, tl: Any) -> None:
        done = tl.composite(op="gemm", a=tl.ref(a, (6, 8)), b=tl.ref(b, (8, 5)), out=c, tile_m=4, tile_k=4, tile_n=4)
        after.append(rig.env.now)
        tl.wait(done)
        after.append(rig.env.now)
        assert done.shape == (6, 5)
        assert tl.load(c, shape=(6, 5)).value.pending

    rig = Rig()
    _, c = run(kernel, rig)
    assert after == [1.0, 1001.0]
    np.testing.assert_array_equal(rig.numpy(c), AB)
    record = rig.log[0]
    assert (record.op_kind, record.op_name) == ("gemm", "composite_gemm")
    names = ("op", "m", "k", "n", "tile_m", "tile_k", "tile_n", "a_pinned", "b_pinned", "src_a_space", "dst_space")
    assert [record.params[name] for name in names] == ["gemm", 6, 8, 5, 4, 4, 4, False, False, "hbm", "hbm"]
    assert record.params["out_nbytes"] == 120
    assert record.params["dst_addr"] == record.params["out_addr"] == c.segments[0].pa


def test_a_pinned_operand_and_an_epilogue() -> None:
    """The loaded tile is not read again; scale, bias and relu run before the one rounding."""

    def kernel(a: Any, b: Any, bias: Any, c: Any, tl: Any) -> None:
        left = tl.load(a, shape=(6, 8))
        steps = [("scale", 0.5), tl.epilogue("bias", tl.load(bias, shape=(5,))), "relu"]
        tl.composite("gemm", left, tl.ref(b, (8, 5)), c, epilogue=steps, wait=True)

    rig, c = run(kernel, out="f16")
    np.testing.assert_array_equal(rig.numpy(c), np.maximum(AB * np.float32(0.5) + BIAS, 0).astype(np.float16))
    command = rig.cpus[0].sent[-1]
    assert isinstance(command, CompositeCmd)
    assert (command.a_pinned, command.b_pinned) == (True, False)
    assert [(step.kind, step.scope) for step in command.epilogue] == [
        ("scale", "output_tile"),
        ("bias", "output_tile"),
        ("relu", "output_tile"),
    ]
    assert rig.log[-1].params["epilogue"] == (
        ("scale", "output_tile", (2,), False),
        ("bias", "output_tile", (3,), False),
        ("relu", "output_tile", (), False),
    )


def test_k_tile_operands_broadcast_unless_they_are_per_tile() -> None:
    """An operand whose first extent happens to be the number of k tiles is not cut; per_tile cuts it, and says so."""
    a, b = A[:4, :8], B[:, :4]
    scale, parts = np.arange(16, dtype=np.float32).reshape(4, 4) - 7, np.arange(4, dtype=np.float32) + 1
    wide_a, wide_b = a.astype(np.float32), b.astype(np.float32)

    def kernel(a: Any, b: Any, s: Any, p: Any, c: Any, d: Any, tl: Any) -> None:
        tiles = {"tile_m": 4, "tile_k": 2, "tile_n": 4, "wait": True}
        whole = tl.epilogue("scale", tl.load(s, shape=(4, 4)), "k_tile")
        cut = tl.epilogue("scale", tl.load(p, shape=(4,)), "k_tile", per_tile=True)
        tl.composite("gemm", tl.ref(a, (4, 8)), tl.ref(b, (8, 4)), c, epilogue=[whole], **tiles)
        tl.composite("gemm", tl.ref(a, (4, 8)), tl.ref(b, (8, 4)), d, epilogue=[cut], **tiles)

    rig = Rig()
    c, d = rig.empty((4, 4)), rig.empty((4, 4))
    rig.run(kernel, *(rig.tensor(x) for x in (a, b, scale, parts)), c, d)
    np.testing.assert_allclose(rig.numpy(c), (wide_a @ wide_b) * scale, rtol=1e-5, atol=1e-5)
    want = sum(parts[t] * (wide_a[:, 2 * t : 2 * t + 2] @ wide_b[2 * t : 2 * t + 2]) for t in range(4))
    np.testing.assert_allclose(rig.numpy(d), want, rtol=1e-5, atol=1e-5)
    steps = [r.params["epilogue"] for r in rig.log if r.op_kind == "gemm"]
    assert steps == [(("scale", "k_tile", (2,), False),), (("scale", "k_tile", (2,), True),)]


def test_an_input_that_nobody_wrote_is_named() -> None:
    """One sentence: the tensor, the operand, the line, and what to do."""

    def kernel(a: Any, b: Any, c: Any, tl: Any) -> None:
        tl.composite("gemm", tl.ref(a, (6, 8)), tl.ref(b, (8, 5)), c)

    rig = Rig()
    with pytest.raises(UninitializedReadError) as caught:
        rig.run(kernel, rig.tensor(A), rig.empty((8, 5), "f16", "right"), rig.empty((6, 5)))
    line = kernel.__code__.co_firstlineno + 1
    assert str(caught.value).partition("\n")[0] == (
        f"tl.composite at {__file__}:{line} must read memory that was written, and element [0, 0] of tensor 'right' "
        "(operand b) was not; store to it first, or make the tensor with rt.zeros."
    )


def test_a_math_composite() -> None:
    """An elementwise op from HBM to HBM."""

    def kernel(a: Any, b: Any, bias: Any, c: Any, tl: Any) -> None:
        tl.composite("math", tl.ref(a, (6, 5), strides=(8, 1)), out=c, math_op="exp")

    rig, c = run(kernel)
    np.testing.assert_allclose(rig.numpy(c), np.exp(A[:, :5].astype(np.float32)), rtol=1e-6)
    assert rig.log[0].op_name == "composite_math"


@given(st.integers(1, 7), st.integers(1, 9))
def test_tiles_cover_each_operand_once(tile_rows: int, tile_cols: int) -> None:
    """The regions of all tiles of an operand are its bytes, each once, also where PEs' slices meet inside a tile."""
    commands: list[CompositeCmd] = []

    def kernel(a: Any, b: Any, bias: Any, c: Any, tl: Any) -> None:
        tl.composite("gemm", tl.ref(a, (6, 8)), tl.ref(b, (8, 5)), c)

    rig = Rig(pes=4)
    tensors = [rig.tensor(A), rig.tensor(B), rig.tensor(BIAS), rig.empty((6, 5))]
    rig.run(kernel, *tensors, grid=1)
    commands.extend(command for command in rig.cpus[0].sent if isinstance(command, CompositeCmd))
    matrices = (("a", tensors[0], (6, 8)), ("b", tensors[1], (8, 5)), ("out", tensors[3], (6, 5)))
    for operand, tensor, (rows, cols) in matrices:
        found = [
            region.base + row * region.pitch + byte
            for m in range(0, rows, tile_rows)
            for n in range(0, cols, tile_cols)
            for region in commands[0].tile_regions(operand, m, tile_rows, n, tile_cols)
            for row in range(region.rows)
            for byte in range(region.row_bytes)
        ]
        wanted = [region.base + byte for region in tensor.regions for byte in range(region.nbytes)]
        assert sorted(found) == sorted(wanted)


# Math of two operands, refs in epilogues, dtypes -----------------------------------------------------------

RNG = np.random.default_rng(5)
X = RNG.uniform(0.5, 2, (7, 11)).astype(np.float32)
Y = RNG.uniform(-2, -0.5, (7, 11)).astype(np.float32)
OF_TWO = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "maximum": np.maximum,
    "minimum": np.minimum,
}  # fmt: skip
PARTS = {"matrix": (7, 11), "vector": (11,), "row": (1, 11), "column": (7, 1)}


@pytest.mark.parametrize("pinned", ["none", "a", "b", "both"])
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("op", OF_TWO)
def test_a_math_composite_of_two_operands(op: str, part: str, pinned: str) -> None:
    """Odd sizes, b of the shape of a, a row or a column, each operand in HBM or in the scratchpad."""
    shape = PARTS[part]
    right = Y[tuple(slice(extent) for extent in (shape if len(shape) == 2 else (1, *shape)))].reshape(shape)

    def kernel(x: Any, y: Any, z: Any, tl: Any) -> None:
        a = tl.load(x, shape=(7, 11)) if pinned in ("a", "both") else tl.ref(x, (7, 11))
        b = tl.load(y, shape=shape) if pinned in ("b", "both") else tl.ref(y, shape)
        tl.composite("math", a, b, z, math_op=op, tile_m=4, tile_n=4, epilogue=[("scale", 0.5)], wait=True)

    rig = Rig()
    z = rig.empty((7, 11))
    rig.run(kernel, rig.tensor(X), rig.tensor(right), z)
    np.testing.assert_allclose(rig.numpy(z), OF_TWO[op](X, right) * np.float32(0.5), rtol=1e-6)
    assert rig.log[-1].params["math_op"] == op
    assert rig.log[-1].op_name == "composite_math"


def test_a_row_of_a_wider_tensor_and_a_column_of_one() -> None:
    """Refs with strides: the second row, and the third column, of a matrix."""

    def kernel(x: Any, y: Any, z: Any, w: Any, tl: Any) -> None:
        a = tl.ref(x, (7, 11))
        tl.composite("math", a, tl.ref(y + 11, (11,)), z, math_op="add", tile_m=3, tile_n=5)
        tl.composite("math", a, tl.ref(y + 2, (7, 1), strides=(11, 1)), w, math_op="mul", tile_m=3, tile_n=5)
        tl.wait()

    rig = Rig()
    z, w = rig.empty((7, 11)), rig.empty((7, 11))
    rig.run(kernel, rig.tensor(X), rig.tensor(Y), z, w)
    np.testing.assert_array_equal(rig.numpy(z), X + Y[1])
    np.testing.assert_array_equal(rig.numpy(w), X * Y[:, 2:3])


MIXED = {
    "f16 and f32 to bf16": (np.float16, np.float32, "bf16"),
    "int8 and int32 to int32": (np.int8, np.int32, "int32"),
    "uint8 and int8 to f32": (np.uint8, np.int8, "f32"),
}


@pytest.mark.parametrize("case", MIXED)
def test_operands_of_a_math_composite_meet_and_are_rounded_once(case: str) -> None:
    """Computed in f32 or in the common integer, and cast to the output's dtype at the end."""
    left, right, out = MIXED[case]
    x = (X * 40).astype(left)
    y = abs(Y * 20).astype(right)

    def kernel(a: Any, b: Any, z: Any, tl: Any) -> None:
        tl.composite("math", tl.ref(a, (7, 11)), tl.ref(b, (7, 11)), z, math_op="mul", epilogue=[("add", 1.0)])

    rig = Rig()
    z = rig.empty((7, 11), out)
    rig.run(kernel, rig.tensor(x), rig.tensor(y), z)
    exact = x.astype(np.float64) * y.astype(np.float64)
    if case.startswith("uint8"):
        exact = exact.astype(np.int64).astype(np.uint8).astype(np.float64)
    np.testing.assert_allclose(rig.numpy(z).astype(np.float64), exact + 1, rtol={"bf16": 4e-3}.get(out, 1e-6))


@pytest.mark.parametrize("scope", ["k_tile", "output_tile"])
@pytest.mark.parametrize("place", ["ref", "tile"])
def test_an_epilogue_operand_may_stay_in_hbm(scope: str, place: str) -> None:
    """A residual of the output's shape, a row and a column, in both scopes, after each other."""
    residual, row, column = Y[:6, :5].copy(), Y[0, :5].copy(), Y[:6, :1].copy()

    def kernel(a: Any, b: Any, r: Any, v: Any, w: Any, c: Any, tl: Any) -> None:
        make = (lambda p, shape: tl.load(p, shape=shape)) if place == "tile" else tl.ref
        steps = [
            tl.epilogue("add", make(r, (6, 5)), scope),
            tl.epilogue("mul", make(v, (5,)), scope),
            tl.epilogue("maximum", make(w, (6, 1)), scope),
            "silu",
        ]
        tl.composite("gemm", tl.ref(a, (6, 8)), tl.ref(b, (8, 5)), c, epilogue=steps, tile_m=4, tile_k=3, tile_n=2)

    rig = Rig()
    c = rig.empty((6, 5))
    rig.run(kernel, *map(rig.tensor, (A, B, residual, row, column)), c)
    cuts = (slice(0, 3), slice(3, 6), slice(6, 8)) if scope == "k_tile" else (slice(0, 8),)
    wide_a, wide_b = A.astype(np.float64), B.astype(np.float64)
    total = sum(np.maximum((wide_a[:, cut] @ wide_b[cut] + residual) * row, column) for cut in cuts)
    np.testing.assert_allclose(rig.numpy(c), total / (1 + np.exp(-total)), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("place", ["ref", "tile"])
def test_int8_is_dequantised_by_k_tile_and_by_column(place: str) -> None:
    """Scales of each k tile and column multiply its int32 product in f32; those of each row multiply the sum."""
    a, b = (RNG.integers(-128, 128, shape).astype(np.int8) for shape in ((6, 9), (9, 5)))
    groups, rows = RNG.uniform(0.01, 0.1, (3, 5)).astype(np.float32), RNG.uniform(1, 2, (6, 1)).astype(np.float32)

    def kernel(a: Any, b: Any, g: Any, r: Any, c: Any, tl: Any) -> None:
        make = (lambda p, shape: tl.load(p, shape=shape)) if place == "tile" else tl.ref
        steps = [tl.epilogue("dequant", make(g, (3, 5)), "k_tile", per_tile=True), ("dequant", make(r, (6, 1)))]
        tl.composite("gemm", tl.ref(a, (6, 9)), tl.ref(b, (9, 5)), c, epilogue=steps, tile_m=4, tile_k=4, tile_n=2)

    rig = Rig()
    c = rig.empty((6, 5), "f16")
    rig.run(kernel, *map(rig.tensor, (a, b, groups, rows)), c)
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    total = sum(wide_a[:, 4 * t : 4 * t + 4] @ wide_b[4 * t : 4 * t + 4] * groups[t] for t in range(3)) * rows
    np.testing.assert_allclose(rig.numpy(c), total, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("scope", ["output_tile", "k_tile"])
def test_an_integer_in_an_epilogue_leaves_sums_of_integers_exact(scope: str) -> None:
    """Sums past 2**24 are exact in int32 and not in f32: a whole number does not make floats of them."""
    deep = np.full((2, 4096), 127, np.int8)

    def kernel(a: Any, b: Any, c: Any, tl: Any) -> None:
        steps = [("add", 1, scope), ("mul", 3), "relu"]
        left, right = tl.ref(a, (2, 4096)), tl.ref(b, (4096, 2))
        tl.composite("gemm", left, right, c, epilogue=steps, tile_k=4096, wait=True)

    rig = Rig()
    c = rig.empty((2, 2), "int32")
    rig.run(kernel, rig.tensor(deep), rig.tensor(np.ascontiguousarray(deep.T)), c)
    np.testing.assert_array_equal(rig.numpy(c), np.full((2, 2), (127 * 127 * 4096 + 1) * 3, np.int32))


def test_an_integer_in_an_epilogue_of_a_math_composite() -> None:
    """The sum of two large integers and a small one is exact."""
    x = np.full((2, 2), 1 << 28, np.int32)

    def kernel(a: Any, c: Any, tl: Any) -> None:
        tl.composite("math", tl.ref(a, (2, 2)), tl.ref(a, (2, 2)), c, math_op="add", epilogue=[("sub", 1)], wait=True)

    rig = Rig()
    c = rig.empty((2, 2), "int32")
    rig.run(kernel, rig.tensor(x), c)
    np.testing.assert_array_equal(rig.numpy(c), np.full((2, 2), (1 << 29) - 1, np.int32))


# The handle ---------------------------------------------------------------------------------------------

PLACES: dict[str, Any] = {
    "pointer": lambda y, h, tl: tl.store(y, h),
    "strides": lambda y, h, tl: tl.store(y, h, strides=(8, 1)),
    "ref": lambda y, h, tl: tl.store(tl.ref(y + 3, (6, 5), (7, 1)), h),
    "shape": lambda y, h, tl: tl.store(y, h, shape=(6, 5)),
    "pointers": lambda y, h, tl: tl.store(y + tl.arange(0, 6)[:, None] * 6 + tl.arange(0, 5)[None, :], h),
    "mask": lambda y, h, tl: tl.store(
        y + tl.arange(0, 6)[:, None] * 5 + tl.arange(0, 5)[None, :], h, mask=tl.arange(0, 5)[None, :] < 3
    ),
}


def _right(place: str, y: Any) -> Any:
    """What `y` holds then, by numpy."""
    steps = {"strides": (0, 8), "ref": (3, 7), "pointers": (0, 6)}.get(place, (0, 5))
    want = y.copy()
    for (row, column), number in np.ndenumerate(AB.astype(y.dtype)):
        if place != "mask" or column < 3:
            want[steps[0] + steps[1] * row + column] = number
    return want


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("wait", [False, True])
@pytest.mark.parametrize("place", PLACES)
def test_a_stored_handle_is_waited_for_and_copied(place: str, wait: bool, dtype: Any) -> None:
    """A read and a write of its bytes, after it has ended; the data is known after phase 2."""
    rig = Rig()
    start = np.full(64, -1, dtype)
    y = rig.tensor(start, "y")

    def kernel(a: Any, b: Any, c: Any, y: Any, tl: Any) -> None:
        handle = tl.composite("gemm", tl.ref(a, (6, 8)), tl.ref(b, (8, 5)), c, wait=wait)
        PLACES[place](y, handle, tl)
        assert not tl.load(y + 10).known

    c = rig.empty((6, 5), "f32", "c")
    rig.run(kernel, rig.tensor(A, "a"), rig.tensor(B, "b"), c, y)
    np.testing.assert_array_equal(rig.numpy(y), _right(place, start))
    cast = [] if dtype is np.float32 else ["cast"]
    assert rig.ops() == ["composite_gemm", "dma_read", *cast, "dma_write", "dma_read"]
    composite, read, *_, write, _ = rig.log
    assert read.t_start >= composite.t_end and write.t_start >= read.t_end
    assert (read.params["src_addr"], read.params["nbytes"]) == (c.segments[0].pa, 120)
    assert write.params["nbytes"] == (18 if place == "mask" else 30) * np.dtype(dtype).itemsize
    assert list(read.dependency_ids) == [0]


def test_a_large_output_is_copied_in_pieces() -> None:
    """What does not fit in the scratchpad goes through it rows by rows, and its space is given back."""
    rig = Rig(tcm=1 << 10)
    x = rig.tensor(np.arange(512, dtype=np.float32).reshape(32, 16))
    c, y = rig.empty((32, 16)), rig.empty((32, 16), "f16")

    def kernel(x: Any, c: Any, y: Any, tl: Any) -> None:
        tl.store(y, tl.composite("math", tl.ref(x, (32, 16)), out=c, math_op="relu"))

    rig.run(kernel, x, c, y)
    np.testing.assert_array_equal(rig.numpy(y), np.arange(512).reshape(32, 16).astype(np.float16))
    reads = [record for record in rig.log if record.op_name == "dma_read"]
    assert len(reads) == 4 and sum(record.params["nbytes"] for record in reads) == 2048
    assert rig.used_tcm() == 0
