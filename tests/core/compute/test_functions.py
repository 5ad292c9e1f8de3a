"""Core's ops against numpy in f64, Python's own arithmetic, and the rules that the docstrings give."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_core.compute import functions
from kernbench_core.compute.functions import CORE_FUNCTIONS, evaluate, function_of, result_shape, result_type
from kernbench_core.compute.ops import ALIASES, OPS, Form, MathOp
from kernbench_core.errors import ShapeError
from kernbench_core.values.dtypes import dtype_name, numpy_dtype

X = np.linspace(0.1, 3.0, 24).reshape(4, 6)
ORACLES = {
    "exp": math.exp,
    "exp2": lambda v: 2**v,
    "log": math.log,
    "log2": math.log2,
    "sqrt": math.sqrt,
    "rsqrt": lambda v: 1 / math.sqrt(v),
    "sin": math.sin,
    "cos": math.cos,
    "tanh": math.tanh,
    "erf": math.erf,
    "sigmoid": lambda v: 1 / (1 + math.exp(-v)),
    "silu": lambda v: v / (1 + math.exp(-v)),
    "gelu": lambda v: 0.5 * v * (1 + math.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v**3))),
    "gelu_erf": lambda v: 0.5 * v * (1 + math.erf(v / math.sqrt(2))),
    "floor": math.floor,
    "ceil": math.ceil,
    "abs": abs,
    "neg": lambda v: -v,
    "relu": lambda v: max(v, 0.0),
}


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("op", sorted(ORACLES))
def test_unary_math(op, dtype) -> None:
    """Each function equals Python's math on the rounded input, rounded once."""
    x = (X if op in ("log", "log2", "sqrt", "rsqrt") else X - 1.5).astype(numpy_dtype(dtype))
    got = evaluate(op, {}, [x])
    want = np.array([ORACLES[op](float(v)) for v in x.ravel()]).reshape(x.shape)
    tolerance = {"f32": 2e-6, "f16": 1e-3, "bf16": 8e-3}[dtype]
    np.testing.assert_allclose(got.astype(np.float64), want, rtol=tolerance, atol=tolerance)
    assert dtype_name(got.dtype) == dtype == result_type(op, [dtype])


ints = st.integers(-128, 127)


@given(st.lists(st.tuples(ints, ints), min_size=1))
def test_integer_division_is_that_of_c(pairs) -> None:
    """The quotient is cut towards zero, the remainder has the dividend's sign, division by zero gives 0."""
    a, b = (np.array(column, np.int32) for column in zip(*pairs, strict=True))
    quotient, remainder = evaluate("floordiv", {}, [a, b]), evaluate("mod", {}, [a, b])
    for x, y, q, r in zip(a.tolist(), b.tolist(), quotient.tolist(), remainder.tolist(), strict=True):
        assert (q, r) == ((0, x) if y == 0 else (math.trunc(x / y), math.fmod(x, y)))


@pytest.mark.parametrize(
    ("op", "oracle"),
    [
        ("and", lambda x, y: x & y),
        ("or", lambda x, y: x | y),
        ("xor", lambda x, y: x ^ y),
        ("add", lambda x, y: x + y),
        ("mul", lambda x, y: x * y),
        ("minimum", min),
        ("maximum", max),
        ("lt", lambda x, y: x < y),
        ("ne", lambda x, y: x != y),
    ],
)
def test_integer_binary(op, oracle) -> None:
    """Integer ops equal Python's, with broadcasting."""
    a, b = np.arange(-4, 4, dtype=np.int32)[:, None], np.array([3, -7, 2], np.int32)
    got = evaluate(op, {}, [a, b])
    assert got.tolist() == [[oracle(x, y) for y in b.tolist()] for x in a.ravel().tolist()]
    assert dtype_name(got.dtype) == result_type(op, ["int32", "int32"])


