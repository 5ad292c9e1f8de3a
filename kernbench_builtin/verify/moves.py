"""Second ways to what moves elements, makes them, or changes them where they lie, and to random bits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from kernbench_builtin.verify.operands import met
from kernbench_core.compute.ops.atomics import HOWS, one_by_one
from kernbench_core.compute.ops.random_bits import BUMPS, MULTIPLIERS, ROUNDS
from kernbench_core.compute.ops.record import Again, MathFunction, Params, both
from kernbench_core.compute.ops.second_way import rounded
from kernbench_core.values.arrays import Array, Shape
from kernbench_core.values.dtypes import dtype_name, numpy_dtype


def _target(params: Params) -> Shape:
    return tuple(params["shape"] if params.get("shape") is not None else params["shape_out"])


def _turned_again(params: Params, x: Array) -> Array:
    axes = params.get("axes")
    return x.transpose(axes) if axes is not None else x.swapaxes(-1, -2) if x.ndim > 1 else x


def _interleaved_again(params: Params, a: Array, b: Array) -> Array:
    out = np.empty((*a.shape[:-1], 2 * a.shape[-1]), a.dtype)
    out[..., 0::2], out[..., 1::2] = a, b
    return out


def _alike(xs: Sequence[Array]) -> Sequence[Array]:
    return xs if len({x.dtype for x in xs}) == 1 else met(xs)


def _joined_again(params: Params, a: Array, b: Array) -> Array:
    a, b = np.broadcast_arrays(*_alike((a, b)))
    out = np.empty((*a.shape, 2), a.dtype)
    out[..., 0], out[..., 1] = a, b
    return out


def _merged_again(params: Params, old: Array, new: Array, mask: Array) -> Array:
    out = old.copy()
    at = np.broadcast_to(mask, old.shape).astype(bool)
    out[at] = rounded(np.broadcast_to(new, old.shape)[at], dtype_name(old.dtype))
    return out


def _picked_again(params: Params, x: Array, index: Array) -> Array:
    axis = params["axis"] % x.ndim
    places = list(np.indices(index.shape))
    places[axis] = index.astype(np.int64)
    found: Array = x[tuple(places)]
    return found


def _filled_again(params: Params, *operands: Array) -> Array:
    fill = operands[0] if operands else np.asarray(params.get("value", 0))
    return np.full(_target(params), fill, fill.dtype)


def _bits_again(params: Params, x: Array) -> Array:
    return np.frombuffer(x.tobytes(), numpy_dtype(params["dtype"])).reshape(x.shape)


def _after_again(how: str) -> Callable[..., Array]:
    return lambda params, old, new, lanes, *compared: one_by_one(how, old, new, lanes, *compared)[0]


def _before_again(params: Params, *operands: Array) -> Array:
    return one_by_one(params["how"], *operands)[1]


def _philox_again(params: Params, *operands: Array) -> Array:
    """Compute each element by Python's integers."""

    def one(*words: int) -> int:
        key, counter = [int(word) % 2**32 for word in words[:2]], [int(word) % 2**32 for word in words[2:]]
        for number in range(int(params.get("rounds", ROUNDS))):
            left, right = (
                divmod(multiplier * counter[place], 2**32)
                for multiplier, place in zip(MULTIPLIERS, (0, 2), strict=True)
            )
            keys = [(word + number * bump) % 2**32 for word, bump in zip(key, BUMPS, strict=True)]
            counter = [right[0] ^ counter[1] ^ keys[0], right[1], left[0] ^ counter[3] ^ keys[1], left[1]]
        return counter[int(params["part"])]

    return np.asarray(np.vectorize(one, otypes=[np.int64])(*operands))


_MOVES: Final[Mapping[str, MathFunction]] = {
    "cast": lambda params, x: x,
    "reshape": lambda params, x: x.ravel().reshape(_target(params)),
    "trans": _turned_again,
    "broadcast_to": lambda params, x: np.broadcast_to(x, _target(params)),
    "expand_dims": lambda params, x: np.expand_dims(x, params["axis"]),
    "cat": lambda params, *xs: np.concatenate(_alike(xs), axis=params.get("axis") or 0),
    "flip": lambda params, x: np.flip(x, params.get("axis")),
    "join": _joined_again,
    "split": lambda params, x: x[..., params["part"]],
    "interleave": _interleaved_again,
    "bitcast": _bits_again,
    "full": _filled_again,
    "zeros": _filled_again,
    "masked_store": _merged_again,
    "gather": _picked_again,
    "philox": _philox_again,
    "atomic_before": _before_again,
    **{f"atomic_{how}": _after_again(how) for how in HOWS},
}

WAYS: Final[Mapping[str, Again]] = {name: both(function) for name, function in _MOVES.items()}
