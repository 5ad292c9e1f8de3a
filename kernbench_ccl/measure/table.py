"""The table as nccl-tests prints it: header, a line for each row, footer; pure text, fitted to a width.

Without a width (in a pipe, in a file) the columns have nccl-tests' own widths, so that what reads it reads this.
In a narrow terminal columns move together; then root, redop and type go, which the header says, and the table says that
they went; a line that is still too long is the terminal's to wrap.

Source: NVIDIA nccl-tests (columns, units, factors, footer).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from attrs import evolve, frozen

from kernbench_core.values.dtypes import itemsize

if TYPE_CHECKING:
    from kernbench_ccl.plan import Settings
    from kernbench_ccl.plan.window import MessageWindow

OUT_OF_PLACE = "out-of-place"
IN_PLACE = "in-place"
LINK = "scale_up wire"
"""The kind of a scale-up link among resources."""


@frozen
class Busy:
    """The resource that was busy the longest, and for how much of the time of the collective (0 to 1)."""

    name: str
    kind: str
    utilisation: float

    @property
    def short(self) -> str:
        """Its name as a reader knows it: a link by the packages that it joins."""
        source, arrow, target = self.name.partition("->")
        if self.kind != LINK or not arrow:
            return self.name
        return "->".join(end.partition(".")[2 if end.startswith("fabric.") else 0] for end in (source, target))


@frozen
class Used:
    """What a run had where settings may leave it open: slots of a queue, bytes of one, their tier, PEs of a rank.

    `window` is what each PE could have under way, `message` the bytes of a full message.
    """

    slots: int | None
    slot_bytes: int | None
    tier: str | None
    pes: int
    window: MessageWindow | None = None
    message: int | None = None


@frozen
class Measured:
    """One collective that ran: its time, bandwidths (GB/s), wrong elements (None: not checked), and why it took that.

    `wall_s` is real time, `events` those of the simulator. `failures` say what is wrong with the data, `hazards` what
    is unordered, in lines; there are so many `races`.
    """

    time_ns: float
    algbw: float
    busbw: float
    wrong: int | None
    binds: Busy | None = None
    link: Busy | None = None
    events: int = 0
    wall_s: float = 0.0
    failures: tuple[str, ...] = ()
    hazards: tuple[str, ...] = ()
    used: Used | None = None
    races: int = 0

    @property
    def is_faulty(self) -> bool:
        """Whether its data is wrong or a race was found, so that its time says nothing."""
        return bool(self.wrong or self.races)


@frozen
class SweepRow:
    """One size: what nccl-tests prints of it, then the bound, the algorithm's closed form (ns) or why there is none.

    `settings` are those of the algorithm, `network` is the one that it is laid over.
    """

    size: int
    count: int
    dtype: str
    redop: str
    root: int
    algorithm: str
    out_of_place: Measured
    in_place: Measured | None
    bound_ns: float
    bound_reason: str = ""
    formula_ns: float | None = None
    formula_reason: str | None = None
    settings: Settings | None = None
    network: str | None = None

    @property
    def measured(self) -> tuple[Measured, ...]:
        """What ran: out of place, and in place where the collective has that."""
        return (self.out_of_place,) if self.in_place is None else (self.out_of_place, self.in_place)

    @property
    def called(self) -> str:
        """The name of the entry of ccl.yaml, or of the algorithm where it has none."""
        return self.algorithm if self.settings is None else self.settings.name

    @property
    def entry(self) -> str | None:
        """The entry of ccl.yaml that it ran by; None where it ran by its own name."""
        return None if self.called == self.algorithm else self.called

    @property
    def efficiency(self) -> float:
        """The bound over the time out of place, from 0 to 1."""
        return self.bound_ns / self.out_of_place.time_ns if self.out_of_place.time_ns else 0.0

    @property
    def wrong(self) -> int:
        """Wrong elements in and out of place."""
        return sum(m.wrong or 0 for m in self.measured)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON types: times in ns, bandwidths in GB/s, utilisation from 0 to 1."""
        return {
            "size": self.size,
            "count": self.count,
            "type": self.dtype,
            "redop": self.redop,
            "root": self.root,
            "algorithm": self.algorithm,
            "out_of_place": _measured_json(self.out_of_place),
            "in_place": None if self.in_place is None else _measured_json(self.in_place),
            "bound_ns": self.bound_ns,
            "bound_reason": self.bound_reason,
            "formula_ns": self.formula_ns,
            "formula_reason": self.formula_reason,
            "efficiency": self.efficiency,
            "settings": None if self.settings is None else self._settings_json(self.settings),
        }

    def _settings_json(self, settings: Settings) -> dict[str, Any]:
        used, item = self.out_of_place.used, itemsize(self.dtype)
        return {
            "entry": self.entry,
            "chunk_bytes": settings.chunk,
            "message_bytes": settings.tile(item) * item if used is None else used.message,
            "pipeline": settings.pipeline,
            "slots": settings.slots if used is None else used.slots,
            "slot_bytes": settings.slot_bytes if used is None else used.slot_bytes,
            "tier": settings.tier if used is None else used.tier,
            "pes": settings.pes if used is None else used.pes,
            "topology": self.network,
            "window": _window_json(None if used is None else used.window),
        }


