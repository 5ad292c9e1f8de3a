"""Files are written whole or not at all."""

from __future__ import annotations

import gzip
import os
from contextlib import suppress
from pathlib import Path

import pytest

from kernbench_core.errors import UsageError
from kernbench_core.process.whole_files import check_file, whole_file, whole_folder, write_text


def test_a_failure_leaves_what_was_there(tmp_path: Path) -> None:
    """When writing raises, the old file stays and no temporary one does."""
    path = tmp_path / "x.json"
    write_text(path, "old")
    with pytest.raises(ZeroDivisionError), whole_file(path) as out:
        out.write(b"half")
        raise ZeroDivisionError
    assert path.read_text() == "old\n"
    assert list(tmp_path.iterdir()) == [path]


def test_compressed_bytes_depend_on_the_content_alone(tmp_path: Path) -> None:
    """Neither the time nor the name of the file is in it."""
    for name in ("a.gz", "b.gz"):
        with whole_file(tmp_path / name, compress=True) as out:
            out.write(b"hello")
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.gz").read_bytes()) == b"hello"


def test_a_folder_that_cannot_be_made_is_a_sentence(tmp_path: Path) -> None:
    """The error names the file and the reason."""
    path = tmp_path / "none" / "x"
    (tmp_path / "none").write_text("")
    with pytest.raises(UsageError) as caught, whole_file(path):
        pass
    assert str(caught.value) == (
        f"file {str(path)!r} must be in a folder that can be written: File exists."
    )


def test_a_link_is_written_through_and_rights_stay(tmp_path: Path) -> None:
    """What a link points to is replaced, not the link; a file keeps its rights; the longest names can be written."""
    target, link = tmp_path / ("x" * 250 + ".json"), tmp_path / "link.json"
    write_text(target, "old")
    target.chmod(0o640)
    link.symlink_to(target)
    write_text(check_file("file", link), "new")
    assert link.is_symlink()
    assert (target.read_text(), target.stat().st_mode & 0o777) == ("new\n", 0o640)


def test_what_is_no_file_is_not_written_over(tmp_path: Path) -> None:
    """A folder, a pipe, a device, a name in no folder."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "null").symlink_to("/dev/null")
    for path in (tmp_path, tmp_path / "pipe", tmp_path / "null"):
        with pytest.raises(UsageError) as caught:
            check_file("trace file", path)
        assert str(caught.value) == (
            f"trace file {str(path)!r} must be a file in a folder that can be written; give another one."
        )
    (tmp_path / "file").write_text("")
    path = tmp_path / "file" / "x"
    with pytest.raises(UsageError) as caught:
        check_file("trace file", path)
    assert str(caught.value) == (
        f"trace file {str(path)!r} must be in a folder, and {str(tmp_path / 'file')!r} is none; give another one."
    )


def test_folders_above_a_file_are_made_with_it(tmp_path: Path) -> None:
    """Checking makes none."""
    path = check_file("trace file", tmp_path / "a" / "b" / "t.json")
    assert path == tmp_path / "a" / "b" / "t.json" and not (tmp_path / "a").exists()
    with whole_file(path) as out:
        out.write(b"1")
    assert tree(tmp_path) == {"a/b/t.json": "1"}


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


@pytest.mark.parametrize("below", ["x", "a/b/x"])
@pytest.mark.parametrize("file", ["file", "pipe", "link"])
def test_below_a_file_there_is_no_folder(tmp_path: Path, file: str, below: str) -> None:
    """It is no advice to make one."""
    (tmp_path / "file").write_text("")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("file")
    with pytest.raises(UsageError) as caught:
        check_file("trace file", tmp_path / file / below)
    path, none = str(tmp_path / file / below), str(tmp_path / file)
    assert str(caught.value) == f"trace file {path!r} must be in a folder, and {none!r} is none; give another one."


def test_a_name_must_end_as_it_is_read(tmp_path: Path) -> None:
    """In any case of letters."""
    assert check_file("report", tmp_path / "A.HTML", ".html") == tmp_path / "A.HTML"
    with pytest.raises(UsageError) as caught:
        check_file("report", tmp_path / "a.txt", ".html")
    assert str(caught.value) == f"report {str(tmp_path / 'a.txt')!r} must end in .html; give such a name."
