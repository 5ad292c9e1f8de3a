"""The record of an op that somebody else made: what of it is told, and what its rules may answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from attrs import evolve

from kernbench_core.compute.ops import OPS
from kernbench_core.compute.ops.record import Again, LaneCost, MathOp, Operands
from kernbench_core.compute.ops.record_faults import record_faults, with_rules_checked
from kernbench_core.errors import PluginError, ShapeError
from kernbench_core.values.dtypes import NAMES

RIGHT = MathOp("twice", lambda params, x: np.asarray(2 * x), lambda *_: "f32", lambda *_: (2, 3))


@pytest.mark.parametrize("op", [RIGHT, *OPS.values()], ids=str)
def test_a_record_that_is_right_has_no_fault(op: MathOp) -> None:
    """All of core's own among them."""
    assert list(record_faults(op)) == []


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"function": 3}, "must have as function a function of params and operands, not 3"),
        ({"types": "f32"}, "must have as types a function of the op, dtypes and params, not 'f32'"),
        ({"shapes": None}, "must have as shapes a function of the op, shapes and params, not None"),
        ({"form": "elementwise"}, "must have as form a member of Form, not 'elementwise'"),
        ({"operands": 1}, "must have as operands a member of Operands, not 1"),
        ({"arity": -1}, "must have as arity a number of operands, 0 where that differs, not -1"),
        ({"arity": True}, "must have as arity a number of operands, 0 where that differs, not True"),
        ({"dividing": 1}, "must have True or False as dividing, not 1"),
        ({"keeps_sign": None}, "must have True or False as keeps_sign, not None"),
        ({"cost": 2.0}, "must have as cost a LaneCost of kernbench_core.compute.ops, not 2.0"),
        ({"cost": LaneCost(-1.0)}, "must have as steps of its cost a finite number of at least 0, not -1.0"),
        ({"cost": LaneCost(1.0, np.inf)}, "must have as lookups of its cost a finite number of at least 0, not inf"),
        ({"again": 5}, "must have as again an Again of kernbench_core.compute.ops, or None, not 5"),
        ({"again": Again()}, "must have a function as floats of its again, not None"),
    ],
)
def test_a_field_that_is_wrong_is_told_alone(changes: dict[str, Any], told: str) -> None:
    """What the field must be, and what it is."""
    assert list(record_faults(evolve(RIGHT, **changes))) == [told]


def test_a_second_way_for_integers_alone_is_enough_where_operands_are_computed() -> None:
    """Others come as floats, too."""
    way = Again(integers=RIGHT.function)
    assert list(record_faults(evolve(RIGHT, again=way))) == []
    other = next(each for each in Operands if each is not Operands.COMPUTED)
    assert list(record_faults(evolve(RIGHT, again=way, operands=other))) == [
        "must have a function as floats of its again, not None"
    ]


def checked(**rules: object) -> MathOp:
    return with_rules_checked(evolve(RIGHT, **rules), lambda told: PluginError(f"twice {told}."))


def test_rules_that_answer_are_asked_as_before() -> None:
    """Shapes come as tuples of Python's integers, whatever whole numbers they are of."""
    op = checked(shapes=lambda *_: [np.int64(2), 3])
    assert op.types(op, ["f32"], {}) == "f32"
    found = op.shapes(op, [(2, 3)], {})
    assert found == (2, 3)
    assert [type(extent) for extent in found] == [int, int]


@pytest.mark.parametrize("answer", [(2, -1), (2.5,), "ab", None])
def test_what_is_no_shape_is_told(answer: object) -> None:
    """With what it must be."""
    op = checked(shapes=lambda *_: answer)
    with pytest.raises(PluginError) as caught:
        op.shapes(op, [(2, 3)], {})
    assert str(caught.value) == (
        f"twice must have a shape rule that gives a tuple of whole numbers of at least 0, not {answer!r}."
    )


@pytest.mark.parametrize("answer", ["f128", None])
def test_what_is_no_dtype_is_told(answer: object) -> None:
    """With those that there are."""
    op = checked(types=lambda *_: answer)
    with pytest.raises(PluginError) as caught:
        op.types(op, ["f32"], {})
    assert str(caught.value) == f"twice must have a type rule that gives one of {', '.join(NAMES)}, not {answer!r}."


def test_a_rule_that_raises_is_at_fault_unless_it_refuses_the_operands() -> None:
    """A kernel's error is the kernel's."""

    def refuses(*_: object) -> str:
        raise ShapeError("no")

    op = checked(types=lambda *_: {}["x"], shapes=refuses)
    with pytest.raises(PluginError) as caught:
        op.types(op, ["f32"], {})
    assert str(caught.value) == (
        "twice must have a type rule that answers or raises ShapeError, but it raised KeyError: 'x'."
    )
    with pytest.raises(ShapeError, match=r"^no$"):
        op.shapes(op, [(2, 3)], {})
