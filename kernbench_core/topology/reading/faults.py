"""What is wrong with a configuration where it is typed: the keys down to each fault, and a sentence about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from kernbench_core.topology.configuration import KeyPath

ReadingFault: TypeAlias = "tuple[KeyPath, str, tuple[str, Sequence[str]] | None]"
"""The path of a key, the rest of the sentence, and of an unknown key what it is and what is known, for a hint."""


class Faults(Exception):
    """What is wrong, `found` in order."""

    def __init__(self, found: list[ReadingFault]) -> None:
        super().__init__(found)
        self.found = found


def faults_of(error: Exception, *key: str | int) -> list[ReadingFault]:
    """Return what an error says of the value below a key."""
    if isinstance(error, Faults):
        return [((*key, *path), text, slip) for path, text, slip in error.found]
    return [(key, str(error), None)]
