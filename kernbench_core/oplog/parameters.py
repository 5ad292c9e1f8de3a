"""How the parameters and accesses of an op record become a signature and numbers, and come back.

A *signature* is the tuple that records of one class share; each record adds integers, floats and, rarely, objects of a
side table. Logging is on the path of every kernel command: what the commands of one pattern have in common is worked
out once, in a `PatternPlan`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

from kernbench_core.oplog.description import OpDescription, OpPattern, handle_of
from kernbench_core.values.limits import LIMIT
from kernbench_core.values.region import Region
from kernbench_core.values.value import Value

HEAD: Final = 5
"""Items of a signature before the accesses: kind, name, function, whether it writes, how many accesses."""

# One letter for each parameter says where it is.
INT: Final = "i"  # the integer column
FLOAT: Final = "f"  # the float column
CONST: Final = "c"  # the signature: a string, a bool or None
TUPLE: Final = "t"  # the signature: a tuple of integers, strings, bools, None and such tuples
LIST: Final = "l"  # the signature: the same as a list
ADDRESSES: Final = "a"  # the integer column, after all single integers: a tuple of integers, as addresses vary
ADDRESS_LIST: Final = "A"  # the same as a list
HANDLE: Final = "h"  # nowhere: it is the name of the op, "pe3.17"
READ: Final = "r"  # nowhere: values of the record's reads
SIDE: Final = "s"  # the side table
_PLAIN: Final = (str, bool, type(None))

RawAccess = tuple[str, tuple[Region, ...], Value | None]
PackedParams = tuple[tuple[str, ...], str, tuple[Any, ...], tuple[Any, ...], tuple[int, ...]]


class OfReads:
    """Stand for a parameter that repeats values of the record's reads; the log keeps those once.

    What it becomes follows from the parameter's name: `input_snapshots` is a list of the values of all reads,
    `snapshot` the value of the first, `immediateN` that of read N.
    """


OF_READS: Final = OfReads()


class PatternPlan:
    """How the descriptions of one pattern are logged: `packed` ends their signature, `fixed` are their integers.

    Of `fixed` those at `places` are a command's own, in the order in which it gives them. `templates` are the numbers
    of the templates that were met, by what the accesses look like. With `named` it is for ops alone, as one of the
    parameters is their name.
    """

    __slots__ = ("fixed", "named", "packed", "places", "templates")

    def __init__(self, packed: PackedParams, fixed: list[int], places: tuple[int, ...]) -> None:
        self.named = HANDLE in packed[1]
        self.packed = packed
        self.fixed = fixed
        self.places = places
        self.templates: dict[tuple[object, ...], int] = {}

    def filled(self, numbers: tuple[int, ...]) -> list[int]:
        """Return the integers of a command that has these of its own."""
        places = self.places
        if len(numbers) != len(places):
            raise ValueError(f"A command must give the {len(places)} integers that its pattern leaves open: {numbers}.")
        found = self.fixed[:]
        for at, place in enumerate(places):
            found[place] = numbers[at]
        return found


def encode_params(
    described: OpDescription, ints: list[int], floats: list[float], side: list[object]
) -> PackedParams:
    """Append what varies to the columns; return the rest of the signature: names, letters, constants, types, counts.

    An integer beyond 64 bits goes to the side table.
    """
    codes, consts, nested, counts, later = "", [], [], [], []
    params: Mapping[str, Any] = described.params
    for key, value in params.items():
        kind = type(value)
        inner = types_inside(tuple(value)) if kind is tuple or kind is list else None
        if kind is OfReads or _repeats_reads(key, value, described):
            codes += READ
        elif (kind is int and -LIMIT <= value < LIMIT) or kind is float:
            codes += INT if kind is int else FLOAT
            (ints if kind is int else floats).append(value)
        elif kind is str and key == "handle_id":
            same = value == handle_of(described.op_id)
            codes += HANDLE if same else SIDE
            side += [] if same else [value]
        elif kind in _PLAIN:
            codes += CONST
            consts.append(value)
        elif inner is None:
            codes += SIDE
            side.append(value)
        elif key.endswith("addrs") and all(t is int and -LIMIT <= n < LIMIT for t, n in zip(inner, value, strict=True)):
            codes += ADDRESSES if kind is tuple else ADDRESS_LIST
            later += value
            counts.append(len(value))
        else:
            codes += TUPLE if kind is tuple else LIST
            consts.append(tuple(value))
            nested.append(inner)
    ints += later
    return tuple(params), codes, tuple(consts), tuple(nested), tuple(counts)


def plan_of_pattern(pattern: OpPattern) -> PatternPlan | None:
    """Return how descriptions of a pattern are logged; None where they have to be taken one by one."""
    known = (-1, -1)  # so that a handle_id is that of the op
    params: Mapping[str, Any] = pattern.params
    if "handle_id" in params:
        params = {**params, "handle_id": handle_of(known)}
    ints: list[int] = []
    floats: list[float] = []
    side: list[object] = []
    packed = encode_params(OpDescription("", "", params, op_id=known), ints, floats, side)
    keys, codes, _, _, counts = packed
    starts: dict[str, int] = {}
    single, at, lengths = 0, codes.count(INT), iter(counts)
    for key, code in zip(keys, codes, strict=True):
        if code == INT:
            starts[key], single = single, single + 1
        elif code == ADDRESS_LIST:
            starts[key], at = at, at + next(lengths)
        elif code == ADDRESSES:
            at += next(lengths)
    if floats or side or any(name not in starts for name in pattern.open):
        return None
    places: list[int] = []
    for name in pattern.open:
        value, start = params[name], starts[name]
        places += range(start, start + len(value)) if type(value) is list else [start]
    return PatternPlan(packed, ints, tuple(places))


def of_reads(key: str, reads: Sequence[Value | None]) -> Any:
    """Return what `OF_READS` stands for under a parameter's name; None where it has no such read."""
    if key == "input_snapshots":
        return list(reads)
    number = key.removeprefix("immediate")
    at = 0 if key == "snapshot" else int(number) if number != key and number.isdecimal() else len(reads)
    return reads[at] if at < len(reads) else None


def types_inside(value: Sequence[Any]) -> tuple[Any, ...] | None:
    """Return the types inside a tuple of integers, strings and tuples, None if there is anything else.

    A list is taken as the tuple of its items.

    Signatures may be equal only with equal types: 1, True and 1.0 are equal to Python and different to a reader.
    """
    types = tuple(map(type, value))
    if _all_plain(types):
        return types
    out: list[Any] = []
    for item, t in zip(value, types, strict=True):
        inner = types_inside(item) if t is tuple else t if t is int or t in _PLAIN else None
        if inner is None:
            return None
        out.append(inner)
    return tuple(out)


@cache
def _all_plain(types: tuple[type, ...]) -> bool:
    return all(t is int or t in _PLAIN for t in types)


def _repeats_reads(key: str, value: object, described: OpDescription) -> bool:
    """Tell whether a parameter holds the very values that `OF_READS` would stand for."""
    if isinstance(value, Value):
        return value is of_reads(key, [access.value for access in described.reads])
    if key != "input_snapshots" or type(value) is not list or len(value) != len(described.reads):
        return False
    return all(each is access.value for each, access in zip(value, described.reads, strict=True))
