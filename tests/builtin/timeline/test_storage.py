"""A timeline comes back from its file as it was, and a file that is none is refused with a sentence."""

from __future__ import annotations

import copy
import io
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

from kernbench_builtin.pages.timeline import Activity, Timeline, load, save
from kernbench_builtin.pages.timeline.columns import column_names
from kernbench_builtin.pages.timeline.span_rows import SpanRows
from kernbench_builtin.pages.timeline.timeline import Counter, Flows, Track
from kernbench_core.errors import UsageError


def sample() -> Timeline:
    """Make a small timeline that has some of everything."""
    rows = SpanRows()
    rows.add(0, rows.name("launch"), 0.0, 9.5, nbytes=3)
    rows.add(1, rows.name("read"), np.array([1.0, 2.0]), np.array([2.0, 4.0]), op=7, line=0, message=np.array([4, 5]))
    spans, _ = rows.finish(np.array([0, 1]))
    ones = np.array([1])
    return Timeline(
        9.5,
        (Track(0, -1, "host", "host", "host"), Track(1, 0, "r → µ", "wire", "a->b")),
        tuple(rows.names),
        ("/k.py:3",),
        ("x = tl.load(p)",),
        spans,
        (Counter("bandwidth", "B/s", 1, np.array([1.0, 4.0]), np.array([1e9, 0.0])),),
        Flows(ones, ones, ones * 1.5, ones * 2, ones * 4.0),
        "wire",
        ("nothing is missing.",),
        Activity(np.array([0.0, 4.0, 9.5]), ("a->b",), np.array([1]), np.array([[1.0, 0.0]]), np.array([[0.0, 2.5]])),
        (0.5, 9.0),
    )


def test_it_comes_back_as_it_was(tmp_path: Path) -> None:
    """Every field, and in the same bytes each time."""
    save(sample(), tmp_path / "t.npz")
    save(sample(), tmp_path / "u.npz")
    assert load(tmp_path / "t.npz") == sample()
    assert (tmp_path / "t.npz").read_bytes() == (tmp_path / "u.npz").read_bytes()


def test_it_can_be_pickled() -> None:
    """As results are that go to another process."""
    assert pickle.loads(pickle.dumps(sample())) == sample()


@pytest.mark.parametrize("made", [lambda of: of, lambda of: pickle.loads(pickle.dumps(of)), copy.deepcopy, copy.copy])
def test_its_columns_are_only_read(made: Callable[[Timeline], Timeline]) -> None:
    """Also those of a copy, a window and a level; whoever gave an array may go on to write there."""
    given = np.array([0.0, 9.0])
    for found in (made(sample()), made(sample()).window(1.0, 3.0), made(sample()).level("wire")):
        tables = (found.spans, found.flows, found.counters[0], found.activity)
        columns = [(table, name) for table in tables for name in column_names(type(table))]
        assert len(columns) == 9 + 5 + 2 + 4
        for table, name in columns:
            with pytest.raises(ValueError, match="assignment destination is read-only"):
                getattr(table, name)[...] = 0
    Counter("bandwidth", "B/s", 0, given, given)
    given[0] = 1.0


def damaged(tmp_path: Path, **arrays: Any) -> str:
    """Write a file with other arrays; return what is said of it."""
    out = io.BytesIO()
    save(sample(), out)
    with np.load(io.BytesIO(out.getvalue())) as found:
        kept = {**found, **arrays}
    path = tmp_path / "t.npz"
    with path.open("wb") as file:
        np.savez(file, **{name: array for name, array in kept.items() if array is not None})
    return said(path)


def said(path: Path) -> str:
    with pytest.raises(UsageError) as caught:
        load(path)
    return str(caught.value)


def head(**changes: Any) -> Any:
    out = io.BytesIO()
    save(sample(), out)
    with np.load(io.BytesIO(out.getvalue())) as found:
        fields = {**json.loads(found["head"].tobytes()), **changes}
    return np.frombuffer(json.dumps(fields).encode(), np.uint8)


@pytest.mark.parametrize("keep", [0, 10, 200, -30])
def test_a_file_that_was_cut_off_is_damaged(tmp_path: Path, keep: int) -> None:
    """Wherever."""
    out = io.BytesIO()
    save(sample(), out)
    path = tmp_path / "t.npz"
    path.write_bytes(out.getvalue()[:keep])
    assert said(path).startswith(f"timeline {str(path)!r} must be a whole file as a run wrote it, and is damaged (")


@pytest.mark.parametrize(
    "arrays",
    [
        {"head": np.frombuffer(b"[]", np.uint8)},
        {"head": head(tracks=[])},
        {"head": head(lines=[])},
        {"spans.track": np.array([0, 1, 2], np.int32)},
        {"spans.track": np.array([0, 1], np.int32)},
        {"spans.name": np.array([0, 1, 1], np.int64)},
        {"spans.parent": None},
        {"spans.op": np.array([object()] * 3)},
        {"flows.to_span": np.array([3], np.int32)},
        {"counters.values": np.array([1.0])},
        {"activity.busy_ns": np.array([[1.0]], np.float32)},
        {"activity.waiting_ns": np.array([1.0, 2.0], np.float32)},
        {"activity.servers": np.array([0], np.int32)},
        {"activity.edges_ns": np.array([0.0, 4.0, 4.0])},
        {"head": head(places=["a->b", "b->a"])},
    ],
)
def test_a_file_of_other_things_is_damaged(tmp_path: Path, arrays: Any) -> None:
    """Columns that do not fit, numbers of what is not there, and pickles."""
    assert damaged(tmp_path, **arrays).startswith(
        f"timeline {str(tmp_path / 't.npz')!r} must be a whole file as a run wrote it, and is damaged ("
    )


def test_a_file_of_before_has_no_activity(tmp_path: Path) -> None:
    """It is read, and the rest is as it was."""
    out = tmp_path / "t.npz"
    save(attrs.evolve(sample(), activity=None), out)
    found = load(out)
    assert found.activity is None and attrs.evolve(found, activity=sample().activity) == sample()


def test_a_file_of_before_is_known_where_its_activity_is(tmp_path: Path) -> None:
    """It does not say what it was cut to; what was busy is known there."""
    activity = sample().activity
    assert activity is not None
    for since, until, known in ((1.0, 4.0, (1.0, 4.0)), (0.0, 9.5, None)):
        save(attrs.evolve(sample(), activity=activity.window(since, until)), tmp_path / "t.npz")
        with np.load(tmp_path / "t.npz") as found:
            arrays = dict(found)
        old = {name: value for name, value in json.loads(arrays["head"].tobytes()).items() if name != "known_ns"}
        np.savez(tmp_path / "u.npz", **{**arrays, "head": np.frombuffer(json.dumps(old).encode(), np.uint8)})
        assert load(tmp_path / "u.npz").known_ns == known


def test_a_newer_file_is_refused(tmp_path: Path) -> None:
    """It says what to do."""
    assert damaged(tmp_path, head=head(schema=2)) == (
        f"timeline {str(tmp_path / 't.npz')!r} must have schema 1, not 2; a later kernbench wrote it; use a newer "
        "kernbench."
    )


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    """It says where one comes from."""
    assert said(tmp_path / "t.npz") == (
        f"timeline {str(tmp_path / 't.npz')!r} must exist, and does not; run with --out to have one written."
    )
