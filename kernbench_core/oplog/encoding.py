"""One byte encoding per thing, the same in every process: what hashes of logs and manifests are made of.

It is never read back. A saved run has to be, and writes in a form of its own what it can give back; of anything else it
keeps this encoding.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from functools import lru_cache
from operator import attrgetter
from typing import Any

import numpy as np
from attrs import fields, frozen, has

from kernbench_core.values.region import Region
from kernbench_core.values.value import Value

_Encoder = Callable[[Any], bytes]
_length = struct.Struct("<q").pack


@frozen
class Encoded:
    """Stand for a thing of which only its encoding is left; it counts as that thing."""

    encoding: bytes


def canonical(thing: object) -> bytes:
    """Return a canonical, prefix-free encoding: type tag, length, content.

    Understands None, bool, int, float, str, bytes, types, enums, sequences, mappings (sorted by encoded key), numpy
    arrays and scalars, attrs objects; of values their shape and dtype. Anything else is encoded by its type's name.
    """
    kind = type(thing)
    return (_ENCODERS.get(kind) or _encoder(kind))(thing)


def _encoder(kind: type) -> _Encoder:
    """Return what encodes the things of a class that was not met before; it is kept for the next one."""
    encoder = _made_encoder(kind)
    _ENCODERS[kind] = encoder
    return encoder


def _made_encoder(kind: type) -> _Encoder:
    if issubclass(kind, Encoded):
        return attrgetter("encoding")
    if issubclass(kind, type):
        return lambda thing: _framed(b"T", thing.__name__.encode())
    if issubclass(kind, Enum):
        return lambda thing: _framed(b"e", f"{kind.__name__}.{thing.name}".encode())
    if issubclass(kind, str):
        return lambda thing: _framed(b"s", str(thing).encode())
    if issubclass(kind, np.ndarray | np.generic):
        return _array
    if issubclass(kind, Value):
        return lambda thing: _framed(b"v", canonical((thing.dtype, thing.shape)))
    if issubclass(kind, Mapping):
        return _mapping
    name = canonical(kind.__name__)
    if not has(kind):
        return lambda _: _framed(b"?", kind.__name__.encode())
    names = [field.name for field in fields(kind)]
    return lambda thing: _framed(b"o", name + _sequence(b"(", [getattr(thing, name) for name in names]))


def _integer(thing: int) -> bytes:
    digits = b"%d" % thing  # framed here: most of what there is are integers
    return b"i" + _length(len(digits)) + digits


def _array(thing: np.ndarray | np.generic) -> bytes:
    data = np.asarray(thing)
    return _framed(b"a", canonical((data.dtype.name, data.shape)) + data.tobytes())


def _mapping(thing: Mapping[object, object]) -> bytes:
    return _framed(b"{", b"".join(k + v for k, v in sorted((canonical(k), canonical(v)) for k, v in thing.items())))


def _sequence(tag: bytes, things: Iterable[object]) -> bytes:
    return _framed(tag, b"".join([(_ENCODERS.get(type(each)) or _encoder(type(each)))(each) for each in things]))


def _framed(tag: bytes, content: bytes) -> bytes:
    return tag + _length(len(content)) + content


def _region(thing: Region) -> bytes:
    digits = b"%d" % thing.base
    before, behind = _around(len(digits), thing.row_bytes, thing.rows, thing.pitch)
    return before + digits + behind


@lru_cache(maxsize=4096)
def _around(digits: int, row_bytes: int, rows: int, pitch: int) -> tuple[bytes, bytes]:
    """Encode what thousands of regions of a log have in common: all but the digits of where they begin."""
    behind = _integer(row_bytes) + _integer(rows) + _integer(pitch)
    base = b"i" + _length(digits)
    numbers = b"(" + _length(len(base) + digits + len(behind)) + base
    return b"o" + _length(len(_REGION) + len(numbers) + digits + len(behind)) + _REGION + numbers, behind


#: What encodes the things of exactly a class.
_ENCODERS: dict[type, _Encoder] = {
    Region: _region,
    type(None): lambda _: b"n",
    bool: lambda thing: b"t" if thing else b"f",
    int: _integer,
    float: lambda thing: b"d" + struct.pack("<d", thing),
    str: lambda thing: _framed(b"s", thing.encode()),
    bytes: lambda thing: _framed(b"b", thing),
    tuple: lambda thing: _sequence(b"(", thing),
    list: lambda thing: _sequence(b"[", thing),
}
_REGION = canonical("Region")
