"""What a math op is: one record with all that anybody asks of it.

`function` and the two functions of `again` are called with the op's params and its operands, as arrays. A type rule is
called with the record, the dtypes of the operands (Python types for numbers) and the params, a shape rule with the
record, the shapes and the params; both raise ShapeError where the op does not exist for the operands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

import numpy as np
from attrs import frozen

from kernbench_core.compute.promotion import WeakType, meet_all
from kernbench_core.values.arrays import Shape

Params = Mapping[str, Any]
MathFunction = Callable[..., Any]
"""Takes the params of an op, then its operands."""
NumpyFunction = Callable[..., Any]
"""Takes operands alone, as the functions of numpy do."""


TypeRule = Callable[["MathOp", Sequence[str | WeakType], Params], str]
ShapeRule = Callable[["MathOp", Sequence[Shape], Params], Shape]


class Form(StrEnum):
    """Which elements of the operands an element of the result comes from."""

    ELEMENTWISE = "elementwise"
    """Those at its own place, where operands broadcast."""
    REDUCTION = "reduction"
    """All along an axis, which is gone or of extent 1 afterwards."""
    SCAN = "scan"
    """Those before it along an axis."""
    NORMALISING = "normalising"
    """All along an axis, which stays."""
    MOVE = "move"
    """One, of another place."""

    @property
    def keywords(self) -> tuple[str, ...]:
        """The keywords that a call of such an op may give, whatever its record says."""
        if self is Form.REDUCTION:
            return "axis", "keepdims"
        return ("axis",) if self in (Form.SCAN, Form.NORMALISING) else ()


class Operands(StrEnum):
    """How operands are brought to the op."""

    COMPUTED = "computed"
    """In the dtype that they meet in, widened for arithmetic: floats in f32, bool in bytes."""
    CHOSEN = "chosen"
    """The first as it is, a condition; the others as `COMPUTED`."""
    MET = "met"
    """In the dtype that they meet in."""
    GIVEN = "given"
    """Each as it is."""


@frozen
class LaneCost:
    """What a lane of a vector unit does for one element: simple steps, and look-ups at an address of its own.

    A special function is a look-up in a table; what is composed of such steps is their sum.
    """

    steps: float = 1.0
    lookups: float = 0.0

    def __add__(self, other: LaneCost) -> LaneCost:
        return LaneCost(self.steps + other.steps, self.lookups + other.lookups)


STEP: Final = LaneCost()
LOOKUP: Final = LaneCost(0.0, 1.0)


@frozen
class Again:
    """A second way to the result of an op, in plain numpy that shares nothing with the first: what checks compare with.

    Integers come in int64, floats in f64. A function of floats may return an `Anew`, with a slack of its own. An op
    without `integers` computes them as floats; of a result in bool the last bit is kept, as arithmetic on it wraps.
    """

    floats: MathFunction | None = None
    integers: MathFunction | None = None


@frozen(eq=False)
class MathOp:
    """One math op.

    `function` gets operands in the dtype that arithmetic runs in, and what it returns is rounded to the result's dtype
    once. Without `again`, checks call `function` a second time, by itself.
    """

    name: str
    function: MathFunction
    types: TypeRule
    """Gives the dtype of the result; see `type_rules`."""
    shapes: ShapeRule
    """Gives the shape of the result; see `shape_rules`."""
    again: Again | None = None
    form: Form = Form.ELEMENTWISE
    operands: Operands = Operands.COMPUTED
    arity: int = 1
    """How many operands it takes; 0 where that differs."""
    cost: LaneCost = STEP
    dividing: bool = False
    """Whether its operands meet as those of a division do."""
    keeps_sign: bool = False
    """Whether a signed first operand stays so where it meets an unsigned one."""
    aliases: tuple[str, ...] = ()
    triton: str | None = None
    """How it differs from what `triton.language` has under its name, "" if it does not; None where Triton has none."""
    ours: str | None = None
    """What it is, for an op that kernels call by its name though Triton has none of that name."""
    keywords: tuple[str, ...] = ()
    """What a kernel may give by name, beside what the form has; of a plug-in's op."""

    @property
    def rule(self) -> TypeRule:
        """The rule of types as it was written; which one it is says how operands are widened."""
        return self.types

    @property
    def in_language(self) -> bool:
        """Whether kernels call it by its name."""
        return self.triton is not None or self.ours is not None

    def meet(self, dtypes: Sequence[str | WeakType]) -> str:
        """Return the dtype that operands meet in; a condition is none of them."""
        return meet_all(dtypes, dividing=self.dividing)

    def __str__(self) -> str:
        return self.name


class OfOperands:
    """A `function` of operands alone, as one that takes params before them."""

    __slots__ = ("function",)

    def __init__(self, function: NumpyFunction) -> None:
        self.function = function

    def __call__(self, params: Params, *operands: Any) -> Any:
        """Compute it."""
        return np.asarray(self.function(*operands))


def plain(function: NumpyFunction) -> MathFunction:
    """Make a function of operands alone one that takes params before them."""
    return OfOperands(function)


def both(function: MathFunction) -> Again:
    """Return a second way that is the same for integers and floats."""
    return Again(function, function)
