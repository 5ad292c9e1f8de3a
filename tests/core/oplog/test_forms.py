"""What the records of a template share is what each of them has when it is rebuilt."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kernbench_core.oplog.description import Access, OpDescription
from kernbench_core.oplog.log import OpLog
from kernbench_core.oplog.parameters import OF_READS
from kernbench_core.values.region import Region
from kernbench_core.values.value import LoadedValue
from tests.core.oplog.drawn_ops import descriptions, types_in


def filled(described: list[OpDescription], spill_rows: int = 1 << 20) -> OpLog:
    log = OpLog(spill_rows)
    for at, one in enumerate(described):
        log.append(float(at), at + 0.5, "unit", one)
    return log


@settings(max_examples=100)
@given(st.lists(descriptions, min_size=1, max_size=6), st.integers(1, 4))
def test_a_form_says_what_its_records_are(described: list[Any], limit: int) -> None:
    """Names, spaces and constants, and where its numbers are; of a log that lies in files, too."""
    log = filled(described, limit)
    columns = log.columns
    for row in range(len(log)):
        record, form = log.at_row(row, dependencies=False), columns.form(columns.template[row])
        assert (form.op_kind, form.op_name, form.function) == (record.op_kind, record.op_name, record.function)
        accesses = [*record.reads, *([record.writes] if record.writes is not None else [])]
        assert form.spaces == tuple(access.space for access in accesses)
        assert {**record.params, **form.constants} == record.params
        for name, value in form.constants.items():
            assert types_in(value) == types_in(record.params[name])
        start = columns.row_starts()[0][row]
        for name, place in form.int_places.items():
            assert columns.ints[start + place] == record.params[name]
        for access, place in zip(accesses, form.base_places, strict=True):
            assert place < 0 or columns.ints[start + place] == access.regions[0].base


def test_records_of_one_form_differ_in_their_numbers_alone() -> None:
    """Three copies at other places are one form, whose constants leave out what each has of its own."""
    value = LoadedValue((8,), "f32")

    def copy(base: int, count: int) -> OpDescription:
        params = {"src_addr": base, "shape": (8,), "spaces": ["hbm"], "count": count, "snapshot": OF_READS}
        return OpDescription("memory", "copy", params, (Access("hbm", (Region(base, 32),), value),))

    log = filled([copy(64, 1), copy(128, 2), copy(32, 3)])
    assert list(log.columns.template) == [0, 0, 0]
    form = log.columns.form(0)
    assert form.constants == {"shape": (8,), "spaces": ["hbm"]}
    made = log.at_row(0).params
    made["spaces"].append("mine")
    assert log.at_row(0).params["spaces"] == form.constants["spaces"] == ["hbm"]
