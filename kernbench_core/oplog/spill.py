"""Where the op log goes past its limit: columns and values whose older part lies in temporary files.

The files have no name (where the system allows it) and are gone with the log, whatever ends the process. Readers take
runs of rows, so that what is in memory does not grow with the log.
"""

from __future__ import annotations

import os
import tempfile
from array import array
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, overload
from weakref import WeakKeyDictionary, WeakValueDictionary, finalize

import numpy as np

from kernbench_core.errors import UsageError
from kernbench_core.oplog.packing import CHUNK, NumberArray, NumberColumn
from kernbench_core.values.arrays import Shape
from kernbench_core.values.value import LoadedValue, OpId, ResultValue, Value
from kernbench_core.values.views import AbstractValue

_ABSTRACT, _RESULT, _LOADED, _KEPT = range(4)



@contextmanager
def _explain_full_disk() -> Iterator[None]:
    """Say where there is no room, in place of an OSError that would look like a component's."""
    try:
        yield
    except OSError as error:
        raise UsageError(
            "the op log of a long run must go to temporary files, but that failed with "
            f"{error.strerror!r}; make room, or name another folder in TMPDIR."
        ) from None


class SpilledColumn(NumberColumn):
    """NumberArray of one type code of `array`: a file with the older ones, and `tail` with the rest."""

    def __init__(self, numbers: array[Any]) -> None:
        super().__init__(numbers)
        with _explain_full_disk():
            self._file = tempfile.TemporaryFile(prefix="kernbench-")  # noqa: SIM115 - it lives as long as the column
        finalize(self, self._file.close)

    def spill(self) -> None:
        """Move everything to the file."""
        with _explain_full_disk():
            self._file.seek(0, os.SEEK_END)
            self.tail.tofile(self._file)
            self._file.flush()
        self.older += len(self.tail)
        del self.tail[:]

    settle = spill

    def _older(self, start: int, stop: int) -> NumberArray:
        self._file.seek(start * self.dtype.itemsize)
        return np.fromfile(self._file, self.dtype, stop - start)


def take(column: NumberColumn | NumberArray, rows: NumberArray) -> NumberArray:
    """Return the numbers of a column at `rows`."""
    return column.take(rows) if isinstance(column, NumberColumn) else column[rows]


def chunks(rows: NumberArray | NumberColumn) -> Iterator[NumberArray]:
    """Yield an order of rows in pieces that are worth a call of numpy and take no room."""
    for start in range(0, len(rows), CHUNK):
        yield np.asarray(rows[start : start + CHUNK])


