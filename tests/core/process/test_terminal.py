"""Nothing that somebody else named acts on a terminal."""

from __future__ import annotations

import io
import unicodedata
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.table import Table
from rich.text import Text

from kernbench_core.cli.shell import Shell
from kernbench_core.process.terminal import shown
from kernbench_core.runs.text_report import ShowingConsole

HOSTILE = "\x1b]0;title\x07\x1b[31m\x9b2J\r\u202eab\udc80"
TEXT = r"\x1b]0;title\x07\x1b[31m\x9b2J\r\u202eab\udc80"


def acts(letter: str) -> bool:
    """Tell whether Unicode calls a character a control, a mark of direction, a line end or half of a surrogate."""
    turns = unicodedata.bidirectional(letter) in ("LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI")
    return (unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp") and letter not in "\n\t") or turns


def test_every_character_that_acts_is_written_out() -> None:
    """All of them, and no letter of any script."""
    for point in range(0x11000):
        letter = chr(point)
        found = shown(letter)
        assert not any(map(acts, found))
        if acts(letter):
            assert found == letter.encode("unicode_escape").decode()
        elif letter.isprintable():
            assert found == letter


@given(st.text())
def test_what_was_shown_stays(text: str) -> None:
    assert shown(shown(text)) == shown(text)


def test_an_example() -> None:
    assert shown(HOSTILE) == TEXT
    assert shown("größe 10 µs\n\t→ 三") == "größe 10 µs\n\t→ 三"


@pytest.mark.parametrize("colour", [None, "truecolor"])
def test_a_console_shows_text_and_keeps_its_own_colours(colour: Literal["truecolor"] | None) -> None:
    """In plain text, in styled text, and in the cells and titles of a table."""
    given, seen = HOSTILE.replace("\x07", "").replace("\r", ""), TEXT.replace(r"\x07", "").replace(r"\r", "")
    table = Table(given, title=given)
    table.add_row(Text(given, "bold"))
    for thing in (given, Text(given, "red"), table):  # rich leaves \x07 and \r out by itself
        stream = io.StringIO()
        console = ShowingConsole(file=stream, color_system=colour, force_terminal=True, width=200, highlight=False)
        console.print(thing, markup=False)
        written = stream.getvalue()
        for style in ("\x1b[31m", "\x1b[1m", "\x1b[0m", "\x1b[3m"):
            written = written.replace(style, "")
        assert not any(map(acts, written))
        assert seen in written


def test_messages_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """Warnings, errors, and problems that begin with a place."""
    shell = Shell()
    shell.warn(HOSTILE)
    shell.error(HOSTILE)
    assert shell.fail(3, HOSTILE, labelled=False) == 3
    assert capsys.readouterr().err == f"warning: {TEXT}\nerror: {TEXT}\n{TEXT}\n"
