"""What there is can be listed, found by a part of its name, and described; nothing is broken but lines, at words."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stdout
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernbench_builtin.machines.cli.catalogue import one_line_each
from kernbench_core.cli import main

FILE = '''
print("a file says hello")
def bench(rt, count: int, ratio: float = 0.5, fast: bool = True, kind: str = "a" + chr(27)):
    """Count to a number that is long enough for this line to be wrapped where a terminal is narrow.

    Args:
        count: how far.
    """
'''
TABLE = [
    "  from toy.py",
    "",
    "parameter  type           default   meaning",
    "count      int            required  how far.",
    "ratio      float          0.5",
    "fast       true or false  true",
    "kind       text           a\\x1b",
]


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a bench's file in the current folder."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "toy.py"
    path.write_text(FILE)
    return path


def call(toy: ModuleType, *args: str) -> int:
    return main(args, toy.plugins)


@pytest.mark.parametrize("columns", [60, 80, 160])
def test_a_file_is_described(
    toy: ModuleType, file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], columns: int
) -> None:
    """Its sentence wrapped at words, then a table of its parameters; what it prints is no part of that."""
    monkeypatch.setenv("COLUMNS", str(columns))
    assert call(toy, "list", "toy.py") == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert err == "a file says hello\n"
    at = lines.index(TABLE[0])
    sentence = "Count to a number that is long enough for this line to be wrapped where a terminal is narrow."
    assert " ".join(line.strip() for line in lines[1:at]) == sentence
    assert (lines[0], lines[at:]) == ("toy", TABLE)
    assert max(map(len, lines)) <= columns


def test_the_help_of_run_has_the_parameters(toy: ModuleType, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Wherever the name stands; without one there are none."""
    for args in (("run", "toy.py", "--help"), ("run", "-h", "-p", "count=3", "toy.py"), ("run", "toy.py", "-q", "-h")):
        assert call(toy, *args) == 0
        lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
        at = lines.index("Parameters of toy, each given as -p NAME=VALUE:")
        assert [line.removeprefix("  ") for line in lines[at + 1 : at + 6]] == TABLE[2:]
        assert any("Usage: kernbench run [OPTIONS] BENCH" in line for line in lines[:at])
    assert call(toy, "run", "--help") == 0
    assert "Parameters of" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("lost", "bench 'lost' of toy_plugin (source tree) must be importable from 'toy_parts:nothing', but that "),
        ("no", "bench must be a registered name or the path of a .py file, not 'no'."),
        ("bad.py", "bench file 'bad.py' must run to its end, but it raised ModuleNotFoundError: No module named "),
        ("none.py", "bench file 'none.py' does not exist; give a registered bench or the path of a .py file.\n"),
    ],
)
def test_help_without_the_bench_is_help_and_a_warning(
    toy: ModuleType, file: Path, capsys: pytest.CaptureFixture[str], name: str, sentence: str
) -> None:
    """Somebody who asks for help gets it; `list` of the same name is an error with that sentence."""
    (file.parent / "bad.py").write_text("import no\n")
    assert call(toy, "run", name, "--help") == 0
    out, err = capsys.readouterr()
    assert "Usage: kernbench run [OPTIONS] BENCH" in out
    assert err.startswith(f"warning: the parameters of {name!r} are not shown: {sentence}")
    if name != "no":
        assert call(toy, "list", name) in (2, 6)
        assert capsys.readouterr().err.startswith(f"error: {sentence}")


def test_a_bench_is_found_by_a_part_of_its_name(toy: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    """One is described, also in JSON; none is an error with the nearest."""
    assert call(toy, "list", "ty") == 2
    assert capsys.readouterr().err == (
        "error: bench must be a registered name, a part of one, or the path of a .py file, not 'ty'. "
        "Did you mean 'toy'?\n"
    )
    assert call(toy, "list", "oy") == 0
    assert capsys.readouterr().out.splitlines() == [
        "toy", "  Do nothing, n times.", "  from toy_plugin (source tree)", "", "parameter  type       default",
        "n          int        3", "fail       text", "a          .npy file  -",
    ]  # fmt: skip
    assert call(toy, "list", "oy", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == "kernbench.bench/1"
    assert [found["bench"]["name"], *(param["name"] for param in found["bench"]["params"])] == ["toy", "n", "fail", "a"]
    assert call(toy, "list", "o", "--json") == 0  # `lost` has one too, and is left out with a warning
    out, err = capsys.readouterr()
    assert [bench["name"] for bench in json.loads(out)["benches"]] == ["toy"]
    assert err.startswith("warning: bench 'lost' of toy_plugin (source tree) must be importable from 'toy_parts:no")


def test_presets_are_listed_and_one_that_is_wrong_is_told(
    toy: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    """The toy preset lacks nearly everything: it has no sizes, and a warning says why."""
    assert call(toy, "topology", "list") == 0
    out, err = capsys.readouterr()
    assert out.splitlines() == [
        "preset  SIPs  cubes  PEs  what it is  provider",
        "one        -      -    -  One.        toy_plugin (source tree)",
    ]
    assert err.startswith("warning: ")
    assert call(toy, "topology", "list", "two") == 2
    assert capsys.readouterr().err == (
        "error: topology preset must be a registered name or a part of one, not 'two'. Known: one.\n"
    )


def test_list_names_benches_and_parameters(toy: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    """One line each, with -v also the parameters as -p takes them; a bench that cannot be imported is a warning."""
    assert call(toy, "list") == 0
    assert capsys.readouterr().out == "toy  Do nothing, n times.\n"
    assert call(toy, "list", "-v") == 0
    out, err = capsys.readouterr()
    assert out == "toy  Do nothing, n times.\n     n=3 fail a\n"
    assert err.startswith("warning: bench 'lost' of toy_plugin (source tree) must be importable from")
    assert call(toy, "list", "--json") == 0
    assert json.loads(capsys.readouterr().out)["benches"][0]["params"][0] == {
        "name": "n", "type": "int", "required": False, "default": 3,
    }  # fmt: skip


WORDS = st.text(alphabet="abc-_.=é|1", min_size=1, max_size=12)
TEXTS = st.lists(WORDS, max_size=8).map(" ".join)


@settings(max_examples=40)
@given(rows=st.lists(st.tuples(WORDS, TEXTS), min_size=1, max_size=4), wide=st.integers(20, 90))
def test_each_pair_is_a_line_that_is_cut_at_a_word(rows: list[tuple[str, str]], wide: int) -> None:
    """A sentence that fits is whole; of another there are its first words, and "…"."""
    told = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(told):
        patch.setattr("kernbench_builtin.machines.cli.catalogue.width", lambda: wide)
        one_line_each(rows)
    lines = told.getvalue().splitlines()
    at = max(len(name) for name, _ in rows) + 2
    assert len(lines) == len(rows) and max(map(len, lines)) <= max(wide, at + 1)
    for line, (name, sentence) in zip(lines, rows, strict=True):
        assert line[:at].rstrip() == name
        shown = line[at:]
        whole = len(sentence) <= wide - at
        assert shown == sentence if whole else shown.endswith("…")
        words = shown.removesuffix("…").split()
        assert words == sentence.split()[: len(words)]
