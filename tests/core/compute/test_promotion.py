"""One rule of types, compiled Triton's: written out here, from its front end, and held against every pair and op."""

from __future__ import annotations

import itertools
import math
import operator
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernbench_core.compute.functions import evaluate
from kernbench_core.compute.promotion import meet, meet_all, table
from kernbench_core.compute.result_types import result_type
from kernbench_core.errors import ShapeError
from kernbench_core.values.dtypes import NAMES, dtype_name, numpy_dtype
from tests.core.compute.typed_operands import PAIRS, sample, single, wide
from tests.core.kernel_rig import Rig

DOCS = Path(__file__).resolve().parents[3] / "docs" / "language.md"
SHORT = {
    "b": "bool", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "u8": "uint8", "u16": "uint16",
    "u32": "uint32", "u64": "uint64", "e4": "f8e4m3", "e5": "f8e5m2", "h": "f16", "bf": "bf16", "f": "f32",
    "d": "f64", "-": None,
}  # fmt: skip
WRITTEN = """
      b    i8   i16  i32  i64  u8   u16  u32  u64  e4   e5   h    bf   f    d    |bool int  float
b     b    i8   i16  i32  i64  u8   u16  u32  u64  -    -    h    f    f    d    |b    i32  f
i8    i8   i8   i16  i32  i64  u8   u16  u32  u64  -    -    h    f    f    d    |i8   i8   f
i16   i16  i16  i16  i32  i64  i16  u16  u32  u64  -    -    h    f    f    d    |i16  i16  f
i32   i32  i32  i32  i32  i64  i32  i32  u32  u64  -    -    h    f    f    d    |i32  i32  f
i64   i64  i64  i64  i64  i64  i64  i64  i64  u64  -    -    h    f    f    d    |i64  i64  f
u8    u8   u8   i16  i32  i64  u8   u16  u32  u64  -    -    h    f    f    d    |u8   u8   f
u16   u16  u16  u16  i32  i64  u16  u16  u32  u64  -    -    h    f    f    d    |u16  u16  f
u32   u32  u32  u32  u32  i64  u32  u32  u32  u64  -    -    h    f    f    d    |u32  u32  f
u64   u64  u64  u64  u64  u64  u64  u64  u64  u64  -    -    h    f    f    d    |u64  u64  f
e4    -    -    -    -    -    -    -    -    -    e4   h    h    f    f    d    |e4   e4   e4
e5    -    -    -    -    -    -    -    -    -    h    e5   h    f    f    d    |e5   e5   e5
h     h    h    h    h    h    h    h    h    h    h    h    h    h    f    d    |h    h    h
bf    f    f    f    f    f    f    f    f    f    f    f    h    bf   f    d    |bf   bf   bf
f     f    f    f    f    f    f    f    f    f    f    f    f    f    f    d    |f    f    f
d     d    d    d    d    d    d    d    d    d    d    d    d    d    d    d    |d    d    d
"""
"""What two operands meet in, as the compiler's front end decides it; the last three columns are Python numbers."""

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("bool", "uint8", "uint16", "uint32", "uint64")


def _read() -> dict[tuple[Any, Any], str | None]:
    head, *rows = (line.replace("|", " ").split() for line in WRITTEN.strip("\n").splitlines())
    numbers = {"bool": bool, "int": int, "float": float}
    columns = [numbers.get(name) or SHORT[name] for name in head]
    return {(SHORT[row[0]], column): SHORT[cell] for row in rows for column, cell in zip(columns, row[1:], strict=True)}


RULE = _read()


def common(left: str, right: Any, dividing: bool) -> str | None:
    """Give what two operands meet in by the table above; in a division f16 and bf16 are f32, and signs must agree."""
    found = RULE[left, right]
    if not dividing:
        return found
    other = {bool: "bool", int: "int32"}.get(right, right)
    apart = (left in SIGNED and other in UNSIGNED) or (left in UNSIGNED and other in SIGNED)
    if apart and (isinstance(right, str) or (left == "bool" and right is int)):
        return None
    return "f32" if {left, right} & {"f16", "bf16"} and found != "f64" else found


def test_the_table_is_whole() -> None:
    """Every dtype with every dtype and number, and the order of two dtypes does not matter."""
    assert set(RULE) == set(itertools.product(NAMES, (*NAMES, bool, int, float)))
    assert all(RULE[a, b] == RULE[b, a] for a, b in PAIRS)


@pytest.mark.parametrize("dividing", [False, True])
def test_operands_meet_as_in_triton(dividing: bool) -> None:
    """Every pair of dtypes, and of a dtype and a number, both ways round."""
    for left, right in RULE:
        for a, b in ((left, right), (right, left)):
            want = common(left, right, dividing)
            if want is None:
                with pytest.raises(ShapeError):
                    meet(a, b, dividing)
            else:
                assert meet(a, b, dividing) == want, (a, b)


