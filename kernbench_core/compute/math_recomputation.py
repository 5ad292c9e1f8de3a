"""A second way to math ops: plain numpy in f64 (integers: int64), apart from `compute_math`; see `recompute`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, Final

import numpy as np
from attrs import frozen

from kernbench_core.compute import math_functions
from kernbench_core.compute.result_types import operand_type
from kernbench_core.values import dtypes
from kernbench_core.values.value import Array

Params = Mapping[str, Any]

#: Half a unit in the last place of f32: what one operation there may be wrong by, relatively.
EPS: Final = 2.0**-24
#: Errors of n additions hardly ever pass this many times the square root of n.
_SIGMAS: Final = 8.0


@frozen(eq=False)
class Anew:
    """A result before it is rounded: f64, or integers; floats may be wrong by `slack`. `exact`: it was only moved."""

    value: Array
    slack: Array | float = 0.0
    exact: bool = False

    @property
    def whole(self) -> bool:
        """Whether the elements are integers."""
        return self.value.dtype.kind in "iub"


def comparable(x: Array) -> Array:
    return x if x.dtype.kind in "iub" else x.astype(np.float64)


def rounded(value: Array, dtype: str) -> Array:
    """Round to a dtype: floats to the nearest, integers by cutting and wrapping; f8 stops at its greatest number."""
    target, greatest = dtypes.numpy_dtype(dtype), dtypes.info(dtype).greatest
    with np.errstate(all="ignore"):
        if greatest is not None:
            value = np.clip(value.astype(np.float64), -greatest, greatest)
        elif target.kind in "iu" and value.dtype.kind not in "iub":
            value = _wrapped_in_64_bits(value.astype(np.float64))
        return value.astype(target)


def _wrapped_in_64_bits(value: Array) -> Array:
    """Cut floats to int64; those that it does not hold by Python's integers, one by one."""
    fits = np.abs(value) < 2.0**63
    whole = np.where(fits, np.trunc(value), 0.0).astype(np.int64)
    for index in zip(*np.nonzero(np.atleast_1d(np.isfinite(value) & ~fits)), strict=True):
        at = index if value.ndim else ()
        whole[at] = (int(value[at]) + (1 << 63)) % (1 << 64) - (1 << 63)
    return whole


def error_of_sum(count: int) -> float:
    """Return by how much of the sum of its magnitudes a sum in f32 may be wrong."""
    return EPS * (2.0 + min(count, _SIGMAS * math.sqrt(count)))


def math_anew(op: str, params: Params, operands: Sequence[Anew]) -> Anew:
    """Compute a math op; where an operand has slack, the result has what comes of it."""
    values = [x.value for x in operands]
    if op in _MOVES:
        return Anew(np.asarray(_MOVES[op](params, *values)), exact=True)
    if op == "where":
        return Anew(np.where(values[0].astype(bool), *_meet(op, values[1:])), exact=True)
    met = _meet(op, values)
    if met[0].dtype.kind in "iub" and op not in _OF_FLOATS:
        found = np.asarray(_INTEGERS[op](params, *(x.astype(np.int64) for x in met)))
        return Anew(found & 1 if params.get("dtype") == "bool" and found.dtype.kind == "i" else found)
    met = [x.astype(np.float64) for x in met]
    if op in _SUMS:
        return _SUMS[op](params, met[0])
    function = _FLOATS[op]
    found = np.asarray(function(params, *met))
    if found.dtype.kind != "f":
        return Anew(found)
    slack = 4 * EPS * np.abs(found)
    if op == "fma":
        slack = slack + EPS * np.abs(met[0] * met[1])
    for number, operand in enumerate(operands):
        if np.any(operand.slack):
            ends = (
                np.abs(function(params, *met[:number], met[number] + way * operand.slack, *met[number + 1 :]) - found)
                for way in (-1.0, 1.0)
            )
            slack = slack + np.nan_to_num(np.fmax(*ends))
    return Anew(found, np.nan_to_num(slack))


