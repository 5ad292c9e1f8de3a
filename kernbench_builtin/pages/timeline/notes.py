"""What is noted while a run goes on: rows of plain numbers, cheap to append and 8 B a number."""

from __future__ import annotations

import math
from array import array
from copy import copy
from struct import Struct
from typing import Any, Final, TypeAlias

import numpy as np

from kernbench_builtin.explain.causes import owner_of, sort_of
from kernbench_builtin.pages.timeline.call_stacks import CallStack
from kernbench_builtin.pages.timeline.timeline import op_number
from kernbench_core.callsite import CallSite
from kernbench_core.messages import Launch, MsgBase, Transaction

Readings: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]

PASSAGE: Final = ("edge", "start_ns", "end_ns", "nbytes", "message")
"""A passage over a wire: its edge id (less than 0 where it was held all that time), from and until when, payload, and
twice the message's number, plus 1 if reply."""

MESSAGE: Final = ("sort", "reply_sort", "op")
"""A message, in order of its number: what its way there and back is called, and the op that it works for (-1: none)."""

TRIP: Final = ("message", "sender", "born_ns", "answered_ns", "op")
"""A round trip to a memory: its message (-1: not numbered), the number of who sent it, from and until when, its op."""

PROGRAM: Final = ("launch", "pe", "x", "y", "z", "start_ns", "end_ns")
"""A program: its launch, PE and ids, from and until when (-1: to the end of the run)."""

STEP: Final = ("program", "start_ns", "end_ns", "stack", "op")
"""A time that a kernel was suspended: its program, from and until when, the stack of lines (-1: at its end), the op."""

USE: Final = ("place", "ns", "until_ns")
"""A time that a place was busy, or that a message waited there: the place, how many ns, until when; a place is an edge
id, or one less than 0 for a unit, -1 for the first."""

RECEIPT: Final = ("to_op", "from_op")
"""A message of queues: the op that received it, and the one that sent it."""


MOST_PASSAGES: Final = 20_000_000
"""So many passages (40 B each, and about 100 B while a timeline is made of them) are noted; then no more are."""


_TIMES: Final = {"passages": "end_ns", "trips": "answered_ns", "busy": "until_ns", "waits": "until_ns"}


class NoteRows(bytearray):
    """Rows of plain numbers, added by `rows.extend(rows.pack(…))`: a third of the time of an array's `extend`."""

    def __init__(self, columns: tuple[str, ...], numbers: bytes = b"") -> None:
        super().__init__(numbers)
        self.columns = columns
        self.pack = Struct(f"{len(columns)}d").pack

    def table(self) -> Readings:
        """Return a copy of them, a row each."""
        return np.frombuffer(bytes(self)).reshape(-1, len(self.columns))


