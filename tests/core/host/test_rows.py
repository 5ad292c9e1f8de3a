"""Rows that a bench reports: plain values only."""

from __future__ import annotations

import numpy as np
import pytest

from kernbench_core.errors import UsageError
from kernbench_core.host.rows import make_row


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
