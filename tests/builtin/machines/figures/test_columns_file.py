"""Columns come back from their file as they were, and a file that is none is refused in a sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernbench_builtin.machines.figures.columns import ColumnTable, TextColumn
from kernbench_builtin.machines.figures.columns_file import load_columns, save_columns
from kernbench_core.errors import UsageError


def table() -> ColumnTable:
    """Return columns of each kind."""
    texts = TextColumn.of(["a", "b->ü", "a"])
    numbers = np.array([1.5, 0.0, 2.0**-16])
    return ColumnTable(3, {"name": lambda: texts, "ns": numbers, "bytes": np.array([1, -1, 2**62])})


def test_columns_come_back(tmp_path: Path) -> None:
    """With their types; equal columns are equal files, and nothing is overwritten."""
    for name in ("a.npz", "b.npz"):
        save_columns(table(), tmp_path / name)
    found = load_columns(tmp_path / "a.npz")
    assert found == table() and [array.dtype.kind for array in dict(found).values()] == ["O", "f", "i"]
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    with pytest.raises(FileExistsError):
        save_columns(table(), tmp_path / "a.npz")
    save_columns(ColumnTable(0, {"name": TextColumn.of([]), "ns": np.zeros(0)}), tmp_path / "none.npz")
    assert len(load_columns(tmp_path / "none.npz")) == 0


@pytest.mark.parametrize(
    ("arrays", "kind"),
    [
        ({"ns": [1.0, np.nan]}, "ValueError"),
        ({"ns": [[1.0]]}, "ValueError"),
        ({"ns": ["a"]}, "ValueError"),
        ({"ns": [1.0], "bytes": [1, 2]}, "ValueError"),
        ({"text.name": np.frombuffer(b"[1]", np.uint8)}, "ValueError"),
        ({"text.name": np.frombuffer(b'{"a": 1}', np.uint8)}, "ValueError"),
        ({"text.name": np.frombuffer(b"[", np.uint8)}, "JSONDecodeError"),
        ({}, "ValueError"),
        ({"ns": np.array([object()], object)}, "ValueError"),
    ],
)
def test_other_arrays_are_refused(tmp_path: Path, arrays: dict[str, Any], kind: str) -> None:
    """Nothing of it is executed."""
    path = tmp_path / "a.npz"
    np.savez(path, allow_pickle=True, **arrays)
    with pytest.raises(UsageError) as caught:
        load_columns(path)
    told = f"file '{path}' must be whole, as a run wrote it, and is damaged ({kind}); run it again with --out."
    assert str(caught.value) == told


def test_files_that_are_none_are_refused(tmp_path: Path) -> None:
    """Text, a folder, and nothing."""
    path = tmp_path / "a.npz"
    path.write_text("text")
    (tmp_path / "b.npz").mkdir()
    for name, told in (
        ("a.npz", "must be whole, as a run wrote it, and is damaged (ValueError); run it again with --out."),
        ("b.npz", "must be readable: Is a directory."),
        ("c.npz", "must be readable: No such file or directory."),
    ):
        with pytest.raises(UsageError) as caught:
            load_columns(tmp_path / name)
        assert str(caught.value) == f"file '{tmp_path / name}' {told}"
