"""A small terminal: run a program in one, and see what is left on its screen."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
from collections.abc import Sequence

from tests.core.forked import Forked, Program

_PART = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z])|([^\x1b])", re.DOTALL)


def run_in_terminal(program: Program, width: int, *, piped: bool = False) -> tuple[str, str]:
    """Run a program in a terminal of `width` columns; return what the terminal got, and with `piped` its stdout."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 60, width, 0, 0))
    environment = {**os.environ, "TERM": "xterm"}
    environment.pop("COLUMNS", None)
    stdout = subprocess.PIPE if piped else theirs
    with Forked(program, stdin=theirs, stdout=stdout, stderr=theirs, env=environment) as process:
        os.close(theirs)
        seen = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # how Linux says that nobody has the other end any more
                break
            if not part:
                break
            seen += part
        out = process.stdout.read() if process.stdout is not None else ""
    os.close(ours)
    return seen.decode(), out


def screen(seen: str, width: int) -> list[str]:
    """Return the lines that a terminal shows after it got `seen`; raise for a control that is not known here."""
    rows: list[list[str]] = [[]]
    row = column = end = 0
    while end < len(seen):
        part = _PART.match(seen, end)
        assert part is not None, f"not known here: {seen[end : end + 20]!r}"
        end = part.end()
        control, letter = part[2], part[3]
        if control == "A":
            row, column = max(0, row - int(part[1] or 1)), min(column, width - 1)
        elif control == "K":
            assert part[1] == "2", f"not known here: {part[0]!r}"
            rows[row] = []
        elif control is not None:
            assert control in "hlm", f"not known here: {part[0]!r}"
        elif letter == "\r":
            column = 0
        elif letter == "\n":
            row += 1
        else:
            if column == width:
                row, column = row + 1, 0
            while len(rows) <= row:
                rows.append([])
            rows[row] += " " * (column + 1 - len(rows[row]))
            rows[row][column] = letter
            column += 1
        while len(rows) <= row:
            rows.append([])
    lines = ["".join(line).rstrip() for line in rows]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def wrapped(lines: Sequence[str], width: int) -> list[str]:
    """Return lines as a terminal of `width` columns shows them by itself."""
    return [line[at : at + width].rstrip() for line in lines for at in range(0, max(1, len(line)), width)]
