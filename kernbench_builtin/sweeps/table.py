"""The table of a sweep: a row for each point, as JSON lines, CSV, and Parquet where pyarrow is installed."""

from __future__ import annotations

import csv
import importlib.util
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kernbench_builtin.sweeps.axes import value_text
from kernbench_builtin.sweeps.folder import SweepFolder

#: Columns that stand last.
_LAST: Final = ("error", "op_log_sha256", "key")


def columns_of(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the columns of a table: as rows have them, what only some have behind what comes before it there."""
    columns: dict[str, None] = {}
    for row in sorted(rows, key=len, reverse=True):
        columns |= dict.fromkeys(row)
    return [*(name for name in columns if name not in _LAST), *(name for name in _LAST if name in columns)]


def write_tables(folder: SweepFolder) -> None:
    """Write the tables of all that is recorded in a folder that is kept."""
    if not folder.kept:
        return
    rows = folder.sweep().rows
    folder.write("table.jsonl", "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows).encode())
    folder.write("table.csv", csv_text(rows).encode())
    if importlib.util.find_spec("pyarrow") is not None:
        folder.write("table.parquet", parquet_bytes(rows))


def parquet_bytes(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """Return rows as a Parquet file; a column of values that are not all numbers, or all true or false, is text."""
    import pyarrow
    import pyarrow.parquet

    columns = {name: pyarrow.array(*_typed([row.get(name) for row in rows])) for name in columns_of(rows)}
    out = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(columns), out)
    return out.getvalue()


def _typed(values: list[Any]) -> tuple[list[Any], str]:
    """Return the values of a column, None where there is none, and the name of the type that all of them have."""
    kinds = {type(value) for value in values if value is not None}
    if kinds == {bool}:
        return values, "bool"
    if kinds == {int} and all(-(2**63) <= value < 2**63 for value in values if value is not None):
        return values, "int64"
    if kinds and kinds <= {int, float}:
        return [None if value is None else float(value) for value in values], "float64"
    return [None if value is None else value_text(value) for value in values], "string"


def csv_text(rows: Sequence[Mapping[str, Any]]) -> str:
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