@pytest.mark.parametrize(
    ("op", "oracle"),
    [
        ("sum", np.sum),
        ("prod", np.prod),
        ("max", np.max),
        ("min", np.min),
        ("argmax", np.argmax),
        ("argmin", np.argmin),
        ("any", np.any),
        ("all", np.all),
    ],
)
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("dtype", ["f16", "int8", "f32"])
def test_reductions(op, oracle, axis, keepdims, dtype) -> None:
    """Reductions equal numpy's in f64; shapes and dtypes are those announced."""
    x = np.random.default_rng(2).integers(-3, 4, (4, 5)).astype(numpy_dtype(dtype))
    params = {"axis": axis, "keepdims": keepdims}
    got = evaluate(op, params, [x])
    want = oracle(x.astype(np.float64), axis=axis, keepdims=keepdims)
    np.testing.assert_allclose(got.astype(np.float64), want)
    assert got.shape == result_shape(op, [(4, 5)], params)
    assert dtype_name(got.dtype) == result_type(op, [dtype])


def test_moves() -> None:
    """Moving ops place elements as numpy does, and announce their shapes."""
    x = np.arange(24, dtype=np.float16).reshape(2, 3, 4)
    cases = [
        ("reshape", {"shape": (6, 4)}, x.reshape(6, 4)),
        ("trans", {}, x.swapaxes(1, 2)),
        ("trans", {"axes": (2, 0, 1)}, x.transpose(2, 0, 1)),
        ("expand_dims", {"axis": 1}, x[:, None]),
        ("expand_dims", {"axis": -1}, x[..., None]),
        ("broadcast_to", {"shape": (5, 2, 3, 4)}, np.broadcast_to(x, (5, 2, 3, 4))),
        ("flip", {"axis": 0}, x[::-1]),
        ("cumsum", {"axis": 1}, np.cumsum(x, 1)),
        ("cast", {"dtype": "int32"}, x.astype(np.int32)),
    ]
    for op, params, want in cases:
        got = evaluate(op, params, [x])
        np.testing.assert_array_equal(got, want)
        assert result_shape(op, [x.shape], params) == want.shape
    np.testing.assert_array_equal(evaluate("cat", {"axis": 1}, [x, x]), np.concatenate([x, x], 1))
    assert result_shape("cat", [x.shape, x.shape], {"axis": -1}) == (2, 3, 8)
    assert evaluate("zeros", {"shape": (2,), "dtype": "bf16"}, []).tolist() == [0, 0]
    assert evaluate("full", {"shape": (2,), "dtype": "int8"}, [np.array(7)]).tolist() == [7, 7]


def test_selection_and_fused_ops() -> None:
    """where, clamp, fma and softmax, on mixed operands."""
    x = np.array([-2, 0.5, 3], np.float16)
    assert evaluate("where", {}, [x > 0, x, np.array(0, np.float16)]).tolist() == [0, 0.5, 3]
    assert evaluate("clamp", {}, [x, np.array(-1, np.float32), np.array(1, np.float32)]).tolist() == [-1, 0.5, 1]
    assert evaluate("fma", {}, [x, x, x]).tolist() == [2, 0.75, 12]
    soft = evaluate("softmax", {"axis": 0}, [np.array([1000, 1000], np.float32)])
    assert soft.tolist() == [0.5, 0.5]
    assert evaluate("div", {}, [np.array([1], np.int32), np.array([2], np.int32)]).tolist() == [0.5]


@pytest.mark.parametrize(
    ("op", "given", "result"),
    [
        ("div", ["int32", "int32"], "f32"),
        ("div", ["f16", "f16"], "f32"),
        ("add", ["f16", float], "f16"),
        ("add", ["bool", "bool"], "bool"),
        ("and", ["bool", "bool"], "bool"),
        ("where", ["bool", "f16", "f32"], "f32"),
        ("sum", ["int8"], "int32"),
        ("argmax", ["f16"], "int32"),
        ("eq", ["f16", int], "bool"),
        ("cast", ["f32"], "bf16"),
        ("gemm_f16", ["f16", "f16"], "f32"),
        ("gemm", ["int8", "int8"], "int32"),
        ("truediv", ["int8", "int8"], "f32"),
    ],
)
def test_result_types(op, given, result) -> None:
    """Dtypes are announced as Triton's rules give them."""
    assert result_type(op, given, {"dtype": "bf16"}) == result


