"""What composites refuse: operands that do not fit, handles whose output is gone, data of and arithmetic on handles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernbench_core.errors import KernelError, PendingDataError, ShapeError, UnsupportedError
from tests.builtin.composites.composites import run
from tests.core.kernel_rig import Rig

REFUSED: dict[str, tuple[type[KernelError], Any, str]] = {
    "inner extents": (
        ShapeError,
        lambda a, b, c, tl: tl.composite("gemm", tl.ref(a, (6, 8)), tl.ref(b, (5, 5)), c),
        " must be given shapes (m, k) and (k, n), not (6, 8) and (5, 5); 8 and 5 must be equal.",
    ),
    "output": (
        ShapeError,
        lambda a, b, c, tl: tl.composite("gemm", tl.ref(a, (6, 8)), tl.ref(b, (8, 5)), tl.ref(c, (5, 6))),
        " must be given an output of shape (6, 5), not (5, 6); correct the shape of out.",
    ),
    "op": (
        UnsupportedError,
        lambda a, b, c, tl: tl.composite("conv", tl.ref(a, (6, 8)), tl.ref(b, (8, 5)), None),
        " must be given op 'gemm' or 'math' and out=, not op 'conv' and out=None.",
    ),
    "a pointer": (
        ShapeError,
        lambda a, b, c, tl: tl.composite("gemm", a, tl.ref(b, (8, 5)), c),
        ": operand a must be a matrix, given as tl.ref(ptr, shape=…) or a loaded tile, not "
        "Pointer(a f16[6, 8] + 0, at 0x100001000); "
        "give it two dimensions.",
    ),
    "columns": (
        UnsupportedError,
        lambda a, b, c, tl: tl.composite("gemm", tl.ref(a, (8, 6), strides=(1, 8)), tl.ref(b, (6, 5)), c),
        ": operand a must have contiguous rows (last stride 1), not strides (1, 8); transpose it on the host.",
    ),
    "step": (
        UnsupportedError,
        lambda a, b, c, tl: tl.composite("gemm", tl.ref(a, (6, 8)), tl.ref(b, (8, 5)), c, epilogue=[("bias", c)]),
        ": epilogue step 'bias' must have a number, a tile or a ref as its operand, not a pointer; tl.load it, or give "
        "tl.ref(ptr, shape=…).",
    ),
    "per_tile extent": (
        ShapeError,
        lambda a, b, c, tl: tl.composite(
            "gemm", tl.ref(a, (6, 8)), tl.ref(b, (8, 5)), c, tile_k=4,
            epilogue=[tl.epilogue("scale", tl.load(a, shape=(3,)), "k_tile", per_tile=True)],
        ),
        ": epilogue step 'scale' must have an operand whose first extent is the number of k tiles, 2, with "
        "per_tile=True, not shape (3,); reshape it, or leave per_tile out.",
    ),
    "per_tile part": (
        ShapeError,
        lambda a, b, c, tl: tl.composite(
            "gemm", tl.ref(a, (6, 8)), tl.ref(b, (8, 5)), c, tile_k=4,
            epilogue=[tl.epilogue("scale", tl.load(a, shape=(2, 4)), "k_tile", per_tile=True)],
        ),
        ": epilogue step 'scale' must have an operand whose part for each k tile broadcasts to (6, 5), not (4,); "
        "reshape it.",
    ),
    "per_tile number": (
        ShapeError,
        lambda a, b, c, tl: tl.composite(
            "gemm", tl.ref(a, (6, 8)), tl.ref(b, (8, 5)), c,
            epilogue=[tl.epilogue("scale", 2.0, "k_tile", per_tile=True)],
        ),
        ": epilogue step 'scale' must have scope 'k_tile' and a tile or a ref as its operand with "
        "per_tile=True, not scope 'k_tile' and 2.0; leave per_tile out.",
    ),
    "k_tile operand": (
        ShapeError,
        lambda a, b, c, tl: tl.composite(
            "gemm", tl.ref(a, (6, 8)), tl.ref(b, (8, 5)), c, tile_k=4,
            epilogue=[("scale", tl.load(a, shape=(2,)), "k_tile")],
        ),
        ": epilogue step 'scale' must have an operand that broadcasts to (6, 5), not (2,); reshape it.",
    ),
    "tile": (
        ShapeError,
        lambda a, b, c, tl: tl.composite("gemm", tl.ref(a, (6, 8)), tl.ref(b, (8, 5)), c, tile_k=0),
        ": tile_k must be a positive integer, not 0.",
    ),
    "data": (
        PendingDataError,
        lambda a, b, c, tl: bool(tl.composite("gemm", tl.ref(a, (6, 8)), tl.ref(b, (8, 5)), c)),
        "",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_fit_is_refused(case: str) -> None:
    """Shapes, ops, operands and tiles; the sentence starts with the kernel line."""
    kind, body, text = REFUSED[case]

    def kernel(a: Any, b: Any, bias: Any, c: Any, tl: Any) -> None:
        body(a, b, c, tl)

    with pytest.raises(kind) as caught:
        run(kernel)
    said = str(caught.value).partition("\n")[0]
    if text:
        assert said == f"tl.composite at {__file__}:{body.__code__.co_firstlineno}{text}"
    else:
        assert said.startswith(f"a condition at {__file__}:{body.__code__.co_firstlineno} must have data")


MISFITS: dict[str, tuple[type[KernelError], Any, str]] = {
    "shape of b": (
        ShapeError,
        lambda a, b, c, tl: tl.composite("math", tl.ref(a, (6, 8)), tl.ref(b, (8, 5)), c, math_op="add"),
        ": operand b must be a matrix of shape (6, 8), a row (1, 8) or a column (6, 1), not of shape (8, 5); reshape "
        "it, or give a number as an epilogue step.",
    ),
    "a row as a": (
        ShapeError,
        lambda a, b, c, tl: tl.composite("math", tl.ref(a, (8,)), tl.ref(b, (8, 5)), c, math_op="add"),
        ": operand a must be a matrix, given as tl.ref(ptr, shape=…) or a loaded tile, not shape (8,); give it two "
        "dimensions.",
    ),
    "op of two": (
        UnsupportedError,
        lambda a, b, c, tl: tl.composite("math", tl.ref(a, (6, 8)), tl.ref(a, (6, 8)), c, math_op="exp"),
        ": math_op of two operands must be one of add, sub, mul, div, maximum, minimum, not 'exp'.",
    ),
    "a stack of scales": (
        UnsupportedError,
        lambda a, b, c, tl: tl.composite(
            "gemm", tl.ref(a, (6, 8)), tl.ref(b, (8, 5)), c, tile_k=4,
            epilogue=[tl.epilogue("scale", tl.ref(a, (2,)), "k_tile", per_tile=True)],
        ),
        ": epilogue step 'scale' must have a ref of two dimensions with per_tile=True, not of shape (2,); tl.load it "
        "first.",
    ),
    "columns of a step": (
        UnsupportedError,
        lambda a, b, c, tl: tl.composite(
            "gemm", tl.ref(a, (6, 8)), tl.ref(b, (8, 5)), c, epilogue=[("add", tl.ref(a, (6, 5), strides=(1, 6)))]
        ),
        ": operand of epilogue step 'add' must have contiguous rows (last stride 1), not strides (1, 6); transpose it "
        "on the host.",
    ),
}


@pytest.mark.parametrize("case", MISFITS)
def test_operands_that_do_not_fit_are_refused(case: str) -> None:
    """The sentence starts with the kernel line, names the operand and says what to do."""
    kind, body, text = MISFITS[case]

    def kernel(a: Any, b: Any, bias: Any, c: Any, tl: Any) -> None:
        body(a, b, c, tl)

    with pytest.raises(kind) as caught:
        run(kernel)
    said = str(caught.value).partition("\n")[0]
    assert said == f"tl.composite at {__file__}:{body.__code__.co_firstlineno}{text}"


@pytest.mark.parametrize(("at", "refused"), [(8, True), (0, False), (32, False)])
def test_a_copy_of_an_output_over_a_part_of_itself_is_refused_when_it_is_copied_again(at: int, refused: bool) -> None:
    """These are bytes of the composite, but not those that it wrote there; a copy in its own place changes nothing."""
    rig, start = Rig(), np.arange(64, dtype=np.float32).reshape(8, 8)

    def kernel(x: Any, y: Any, z: Any, tl: Any) -> None:
        handle = tl.composite("math", tl.ref(x, (4, 8)), out=y, math_op="relu")
        tl.store(y + at, handle)
        tl.store(z, handle)

    z = rig.empty((4, 8), "f32", "z")
    given = rig.tensor(start), rig.tensor(np.zeros((8, 8), np.float32)), z
    if refused:
        with pytest.raises(KernelError, match="must be given a composite whose output is still in tensor"):
            rig.run(kernel, *given)
        return
    rig.run(kernel, *given)
    np.testing.assert_array_equal(rig.numpy(z), start[:4])


@pytest.mark.parametrize("data", [True, False])
def test_a_handle_whose_output_is_gone_is_refused(data: bool) -> None:
    """The copy reads memory, where something else may stand: that is not what the handle says."""

    def kernel(a: Any, b: Any, bias: Any, c: Any, tl: Any) -> None:
        handle = tl.composite("gemm", tl.ref(a, (6, 8)), tl.ref(b, (8, 5)), c)
        tl.store(c + 7, 1.0)
        tl.store(bias, handle)

    def over(a: Any, b: Any, bias: Any, c: Any, tl: Any) -> None:
        handle = tl.composite("gemm", tl.ref(a, (6, 8)), tl.ref(b, (8, 5)), c)
        tl.store(c + 7, 1.0)
        tl.store(c, handle)

    rig = Rig(data=data)
    if not data:  # nothing is known of what memory holds
        run(over, rig)
        return
    with pytest.raises(KernelError) as caught:
        run(over, rig)
    first = over.__code__.co_firstlineno
    assert str(caught.value).splitlines()[0] == (
        f"tl.store at {__file__}:{first + 3} must be given a composite whose output is still in tensor 'c', and "
        f"something overwrote that of tl.composite at {__file__}:{first + 1}; store the handle before that."
    )
    with pytest.raises(KernelError) as caught:
        run(kernel)
    assert "must stay inside tensor 'bias'" in str(caught.value)


ASKED: dict[str, Any] = {
    "an element": lambda h: h[0, 0],
    "float()": float,
    "int()": int,
    "an index": lambda h: [1][h],
    "a condition": bool,
    "item()": lambda h: h.item(),
    "numpy()": lambda h: h.numpy(),
    "data": lambda h: h.data,
    "an array": np.asarray,
}


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("wait", [False, True])
def test_the_data_of_a_handle_is_refused(asked: str, wait: bool) -> None:
    """However it is read, waited for or not, the sentence says what to do."""

    def kernel(a: Any, b: Any, bias: Any, c: Any, tl: Any) -> None:
        handle = tl.composite("gemm", tl.ref(a, (6, 8)), tl.ref(b, (8, 5)), c, wait=wait)
        ASKED[asked](handle)

    with pytest.raises(PendingDataError) as caught:
        run(kernel)
    line = kernel.__code__.co_firstlineno + 1
    told = str(caught.value).splitlines()[0]
    asks = next(n for n in range(1, 1000) if told.startswith(f"{asked} at {__file__}:{n} must"))
    assert asks in (line + 1, ASKED[asked].__code__.co_firstlineno if hasattr(ASKED[asked], "__code__") else line + 1)
    assert told == (
        f"{asked} at {__file__}:{asks} must have data that is known while the kernel runs, and the result of "
        f"tl.composite made at {__file__}:{line} exists only after it; branch on loaded data or on integers computed "
        "from it, or store the result and read it in the next launch."
    )


@pytest.mark.parametrize(
    "compute",
    [
        lambda h: h + 1.0,
        lambda h: 1.0 + h,
        lambda h: 2 * h,
        lambda h: h / 2,
        lambda h: -h,
        lambda h: h @ h,
        lambda h: h < 1,
    ],
)
def test_arithmetic_on_a_handle_is_refused(compute: Any) -> None:
    """What it stands for is in HBM; the sentence says that it is to be loaded."""

    def kernel(a: Any, b: Any, bias: Any, c: Any, tl: Any) -> None:
        compute(tl.composite("gemm", tl.ref(a, (6, 8)), tl.ref(b, (8, 5)), c))

    with pytest.raises(ShapeError) as caught:
        run(kernel)
    line = kernel.__code__.co_firstlineno + 1
    assert str(caught.value).splitlines()[0] == (
        f"arithmetic at {__file__}:{compute.__code__.co_firstlineno} must be given tensors and numbers, not the result "
        f"of tl.composite made at {__file__}:{line}, which is in HBM; tl.load it first."
    )
