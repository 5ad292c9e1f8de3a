"""Files are written whole or not at all."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from kernbench_core.errors import UsageError
from kernbench_core.process.whole_files import check_file, whole_file, write_text


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
    assert [each for each in tmp_path.rglob("*") if each.is_file()] == [path]


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
