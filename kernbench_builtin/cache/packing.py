"""Results as JSON and back: plain values, numpy arrays, and objects of classes of core."""

from __future__ import annotations

import base64
import functools
import importlib
import json
from collections.abc import Mapping
from typing import Any, Final

import attrs
import numpy as np

from kernbench_core.cache.dependencies import NotCacheable
from kernbench_core.values import dtypes

_MARK: Final = "@"
#: Where classes are from whose objects are made of what a file says: theirs do nothing when they are made.
_OURS: Final = ("kernbench_core.", "kernbench_builtin.")


def pack(value: Any) -> bytes:
    """Return a value as JSON, arrays in base 64; NotCacheable for what has no form."""
    return json.dumps(_encode(value), separators=(",", ":")).encode()


def unpack(packed: bytes) -> Any:
    """Return what was packed; raise whatever bytes that are no such ones lead to."""
    return _decode(json.loads(packed))


def _encode(value: Any) -> Any:
    kind = type(value)
    if value is None or kind in (bool, int, float, str):
        return value
    if kind is tuple:
        return [_encode(each) for each in value]
    if kind is list:
        return {_MARK: "list", "of": _encode(tuple(value))}
    if kind.__module__.startswith(_OURS):
        return _object(value)
    if isinstance(value, Mapping):
        return {_MARK: "dict", "of": _encode(tuple(value.items()))}
    if isinstance(value, np.generic):
        return _encode(value.item())
    if not isinstance(value, np.ndarray):
        what = f"{kind.__module__}.{kind.__qualname__}"
        raise NotCacheable(f"the result has a {what}, which the cache cannot keep; give numbers and texts.")
    return {_MARK: "array", "of": _array(value)}


def _object(value: Any) -> dict[str, Any]:
    """Take an object apart as a pickle does: what it is made of, its state, and what it has as a dict."""
    kind = type(value)
    if kind.__name__ == "Failure":
        value = attrs.evolve(value, value=None)  # it is of the run's memory, which stays behind
    _, made_of, state, _, items = (*value.__reduce_ex__(2), None, None, None)[:5]
    told = {"args": made_of[1:], "state": state, "items": dict(items or ())}
    said = {name: _encode(each) for name, each in told.items() if each}
    return {_MARK: f"{kind.__module__}:{kind.__qualname__}", **said}


def _array(array: Any) -> list[Any]:
    """Return the dtype, shape and bytes of an array."""
    ours = dtypes.is_known(array.dtype) and array.dtype.isnative  # numpy cannot spell those of ml_dtypes
    if array.dtype.hasobject or (not ours and np.dtype(array.dtype.str) != array.dtype):
        raise NotCacheable(f"the result has an array of {array.dtype}, which the cache cannot keep.")
    name = dtypes.dtype_name(array.dtype) if ours else array.dtype.str
    return [name, list(array.shape), base64.b64encode(array.tobytes()).decode()]


def _decode(said: Any) -> Any:
    if type(said) is list:
        return tuple([_decode(each) if type(each) in (list, dict) else each for each in said])
    if type(said) is not dict:
        return said
    held = {name: _decode(each) for name, each in said.items() if name != _MARK}
    if said[_MARK] == "array":
        dtype, shape, text = held["of"]
        kind = dtypes.numpy_dtype(dtype) if dtype in dtypes.NAMES else np.dtype(dtype)
        return np.frombuffer(base64.b64decode(text), kind).reshape(shape)
    if said[_MARK] in ("list", "dict"):
        return (list if said[_MARK] == "list" else dict)(held["of"])
    made: Any = (kind := _class(said[_MARK])).__new__(kind, *held.get("args", ()))
    if state := held.get("state"):
        made.__setstate__(state) if hasattr(made, "__setstate__") else vars(made).update(state)
    if items := held.get("items"):
        made.update(items)
    return made


@functools.cache
def _class(name: str) -> type:
    """Return a class of core by its name; ValueError for anything else."""
    module, _, qualname = name.partition(":")
    found = getattr(importlib.import_module(module), qualname) if module.startswith(_OURS) else None
    if not isinstance(found, type) or found.__module__ != module:
        raise ValueError(f"an object must be of a class of core, not {name}")
    return found
