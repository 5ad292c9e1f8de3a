"""A machine as a drawing: the views of all its parts, those that are alike once, as data that can be kept in a file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from attrs import asdict, frozen

from kernbench_builtin.machines.drawing.svg import view_svg
from kernbench_builtin.machines.drawing.views import Box, Line, Spot, View, Zone
from kernbench_core.errors import UsageError
from kernbench_core.params import did_you_mean

SCHEMA: Final = "kernbench.machine/1"


@frozen(repr=False)
class MachineDrawing:
    """A machine drawn where it stands: `parts` says which of `views` shows each part; "" is the whole.

    `models` are what nodes are made of: kind, implementation, parameters as (name, value, source). `wires` are kind,
    bandwidth (B/ns), latency (ns), payload and header bytes of edges.
    """

    views: tuple[View, ...]
    parts: Mapping[str, int]
    models: tuple[Mapping[str, Any], ...] = ()
    wires: tuple[Mapping[str, Any], ...] = ()
    title: str = ""

    def view(self, part: str = "") -> View:
        """Return the view of a part; UsageError where there is none."""
        if part not in self.parts:
            known = [each for each in self.parts if each]
            least = ", such as " + ", ".join(dict.fromkeys([*known[:2], *known[-1:]])) if known else ""
            raise UsageError(f"node must be a part of the machine{least}, not {part!r}.{did_you_mean(part, known)}")
        return self.views[self.parts[part]]

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON types, schema first."""
        return {"schema": SCHEMA, **asdict(self)}

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> MachineDrawing:
        """Return what `to_json` wrote; ValueError where that is not what it is."""
        if found.get("schema") != SCHEMA:
            raise ValueError(f"schema must be {SCHEMA!r}, not {found.get('schema')!r}")
        try:
            views = tuple(_view(each) for each in found["views"])
            parts = {str(part): int(number) for part, number in found["parts"].items()}
            drawing = cls(views, parts, tuple(found["models"]), tuple(found["wires"]), str(found["title"]))
            if not all(0 <= number < len(views) for number in parts.values()) or "" not in parts:
                raise ValueError("parts must have views")
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ValueError(f"a drawing must be as a run wrote it, but {type(error).__name__}: {error}") from None
        return drawing

    def __repr__(self) -> str:
        return f"<MachineDrawing {self.title}: {len(self.parts)} parts in {len(self.views)} views>"

    def svg(self, part: str = "", *, alone: bool = True) -> str:
        """Draw one part, "" for the whole, as SVG that stands `alone` or in a page; UsageError for one that is not."""
        return view_svg(self.view(part), part, alone=alone, title=" ".join((self.title, part)).strip())

    def _repr_html_(self) -> str:
        return self.svg()


def _view(found: Mapping[str, Any]) -> View:
    lines = tuple(
        Line(**{**each, "points": _points(each["points"]), "wires": tuple((a, b, n) for a, b, n in each["wires"])})
        for each in found["lines"]
    )
    boxes = tuple(Box(**each) for each in found["boxes"])
    zones = tuple(Zone(**each) for each in found["zones"])
    return View(found["level"], found["width"], found["height"], boxes, lines, zones, tuple(found["notes"]))


def _points(found: Iterable[Any]) -> tuple[Spot, ...]:
    return tuple((float(x), float(y)) for x, y in found)
