"""Rows that a bench reports, as they are shown: times and bytes with their units."""

from __future__ import annotations

import io

import pytest
from rich.table import Table

from kernbench_builtin.explain.reported_rows import cell_text, column_names, column_title
from kernbench_core.runs.text_report import make_console, show


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("kernel_ns", 1234.5, "1.234 us"),
        ("read_bytes", 65536, "64 KiB"),
        ("tiles", 12345, "12,345"),
        ("rate", 0.123456, "0.1235"),
        ("rate", 12345.5, "1.235e+04"),
        ("flops", 10240.0, "10,240"),
        ("flops", 1e16, "1e+16"),
        ("rate", float("nan"), "nan"),
        ("kernel_ns", float("inf"), "inf"),
        ("pinned", True, "true"),
        ("pin", "a", "a"),
        ("pin", "a\tb\nc\x1b", "a\\tb\\nc\\x1b"),
        ("kernel_ns", None, "-"),
    ],
)
def test_cells_show_their_unit(name, value, text) -> None:
    assert cell_text(name, value) == text


def test_columns_come_in_the_order_in_which_they_are_first_named() -> None:
    assert column_names([{"a": 1, "c": 2}, {"b": 3, "a": 4}]) == ("a", "c", "b")
    assert column_title("read\tthe\nline_x_ns") == "read\\tthe\\nline\nx"
    assert [column_title(name) for name in ("kernel_ns", "read_bytes", "DMA_READ")] == ["kernel", "read", "DMA\nREAD"]


def test_columns_of_a_table_are_as_wide_as_what_is_shown() -> None:
    """Rows that a bench reports are not cut off."""
    stream = io.StringIO()
    table = Table(column_title("a\x1b[5m"))
    table.add_row(cell_text("a", "\x9b31m" * 4))
    show(table, make_console(stream))
    assert r"a\x1b[5m" in stream.getvalue()
    assert r"\x9b31m" * 4 in stream.getvalue()