def _window_json(window: MessageWindow | None) -> dict[str, Any] | None:
    if window is None:
        return None
    return {"bytes": min(window.under_way, window.queued), "wanted_bytes": window.wanted, "limit": window.limit}


def _measured_json(measured: Measured) -> dict[str, Any]:
    def busy(use: Busy | None) -> dict[str, Any] | None:
        return None if use is None else {"name": use.name, "kind": use.kind, "utilisation": use.utilisation}

    return {
        "time_ns": measured.time_ns,
        "algbw": measured.algbw,
        "busbw": measured.busbw,
        "wrong": measured.wrong,
        "faulty": measured.is_faulty,
        "binds": busy(measured.binds),
        "link": busy(measured.link),
        "events": measured.events,
        "wall_s": measured.wall_s,
        "failures": list(measured.failures),
        "hazards": list(measured.hazards),
    }


def fitted(value: float, width: int) -> str:
    """Write a number with two decimals, with fewer where they do not fit `width`, in powers of ten at last."""
    for decimals in (2, 1, 0):
        text = f"{value:.{decimals}f}"
        if len(text) <= width:
            return text
    return f"{value:.0e}"


@frozen
class Column:
    """One column: two lines of heading, the cells' width, the text of a cell; `left` is what it is aligned to."""

    title: str
    unit: str
    width: int
    cell: Callable[[SweepRow], str]
    group: str = ""
    left: bool = False

    def place(self, text: str) -> str:
        """Align a text, cut where it is too long."""
        if len(text) > self.width and self.left:
            text = text[: self.width - 1] + "…"
        return text.ljust(self.width) if self.left else text.rjust(self.width)


def _of(group: str, text: Callable[[Measured], str]) -> Callable[[SweepRow], str]:
    def cell(row: SweepRow) -> str:
        measured = row.out_of_place if group == OUT_OF_PLACE else row.in_place
        return "N/A" if measured is None else text(measured)

    return cell


def _group(name: str) -> tuple[Column, ...]:
    return (
        Column("time", "(us)", 7, _of(name, lambda m: fitted(m.time_ns / 1000, 7)), name),
        Column("algbw", "(GB/s)", 6, _of(name, lambda m: fitted(m.algbw, 6)), name),
        Column("busbw", "(GB/s)", 6, _of(name, lambda m: fitted(m.busbw, 6)), name),
        Column("#wrong", "", 6, _of(name, lambda m: "N/A" if m.wrong is None else f"{m.wrong:g}"), name),
    )


def _binds(row: SweepRow) -> str:
    use = row.out_of_place.binds
    return "-" if use is None else f"{use.utilisation:4.0%} {use.short}"


