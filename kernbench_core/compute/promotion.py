"""The one rule of types, compiled Triton's: the dtype that operands meet in before an op computes.

The language, composites, index tensors, phase 2 and the table of docs/language.md all ask here.

Source: https://triton-lang.org/main/python-api/triton-semantics.html, and the front end of the compiler where that page
is silent (8-bit floats, signs in divisions).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from kernbench_core.errors import ShapeError
from kernbench_core.values.dtypes import NAMES, DTypeInfo, info

WeakType = type[bool] | type[int] | type[float]
"""The Python type of a number, which stands for the number among dtypes."""

_KINDS = ("bool", "int", "float")
_ALONE = {bool: "bool", int: "int32", float: "f32"}
"""What numbers are where no tensor gives them its dtype."""


def meet(left: str | WeakType, right: str | WeakType, dividing: bool = False) -> str:
    """Return the dtype that two operands meet in; `dividing` is for `/`, `//` and `%`.

    A number (a Python type) takes the dtype of the tensor unless it is of a higher kind (bool < int < float). Floats:
    f32 wins, then f16; bf16 stays alone and is f32 with all else; two different 8-bit floats are f16, and one with an
    integer is an error. Integers: the wider wins, of one width the unsigned; bool is an unsigned one of one bit.
    Dividing, f16 and bf16 are f32, and a signed integer with an unsigned one, bool too, is an error.
    """
    if isinstance(left, type) != isinstance(right, type):
        number, tensor = (left, right) if isinstance(left, type) else (right, left)
        assert isinstance(number, type)
        assert isinstance(tensor, str)
        if _KINDS.index(number.__name__) <= _KINDS.index(info(tensor).kind):
            return (info(tensor).divided if dividing else "") or tensor
    a, b = info(_strong(left)), info(_strong(right))
    if "float" in (a.kind, b.kind):
        return _meet_floats(a, b, dividing)
    if dividing and a.signed != b.signed:
        raise ShapeError(
            f"A division must be of numbers of one signedness: Cannot use a division of {a.name} by {b.name} because "
            "they have different signedness; cast one of them first."
        )
    if a.signed == b.signed:
        return max(a, b, key=lambda dtype: dtype.rank).name
    signed, unsigned = (a, b) if a.signed else (b, a)
    return unsigned.name if unsigned.rank >= signed.rank else signed.name


def _meet_floats(a: DTypeInfo, b: DTypeInfo, dividing: bool) -> str:
    decides = max((each for each in (a, b) if each.kind == "float"), key=lambda dtype: dtype.rank)
    if a.kind != b.kind and not decides.meets_integers:
        met = f"{a.name} and {b.name}"
        raise ShapeError(f"An 8-bit float must not meet an integer, as {met} do; cast one of them first.")
    if dividing and decides.divided:
        return decides.divided
    return decides.name if a is b else decides.beside or decides.name


def meet_all(dtypes: Iterable[str | WeakType], dividing: bool = False) -> str:
    """Return the dtype that operands meet in, tensors first, one after the other; of one alone its own."""
    given = sorted(dtypes, key=lambda dtype: isinstance(dtype, type))
    if not given:
        raise ShapeError("An operation must have at least one operand, not none; pass one.")
    return _strong(reduce(lambda left, right: meet(left, right, dividing), given))


def table() -> str:
    """Give the Markdown table of docs/language.md: what each two dtypes meet in; a dash where that is an error."""

    def cell(left: str, right: str | WeakType) -> str:
        try:
            return meet(left, right)
        except ShapeError:
            return "-"

    numbers: tuple[WeakType, ...] = (bool, int, float)
    columns = (*NAMES, *(f"`{number.__name__}`" for number in numbers))
    lines = [f"| | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    lines += [f"| {left} | {' | '.join(cell(left, right) for right in (*NAMES, *numbers))} |" for left in NAMES]
    return "\n".join(lines) + "\n"


def _strong(dtype: str | WeakType) -> str:
    return dtype if isinstance(dtype, str) else _ALONE[dtype]

