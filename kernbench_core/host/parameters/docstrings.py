"""What the docstring of a bench says of its parameters."""

from __future__ import annotations

import re

#: The head of a docstring's section on parameters, in Google's style, and what it says of one.
_HEAD = re.compile(r"(?:Args|Arguments|Parameters):\s*")
_ARGUMENT = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?:\s*(.*)")


def argument_sentences(doc: str) -> dict[str, str]:
    """Return what stands behind each name of the section `Args:` of a docstring, its lines joined.

    The section ends with the first line that is indented no more than its head; lines that are indented more than the
    first name go on with what is said of the name above them.
    """
    found: dict[str, list[str]] = {}
    within: list[str] | None = None
    head = names = None
    for line in doc.splitlines():
        indent, text = len(line) - len(line.lstrip()), line.strip()
        if head is None:
            head = indent if _HEAD.fullmatch(text) else None
        elif text and indent <= head:
            break
        elif text:
            names = indent if names is None else names
            argument = _ARGUMENT.fullmatch(text) if indent <= names else None
            if argument is not None:
                within = found.setdefault(argument[1], [])
                within.append(argument[2])
            elif within is not None:
                within.append(text)
    return {name: " ".join(filter(None, lines)) for name, lines in found.items()}
