"""What a faster resource would gain, in lines for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernbench_core.cli.columns import lines_of, width, wrapped
from kernbench_core.units import format_time

if TYPE_CHECKING:
    from kernbench_builtin.native.what_if import Retimed, WhatIf


def gain_lines(found: WhatIf) -> list[str]:
    """Say the answer as a table, what gains most first, as wide as the terminal."""
    now = found.now
    rows, same = [], []
    for resource, twice, free in found.ranked():
        if twice == free == now:
            same.append(resource.name)
        else:
            rows.append((resource.name, *_cells(twice, found), *_cells(free, found)))
    head = ("if this were faster", "twice: kernels", "total", "free: kernels", "total")
    times = (
        f"{name} {format_time(ns)} (spread {format_time(spread.width_ns)})"
        for name, ns, spread in (("kernels", now.kernel_ns, found.kernels), ("total", now.total_ns, found.total))
    )
    told = [f"now: {', '.join(times)}", ""]
    told += lines_of(head, rows, width())
    if any("~" in row for row in rows):
        told += ["", *wrapped("~ is a change within the spread, which may be chance", width())]
    if same:
        told += ["", *wrapped(f"no gain at all: {', '.join(same)}", width())]
    for why in found.unknown():
        told += ["", *wrapped(f"unknown: {why}", width())]
    if found.chosen:
        chosen = f"the program chose its blocks by {', '.join(found.chosen)}, and is not made anew for faster ones"
        told += ["", *wrapped(chosen, width())]
    if found.looked_at:
        looked = f"the program asked for {', and for '.join(found.looked_at)}: what it did then stays as it was"
        told += ["", *wrapped(looked, width())]
    return told


def _cells(outcome: Retimed, found: WhatIf) -> tuple[str, str]:
    if outcome.refused:
        return "unknown", "unknown"
    kernels = _change(outcome.kernel_ns, found.now.kernel_ns, found.kernels.width_ns)
    return kernels, _change(outcome.total_ns, found.now.total_ns, found.total.width_ns)


def _change(ns: float, before: float, spread_ns: float) -> str:
    """Return the change in percent; one within the spread is none that is known."""
    if not before or ns == before:
        return "="
    return f"{(ns - before) / before:+.1%}" if abs(ns - before) > spread_ns else "~"
