"""The report of a session: a table of the figures that tests looked at, goldens that were written, and JSON.

Source of the JSON: github.com/benchmark-action/github-action-benchmark, `customSmallerIsBetter`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import attrs

from kernbench_builtin.checks.budgets.limits import unit_of
from kernbench_builtin.compare.formatting import figure_text
from kernbench_core.process.whole_files import write_text

#: The property of a test's report (`user_properties`, which xdist carries) that is one figure of one of its runs.
PROPERTY: Final = "kernbench"
_HEAD: Final = ("test", "figure", "measured", "budget", "golden")


@attrs.frozen
class BudgetReport:
    """The figures of a session by test, run and name, and the goldens that its tests asked for, by file."""

    figures: Mapping[tuple[str, str, str], Mapping[str, Any]]
    goldens: Mapping[str, Mapping[str, Any]]

    @classmethod
    def of(cls, reports: Iterable[Any]) -> BudgetReport:
        """Return what the reports of tests carry, in the order of their names; of a test that is run again the last."""
        rows = [
            (report.nodeid, row)
            for report in reports
            for name, row in getattr(report, "user_properties", ())
            if name == PROPERTY
        ]
        figures: dict[tuple[str, str, str], dict[str, Any]] = {}
        for nodeid, row in sorted(rows, key=lambda each: each[0]):
            figures.setdefault((nodeid, row["run"], row["figure"]), {}).update(row)
        return cls(figures, {row["golden"]: row for _, row in rows if "golden" in row})

    def table(self) -> Iterator[str]:
        """Yield a line for the time of each run and each figure that has a budget, in columns."""
        if not self.figures:
            yield "No test looked at a simulated run."
            return
        cells = [_HEAD, *(_cells(nodeid, row) for (nodeid, *_), row in self.figures.items())]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        for line in cells:
            yield "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()

    def golden_lines(self) -> Iterator[str]:
        """Yield how many goldens were written, which, and by how much the time of each moved."""
        count = Counter(row["state"] for row in self.goldens.values())
        yield f"goldens: {count['new']} new, {count['rewritten']} rewritten, {count['same']} as they were"
        for file, row in sorted(self.goldens.items()):
            if row["state"] in ("new", "rewritten"):
                yield f"  {file}: {', '.join(filter(None, (row['state'], row['moved'])))}"

    def write_json(self, file: Path) -> None:
        """Write the time of each run, and each figure that has an upper limit; UsageError where that fails."""
        found = []
        for (nodeid, _, figure), row in self.figures.items():
            value = row["value"]
            if value is not None and (figure == "time_ns" or row.get("smaller")):
                unit = {"ns": "ns", "bytes": "B"}.get(unit_of(figure), "1")
                extra = f"budget: {row['budget']}" if "budget" in row else ""
                name = f"{nodeid} {row['run']} {figure}"
                found.append({"name": name, "unit": unit, "value": value, "extra": extra})
        write_text(file, json.dumps(found, indent=2, allow_nan=False))


def _cells(nodeid: str, row: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the line of a figure in the table."""
    measured = figure_text(unit_of(row["figure"]), row["value"])
    budget = f"{row.get('budget', '')}{', beyond' if row.get('beyond') else ''}"
    return f"{nodeid} {row['run']}", row["figure"], measured, budget, row.get("state", "")
