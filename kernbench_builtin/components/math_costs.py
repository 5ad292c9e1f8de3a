"""What each math op costs: cycles that a lane takes for one element. The defaults of pe_math's table.

Simple ops take one cycle. What a unit for special functions computes takes four: the throughput tables of the CUDA C
programming guide give compute capability 5.x 128 adds and 32 reciprocals, roots, exponentials, logarithms, sines or
cosines per cycle. Everything else is the sum of such steps, written beside it [A]; table look-ups and argument
reductions are not counted [unverified].
"""

from __future__ import annotations

from typing import Final

_SPECIAL = 4.0
_EXP = _SPECIAL + 1  # exp2 of a product
_SIGMOID = 1 + _EXP + 1 + _SPECIAL  # negate, exp, add, reciprocal
_TANH = _SIGMOID + 2  # 2 sigmoid(2x) - 1: a product before, a fused multiply-add after
_ERF = 5 + 1 + _EXP + _SPECIAL + 3  # Abramowitz and Stegun 7.1.26: five fused steps, square, exp, reciprocal, three
_DIVISION = _SPECIAL + 3  # reciprocal, product, and one refinement: residual and correction

SIMPLE: Final = (
    "add", "sub", "mul", "minimum", "maximum", "fma", "abs", "neg", "relu", "floor", "ceil", "copy", "cast",
    "and", "or", "xor", "invert", "shl", "shr", "eq", "ne", "lt", "le", "gt", "ge",
    "logical_and", "logical_or", "logical_not", "where", "masked_store",
    "sum", "prod", "max", "min", "any", "all", "cumsum", "cumprod",
    "reshape", "broadcast_to", "expand_dims", "cat", "flip", "join", "split", "interleave", "bitcast", "full", "zeros",
    "xor_sum", "reduce_or", "bias", "scale", "dequant",
)  # fmt: skip

COSTS: Final[dict[str, float]] = {
    **dict.fromkeys(SIMPLE, 1.0),
    **dict.fromkeys(("exp2", "log2", "sin", "cos", "rsqrt"), _SPECIAL),
    "clamp": 2.0,  # minimum, maximum
    "argmax": 2.0,  # compare, and select the index
    "argmin": 2.0,
    "trans": 2.0,  # written in another order than read [unverified]
    "gather": _SPECIAL,  # each lane reads an address of its own [unverified]
    "histogram": _SPECIAL,  # each lane reads, counts and writes at an address of its own [unverified]
    "exp": _EXP,
    "log": _SPECIAL + 1,  # log2, and a product
    "sqrt": _SPECIAL + 1,  # reciprocal root, and a product
    "div": _DIVISION,
    "floordiv": _DIVISION + 1,
    "mod": _DIVISION + 2,  # quotient, cut, and one fused step
    "pow": 2 * _SPECIAL + 1,  # exp2(y log2 x)
    "sigmoid": _SIGMOID,
    "tanh": _TANH,
    "erf": _ERF,
    "silu": _SIGMOID + 1,
    "gelu": _TANH + 5,  # the tanh form: three steps inside it, two outside
    "gelu_erf": _ERF + 3,  # one step inside, two outside
    "softmax": 2 + 1 + _EXP + _DIVISION,  # max and sum, subtract, exp, divide
    "other": 1.0,  # ops of plug-ins
}
