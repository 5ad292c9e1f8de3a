"""The table of a sweep: a row for each point, as JSON lines, CSV, and Parquet where pyarrow is installed."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

from kernbench_core.sweeps.axes import value_text
from kernbench_core.sweeps.folder import SweepFolder


def columns_of(rows: list[dict[str, Any]]) -> list[str]:
    """Return the columns of a table, in the order in which rows have them."""
    columns: dict[str, None] = {}
    for row in sorted(rows, key=len, reverse=True):
        columns |= dict.fromkeys(row)
    return list(columns)


def write_tables(folder: SweepFolder) -> None:
    """Write the tables of all that is recorded in a folder."""
    rows = folder.sweep().rows
    folder.write("table.jsonl", "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows).encode())
    folder.write("table.csv", csv_text(rows).encode())


def csv_text(rows: list[dict[str, Any]]) -> str:
    """Return rows as CSV, with a header; nothing stands where a row has no value."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    columns = columns_of(rows)
    writer.writerow(columns)
    for row in rows:
        writer.writerow([_cell(row.get(name)) for name in columns])
    return out.getvalue()


def _cell(value: object) -> str:
    return "" if value is None else value_text(value)
