"""Rows that a bench reports: plain values only, times and bytes with their units."""

from __future__ import annotations

import numpy as np
import pytest

from kernbench_core.errors import UsageError
from kernbench_core.host.rows import cell_text, column_names, column_title, make_row


def test_numpy_scalars_become_plain() -> None:
    row = make_row({"a": np.float32(0.5), "b": np.int64(3), "c": np.array(True), "d": None, "e": "x"})
    assert row == {"a": 0.5, "b": 3, "c": True, "d": None, "e": "x"}
    assert [type(cell) for cell in row.values()] == [float, int, bool, type(None), str]


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({}, "rt.report must be given at least one column, as rt.report(size=64); name one."),
        (
            {"sizes": [1, 2]},
            "rt.report: column 'sizes' must be a number, a text, true, false or None, not [1, 2]; report a plain "
            "value.",
        ),
    ],
)
def test_what_is_no_row(columns, told) -> None:
    with pytest.raises(UsageError) as caught:
        make_row(columns)
    assert str(caught.value) == told


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
