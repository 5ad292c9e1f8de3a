"""How the parameters and accesses of an op record become a template and numbers, and come back.

A *signature* is the tuple that records of one class share; `Mark`s in it stand for what each record adds to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen

from kernbench_core.regions import Region
from kernbench_core.values import OpId, Value

if TYPE_CHECKING:
    from kernbench_core.oplog import OpDescription

HEAD: Final = 5
"""Items of a signature before the accesses: kind, name, function, whether it writes, how many accesses."""

RawAccess = tuple[str, tuple[Region, ...], Value | None]


@frozen(eq=False)
class Mark:
    """Stands in a template for what a record adds; compared by identity, so that no parameter can equal it."""

    name: str


_INT: Final = Mark("int")  # the next integer
_FLOAT: Final = Mark("float")  # the next float
_SIDE: Final = Mark("side")  # the next object of the side table
_BASE: Final = Mark("base")  # (_BASE, j): the same integer as the base of the j-th access
_INTS: Final = Mark("ints")  # (_INTS, n): a list of the next n integers
_LIST: Final = Mark("list")  # (_LIST, items): a list
_TUPLE: Final = Mark("tuple")  # (_TUPLE, n): a tuple of the next n integers
_HANDLE: Final = Mark("handle")  # the name of the op: "pe3.17"
_PLAIN: Final = (str, bool, type(None))
_SMALLEST_ADDRESS: Final = 1 << 12


@cache
def _all_plain(types: tuple[type, ...]) -> bool:
    return all(t is int or t in _PLAIN for t in types)


def _types(value: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Return the types inside a tuple of integers, strings and tuples, None if there is anything else.

    Templates compare equal only with equal types: 1, True and 1.0 are equal to Python and different to a reader.
    """
    types = tuple(map(type, value))
    if _all_plain(types):
        return types
    out: list[Any] = []
    for item, t in zip(value, types, strict=True):
        if t is tuple:
            inner = _types(item)
            if inner is None:
                return None
            out.append(inner)
        elif t is int or t in _PLAIN:
            out.append(t)
        else:
            return None
    return tuple(out)


def encode_params(
    described: OpDescription, sig: list[Any], ints: list[int], floats: list[float], side: list[Any], huge: bool = False
) -> None:
    """Append each parameter to the signature, and what varies of it to the columns."""
    bases = tuple(ints)
    params = described.params
    handle = "pe{}.{}".format(*described.op_id) if "handle_id" in params and described.op_id is not None else None
    types: list[Any] = []
    add = sig.append
    add(tuple(params))
    for key, value in params.items():
        kind = type(value)
        if kind is str:
            add(_HANDLE if value == handle else value)
        elif kind is bool or value is None:
            add(value)
        elif kind is int and not huge:
            if value in bases and value >= _SMALLEST_ADDRESS:  # type: ignore[operator]
                add((_BASE, bases.index(value)))
            else:
                ints.append(value)  # type: ignore[arg-type]
                add(_INT)
        elif kind is tuple and (inner := _types(value)) is not None:  # type: ignore[arg-type]
            if not huge and key.endswith("addrs") and all(t is int for t in inner):
                ints.extend(value)  # type: ignore[arg-type]
                add((_TUPLE, len(value)))  # type: ignore[arg-type]
            else:
                add(value)
                types.append(inner)
        elif kind is float:
            floats.append(value)  # type: ignore[arg-type]
            add(_FLOAT)
        elif kind is list:
            _encode_list(value, sig, types, ints, side, huge)  # type: ignore[arg-type]
        else:
            side.append(value)
            add(_SIDE)
    sig.extend(types)


def _encode_list(
    value: list[Any], sig: list[Any], types: list[Any], ints: list[int], side: list[Any], huge: bool
) -> None:
    inner = _types(tuple(value))
    if inner is None:
        side.append(value)
        sig.append(_SIDE)
    elif not huge and all(t is int for t in inner):
        ints.extend(value)
        sig.append((_INTS, len(value)))
    else:
        types.append(inner)
        sig.append((_LIST, tuple(value)))


def decode_accesses(
    sig: tuple[Any, ...], ints: list[int], values: Iterator[Value], side: Iterator[Any]
) -> tuple[list[RawAccess], int, int]:
    """Return the accesses, where the parameters start in the signature, and how many integers were used."""
    at, used = HEAD, 0
    accesses: list[RawAccess] = []
    for _ in range(sig[4]):
        space, no_value, row_bytes, rows, pitch = sig[at : at + 5]
        at += 5
        if row_bytes is None:
            regions = next(side)
        elif not rows:
            regions = ()
        else:
            regions = (Region(ints[used], row_bytes, rows, pitch),)
            used += 1
        accesses.append((space, regions, None if no_value else next(values)))
    return accesses, at, used


def decode_params(
    sig: tuple[Any, ...],
    at: int,
    ints: list[int],
    used: int,
    floats: Iterator[float],
    side: Iterator[Any],
    op_id: OpId | None,
) -> dict[str, Any]:
    params: dict[str, Any] = {}
    handle = None if op_id is None else f"pe{op_id[0]}.{op_id[1]}"
    for i, key in enumerate(sig[at], at + 1):
        item = sig[i]
        mark = item[0] if type(item) is tuple and item else item
        if mark is _INT:
            params[key] = ints[used]
            used += 1
        elif mark is _FLOAT:
            params[key] = next(floats)
        elif mark is _SIDE:
            params[key] = next(side)
        elif mark is _BASE:
            params[key] = ints[item[1]]
        elif mark is _INTS:
            params[key] = ints[used : used + item[1]]
            used += item[1]
        elif mark is _TUPLE:
            params[key] = tuple(ints[used : used + item[1]])
            used += item[1]
        elif mark is _HANDLE:
            params[key] = handle
        elif mark is _LIST:
            params[key] = list(item[1])
        else:
            params[key] = item
    return params
