"""Many records read from the columns at once are the records that are rebuilt one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
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
@given(st.lists(descriptions, min_size=1, max_size=6), st.integers(1, 4), st.data())
def test_a_batch_is_the_records_one_by_one(described: list[Any], limit: int, draw: st.DataObject) -> None:
    """In any order of rows, repeated ones too, and of a log that lies in files."""
    log = filled(described, limit)
    rows = draw.draw(st.lists(st.integers(0, len(described) - 1), max_size=6))
    batch = log.batch(rows)
    records = [log.at_row(row, dependencies=False) for row in rows]
    found: dict[int, Any] = {}
    for form, positions in batch.by_form():
        assert positions.tolist() == sorted(positions.tolist())
        for at in positions.tolist():
            found[at] = form
    assert sorted(found) == list(range(len(rows)))
    integers = batch.integers("m").tolist()
    for at, record in enumerate(records):
        form = found[at]
        assert form is batch.form(at)
        assert (form.op_kind, form.op_name, form.function) == (record.op_kind, record.op_name, record.function)
        accesses = [*record.reads, *([record.writes] if record.writes is not None else [])]
        assert form.spaces == tuple(access.space for access in accesses)
        assert batch.values(at) == [access.value for access in accesses if access.value is not None]
        assert batch.params(at) == record.params and list(batch.params(at)) == list(record.params)
        assert list(map(types_in, batch.params(at).values())) == list(map(types_in, record.params.values()))
        assert {**{name: record.params[name] for name in form.varying}, **form.constants} == record.params
        for name, value in form.constants.items():
            assert types_in(value) == types_in(record.params[name])
        m = record.params.get("m")
        assert integers[at] == (m if type(m) is int and -(2**63) <= m < 2**63 and "m" in form.int_places else 0)
        for number, access in enumerate(accesses):
            base = access.regions[0].base if form.base_places[number] >= 0 else 0
            assert batch.bases(number)[at] == base
    assert batch.starts().tolist() == [record.t_start for record in records]
    assert batch.ops() == [record.op_id or (-1, -1) for record in records]


def test_records_of_one_form_differ_in_their_numbers_alone() -> None:
    """Three copies at other places are one form, whose constants leave out what each has of its own."""
    value = LoadedValue((8,), "f32")

    def copy(base: int, count: int) -> OpDescription:
        params = {"src_addr": base, "shape": (8,), "spaces": ["hbm"], "count": count, "snapshot": OF_READS}
        return OpDescription("memory", "copy", params, (Access("hbm", (Region(base, 32),), value),))

    log = filled([copy(64, 1), copy(128, 2), copy(32, 3)])
    ((form, at),) = log.batch([2, 0, 1]).by_form()
    assert at.tolist() == [0, 1, 2]
    assert form.constants == {"shape": (8,), "spaces": ["hbm"]}
    assert form.varying == ("src_addr", "count", "snapshot")
    batch = log.batch(np.array([2, 0, 1]))
    assert batch.bases(0).tolist() == batch.integers("src_addr").tolist() == [32, 64, 128]
    assert batch.integers("count", np.array([1, 2])).tolist() == [1, 2]
    assert batch.bases(5).tolist() == batch.integers("nothing").tolist() == [0, 0, 0]
    made = batch.params(0)
    made["spaces"].append("mine")
    assert batch.params(0)["spaces"] == form.constants["spaces"] == ["hbm"]
