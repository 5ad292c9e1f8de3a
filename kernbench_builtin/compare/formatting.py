"""A comparison in lines of plain text: what a terminal shows, and what a test says that fails."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from kernbench_builtin.compare.figures import COLUMNS
from kernbench_builtin.compare.folding import alike, share_text, together
from kernbench_builtin.compare.link_names import folded
from kernbench_builtin.compare.moved_rows import RATES
from kernbench_core.units import format_bandwidth, format_bytes, format_count, format_time
from kernbench_core.wording import brief

if TYPE_CHECKING:
    from kernbench_builtin.compare.moved_rows import ChangedInput, MovedFigure, MovedRow

#: What a sort is called where several are told.
HEADS: Final = {
    "total": "totals", "phase": "phases", "kernel": "kernels", "component kind": "kinds of components",
    "link kind": "kinds of links", "link": "links", "op": "ops", "line": "kernel lines of all PEs",
    "slowest PE": "kernel lines of the slowest PE", "path": "critical path",
    "place": "places on the critical paths of launches",
}  # fmt: skip
_CAUSES: Final = {"params": "parameter", "launches": "kernel", "options": "option", "sources": "source",
                  "models": "model", "plugins": "plug-in", "versions": "version"}  # fmt: skip
_FIGURES: Final = {"ns": "time", "gb_per_s": "bandwidth", "time_ns": "total time",
                   "kernel_time_ns": "time in kernels", "flop": "FLOP", "hbm_bytes": "HBM bytes"}  # fmt: skip
_DIGESTS: Final = ("sources", "models")
#: Letters of a value and of a digest, and of a line.
_LETTERS, _DIGEST, _WIDTH = 40, 12, 78
#: From here on a ratio is told as such, and not in percent.
_TIMES: Final = 10.0
#: Digits behind the point that two times may be told with before they are told apart.
_DIGITS: Final = 6


def total_line(before: float, after: float, same: bool = False) -> str:
    """Say in a line what became of a total time in ns; `same` where nothing else moved either."""
    if same:
        return f"the same: {format_time(after)}, and no figure moved"
    if before == after:
        return f"total time {format_time(after)}, the same"
    percent = percent_text(before, after)
    told = " → ".join(both_texts("time_ns", before, after))
    return f"total time {told}, {change_text('time_ns', after - before)}{f' ({percent})' if percent else ''}"


def sentence_lines(sentence: str) -> list[str]:
    """Break a sentence into lines of the width of a terminal; a path or a name is never broken."""
    return textwrap.wrap(sentence, _WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def section(head: str, lines: Iterable[str], most: int | None = None) -> list[str]:
    """Return lines below a head, `most` of them; nothing where there are none."""
    listed = [f"  {line}" for line in lines]
    return ["", head, *listed[:most], *_more(listed, len(listed) if most is None else most)] if listed else []


def rows_section(sort: str, rows: Sequence[MovedRow], top: int, hardly: int = 0) -> list[str]:
    """Say what became of the things of one sort, of the `top` at the head; the total time is told elsewhere.

    Links that moved alike are one thing. So many more moved `hardly`.
    """
    rows = [row for row in rows if (row.sort, row.name) != ("total", "time_ns")]
    if not rows:
        return []
    groups = alike(rows)
    single = len(COLUMNS.get(sort, ("",))) == 1
    told = _table(rows[:top]) if single else [line for group in groups[:top] for line in _listed(group)]
    head = HEADS[sort] if sort == "total" else f"{HEADS[sort]}, {len(rows):,} moved"
    left = sum(map(len, groups[top:]))
    less = [f"  … and {hardly:,} by less than 0.1 % or 1 ns"] if hardly else []
    return ["", head, *told, *([f"  … and {left:,} more"] if left else []), *less]


def unknown_section(unknown: Mapping[str, str]) -> list[str]:
    """Say what could not be compared, and what it takes: reasons by sort."""
    reasons: dict[str, list[str]] = {}
    for sort, why in unknown.items():
        reasons.setdefault(why, []).append(HEADS[sort])
    told = (f"not compared: {', '.join(sorts)} ({why})" for why, sorts in reasons.items())
    lines = [line for sentence in told for line in sentence_lines(sentence)]
    return ["", *lines] if lines else []


def cause_line(cause: ChangedInput) -> str:
    """Say in a line what was run otherwise."""
    name, before, after = cause_texts(cause)
    return f"{name}: {before} → {after}"


def cause_texts(cause: ChangedInput) -> tuple[str, str, str]:
    """Say what was run otherwise, what that was, and what it is."""
    sides = [_value(cause, side, brief) for side in ("before", "after")]
    plain = [_value(cause, side, _plain) for side in ("before", "after")]
    sides = sides if plain[0] == plain[1] else plain
    name = cause.name if cause.name == cause.sort else f"{_CAUSES.get(cause.sort, cause.sort)} {cause.name}"
    return name, sides[0], sides[1]


def figure_name(figure: str) -> str:
    """Return what a figure is called: "busy" for "busy_ns"."""
    return _FIGURES.get(figure, figure.removesuffix("_ns").replace("_", " "))


def figure_text(figure: str, value: float | None) -> str:
    """Write a figure with its unit; "none" for what was not there."""
    if value is None:
        return "none"
    if figure.endswith("ns"):
        return format_time(value)
    if figure.endswith("bytes"):
        return format_bytes(value)
    return format_bandwidth(value) if figure == "gb_per_s" else format_count(value)


def both_texts(figure: str, before: float | None, after: float | None) -> tuple[str, str]:
    """Write two figures so that they are told apart where they differ, and by about as much as they do."""
    texts = figure_text(figure, before), figure_text(figure, after)
    if before is None or after is None or before == after or texts[0] != texts[1]:
        return texts
    unit = " ns" if figure.endswith("ns") else " B" if figure.endswith("bytes") else ""
    change, digits = after - before, 0
    while digits < _DIGITS and abs(round(after, digits) - round(before, digits) - change) > abs(change) / 10:
        digits += 1
    return f"{before:,.{digits}f}{unit}", f"{after:,.{digits}f}{unit}"


def change_text(figure: str, change: float) -> str:
    """Write by how much a figure rose or fell, with its sign."""
    return f"{'+' if change > 0 else ''}{figure_text(figure, change)}"


def percent_text(before: float | None, after: float | None) -> str:
    """Say which part of what it was a figure rose or fell by; "" where that is no number."""
    if not before or after is None:
        return ""
    share = after / before - 1
    if abs(share) >= _TIMES:
        return f"{after / before:.3g} ×"
    return f"{share:+.2%}".replace("%", " %") if abs(share) >= 5e-5 else f"{100 * share:+.2g} %"


def moved_text(each: MovedFigure) -> str:
    """Say in words what became of one figure."""
    before, after = both_texts(each.figure, each.before, each.after)
    percent = percent_text(each.before, each.after)
    more = f" ({percent})" if percent else ""
    return f"{figure_name(each.figure)} {before} → {after}, {change_text(each.figure, each.change)}{more}"


def _listed(rows: Sequence[MovedRow]) -> Iterator[str]:
    """Yield a thing, or several alike, and below all figures that moved."""
    row = rows[0]
    if len(rows) == 1:
        yield shortened_line(f"  {name_text(row)}")
        yield from _flowing(_figures(row))
        return
    yield f"  {_count_of(rows)}, each {_each(row)}"
    yield from textwrap.wrap(
        ", ".join(folded(each.name for each in rows)), _WIDTH, initial_indent="    ", subsequent_indent="    ",
        break_on_hyphens=False, max_lines=2, placeholder=" …",
    )  # fmt: skip
    if sums := [moved_text(each) for each in together(rows)]:
        yield from _flowing([f"together {sums[0]}", *sums[1:]], ";")


def _flowing(parts: Iterable[str], between: str = "") -> Iterator[str]:
    """Yield parts in lines, as many in one as fit, with something `between` them."""
    parts = list(parts)
    parts = [*(f"{each}{between}" for each in parts[:-1]), parts[-1]]
    line = "   "
    for part in parts:
        if len(line) + len(part) + 2 > _WIDTH and line.strip():
            yield line
            line = "   "
        line += f" {part}"
    yield line


def _count_of(rows: Sequence[MovedRow]) -> str:
    """Say how many links these are, and of which kind: "16 hbm_ctrl channels"."""
    return f"{len(rows):,} {rows[0].about or 'link'}s"


def _each(row: MovedRow) -> str:
    """Say what moved of each of several things that moved alike."""
    rates = [each for each in row.moved if each.figure in RATES]
    if rates and rates[0].before is not None and rates[0].after is not None:
        return ", ".join(moved_text(each) for each in rates)
    shares = {share_text(each) for each in row.moved}
    if len(shares) == 1:
        share = shares.pop()
        return {"gone": "only in A", "new": "only in B", "from 0": "0 before"}.get(share, share)
    return ", ".join(f"{figure_name(each.figure)} {share_text(each)}" for each in row.moved)


def name_text(row: MovedRow) -> str:
    """Return what a thing is called, with what it is."""
    if row.sort == "total":
        return figure_name(row.name)
    return f"{row.name} ({row.about})" if row.about and row.sort == "link" else f"{row.name}  {row.about}".strip()


def _figures(row: MovedRow) -> Iterator[str]:
    """Yield what became of the figures of a thing; of one that only one run has, what they are there."""
    gone = all(each.after is None for each in row.moved)
    if gone or all(each.before is None for each in row.moved):
        yield f"only in {'A' if gone else 'B'}:"
        told = [f"{figure_name(m.figure)} {figure_text(m.figure, m.before if gone else m.after)}" for m in row.moved]
    else:
        told = [moved_text(each) for each in row.moved]
    yield from (f"{each};" for each in told[:-1])
    yield told[-1]


def shortened_line(line: str) -> str:
    """Cut a line to the width of a terminal."""
    return line if len(line) <= _WIDTH else f"{line[: _WIDTH - 1]}…"


def _table(rows: Sequence[MovedRow]) -> Iterator[str]:
    """Yield a line for each thing of which one figure moved, figures below each other."""
    cells = []
    for row in rows:
        one = row.moved[0]
        before, after = both_texts(one.figure, one.before, one.after)
        cells.append((before, after, change_text(one.figure, one.change), percent_text(one.before, one.after)))
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row, (before, after, change, percent) in zip(rows, cells, strict=True):
        told = f"{before:>{widths[0]}} → {after:<{widths[1]}}  {change:>{widths[2]}}  {percent:>{widths[3]}}"
        line = f"  {told}  {name_text(row)}"
        yield from [line] if len(line) <= _WIDTH else [f"  {told}".rstrip(), shortened_line(f"    {name_text(row)}")]


def _value(cause: ChangedInput, side: str, shown: Callable[[object, int], str]) -> str:
    value: Any = getattr(cause, side)
    if cause.absent == side:
        return "absent"
    if cause.sort in _DIGESTS:
        return value[:_DIGEST] if value else "unknown"
    return shown(value, _LETTERS)


def _plain(value: object, letters: int) -> str:
    """Write a value as a configuration has it: a short text without quotes."""
    if value is None:
        return "none"
    return value if isinstance(value, str) and 0 < len(value) <= letters else brief(value, letters)


def _more(rows: Sequence[object], top: int) -> list[str]:
    return [f"  … and {len(rows) - top:,} more"] if len(rows) > top else []
