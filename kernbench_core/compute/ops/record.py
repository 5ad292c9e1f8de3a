"""What a math op is: one record with all that anybody asks of it.

`function` and the two functions of `again` are called with the op's params and its operands, as arrays. A type rule is
called with the record, the dtypes of the operands (Python types for numbers) and the params, a shape rule with the
record, the shapes and the params; both raise ShapeError where the op does not exist for the operands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from math import inf
from numbers import Real
from typing import Any, Final

import numpy as np
from attrs import field, frozen

from kernbench_core.compute.promotion import WeakType, meet_all
from kernbench_core.values.arrays import Shape

Params = Mapping[str, Any]
MathFunction = Callable[..., Any]
"""Takes the params of an op, then its operands."""
NumpyFunction = Callable[..., Any]
"""Takes operands alone, as the functions of numpy do."""


TypeRule = Callable[["MathOp", Sequence[str | WeakType], Params], str]
ShapeRule = Callable[["MathOp", Sequence[Shape], Params], Shape]


def _must(be: str, holds: Callable[[Any], bool]) -> Callable[[object, Any, Any], None]:
    """Return a validator of a field, which raises a ValueError that says what it must be."""

    def check(record: object, attribute: Any, value: Any) -> None:
        if not holds(value):
            raise ValueError(f"{type(record).__name__}.{attribute.name} must be {be}, not {value!r}")

    return check


def _is_name(name: object) -> bool:
    """Whether a keyword may be called so: records of math ops hold what is theirs under the other names."""
    return isinstance(name, str) and name.isidentifier() and not (
        name in _TAKEN or name.startswith(("input_", "immediate"))
    )


_TAKEN: Final = ("addr_space", "dst_addr", "dst_space", "dtype", "dtype_out", "in_dtypes", "mask", "op", "shape_out")
_AMOUNT: Final = _must("a finite number of at least 0", lambda n: isinstance(n, Real) and 0 <= float(n) < inf)
_WAY: Final = _must("a function of params and operands, or None", lambda way: way is None or callable(way))


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

    steps: float = field(default=1.0, validator=_AMOUNT)
    lookups: float = field(default=0.0, validator=_AMOUNT)

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

    floats: MathFunction | None = field(default=None, validator=_WAY)
    integers: MathFunction | None = field(default=None, validator=_WAY)

    def __attrs_post_init__(self) -> None:
        if self.floats is None and self.integers is None:
            raise ValueError("Again must have a function as floats, or as integers")


@frozen(eq=False)
class MathOp:
    """One math op.

    `function` gets operands in the dtype that arithmetic runs in, and what it returns is rounded to the result's dtype
    once. Without `again`, checks call `function` a second time, by itself. ValueError for a field of another sort.
    """

    name: str
    function: MathFunction = field(validator=_must("a function of params and operands", callable))
    types: TypeRule = field(validator=_must("a function of the op, dtypes and params", callable))
    """Gives the dtype of the result; see `type_rules`."""
    shapes: ShapeRule = field(validator=_must("a function of the op, shapes and params", callable))
    """Gives the shape of the result; see `shape_rules`."""
    again: Again | None = field(
        default=None, validator=_must("an Again or None", lambda again: again is None or isinstance(again, Again))
    )
    form: Form = field(default=Form.ELEMENTWISE, validator=_must("a member of Form", lambda f: isinstance(f, Form)))
    operands: Operands = field(
        default=Operands.COMPUTED, validator=_must("a member of Operands", lambda how: isinstance(how, Operands))
    )
    arity: int = field(
        default=1, validator=_must("a number of operands, 0 where that differs", lambda n: type(n) is int and n >= 0)
    )
    """How many operands it takes; 0 where that differs."""
    cost: LaneCost = field(default=STEP, validator=_must("a LaneCost", lambda cost: isinstance(cost, LaneCost)))
    dividing: bool = False
    """Whether its operands meet as those of a division do."""
    keeps_sign: bool = False
    """Whether a signed first operand stays so where it meets an unsigned one."""
    aliases: tuple[str, ...] = ()
    triton: str | None = None
    """How it differs from what `triton.language` has under its name, "" if it does not; None where Triton has none."""
    ours: str | None = None
    """What it is, for an op that kernels call by its name though Triton has none of that name."""
    keywords: tuple[str, ...] = field(
        default=(),
        validator=_must(
            "a tuple of names, as ('scale',), that records of the log have not already",
            lambda names: isinstance(names, tuple) and all(map(_is_name, names)),
        ),
    )
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