def _meet(op: str, values: Sequence[Array]) -> list[Array]:
    """Bring operands to the dtype that they meet in, floats of it in f64; what an epilogue has in f64 stays there."""
    if any(x.dtype == np.float64 for x in values):
        return [x.astype(np.float64) for x in values]
    if len({x.dtype for x in values}) > 1:
        common = operand_type(op, [dtypes.dtype_name(x.dtype) for x in values])
        if op == "shr" and values[0].dtype.kind == "i":
            common = common.removeprefix("u")
        values = [rounded(x, common) for x in values]
    return [comparable(x) for x in values]


def _axis(params: Params, x: Array) -> tuple[Array, int]:
    """Return an array and the axis that it is reduced along; without one, or with several, they are made one."""
    axis = params.get("axis")
    axes = range(x.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
    gone = sorted(a % x.ndim for a in axes)
    kept = [a for a in range(x.ndim) if a not in gone]
    return x.transpose(*kept, *gone).reshape(*(x.shape[a] for a in kept), -1), len(kept)


def _reduced(params: Params, x: Array, function: Callable[[Array, int], Array]) -> Array:
    lined, axis = _axis(params, x)
    found = np.asarray(function(lined, axis))
    if params.get("keepdims"):
        axes = params.get("axis")
        return np.expand_dims(found, tuple(range(x.ndim)) if axes is None else axes)
    return found


def _reduction(function: Callable[[Array, int], Array]) -> Callable[..., Array]:
    return lambda params, x: _reduced(params, x, function)


def _scan(function: Callable[[Array, int], Array]) -> Callable[..., Array]:
    def scan(params: Params, x: Array) -> Array:
        axis = params.get("axis") or 0
        turn = slice(None, None, -1 if params.get("reverse") else 1)
        at = (*[slice(None)] * (axis % max(1, x.ndim)), turn)
        found: Array = function(x[at], axis)[at]
        return found

    return scan


def _float_sum(params: Params, x: Array) -> Anew:
    count = x.size // max(1, math.prod(_reduced(params, x, lambda y, a: y.sum(a)).shape))
    total = _reduced(params, x, lambda y, a: y.sum(a))
    return Anew(total, error_of_sum(count) * _reduced(params, np.abs(x), lambda y, a: y.sum(a)))


def _float_product(params: Params, x: Array) -> Anew:
    """Multiply; products that leave the range of f32 on the way may be anything."""
    sizes = _reduced(params, np.abs(x), lambda y, a: np.abs(np.log2(np.where(y > 0, y, 1.0))).sum(a))
    found = _reduced(params, x, lambda y, a: y.prod(a))
    return Anew(found, np.where(sizes > _MOST_BITS, np.inf, EPS * (x.size + 4) * np.abs(found)))


def _float_cumsum(params: Params, x: Array) -> Anew:
    count = x.shape[params.get("axis") or 0]
    return Anew(_CUMSUM(params, x), error_of_sum(count) * _CUMSUM(params, np.abs(x)))


def _float_cumprod(params: Params, x: Array) -> Anew:
    sizes = _CUMSUM(params, np.abs(np.log2(np.where(x != 0, np.abs(x), 1.0))))
    found = _CUMPROD(params, x)
    return Anew(found, np.where(sizes > _MOST_BITS, np.inf, EPS * (x.size + 4) * np.abs(found)))


_MOST_BITS: Final = 120.0
_CUMSUM: Final = _scan(lambda x, axis: x.cumsum(axis))
_CUMPROD: Final = _scan(lambda x, axis: x.cumprod(axis))
_SUMS: Final[Mapping[str, Callable[[Params, Array], Anew]]] = {
    "sum": _float_sum, "prod": _float_product, "cumsum": _float_cumsum, "cumprod": _float_cumprod,
}  # fmt: skip


def _extreme(pick: Callable[[Array, Array], Array]) -> Callable[..., Array]:
    """Choose between two, passing NaN over unless it is asked for."""

    def choose(params: Params, a: Array, b: Array) -> Array:
        found = np.where(b != b, a, np.where(a != a, b, np.where(pick(a, b), a, b)))
        return np.where((a != a) | (b != b), np.nan, found) if params.get("propagate_nan") else found

    return choose


def _clamp(params: Params, x: Array, low: Array, high: Array) -> Array:
    return _MIN(params, _MAX(params, x, low), high)


def _quotient(params: Params, a: Array, b: Array) -> Array:
    """Divide integers towards zero; by zero gives zero."""
    divisor = np.where(b == 0, 1, b)
    return np.where(b == 0, 0, (a - np.fmod(a, divisor)) // divisor)


def _softmax(params: Params, x: Array) -> Array:
    axis = params.get("axis")
    power = np.exp(x - x.max(axis=axis, keepdims=True))
    return np.asarray(power / power.sum(axis=axis, keepdims=True))


_MAX: Final = _extreme(np.greater_equal)
_MIN: Final = _extreme(np.less_equal)
_ERF: Final = np.vectorize(math.erf, otypes=[np.float64])
_OF_FLOATS: Final = frozenset((*math_functions.FLOAT_UNARY, *math_functions.DIVISION, "softmax"))


def _of(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda params, *xs: function(*xs)


_BOTH: Final[Mapping[str, Callable[..., Any]]] = {
    "minimum": _MIN,
    "maximum": _MAX,
    "clamp": _clamp,
    "add": _of(lambda a, b: a + b),
    "sub": _of(lambda a, b: a - b),
    "mul": _of(lambda a, b: a * b),
    "pow": _of(lambda a, b: a**b),
    "fma": _of(lambda a, b, c: a * b + c),
    "abs": _of(np.abs),
    "neg": _of(lambda x: 0 - x),
    "relu": _of(lambda x: np.where(x < 0, 0, x)),
    "copy": _of(lambda x: x),
    "eq": _of(lambda a, b: a == b),
    "ne": _of(lambda a, b: a != b),
    "lt": _of(lambda a, b: a < b),
    "le": _of(lambda a, b: a <= b),
    "gt": _of(lambda a, b: a > b),
    "ge": _of(lambda a, b: a >= b),
    "argmax": _reduction(lambda x, axis: x.argmax(axis)),
    "argmin": _reduction(lambda x, axis: x.argmin(axis)),
}
_INTEGERS: Final[Mapping[str, Callable[..., Any]]] = {
    **_BOTH,
    "floor": _of(lambda x: x),
    "ceil": _of(lambda x: x),
    "floordiv": _quotient,
    "mod": lambda params, a, b: a - _quotient(params, a, b) * b,
    "and": _of(lambda a, b: a & b),
    "or": _of(lambda a, b: a | b),
    "xor": _of(lambda a, b: a ^ b),
    "invert": _of(lambda x: -1 - x),
    "shl": _of(lambda a, b: np.where((b >= 0) & (b < 64), a * 2 ** np.clip(b, 0, 62) * np.where(b == 63, 2, 1), 0)),
    "shr": _of(lambda a, b: np.where((b >= 0) & (b < 63), a // 2 ** np.clip(b, 0, 62), np.where(a < 0, -1, 0))),
    "sum": _reduction(lambda x, axis: x.sum(axis)),
    "prod": _reduction(lambda x, axis: x.prod(axis)),
    "max": _reduction(lambda x, axis: x.max(axis)),
    "min": _reduction(lambda x, axis: x.min(axis)),
    "xor_sum": _reduction(lambda x, axis: reduce(lambda a, b: a ^ b, np.moveaxis(x, axis, 0))),
    "reduce_or": _reduction(lambda x, axis: reduce(lambda a, b: a | b, np.moveaxis(x, axis, 0))),
    "cumsum": _CUMSUM,
    "cumprod": _CUMPROD,
}
_FLOATS: Final[Mapping[str, Callable[..., Any]]] = {
    **_BOTH,
    "floor": _of(np.floor),
    "ceil": _of(np.ceil),
    "floordiv": _of(lambda a, b: np.floor((a / b).astype(np.float32)).astype(np.float64)),
    "mod": _of(np.fmod),
    "div": _of(lambda a, b: a / b),
    "exp": _of(np.exp),
    "exp2": _of(lambda x: 2.0**x),
    "log": _of(np.log),
    "log2": _of(np.log2),
    "sqrt": _of(np.sqrt),
    "rsqrt": _of(lambda x: x**-0.5),
    "sin": _of(np.sin),
    "cos": _of(np.cos),
    "tanh": _of(np.tanh),
    "erf": _of(_ERF),
    "sigmoid": _of(lambda x: 0.5 * (1.0 + np.tanh(0.5 * x))),
    "silu": _of(lambda x: x * 0.5 * (1.0 + np.tanh(0.5 * x))),
    "gelu": _of(lambda x: x * 0.5 * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3)))),
    "gelu_erf": _of(lambda x: x * 0.5 * (1.0 + _ERF(x / math.sqrt(2.0)))),
    "max": _reduction(lambda x, axis: _past_nan(x.max(axis), np.where(x != x, -np.inf, x).max(axis), x, axis)),
    "min": _reduction(lambda x, axis: _past_nan(x.min(axis), np.where(x != x, np.inf, x).min(axis), x, axis)),
    "softmax": _softmax,
}


def _past_nan(with_nan: Array, without: Array, x: Array, axis: int) -> Array:
    return np.where((x != x).all(axis), with_nan, without)


# What only moves elements ------------------------------------------------------------------------------


def _target(params: Params) -> tuple[int, ...]:
    return tuple(params["shape"] if params.get("shape") is not None else params["shape_out"])


def _turned(params: Params, x: Array) -> Array:
    axes = params.get("axes")
    return x.transpose(axes) if axes is not None else x.swapaxes(-1, -2) if x.ndim > 1 else x


def _interleaved(params: Params, a: Array, b: Array) -> Array:
    out = np.empty((*a.shape[:-1], 2 * a.shape[-1]), a.dtype)
    out[..., 0::2], out[..., 1::2] = a, b
    return out


def _joined(params: Params, a: Array, b: Array) -> Array:
    a, b = np.broadcast_arrays(*_alike(a, b))
    out = np.empty((*a.shape, 2), a.dtype)
    out[..., 0], out[..., 1] = a, b
    return out


def _alike(*xs: Array) -> Sequence[Array]:
    return xs if len({x.dtype for x in xs}) == 1 else _meet("join", xs)


def _merged(params: Params, old: Array, new: Array, mask: Array) -> Array:
    out = old.copy()
    at = np.broadcast_to(mask, old.shape).astype(bool)
    out[at] = rounded(np.broadcast_to(new, old.shape)[at], dtypes.dtype_name(old.dtype))
    return out


def _picked(params: Params, x: Array, index: Array) -> Array:
    axis = params["axis"] % x.ndim
    places = list(np.indices(index.shape))
    places[axis] = index.astype(np.int64)
    found: Array = x[tuple(places)]
    return found


def _counted(params: Params, x: Array, mask: Array | None = None) -> Array:
    found = np.zeros(params["num_bins"], np.int64)
    np.add.at(found, (x if mask is None else x[mask.astype(bool)]).ravel().astype(np.int64), 1)
    return found


def _filled(params: Params, *operands: Array) -> Array:
    fill = operands[0] if operands else np.asarray(params.get("value", 0))
    return np.full(_target(params), fill, fill.dtype)


_MOVES: Final[Mapping[str, Callable[..., Any]]] = {
    "cast": _of(lambda x: x),
    "reshape": lambda params, x: x.ravel().reshape(_target(params)),
    "trans": _turned,
    "broadcast_to": lambda params, x: np.broadcast_to(x, _target(params)),
    "expand_dims": lambda params, x: np.expand_dims(x, params["axis"]),
    "cat": lambda params, *xs: np.concatenate(_alike(*xs), axis=params.get("axis") or 0),
    "flip": lambda params, x: np.flip(x, params.get("axis")),
    "join": _joined,
    "split": lambda params, x: x[..., params["part"]],
    "interleave": _interleaved,
    "bitcast": lambda params, x: np.frombuffer(x.tobytes(), dtypes.numpy_dtype(params["dtype"])).reshape(x.shape),
    "full": _filled,
    "zeros": _filled,
    "masked_store": _merged,
    "gather": _picked,
    "histogram": _counted,
    "any": _reduction(lambda x, axis: (x != 0).any(axis)),
    "all": _reduction(lambda x, axis: (x != 0).all(axis)),
    "logical_and": _of(lambda a, b: (a != 0) & (b != 0)),
    "logical_or": _of(lambda a, b: (a != 0) | (b != 0)),
    "logical_not": _of(lambda x: x == 0),
}
