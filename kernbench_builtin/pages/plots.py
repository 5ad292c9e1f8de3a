"""Small plots as SVG text: stacked bars, use and spans over time, what a memory held, blocks, and the roofline.

Colours are CSS variables (`--kb-c0` …, `--kb-ink`, `--kb-soft`), which the page has; every number that a plot shows
stands as text beside it or in its title.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Final

from kernbench_core.units import format_bandwidth, format_bytes, format_flops, format_time

#: Colours that are told apart with any sight; of more things the last is shared.
COLOURS: Final = 8
#: Pixels between two spans that are told apart.
_APART: Final = 4.0


def stacked(
    parts: Sequence[tuple[str, float]], width: float = 640.0, height: float = 22.0, whole: float | None = None
) -> str:
    """Draw shares of a sum side by side, each with its name and value as title; the width stands for `whole`.

    That is the sum where it is None.
    """
    total = sum(value for _, value in parts) or 1.0
    rows, x = [], 0.0
    for index, (name, value) in enumerate(parts):
        across = width * value / (whole or total)
        if across > 0:
            rows.append(
                f'<rect class="kb-c{min(index, COLOURS - 1)}" x="{x:.2f}" y="0" width="{max(across, 0.5):.2f}" '
                f'height="{height:g}"><title>{escape(name)}: {format_time(value)}, {value / total:.1%}</title></rect>'
            )
        x += across
    return _svg(width, height, "shares of the whole", rows, stretch=True)


def over_time(shares: Sequence[float], width: float = 240.0, height: float = 26.0) -> str:
    """Draw shares from 0 to 1 in equal stretches of time as columns."""
    across = width / max(1, len(shares))
    rows = [f'<rect class="kb-ground" x="0" y="0" width="{width:g}" height="{height:g}"/>']
    for index, value in enumerate(shares):
        if value > 0:
            high = max(1.0, height * min(1.0, value))
            rows.append(
                f'<rect class="kb-c0" x="{index * across:.2f}" y="{height - high:.2f}" width="{across:.2f}" '
                f'height="{high:.2f}"/>'
            )
    most = max(shares, default=0.0)
    return _svg(width, height, f"use over time, at most {most:.0%}", rows, stretch=True)


def held(steps: Sequence[tuple[float, float]], total_ns: float, size: float) -> str:
    """Draw the bytes that a memory of `size` held: each step from its time (ns) on, over `total_ns`."""
    width, height, left, bottom = 720.0, 150.0, 64.0, 20.0
    most = max((value for _, value in steps), default=0.0) or 1.0
    tall, wide = height - bottom - 8, width - left - 8
    points, before = [(left, height - bottom)], 0.0
    for time, value in steps:
        x = left + wide * time / (total_ns or 1.0)
        points += [(x, height - bottom - tall * before / most), (x, height - bottom - tall * value / most)]
        before = value
    points += [(left + wide, height - bottom - tall * before / most), (left + wide, height - bottom)]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    rows = [
        f'<polygon class="kb-area" points="{path}"/>',
        f'<line class="kb-axis" x1="{left}" y1="{height - bottom}" x2="{width - 8}" y2="{height - bottom}"/>',
        _text(left - 6, 12, format_bytes(most), "end"),
        _text(left - 6, height - bottom, "0 B", "end"),
        _text(left, height - 5, "0 ns", "start"),
        _text(width - 8, height - 5, format_time(total_ns), "end"),
    ]
    return _svg(width, height, f"bytes held over time, at most {format_bytes(most)} of {format_bytes(size)}", rows)


def spans(lanes: Sequence[tuple[str, Sequence[tuple[float, float, str]]]], begin: float, end: float) -> str:
    """Draw what happened from `begin` to `end` ns: lanes with their names and spans (start, end, title).

    What is narrower than `_APART` pixels, and no farther from the one before, is drawn as one with it; its title is
    that of the first, and how many more there are.
    """
    width, left, high, gap = 720.0, 190.0, 18.0, 6.0
    scale, bottom = (width - left - 8) / ((end - begin) or 1.0), len(lanes) * (high + gap)
    rows = []
    for index, (name, found) in enumerate(lanes):
        top = index * (high + gap)
        ground = f'x="{left}" y="{top:g}" width="{width - left - 8}" height="{high:g}"'
        rows.append(f'<rect class="kb-ground" {ground}/>{_text(left - 8, top + 13, _cut(name, 28), "end")}')
        joined: list[tuple[float, float, list[str]]] = []
        for start, stop, title in sorted(found):
            x, until = left + (start - begin) * scale, left + (stop - begin) * scale
            before = joined[-1] if joined else (0.0, -_APART, [])
            if x - before[1] < _APART and min(until - x, before[1] - before[0]) < _APART:
                joined[-1] = joined[-1][0], max(until, joined[-1][1]), [*joined[-1][2], title]
            else:
                joined.append((x, until, [title]))
        for x, until, titles in joined:
            told = titles[0] if len(titles) == 1 else f"{titles[0]}, and {len(titles) - 1:,} more"
            rows.append(
                f'<rect class="kb-c{min(index, COLOURS - 1)} kb-cut" x="{x:.1f}" y="{top:g}" '
                f'width="{max(until - x, 1.5):.1f}" height="{high:g}"><title>{escape(told)}</title></rect>'
            )
    rows += [_text(left, bottom + 10, format_time(begin)), _text(width - 8, bottom + 10, format_time(end), "end")]
    return _svg(width, bottom + 16, f"what happened from {format_time(begin)} to {format_time(end)}", rows)


def blocks(
    extents: tuple[int, int], parts: Sequence[tuple[int, str, str, Sequence[tuple[int, int, int, int]]]]
) -> str:
    """Draw what a table of so many rows and columns is made of.

    A part is the number of its colour, a label where there is room, a title, and boxes (rows from, to, columns from,
    to).
    """
    rows, columns = extents
    width = 360.0
    height = min(240.0, max(48.0, width * rows / columns))
    across, down = width / columns, height / rows
    found = []
    for colour, label, title, boxes in parts:
        path = "".join(
            f"M{across * left:.1f} {down * top:.1f}H{across * right:.1f}V{down * bottom:.1f}H{across * left:.1f}z"
            for top, bottom, left, right in boxes
        )
        found.append(f'<path class="kb-c{colour % COLOURS} kb-cut" d="{path}"><title>{escape(title)}</title></path>')
        top, bottom, left, right = boxes[0]
        room = down * (bottom - top) >= 14 and across * (right - left) >= 6.5 * len(label) + 6
        if label and room and len(boxes) == 1:
            x, y = across * (left + right) / 2, down * (top + bottom) / 2 + 4
            found.append(f'<text class="kb-on" x="{x:.1f}" y="{y:.1f}" text-anchor="middle">{escape(label)}</text>')
    return _svg(width, height, "what lies where", found)


def roofline(points: Sequence[tuple[str, float, float]], peak: float, bandwidth: float) -> str:
    """Draw points (name, FLOP per byte, GFLOP/s) under the roof of `peak` GFLOP/s and `bandwidth` GB/s.

    Beside a point stands its name up to a colon, where that of another point does not.
    """
    width, height, left, bottom = 520.0, 320.0, 90.0, 46.0
    shown = [(name, x, y) for name, x, y in points if 0 < x < math.inf and y > 0]
    if not shown or peak <= 0 or bandwidth <= 0:
        return ""
    ridge = peak / bandwidth
    lows, highs = [ridge, *(x for _, x, _ in shown)], [peak, *(y for _, _, y in shown)]
    x0, x1 = math.floor(math.log10(min(lows))) - 1, math.ceil(math.log10(max(lows))) + 1
    y1 = math.ceil(math.log10(max(highs)) + 0.05)
    y0 = math.floor(math.log10(min(min(highs), bandwidth * 10**x0)))

    def at(x: float, y: float) -> tuple[float, float]:
        across, up = (math.log10(x) - x0) / (x1 - x0), (math.log10(y) - y0) / (y1 - y0)
        return left + across * (width - left - 24), height - bottom - up * (height - bottom - 34)

    rows = _grid(x0, x1, y0, y1, at(10**x0, 10**y0), at(10**x1, 10**y1))
    start = max(10.0**x0, 10.0**y0 / bandwidth)
    roof = [at(start, start * bandwidth), at(ridge, peak), at(10.0**x1, peak)]
    rows.append(f'<polyline class="kb-roof" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in roof)}"/>')
    rows.append(_text(roof[2][0], roof[2][1] - 7, f"{format_flops(peak)}, {format_bandwidth(bandwidth)}", "end"))
    taken: list[tuple[float, float]] = []
    for index, (name, x, y) in enumerate(shown):
        cx, cy = at(x, y)
        low = cy + 4
        while any(abs(low - other) < 13 and abs(cx - beside) < 60 for beside, other in taken):
            low += 13
        taken.append((cx, low))
        rows.append(
            f'<circle class="kb-c{min(index, COLOURS - 1)}" cx="{cx:.1f}" cy="{cy:.1f}" r="5.5"><title>'
            f"{escape(name)}: {x:.4g} FLOP/B, {format_flops(y)}</title></circle>"
            + _text(cx + 10, low, name.partition(":")[0])
        )
    rows += [
        _text(width / 2 + left / 2, height - 8, "FLOP for each byte of HBM traffic", "middle"),
        _text(2, 14, "FLOP/s achieved in kernels"),
    ]
    return _svg(width, height, "roofline", rows)


def _grid(x0: int, x1: int, y0: int, y1: int, low: tuple[float, float], high: tuple[float, float]) -> list[str]:
    """Draw lines at powers of ten, with their numbers."""
    rows = []
    for power in range(x0, x1 + 1):
        x = low[0] + (high[0] - low[0]) * (power - x0) / (x1 - x0)
        rows.append(f'<line class="kb-axis" x1="{x:.1f}" y1="{low[1]:.1f}" x2="{x:.1f}" y2="{high[1]:.1f}"/>')
        rows.append(_text(x, low[1] + 15, _power(power), "middle"))
    for power in range(y0, y1 + 1):
        y = low[1] + (high[1] - low[1]) * (power - y0) / (y1 - y0)
        rows.append(f'<line class="kb-axis" x1="{low[0]:.1f}" y1="{y:.1f}" x2="{high[0]:.1f}" y2="{y:.1f}"/>')
        rows.append(_text(low[0] - 6, y + 4, format_flops(10.0**power), "end"))
    return rows


def _power(power: int) -> str:
    return f"{10**power:,}" if power >= 0 else f"{10.0**power:g}"


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _cut(text: str, letters: int) -> str:
    return text if len(text) <= letters else f"{text[: letters - 1]}…"


def _svg(width: float, height: float, name: str, rows: Sequence[str], *, stretch: bool = False) -> str:
    fit = ' preserveAspectRatio="none"' if stretch else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="kb-plot{" kb-stretch" if stretch else ""}" role="img" '
        f'aria-label="{escape(name, quote=True)}" viewBox="0 0 {width:g} {height:g}"{fit}>{"".join(rows)}</svg>'
    )
