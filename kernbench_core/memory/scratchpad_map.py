"""What the scratchpads held over time: a recorder that is attached when asked for, and what it found for a reader."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import PurePath
from typing import Any

import attrs

from kernbench_core.callsite import describe_site
from kernbench_core.memory.scratchpad import Birth, TcmBlock, TcmTable
from kernbench_core.units import format_bytes, format_time

_EIGHTHS = " ▁▂▃▄▅▆▇█"
_CHART_ROWS = 4
_MOST_ROWS = 12
_MOST_PES = 8


@attrs.frozen
class Held:
    """One block of a scratchpad: what it is for, the kernel line it was born at, where it lies, from when to when.

    `offset` and `nbytes` are bytes (rounded up to the alignment), times ns; `to_ns` is None for one that was held to
    the end.
    """

    op: str
    shape: tuple[int, ...]
    dtype: str
    line: str
    offset: int
    nbytes: int
    from_ns: float
    to_ns: float | None


@attrs.frozen
class TcmUse:
    """What one PE's scratchpad of `size` bytes held: the peak in bytes, when it was first reached (ns), and of what.

    `steps` are (ns, bytes): how much is held from that time on.
    """

    pe: str
    size: int
    peak_bytes: int
    peak_ns: float
    at_peak: tuple[Held, ...]
    steps: tuple[tuple[float, int], ...]


@attrs.frozen(repr=False)
class TcmMap:
    """What the scratchpads held, the PE with the highest peak first; `total_ns` is how long the run took."""

    uses: tuple[TcmUse, ...]
    total_ns: float

    def __repr__(self) -> str:
        most = "".join(f", at most {use.peak_bytes:,} B of {use.size:,} on {use.pe}" for use in self.uses[:1])
        return f"<TcmMap of {len(self.uses)} scratchpads{most}>"

    def to_json(self) -> list[dict[str, Any]]:
        """Return plain JSON types: what was held for the PE with the highest peak, the peaks of all."""
        return [
            {
                "pe": use.pe,
                "size": use.size,
                "peak_bytes": use.peak_bytes,
                "peak_ns": use.peak_ns,
                **({"at_peak": [attrs.asdict(held) for held in use.at_peak], "steps": use.steps} if not rank else {}),
            }
            for rank, use in enumerate(self.uses)
        ]


@attrs.define(eq=False)
class _Open:
    """A block that was handed out; it does not refer to the block, which lives as long as it is referred to."""

    birth: Birth
    offset: int
    nbytes: int
    from_ns: float
    to_ns: float | None = None

    def held(self) -> Held:
        birth = self.birth
        line = describe_site(birth.site)
        return Held(birth.op, birth.shape, birth.dtype, line, self.offset, self.nbytes, self.from_ns, self.to_ns)


@attrs.define(eq=False)
class _Log:
    table: TcmTable
    live: dict[int, _Open] = attrs.field(factory=dict)
    steps: list[tuple[float, int]] = attrs.field(factory=list)
    used: int = 0
    peak: int = 0
    peak_ns: float = 0.0
    at_peak: tuple[_Open, ...] = ()


class TcmRecorder:
    """Note what scratchpads hand out and take back. `now` tells the simulated time in ns."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._logs: list[_Log] = []

    def attach(self, table: TcmTable) -> None:
        """Record a scratchpad from now on."""
        log = _Log(table)
        self._logs.append(log)
        table.watch(partial(self._born, log), partial(self._gone, log))

    def result(self, total_ns: float) -> TcmMap:
        """Return what was found until now, highest peak first."""
        uses = []
        for log in self._logs:
            held = tuple(block.held() for block in log.at_peak)
            uses.append(TcmUse(log.table.pe, log.table.fit.size, log.peak, log.peak_ns, held, tuple(log.steps)))
        return TcmMap(tuple(sorted(uses, key=lambda use: (-use.peak_bytes, use.peak_ns, use.pe))), total_ns)

    def _born(self, log: _Log, block: TcmBlock) -> None:
        now, used = self._now(), log.table.fit.used
        log.live[block.address] = _Open(block.birth, block.offset, used - log.used, now)
        self._step(log, now, used)
        if used > log.peak:
            log.peak, log.peak_ns = used, now
            log.at_peak = tuple(log.live[address] for address in sorted(log.live))

    def _gone(self, log: _Log, address: int) -> None:
        now = self._now()
        log.live.pop(address).to_ns = now
        self._step(log, now, log.table.fit.used)

    def _step(self, log: _Log, now: float, used: int) -> None:
        log.used = used
        log.steps.append((now, used))


