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

EXTENDED, CHECK, LEFT_OUT = "*", "^", "x"
"""Mark rows that were continued from smaller ones, that were not fitted, and that tell nothing."""


def parameters(values: Sequence[FittedValue]) -> Table:
    """Return the table of the fitted parameters."""
    table = _table("parameter", "fitted", "+- (95 %)", "limits", "from", left=(0, 4))
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
        mark = f"{EXTENDED if one.simulated.extended else ' '}{' ' if one.fitted else _unfitted(one)}"
        took = f"{format_time(one.simulated.ns)}{mark}"
        table.add_row(one.row.place, one.row.label, f"{format_time(one.row.ns)} ", took, signed_percent(one.error))
    return table


def _unfitted(row: CalibratedRow) -> str:
    return CHECK if row.simulated.settled else LEFT_OUT


def summary(found: Calibrated) -> list[str]:
    """Return the sentences below the tables."""
    lines = [
        f"{_rows(len(found.fitted))}, simulated {found.rounds} times: {found.mean_error:.2%} off on average, "
        f"{signed_percent(found.worst.error)} at most ({found.worst.row.label}).",
        _checked(found.checks),
    ]
    if found.logs.way is not None:
        lines.append(f"All were simulated {found.logs.way}: so they fit, and otherwise not.")
    lines += found.ran
    if any(row.simulated.extended for row in found.rows):
        lines.append(f"{EXTENDED} continued from the largest size that was simulated.")
    left = [row for row in found.rows if not row.simulated.settled]
    if left:
        least = min(left, key=lambda row: row.row.ns)
        lines.append(
            f"{LEFT_OUT} left out ({_rows(len(left))}, from {least.row.label}): as far as --simulate-to, times do not "
            "grow evenly yet, and the line through them leads nowhere; give more of it."
        )
    for one in found.values:
        if one.limit is not None:
            lines.append(f"{one.unknown.name} lies on its {one.limit} limit: it may lie beyond.")
    return lines


def _rows(count: int) -> str:
    return f"{count} row{'' if count == 1 else 's'}"


def _checked(checks: Sequence[CalibratedRow]) -> str:
    """Say how far rows are off that were not fitted."""
    if not checks:
        return "No row was kept out of the fit to check it: give six more than there are parameters."
    worst = max(checks, key=lambda row: abs(row.error))
    mean = sum(abs(row.error) for row in checks) / len(checks)
    return (
        f"{CHECK} not fitted, a check ({_rows(len(checks))}): {mean:.2%} off on average, "
        f"{signed_percent(worst.error)} at most ({worst.row.label})."
    )


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
        "way": found.logs.way,
        "ran": list(found.ran),
        "mean_error": found.mean_error,
        "check_error": found.check_error,
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
                "fitted": one.fitted,
                "settled": one.simulated.settled,
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
