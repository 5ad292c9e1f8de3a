"""Protobuf's wire format, as far as a writer needs it: tags, varints, and what has its length in front.

Source: protobuf.dev, "Encoding": a field is a tag, number * 8 + wire type, and a value; 0 is a varint, 1 eight bytes, 2
a length with so many bytes.
"""

from __future__ import annotations

import struct
from functools import lru_cache

_SEVEN = 0x7F


@lru_cache(1 << 16)
def varint(number: int) -> bytes:
    """Encode an integer: seven bits a byte, the lowest first; a negative one as 64 bits."""
    number &= (1 << 64) - 1
    out = bytearray()
    while number > _SEVEN:
        out.append(number & _SEVEN | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def integer(field: int, number: int) -> bytes:
    """Encode an integer, bool or enum field."""
    return varint(field << 3) + varint(number)


def fixed64(field: int, number: int) -> bytes:
    """Encode an integer field of eight bytes."""
    return varint(field << 3 | 1) + struct.pack("<Q", number)


def double(field: int, number: float) -> bytes:
    """Encode a float field of eight bytes."""
    return varint(field << 3 | 1) + struct.pack("<d", number)


def message(field: int, content: bytes) -> bytes:
    """Encode a field that holds a message, or bytes."""
    return varint(field << 3 | 2) + varint(len(content)) + content


def text(field: int, content: str) -> bytes:
    """Encode a text field."""
    return message(field, content.encode())
