"""The op log by column says what its records say one by one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kernbench_builtin.machines.figures.ops import op_columns
from kernbench_core.oplog.description import Access, OpDescription
from kernbench_core.oplog.log import OpLog
from kernbench_core.values.region import Region
from tests.core.oplog.drawn_ops import descriptions

rows = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 5), st.sampled_from("abc"), descriptions), max_size=5)


def bytes_of(accesses: Iterable[Access]) -> int:
    """Add up rows times bytes of a row."""
    return sum(region.rows * region.row_bytes for access in accesses for region in access.regions)


def row_of(record: Any) -> dict[str, Any]:
    """Say of a record what its row must hold."""
    pe, issue = record.op_id or (-1, -1)
    return {
        "t_start": record.t_start,
        "t_end": record.t_end,
        "component": record.component_id,
        "kind": record.op_kind,
        "name": record.op_name,
        "pe": pe,
        "issue": issue,
        "stage_of": -1 if record.stage_of is None else record.stage_of[1],
        "read_bytes": bytes_of(record.reads),
        "written_bytes": bytes_of([record.writes] if record.writes else []),
    }


@settings(max_examples=20)
@given(rows, st.sampled_from([2, 100]))
def test_each_row_is_a_record(given_rows: list[tuple[int, int, str, OpDescription]], spill_rows: int) -> None:
    """In the order of the log, whatever that of appending, in memory and out of files."""
    log = OpLog(spill_rows)
    for start, took, component, description in given_rows:
        log.append(float(start), float(start + took), component, description)
    found = op_columns(log)
    assert list(found) == [row_of(record) for record in log]
    assert len(found) == len(given_rows)


def test_bytes_are_those_of_the_regions_a_record_names() -> None:
    """Rows times bytes of a row, over every region; of two records alike but for their lengths, each its own."""
    log = OpLog()
    for length in (4, 6):
        a = Access("hbm", (Region(0, length, 3, 64), Region(512, length)))
        b = Access("tcm", (Region(64, 8, 2, 32),))
        c = Access("tcm", (Region(0, length, 5, 16),))
        log.append(0.0, 1.0, "u", OpDescription("math", "add", {}, (a, b), c))
    log.append(2.0, 3.0, "u", OpDescription("math", "peek", {}, (b,), None))
    log.append(4.0, 5.0, "u", OpDescription("math", "fill", {}, (), b))
    found = op_columns(log)
    assert found["read_bytes"].tolist() == [4 * 3 + 4 + 16, 6 * 3 + 6 + 16, 16, 0]
    assert found["written_bytes"].tolist() == [4 * 5, 6 * 5, 0, 16]
    assert found["read_bytes"].dtype == found["written_bytes"].dtype == np.int64


def test_a_log_without_records_has_its_columns() -> None:
    """So that a sum over them is 0."""
    found = op_columns(OpLog())
    assert list(found) == []
    assert found["written_bytes"].sum() == 0
    assert found["component"].tolist() == []
