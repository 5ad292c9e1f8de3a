"""A log that went to files is the same log, at a cost in memory that does not follow its length."""

from __future__ import annotations

import gc
import json
import resource
import tempfile
from array import array
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernbench_builtin.saved.saved_run import load_run, save_run
from kernbench_core.errors import UsageError
from kernbench_core.oplog.log import OpLog
from kernbench_core.oplog.spill import SpilledColumn, chunks, take
from kernbench_core.values.value import LoadedValue, ResultValue
from kernbench_core.values.views import AbstractValue
from tests.core.kernel_rig import Rig
from tests.core.oplog.drawn_ops import descriptions

X = np.arange(4096, dtype=np.float32).reshape(64, 64)


def ops(x: Any, y: Any, tl: Any) -> None:
    """Load, multiply, add, reshape, store; through pointers too, so that the side table has rows."""
    for _ in range(4):
        a = tl.load(x, shape=(16, 16))
        b = tl.dot(a, a) + 2.0
        tl.store(y, tl.reshape(b, (256,)))
        tl.load(x + (tl.arange(0, 8) * tl.arange(0, 8)))


def logged(spill_rows: int, data: bool, kernel: Any = ops) -> tuple[Rig, Any]:
    """Run the kernel on two PEs with a log of this limit."""
    rig = Rig(pes=2, data=data, log=OpLog(spill_rows, spill_values=not data))
    y = rig.empty((256,))
    rig.run(kernel, rig.tensor(X), y)
    return rig, y


def saved(rig: Rig, folder: Path) -> tuple[Any, dict[str, Any], bytes]:
    """Save a run and give what the files hold."""
    save_run(folder, rig.log, rig.store)
    with np.load(folder / "columns.npz") as file:
        numbers = {name: file[name].tolist() for name in file.files}
    return json.loads((folder / "run.json").read_text()), numbers, (folder / "arrays.bin").read_bytes()


@pytest.mark.parametrize("data", [True, False])
@pytest.mark.parametrize("limit", [1, 2, 7])
def test_results_hash_records_and_saved_file_are_the_same(tmp_path: Path, data: bool, limit: int) -> None:
    """Whether the log spilled at every record, at every few, or never."""
    whole, y = logged(10**6, data)
    spilled, z = logged(limit, data)
    assert spilled.log.columns.spilled
    assert not whole.log.columns.spilled
    assert spilled.log.sha256() == whole.log.sha256()
    for one, two in zip(whole.log, spilled.log, strict=True):
        assert (str(one), one.dependency_ids, one.op_id, one.stage_of) == (
            str(two), two.dependency_ids, two.op_id, two.stage_of,
        )  # fmt: skip
        assert {k: repr(v) for k, v in one.params.items()} == {k: repr(v) for k, v in two.params.items()}
        assert [(a.space, a.regions, repr(a.value)) for a in one.reads] == [
            (a.space, a.regions, repr(a.value)) for a in two.reads
        ]
    assert saved(spilled, tmp_path / "a") == saved(whole, tmp_path / "b")
    assert load_run(tmp_path / "a").op_log.sha256() == whole.log.sha256()
    if data:
        np.testing.assert_array_equal(spilled.numpy(z), whole.numpy(y))


@settings(max_examples=60)
@given(st.lists(st.tuples(descriptions, st.integers(0, 9), st.sampled_from("ab")), max_size=12), st.integers(1, 5))
def test_any_log_is_the_same(described: list[Any], limit: int) -> None:
    """In any order of times and components, with parameters of every kind."""
    whole, spilled = OpLog(), OpLog(limit)
    for log in (whole, spilled):
        for one, at, component in described:
            log.append(float(at), at + 0.5, component, one)
    assert spilled.sha256() == whole.sha256()
    assert np.asarray(spilled.columns.order()).tolist() == np.asarray(whole.columns.order()).tolist()
    assert dict(spilled.makers()) == dict(whole.makers())
    for one, two in zip(whole, spilled, strict=True):
        assert (one.t_start, one.component_id, one.params, one.op_id) == (
            two.t_start, two.component_id, two.params, two.op_id,
        )  # fmt: skip


@given(st.lists(st.integers(-100, 100), max_size=40), st.integers(1, 9), st.data())
def test_a_column_reads_like_an_array(numbers: list[int], every: int, draw: Any) -> None:
    """Items, slices, picks and the whole, with a part in the file and a part not."""
    column = SpilledColumn(array("i"))
    for at, number in enumerate(numbers):
        column.append(number)
        if at % every == every - 1:
            column.spill()
    assert len(column) == len(numbers)
    assert list(column) == numbers == np.asarray(column).tolist() == [column[i] for i in range(len(numbers))]
    start = draw.draw(st.integers(0, 45))
    stop = draw.draw(st.integers(0, 45))
    assert column[start:stop].tolist() == numbers[start:stop]
    if numbers:
        rows = np.array(draw.draw(st.lists(st.integers(0, len(numbers) - 1), max_size=9)), np.int64)
        assert take(column, rows).tolist() == [numbers[row] for row in rows]
        assert column[-1] == numbers[-1]
    assert [n for part in chunks(column) for n in part.tolist()] == numbers


def test_values_that_nobody_holds_are_let_go_and_come_back_equal() -> None:
    """Without data a result is an op and a shape, a load these and what is behind it; who holds one gets it back."""
    log = OpLog(10**6, spill_values=True)
    columns = log.columns
    content = AbstractValue((2, 2), "f16")
    held = ResultValue((0, 5), (2, 2), "f32")
    late = LoadedValue((2, 2), "f16", op_id=(1, 8))
    loads = [LoadedValue((2, 2), "f16", content, (1, n)) for n in range(3)]
    columns.values += [held, *loads, late, loads[0]]
    columns.spill()
    late.bind(content)
    columns.spill()
    number = id(late), late.op_id
    del loads, late
    gc.collect()
    found = columns.values[:]
    assert found[0] is held
    assert [value.op_id for value in found[1:]] == [(1, 0), (1, 1), (1, 2), number[1], (1, 0)]
    assert found[1] is found[5]
    assert all(value.content() is content for value in found[1:])
    assert len(columns.values._kept) == 0


def test_nothing_is_left_in_the_folder_of_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither while the log is used, nor after it, nor when a kernel raised."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    gc.collect()  # files of other tests' logs
    before = len(list(Path("/proc/self/fd").iterdir()))

    def failing(x: Any, y: Any, tl: Any) -> None:
        ops(x, y, tl)
        raise RuntimeError("stop")

    rig, _ = logged(1, False)
    assert rig.log.columns.spilled
    assert list(tmp_path.iterdir()) == []
    del rig
    with pytest.raises(Exception, match="stop"):
        logged(1, False, failing)
    gc.collect()
    assert list(tmp_path.iterdir()) == []
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_the_engine_takes_the_limit() -> None:
    """And spills values only where there is no data."""
    from tests.core.toy_machine import toy_engine

    engine = toy_engine(spill_rows=3)
    assert (engine.op_log.columns._spill_rows, engine.op_log.columns._spill_values) == (3, True)


def test_a_full_disk_is_a_sentence_and_nothing_follows() -> None:
    """No component is blamed, and closing the file, which cannot write its rest either, is quiet."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        column = SpilledColumn(array("d", range(1000)))
        with pytest.raises(UsageError) as caught:
            column.spill()
        del column
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert str(caught.value) == (
        "the op log of a long run must go to temporary files, but that failed with 'File too large'; make room, or "
        "name another folder in TMPDIR."
    )