def test_what_cannot_meet_is_a_sentence() -> None:
    """An 8-bit float with an integer, integers of two signs in a division, and nothing at all."""
    with pytest.raises(ShapeError) as caught:
        meet("int8", "f8e5m2")
    assert str(caught.value) == (
        "An 8-bit float must not meet an integer, as int8 and f8e5m2 do; cast one of them first."
    )
    with pytest.raises(ShapeError) as caught:
        meet("bool", int, dividing=True)
    assert str(caught.value) == (
        "A division must be of numbers of one signedness: Cannot use a division of bool by int32 because they have "
        "different signedness; cast one of them first."
    )
    with pytest.raises(ShapeError) as caught:
        meet_all([])
    assert str(caught.value) == "An operation must have at least one operand, not none; pass one."


def test_numbers_alone_and_several_operands() -> None:
    """Numbers alone are bool, int32 and f32; tensors meet before numbers."""
    assert [meet_all([kind]) for kind in (bool, int, float)] == ["bool", "int32", "f32"]
    assert meet_all([int, float]) == "f32"
    assert meet_all([float, 1.0.__class__, "f16"]) == "f16"
    assert meet_all(["f16", "bf16", "f32"]) == "f32"


# Values -------------------------------------------------------------------------------------------------


def c_quotient(a: int, b: int) -> int:
    """Divide as C does, and give 0 for a division by zero."""
    return 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


OF_INTEGERS: dict[str, Callable[[int, int], int]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "floordiv": c_quotient,
    "mod": lambda a, b: a - c_quotient(a, b) * b, "and": operator.and_, "or": operator.or_, "xor": operator.xor,
    "maximum": max, "minimum": min,
}  # fmt: skip
OF_FLOATS: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "mod": np.fmod, "maximum": np.fmax,
    "minimum": np.fmin,
}  # fmt: skip
COMPARED: dict[str, Callable[[Any, Any], Any]] = {
    "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge, "eq": operator.eq, "ne": operator.ne,
}  # fmt: skip
EVERY = sorted({*OF_INTEGERS, *OF_FLOATS, *COMPARED})
DIVIDING = ("div", "floordiv", "mod")


def integer(value: int, name: str) -> int:
    """Wrap an integer to a dtype; bool is one bit."""
    if name == "bool":
        return value & 1
    bits = numpy_dtype(name).itemsize * 8
    value &= (1 << bits) - 1
    return value - (1 << bits) if name in SIGNED and value >> (bits - 1) else value


