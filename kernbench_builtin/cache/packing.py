"""Results as JSON and the bytes of arrays, and back: plain values, numpy arrays, and objects of classes of core."""

from __future__ import annotations

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
_BOXES: Final = (list, dict)


def pack(value: Any) -> dict[str, bytes]:
    """Return the files of a value; NotCacheable for what has no form."""
    arrays = bytearray()
    said = json.dumps(_encode(value, arrays), separators=(",", ":"))
    return {"said.json": said.encode(), "arrays": bytes(arrays)}


def unpack(files: Mapping[str, bytes]) -> Any:
    """Return what was packed; raise whatever files that are no such ones lead to."""
    return _decode(json.loads(files["said.json"]), files["arrays"])


def _encode(value: Any, arrays: bytearray) -> Any:
    kind = type(value)
    if value is None or kind in (bool, int, float, str):
        return value
    if kind is tuple:
        return [_encode(each, arrays) for each in value]
    if kind is list:
        return {_MARK: "list", "of": [_encode(each, arrays) for each in value]}
    if kind.__module__.startswith(_OURS):
        return _object(value, arrays)
    if isinstance(value, Mapping):
        return {_MARK: "dict", "of": [[_encode(one, arrays) for one in pair] for pair in value.items()]}
    if isinstance(value, np.ndarray):
        if value.dtype == object:
            return {_MARK: "objects", "of": [_encode(each, arrays) for each in value.tolist()]}
        return {_MARK: "array", "of": _array(value, arrays)}
    if isinstance(value, np.generic):
        return _encode(value.item(), arrays)
    for base in (int, float, str):
        if isinstance(value, base):
            return base(value)  # which had a class of its own
    raise NotCacheable(
        f"the result has a {kind.__module__}.{kind.__qualname__}, which the cache cannot keep; give numbers and texts."
    )


def _object(value: Any, arrays: bytearray) -> dict[str, Any]:
    """Take an object apart as a pickle does: what it is made of, its state, and what it has as a dict."""
    kind = type(value)
    if kind.__name__ == "Failure":
        value = attrs.evolve(value, value=None)  # it is of the run's memory, which stays behind
    _, made_of, state, _, items = (*value.__reduce_ex__(2), None, None, None)[:5]
    told = {"args": made_of[1:], "state": state, "items": None if items is None else dict(items)}
    said = {name: _encode(each, arrays) for name, each in told.items() if each}
    return {_MARK: f"{kind.__module__}:{kind.__qualname__}", **said}


def _array(array: Any, arrays: bytearray) -> list[Any]:
    """Add the bytes of an array to the others; return where they are, of which dtype and shape."""
    at = len(arrays)
    arrays += array.tobytes()
    ours = dtypes.is_known(array.dtype) and array.dtype.isnative  # numpy cannot spell those of ml_dtypes
    if not ours and np.dtype(array.dtype.str) != array.dtype:
        raise NotCacheable(f"the result has an array of {array.dtype}, which the cache cannot keep.")
    return [dtypes.dtype_name(array.dtype) if ours else array.dtype.str, list(array.shape), at]


def _decode(said: Any, data: bytes) -> Any:
    if type(said) is list:
        return tuple([_decode(each, data) if type(each) in _BOXES else each for each in said])
    if type(said) is not dict:
        return said
    mark = said[_MARK]
    if mark == "list":
        return [_decode(each, data) for each in said["of"]]
    if mark == "dict":
        return dict(_decode(said["of"], data))
    if mark == "array":
        dtype, shape, at = said["of"]
        kind = dtypes.numpy_dtype(dtype) if dtype in dtypes.NAMES else np.dtype(dtype)
        return np.frombuffer(data, kind, int(np.prod(shape, dtype=np.int64)), at).reshape(shape)
    if mark == "objects":
        array = np.empty(len(said["of"]), object)
        array[:] = [_decode(each, data) for each in said["of"]]
        return array
    return _made(_class(mark), **{name: _decode(each, data) for name, each in said.items() if name != _MARK})


def _made(kind: Any, args: tuple[Any, ...] = (), state: Any = None, items: Any = None) -> Any:
    made = kind.__new__(kind, *args)
    if state:
        made.__setstate__(state) if hasattr(made, "__setstate__") else vars(made).update(state)
    if items:
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
