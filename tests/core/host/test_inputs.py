"""A file that a bench reads is found again under the name that it was kept by."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from kernbench_core.host.inputs import Inputs


def test_names_start_from_the_bench_then_from_where_the_run_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However a file is spelt, and from wherever; one elsewhere is told apart by its folder, without naming that."""
    bench, here, away = (tmp_path / name for name in ("here/bench", "here", "away"))
    for folder in (bench, away):
        folder.mkdir(parents=True)
    files = {bench / "a": b"1", here / "b": b"2", away / "c": b"3"}
    for path, data in files.items():
        path.write_bytes(data)
    monkeypatch.chdir(here)
    inputs = Inputs((bench, here))
    for path in ("bench/a", "b", "../away/c", "none"):
        assert inputs.read(path) == Path(path)
    monkeypatch.chdir(bench)
    assert inputs.read("../b") == Path("../b")
    elsewhere = hashlib.sha256(str(away).encode()).hexdigest()[:8]
    assert inputs.kept == {"a": b"1", "b": b"2", f"{elsewhere}/c": b"3"}


def test_a_file_is_kept_as_it_was_first_read(tmp_path: Path) -> None:
    """Later changes play no part."""
    inputs = Inputs((tmp_path,))
    for text in ("one", "two"):
        (tmp_path / "a").write_text(text)
        inputs.read(tmp_path / "a")
    assert inputs.kept == {"a": b"one"}


def test_two_files_of_one_name_are_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the folder of the bench and the current one both have it; in a run that is made again, too."""
    bench, here, kept = (tmp_path / name for name in ("bench", "here", "kept"))
    for folder in (bench, here, kept):
        folder.mkdir()
        (folder / "a").write_text(folder.name)
    monkeypatch.chdir(here)
    inputs = Inputs((bench, here))
    for path in (bench / "a", "a", bench / "a", Path("a")):
        assert inputs.read(path) == Path(path)
    assert inputs.kept == {"a": b"bench", "a.2": b"here"}
    assert inputs.asked == {"a": str(bench / "a"), "a.2": str(here / "a")}
    again = Inputs((kept, bench, here), {name: kept / name for name in inputs.kept})
    assert [again.read(path) for path in (bench / "a", "a")] == [kept / "a", kept / "a.2"]
    once = Inputs((kept, bench, here), {"a": kept / "a"})  # where both paths led to one file
    assert [once.read(path) for path in (bench / "a", "a")] == [kept / "a", kept / "a"]


def test_a_run_made_again_reads_what_was_kept(tmp_path: Path) -> None:
    """Under the original name, and where a kept file names another one beside itself."""
    kept = tmp_path / "inputs"
    (kept / "sub").mkdir(parents=True)
    recorded = {"a": kept / "a", "sub/b": kept / "sub" / "b"}
    for path in recorded.values():
        path.write_text(path.name)
    inputs = Inputs((kept, tmp_path), recorded)
    assert inputs.read(tmp_path / "a") == kept / "a"
    assert inputs.read(kept / "sub" / "b") == kept / "sub" / "b"
    assert inputs.kept == {"a": b"a", "sub/b": b"b"}
