"""When Python looks for cyclic garbage: not while something is built that is kept, nor in a run."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

#: Looking at so many new objects takes less time than finding out whether some are frozen.
_FEW: Final = 10_000
#: So many objects may have been made without a look before all there are are gone through.
_MOST_UNSEEN: Final = 1 << 20


@contextmanager
def no_automatic_collection() -> Iterator[None]:
    """Look for cyclic garbage where somebody asks for that only, and then put things back as they were.

    What was made in between is mostly kept, and counts as old from then on.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            _UNSEEN.pass_over()
            gc.enable()


@contextmanager
def garbage_left() -> Iterator[None]:
    """Leave the garbage of what is around this alone, and have none of this be left behind it.

    A machine is garbage that goes in circles, and large: it would lie there until Python looks at all that there is,
    and this looks only at what was made inside. An error holds what it came through: let go of that inside.
    """
    if _has_frozen():
        yield
        return
    was_on = gc.isenabled()
    gc.disable()
    gc.freeze()
    try:
        yield
    finally:
        gc.collect()
        gc.unfreeze()
        if was_on:
            gc.enable()


class _Unseen:
    """Count the objects that were made while nobody looked."""

    def __init__(self) -> None:
        self._objects = 0

    def pass_over(self) -> None:
        """Count all objects as old: else the next one that is made has all of these gone through, a tenth of a run.

        Go through them where they have become many since the last time. Frozen ones would thaw, so there they stay new.
        """
        made = gc.get_count()[0]
        if made <= _FEW or _has_frozen():
            return
        self._objects += made
        if self._objects > _MOST_UNSEEN:
            self._objects = 0
            gc.collect()
        else:
            gc.freeze()
            gc.unfreeze()  # into the oldest generation, without a look


_UNSEEN: Final = _Unseen()


def _has_frozen() -> bool:
    """Say whether there are objects that somebody froze and that would thaw here; they are counted one by one."""
    return gc.get_freeze_count() > 0
