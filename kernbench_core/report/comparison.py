"""What took how long in runs that stand side by side: each time of the first, and how the others differ from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import attrs

from kernbench_core.report.run_page import RunPage
from kernbench_core.units import format_time

#: Kernels of a table; all that took less of the time of kernels stand in one row below them.
_KERNELS: Final = 12


@attrs.frozen
class ComparedTime:
    """A row: what took the time, of which sort ("total", "phase", "kernel"), and how long in each run (ns, or None)."""

    sort: str
    name: str
    ns: tuple[float | None, ...]

    @property
    def differences(self) -> list[str]:
        """How the time of each run differs from that of the first."""
        return [difference(each, self.ns[0]) for each in self.ns]


def compared(pages: Sequence[RunPage]) -> list[ComparedTime]:
    """Return the total, each phase, and the time of each kernel over all of its launches, of each run."""
    phases = [{name: float(ns) for name, ns in page.result["phases"].items()} for page in pages]
    names = dict.fromkeys(name for each in phases for name in each)
    rows = [ComparedTime("total", "total", tuple(page.total_ns for page in pages))]
    rows += [ComparedTime("phase", name.replace("_", " "), _row(phases, name)) for name in names]
    kernels = [_kernels(page.result.get("launches") or ()) for page in pages]
    longest = sorted(dict.fromkeys(name for each in kernels for name in each), key=partial(_longest, kernels))
    rows += [ComparedTime("kernel", name, _row(kernels, name)) for name in longest[:_KERNELS]]
    if others := longest[_KERNELS:]:
        sums = tuple(sum(each.get(name, 0.0) for name in others) for each in kernels)
        rows.append(ComparedTime("kernel", f"{len(others)} other kernels", sums))
    return rows


def difference(ns: float | None, first: float | None) -> str:
    """Say how a time differs from that of the first run: "0.52 ×, 8.5 us less"; "" where one has none."""
    if ns is None or first is None:
        return ""
    if ns == first:
        return "the same"
    told = f"{format_time(abs(ns - first))} {'more' if ns > first else 'less'}"
    return told if first <= 0 else f"{_ratio(ns / first)} ×, {told}"


def _row(times: Sequence[Mapping[str, float]], name: str) -> tuple[float | None, ...]:
    return tuple(each.get(name) for each in times)


def _kernels(launches: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return how long the launches of each kernel ran, together."""
    found: dict[str, float] = {}
    for each in launches:
        found[each["kernel"]] = found.get(each["kernel"], 0.0) + each["ended_ns"] - each["started_ns"]
    return found


def _longest(kernels: Sequence[Mapping[str, float]], name: str) -> float:
    return -max(each.get(name, 0.0) for each in kernels)


def _ratio(value: float) -> str:
    return f"{value:.2f}" if 0.095 <= value < 100 else f"{value:.3g}"