def lines(found: TcmMap, width: int = 80) -> list[str]:
    """Say what the scratchpads held: the PE with the highest peak in full, then the peaks of the others."""
    if not found.uses:
        return ["TCM: no kernel ran"]
    top, *others = found.uses
    if not top.peak_bytes:
        return ["TCM: no kernel held a tensor in a scratchpad (tiles of composites are staged in room of their own)"]
    out = [
        f"TCM of {top.pe}: at most {format_bytes(top.peak_bytes)} of {format_bytes(top.size)} "
        f"({top.peak_bytes / top.size:.1%}), first at {format_time(top.peak_ns)}"
    ]
    return [*out, *_chart(top, found.total_ns, width), *_table(top, width), *_others(others)]


def _chart(use: TcmUse, total_ns: float, width: int) -> list[str]:
    """Draw the bytes held over time: each column is the most of its stretch of time."""
    label = format_bytes(use.peak_bytes)
    columns = max(16, min(width, 100) - len(label) - 3)
    most = _most(use.steps, total_ns, columns)
    heights = [-(-bytes_held * _CHART_ROWS * 8 // use.peak_bytes) for bytes_held in most]
    out = []
    for row in reversed(range(_CHART_ROWS)):
        cells = "".join(_EIGHTHS[min(max(height - row * 8, 0), 8)] for height in heights)
        left = label if row == _CHART_ROWS - 1 else "0 B" if not row else ""
        out.append(f"{left:>{len(label)}} ▕{cells}".rstrip())
    end = format_time(total_ns)
    out.append(f"{'':{len(label)}}  0 ns{end:>{columns - 4}}")
    return out


def _most(steps: Sequence[tuple[float, int]], total_ns: float, columns: int) -> list[int]:
    """Return the most bytes held in each of `columns` equal stretches of the run."""
    most = [0] * columns
    stretch = total_ns / columns if total_ns else 1.0
    held = column = 0
    for now, used in steps:
        at = min(int(now / stretch), columns - 1)
        for between in range(column, at + 1):
            most[between] = max(most[between], held)
        column, held = at, used
        most[at] = max(most[at], used)
    for between in range(column, columns):
        most[between] = max(most[between], held)
    return most


def _table(use: TcmUse, width: int) -> list[str]:
    """List what is held at the peak, blocks of one line and shape together, the largest first."""
    groups: dict[tuple[str, str], list[Held]] = {}
    for held in use.at_peak:
        name = f"{held.op} {held.dtype} {list(held.shape)}"
        groups.setdefault((name, held.line), []).append(held)
    rows = []
    for (name, line), blocks in groups.items():
        ends = [held.to_ns for held in blocks]
        until = "the end" if None in ends else format_time(max(end for end in ends if end is not None))
        times = f"{len(blocks)} x " if len(blocks) > 1 else ""
        size = sum(held.nbytes for held in blocks)
        since = format_time(min(held.from_ns for held in blocks))
        rows.append((size, (f"{times}{name}", format_bytes(size), since, until, _short(line))))
    rows.sort(key=lambda row: -row[0])
    cells = [("held at the peak", "size", "from", "to", "born at"), *(row for _, row in rows[:_MOST_ROWS])]
    widths = [max(len(row[at]) for row in cells) for at in range(5)]
    out = []
    for row in cells:
        text = f"{row[0]:<{widths[0]}}  {row[1]:>{widths[1]}}  {row[2]:>{widths[2]}}  {row[3]:>{widths[3]}}  {row[4]}"
        out.append(text if len(text) <= width else f"{text[: width - 1]}…")
    if len(rows) > _MOST_ROWS:
        rest = sum(size for size, _ in rows[_MOST_ROWS:])
        out.append(f"and {len(rows) - _MOST_ROWS} more of {format_bytes(rest)}; --json lists all")
    return out


def _short(line: str) -> str:
    """Leave the folders of a kernel line out."""
    return PurePath(line).name


def _others(others: Sequence[TcmUse]) -> list[str]:
    if not others:
        return []
    if len(others) > _MOST_PES:
        least, most = others[-1], others[0]
        mean = sum(use.peak_bytes for use in others) / len(others)
        return [
            f"the {len(others)} other PEs: at most {format_bytes(most.peak_bytes)} ({most.pe}), on average "
            f"{format_bytes(round(mean))}, at least {format_bytes(least.peak_bytes)} ({least.pe})"
        ]
    name = max(len(use.pe) for use in others)
    size = max(len(format_bytes(use.peak_bytes)) for use in others)
    return [
        f"{use.pe:<{name}}  {format_bytes(use.peak_bytes):>{size}} at {format_time(use.peak_ns)}" for use in others
    ]
