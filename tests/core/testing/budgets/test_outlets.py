"""Where reports go is checked before any test runs, and said in a sentence where it cannot be."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kernbench_core.errors import UsageError
from kernbench_core.testing.budgets.outlets import Outlet, json_outlet, outlets, report_outlet


def test_what_options_ask_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that GitHub shows is appended to, however it is spelt."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to(tmp_path)
    summary = {"GITHUB_STEP_SUMMARY": str(tmp_path / "link" / "summary.md")}
    assert report_outlet("md") == Outlet("--kernbench-report", "md")
    assert report_outlet("md=a/r.md", {}) == Outlet("--kernbench-report", "md", tmp_path / "a" / "r.md")
    assert report_outlet("md=r.md", summary) == Outlet("--kernbench-report", "md", tmp_path / "r.md")
    assert report_outlet("md=summary.md", summary) == Outlet(
        "--kernbench-report", "md", tmp_path / "summary.md", appends=True
    )
    assert json_outlet("a.json") == Outlet("--kernbench-json", "customSmallerIsBetter", tmp_path / "a.json")
    assert json_outlet("./a=b.json") == Outlet("--kernbench-json", "customSmallerIsBetter", tmp_path / "a=b.json")
    assert json_outlet("pytest-benchmark=a.json") == Outlet("--kernbench-json", "pytest-benchmark", tmp_path / "a.json")


def test_options_may_be_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each asks for something more; two forms in one file would leave the later one only."""
    monkeypatch.chdir(tmp_path)
    forms = ["a.json", "pytest-benchmark=b.json"]
    assert outlets([], []) == ()
    assert outlets(["md", "md=r.md", "md"], forms) == (
        report_outlet("md"), report_outlet("md=r.md"), *map(json_outlet, forms),
    )  # fmt: skip
    with pytest.raises(UsageError) as caught:
        outlets([], ["a.json", "pytest-benchmark=./a.json"])
    assert str(caught.value) == (
        f"--kernbench-json {str(tmp_path / 'a.json')!r} must be a file of its own, and --kernbench-json writes "
        "customSmallerIsBetter into it; give another one."
    )


REPORT = "--kernbench-report must be md or md=FILE, not "
FORMS = "--kernbench-json must be FILE, or customSmallerIsBetter=FILE or pytest-benchmark=FILE, not "
NO_FILE = "--kernbench-json must name a file, as customSmallerIsBetter=figures.json, not "
WRONG = [
    (report_outlet, "html=a.html", f"{REPORT}'html=a.html'. Known: md."),
    (report_outlet, "r.md", f"{REPORT}'r.md'. Did you mean 'md=r.md'?"),
    (report_outlet, "md=", f"{REPORT}'md='. Did you mean 'md'?"),
    (
        report_outlet,
        "md=/dev/null",
        "--kernbench-report '/dev/null' must be a file in a folder that can be written; give another one.",
    ),
    (json_outlet, "pytest-bench=a", f"{FORMS}'pytest-bench=a'. Did you mean 'pytest-benchmark'?"),
    (json_outlet, "customSmallerIsBetter=", f"{NO_FILE}'customSmallerIsBetter='."),
    (json_outlet, "", f"{NO_FILE}''."),
    (
        json_outlet,
        "/dev/null/a.json",
        "--kernbench-json '/dev/null/a.json' must be in a folder, and '/dev/null' is none; give another one.",
    ),
]


@pytest.mark.parametrize(("outlet", "given", "sentence"), WRONG)
def test_what_cannot_be(outlet: Callable[[str], object], given: str, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        outlet(given)
    assert str(caught.value) == sentence


def test_what_is_written(tmp_path: Path) -> None:
    """Whole, in place of what was there, or behind it; a folder that is gone by then is told."""
    file = tmp_path / "new" / "r.md"
    for text in ("one", "two"):
        Outlet("--kernbench-report", "md", file).write(text)
    assert file.read_text() == "two\n"
    Outlet("--kernbench-report", "md", file, appends=True).write("é")
    assert file.read_text(encoding="utf-8") == "two\né\n"
    gone = Outlet("--kernbench-report", "md", tmp_path / "gone" / "r.md", appends=True)
    with pytest.raises(UsageError) as caught:
        gone.write("")
    where = str(gone.file)
    assert str(caught.value) == f"--kernbench-report {where!r} must be writable: No such file or directory."