def expected(op: str, a: Any, b: Any, met: str) -> tuple[list[float], str]:
    """Compute by the rule, one element after the other: operands to the dtype that they meet in, then the op."""
    if numpy_dtype(met).kind in "iub":
        pairs = [(integer(int(x), met), integer(int(y), met)) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
        if op in COMPARED:
            return [COMPARED[op](x, y) for x, y in pairs], "bool"
        if op == "div":
            return (single([x for x, _ in pairs]) / single([y for _, y in pairs])).tolist(), "f32"
        return [integer(OF_INTEGERS[op](x, y), met) for x, y in pairs], met
    x, y = (wide(values.astype(numpy_dtype(met))) for values in (a, b))
    if op in COMPARED:
        return COMPARED[op](x, y).tolist(), "bool"
    found = OF_FLOATS[op](x, y)
    if met.startswith("f8"):
        limit = {"f8e4m3": 448.0, "f8e5m2": 57344.0}[met]
        found = np.clip(found, -limit, limit)
    return wide(found.astype(numpy_dtype(met))).tolist(), met


@pytest.mark.parametrize("op", EVERY)
def test_every_pair_computes_by_the_rule(op: str) -> None:
    """Each of 225 pairs of dtypes gives the dtype and, bit for bit, the numbers of the rule; or is an error."""
    with np.errstate(all="ignore"):
        for left, right in PAIRS:
            a, b = sample(left), sample(right)[::-1].copy()
            met = common(left, right, op in DIVIDING)
            floats = met is not None and numpy_dtype(met).kind not in "iub"
            if met is None or (floats and op in ("floordiv", "and", "or", "xor")):
                with pytest.raises(ShapeError):
                    result_type(op, [left, right])
                continue
            want, dtype = expected(op, a, b, met)
            got = evaluate(op, {}, [a, b])
            assert (dtype_name(got.dtype), result_type(op, [left, right])) == (dtype, dtype), (left, right)
            np.testing.assert_array_equal(_or_float(got), want, err_msg=f"{left} {op} {right}")


def _or_float(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return array if array.dtype.kind in "iub" else wide(array)


@pytest.mark.parametrize(("left", "right"), [p for p in PAIRS if {*p} <= {*SIGNED, *UNSIGNED}])
def test_shifts_keep_the_sign_of_the_left_operand(left: str, right: str) -> None:
    """A signed left operand is shifted with its sign, also where it meets an unsigned one; all else with zeros."""
    a = sample(left)
    b = np.array([0, 1, 1, 0, 1, 0, 1, 1], numpy_dtype(right))
    met = common(left, right, False)
    assert met is not None
    bits = 1 if met == "bool" else 8 * numpy_dtype(met).itemsize
    for op in ("shl", "shr"):
        if bits == 1 and op == "shl":
            b = np.zeros(8, bool)  # as wide a shift as the dtype means nothing
        want = []
        for x, n in zip(a.tolist(), b.tolist(), strict=True):
            held = integer(int(x), met)
            if op == "shr" and left in SIGNED and met in UNSIGNED and held >> (bits - 1):
                held -= 1 << bits
            want.append(integer(held << int(n) if op == "shl" else held >> int(n), met))
        got = evaluate(op, {}, [a, b])
        assert dtype_name(got.dtype) == met
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("op", ["where", "cat", "join"])
def test_choices_and_moves_meet_too(op: str) -> None:
    """`where`, `cat` and `join` give the dtype that their operands meet in, and the operands rounded to it."""
    cond = np.array([1, 0, 256, 0, 1, 1, 0, 0], np.int32)
    for left, right in PAIRS:
        a, b = sample(left), sample(right)[::-1].copy()
        inputs = [cond, a, b] if op == "where" else [a, b]
        met = common(left, right, False)
        if met is None:
            with pytest.raises(ShapeError):
                result_type(op, [dtype_name(x.dtype) for x in inputs])
            continue
        with np.errstate(all="ignore"):
            x, y = (np.asarray([integer(int(v), met) for v in values], numpy_dtype(met)) if met in (*SIGNED, *UNSIGNED)
                    else values.astype(numpy_dtype(met)) for values in (a, b))  # fmt: skip
        want = {"where": np.where(cond != 0, x, y), "cat": np.concatenate((x, y)), "join": np.stack((x, y), -1)}[op]
        got = evaluate(op, {}, inputs)
        assert dtype_name(got.dtype) == met
        np.testing.assert_array_equal(_or_float(got), _or_float(want), err_msg=f"{left} {right}")


# In a kernel ----------------------------------------------------------------------------------------------

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv,
    "floordiv": operator.floordiv, "mod": operator.mod, "and": operator.and_, "or": operator.or_,
    "xor": operator.xor, **COMPARED,
}  # fmt: skip


def test_tiles_have_the_dtypes_of_the_rule() -> None:
    """Every operator on every pair of loaded tiles, and on a tile and a number, announces the dtype of the rule."""
    rig = Rig()
    seen: dict[tuple[str, Any, str], str | None] = {}

    def kernel(x: Any, tl: Any) -> None:
        tiles = [tl.load(x, shape=(8,), dtype=name) for name in NAMES]
        for a, (b, kind), op in itertools.product(
            tiles, [*((tile, tile.dtype) for tile in tiles), (True, bool), (1, int), (1.0, float)], OPERATORS
        ):
            try:
                seen[a.dtype, kind, op] = OPERATORS[op](a, b).dtype
            except ShapeError:
                seen[a.dtype, kind, op] = None

    rig.run(kernel, rig.tensor(np.ones(8, np.int64)))
    assert len(seen) == len(NAMES) * (len(NAMES) + 3) * len(OPERATORS)
    for (left, right, op), got in seen.items():
        met = common(left, right, op in DIVIDING)
        if met is None or (met not in (*SIGNED, *UNSIGNED) and op in ("floordiv", "and", "or", "xor")):
            want = None
        else:
            want = "bool" if op in COMPARED else "f32" if op == "div" and met in (*SIGNED, *UNSIGNED) else met
        assert got == want, (left, right, op)


def test_the_documentation_holds_the_generated_table() -> None:
    """docs/language.md says what the code says, pair for pair."""
    text = DOCS.read_text(encoding="utf-8")
    between = re.search(r"<!-- dtypes begin -->\n(.*)<!-- dtypes end -->", text, re.DOTALL)
    assert between is not None
    assert between[1] == table()
    cells = [line.strip("|").split(" | ") for line in table().splitlines()[2:]]
    names = [None if cell.strip() == "-" else cell.strip() for row in cells for cell in row[1:]]
    assert names == [RULE[left, right] for left in NAMES for right in (*NAMES, bool, int, float)]
    assert math.prod((len(cells), len(cells[0]) - 1)) == len(RULE)
