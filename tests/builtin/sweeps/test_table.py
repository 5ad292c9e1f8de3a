"""The tables of a sweep: what each form of them is read back as."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest

from kernbench_builtin.sweeps.table import columns_of, csv_text, parquet_bytes

ROWS: list[dict[str, Any]] = [
    {"index": 0, "n": 1, "link": "1 GB/s", "on": True, "mixed": 1, "x": 0.1, "busy.a": 2, "error": None, "key": "k"},
    {"index": 1, "n": 2, "link": "2 GB/s", "on": False, "mixed": "auto", "x": 3, "error": 'it said "no", twice',
     "key": "l"},
    {"index": 2, "n": 2**70, "link": "2 GB/s", "on": None, "mixed": [1, 2], "x": None, "busy.b": 0.5, "only": "here",
     "error": None, "key": "m"},
]  # fmt: skip


def test_columns_are_those_of_all_rows() -> None:
    """What tells of the end of a point stands last."""
    assert columns_of(ROWS) == [
        "index", "n", "link", "on", "mixed", "x", "busy.b", "only", "busy.a", "error", "key",
    ]  # fmt: skip
    assert columns_of([]) == []


def test_a_table_in_csv_is_read_back_as_it_was() -> None:
    """By Python's own reader; nothing stands where there is nothing."""
    found = list(csv.DictReader(io.StringIO(csv_text(ROWS))))
    assert [line["error"] for line in found] == ["", 'it said "no", twice', ""]
    assert [line["mixed"] for line in found] == ["1", "auto", "[1, 2]"]
    assert [line["on"] for line in found] == ["true", "false", ""]
    assert [float(line["x"]) for line in found[:2]] == [0.1, 3.0]


def test_a_table_in_parquet_is_read_back_with_its_types() -> None:
    """Numbers as numbers, what is mixed as text; equal rows give equal bytes."""
    arrow = pytest.importorskip("pyarrow.parquet")
    found = arrow.read_table(io.BytesIO(parquet_bytes(ROWS)))
    assert {name: str(found.schema.field(name).type) for name in found.column_names} == {
        "index": "int64", "n": "double", "link": "string", "on": "bool", "mixed": "string", "x": "double",
        "busy.b": "double", "only": "string", "busy.a": "int64", "error": "string", "key": "string",
    }  # fmt: skip
    assert found.column("x").to_pylist() == [0.1, 3.0, None]
    assert found.column("mixed").to_pylist() == ["1", "auto", "[1, 2]"]
    assert parquet_bytes(ROWS) == parquet_bytes([dict(row) for row in ROWS])
