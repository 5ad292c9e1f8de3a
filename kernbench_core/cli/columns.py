"""Columns of text that line up, and wrap at words only, whatever the width."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Collection, Iterable, Sequence

import rich_click as click

from kernbench_core.process.terminal import shown, shown_in_line

GAP = 2
"""Blanks between two columns."""


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print columns that line up, nothing drawn; the header is bold in a terminal.

    Where even the longest words do not fit side by side, each row is a paragraph, its cells one below the other.
    """
    cells = [[shown_in_line(cell) for cell in row] for row in rows]
    for number, line in enumerate(lines_of(header, cells, width())):
        click.secho(line, bold=number == 0) if line else click.echo()


def width() -> int:
    """Return how many characters a line has: those of the terminal, else COLUMNS, else 160."""
    from kernbench_core.runs.text_report import make_console

    return make_console(sys.stdout).width


def paragraph(text: str, indent: str = "  ", first: str | None = None, most: int | None = None) -> None:
    """Print a text wrapped at words, each line behind `indent`, the first one behind `first` where that is given."""
    click.echo(shown("\n".join(wrapped(text, most or width(), indent, indent if first is None else first))))


def wrapped(text: str, wide: int, indent: str = "", first: str = "") -> list[str]:
    """Return the lines of a text wrapped at blanks; a word that is longer than a line is a line."""
    return textwrap.wrap(
        text, max(1, wide), initial_indent=first, subsequent_indent=indent, break_long_words=False,
        break_on_hyphens=False,
    ) or [first.rstrip()]  # fmt: skip


def lines_of(header: Sequence[str], rows: Sequence[Sequence[str]], wide: int) -> list[str]:
    """Return the lines of a table that is at most `wide` characters wide, where its words allow that."""
    columns = list(zip(header, *rows, strict=True))
    longest = [max(map(len, column)) for column in columns]
    least = [max(len(word) for cell in column for word in (cell.split() or [""])) for column in columns]
    least[0] = longest[0]  # what a row is found by stays whole
    widths = fitted(least, longest, wide - GAP * (len(columns) - 1))
    if widths is None:
        return _paragraphs(header, rows, wide)
    numbers = {at for at, (_, *column) in enumerate(columns) if all(_is_count(cell) for cell in column)}
    return [line for row in (header, *rows) for line in _row(row, widths, numbers)]


def fitted(least: Sequence[int], wanted: Sequence[int], room: int) -> list[int] | None:
    """Share out `room` characters: each column has its least, and what it wants up to one level; None for too few.

    So a long text wraps, and the short ones beside it stay whole.
    """
    if sum(least) > room:
        return None
    widths = list(least)
    for level in range(1, max(wanted, default=0) + 1):
        higher = [max(low, min(want, level)) for low, want in zip(least, wanted, strict=True)]
        if sum(higher) > room:
            break
        widths = higher
    return widths


def _is_count(cell: str) -> bool:
    return cell.isdecimal() or cell == "-"


def _row(row: Sequence[str], widths: Sequence[int], numbers: Collection[int]) -> Iterable[str]:
    """Yield the lines of a row whose cells wrap within their widths; those of the columns `numbers` stand right."""
    cells = [wrapped(cell, width) for cell, width in zip(row, widths, strict=True)]
    for at in range(max(map(len, cells))):
        texts = [cell[at] if at < len(cell) else "" for cell in cells]
        sides = [">" if column in numbers else "<" for column in range(len(texts))]
        filled = (f"{text:{side}{wide}}" for text, side, wide in zip(texts, sides, widths, strict=True))
        yield (" " * GAP).join(filled).rstrip()


def _paragraphs(header: Sequence[str], rows: Sequence[Sequence[str]], wide: int) -> list[str]:
    """Return each row as its first cell, and below it the others, each behind its title."""
    lines = [", ".join(filter(None, header))]
    for row in rows:
        lines += ["", row[0]]
        for title, cell in zip(header[1:], row[1:], strict=True):
            lines += wrapped(f"{title}: {cell}" if title else cell, wide, "    ", "  ") if cell else []
    return lines
