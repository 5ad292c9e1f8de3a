"""What a user may call an algorithm by its registered name, and a collective by its own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

COMMANDS: Final = ("list", "check", "new", "tune")
"""The commands of `kernbench ccl` that are no collectives."""


def spellings(full: str, collective: str) -> tuple[str, ...]:
    """Return what a user may write for a registered name: `ccl.ring_all_reduce` is also `ring`.

    Further `ring_all_reduce` and `ccl.ring`.
    """
    vendor, _, bare = full.rpartition(".")
    method = bare.removesuffix(f"_{collective.rpartition(':')[2]}")
    dot = "." if vendor else ""
    return tuple(dict.fromkeys((full, bare, f"{vendor}{dot}{method}", method)))


def ending(name: str, collectives: Iterable[str]) -> str:
    """Return the collective that the name of an algorithm ends with, "" for none."""
    ends = [collective for collective in collectives if name.endswith(f"_{collective}")]
    return max(ends, key=len, default="")


def meant(name: str, known: Iterable[str]) -> str | None:
    """Return which of the known names somebody means who writes it otherwise: alltoall, send-recv."""
    return {_folded(one): one for one in known}.get(_folded(name))


def _folded(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()
