"""Goldens that no test asks for are found, and none that a test that was left out may ask for."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from kernbench_core.testing.budgets.golden_names import folder_of, golden_name
from kernbench_core.testing.budgets.stale_goldens import collected_files, stale_goldens
from tests.core.testing.budgets.inner_pytest import NAMED

pytest_plugins = ["pytester"]
COLLECTED = """
import pytest
@pytest.fixture
def mine(kernbench): ...
def test_a(mine): ...
def test_b(kernbench): ...
def test_c(): ...
def test_d(): ...
def documented():
    '''
    >>> 1
    1
    '''
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a file of tests, beside which there are goldens of three tests."""
    file = tmp_path / "test_k.py"
    file.write_text("")
    for case, name in (("test_a", None), ("test_a", "second"), ("test_b[1]", None), ("TestC::test_c", None)):
        golden(file, case, name)
    return file


def golden(file: Path, case: str, name: str | None = None) -> Path:
    """Write a golden, or what lies in its place, and return it."""
    made = folder_of(file) / golden_name(case, name)
    made.parent.mkdir(parents=True, exist_ok=True)
    made.write_text("")
    return made


def stale(file: Path, cases: Iterable[str], **more: Any) -> list[str]:
    """Return the names of the goldens that are nobody's."""
    entry = {"file": str(file), "cases": [*cases], "silent": more.get("silent", []), "whole": more.get("whole", True)}
    ended, asked = {file: more.get("ended", ())}, [golden(file, case) for case in more.get("asked", ())]
    return [each.name for each in stale_goldens([entry], ended, asked)]


ALL = ("test_a", "test_b[1]", "TestC::test_c")


def test_tests_that_are_there_keep_theirs(file: Path) -> None:
    """Whether they ran or not, under any name; temporary and other files are nobody's business."""
    folder = folder_of(file)
    for name in (".kernbench.12.tmp", ".hidden.json", "README.md"):
        (folder / name).write_text("")
    assert stale(file, ALL) == []


def test_tests_that_are_gone_leave_theirs(file: Path) -> None:
    """Both of a test that had two; not where a part of the file was asked for alone."""
    assert stale(file, ["test_b[1]", "test_b[2]", "TestC::test_d"]) == [
        "TestC.test_c.json", "test_a.json", "test_a@second.json",
    ]  # fmt: skip
    assert stale(file, ["test_b[1]"], whole=False) == []


def test_tests_that_no_longer_ask_leave_theirs(file: Path) -> None:
    """Those that have no fixture any more, and those that passed and did not ask for it."""
    assert stale(file, ALL, silent=["TestC::test_c"]) == ["TestC.test_c.json"]
    assert stale(file, ALL, ended=["test_a"], asked=["test_a"]) == ["test_a@second.json"]
    assert stale(file, ALL, silent=["test_b[1]"], asked=["test_b[1]"]) == []  # the fixture came by another name


def test_a_file_that_is_gone_leaves_all(file: Path) -> None:
    """Also where it was renamed."""
    other = golden(file.with_name("test_gone.py"), "test_a")
    assert stale(file, ALL) == [other.name]
    assert stale(file, ALL, whole=False) == []
    file.with_name("test_gone.txt").write_text("")
    assert stale(file, ALL) == []


def test_no_goldens_at_all(tmp_path: Path) -> None:
    (tmp_path / "goldens").mkdir()
    assert stale(tmp_path / "test_k.py", ALL) == []


def test_what_is_collected(pytester: pytest.Pytester) -> None:
    """Of files beside which there are goldens: tests that ran, have no fixture, and cannot ask for it otherwise."""
    pytester.makepyfile(test_k=COLLECTED, test_other="def test_e(): ...")
    items, _ = pytester.inline_genitems("--doctest-modules", *NAMED)
    (pytester.path / "goldens").mkdir()
    ran = [item for item in items if item.name != "test_d"]
    names = ["test_k.documented", "test_a", "test_b", "test_c", "test_d"]
    args = ["test_other.py::test_e", "test_k.py"]
    found = collected_files(items, ran, args, "kernbench", True)
    file = str(pytester.path / "test_k.py")
    assert found[0] == {"file": file, "whole": True, "cases": names, "silent": ["test_c"]}
    assert [Path(entry["file"]).name for entry in found if not entry["whole"]] == ["test_other.py"]
    (pytester.path / "goldens").rmdir()
    assert collected_files(items, ran, args, "kernbench", True) == []
