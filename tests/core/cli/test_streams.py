"""Output that nobody reads, or that finds no room, changes no verdict and leaves no traceback."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from kernbench_core.cli import main
from kernbench_core.cli.streams import lasting_streams, prints_to_stderr

FULL = "error: standard output must take everything that is written, but failed with 'No space left on device'; make "
FULL_END = "room or write elsewhere."
COMMAND = (
    "import sys; from kernbench_core.cli import main; from kernbench_core.plugins import load_plugins; "
    "sys.exit(main(sys.argv[1:], load_plugins([], installed=False)))"
)


@pytest.fixture
def unread() -> Iterator[int]:
    """Give the writing end of a pipe whose reader has gone."""
    reader, writer = os.pipe()
    os.close(reader)
    yield writer
    os.close(writer)


def stream_on(descriptor: int, *, buffered: bool) -> io.TextIOWrapper:
    """Make a stream as Python makes its own, also under PYTHONUNBUFFERED."""
    raw = io.FileIO(descriptor, "wb", closefd=False)
    return io.TextIOWrapper(io.BufferedWriter(raw) if buffered else raw, write_through=not buffered)  # type: ignore[type-var]


@pytest.mark.parametrize("buffered", [True, False])
@pytest.mark.parametrize(
    ("args", "code"),
    [
        (("list",), 0), (("--help",), 0), (("list", "--json"), 0), ((), 2), (("run", "tay", "--topology", "one"), 2),
        (("run", "toy", "--topology", "one"), 0), (("run", "toy", "--topology", "one", "-p", "fail=LimitError"), 5),
        (("run", "toy", "--topology", "one", "-p", "fail=LimitError", "--json"), 5),
    ],
)  # fmt: skip
def test_a_reader_that_goes_away_changes_no_verdict(
    toy: ModuleType, monkeypatch: pytest.MonkeyPatch, unread: int, args: tuple[str, ...], code: int, buffered: bool
) -> None:
    """`kernbench … 2>&1 | head` ends quietly, with the code that it has in a terminal."""
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, stream_on(unread, buffered=buffered))
    assert main(args, toy.plugins) == code


def test_a_wrong_result_stays_wrong_when_nobody_reads_it(
    toy: ModuleType, samples: ModuleType, monkeypatch: pytest.MonkeyPatch, unread: int
) -> None:
    """The verdict is reached after the reader has gone."""
    toy.verdict = samples.WRONG
    monkeypatch.setattr(sys, "stdout", stream_on(unread, buffered=False))
    assert main(["run", "toy", "--topology", "one", "--verify-data"], toy.plugins) == 1


@pytest.mark.parametrize("json_option", [(), ("--json",)])
@pytest.mark.parametrize(("fail", "code"), [("", 2), ("LimitError", 5)])
def test_output_without_room_is_told(
    toy: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    json_option: tuple[str, ...],
    fail: str,
    code: int,
) -> None:
    """A result that could not be written is exit code 2; an error keeps its own."""
    descriptor = os.open("/dev/full", os.O_WRONLY)
    monkeypatch.setattr(sys, "stdout", stream_on(descriptor, buffered=True))
    options = ("-p", f"fail={fail}", "-p", "n=2", *json_option)
    assert main(["run", "toy", "--topology", "one", *options], toy.plugins) == code
    os.close(descriptor)
    told = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error")]
    full = FULL + FULL_END
    assert told == [*(["error: it failed."] if fail else []), *([full] if json_option or not fail else [])]


def test_streams_are_put_back() -> None:
    """After a command, Python's streams are what they were, and have what was written."""
    before = sys.stdout, sys.stderr
    reader, writer = os.pipe()
    own = stream_on(writer, buffered=True)
    sys.stdout = own
    try:
        with lasting_streams() as out:
            assert sys.stdout is not own
            print("x")
        assert sys.stdout is own
        assert (os.read(reader, 10), out.told()) == (b"x\n", None)
    finally:
        sys.stdout, sys.stderr = before
        for descriptor in (reader, writer):
            os.close(descriptor)


@pytest.mark.parametrize(
    ("redirection", "args", "code", "err"),
    [
        (">&-", "--version", 0, ""),
        (">&- 2>&-", "--version", 0, ""),
        ("<&-", "nope", 2, "error: kernbench must be followed by a command, not 'nope'."),
    ],
)  # fmt: skip
def test_what_a_closed_stream_would_have_is_dropped(redirection: str, args: str, code: int, err: str) -> None:
    """As with `>/dev/null`, and as Python itself does."""
    line = f'exec "$0" -c "$1" {args} {redirection}'
    done = subprocess.run(
        ["sh", "-c", line, sys.executable, COMMAND],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr.partition(" Known")[0].rstrip("\n")) == (code, "", err)


@pytest.mark.parametrize("option", ["--note", "--out", "--topology", "--components"])
def test_a_name_that_is_too_long_is_a_sentence(
    toy: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    """Wherever a path can be given; nothing is run."""
    toy.engines.clear()
    name = str(tmp_path / ("x" * 300 + ".txt"))
    assert main(["run", "toy", "--topology", "one", option, name], toy.plugins) == 2
    told = f"error: {name!r} must be usable, but that failed with 'File name too long'; make room, or name another.\n"
    assert capsys.readouterr().err == told
    assert toy.engines == []


def test_standard_output_is_what_it_was_after_prints_to_stderr(capfd: pytest.CaptureFixture[str]) -> None:
    """Also where the block fails; no descriptor stays open."""
    before = os.fstat(1), os.get_inheritable(1), sys.stdout
    free = os.dup(1)
    os.close(free)
    with pytest.raises(ValueError, match="planted"), prints_to_stderr():
        print("by Python")
        subprocess.run(["echo", "by a program"], check=True)
        raise ValueError("planted")
    assert (os.fstat(1), os.get_inheritable(1), sys.stdout) == before
    print("the result")
    os.write(1, b"as it was\n")
    out, err = capfd.readouterr()
    assert (out, err) == ("the result\nas it was\n", "by Python\nby a program\n")
    again = os.dup(1)
    os.close(again)
    assert again == free
