"""The table of a sweep: a row for each point, as JSON lines, CSV, and Parquet where pyarrow is installed."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from typing import Any, Final

from kernbench_core.sweeps.axes import value_text
from kernbench_core.sweeps.folder import SweepFolder, SweepResult

_TAKEN: Final = ("index", "status", "error")


def rows_of(sweep: SweepResult) -> list[dict[str, Any]]:
    """Return a row for each point, in order: axes, status, objectives, figures, the error in a sentence, the key.

    Nothing in it depends on when, where or in which order points were carried out.
    """
    return [_row(record) for record in sweep.records]


def _row(record: Mapping[str, Any]) -> dict[str, Any]:
    error = record["error"]
    return {
        "index": record["index"],
        **record["values"],
        "status": record["status"],
        **record["objectives"],
        **{name: value for name, value in record["figures"].items() if name not in record["objectives"]},
        "error": None if error is None else error["sentence"],
        "op_log_sha256": record["op_log_sha256"],
        "key": record["key"],
    }


def columns_of(rows: list[dict[str, Any]]) -> list[str]:
    """Return the columns of a table, in the order in which rows have them."""
    columns: dict[str, None] = {}
    for row in sorted(rows, key=len, reverse=True):
        columns |= dict.fromkeys(row)
    return list(columns)


def write_tables(folder: SweepFolder) -> None:
    """Write the tables of all that is recorded in a folder."""
    rows = rows_of(folder.sweep())
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
