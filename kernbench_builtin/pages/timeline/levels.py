"""How far down a timeline goes."""

from __future__ import annotations

from typing import Final

from kernbench_core.errors import UsageError
from kernbench_core.wording import brief

LEVELS: Final = ("host", "launch", "kernel", "unit", "channel", "wire")
"""The levels of a timeline, coarsest first; a track is of the level that its `kind` names, or is a "place"."""

LEVELS_IN_WORDS: Final = f"{', '.join(LEVELS[:-1])} or {LEVELS[-1]}"

PLACE: Final = "place"
"""The kind of a track that only holds others: a package, a die, a PE."""

TIMELINE: Final = "timeline.npz"
"""What the file of a timeline is called in the folder of a run."""


def check_level(name: str) -> str:
    """Return the name of a level; raise UsageError for another one."""
    if name not in LEVELS:
        raise UsageError(f"level must be one of {', '.join(LEVELS)}, not {brief(name)}.")
    return name
