"""What a notebook shows of a thing: a picture, drawn by a room above, which is told of here when there is one."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar


class Pictured:
    """Something that a notebook shows as a picture."""

    __slots__ = ()

    draw: ClassVar[Callable[[object], str | None] | None] = None
    """What draws things as HTML; set from above, as nothing here knows of drawings."""

    def _repr_html_(self) -> str | None:
        """Return the picture, None where there is none or nobody draws: a notebook shows the repr then."""
        draw = Pictured.draw
        return None if draw is None else draw(self)
