"""What a drawing of a machine is: views from the whole to its parts, each with boxes and lines, as plain data.

Parts that are alike share one `View`: ids in it are written from the part that it shows (`~.r0c0`) or from the part
around that (`^.cube1`), and `MachineDrawing.absolute` spells them out.
"""

from __future__ import annotations

from attrs import field, frozen

Spot = tuple[float, float]
WireInView = tuple[str, str, int]
"""Source and destination of an edge of the graph, as written in the view, and its number in `wires`."""


@frozen
class Box:
    """One node, or one part of the machine that has a view of its own (`opens`); the corner, width and height in px.

    `model` is its number in `MachineDrawing.models`, -1 for a part; `outside` stands at the border and belongs to
    another part.
    """

    id: str
    label: str
    sub: str
    kind: str
    x: float = field(converter=float)
    y: float = field(converter=float)
    width: float = field(converter=float)
    height: float = field(converter=float)
    model: int = -1
    opens: bool = False
    outside: bool = False

    @property
    def centre(self) -> Spot:
        """The middle, in px."""
        return self.x + self.width / 2, self.y + self.height / 2


@frozen
class Line:
    """All edges of one direction between two boxes: a way of points in px, bent around one control point if `curved`.

    `weight` is the width of the stroke, which grows with the bandwidth.
    """

    source: str
    destination: str
    kind: str
    points: tuple[Spot, ...]
    wires: tuple[WireInView, ...]
    weight: float = field(default=1.0, converter=float)
    curved: bool = False


@frozen
class Zone:
    """A marked part of the ground, such as the die area that HBM covers; in px."""

    label: str
    x: float = field(converter=float)
    y: float = field(converter=float)
    width: float = field(converter=float)
    height: float = field(converter=float)


@frozen
class View:
    """One picture: `level` says what it shows (`system`, `sip`, `cube`, `pe`, …); `notes` what it leaves out."""

    level: str
    width: float = field(converter=float)
    height: float = field(converter=float)
    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]
    zones: tuple[Zone, ...] = ()
    notes: tuple[str, ...] = ()


def relative(part: str, name: str) -> str:
    """Write an id from the part that a view shows, or from the part around it; others stand as they are."""
    around = part.rpartition(".")[0]
    for mark, prefix in (("~", part), ("^", around)):
        if prefix and (name == prefix or name.startswith(f"{prefix}.")):
            return mark + name[len(prefix) :]
    return f"={name}" if name[:1] in ("~", "^", "=") else name


def absolute(part: str, name: str) -> str:
    """Spell out an id that `relative` wrote."""
    if name[:1] == "~":
        return part + name[1:]
    if name[:1] == "^":
        return part.rpartition(".")[0] + name[1:]
    return name.removeprefix("=")
