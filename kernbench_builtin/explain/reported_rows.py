"""How rows that a bench reports are shown, as one table: titles of columns, and cells with their unit."""

from __future__ import annotations

import math
from collections.abc import Iterable

from kernbench_core.host.rows import Row, Scalar
from kernbench_core.process.terminal import shown_in_line
from kernbench_core.units import format_bytes, format_time

#: Beyond it floats are no longer all of the integers.
_EXACT = 2.0**53


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