@pytest.mark.parametrize(
    ("op", "shapes", "params", "sentence"),
    [
        (
            "add",
            [(3,), (4,)],
            {},
            "The operands of add must broadcast to one shape, not (3,) and (4,); reshape one of them.",
        ),
        (
            "gemm",
            [(3, 4), (5, 6)],
            {},
            "The operands of dot must be (m, k) and (k, n), not (3, 4) and (5, 6); k must agree.",
        ),
        (
            "gemm",
            [(3,), (5, 6)],
            {},
            "The operands of dot must have two axes each, not shapes (3,) and (5, 6); reshape them.",
        ),
        ("sum", [(3,)], {"axis": 1}, "The axis of sum must be one of the 1 axes of (3,), not 1."),
        ("reshape", [(3,)], {"shape": (2, 2)}, "A reshape of (3,) must keep its 3 elements, not ask for (2, 2)."),
        ("broadcast_to", [(3,)], {"shape": (3, 1)}, "A broadcast must go to a shape that (3,) fits into, not (3, 1)."),
        (
            "cat",
            [(3, 2), (3, 3)],
            {"axis": 0},
            "The operands of cat must agree in every axis but 0, not have shapes (3, 2) and (3, 3).",
        ),
        ("trans", [(3, 2)], {"axes": (0, 0)}, "The axes of trans must be a permutation of [0, 1], not (0, 0)."),
        ("max", [(0,)], {}, "An axis that max reduces must not be empty, not of shape (0,); skip the empty tensor."),
    ],
)
def test_misfits_are_sentences(op, shapes, params, sentence) -> None:
    """Operands that do not fit are refused before anything is computed."""
    with pytest.raises(ShapeError) as caught:
        result_shape(op, shapes, params)
    assert str(caught.value) == sentence


def test_wrong_kinds_are_sentences() -> None:
    """An op that a dtype does not have says what it needs."""
    with pytest.raises(ShapeError) as caught:
        result_type("exp", ["int32"])
    assert str(caught.value) == "exp must have a float operand, not int32; cast it first."
    with pytest.raises(ShapeError) as caught:
        result_type("and", ["f32", "f32"])
    wanted = "and must have integer or bool operands, not invalid operands of type f32; cast it first."
    assert str(caught.value) == wanted
    with pytest.raises(ShapeError, match=r"A math op must be one of abs, acos, .*, not 'frobnicate'"):
        result_type("frobnicate", ["f32"])


def test_every_op_has_a_function() -> None:
    """Every op, alias and GEMM is named as "module:attr"; plug-ins come first."""
    assert set(OPS) | set(ALIASES) < set(CORE_FUNCTIONS)
    assert function_of("gemm_bf16") == "kernbench_core.compute.functions:gemm"
    assert function_of("exp", {"exp": "acme:exp"}) == "acme:exp"
    assert function_of("nothing") is None


def taken(op: MathOp) -> list[int]:
    """Return with how many operands the function of an op gives a result."""
    found = []
    for count in range(7):
        try:
            with np.errstate(all="ignore"):
                op.function({"axis": 0, "num_bins": 2, "part": 0}, *[np.ones(3, np.int32)] * count)
        except (TypeError, ValueError):
            continue
        found.append(count)
    return found


@pytest.mark.parametrize("form", [form for form in Form if form is not Form.MOVE])
def test_an_op_takes_the_number_of_operands_that_its_record_says(form: Form) -> None:
    """Not one fewer (one more is what numpy's functions write to), and several numbers where it says 0."""
    found = {op.name: taken(op) for op in OPS.values() if op.form is form}
    assert found
    assert {name: OPS[name].arity for name in found} == {
        name: 0 if name == "histogram" else counts[0] for name, counts in found.items()
    }
    assert found.get("histogram", [1, 2]) == [1, 2]


def test_products_of_infinities_are_results_without_a_warning() -> None:
    a = np.array([[np.inf, np.inf]], np.float32)
    b = np.array([[1.0, 0.0], [-1.0, 1.0]], np.float32)
    third = np.array([[1.0, -np.inf]], np.float32)
    made = functions.gemm({"dtype_out": "f32", "accumulate": True}, [a, b, third])
    tiled = {"dtype_out": "f32", "tile_k": 1, "epilogue": [("relu", "k_tile", ())]}
    assert np.isnan(made).tolist() == [[True, True]]
    assert np.isnan(functions.composite_gemm(tiled, [a, b])).tolist() == [[False, True]]
