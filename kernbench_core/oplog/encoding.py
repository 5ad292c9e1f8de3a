"""One byte encoding per thing, the same in every process: what hashes of logs and manifests are made of.

It is never read back. A saved run has to be, and writes in a form of its own what it can give back; of anything else it
keeps this encoding.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from enum import Enum

import numpy as np
from attrs import fields, frozen, has

from kernbench_core.values.value import Value


@frozen
class Encoded:
    """Stand for a thing of which only its encoding is left; it counts as that thing."""

    encoding: bytes


def canonical(thing: object) -> bytes:
    """Return a canonical, prefix-free encoding: type tag, length, content.

    Understands None, bool, int, float, str, bytes, types, enums, sequences, mappings (sorted by encoded key), numpy
    arrays and scalars, attrs objects; of values their shape and dtype. Anything else is encoded by its type's name.
    A class that says `CANONICAL_NAME` goes by that name, so that its own may change and hashes stay.
    """
    if thing is None:
        return b"n"
    kind = type(thing)
    if kind is bool:
        return b"t" if thing else b"f"
    if kind is int:
        return _framed(b"i", str(thing).encode())
    if type(thing) is float:
        return b"d" + struct.pack("<d", thing)
    if type(thing) is str:
        return _framed(b"s", thing.encode())
    if type(thing) is bytes:
        return _framed(b"b", thing)
    if type(thing) is tuple or type(thing) is list:
        return _framed(b"(" if kind is tuple else b"[", b"".join(map(canonical, thing)))
    return _canonical_object(thing, kind)


def _canonical_object(thing: object, kind: type) -> bytes:
    if isinstance(thing, Encoded):
        return thing.encoding
    if isinstance(thing, type):
        return _framed(b"T", _name(thing).encode())
    if isinstance(thing, Enum):
        return _framed(b"e", f"{_name(kind)}.{thing.name}".encode())
    if isinstance(thing, np.ndarray | np.generic):
        data = np.asarray(thing)
        return _framed(b"a", canonical((data.dtype.name, data.shape)) + data.tobytes())
    if isinstance(thing, Value):
        return _framed(b"v", canonical((thing.dtype, thing.shape)))
    if isinstance(thing, Mapping):
        pairs = sorted((canonical(k), canonical(v)) for k, v in thing.items())
        return _framed(b"{", b"".join(k + v for k, v in pairs))
    if has(kind):
        inner = tuple(getattr(thing, f.name) for f in fields(kind))
        return _framed(b"o", canonical(_name(kind)) + canonical(inner))
    return _framed(b"?", _name(kind).encode())


def _name(kind: type) -> str:
    return str(getattr(kind, "CANONICAL_NAME", kind.__name__))


def _framed(tag: bytes, content: bytes) -> bytes:
    return tag + struct.pack("<q", len(content)) + content
