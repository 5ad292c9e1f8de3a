"""Ctrl-C and limits at the command line: what is said, what is printed, and what waits for the result."""

from __future__ import annotations

import json
import time
from pathlib import Path
from types import ModuleType

import pytest

from kernbench_core.cli.shell import Shell
from kernbench_core.errors import LimitError
from kernbench_core.process.interrupt import Terminated
from tests.core.cli.command_line import call


@pytest.mark.parametrize(
    ("where", "doing"),
    [
        ("topology.compilation.compile_topology", "building the machine"),
        ("runs.summary.print_summary", "printing the result"),
        ("runs.bench_run.manifest_of", "summing up the run"),
    ],
)
@pytest.mark.parametrize(
    ("stop", "code", "word"), [(KeyboardInterrupt, 130, "interrupted"), (Terminated, 143, "terminated")]
)
def test_what_was_interrupted_is_said(
    toy: ModuleType, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, where: str, doing: str,
    stop: type[BaseException], code: int, word: str,
) -> None:  # fmt: skip
    """One sentence where there is nothing to show: before anything ran, and when all did."""

    def interrupt(*_: object, **__: object) -> None:
        raise stop

    monkeypatch.setattr(f"kernbench_core.{where}", interrupt)
    assert call(toy, "run", "toy", "--topology", "one", "-q") == code
    assert capsys.readouterr().err.strip() == f"error: {word} while {doing}."


def test_an_interrupt_prints_what_there_is(toy: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    """Ctrl-C gives a partial summary and 130, in JSON too."""
    assert call(toy, "run", "toy", "--topology", "one", "-p", "fail=interrupt") == 130
    assert "interrupted: everything here covers only what ran" in capsys.readouterr().out
    assert call(toy, "run", "toy", "--topology", "one", "-p", "fail=interrupt", "--json") == 130
    assert json.loads(capsys.readouterr().out)["interrupted"] is True


@pytest.mark.parametrize(
    ("files", "told"),
    [
        (("--note", "t.txt"), "; --note is not written"),
        (("--note", "t.txt", "--out", "o"), "; --out and --note are not written"),
    ],
)
@pytest.mark.parametrize("look", [(), ("-q",), ("-v",)])
def test_an_interrupt_says_which_files_are_missing(
    toy: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
    files: tuple[str, ...], told: str, look: tuple[str, ...],
) -> None:  # fmt: skip
    """All that were asked for: none is there."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    assert call(toy, "run", "toy", "--topology", "one", "-p", "fail=interrupt", *look, *files) == 130
    assert f"interrupted: everything here covers only what ran{told}\n" in capsys.readouterr().out
    assert list((tmp_path / "work").iterdir()) == []


@pytest.mark.parametrize(
    ("endless", "command", "doing"),
    [
        ("cli.shell.load_plugins", ("list",), "loading the plug-ins"),
        (
            "topology.compilation.compile_topology",
            ("run", "toy", "--topology", "one", "--timeout", "20 ms"),
            "building the machine",
        ),
    ],
)
def test_a_limit_covers_what_never_ends(
    toy: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    endless: str, command: tuple[str, ...], doing: str,
) -> None:  # fmt: skip
    """Plug-ins, and a run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(f"kernbench_core.{endless}", lambda *_, **__: time.sleep(1000))
    if command == ("list",):
        with pytest.raises(LimitError) as caught:
            Shell(timeout_s=0.02).plugins  # noqa: B018 - the first look loads them
        told = f"error: {caught.value}"
    else:
        assert call(toy, *command) == 5
        told = capsys.readouterr().err
    assert told.startswith(f"error: the run reached its limit of 0.02 s of wall time while {doing}, in {__file__}:")
    assert told.rstrip().endswith("; raise --timeout if it is only long.")
