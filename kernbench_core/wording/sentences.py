"""Parts of sentences: what they show of a value, and what to do about a file of another version."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Final

#: How much of a value a sentence shows.
_LETTERS: Final = 200
#: How long a line of an error may be, and what of a longer one is left at its begin and its end.
_LONGEST: Final = 700
_HEAD, _TAIL = 400, 250
#: How many lines an error may have, and how many of a longer one are left at its begin and its end.
_LINES: Final = 200
_FIRST, _LAST = 120, 40
#: How many problems are told at once.
MOST_TOLD: Final = 20


def brief(value: object, letters: int = _LETTERS) -> str:
    """Return the repr of a value in one line, cut to that many letters: what a sentence, or a longer repr, shows of it.

    Nothing of a large collection is looked at that is not shown; what cannot tell its repr is told by its type.
    """
    try:
        text = repr(_first(value, letters))
    except Exception:  # the repr is somebody's code, and an integer of many digits has none
        text = f"<{type(value).__name__}>"
    return in_a_line(text, letters)


def in_a_line(text: str, letters: int = _LETTERS) -> str:
    """Return a text as one line, cut to that many letters."""
    if "\n" in text:
        text = " ".join(text[: 8 * letters].split())
    return text if len(text) <= letters else f"{text[: letters - 1]}…"


def _first(value: object, count: int) -> object:
    """Return so much of a text or collection that its repr begins as that of the whole."""
    if type(value) in (str, bytes, list, tuple):
        return value[: count + 1]  # type: ignore[index]  # it is one of these
    if type(value) is dict:
        return dict(islice(value.items(), count))
    return value


def shortened(text: str) -> str:
    """Return a text without the middle of lines that are too long to be read, and of too many of them.

    A value that was given may have any length.
    """
    if len(text) <= _LONGEST:
        return text
    lines = text.split("\n")
    if len(lines) > _LINES:
        lines = [*lines[:_FIRST], f"… {len(lines) - _FIRST - _LAST:,} lines …", *lines[-_LAST:]]
    return "\n".join(line if len(line) <= _LONGEST else f"{line[:_HEAD]} … {line[-_TAIL:]}" for line in lines)


def with_full_stop(text: str) -> str:
    """Return a sentence that may end with somebody else's words, as an exception's: with one full stop, or its mark."""
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."


def first_of(problems: Sequence[str]) -> list[str]:
    """Return the first problems, and how many more there are: nobody reads ten thousand."""
    more = len(problems) - MOST_TOLD
    if more < 2:
        return list(problems)
    return [*problems[:MOST_TOLD], f"… and {more:,} more; mend these first."]


def schema_hint(found: object, known: str | int, otherwise: str) -> str:
    """Return what to do about a file whose schema is not the one that is known: `otherwise`, but for a later one."""
    (name, number), (own, latest) = _schema(known), _schema(found)
    later = own in ("", name) and latest > number
    return "a later kernbench wrote it; use a newer kernbench" if later else otherwise


def _schema(schema: object) -> tuple[str, int]:
    """Return name and number of a schema; -1 where it has none."""
    name, _, number = str(schema).rpartition("/")
    return name, int(number) if number.isascii() and number.isdigit() and len(number) < 10 else -1
