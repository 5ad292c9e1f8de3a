"""tools/suite.py and tools/quick.py: parts of equal time, jobs on slots, and what is said of a failure."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.conftest import loaded_tool
from tests.selection import changed
from tests.selection.records import Times


@pytest.fixture(scope="module")
def suite() -> Iterator[ModuleType]:
    with loaded_tool("suite") as module:
        yield module


@pytest.fixture
def files(suite: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Have a tree of six files of tests, the first of which takes half of the time."""
    seconds = {"test_a.py": 5.0, **{f"test_{letter}.py": 1.0 for letter in "bcdef"}}
    names = ["tests/core/test_a.py", "tests/core/x/test_b.py", "tests/core/x/test_c.py", "tests/test_d.py",
             "tests/test_e.py", "plugins_example/tests/test_f.py"]  # fmt: skip
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.setattr(suite, "REPO", tmp_path)
    monkeypatch.setattr(Times, "read", classmethod(lambda cls: Times({}, seconds)))
    return suite.test_files(suite.ROOTS)


def test_parts_take_the_same_time_and_have_each_file_once(suite: ModuleType, files: list[str]) -> None:
    assert suite.parts(files, 2, every=False) == [
        ["plugins_example/tests", "tests/core/test_a.py"], ["tests/core/x", "tests/test_d.py", "tests/test_e.py"]
    ]  # fmt: skip
    assert suite.parts(files, 1, every=True) == [["plugins_example/tests", "tests"]]
    assert suite.parts(files[1:3], 2, every=False) == [["tests/core/test_a.py"], ["tests/core/x/test_b.py"]]
    assert suite.test_files(["tests/core/x", "tests/test_d.py"]) == files[2:5]


def test_the_suite_of_this_tree_is_cut_in_halves_of_its_files(suite: ModuleType) -> None:
    files = suite.test_files(suite.ROOTS)
    one, other = (suite.test_files(part) for part in suite.parts(files, 2, every=False))
    assert sorted([*one, *other]) == files and len(files) > 500


def run(suite: ModuleType, notes: Path, *jobs: tuple[str, str]) -> tuple[int, object]:
    runner = suite.Runner(2)
    runner.run([suite.Job(name, command, {"KB_TURN": "1"}) for name, command in jobs])
    return suite.report(runner, notes), runner


def test_jobs_print_whole_when_they_end_and_the_table_has_what_they_took(
    suite: ModuleType, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The slots are shared, the CPU seconds are those of the processes that a job has started, too."""
    monkeypatch.setenv("KB_INSTALLING", "40.5 1.5")
    burn = f"{sys.executable} -S -c 'import time\nwhile time.process_time() < 0.3: pass'"
    code, _ = run(suite, tmp_path, ("burning", f"echo begin; {burn}; echo end"), ("quick", "echo $KB_TURN"))
    out = capfd.readouterr().out
    assert code == 0 and "begin\nend\n" in out and "--- quick: passed in 0 s ---\n1\n" in out
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines()[-5:]}
    assert rows["job"] == ["CPU", "s", "wall", "s"] and rows["installing"] == ["42"]
    assert rows["all"][0] == "42" and rows["all"][2:4] == ["2", "slots,"]


def test_the_first_failure_comes_last_with_the_command_that_repeats_it(
    suite: ModuleType, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code, _ = run(suite, tmp_path, ("first", "exit 3"), ("second", "sleep 0.2; exit 1"))
    out = capfd.readouterr().out
    assert code == 1 and "--- first: FAILED (3) in 0 s ---" in out
    assert out.splitlines()[-1] == "failed first: first; again: KB_TURN=1 exit 3"


def test_failed_tests_are_named_and_those_whose_turn_it_was_run_on_the_commit_before(
    suite: ModuleType, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a repository of its own, where the first commit has the test pass, and the second one has it fail."""
    repo, notes = tmp_path / "repo", tmp_path / "notes"
    for folder in (repo / "tests", notes):
        folder.mkdir(parents=True)

    def commit(text: str) -> None:
        (repo / "tests" / "test_x.py").write_text(text)
        for words in ("init -q", "add .", "-c user.name=a -c user.email=a@b commit -qm m"):
            subprocess.run(["git", *words.split()], cwd=repo, check=True)

    commit("def test_it(): pass\n")
    commit("def test_it(one=3): assert one == 4\n")
    monkeypatch.setattr(changed, "REPO", repo)
    monkeypatch.delenv("KB_LANDED", raising=False)
    monkeypatch.setattr(suite, "REPO", repo)
    changed.commit.cache_clear()
    (notes / "failed").write_text("tests/test_x.py::test_it\n")
    (notes / "turns").write_text("tests/test_x.py::test_it\n")
    code, _ = run(suite, notes, ("tests 1 of 1", "exit 1"))
    changed.commit.cache_clear()
    lines = capfd.readouterr().out.splitlines()
    assert code == 1
    assert lines[-5] == "1 failed whose turn it was, which need not be of this change:"
    assert lines[-4] == "  tests/test_x.py::test_it"
    assert ", the commit before: 1 passed in " in lines[-3]
    assert "--- once more, with values: 1 of the 1 that failed ---" in lines
    assert "E   assert 3 == 4" in [line.rstrip() for line in lines]
    assert lines[-1] == f"failed first: tests 1 of 1; again: {suite.PYTHON} -m pytest tests/test_x.py::test_it"


def test_quick_takes_the_nearest_tests_until_they_take_too_long(files: list[str]) -> None:
    with loaded_tool("quick") as quick:
        assert quick.within(files[:0], 2.0) == []
        assert quick.within(["tests/core/test_a.py", "tests/test_d.py"], 2.0) == ["tests/core/test_a.py"]
        assert quick.within(["tests/test_d.py", "tests/test_e.py", "tests/core/test_a.py"], 2.5) == [
            "tests/test_d.py", "tests/test_e.py"
        ]  # fmt: skip
