"""Columns: arrays by name, rows by number, and nothing read before it is looked at."""

from __future__ import annotations

import pickle
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench_builtin.machines.figures.columns import ColumnTable, TextColumn
from kernbench_core.errors import UsageError

ROWS = st.lists(st.tuples(st.sampled_from(["a", "<b>", "ü"]), st.integers(-5, 5), st.floats(-1, 1)), max_size=12)


def made(rows: list[tuple[str, int, float]]) -> ColumnTable:
    """Return columns of rows (text, number, share)."""
    texts = sorted({text for text, _, _ in rows})
    numbers = np.array([texts.index(text) for text, _, _ in rows], np.int32)
    return ColumnTable(
        len(rows),
        {
            "text": TextColumn(numbers, texts),
            "number": np.array([number for _, number, _ in rows], np.int64),
            "share": lambda: np.array([share for _, _, share in rows], np.float64),
        },
    )


@given(ROWS)
def test_columns_are_the_rows_that_they_were_made_of(rows: list[tuple[str, int, float]]) -> None:
    found = made(rows)
    assert len(found) == len(rows)
    assert [tuple(row.values()) for row in found] == rows
    assert dict(found).keys() == {"text", "number", "share"} == set(found.keys())
    assert found["text"].tolist() == [text for text, _, _ in rows]
    assert [tuple(found[at].values()) for at in range(len(rows))] == rows
    assert found == made(rows) and found == pickle.loads(pickle.dumps(found))
    assert found.to_json()["number"] == [number for _, number, _ in rows]
    kept = found[np.array([number > 0 for _, number, _ in rows], bool)]
    assert [tuple(row.values()) for row in kept] == [row for row in rows if row[1] > 0]
    assert [tuple(row.values()) for row in found[1:3]] == rows[1:3]


@pytest.mark.parametrize("key", [None, True, 1.5, (0, 1), {"number": 1}, np.zeros((1, 1), int)])
def test_what_names_neither_a_column_nor_rows_is_refused(key: object) -> None:
    """numpy would make columns of columns of some of them."""
    with pytest.raises(KeyError) as caught:
        _ = made([("a", 1, 0.5), ("a", 2, 0.5)])[key]
    assert caught.value.args == (
        "columns must be asked for by name (text, number, share), and rows by number, by a slice, a mask or several "
        f"numbers, not by {key!r}",
    )
    assert [row["number"] for row in made([("a", 1, 0.5), ("a", 2, 0.5)])[[1]]] == [2]


@pytest.mark.parametrize("row", [2, -3, 99999])
def test_a_row_that_is_not_there_is_told(row: int) -> None:
    """Of two, the last is also -1, and the first -2."""
    table = made([("a", 1, 0.5), ("b", 2, 0.25)])
    assert (table[1]["text"], table[-1]["text"], table[-2]["text"]) == ("b", "b", "a")
    with pytest.raises(IndexError) as caught:
        _ = table[row]
    assert str(caught.value) == f"row must be one of 2, counted from 0, or from the end as -1, not {row}"


def test_a_column_is_made_when_it_is_looked_at_and_once() -> None:
    calls: list[int] = []

    def column() -> Any:
        calls.append(1)
        return np.arange(2)

    found = ColumnTable(2, {"lazy": column, "there": np.zeros(2)})
    assert len(found) == 2 and "lazy" in found and "there" in found and calls == []
    assert found["lazy"].tolist() == found["lazy"].tolist() == [0, 1]
    assert calls == [1]


@pytest.mark.parametrize("name", ["text", "number", "share"])
def test_columns_are_only_read(name: str) -> None:
    """Also those of some rows, and those that were pickled; a copy and the array that was given are one's own."""
    given_array = np.arange(3)
    table = made([("a", 1, 0.5), ("b", 2, 0.25)])
    for found in (table, pickle.loads(pickle.dumps(table)), table[[1]], table[:1]):
        with pytest.raises(ValueError, match="assignment destination is read-only"):
            found[name][0] = found[name][0]
        found[name].copy()[0] = found[name][0]
    assert ColumnTable(3, {"n": given_array})["n"].tolist() == [0, 1, 2]
    given_array[0] = 7


def test_other_values_names_and_things_are_not_equal() -> None:
    rows = [("a", 1, 0.5)]
    assert made(rows) != made([("a", 2, 0.5)])
    assert made(rows) != ColumnTable(1, {"text": np.array(["a"], object)})
    assert made(rows) != rows
    with pytest.raises(TypeError, match="unhashable type: 'ColumnTable'"):
        hash(made(rows))


def test_what_is_not_there_is_told() -> None:
    with pytest.raises(KeyError) as caught:
        made([])["texts"]
    assert caught.value.args == ("there must be a column of this name, and 'texts' is none of text, number, share",)
    with pytest.raises(IndexError):
        made([])[0]


def test_frames_and_tables_have_the_same_values() -> None:
    pandas, arrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    found = made([("a", 1, 0.5), ("b", 2, 0.25)])
    frame, table = found.to_pandas(), found.to_arrow()
    assert isinstance(frame, pandas.DataFrame) and isinstance(table, arrow.Table)
    assert frame.to_dict("list") == table.to_pydict() == found.to_json()


@pytest.mark.parametrize(("method", "module"), [("to_pandas", "pandas"), ("to_arrow", "pyarrow")])
def test_a_library_that_is_not_installed_is_told(method: str, module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UsageError) as caught:
        getattr(made([]), method)()
    assert str(caught.value) == (
        f"{module} must be installed for that; install it (pip install {module}), or use the numpy arrays that "
        "dict(columns) gives."
    )


def test_what_is_shown_is_short_and_escaped() -> None:
    wide = ColumnTable(5000, {f"name{at}": np.full(5000, "<x>" * 40, object) for at in range(13)})
    assert len(repr(wide)) < 2000
    assert repr(made([("a", 1, 0.5)] * 6)) == (
        "<ColumnTable of 6 rows>\ntext  number  share\n" + "a     1       0.5\n" * 4 + "… 2 more"
    )
    assert "<x>" not in wide._repr_html_() and "&lt;x&gt;" in wide._repr_html_()
    assert wide._repr_html_().count("<tr>") == 13 and "4,988 more" in wide._repr_html_()