_PLAIN = (
    Column("size", "(B)", 12, lambda row: str(row.size)),
    Column("count", "(elements)", 12, lambda row: str(row.count)),
    Column("type", "", 8, lambda row: row.dtype),
    Column("redop", "", 6, lambda row: row.redop),
    Column("root", "", 6, lambda row: str(row.root)),
    *_group(OUT_OF_PLACE),
    *_group(IN_PLACE),
)
MORE = (
    Column("bound", "(us)", 8, lambda row: fitted(row.bound_ns / 1000, 7)),
    Column("formula", "(us)", 8, lambda row: "-" if row.formula_ns is None else fitted(row.formula_ns / 1000, 7)),
    Column("eff", "(%)", 5, lambda row: f"{100 * row.efficiency:.1f}"),
    Column("binds", "(out of place)", 28, _binds, left=True),
    Column("events", "", 9, lambda row: str(sum(m.events for m in row.measured))),
    Column("wall", "(s)", 6, lambda row: fitted(sum(m.wall_s for m in row.measured), 6)),
)
_LEAST_BINDS = 16
_GOES = ("root", "redop", "type")
"""Columns that a narrow terminal goes without, the first first: the lines above the table say what is in them."""
_WIDE_GOES = (*_GOES, "wall", "events", "count", IN_PLACE)
"""Those of a wide table: also what says least of why a row took its time."""


@frozen
class TableLayout:
    """The columns that are shown, and the blanks between them; `missing` names columns that are not shown."""

    columns: tuple[Column, ...]
    gap: int = 2
    missing: tuple[str, ...] = ()

    @property
    def width(self) -> int:
        """Characters of a line."""
        return sum(column.width for column in self.columns) + self.gap * (len(self.columns) - 1)

    def header(self) -> list[str]:
        """Return the lines above the rows, each begins with '#': names of halves where there are any, titles, units."""
        groups = self._join(self._group_cells()).rstrip()
        titles = self._join([column.place(column.title) for column in self.columns])
        units = self._join([column.place(column.unit) for column in self.columns])
        return [f"#{line[1:]}".rstrip() for line in (groups, titles, units) if line]

    def line(self, row: SweepRow) -> str:
        """Return the line of a row."""
        return self._join([column.place(column.cell(row)) for column in self.columns]).rstrip()

    def _group_cells(self) -> list[str]:
        """Write the name of each group in the middle of its columns."""
        cells: list[str] = []
        at = 0
        while at < len(self.columns):
            group = self.columns[at].group
            run = [c for c in self.columns[at:] if c.group == group] if group else [self.columns[at]]
            width = sum(c.width for c in run) + self.gap * (len(run) - 1)
            cells.append(group.center(width))
            at += len(run)
        return cells

    def _join(self, cells: Sequence[str]) -> str:
        return (" " * self.gap).join(cells)


def layout(width: int | None, *, largest: int, wide: bool = False) -> TableLayout:
    """Choose the columns for a terminal of `width` characters (None: no terminal), `largest` being the largest size.

    `wide` adds bound, formula, efficiency, what binds, events and wall time.
    """
    columns = (*_PLAIN, *(MORE if wide else ()))
    found = TableLayout(columns)
    narrow, goes = tightened(columns, largest), _WIDE_GOES if wide else _GOES
    for number in range(len(goes) + 1):
        if width is None or found.width <= width:
            break
        missing = goes[:number]
        left = (c for c in narrow if c.title not in missing and c.group not in missing)
        found = TableLayout(tuple(left), 1, missing[::-1])
    return found


def tightened(columns: Sequence[Column], largest: int) -> list[Column]:
    """Make columns as narrow as what is in them."""
    digits = max(len(str(largest)), len("size"), 5)
    tight = {"size": digits, "count": max(digits, 7), "type": 5, "redop": 5, "root": 4, "bound": 7, "formula": 7,
             "binds": _LEAST_BINDS}  # fmt: skip
    narrow = [evolve(c, width=tight.get(c.title, c.width)) for c in columns]
    return [evolve(c, unit="(elem)") if c.title == "count" else c for c in narrow]


def footer(rows: Sequence[SweepRow]) -> list[str]:
    """Return nccl-tests' last lines: the number of wrong values, and the mean of all bus bandwidths.

    Between them the number of races, where there are any.
    """
    measured = [m for row in rows for m in row.measured]
    checked = any(m.wrong is not None for m in measured)
    wrong = sum(m.wrong or 0 for m in measured)
    verdict = f"{wrong} {'FAILED' if wrong else 'OK'}" if checked else "not checked"
    mean = sum(m.busbw for m in measured) / len(measured) if measured else 0.0
    races = sum(m.races for m in measured)
    raced = [f"# Races                : {races} FAILED"] if races else []
    return [f"# Out of bounds values : {verdict}", *raced, f"# Avg bus bandwidth    : {mean:g}", "#"]
