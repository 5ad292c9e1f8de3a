"""Parts of sentences: what they show of a value, and what to do about a file of another version."""

from __future__ import annotations

#: How much of a value a sentence shows.
_LETTERS = 200


def brief(value: object, letters: int = _LETTERS) -> str:
    """Return the repr of a value, cut to that many letters: what a sentence, or a longer repr, shows of it."""
    text = repr(value)
    return text if len(text) <= letters else f"{text[: letters - 1]}…"


def schema_hint(found: object, known: str | int, otherwise: str) -> str:
    """Return what to do about a file whose schema is not the one that is known: `otherwise`, but for a later one."""
    (name, number), (own, latest) = _schema(known), _schema(found)
    later = own in ("", name) and latest > number
    return "a later kernbench wrote it; use a newer kernbench" if later else otherwise


def _schema(schema: object) -> tuple[str, int]:
    """Return name and number of a schema; -1 where it has none."""
    name, _, number = str(schema).rpartition("/")
    return name, int(number) if number.isascii() and number.isdigit() and len(number) < 10 else -1
