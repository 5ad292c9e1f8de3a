"""Tables wrap at words only, in any width."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_core.cli.columns import fitted, lines_of, wrapped

WORDS = st.text(alphabet="abc-_.=é|1", min_size=1, max_size=12)
TEXTS = st.lists(WORDS, max_size=8).map(" ".join)
ROWS = st.integers(2, 4).flatmap(
    lambda columns: st.lists(
        st.tuples(WORDS, *[TEXTS] * (columns - 1)).map(list), min_size=1, max_size=4
    )
)


@given(rows=ROWS, wide=st.integers(1, 90))
def test_no_word_is_broken_and_no_line_is_too_long(rows: list[list[str]], wide: int) -> None:
    """Every word of every cell stands whole in some line, in its order; only a word alone may stand out."""
    header = [f"h{number}" for number in range(len(rows[0]))]
    lines = lines_of(header, rows, wide)
    words = [word for line in lines for word in line.replace(",", " ").split()]
    for row in rows:
        for word in (word for cell in row for word in cell.split()):
            assert word in words
    longest = max(len(word) for row in (header, *rows) for cell in row for word in (cell.split() or [""]))
    indent, titles = 4, 4
    assert all(len(line) <= max(wide, longest + indent + titles) for line in lines[1:])
    assert all(line == line.rstrip() for line in lines)


@given(rows=ROWS, wide=st.integers(1, 120))
def test_what_fits_is_as_wide_as_the_window_and_reads_back(rows: list[list[str]], wide: int) -> None:
    """Side by side, the words of each column are those of its cells: read off the lines by the columns' places."""
    header = [f"h{number}" for number in range(len(rows[0]))]
    lines = lines_of(header, rows, wide)
    if lines[0].startswith("h0, h1"):
        return  # paragraphs
    assert max(map(len, lines)) <= wide
    starts = [lines[0].index(title) for title in header]
    if any(all(cell.isdecimal() for cell in column) for column in zip(*rows, strict=True)):
        return  # their titles stand to the right
    for number, start in enumerate(starts):
        end = starts[number + 1] if number + 1 < len(starts) else None
        read = [word for line in lines[1:] for word in line[start:end].split()]
        assert read == [word for row in rows for word in row[number].split()]


@given(
    sizes=st.lists(st.tuples(st.integers(1, 20), st.integers(0, 60)), min_size=1, max_size=5), room=st.integers(0, 120)
)
def test_room_is_shared_out_fairly(sizes: list[tuple[int, int]], room: int) -> None:
    """Nobody has less than its least or more than it wants, and who has less than it wants has no less than another."""
    least, wanted = [low for low, _ in sizes], [low + more for low, more in sizes]
    widths = fitted(least, wanted, room)
    if widths is None:
        assert sum(least) > room
        return
    assert sum(widths) <= room
    assert all(low <= width <= want for low, width, want in zip(least, widths, wanted, strict=True))
    short = [width for width, want in zip(widths, wanted, strict=True) if width < want]
    for width, low in zip(widths, least, strict=True):
        assert not short or width <= max(low, min(short))
    assert not short or room - sum(widths) < len(sizes)


ROW = ["builtin.x", "4", "A processor that runs kernels.", "-"]


@pytest.mark.parametrize(
    ("wide", "lines"),
    [
        (
            80,
            ["name       PEs  what it is                      n", "builtin.x    4  A processor that runs kernels.  -"],
        ),
        (
            34,
            ["name       PEs  what it is       n", "builtin.x    4  A processor      -", "                that runs",
             "                kernels."],
        ),
        (
            20,
            ["name, PEs, what it is, n", "", "builtin.x", "  PEs: 4", "  what it is: A", "    processor that",
             "    runs kernels.", "  n: -"],
        ),
    ],
)  # fmt: skip
def test_a_table_at_three_widths(wide: int, lines: Sequence[str]) -> None:
    """Numbers stand right; where the words do not fit side by side, cells stand below one another."""
    assert lines_of(["name", "PEs", "what it is", "n"], [ROW], wide) == list(lines)


def test_a_word_longer_than_a_line_is_a_line() -> None:
    assert wrapped("see double-buffered-loads now", 10, "  ", "  ") == ["  see", "  double-buffered-loads", "  now"]
    assert wrapped("", 10, "  ", "  ") == [""]
