"""Sentences around the table: what queues there are, why rows took their time, and what `auto` tried."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from kernbench_core.units import format_bytes, format_time

if TYPE_CHECKING:
    from kernbench_ccl.measure.table import SweepRow, Used
    from kernbench_ccl.plan import Settings
    from kernbench_ccl.plan.window import MessageWindow

_EXACT_NS = 1.0
"""What dies of an ideal machine take at most, in steps of the grid of times."""


def remarks(rows: Sequence[SweepRow], wide: bool = False, *, idealised: bool = False) -> list[str]:
    """Say of which rows too little was under way to fill the links, and with `wide` why each took its time.

    So too why there is no closed form. On an `idealised` machine dies and memories take none.
    """
    told: dict[str, list[str]] = {}
    for row in rows:
        used = row.out_of_place.used
        if used is not None and used.window is not None and used.window.limit is not None:
            told.setdefault(_too_little(used, used.window), []).append(format_bytes(row.size))
        if wide:
            told.setdefault(_why(row, idealised), []).append(format_bytes(row.size))
        if wide and row.formula_reason is not None:
            told.setdefault(f"no formula of {row.algorithm}: {row.formula_reason}", []).append(format_bytes(row.size))
    return [f"# {sizes[0]}{f' to {sizes[-1]}' if len(sizes) > 1 else ''}: {what}" for what, sizes in told.items()]


def _why(row: SweepRow, idealised: bool) -> str:
    """Say what a time out of place is made of: the bound, the steps of the algorithm, and the rest of the machine."""
    ns, form, busy = row.out_of_place.time_ns, row.formula_ns, row.out_of_place.binds
    told = [f"{format_time(row.bound_ns)} for any algorithm ({row.bound_reason})"]
    if form is None:
        rest = "" if idealised else " and the machine between its links"
        told.append(f"{format_time(ns - row.bound_ns)} more for this one{rest}")
    else:
        told.append(f"{format_time(form - row.bound_ns)} more for the steps of {row.called} by its formula")
        told += _beside(ns - form, idealised)
    most = "" if busy is None else f"; busiest is {busy.short}, {busy.utilisation:.0%} of the time"
    return f"{format_time(ns)} is {', '.join(told)}{most}"


def _beside(ns: float, idealised: bool) -> list[str]:
    """Say why a time is beside its formula by so much."""
    if ns < 0:
        return [f"{format_time(-ns)} less, as they overlap more than it says"]
    if idealised and ns < _EXACT_NS:
        return []
    cause = "waits of the kernel, as with one message under way" if idealised else "dies, memories, waits of the kernel"
    return [f"{format_time(ns)} more, which that leaves out: {cause}"]


def tried(estimates: Mapping[int, Mapping[str, float]]) -> list[str]:
    """Say which times `auto` chose by, of each size for which it tried algorithms, the shortest first."""
    return [
        f"# auto tried for {format_bytes(size)}: "
        + ", ".join(f"{name} {format_time(ns)}" for ns, name in sorted((ns, name) for name, ns in times.items()))
        for size, times in estimates.items()
    ]


def _too_little(used: Used, window: MessageWindow) -> str:
    room = "its scratchpad has no room for more"
    if window.limit == "slots":
        room = f"its queues of {used.slots} slots of {format_bytes(used.slot_bytes or 0)} have no room for more"
    least = min(window.under_way, window.queued)
    return f"{format_bytes(least)} of a PE under way where {format_bytes(window.wanted)} would fill the links: {room}"


def told_queues(settings: Settings) -> str:
    """Say how queues differ from what the machine's PEs have; "" where they do not."""
    told = []
    if settings.slots is not None:
        told.append(f"of {settings.slots} slot{'s' if settings.slots > 1 else ''}")
    elif settings.slot_bytes is not None:
        told.append("of slots")
    if settings.slot_bytes is not None:
        told.append(f"of {format_bytes(settings.slot_bytes)}")
    if settings.tier is not None:
        told.append(f"in {settings.tier}")
    return " ".join(["queues", *told]) if told else ""


def broken(line: str, wide: int | None) -> list[str]:
    """Break a remark at blanks where a terminal would break it in a word; what stands in columns stays whole."""
    told = line.lstrip("# ")
    lead = line[: len(line) - len(told)]
    if wide is None or len(line) <= wide or not lead.startswith("#") or "  " in told:
        return [line]
    return textwrap.wrap(
        told, wide, initial_indent=lead, subsequent_indent=f"#{' ' * (len(lead) + 1)}", break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip
