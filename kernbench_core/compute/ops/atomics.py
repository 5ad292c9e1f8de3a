"""What memory holds after read-modify-writes of some of its elements, and what it held before each of them.

Operands are the elements, each once; the operands of the lanes; and the place of each lane among the elements, -1 of a
lane that a mask turns off. Lanes take turns in row-major order, so several may meet one element. `cas` has a fourth
operand: what a lane compares with.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from kernbench_core.compute.ops.record import LOOKUP, STEP, Form, MathOp, Operands, Params
from kernbench_core.compute.ops.shape_rules import first
from kernbench_core.compute.ops.type_rules import first as dtype_of_first
from kernbench_core.values.arrays import Array

_IN_PLACE: Final = {
    "add": np.add, "max": np.fmax, "min": np.fmin, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip


def one_by_one(how: str, old: Array, new: Array, lanes: Array, *compared: Array) -> tuple[Array, Array]:
    """Let the lanes take turns; give the elements afterwards, and what each lane found."""
    now, before = old.copy(), np.zeros(new.shape, old.dtype)
    flat, wanted = before.reshape(-1), compared[0].reshape(-1) if compared else None
    for lane, (place, value) in enumerate(zip(lanes.reshape(-1).tolist(), new.reshape(-1), strict=True)):
        if place < 0:
            continue
        found = flat[lane] = now[place]
        if how == "xchg":
            now[place] = value
        elif wanted is not None:
            now[place] = value if found == wanted[lane] else found
        else:
            now[place] = _IN_PLACE[how](found, value)
    return now, flat.reshape(new.shape)


def _apart(lanes: Array) -> bool:
    """Whether no lanes meet."""
    if lanes.size <= 1:
        return True
    places = lanes[lanes >= 0]
    return bool(np.unique(places).size == places.size)


def _after(how: str) -> Callable[..., Array]:
    def compute(params: Params, old: Array, new: Array, lanes: Array, *compared: Array) -> Array:
        if how == "cas" and not _apart(lanes):
            return one_by_one(how, old, new, lanes, *compared)[0]
        now, kept = old.copy(), lanes.reshape(-1) >= 0
        places, values = lanes.reshape(-1)[kept], new.reshape(-1)[kept]
        if how in _IN_PLACE:
            _IN_PLACE[how].at(now, places, values)
        elif how == "xchg":
            now[places] = values  # of lanes that meet, the last one's
        else:
            now[places] = np.where(old[places] == compared[0].reshape(-1)[kept], values, old[places])
        return now

    return compute


def _before(params: Params, old: Array, new: Array, lanes: Array, *compared: Array) -> Array:
    if _apart(lanes):
        return np.where(lanes >= 0, old[lanes], np.zeros((), old.dtype))
    return one_by_one(params["how"], old, new, lanes, *compared)[1]


def _shape_of_lanes(op: MathOp, shapes: Any, params: Params) -> Any:
    return shapes[1]


HOWS: Final = (*_IN_PLACE, "xchg", "cas")
OPS: Final = (
    *(
        MathOp(
            f"atomic_{how}", _after(how), dtype_of_first, first, None, Form.MOVE, Operands.GIVEN,
            arity=0, cost=LOOKUP + STEP,
        )
        for how in HOWS
    ),
    MathOp(
        "atomic_before", _before, dtype_of_first, _shape_of_lanes, None, Form.MOVE, Operands.GIVEN, arity=0,
        cost=LOOKUP + STEP,
    ),
)  # fmt: skip
