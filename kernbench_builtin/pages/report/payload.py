"""Data inside of an HTML page: JSON that no text can break out of, and arrays of numbers packed small."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any, Final

import numpy as np

_TYPES: Final = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "float32", "float64")
#: Smaller ones stand as numbers in JSON.
_LEAST: Final = 32
#: What ends a script, begins a comment or a line to JavaScript, as JSON writes it otherwise.
_ESCAPES: Final = {char: f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}


def script_text(value: Any) -> str:
    """Return JSON of `value` for the inside of a `<script type="application/json">`.

    An array of numbers becomes `{"$": type, "n": length, "z": base64 of its deflated bytes}`; their bytes stand in
    planes, the first of each number, then the second, which packs smaller.
    """
    text = json.dumps(_plain(value), allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    for char, escape in _ESCAPES.items():  # much faster than one translate
        text = text.replace(char, escape)
    return text


def packed(array: np.ndarray[Any, Any]) -> dict[str, Any]:
    """Return one array of numbers, packed; ValueError for a type that a browser has no array of."""
    kind = array.dtype.name
    if kind not in _TYPES:
        raise ValueError(f"an array must be of {', '.join(_TYPES)}, not {kind}")
    little = np.ascontiguousarray(array.reshape(-1), dtype=array.dtype.newbyteorder("<"))
    planes = little.view(np.uint8).reshape(-1, little.itemsize).T
    data = zlib.compress(np.ascontiguousarray(planes).tobytes(), 6)
    return {"$": kind, "n": int(little.size), "z": base64.b64encode(data).decode()}


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return packed(value) if value.size >= _LEAST else {"$": value.dtype.name, "v": value.reshape(-1).tolist()}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, float) and (value != value or abs(value) == float("inf")):
        return None
    return value
