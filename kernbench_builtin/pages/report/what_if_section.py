"""What a faster resource would gain, of a run that was asked for it (`--what-if`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kernbench_builtin.pages.report.page import environment
from kernbench_builtin.pages.report.run_page import RunPage
from kernbench_builtin.pages.report.section import Section

_TIMES: Final = ("kernel_ns", "total_ns")
_HOW: Final = ("twice", "free")


def _html(page: RunPage) -> str:
    found: Mapping[str, Any] | None = (page.result.get("native") or {}).get("what_if")
    if found is None:
        return ""
    rows = sorted(_rows(found), key=lambda row: [row["changes"][at] or 0.0 for at in (2, 3, 0)])
    moved = [row for row in rows if any(row["changes"])]
    return environment().get_template("what_if.html").render(
        now=found["now"], kernels=found["kernels"], total=found["total"], rows=moved, chosen=found["chosen"],
        same=[row["resource"] for row in rows if not any(row["changes"])],
        most=max((-(row["changes"][2] or 0.0) for row in moved), default=0.0) or 1.0,
    )  # fmt: skip


def _rows(found: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield each resource with its changes, as shares: of kernels and of all, twice as fast and free.

    A change within the spread is 0, and one that is not known None.
    """
    widths = {"kernel_ns": found["kernels"], "total_ns": found["total"]}
    for row in found["rows"]:
        changes: list[float | None] = []
        for how in _HOW:
            for name in _TIMES:
                now, ns = found["now"][name], row[how][name]
                known = now and abs(ns - now) > widths[name]["high_ns"] - widths[name]["low_ns"]
                changes.append(None if row[how]["refused"] else (ns - now) / now if known else 0.0)
        yield {"resource": row["resource"], "changes": changes}


WHAT_IF: Final = Section("What if", 45, _html)
