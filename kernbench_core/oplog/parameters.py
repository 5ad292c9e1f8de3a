"""How the parameters and accesses of an op record become a signature and numbers, and come back.

A *signature* is the tuple that records of one class share; each record adds integers, floats and, rarely, objects of a
side table. Logging is on the path of every kernel command: what parameters of the same names and types have in common
is worked out once, in a `ParamPlan`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen

from kernbench_core.values.region import Region
from kernbench_core.values.value import OpId, Value

if TYPE_CHECKING:
    from kernbench_core.oplog.description import OpDescription

HEAD: Final = 5
"""Items of a signature before the accesses: kind, name, function, whether it writes, how many accesses."""

# One letter for each parameter says where it is.
_INT: Final = "i"  # the integer column
_FLOAT: Final = "f"  # the float column
_CONST: Final = "c"  # the signature: a string, a bool or None
_TUPLE: Final = "t"  # the signature: a tuple of integers, strings, bools, None and such tuples
_LIST: Final = "l"  # the signature: the same as a list
_ADDRESSES: Final = "a"  # the integer column, after all single integers: a tuple of integers, as addresses vary
_ADDRESS_LIST: Final = "A"  # the same as a list
_HANDLE: Final = "h"  # nowhere: it is the name of the op, "pe3.17"
_READ: Final = "r"  # nowhere: values of the record's reads
_SIDE: Final = "s"  # the side table
_PLAIN: Final = (str, bool, type(None))

RawAccess = tuple[str, tuple[Region, ...], Value | None]
PackedParams = tuple[tuple[str, ...], str, tuple[Any, ...], tuple[Any, ...], tuple[int, ...]]
Getter = Callable[[tuple[Any, ...]], tuple[Any, ...]]


class OfReads:
    """Stand for a parameter that repeats values of the record's reads; the log keeps those once.

    What it becomes follows from the parameter's name: `input_snapshots` is a list of the values of all reads,
    `snapshot` the value of the first, `immediateN` that of read N.
    """


OF_READS: Final = OfReads()


@frozen(eq=False)
class ParamPlan:
    """Where parameters of given names and types go; `codes` is None where that depends on more than the types."""

    codes: str | None
    ints: Getter
    floats: Getter
    consts: Getter
    tuples: Getter
    addresses: Getter
    handle: int


Plans = dict[tuple[tuple[str, ...], tuple[type, ...]], ParamPlan]


def encode_params(
    described: OpDescription, ints: list[int], floats: list[float], side: list[object], plans: Plans, huge: bool = False
) -> PackedParams:
    """Append what varies to the columns; return the rest of the signature: names, letters, constants, types, counts."""
    params = described.params
    keys, values = tuple(params), tuple(params.values())
    types = tuple(map(type, values))
    plan = plans.get((keys, types))
    if plan is None:
        plan = plans[keys, types] = _plan(keys, types)
    if plan.codes is None or huge:
        return _encode_singly(described, keys, values, ints, floats, side, huge)
    nested = tuple(map(types_inside, plan.tuples(values)))
    if None in nested or (plan.handle >= 0 and values[plan.handle] != handle_of(described.op_id)):
        return _encode_singly(described, keys, values, ints, floats, side, huge)
    counts: tuple[int, ...] = ()
    consts = plan.consts(values)
    if _LIST in plan.codes:
        consts = tuple([tuple(each) if type(each) is list else each for each in consts])
    addresses = plan.addresses(values)
    if addresses:
        if not all(_all_ints(tuple(map(type, each))) for each in addresses):
            return _encode_singly(described, keys, values, ints, floats, side, huge)
        counts = tuple(map(len, addresses))
    ints += plan.ints(values)
    floats += plan.floats(values)
    for each in addresses:
        ints += each
    return keys, plan.codes, consts, nested, counts


def decode_params(
    packed: PackedParams,
    ints: list[int],
    used: int,
    floats: Iterator[float],
    side: Iterator[Any],
    op_id: OpId | None,
    reads: Sequence[Value | None],
) -> dict[str, Any]:
    """Rebuild the parameters; `used` integers of the row belong to its accesses, `reads` are the values it reads."""
    keys, codes, constants, _, counts = packed
    consts, lengths = iter(constants), iter(counts)
    later = used + codes.count(_INT)
    params: dict[str, Any] = {}
    for key, code in zip(keys, codes, strict=True):
        if code == _INT:
            params[key] = ints[used]
            used += 1
        elif code in (_CONST, _TUPLE):
            params[key] = next(consts)
        elif code == _FLOAT:
            params[key] = next(floats)
        elif code == _LIST:
            params[key] = list(next(consts))
        elif code == _HANDLE:
            params[key] = handle_of(op_id)
        elif code == _READ:
            params[key] = of_reads(key, reads)
        elif code == _SIDE:
            params[key] = next(side)
        else:
            length = next(lengths)
            found = ints[later : later + length]
            params[key] = found if code == _ADDRESS_LIST else tuple(found)
            later += length
    return params


def decode_accesses(
    sig: tuple[Any, ...], ints: list[int], values: Iterator[Value], side: Iterator[Any]
) -> tuple[list[RawAccess], int, int]:
    """Return the accesses, where the parameters start in the signature, and how many integers were used."""
    at, used = HEAD, 0
    accesses: list[RawAccess] = []
    for _ in range(sig[4]):
        space, no_value, row_bytes, rows, pitch = sig[at : at + 5]
        at += 5
        regions: tuple[Region, ...] = ()
        if row_bytes is None:
            regions = next(side)
        elif rows:
            regions = (Region(ints[used], row_bytes, rows, pitch),)
            used += 1
        accesses.append((space, regions, None if no_value else next(values)))
    return accesses, at, used


def int_offset(sig: tuple[Any, ...], name: str) -> int:
    """Return where among the integers of a row a plain integer parameter is, -1 where a signature has none of it."""
    at = HEAD + 5 * sig[4]
    keys, codes = sig[at], sig[at + 1]
    number = keys.index(name) if name in keys else -1
    if number < 0 or codes[number] != _INT:
        return -1
    used: int = sum(bool(rows) for rows in sig[HEAD + 3 : at : 5])
    return used + int(codes[:number].count(_INT))


def handle_of(op_id: OpId | None) -> str | None:
    """Return the name that a record's `handle_id` has by custom."""
    return None if op_id is None else f"pe{op_id[0]}.{op_id[1]}"


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