class Notes:
    """Keep what was seen: a flat run of numbers for each sort of row, and tables of what numbers stand for.

    Passages are noted from `since` ns on, `until` a time, which comes sooner where there are more than `most`.
    """

    def __init__(self, since: float = 0.0, until: float = math.inf, most: int = MOST_PASSAGES) -> None:
        self.since, self.until = since, until
        self.full_ns: float | None = None
        self._room = most * len(PASSAGE) * 8
        self.messages, self.programs = array("d"), array("d")  # whose numbers change
        self.passages, self.trips, self.steps = NoteRows(PASSAGE), NoteRows(TRIP), NoteRows(STEP)
        self.receipts, self.busy, self.waits = NoteRows(RECEIPT), NoteRows(USE), NoteRows(USE)
        #: What numbers stand for: ways of messages, senders, kernel lines, stacks of their numbers, launches.
        self.sorts: dict[str, int] = {}
        self.senders: dict[str, int] = {}
        # kernel lines with their file: code that is the same in two files is equal
        self.sites: dict[tuple[str, CallSite], int] = {}
        self.stacks: dict[tuple[int, ...], int] = {}
        self.launches: dict[Launch, int] = {}

    def latest(self, most: int, now: float) -> Notes:
        """Return what was noted since the last `most` passages before `now` began; of programs and messages, all."""
        begins = self.passages.table()[:, PASSAGE.index("start_ns")]
        begins = begins[begins < now]  # others have booked their wire, and wait
        if len(begins) <= most:
            return self
        found = copy(self)
        found.since = float(np.partition(begins, len(begins) - most)[len(begins) - most])
        for name, end in _TIMES.items():
            rows: NoteRows = getattr(self, name)
            table = rows.table()
            kept = table[table[:, rows.columns.index(end)] > found.since]
            setattr(found, name, NoteRows(rows.columns, kept.tobytes()))
        return found

    def number(self, msg: MsgBase) -> int:
        """Return twice the number of a message, plus 1 for a reply; one that is new gets its own."""
        messages = self.messages
        mark: int | None = getattr(msg, "mark", None)
        if mark is None:
            mark = msg.mark = len(messages) // len(MESSAGE)
            messages.extend((-1, -1, op_for(msg)))
            if len(self.passages) > self._room and self.full_ns is None:
                self.full_ns = self.until = max(msg.head, 0.0)
        if messages[at := len(MESSAGE) * mark + msg.reply] < 0:
            messages[at] = self.sorts.setdefault(_words(msg), len(self.sorts))
        return 2 * mark + msg.reply

    def came_back(self, sender: str, trip: Transaction) -> None:
        """Note a round trip to a memory, when its answer is back at its sender."""
        number = self.senders.setdefault(sender, len(self.senders))
        mark: int | None = getattr(trip, "mark", None)
        trips = self.trips
        trips.extend(trips.pack(-1 if mark is None else mark, number, trip.born, trip.tail, op_for(trip)))

    def begun(self, launch: Launch, pe: int, program: tuple[int, int, int], now: float) -> int:
        """Note that a program begins at `now` ns; return its number."""
        number = self.launches.setdefault(launch, len(self.launches))
        self.programs.extend((number, pe, *program, now, -1))
        return len(self.programs) // len(PROGRAM) - 1

    def ended(self, program: int, now: float) -> None:
        """Note that a program, by its number, is over at `now` ns, and all that it left in flight."""
        self.programs[len(PROGRAM) * (program + 1) - 1] = now

    def suspended(self, program: int, since: float, now: float, stack: CallStack, op: int) -> None:
        """Note that a program waited at a line (none: its end) from `since` to `now` ns, for an op (-1: several).

        That may have taken no time: it is then noted for the line of the op alone.
        """
        sites = self.sites
        lines = tuple([sites.setdefault((site[0].co_filename, site), len(sites)) for site in stack])
        number = self.stacks.setdefault(lines, len(self.stacks)) if lines else -1
        self.steps.extend(self.steps.pack(program, since, now, number, op))


def rows_of(numbers: array[float] | NoteRows, columns: tuple[str, ...]) -> dict[str, Readings]:
    """Return the columns of rows that were appended to one run of numbers."""
    table = np.frombuffer(bytes(numbers)).reshape(-1, len(columns))
    return {name: np.ascontiguousarray(table[:, at]) for at, name in enumerate(columns)}


def op_for(msg: MsgBase) -> int:
    """Return the number of the op that a message works for, -1 where it works for none."""
    owner = owner_of(msg)
    if owner is None and isinstance(msg, Transaction):
        asker = getattr(msg.on_done, "__self__", None)
        owner = owner_of(asker) if isinstance(asker, MsgBase) else None
    return -1 if owner is None else op_number(*owner[0])


_TRAVELS: Final = {
    "read": ("read request", "read data"),
    "write": ("write data", "write done"),
    "atomic": ("atomic op", "atomic done"),
}


def _words(msg: MsgBase) -> str:
    """Say what travels: a read's answer is its data, a write's an acknowledgement."""
    if isinstance(msg, Transaction):
        return _TRAVELS[msg.op][msg.reply]
    sort = sort_of(msg)
    return f"{sort} done" if msg.reply and sort in ("tile", "order", "request") else sort
