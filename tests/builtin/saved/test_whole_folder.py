"""A folder is written whole or not at all, and what else is in it stays."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from kernbench_builtin.saved.whole_folder import whole_folder
from kernbench_core.errors import UsageError


def tree(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """Make a folder with two files to replace and one to keep."""
    folder = tmp_path / "o"
    (folder / "sub").mkdir(parents=True)
    for name in ("a", "sub/b", "keep"):
        (folder / name).write_text("old")
    return folder


def test_a_folder_takes_new_files_in_place_of_old_ones(tmp_path: Path, old: Path) -> None:
    """Named files go, with folders that are empty then; all others stay."""
    with whole_folder(old, {"a", "sub/b", "gone"}) as new:
        (new / "a").write_text("new")
        (new / "replaced").write_text("new")
    assert tree(tmp_path) == {"o/a": "new", "o/replaced": "new", "o/keep": "old"}
    assert not (old / "sub").exists()


@pytest.mark.parametrize("fault", ["in the block", "a file in the way", "in the middle", "Ctrl-C"])
def test_a_folder_is_as_it_was_when_it_fails(
    tmp_path: Path, old: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    """Nothing new stays, and everything old comes back."""
    before = tree(tmp_path)
    moves = 0
    rename = Path.rename

    def failing(self: Path, target: Path) -> Path:
        nonlocal moves
        moves += 1
        if fault == "in the middle" and moves == 4:
            raise OSError(28, "No space left on device")
        if fault == "Ctrl-C" and moves == 4:
            raise KeyboardInterrupt
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", failing)
    expected = (ZeroDivisionError, OSError, UsageError, KeyboardInterrupt)
    with pytest.raises(expected), whole_folder(old, {"a", "sub/b"}) as new:
        for name in ("a", "b", "c"):
            (new / name).write_text("new")
        if fault == "a file in the way":
            (new / "keep").write_text("new")
        if fault == "in the block":
            raise ZeroDivisionError
    assert tree(tmp_path) == before


@pytest.mark.parametrize("fails", [False, True])
def test_folders_above_are_made_or_none_is(tmp_path: Path, fails: bool) -> None:
    """They come when all is written."""
    (tmp_path / "there").mkdir()
    with suppress(ZeroDivisionError), whole_folder(tmp_path / "there/a/b/c") as new:
        (new / "x").write_text("new")
        assert not (tmp_path / "there/a").exists()
        if fails:
            raise ZeroDivisionError
    left = [] if fails else ["a", "a/b", "a/b/c", "a/b/c/x"]
    assert sorted(path.relative_to(tmp_path / "there").as_posix() for path in tmp_path.glob("there/**/*")) == left
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


@pytest.mark.parametrize("new", ["a", "sub/b", "sub/new"])
def test_a_folder_is_not_changed_through_a_link(tmp_path: Path, old: Path, new: str) -> None:
    """Neither for what comes nor for what goes."""
    (tmp_path / "other").mkdir()
    (old / "sub").rename(tmp_path / "other/sub")
    (old / "sub").symlink_to("../other/sub")
    before = tree(tmp_path)
    replaced = {"sub/b"} if new == "a" else set()
    with pytest.raises(UsageError) as caught, whole_folder(old, {*replaced, "a"}) as made:
        (made / new).parent.mkdir(exist_ok=True)
        (made / new).write_text("new")
    assert str(caught.value) == (
        f"{str(old / 'sub')!r} must not be a link, as a file would be replaced through it; remove it."
    )
    assert tree(tmp_path) == before
