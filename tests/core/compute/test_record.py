"""The record of a math op refuses a field of another sort."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from attrs import evolve

from kernbench_core.compute.ops.record import Again, LaneCost, MathOp

RIGHT = MathOp("twice", lambda params, x: np.asarray(2 * x), lambda *_: "f32", lambda *_: (2, 3))
AMOUNT, WAY = "a finite number of at least 0", "a function of params and operands, or None"
NAMES = "a tuple of names, as ('scale',), that records of the log have not already"


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"function": 3}, "function must be a function of params and operands, not 3"),
        ({"types": "f32"}, "types must be a function of the op, dtypes and params, not 'f32'"),
        ({"shapes": None}, "shapes must be a function of the op, shapes and params, not None"),
        ({"form": "elementwise"}, "form must be a member of Form, not 'elementwise'"),
        ({"operands": 1}, "operands must be a member of Operands, not 1"),
        ({"arity": -1}, "arity must be a number of operands, 0 where that differs, not -1"),
        ({"arity": True}, "arity must be a number of operands, 0 where that differs, not True"),
        ({"cost": 2.0}, "cost must be a LaneCost, not 2.0"),
        ({"again": 5}, "again must be an Again or None, not 5"),
        ({"keywords": "by"}, f"keywords must be {NAMES}, not 'by'"),
        ({"keywords": ("dtype",)}, f"keywords must be {NAMES}, not ('dtype',)"),
        ({"keywords": ("input_x",)}, f"keywords must be {NAMES}, not ('input_x',)"),
    ],
)
def test_a_field_that_is_wrong_is_told(changes: dict[str, Any], told: str) -> None:
    """What the field must be, and what it is."""
    with pytest.raises(ValueError) as caught:
        evolve(RIGHT, **changes)
    assert str(caught.value) == f"MathOp.{told}"


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: LaneCost(-1.0), f"LaneCost.steps must be {AMOUNT}, not -1.0"),
        (lambda: LaneCost(1.0, np.inf), f"LaneCost.lookups must be {AMOUNT}, not inf"),
        (lambda: LaneCost(1.0, "few"), f"LaneCost.lookups must be {AMOUNT}, not 'few'"),  # type: ignore[arg-type]
        (Again, "Again must have a function as floats, or as integers"),
        (lambda: Again(3), f"Again.floats must be {WAY}, not 3"),  # type: ignore[arg-type]
    ],
)
def test_so_is_one_of_its_parts(make: Callable[[], object], told: str) -> None:
    """A cost, or a second way."""
    with pytest.raises(ValueError) as caught:
        make()
    assert str(caught.value) == told
