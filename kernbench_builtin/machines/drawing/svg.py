"""A view as SVG text, light and dark by CSS variables."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Final

from kernbench_builtin.machines.drawing.views import Box, Line, View, absolute

#: The colours of a drawing that stands alone; a page has its own of the same names.
STYLE: Final = """
.kb-view { --kb-ground: #ffffff; --kb-ink: #1c2430; --kb-soft: #5b6675; --kb-box: #f3f5f8; --kb-part: #e6edf7;
  --kb-edge: #8a94a3; --kb-wire: #7d8897; --kb-zone: #f0ead9; --kb-outside: #ffffff; }
@media (prefers-color-scheme: dark) { .kb-view { --kb-ground: #14181f; --kb-ink: #e8ecf2; --kb-soft: #a3adbb;
  --kb-box: #222935; --kb-part: #263449; --kb-edge: #6d7888; --kb-wire: #8b96a6; --kb-zone: #2c2a20;
  --kb-outside: #14181f; } }
"""
#: How the parts of a view look, whoever says what the colours are.
SHAPES: Final = """
.kb-view { background: var(--kb-ground); font: 12px system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
.kb-view text { fill: var(--kb-ink); text-anchor: middle; dominant-baseline: central; }
.kb-view .kb-sub { fill: var(--kb-soft); }
.kb-view .kb-note { fill: var(--kb-soft); text-anchor: start; }
.kb-view rect { fill: var(--kb-box); stroke: var(--kb-edge); stroke-width: 1; }
.kb-view .kb-part rect { fill: var(--kb-part); }
.kb-view .kb-outside rect { fill: var(--kb-outside); stroke-dasharray: 4 3; }
.kb-view rect.kb-zone { fill: var(--kb-zone); stroke: none; }
.kb-view .kb-line path { fill: none; stroke: var(--kb-wire); }
.kb-view .kb-line .kb-hit { stroke: transparent; stroke-width: 7; }
"""
_CHARACTER: Final = 6.7


def view_svg(view: View, part: str = "", *, alone: bool = False, title: str = "", relative: bool = False) -> str:
    """Write a view as SVG; `alone` with its own colours. Ids are those of `part`, or `relative` ones as they are."""
    height = view.height + 18 * len(view.notes)
    size = f'viewBox="0 0 {view.width:.0f} {height:.0f}"'
    name = escape(title or part or view.level, quote=True)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" class="kb-view" {size} role="group" aria-label="{name}"'
    if alone:
        head += f' width="{view.width:.0f}" height="{height:.0f}"'
    spell = (lambda name: name) if relative else (lambda name: absolute(part, name))
    rows = [f"{head}>"]
    if alone:
        rows.append(f"<title>{name}</title><style>{STYLE}{SHAPES}</style>")
    for zone in view.zones:
        place = f'x="{zone.x}" y="{zone.y}" width="{zone.width:g}" height="{zone.height:g}"'
        rows.append(f'<rect class="kb-zone" {place} rx="6"/>')
        middle = f'x="{zone.x + zone.width / 2:.1f}" y="{zone.y + zone.height / 2:.1f}"'
        rows.append(f'<text class="kb-sub" {middle}>{escape(zone.label)}</text>')
    rows += [_line(line, number, spell(line.source), spell(line.destination)) for number, line in enumerate(view.lines)]
    rows += [_box(box, number, spell(box.id)) for number, box in enumerate(view.boxes)]
    rows += _notes(view.notes, view.height)
    return "\n".join([*rows, "</svg>"])


def _notes(notes: Iterable[str], top: float) -> list[str]:
    return [
        f'<text class="kb-note" x="14" y="{top + 18 * index + 4:.0f}">{escape(note)}</text>'
        for index, note in enumerate(notes)
    ]


def _line(line: Line, number: int, source: str, destination: str) -> str:
    path = _path(line)
    name = escape(f"{source} to {destination}", quote=True)
    return (
        f'<g class="kb-line" data-line="{number}"><title>{name}</title><path class="kb-stroke" d="{path}" '
        f'stroke-width="{line.weight:g}"/><path class="kb-hit" d="{path}"/></g>'
    )


def _path(line: Line) -> str:
    first, *rest = [f"{x:g} {y:g}" for x, y in line.points]
    if line.curved and len(rest) == 2:
        return f"M{first}Q{rest[0]} {rest[1]}"
    return f"M{first}" + "".join(f"L{point}" for point in rest)


def _box(box: Box, number: int, name: str) -> str:
    words = " ".join(["kb-box", *(["kb-part"] if box.opens else []), *(["kb-outside"] if box.outside else [])])
    x, y = box.centre
    label = escape(_fitted(box.label, box.width))
    two = bool(box.sub)
    rows = [
        f'<g class="{words}" data-box="{number}"><title>{escape(name)}</title>',
        f'<rect x="{box.x:g}" y="{box.y:g}" width="{box.width:g}" height="{box.height:g}" rx="4"/>',
        f'<text x="{x:.1f}" y="{y - (7 if two else 0):.1f}">{label}</text>',
    ]
    if two:
        rows.append(
            f'<text class="kb-sub" x="{x:.1f}" y="{y + 8:.1f}">{escape(_fitted(box.sub, box.width))}</text>'
        )
    return "".join([*rows, "</g>"])


def _fitted(text: str, width: float) -> str:
    """Cut a text to what fits into a box."""
    room = max(3, int((width - 6) / _CHARACTER))
    return text if len(text) <= room else f"{text[: room - 1]}…"
