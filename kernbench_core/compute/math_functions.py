"""The math set: what each op computes, on arrays that are already in the dtype that arithmetic runs in.

Every function takes the op's params and its operands and returns an array that the caller rounds to the result's
dtype. Floats are f32 here, whatever they were (see `compute`).

Integer `floordiv` and `mod` are those of C and Triton: the quotient is cut towards zero and the remainder has the
sign of the dividend. Division of an integer by zero gives 0 and leaves the dividend as remainder (masked-out lanes
divide by zero all the time, and hardware does not stop for them). Integers wrap. Float `mod` is C's fmod. `shr` of a
signed integer keeps its sign. `gelu` is the tanh form, `gelu_erf` the exact one. `maximum`, `minimum`, `clamp`, `max`
and `min` pass NaN over where there is a number, as Triton's do; with `params["propagate_nan"]` the three first let it
through. `argmax` and `argmin` give the first of equals.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from kernbench_core.errors import ShapeError

Array = np.ndarray[Any, Any]
Params = Mapping[str, Any]
MathFunction = Callable[..., Array]

_GELU = math.sqrt(2.0 / math.pi)


def _erf(x: Array) -> Array:
    flat = map(math.erf, x.reshape(-1).tolist())
    return np.fromiter(flat, np.float64, x.size).reshape(x.shape).astype(np.float32)


def _sigmoid(x: Array) -> Array:
    return 1.0 / (1.0 + np.exp(-x))


def _gelu(x: Array) -> Array:
    return 0.5 * x * (1.0 + np.tanh(_GELU * (x + 0.044715 * x * x * x)))


def _gelu_erf(x: Array) -> Array:
    return 0.5 * x * (1.0 + _erf(x * math.sqrt(0.5)))


def _is_integer(x: Array) -> bool:
    return x.dtype.kind in "iub"


def _floordiv(a: Array, b: Array) -> Array:
    a, b = np.broadcast_arrays(a, b)
    quotient = np.floor_divide(a, b, where=b != 0, out=np.zeros(a.shape, np.result_type(a, b)))
    inexact = quotient * b != a
    return np.asarray(quotient + (inexact & ((a < 0) != (b < 0)) & (b != 0)).astype(quotient.dtype))


def _mod(a: Array, b: Array) -> Array:
    if not _is_integer(a):
        return np.asarray(np.fmod(a, b))
    return np.asarray(a - _floordiv(a, b) * b)


def _softmax(params: Params, x: Array) -> Array:
    axis = _axis(params, x)
    shifted = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return np.asarray(shifted / np.sum(shifted, axis=axis, keepdims=True))


def _axis(params: Params, x: Array) -> int | tuple[int, ...] | None:
    axis: int | tuple[int, ...] | None = params.get("axis")
    return axis


def _reduction(function: Callable[..., Any]) -> MathFunction:
    def reduce(params: Params, x: Array) -> Array:
        return np.asarray(function(x, axis=_axis(params, x), keepdims=bool(params.get("keepdims", False))))

    return reduce


def _cumulative(function: Callable[..., Any]) -> MathFunction:
    def scan(params: Params, x: Array) -> Array:
        axis = params.get("axis") or 0
        if params.get("reverse", False):
            return np.flip(function(np.flip(x, axis), axis=axis, dtype=x.dtype), axis)
        return np.asarray(function(x, axis=axis, dtype=x.dtype))

    return scan


def target_shape(params: Params) -> tuple[int, ...]:
    """Return the shape that a moving op is asked for: `shape`, or else `shape_out`."""
    return tuple(params["shape"] if params.get("shape") is not None else params["shape_out"])


def axes_of(params: Params, rank: int) -> tuple[int, ...]:
    """Return the permutation of `trans`: `axes`, by default the last two swapped."""
    axes = params.get("axes")
    if axes is not None:
        return tuple(axes)
    return (*range(rank - 2), rank - 1, rank - 2) if rank > 1 else tuple(range(rank))


def _full(params: Params, *operands: Array) -> Array:
    fill = operands[0] if operands else np.asarray(params.get("value", 0))
    return np.broadcast_to(fill, target_shape(params))


def _masked_store(params: Params, old: Array, new: Array, mask: Array) -> Array:
    return np.where(np.broadcast_to(mask, old.shape), np.broadcast_to(new, old.shape), old)


def _plain(function: Callable[..., Any]) -> MathFunction:
    def apply(params: Params, *operands: Array) -> Array:
        return np.asarray(function(*operands))

    return apply


def _extreme(number: Callable[..., Any], with_nan: Callable[..., Any]) -> MathFunction:
    def choose(params: Params, a: Array, b: Array) -> Array:
        return np.asarray((with_nan if params.get("propagate_nan") else number)(a, b))

    return choose


def _clamp(params: Params, x: Array, low: Array, high: Array) -> Array:
    above: Array = BINARY["maximum"](params, x, low)
    return BINARY["minimum"](params, above, high)


def _of_ufunc(ufunc: np.ufunc) -> Callable[..., Any]:
    return lambda x, axis, keepdims: ufunc.reduce(x, axis=axis, keepdims=keepdims)


def _interleave(params: Params, a: Array, b: Array) -> Array:
    return np.stack((a, b), axis=-1).reshape(*a.shape[:-1], -1)


def _in_range(what: str, index: Array, count: int) -> Array:
    if index.size and (index.min() < 0 or index.max() >= count):
        worst = int(index.min() if index.min() < 0 else index.max())
        raise ShapeError(f"{what} must be from 0 to {count - 1}, not {worst}; correct it, or mask it out.")
    return index


def _gather(params: Params, source: Array, index: Array) -> Array:
    axis: int = params["axis"]
    inside = _in_range("An index of gather", index, source.shape[axis])
    return np.take_along_axis(source, inside.astype(np.int64), axis)


def _histogram(params: Params, x: Array, mask: Array | None = None) -> Array:
    bins: int = params["num_bins"]
    kept = x.reshape(-1) if mask is None else x[mask.astype(bool)]
    return np.bincount(_in_range("A value of histogram", kept, bins), minlength=bins)


def _bitcast(params: Params, x: Array) -> Array:
    from kernbench_core.values.dtypes import numpy_dtype

    return np.ascontiguousarray(x).view(numpy_dtype(params["dtype"])).reshape(x.shape)


def _plain_all(functions: Mapping[str, Callable[..., Any]]) -> dict[str, MathFunction]:
    return {name: _plain(function) for name, function in functions.items()}


_ELEMENTARY: Final[Mapping[str, MathFunction]] = _plain_all(
    {
        "exp": np.exp,
        "exp2": np.exp2,
        "log": np.log,
        "log2": np.log2,
        "sqrt": np.sqrt,
        "rsqrt": lambda x: 1.0 / np.sqrt(x),
        "sin": np.sin,
        "cos": np.cos,
        "tanh": np.tanh,
        "erf": _erf,
        "sigmoid": _sigmoid,
    }
)
ACTIVATIONS: Final[Mapping[str, MathFunction]] = _plain_all(
    {"silu": lambda x: x * _sigmoid(x), "gelu": _gelu, "gelu_erf": _gelu_erf}
)
FLOAT_UNARY: Final[Mapping[str, MathFunction]] = {**_ELEMENTARY, **ACTIVATIONS}
UNARY: Final[Mapping[str, MathFunction]] = _plain_all(
    {
        "abs": np.abs,
        "neg": np.negative,
        "relu": lambda x: np.maximum(x, x.dtype.type(0)),
        "floor": lambda x: x if _is_integer(x) else np.floor(x),
        "ceil": lambda x: x if _is_integer(x) else np.ceil(x),
        "copy": lambda x: x,
    }
)
BINARY: Final[Mapping[str, MathFunction]] = {
    **_plain_all(
        {
            "add": np.add,
            "sub": np.subtract,
            "mul": np.multiply,
            "floordiv": _floordiv,
            "mod": _mod,
            "pow": np.power,
        }
    ),
    "minimum": _extreme(np.fmin, np.minimum),
    "maximum": _extreme(np.fmax, np.maximum),
}
DIVISION: Final[Mapping[str, MathFunction]] = {"div": _plain(np.true_divide)}
BITWISE: Final[Mapping[str, MathFunction]] = _plain_all(
    {
        "and": np.bitwise_and,
        "or": np.bitwise_or,
        "xor": np.bitwise_xor,
        "invert": np.invert,
        "shl": np.left_shift,
        "shr": np.right_shift,
    }
)
COMPARISONS: Final[Mapping[str, MathFunction]] = _plain_all(
    {
        "eq": np.equal,
        "ne": np.not_equal,
        "lt": np.less,
        "le": np.less_equal,
        "gt": np.greater,
        "ge": np.greater_equal,
    }
)
LOGICAL: Final[Mapping[str, MathFunction]] = _plain_all(
    {
        "logical_and": np.logical_and,
        "logical_or": np.logical_or,
        "logical_not": np.logical_not,
    }
)
TERNARY: Final[Mapping[str, MathFunction]] = {
    "fma": _plain(lambda a, b, c: a * b + c),
    "clamp": _clamp,
}
SELECT: Final[Mapping[str, MathFunction]] = {"where": _plain(lambda cond, a, b: np.where(cond.astype(bool), a, b))}
REDUCTIONS: Final[Mapping[str, MathFunction]] = {
    "sum": _reduction(lambda x, axis, keepdims: np.sum(x, axis=axis, keepdims=keepdims, dtype=x.dtype)),
    "prod": _reduction(lambda x, axis, keepdims: np.prod(x, axis=axis, keepdims=keepdims, dtype=x.dtype)),
    "max": _reduction(_of_ufunc(np.fmax)),
    "min": _reduction(_of_ufunc(np.fmin)),
    "xor_sum": _reduction(_of_ufunc(np.bitwise_xor)),
    "reduce_or": _reduction(_of_ufunc(np.bitwise_or)),
}
INDEX_REDUCTIONS: Final[Mapping[str, MathFunction]] = {"argmax": _reduction(np.argmax), "argmin": _reduction(np.argmin)}
BOOL_REDUCTIONS: Final[Mapping[str, MathFunction]] = {"any": _reduction(np.any), "all": _reduction(np.all)}
SCANS: Final[Mapping[str, MathFunction]] = {"cumsum": _cumulative(np.cumsum), "cumprod": _cumulative(np.cumprod)}
WIDENING: Final = ("sum", "prod", "cumsum")
"""Ops that add up narrow integers in 32 bits, so that they do not overflow."""
NORMALISING: Final[Mapping[str, MathFunction]] = {"softmax": _softmax}
MOVES: Final[Mapping[str, MathFunction]] = {
    "cast": lambda params, x: x,
    "reshape": lambda params, x: x.reshape(target_shape(params)),
    "trans": lambda params, x: x.transpose(axes_of(params, x.ndim)),
    "broadcast_to": lambda params, x: np.broadcast_to(x, target_shape(params)),
    "expand_dims": lambda params, x: np.expand_dims(x, params["axis"]),
    "cat": lambda params, *xs: np.concatenate(xs, axis=params.get("axis") or 0),
    "flip": lambda params, x: np.flip(x, params.get("axis")),
    "join": lambda params, a, b: np.stack((a, b), axis=-1),
    "split": lambda params, x: x[..., params["part"]],
    "interleave": _interleave,
    "bitcast": _bitcast,
    "full": _full,
    "zeros": _full,
    "masked_store": _masked_store,
}
GATHERS: Final[Mapping[str, MathFunction]] = {"gather": _gather, "histogram": _histogram}
FUNCTIONS: Final[Mapping[str, MathFunction]] = {
    **FLOAT_UNARY,
    **UNARY,
    **BINARY,
    **DIVISION,
    **BITWISE,
    **COMPARISONS,
    **LOGICAL,
    **TERNARY,
    **SELECT,
    **REDUCTIONS,
    **INDEX_REDUCTIONS,
    **BOOL_REDUCTIONS,
    **SCANS,
    **NORMALISING,
    **MOVES,
    **GATHERS,
}
ALIASES: Final[Mapping[str, str]] = {
    "truediv": "div",
    "fdiv": "div",
    "permute": "trans",
    "view": "reshape",
    "ravel": "reshape",
    "to": "cast",
    "not": "invert",
    "gelu_tanh": "gelu",
    "not_equal": "ne",
    "equal": "eq",
    "lshift": "shl",
    "rshift": "shr",
}
