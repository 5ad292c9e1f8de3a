"""Many records read from the columns at once, without rebuilding one: what phase 2 computes in batches from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from kernbench_core.oplog.columns import Columns, Ints
from kernbench_core.oplog.forms import RecordForm
from kernbench_core.oplog.spill import take
from kernbench_core.values.value import OpId, Value


class RecordBatch:
    """Some records of a log at once, as columns: `rows` are their numbers as appended, in any order.

    All else names a record by its position in `rows`. Nothing is rebuilt that is not asked for: `by_form` groups the
    records by what they share, `integers` and `bases` give a number of many of them as one array, `values` and
    `params` are those of one record. What is given lasts as long as the log.
    """

    def __init__(self, columns: Columns, rows: Sequence[int] | Ints) -> None:
        self.rows: Ints = np.asarray(rows, np.int64)
        #: By record the number of its template; records of one number have one form.
        self.template: Ints = take(columns.template, self.rows).astype(np.int64, copy=False)
        self._columns = columns
        self._starts = tuple(take(starts, self.rows) for starts in columns.row_starts())

    def __len__(self) -> int:
        return len(self.rows)

    def form(self, at: int) -> RecordForm:
        """Return what a record shares with others."""
        return self._columns.form(int(self.template[at]))

    def by_form(self) -> Iterator[tuple[RecordForm, Ints]]:
        """Yield each form with the positions of its records, ascending; forms by their first record in the log."""
        order = np.argsort(self.template, kind="stable")
        numbers, first = np.unique(self.template[order], return_index=True)
        bounds = [*first.tolist(), len(order)]
        for number, start, stop in zip(numbers.tolist(), bounds, bounds[1:], strict=False):
            yield self._columns.form(number), order[start:stop]

    def ops(self) -> list[OpId]:
        """Return PE and issue number of each record, (-1, -1) where it is no op."""
        pes, issues = take(self._columns.op_pe, self.rows), take(self._columns.op_issue, self.rows)
        return list(zip(pes.tolist(), issues.tolist(), strict=True))

    def starts(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Return when the service of each record began, in ns."""
        return take(self._columns.t_start, self.rows)

    def integers(self, name: str, at: Ints | None = None) -> Ints:
        """Return a parameter of records (all, or those `at`) that is a plain integer, 0 where it is none."""
        return self._numbers(lambda form: form.int_places.get(name, -1), at)

    def bases(self, access: int, at: Ints | None = None) -> Ints:
        """Return the base of the one region of access number `access` of records, 0 where it has none or several."""
        return self._numbers(
            lambda form: form.base_places[access] if -len(form.base_places) <= access < len(form.base_places) else -1,
            at,
        )

    def values(self, at: int) -> list[Value]:
        """Return the values of a record's accesses, of reads first; accesses that name none are left out."""
        start = int(self._starts[2][at])
        return self._columns.values[start : start + self._columns.templates[int(self.template[at])].values]

    def params(self, at: int) -> dict[str, Any]:
        """Return the parameters of a record, all of them, made for the caller; its accesses are not rebuilt."""
        columns, number, row = self._columns, int(self.template[at]), int(self.rows[at])
        template, form = columns.templates[number], columns.form(number)
        start, float_start = int(self._starts[0][at]), int(self._starts[1][at])
        ints = columns.ints[start : start + template.ints].tolist() if template.ints else ()
        floats = columns.floats[float_start : float_start + template.floats].tolist() if template.floats else ()
        side = iter(columns.side.get(row, ())[form.several :] if template.side else ())
        given = iter(self.values(at))
        reads = [None if no_value else next(given) for _, no_value, *_ in form.geometry]
        op_id = (columns.op_pe[row], columns.op_issue[row]) if columns.op_pe[row] >= 0 else None
        return form.params(ints, floats, side, op_id, reads[: len(reads) - form.writes])

    def _numbers(self, place: Callable[[RecordForm], int], at: Ints | None) -> Ints:
        """Return one integer of each record, by its place among those of the records of its form."""
        chosen = self.template if at is None else self.template[at]
        starts = self._starts[0] if at is None else self._starts[0][at]
        places = np.full(int(chosen.max(initial=-1)) + 1, -1, np.int64)
        for number in np.unique(chosen).tolist():
            places[number] = place(self._columns.form(number))
        offset = places[chosen]
        found = np.zeros(len(chosen), np.int64)
        there = np.flatnonzero(offset >= 0)
        found[there] = take(self._columns.ints, starts[there] + offset[there])
        return found
