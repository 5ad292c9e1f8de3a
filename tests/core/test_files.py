"""Files are written whole or not at all."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from kernbench_core.errors import UsageError
from kernbench_core.files import whole_file, write_text


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


def test_a_folder_that_is_not_there_is_a_sentence(tmp_path: Path) -> None:
    """The error names the file and the reason."""
    path = tmp_path / "none" / "x"
    with pytest.raises(UsageError) as caught, whole_file(path):
        pass
    assert str(caught.value) == (
        f"file {str(path)!r} must be in a folder that can be written: No such file or directory."
    )