class SpilledValues:
    """The values that records name, in order: numbers of values; those that are only a shape and an op lie in files.

    A value that somebody still holds is given back as the same object, any other is made anew, equal in all that a run
    without data knows of it.
    """

    def __init__(self, values: Iterable[Value]) -> None:
        self._tail: list[Value] = list(values)
        self.append = self._tail.append
        self.extend = self._tail.extend
        self._refs = SpilledColumn(array("q"))
        self._table = [SpilledColumn(array(code)) for code in "biii"]  # kind, form, PE, issue number
        self._forms: dict[tuple[Shape, str], int] = {}
        self._form_list: list[tuple[Shape, str]] = []
        self._numbers: WeakKeyDictionary[Value, int] = WeakKeyDictionary()
        self._alive: WeakValueDictionary[int, Value] = WeakValueDictionary()
        self._kept: dict[int, Value] = {}
        self._abstracts: dict[int, AbstractValue] = {}

    def spill(self) -> None:
        """Write down what the last records name, and let go of it."""
        for value in self._tail:
            self._refs.append(self._number(value))
        self._tail.clear()
        self._settle()
        for column in (self._refs, *self._table):
            column.spill()

    def __len__(self) -> int:
        return len(self._refs) + len(self._tail)

    @overload
    def __getitem__(self, at: int) -> Value: ...

    @overload
    def __getitem__(self, at: slice) -> list[Value]: ...

    def __getitem__(self, at: int | slice) -> Value | list[Value]:
        if isinstance(at, slice):
            return [self[i] for i in range(*at.indices(len(self)))]
        if at < 0:
            at += len(self)
        known = len(self._refs)
        return self._tail[at - known] if at >= known else self._value(self._refs[at])

    def __iter__(self) -> Iterator[Value]:
        for number in self._refs:
            yield self._value(number)
        yield from self._tail

    def _number(self, value: Value) -> int:
        number = self._numbers.get(value)
        if number is None:
            number = self._numbers[value] = len(self._table[0])
            kind = _kind(value)
            if kind == _KEPT:
                self._kept[number] = value
            self._alive[number] = value
            self._describe(value, kind)
        return number

    def _describe(self, value: Value, kind: int) -> None:
        key = (value.shape, value.dtype)
        form = self._forms.setdefault(key, len(self._forms))
        if form == len(self._form_list):
            self._form_list.append(key)
        self._share(value, form)
        op_id: OpId | None = value.op_id if isinstance(value, ResultValue | LoadedValue) else None
        pe, issue = op_id or (-1, -1)
        for column, number in zip(self._table, (kind, form, pe, issue), strict=True):
            column.append(number)

    def _share(self, value: Value, form: int) -> None:
        """Keep what is behind a load: it is one object for all loads of a shape and dtype."""
        if isinstance(value, LoadedValue):
            content = value.content()
            if type(content) is AbstractValue:
                self._abstracts.setdefault(form, content)

    def _settle(self) -> None:
        """Let go of loads that had not completed when they were written down, and have by now."""
        for number, value in list(self._kept.items()):
            if isinstance(value, LoadedValue) and _kind(value) == _LOADED:
                del self._kept[number]
                self._share(value, self._forms[value.shape, value.dtype])

    def _value(self, number: int) -> Value:
        found = self._kept.get(number) or self._alive.get(number)
        if found is None:
            found = self._alive[number] = self._made(number)
            self._numbers[found] = number
        return found

    def _made(self, number: int) -> Value:
        kind, form, pe, issue = (column[number] for column in self._table)
        shape, dtype = self._form_list[form]
        if kind == _ABSTRACT:
            return AbstractValue(shape, dtype)
        if kind == _RESULT:
            return ResultValue((pe, issue), shape, dtype)
        return LoadedValue(shape, dtype, self._abstracts[form], None if pe < 0 else (pe, issue))


def _kind(value: Value) -> int:
    """Tell how a value is written down; one that is more than a shape and an op is kept."""
    if type(value) is AbstractValue:
        return _ABSTRACT
    if type(value) is ResultValue:
        return _RESULT
    if type(value) is LoadedValue and value.bound and not value.sources and type(value.content()) is AbstractValue:
        return _LOADED
    return _KEPT


def sorted_rows(
    t_start: NumberColumn, component: NumberColumn, rank: NumberArray, sequence: NumberColumn
) -> SpilledColumn:
    """Return the rows in the order (t_start, rank of the component, sequence), one stretch of time after the other.

    Rows are appended as they end, so those of a stretch of time lie close together.
    """
    bounds = _stretches(t_start)
    reach = [(start, *_reach(t_start[start : start + CHUNK])) for start in range(0, len(t_start), CHUNK)]
    order = SpilledColumn(array("q"))
    for low, high in pairwise(bounds):
        found = [np.empty(0, np.int64)]
        for start, first, last in reach:
            if first < high and last >= low:
                times = t_start[start : start + CHUNK]
                found.append(np.flatnonzero((times >= low) & (times < high)) + start)
        rows = np.concatenate(found)
        keys = (take(sequence, rows), rank[take(component, rows)], take(t_start, rows))
        order.extend(array("q", rows[np.lexsort(keys)].astype(np.int64).tobytes()))
        order.spill()
    return order


def _reach(times: NumberArray) -> tuple[float, float]:
    return float(times.min()), float(times.max())


def _stretches(t_start: NumberColumn) -> list[float]:
    """Return times that cut the run into stretches of about a chunk of rows each, the last one after all rows."""
    every = max(1, CHUNK // 64)
    sample = np.sort(np.concatenate([t_start[at : at + CHUNK][::every] for at in range(0, len(t_start), CHUNK)]))
    inner = np.unique(sample[64::64])
    return [-np.inf, *inner.tolist(), np.inf]
