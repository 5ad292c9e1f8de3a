"""What scratchpads held over time, for a reader in a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from kernbench_core.runs.text_report import show
from kernbench_core.units import format_bytes, format_time

if TYPE_CHECKING:
    from rich.console import Console

    from kernbench_builtin.explain.scratchpad_map import Held, TcmMap, TcmUse

_EIGHTHS = " ▁▂▃▄▅▆▇█"
_CHART_ROWS = 4
_MOST_ROWS = 12
_MOST_PES = 8


def print_tcm_map(found: TcmMap, console: Console) -> None:
    """Print what the scratchpads held over time."""
    show(Group(Text(""), *(Text(line, no_wrap=True) for line in lines(found, console.width))), console)


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
