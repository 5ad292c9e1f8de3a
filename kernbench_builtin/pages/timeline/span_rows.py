"""Rows of spans as they are collected: from several sources, in any order, on tracks that have no place yet."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from kernbench_builtin.pages.timeline.columns import Indices, column_names, column_type
from kernbench_builtin.pages.timeline.timeline import Spans

Cells: TypeAlias = "np.ndarray[Any, Any] | float"


class SpanRows:
    """Collect spans; `names` are what they are called, by their text."""

    def __init__(self) -> None:
        self.names: dict[str, int] = {}
        self._parts: dict[str, list[np.ndarray[Any, Any]]] = {name: [] for name in column_names(Spans)}
        self._count = 0

    def name(self, text: str) -> int:
        """Return the number of a name."""
        return self.names.setdefault(text, len(self.names))

    def add(
        self,
        track: Cells,
        name: Cells,
        start_ns: Cells,
        end_ns: Cells,
        *,
        line: Cells = -1,
        op: Cells = -1,
        nbytes: Cells = 0,
        parent: Cells = -1,
        message: Cells = -1,
    ) -> Indices:
        """Add rows, one or as many as the longest column has; return their numbers."""
        given = track, name, start_ns, end_ns, line, op, nbytes, parent, message
        for column, cells in zip(self._parts, np.broadcast_arrays(*map(np.atleast_1d, given)), strict=True):
            self._parts[column].append(cells.astype(column_type(Spans, column)))
        rows = np.arange(self._count, self._count + len(cells))
        self._count += len(cells)
        return rows

    def column(self, name: str) -> np.ndarray[Any, Any]:
        """Return what was added so far of one column."""
        parts = self._parts[name]
        self._parts[name] = parts = [np.concatenate(parts)] if parts else [np.empty(0, column_type(Spans, name))]
        return parts[0]

    def finish(self, track_numbers: Indices) -> tuple[Spans, Indices]:
        """Return the spans in order, on tracks as numbered in the end, and the new number of each row."""
        columns = {name: self.column(name) for name in self._parts}
        columns["track"] = np.asarray(track_numbers)[columns["track"]]
        # what encloses comes first: the longest, and of two alike the one that is the other's parent
        order = np.lexsort((columns["parent"] >= 0, -columns["end_ns"], columns["start_ns"], columns["track"]))
        number = np.empty(len(order), np.int64)
        number[order] = np.arange(len(order))
        parent = columns["parent"]
        columns["parent"] = np.where(parent >= 0, number[parent], -1) if len(parent) else parent
        return Spans(**{name: cells[order] for name, cells in columns.items()}), number
