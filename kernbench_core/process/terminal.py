"""What reaches a terminal: names that somebody else chose are shown, and cannot act.

A file, tensor, bench or column may be called `\\x1b[2J`. Everything that kernbench prints goes through here, but for
JSON, which has escapes of its own, and for what a kernel or a bench prints itself.
"""

from __future__ import annotations

import os
import re

_ACTING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
"""Control characters but tab and newline, marks that turn the direction of a line round, halves of surrogates."""


_WIDTH = 160

_BREAKING = str.maketrans({"\t": "\\t", "\n": "\\n"})


def shown_in_line(text: str) -> str:
    """Return the text as `shown` does, with tabs and newlines written out too: for a cell of a table."""
    return shown(text).translate(_BREAKING)


def shown(text: str) -> str:
    """Return the text with every character that would act on a terminal written out, as `\\x1b`."""
    return _ACTING.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def plain_width() -> int:
    """Return how wide lines are that no terminal shows, in columns."""
    columns = os.environ.get("COLUMNS", "")
    return int(columns) if columns.isdecimal() and int(columns) else _WIDTH
