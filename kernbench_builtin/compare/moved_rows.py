"""What moved, row by row, and what was run otherwise."""

from __future__ import annotations

from typing import Any, Final

import attrs

#: What a thing is, and not what it did: a link of which such a figure moved is told before all others.
RATES: Final = ("gb_per_s", "latency_ns")


@attrs.frozen
class MovedFigure:
    """A figure before and after; None where there was no such thing."""

    figure: str
    before: float | None
    after: float | None

    @property
    def change(self) -> float:
        """By how much it rose; what was not there counts as 0."""
        return (self.after or 0.0) - (self.before or 0.0)


@attrs.frozen
class MovedRow:
    """A thing of which figures moved: its sort ("total", or a key of `COLUMNS`), its name, and what it is.

    `moved` has the figures that did, the one that is told first at the head.
    """

    sort: str
    name: str
    moved: tuple[MovedFigure, ...]
    about: str = ""

    @property
    def figure(self) -> str:
        """The figure that is told first."""
        return self.moved[0].figure

    @property
    def before(self) -> float | None:
        """What that was."""
        return self.moved[0].before

    @property
    def after(self) -> float | None:
        """What that is."""
        return self.moved[0].after

    @property
    def change(self) -> float:
        """By how much that rose."""
        return self.moved[0].change

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON types."""
        figures = {each.figure: {"before": each.before, "after": each.after, "change": each.change}
                   for each in self.moved}  # fmt: skip
        return {"sort": self.sort, "name": self.name, "about": self.about, "figures": figures}


@attrs.frozen
class ChangedInput:
    """Something that was run otherwise: its sort (one of `CAUSES`), its name, and what it was and is.

    What was not there at all is `absent` in "before" or "after"; the value of it is None.
    """

    sort: str
    name: str
    before: Any
    after: Any
    absent: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON types, without what was absent."""
        values = {side: getattr(self, side) for side in ("before", "after") if side != self.absent}
        return {"sort": self.sort, "name": self.name, **values}


@attrs.frozen
class SourceChange:
    """A kernel whose source is another one: its name, and the lines of a unified diff."""

    name: str
    lines: tuple[str, ...]
