"""Arrays as bytes one behind the other, and tables by column: read without a copy, and only when they are looked at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from kernbench_core.cache import NotCacheable
from kernbench_core.host.figures.columns import ColumnSource, ColumnTable, TextColumn
from kernbench_core.values import dtypes

_ALIGN: Final = 16


class Arrays:
    """Takes arrays in, and gives their bytes."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0

    def add(self, array: Any) -> list[Any]:
        """Keep an array; return where it is, as JSON. NotCacheable for one of objects."""
        array = np.asarray(array)
        if array.dtype.hasobject:
            raise NotCacheable("the result has an array of objects, which the cache cannot keep.")
        data = array.tobytes()
        at = self._size
        padding = -len(data) % _ALIGN
        self._pieces += [data, bytes(padding)]
        self._size += len(data) + padding
        ours = dtypes.is_known(array.dtype) and array.dtype.isnative  # numpy cannot spell those of ml_dtypes
        dtype = dtypes.dtype_name(array.dtype) if ours else array.dtype.str
        return [dtype, list(array.shape), at, len(data)]

    def data(self) -> bytes:
        """Return all bytes."""
        return b"".join(self._pieces)


def array_at(data: bytes, said: list[Any]) -> Any:
    """Return an array of its bytes, which are not copied."""
    dtype, shape, at, size = said
    kind = dtypes.numpy_dtype(dtype) if dtype in dtypes.NAMES else np.dtype(dtype)
    return np.frombuffer(data, kind, count=size // kind.itemsize, offset=at).reshape(shape)


def table_json(table: ColumnTable, arrays: Arrays) -> dict[str, Any]:
    """Return a table as JSON, with its columns among the arrays."""
    columns: dict[str, Any] = {}
    for name in table.keys():  # noqa: SIM118 - iterating gives rows
        kept = table.column(name)
        texts: list[Any] | None = None
        if isinstance(kept, TextColumn):
            found, texts = kept.numbers, list(kept.texts)
        elif kept.dtype == object:
            known: dict[Any, int] = {}
            found = np.array([known.setdefault(each, len(known)) for each in kept.tolist()], np.int32)
            texts = list(known)
        else:
            found = kept
        if texts is not None and not all(type(text) is str for text in texts):
            raise NotCacheable(f"the result has a column {name!r} of objects, which the cache cannot keep.")
        columns[name] = {"array": arrays.add(found), **({} if texts is None else {"texts": texts})}
    return {"rows": len(table), "columns": columns}


def table_of(said: Mapping[str, Any], data: bytes) -> ColumnTable:
    """Return a table whose columns are read when they are looked at."""
    return ColumnTable(said["rows"], {name: _column(each, data) for name, each in said["columns"].items()})


def _column(said: Mapping[str, Any], data: bytes) -> ColumnSource:
    _, _, at, size = said["array"]
    if at + size > len(data):
        raise ValueError("an array must be among the bytes")

    def read() -> Any:
        found = array_at(data, said["array"])
        return TextColumn(found, said["texts"]) if "texts" in said else found

    return read
