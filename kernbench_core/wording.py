"""Parts of sentences that people read: what they show of a value, of a long text, of many numbers, of a function.

Values and texts may have any length, and what is returned has a bounded one. Errors and every room call it.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
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
#: What a function must be, in a sentence.
PLAIN: Final = "must be a plain function, with neither yield nor async: it would never run"


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


def number_runs(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Return the first and last of each run of consecutive numbers, ascending; each number counts once."""
    runs: list[tuple[int, int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][1] + 1:
            runs[-1] = runs[-1][0], number
        else:
            runs.append((number, number))
    return runs


def spell_numbers(numbers: Iterable[int]) -> str:
    """Spell numbers: "2-5, 8"."""
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in number_runs(numbers))


def join_names(names: Iterable[str]) -> str:
    """Join names that differ in the number at their end: "rank 2", "ranks 0-4, 6"."""
    several = list(dict.fromkeys(names))
    if len(several) == 1:
        return several[0]
    kind = several[0].rpartition(" ")[0]
    return f"{kind}s {spell_numbers(int(name.rpartition(' ')[2]) for name in several)}"


def never_runs(function: object) -> bool:
    """Whether a function has `async` or `yield` in it, so that a call alone carries out none of its lines."""
    plain = inspect.unwrap(function) if callable(function) else function
    kinds = (inspect.isgeneratorfunction, inspect.iscoroutinefunction, inspect.isasyncgenfunction)
    return any(kind(plain) for kind in kinds)


def is_async(function: object) -> bool:
    """Whether a function has `async` before it."""
    plain = inspect.unwrap(function) if callable(function) else function
    return inspect.iscoroutinefunction(plain) or inspect.isasyncgenfunction(plain)
