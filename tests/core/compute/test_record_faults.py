"""The record of an op that somebody else made: what its rules may answer."""

from __future__ import annotations

import numpy as np
import pytest
from attrs import evolve

from kernbench_core.compute.ops.record import MathOp
from kernbench_core.compute.ops.record_faults import with_rules_checked
from kernbench_core.errors import PluginError, ShapeError
from kernbench_core.values.dtypes import NAMES

RIGHT = MathOp("twice", lambda params, x: np.asarray(2 * x), lambda *_: "f32", lambda *_: (2, 3))


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

    def lacks(*_: object) -> str:
        return {}["x"]

    op = checked(types=lacks, shapes=refuses)
    with pytest.raises(PluginError) as caught:
        op.types(op, ["f32"], {})
    assert str(caught.value) == (
        "twice must have a type rule that answers or raises ShapeError, but it raised KeyError: 'x' at "
        f"{__file__}:{lacks.__code__.co_firstlineno + 1}."
    )
    with pytest.raises(ShapeError, match=r"^no$"):
        op.shapes(op, [(2, 3)], {})
