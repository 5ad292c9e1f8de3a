"""Products that the matrix unit does not make alone: of f64, against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import kernbench_core as kb

# mypy: disable-error-code="import-not-found"


def _launched(body: Any, *arrays: Any) -> Any:
    """Run a kernel `body(tl, *pointers)` in one program; there are eleven, those of no array None. Give the run."""
    with kb.triton("tiny", verify_ops=True) as sim:
        import triton
        import triton.language as tl

        @triton.jit
        def kernel(a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, h: Any, i: Any, j: Any, k: Any) -> None:
            body(tl, a, b, c, d, e, f, g, h, i, j, k)

        kernel[(1,)](*arrays, *[None] * (11 - len(arrays)))
    return sim


def _refusal(body: Any, *arrays: Any) -> str:
    with pytest.raises(kb.KernbenchError) as error:
        _launched(body, *arrays)
    told, _, rest = str(error.value).splitlines()[0].partition(f" at {__file__}:")
    return told + rest.lstrip("0123456789")


@pytest.mark.parametrize("lead", [(), (3,)])
def test_f64_is_multiplied_by_the_vector_unit(lead: tuple[int, ...]) -> None:
    """As numpy has it to the last bits, stacks too; m * n * k multiply-adds, none of them by the matrix unit."""
    rng = np.random.default_rng(5)
    a, b, c = (rng.standard_normal((*lead, *shape)) for shape in ((4, 6), (6, 2), (4, 2)))
    out, onto = np.zeros_like(c), np.zeros_like(c)

    def body(tl: Any, *pointers: Any) -> None:
        x, y, z = (tl.load(pointer, shape=of.shape) for pointer, of in zip(pointers, (a, b, c), strict=False))
        tl.store(pointers[3], tl.dot(x, y))
        tl.store(pointers[4], tl.dot(x, y, acc=z))

    sim = _launched(body, a, b, c, out, onto)
    np.testing.assert_allclose(out, a @ b, rtol=0, atol=1e-14)
    np.testing.assert_allclose(onto, a @ b + c, rtol=0, atol=1e-14)
    log = list(sim.result._op_log)
    adds = [record for record in log if record.op_name in ("mul", "fma")]
    assert [record for record in log if record.op_kind == "gemm"] == []
    assert sum(np.prod(record.params["shape_out"]) for record in adds) == 2 * a.size * 2
    assert sim.verified


@pytest.mark.parametrize(
    ("a", "b", "c", "told"),
    [
        ("f64", "f32", None, "be given matrices (m, k) and (k, n) of one dtype, not f64 of shape (4, 4) and f32 of "
            "shape (4, 4); reshape or cast them."),
        ("f64", "f64", "f32", "be given matrices (m, k) and (k, n) of one dtype, and a sum of f64 with f64, not f64 of "
         "shape (4, 4) and f64 of shape (4, 4), added to f32 of shape (4, 4); reshape or cast them."),
    ],
)  # fmt: skip
def test_f64_meets_nothing_else(a: str, b: str, c: str | None, told: str) -> None:
    """Neither as an operand nor as a sum, as in Triton."""

    def body(tl: Any, *_: Any) -> None:
        x, y = tl.zeros((4, 4), a), tl.zeros((4, 4), b)
        tl.dot(x, y, acc=None if c is None else tl.zeros((4, 4), c))

    assert _refusal(body, np.zeros(1)).startswith(f"tl.dot must {told}")


def test_kernels_of_kernbench_refuse_f64() -> None:
    """By a sentence: whoever writes for the machine says by which unit."""

    def kernel(a: Any, tl: Any) -> None:
        x = tl.load(a, shape=(4, 4))
        tl.dot(x, x)

    with pytest.raises(
        kb.KernbenchError, match="floats of 32 bits at most, not f64, as the matrix units have no wider"
    ):
        kb.launch(kernel, np.zeros((4, 4)), topology="tiny")


def test_what_comes_of_a_product_is_of_tritons_dtype() -> None:
    """f32 of f32 and bf16 whatever is asked for; of f16 and 8-bit floats what is, and f32 of None."""
    seen = {}

    def body(tl: Any, *_: Any) -> None:
        for a, out, b in (
            ("f32", "f16", "f32"), ("bf16", "f16", "bf16"), ("f16", "f16", "f16"), ("f16", None, "f16"),
            ("f8e4m3", "f16", "f8e5m2"), ("int8", "f16", "int8"), ("f64", "f16", "f64"),
        ):  # fmt: skip
            seen[a, out] = str(tl.dot(tl.zeros((2, 4, 4), a), tl.zeros((2, 4, 4), b), out_dtype=out).dtype)
            assert seen[a, out] == str(tl.dot(tl.zeros((4, 4), a), tl.zeros((4, 4), b), out_dtype=out).dtype)

    _launched(body, np.zeros(1))
    wanted = ["fp32", "fp32", "fp16", "fp32", "fp16", "int32", "fp64"]
    assert [{"f32": "fp32", "f16": "fp16", "f64": "fp64"}.get(each, each) for each in seen.values()] == wanted
