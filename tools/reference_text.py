"""Pieces of the pages that tools/reference.py writes: sentences of docstrings and helps, rows, signatures."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Sequence
from typing import Any

NOTE = "Made from the code when the site is built.\n"


class Undocumented(Exception):
    """Something public has no sentence that says what it is."""


def sentence(thing: Any, name: str) -> str:
    """Return the first paragraph of a docstring of its own, on one line."""
    text = inspect.getdoc(thing) or ""
    first = " ".join(text.split("\n\n")[0].split())
    if not first or first.startswith(("str(", "int(")):
        raise Undocumented(f"{name} must have a docstring that says what it is; write one.")
    return first


def said(text: str | None, name: str) -> str:
    """Return a help text on one line."""
    if not text or not text.strip():
        raise Undocumented(f"{name} must have a help text; write one.")
    plain = re.split(r"(`[^`]*`)", " ".join(text.split()))
    return "".join(part if part.startswith("`") else part.replace("*", "\\*").replace("<", "&lt;") for part in plain)


def row(*cells: object) -> str:
    """Return a row of a table."""
    return "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Return a table, or nothing without rows."""
    body = [row(*cells) for cells in rows]
    return [row(*heads), row(*("---" for _ in heads)), *body, ""] if body else []


def code(text: object) -> str:
    """Return text in backticks, "" for none."""
    return f"`{text}`" if str(text) else ""


def signature(function: Any, name: str) -> str:
    """Return how a function is called, without self and without annotations."""
    found = inspect.signature(function)
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in found.parameters.values() if p.name != "self"]
    told = str(found.replace(parameters=bare, return_annotation=inspect.Signature.empty))
    return name + re.sub(r"<(\w+\.\w+): [^>]*>", r"\1", told)


def whole(thing: Any, name: str) -> str:
    """Return a docstring without its examples."""
    sentence(thing, name)
    text, _, arguments = re.split(r"\n\n>>> ", inspect.getdoc(thing) or "")[0].partition("\nArgs:\n")
    listed = re.sub(r"^    (\w+): ", r"- `\1`: ", arguments, flags=re.MULTILINE)
    return text + (f"\n{listed}" if listed else "")
