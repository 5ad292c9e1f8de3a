"""Arrows between spans: from a kernel line to its op, to the memory and back, and from a send to its receipt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs
import numpy as np

from kernbench_builtin.pages.timeline.columns import Indices, Times, column_names
from kernbench_builtin.pages.timeline.notes import Readings
from kernbench_builtin.pages.timeline.timeline import FLOWS, Flows


@attrs.frozen(eq=False)
class Passed:
    """Rows of what passed: which message, as twice its number, plus 1 for a reply, and whether over a channel."""

    rows: Indices
    messages: Indices
    inner: np.ndarray[Any, np.dtype[np.bool_]]


@attrs.frozen(eq=False)
class SpanEnds:
    """Spans by row: when each begins and ends."""

    start_ns: Times
    end_ns: Times

    def within(self, rows: Indices, times: Times) -> Times:
        """Return times that lie in spans: those given, or where one is beyond its span, the nearest in it."""
        found: Times = np.clip(times, self.start_ns[rows], self.end_ns[rows])
        return found


class Found:
    """Look up rows by a number that few have: the first row of each."""

    def __init__(self, numbers: Indices, rows: Indices) -> None:
        known = numbers >= 0
        self._numbers, first = np.unique(numbers[known], return_index=True)
        self._rows = rows[known][first]

    def of(self, numbers: Indices) -> Indices:
        """Return the row of each number, -1 where there is none."""
        if not len(self._numbers):
            return np.full(len(numbers), -1)
        at = np.minimum(np.searchsorted(self._numbers, numbers), len(self._numbers) - 1)
        return np.where(self._numbers[at] == numbers, self._rows[at], -1)


def issues(ends: SpanEnds, steps: Indices, step_ops: Indices, ops: Found) -> Flows:
    """Return arrows from where a kernel was when it issued a command to what its unit did of it."""
    to = ops.of(step_ops)
    kept = to >= 0
    rows, to = steps[kept], to[kept]
    return _flows("issue", ends, rows, ends.start_ns[to], to, ends.start_ns[to])


def receipts(ends: SpanEnds, noted: Mapping[str, Readings], ops: Found) -> Flows:
    """Return arrows from the beginning of each send to the end of the receipt that got its message."""
    begin, to = (ops.of(noted[name].astype(np.int64)) for name in ("from_op", "to_op"))
    kept = (begin >= 0) & (to >= 0)
    begin, to = begin[kept], to[kept]
    return _flows("send", ends, begin, ends.start_ns[begin], to, ends.end_ns[to])


def round_trips(ends: SpanEnds, noted: Mapping[str, Readings], passed: Passed, ops: Found) -> list[Flows]:
    """Return arrows from who asked a memory to its channel, and back; without either, from or to a wire next to it."""
    message = noted["message"].astype(np.int64)
    born, answered = noted["born_ns"], noted["answered_ns"]
    asker = ops.of(noted["op"].astype(np.int64))
    outside = (ends.start_ns[asker] > born) | (ends.end_ns[asker] < answered) if len(ends.start_ns) else asker < 0
    asker = np.where(outside, -1, asker)
    order = np.lexsort((ends.start_ns[passed.rows], passed.messages))
    there, back, inner = (_by_message(passed, order, which) for which in ("there", "back", "inner"))
    begin = np.where(asker >= 0, asker, there[0].of(message))
    end = np.where(asker >= 0, asker, back[1].of(message))
    channel = inner[0].of(message)
    reached = np.where(channel >= 0, channel, there[1].of(message))
    left = np.where(channel >= 0, channel, back[0].of(message))
    flows = []
    for kind, source, at, to, until in (("request", begin, born, reached, None), ("answer", left, None, end, answered)):
        kept = (source >= 0) & (to >= 0) & (source != to)
        rows, targets = source[kept], to[kept]
        leaves = ends.end_ns[rows] if at is None else at[kept]
        comes = ends.start_ns[targets] if until is None else until[kept]
        flows.append(_flows(kind, ends, rows, leaves, targets, comes))
    return flows


def _by_message(passed: Passed, order: Indices, which: str) -> tuple[Found, Found]:
    """Return, by message, the first and the last of its passages: over wires there or back, or over channels."""
    reply = passed.messages[order] % 2 == 1
    inner = passed.inner[order]
    wanted = inner if which == "inner" else ~inner & (reply if which == "back" else ~reply)
    chosen = order[wanted]
    numbers, rows = passed.messages[chosen] // 2, passed.rows[chosen]
    return Found(numbers, rows), Found(numbers[::-1], rows[::-1])


def _flows(kind: str, ends: SpanEnds, rows: Indices, leaves: Times, to: Indices, comes: Times) -> Flows:
    kinds = np.full(len(rows), FLOWS.index(kind))
    return Flows(kinds, rows, ends.within(rows, leaves), to, ends.within(to, comes))


def joined(flows: Iterable[Flows], numbers: Indices) -> Flows:
    """Return all arrows together, in order of time, between rows as numbered in the end."""
    several = [*flows]
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(each, name) for each in several]) if several else np.empty(0)
        for name in column_names(Flows)
    }
    for end in ("from_span", "to_span"):
        columns[end] = numbers[columns[end].astype(np.int64)]
    order = np.lexsort((columns["to_span"], columns["from_span"], columns["from_ns"]))
    return Flows(**{name: cells[order] for name, cells in columns.items()})