@cache
def _all_ints(types: tuple[type, ...]) -> bool:
    return all(t is int for t in types)


def _plan(keys: tuple[str, ...], types: tuple[type, ...]) -> ParamPlan:
    codes = [_code(key, kind) for key, kind in zip(keys, types, strict=True)]

    def getter(letters: str) -> Getter:
        at = [i for i, code in enumerate(codes) if code is not None and code in letters]
        if len(at) > 1:
            return itemgetter(*at)
        return (lambda values: (values[at[0]],)) if at else (lambda values: ())

    known = None if None in codes else "".join(code for code in codes if code is not None)
    handle = codes.index(_HANDLE) if _HANDLE in codes else -1
    return ParamPlan(
        codes=known,
        ints=getter(_INT),
        floats=getter(_FLOAT),
        consts=getter(_CONST + _TUPLE + _LIST),
        tuples=getter(_TUPLE + _LIST),
        addresses=getter(_ADDRESSES + _ADDRESS_LIST),
        handle=handle,
    )


def _code(key: str, kind: type) -> str | None:
    """Return the letter of a parameter whose name and type say it all, or None."""
    if kind is int:
        return _INT
    if kind is float:
        return _FLOAT
    if kind is str and key == "handle_id":
        return _HANDLE
    if kind in _PLAIN:
        return _CONST
    if kind is tuple:
        return _ADDRESSES if key.endswith("addrs") else _TUPLE
    if kind is list and key != "input_snapshots":
        return _ADDRESS_LIST if key.endswith("addrs") else _LIST
    return _READ if kind is OfReads else None


def _encode_singly(
    described: OpDescription,
    keys: tuple[str, ...],
    values: tuple[Any, ...],
    ints: list[int],
    floats: list[float],
    side: list[object],
    huge: bool,
) -> PackedParams:
    """Encode parameters one by one: those with lists, objects, or (`huge`) integers beyond 64 bits among them."""
    codes, consts, nested, counts, later = "", [], [], [], []
    for key, value in zip(keys, values, strict=True):
        kind = type(value)
        inner = types_inside(tuple(value)) if kind is tuple or kind is list else None
        if kind is OfReads or _repeats_reads(key, value, described):
            codes += _READ
        elif (kind is int and not huge) or kind is float:
            codes += _INT if kind is int else _FLOAT
            (ints if kind is int else floats).append(value)
        elif kind is str and key == "handle_id":
            same = value == handle_of(described.op_id)
            codes += _HANDLE if same else _SIDE
            side += [] if same else [value]
        elif kind in _PLAIN:
            codes += _CONST
            consts.append(value)
        elif inner is None or (huge and key.endswith("addrs")):
            codes += _SIDE
            side.append(value)
        elif key.endswith("addrs") and all(t is int for t in inner):
            codes += _ADDRESSES if kind is tuple else _ADDRESS_LIST
            later += value
            counts.append(len(value))
        else:
            codes += _TUPLE if kind is tuple else _LIST
            consts.append(tuple(value))
            nested.append(inner)
    ints += later
    return keys, codes, tuple(consts), tuple(nested), tuple(counts)


def _repeats_reads(key: str, value: object, described: OpDescription) -> bool:
    """Tell whether a parameter holds the very values that `OF_READS` would stand for."""
    if isinstance(value, Value):
        return value is of_reads(key, [access.value for access in described.reads])
    if key != "input_snapshots" or type(value) is not list or len(value) != len(described.reads):
        return False
    return all(each is access.value for each, access in zip(value, described.reads, strict=True))
