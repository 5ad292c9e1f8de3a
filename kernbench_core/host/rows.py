"""Rows that a bench reports beside the result: plain values under names of its own, shown as one table."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from kernbench_core.errors import UsageError
from kernbench_core.process.terminal import shown_in_line
from kernbench_core.units import format_bytes, format_time
from kernbench_core.wording import brief

Scalar: TypeAlias = int | float | str | bool | None
Row: TypeAlias = Mapping[str, Scalar]
#: Beyond it floats are no longer all of the integers.
_EXACT = 2.0**53


def make_row(columns: Mapping[str, Any]) -> dict[str, Scalar]:
    """Return the columns with numpy's scalars as Python's; UsageError for a value that is none, or for no column."""
    if not columns:
        raise UsageError("rt.report must be given at least one column, as rt.report(size=64); name one.")
    return {name: _plain(name, value) for name, value in columns.items()}


def column_names(rows: Iterable[Row]) -> tuple[str, ...]:
    """Return the names of all columns, in the order in which they first come."""
    return tuple(dict.fromkeys(name for row in rows for name in row))


def column_title(name: str) -> str:
    """Return a column's title: its name without the unit, which the cells show, each word on a line."""
    return shown_in_line(name.removesuffix("_ns").removesuffix("_bytes")).replace("_", "\n")


def cell_text(name: str, value: Scalar) -> str:
    """Write a cell: a time where its column's name ends in `_ns`, bytes where in `_bytes`, "-" for None."""
    if value is None:
        return "-"
    if isinstance(value, bool | str):
        return str(value).lower() if isinstance(value, bool) else shown_in_line(value)
    if name.endswith("_ns") and math.isfinite(value):
        return format_time(value)
    if name.endswith("_bytes") and math.isfinite(value):
        return format_bytes(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        value = int(value)  # a count, as of FLOP, that numpy or a division made a float
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


def _plain(name: str, value: Any) -> Scalar:
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        value = value.item()
    if value is not None and not isinstance(value, int | float | str):
        raise UsageError(
            f"rt.report: column {name!r} must be a number, a text, true, false or None, not {brief(value)}; report a "
            "plain value."
        )
    plain: Scalar = value
    return plain
