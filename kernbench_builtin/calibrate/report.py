"""What a calibration prints: the fitted parameters with their confidence, and every row measured and simulated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kernbench_builtin.calibrate.calibration import Calibrated, CalibratedRow, signed_percent
from kernbench_builtin.calibrate.fit import FittedValue
from kernbench_builtin.calibrate.systems import TOLERANCE, SystemComparison
from kernbench_core.runs import bare_table
from kernbench_core.units import format_time

if TYPE_CHECKING:
    from rich.table import Table

EXTENDED = "*"
"""Marks a row of which a smaller size was simulated."""


def parameters(values: Sequence[FittedValue]) -> Table:
    """Return the table of the fitted parameters."""
    table = _table("parameter", "fitted", "+-", "limits", "from", left=(0, 4))
    for one in values:
        unknown = one.unknown
        error = "-" if one.error is None else f"{one.error:.2%}"
        limits = f"{_short(unknown.low, one)} to {_short(unknown.high, one)}"
        told = error if one.limit is None else f"on its {one.limit} limit"
        table.add_row(unknown.name, _short(one.value, one), told, limits, unknown.source)
    return table


def _short(value: float, one: FittedValue) -> str:
    number, _, unit = one.unknown.text(value).partition(" ")
    return f"{float(number):.5g} {unit}".rstrip()


def residuals(rows: Sequence[CalibratedRow]) -> Table:
    """Return the table of all rows."""
    table = _table("row", "what", "measured", "simulated", "error", left=(0, 1))
    for one in rows:
        mark = EXTENDED if one.simulated.extended else " "
        took = f"{format_time(one.simulated.ns)}{mark}"
        table.add_row(one.row.place, one.row.label, f"{format_time(one.row.ns)} ", took, signed_percent(one.error))
    return table


def summary(found: Calibrated) -> list[str]:
    """Return the sentences below the tables."""
    rows = f"{len(found.rows)} row{'' if len(found.rows) == 1 else 's'}"
    lines = [
        f"{rows}, simulated {found.rounds} times: {found.mean_error:.2%} off on average, "
        f"{signed_percent(found.worst.error)} at most ({found.worst.row.label})."
    ]
    if any(row.simulated.extended for row in found.rows):
        lines.append(
            f"{EXTENDED} larger than --simulate-to: that size and its half were simulated, and the line through both "
            "continued."
        )
    for one in found.values:
        if one.limit is not None:
            lines.append(f"{one.unknown.name} lies on its {one.limit} limit: the rows would have it beyond.")
    return lines


def compared(found: SystemComparison) -> Table:
    """Return the table of the published rows of a system."""
    table = _table("case", "published", "simulated", "error", left=(0,))
    for row in found.rows:
        table.add_row(
            row.case, _text(row.published, row.unit), _text(row.simulated, row.unit), signed_percent(row.error)
        )
    return table


def _text(value: float, unit: str) -> str:
    return format_time(value) if unit == "ns" else f"{value:.4g} {unit}"


def to_json(found: Calibrated, output: str | None) -> dict[str, Any]:
    """Return plain JSON types: `kernbench.calibrate/1`."""
    return {
        "schema": "kernbench.calibrate/1",
        "logs": list(found.logs.sources),
        "topology": found.base.topology,
        "sets": list(found.machine.sets),
        "output": output,
        "rounds": found.rounds,
        "mean_error": found.mean_error,
        "refusal": found.refusal,
        "parameters": [
            {
                "name": one.unknown.name,
                "key": one.unknown.key,
                "value": one.value,
                "setting": one.unknown.setting(one.value),
                "relative_error": one.error,
                "limit": one.limit,
                "low": one.unknown.low,
                "high": one.unknown.high,
                "source": one.unknown.source,
            }
            for one in found.values
        ],
        "rows": [
            {
                "place": one.row.place,
                "what": one.row.label,
                "measured_ns": one.row.ns,
                "simulated_ns": one.simulated.ns,
                "error": one.error,
                "extended": one.simulated.extended,
            }
            for one in found.rows
        ],
    }


def comparison_json(found: SystemComparison) -> dict[str, Any]:
    """Return plain JSON types: `kernbench.calibrate-check/1`."""
    system = found.system
    return {
        "schema": "kernbench.calibrate-check/1",
        "system": system.name,
        "topology": system.topology,
        "title": system.title,
        "source": system.source,
        "url": system.url,
        "rows": [
            {"case": row.case, "published": row.published, "simulated": row.simulated, "unit": row.unit,
             "error": row.error, "known_error": row.known, "tolerance": TOLERANCE, "kept": row.kept}
            for row in found.rows
        ],
    }  # fmt: skip


def _table(*titles: str, left: tuple[int, ...]) -> Table:
    table = bare_table()
    for index, title in enumerate(titles):
        table.add_column(title, justify="left" if index in left else "right", overflow="fold")
    return table
