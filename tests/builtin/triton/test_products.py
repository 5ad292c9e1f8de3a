"""Products that the matrix unit does not make alone: of f64 and of scaled numbers, against numpy and definitions."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import kernbench as kb

# mypy: disable-error-code="import-not-found"

_OF_FOUR_BITS = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
_OF_BYTES = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}


def _of_bytes(e_bits: int, m_bits: int) -> Any:
    """Give the number of each byte, by the definition: sign, exponent, mantissa; NaN and infinities as finite ones."""
    found = []
    for byte in range(256):
        exponent, mantissa = byte >> m_bits & (1 << e_bits) - 1, byte & (1 << m_bits) - 1
        bias = (1 << e_bits - 1) - 1
        size = (mantissa + (exponent > 0 and 1 << m_bits)) * 2.0 ** (max(exponent, 1) - bias - m_bits)
        found.append(-size if byte >> 7 else size)
    return np.array(found)


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
    log = list(sim.result.op_log)
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


def test_stacks_of_integers_are_added_to_int32_alone() -> None:
    """As matrices are: a sum in uint64 would come by way of floats."""

    def body(tl: Any, *_: Any) -> None:
        x = tl.zeros((2, 4, 4), tl.int8)
        tl.dot(x, x, acc=tl.zeros((2, 4, 4), tl.uint64))

    assert "added to uint64 of shape (2, 4, 4); reshape or cast them." in _refusal(body, np.zeros(1))


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


@pytest.mark.parametrize("beside", ["bf16", "fp16"])
def test_elements_of_every_format_are_decoded(beside: str) -> None:
    """Each code of each format comes out of a product with ones on the diagonal, bit for bit, packed either way."""
    codes = np.arange(256, dtype=np.uint8).reshape(8, 32)
    finite = {"e4m3": codes & 0x7F < 0x7F, "e5m2": codes & 0x7F < 0x7C}
    wide, narrow = (np.eye(extent, dtype=ml_dtypes.bfloat16 if beside == "bf16" else np.float16) for extent in (64, 32))
    outs = [np.zeros((8, 64), np.float32), np.zeros((64, 8), np.float32)]
    outs += [np.zeros((16, 32), np.float32), np.zeros((32, 16), np.float32)]
    eights = [(np.zeros((8, 32), np.float32), np.where(finite[name], codes, 0)) for name in _OF_BYTES]

    def body(tl: Any, codes_: Any, wide_: Any, narrow_: Any, *others: Any) -> None:
        packed, one, less = (
            tl.load(codes_, shape=(8, 32)),
            tl.load(wide_, shape=(64, 64)),
            tl.load(narrow_, shape=(32, 32)),
        )
        turned = tl.trans(packed)
        tl.store(others[0], tl.dot_scaled(packed, None, "e2m1", one, None, beside))
        tl.store(others[1], tl.dot_scaled(one, None, beside, turned, None, "e2m1"))
        tl.store(others[2], tl.dot_scaled(packed, None, "e2m1", less, None, beside, lhs_k_pack=False))
        tl.store(others[3], tl.dot_scaled(less, None, beside, turned, None, "e2m1", rhs_k_pack=False))
        for number, name in enumerate(_OF_BYTES):
            given = tl.load(others[4 + 2 * number + 1], shape=(8, 32))
            tl.store(others[4 + 2 * number], tl.dot_scaled(given, None, name, less, None, beside))

    _launched(body, codes, wide, narrow, *outs, *[each for pair in eights for each in pair])
    pairs = np.stack([_OF_FOUR_BITS[codes & 15], _OF_FOUR_BITS[codes >> 4]])
    assert np.array_equal(outs[0], pairs.transpose(1, 2, 0).reshape(8, 64))
    assert np.array_equal(outs[1], pairs.transpose(2, 0, 1).reshape(64, 8))
    assert np.array_equal(outs[2], pairs.transpose(1, 0, 2).reshape(16, 32))
    assert np.array_equal(outs[3], pairs.transpose(2, 1, 0).reshape(32, 16))
    for (out, given), (e_bits, m_bits) in zip(eights, ((4, 3), (5, 2)), strict=True):
        assert np.array_equal(out, _of_bytes(e_bits, m_bits)[given])


@pytest.mark.parametrize(("beside", "fast"), [("bf16", False), ("fp16", False), ("bf16", True)])
def test_each_scale_is_a_power_of_two(beside: str, fast: bool) -> None:
    """Of all 256: 0 is 0, 255 is NaN, or with `fast_math` infinity; f16 holds less of them."""
    scales = np.arange(256, dtype=np.uint8).reshape(256, 1)
    ones = np.ones((32, 8), ml_dtypes.bfloat16 if beside == "bf16" else np.float16)
    out, other = np.zeros((256, 8), np.float32), np.zeros((8, 256), np.float32)

    def body(tl: Any, scales_: Any, ones_: Any, out_: Any, other_: Any, *_: Any) -> None:
        scale, one = tl.load(scales_, shape=(256, 1)), tl.load(ones_, shape=(32, 8))
        half = tl.full((256, 32), 0x30, tl.uint8)
        tl.store(out_, tl.dot_scaled(half, scale, "e4m3", one, None, beside, fast_math=fast))
        found = tl.dot_scaled(tl.trans(one), None, beside, tl.trans(half), scale, "e4m3", fast_math=fast)
        tl.store(other_, found)

    _launched(body, scales, ones, out, other)
    factor = np.array([0.0] + [2.0 ** (code - 127) for code in range(1, 255)] + [np.inf if fast else np.nan])
    with np.errstate(over="ignore"):
        halves = factor.astype(np.float16) * np.float16(0.5) if beside == "fp16" else factor * 0.5
        wanted = (32 * halves.astype(float)).astype(np.float32)
    assert np.array_equal(out, np.repeat(wanted[:, None], 8, 1), equal_nan=True)
    assert np.array_equal(other, out.T, equal_nan=True)


def test_stacks_of_scaled_matrices_are_added_to_a_sum() -> None:
    """With a scale for 32 elements of either side, in k of 64; a command of the matrix unit for each matrix."""
    rng = np.random.default_rng(6)
    a, b = rng.integers(0x28, 0x48, (2, 4, 64), dtype=np.uint8), rng.integers(0, 256, (2, 32, 8), dtype=np.uint8)
    left, right = (rng.integers(124, 131, (2, rows, 2), dtype=np.uint8) for rows in (4, 8))
    sums = rng.integers(-9, 9, (2, 4, 8)).astype(np.float32)
    arrays: tuple[Any, ...] = (a, b, left, right, sums)
    out = np.zeros_like(sums)

    def body(tl: Any, *pointers: Any) -> None:
        x, y, p, q, z = (tl.load(pointer, shape=of.shape) for pointer, of in zip(pointers, arrays, strict=False))
        tl.store(pointers[5], tl.dot_scaled(x, p, "e4m3", y, q, "e2m1", acc=z))

    sim = _launched(body, *arrays, out)
    pairs = np.stack([_OF_FOUR_BITS[b & 15], _OF_FOUR_BITS[b >> 4]], 2).reshape(2, 64, 8)
    factors = [np.repeat(2.0 ** (scale.astype(int) - 127), 32, 2) for scale in (left, right)]
    wanted = (_of_bytes(4, 3)[a] * factors[0]) @ (pairs * factors[1].transpose(0, 2, 1)) + sums
    np.testing.assert_allclose(out, wanted, rtol=1e-6, atol=1e-4)
    assert [record.params["dtype_in"] for record in sim.result.op_log if record.op_kind == "gemm"] == ["bf16"] * 2
    assert sim.verified


_E4M3, _E2M1 = ("f8e4m3", (4, 32), "e4m3"), ("uint8", (32, 16), "e2m1")


@pytest.mark.parametrize(
    ("lhs", "rhs", "scale", "packs", "told"),
    [
        (("uint8", (4, 32), "e3m2"), _E2M1, None, True,
         "lhs_format as one of e2m1, e4m3, e5m2, bf16, fp16, not e3m2; cast the operand."),
        (("f32", (4, 32), "e4m3"), _E2M1, None, True,
         "lhs as a matrix of e4m3 or a stack of them, in f8e4m3, not f32 of shape (4, 32); load it so."),
        (_E4M3, ("int8", (32, 16), "e2m1"), None, True,
         "rhs as a matrix of e2m1 or a stack of them, in uint8, not int8 of shape (32, 16); load it so."),
        (_E4M3, _E2M1, ("uint8", (4, 2)), False,
         "a scale of uint8 for each 32 elements of lhs along k, of shape (4, 1), not uint8 of shape (4, 2); "
         "correct it."),
        (_E4M3, _E2M1, ("int32", (4, 1)), False,
         "a scale of uint8 for each 32 elements of lhs along k, of shape (4, 1), not int32 of shape (4, 1); "
         "correct it."),
        (("f8e4m3", (4, 40), "e4m3"), _E2M1, ("uint8", (4, 1)), True,
         "a multiple of 32 along k of lhs, which has a scale, not 40; fill up with 0."),
        (("f16", (4, 32), "fp16"), ("bf16", (32, 4), "bf16"), None, True,
         "fp16 and bf16 not of each other, but of narrower formats and themselves, not fp16 and bf16; cast one."),
        (_E4M3, _E4M3, None, False, "rhs_k_pack=False with pairs of e2m1 only, not e4m3; leave it out."),
    ],
)  # fmt: skip
def test_scaled_products_that_do_not_fit_are_a_sentence(lhs: Any, rhs: Any, scale: Any, packs: bool, told: str) -> None:
    """Formats, dtypes, shapes of scales, and which formats lie in pairs."""

    def body(tl: Any, *_: Any) -> None:
        (a, a_shape, a_format), (b, b_shape, b_format) = lhs, rhs
        factor = None if scale is None else tl.zeros(scale[1], scale[0])
        tl.dot_scaled(
            tl.zeros(a_shape, a), factor, a_format, tl.zeros(b_shape, b), None, b_format, rhs_k_pack=packs
        )  # fmt: skip

    assert _refusal(body, np.zeros(1)) == f"tl.dot_scaled must be given {told}"
