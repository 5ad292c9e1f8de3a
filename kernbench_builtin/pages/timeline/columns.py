"""Columns of numbers: of which type each is, kept in one piece, only read, and compared as a whole."""

from __future__ import annotations

from functools import partial
from typing import Any, Final, TypeAlias

import attrs
import numpy as np

Indices: TypeAlias = np.ndarray[Any, np.dtype[np.integer[Any]]]
Times: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
Amounts: TypeAlias = np.ndarray[Any, np.dtype[np.float32]]


class FixedColumns:
    """What has columns: a copy, also by way of a pickle, is made as the first was, and so is only read, too."""

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), attrs.astuple(self, recurse=False)  # type: ignore[arg-type]


def _only_read(kind: str, given: Any) -> np.ndarray[Any, Any]:
    """Return an array as a type, without the right to write; the array that was given keeps its own."""
    kept: np.ndarray[Any, Any] = np.ascontiguousarray(given, dtype=kind).view()
    kept.flags.writeable = False
    return kept


def _kept_as(kind: str) -> dict[str, Any]:
    """Return how a column of numbers of a type is kept: in one piece, only read, and compared as a whole."""
    return {
        "converter": partial(_only_read, kind),
        "eq": attrs.cmp_using(eq=np.array_equal),
        "metadata": {"column": kind},
    }


I1: Final = _kept_as("i1")
I4: Final = _kept_as("i4")
I8: Final = _kept_as("i8")
F4: Final = _kept_as("f4")
F8: Final = _kept_as("f8")


def column_names(columns: type[Any]) -> tuple[str, ...]:
    """Return the names of the columns of spans, of flows, or of an activity."""
    return tuple(field.name for field in attrs.fields(columns) if "column" in field.metadata)


def column_type(columns: type[Any], name: str) -> str:
    """Return the type of a column, as numpy calls it."""
    return str(getattr(attrs.fields(columns), name).metadata["column"])
